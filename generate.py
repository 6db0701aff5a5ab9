"""Write music with a trained model, from nothing, seed notes or a file: .mid, .wav and .png.

    python generate.py --seed-notes "C4 E4 G4 C5" --bars 8
    python generate.py --seed-midi piece.mid --seed-bars 2 --key "D minor" --best-of 8
    python generate.py --harmonize melody.mid
    python generate.py --rewrite piece.mid --bars-to-rewrite 5-8
    python generate.py --checkpoint runs/steps --seed-ids "3 7 11" --count 20 --out new.jsonl

From Python:

    model = load("runs/bach/model.safetensors")
    midi = continue_midi(model, pretty_midi.PrettyMIDI("piece.mid"), Length(bars=16))
    midi.write("longer.mid")
"""

from __future__ import annotations

if __name__ == "__main__":
    import common.command  # noqa: F401  # Ctrl-C ends it at once while it starts

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from common.cli import (
    Parser,
    check_file,
    ended_by_ctrl_c,
    fail,
    file_name,
    number,
    positive_integer,
    quick_imports,
    random_seed,
    say,
)
from common.files import check_writable
from data.batches.options import ID_SUFFIXES
from data.score import Grid
from generation.chord_track import CADENCES
from generation.constraints import FREE, NO_RESTS, STRICT, ConstraintError, Constraints
from generation.defaults import (
    DEFAULT_LENGTH,
    DEFAULT_SEED_BARS,
    add_checkpoint,
    default_model,
)
from generation.length import Length
from generation.note_text import SeedError, parse_seed_notes
from model.config import SamplingOptions

if __name__ != "__main__":  # the Python API; the command imports it when its options are checked
    from generation.compose import (
        accompany,
        compose,
        continue_midi,
        harmonize_midi,
        rewrite_midi,
        stream,
        write_piece,
    )
    from generation.model import Model, load
    from generation.request import Request
    from generation.seeds import (
        Seed,
        given_from_midi,
        no_seed,
        rewrite_from_midi,
        seed_from_midi,
        seed_from_notes,
        voices_of,
    )
    from generation.writing import Piece, rank

__all__ = ["Constraints", "Length", "Model", "Piece", "Request", "SamplingOptions", "Seed"]
__all__ += ["given_from_midi", "load", "no_seed", "rewrite_from_midi", "seed_from_midi"]
__all__ += ["accompany", "compose", "seed_from_notes", "stream", "voices_of"]
__all__ += ["continue_midi", "harmonize_midi", "rewrite_midi"]
__all__ += ["rank", "write_piece"]

MOST_PIECES, MOST_CANDIDATES = 10_000, 128  # candidates are written side by side
LONGEST_NOTE = 20  # characters
ENDINGS = (".mid", ".wav", ".png", ".musicxml", ".svg")  # of the files of a piece
# Options of sequences that are no music; all others are about music.
OF_IDS = {"checkpoint", "seed_ids", "ids", "num_samples", "seed", "out"}
OF_IDS |= {"temperature", "top_p", "top_k", "min_p"}
_CONSTRAINTS = {field.name for field in fields(Constraints)}


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the options, in the order in which --help lists them."""
    parser = Parser(
        "words that belong together go in quotes; a file is named by --seed-midi, --harmonize or "
        "--rewrite",
        description=(__doc__ or "").splitlines()[0],
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add_checkpoint(parser)
    _add_seed(parser)
    _add_given_notes(parser)
    _add_length(parser)
    _add_constraints(parser)
    _add_sampling(parser)
    _add_files(parser)
    _add_ids(parser)
    return parser


def _add_seed(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the piece begins with (default: nothing)")
    seeds = group.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seed-notes",
        metavar="TEXT",
        help='notes or chords: "C4:1 E4:.5 [C4 E4 G4]:2 R:1" or "Am F C G7"',
    )
    seeds.add_argument(
        "--seed-midi", metavar="FILE", type=file_name, help="some bars of this file, MIDI or score"
    )
    group.add_argument(
        "--seed-bars",
        "-k",
        metavar="N",
        type=positive_integer,
        help="how many bars of the file, an upbeat not counted; seconds, if the\n"
        f"model has no bars (default: {DEFAULT_SEED_BARS})",
    )
    group.add_argument(
        "--from-bar", metavar="N", type=positive_integer, help="the first of them (default: 1)"
    )
    group.add_argument(
        "--alone",
        action="store_true",
        help="let a seed of few voices stay as it is; else others join it",
    )
    group.add_argument(
        "--no-seed-in-output",
        action="store_true",
        help="write only what is new, from the bar in which it begins",
    )


def _add_given_notes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("or music of which every note is kept but some")
    whole = group.add_mutually_exclusive_group()
    whole.add_argument(
        "--harmonize",
        metavar="FILE",
        type=file_name,
        nargs="?",
        const="",
        help="the melody in this file; without FILE, that of --seed-notes",
    )
    whole.add_argument(
        "--rewrite", metavar="FILE", type=file_name, help="write some of this file anew"
    )
    group.add_argument(
        "--bars-to-rewrite",
        metavar="N-M",
        type=_bars,
        help="the first and the last, as 5-8, 5 or 5- (default: all); an upbeat is bar 0",
    )
    group.add_argument(
        "--voices",
        "--voice",
        metavar="N",
        nargs="+",
        type=_voice,
        help="which of the model's instruments, by number or name, play the melody of\n"
        "the seed, or the voices that are harmonized (default: 1, the first); or are\n"
        "rewritten (default: those in the piece)",
    )


def _add_length(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        f"how much to write after the seed (default: {DEFAULT_LENGTH.bars} bars)"
    ).add_mutually_exclusive_group()
    group.add_argument(
        "--bars",
        "-n",
        metavar="N",
        type=positive_integer,
        help="bars; seconds, if the model has no bars",
    )
    group.add_argument("--seconds", metavar="S", type=number, help="seconds, at one tempo")
    group.add_argument("--notes", metavar="N", type=positive_integer, help="notes")


def _add_constraints(parser: argparse.ArgumentParser) -> None:
    """Add those of `Constraints`, by its names."""
    group = parser.add_argument_group("what the new music must be (default: as the model likes)")
    add = group.add_argument
    add(
        "--key",
        help='such as "D minor", Bb or "F# major"; minor includes its raised\nsixth and seventh',
    )
    chords = (
        'that hold, bar by bar: "Am | F C/E | Dm7 E7:2"; then they come again\n'
        "(default length: until they are over)"
    )
    add("--chords", metavar="TEXT", help=chords)
    cadence = (
        "how the piece ends, in the key that is asked for or given: with V7 I,\n"
        "with V, with V7 VI, with IV I"
    )
    add("--cadence", choices=CADENCES, help=cadence)
    bar = "which bar has the last chord of the cadence instead of the last one"
    add("--cadence-bar", metavar="N", type=positive_integer, help=bar)
    pitches = "the lowest and the highest note, such as C3 C6"
    add("--pitch-range", nargs=2, type=_note, metavar=("LOW", "HIGH"), help=pitches)
    programs = (
        "the only instruments that may play: by name, or as General MIDI programs\n"
        "from 0 (128: drums); with --best-of, pieces in which all play come first"
    )
    add("--programs", nargs="+", type=_program, metavar="N", help=programs)
    polyphony = "how many notes may sound at once"
    add("--max-polyphony", metavar="N", type=positive_integer, help=polyphony)
    tempo = "quarter notes a minute"
    add("--tempo", dest="tempo_bpm", metavar="BPM", type=number, help=tempo)
    busy = "about so many new notes in a bar, of all voices together"
    add("--busy", metavar="N", type=number, help=busy)
    meter = "of new bars, such as 3/4"
    add("--time-signature", metavar="N/D", type=_time_signature, help=meter)
    counterpoint = (
        "strict: no parallel fifths or octaves between instruments (default: where\n"
        "the training set has four parts and hardly any)"
    )
    add("--counterpoint", choices=(STRICT, FREE), help=counterpoint)
    rests = (
        "none: an instrument that may play sounds to the end (default: where those\n"
        "of the training set hardly rest)"
    )
    add("--rests", choices=(NO_RESTS, FREE), help=rests)


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add those of `SamplingOptions`, by its names."""
    group = parser.add_argument_group(
        "how bold the choices are",
        "By default as suits the model.",
    )
    for option, kind, text in (
        ("temperature", number, "of pitches: below 1 safer, above 1 wilder; 0: the likeliest"),
        ("rhythm_temperature", number, "of all else: when notes begin, who plays, how long"),
        ("top_p", number, "choose among the likeliest tokens that reach this probability"),
        ("top_k", positive_integer, "choose among this many of the likeliest tokens"),
        ("min_p", number, "choose among tokens this likely at least, beside the likeliest"),
    ):
        name = "--" + option.replace("_", "-")
        group.add_argument(name, metavar=option[-1].upper(), type=kind, help=text)


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how many pieces, and where they go")
    group.add_argument(
        "--num-samples",
        "--count",
        metavar="N",
        type=positive_integer,
        default=1,
        help="pieces to keep (default: %(default)s)",
    )
    group.add_argument(
        "--best-of",
        metavar="K",
        type=positive_integer,
        help="write this many for each and keep the one most like training pieces, or\n"
        "in which all --programs play (default: 8 with a model that can judge)",
    )
    group.add_argument(
        "--seed",
        metavar="N",
        type=random_seed,
        default=0,
        help="of the random numbers: the same seed writes the same files (default: 0)",
    )
    group.add_argument(
        "--out",
        "-o",
        metavar="NAME",
        type=file_name,
        help="write NAME.mid, .wav, .png, .musicxml and .svg; into NAME, if it is\n"
        "a folder (default: %(default)s)",
        default="music/",
    )


def _add_ids(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "sequences that are no music",
        "Of a model that learned from ids; --out is a .jsonl or a .npy file.",
    )
    group.add_argument(
        "--seed-ids",
        metavar="TEXT",
        help='what they begin with, such as "3 7 11" (default: nothing)',
    )
    group.add_argument(
        "--ids",
        metavar="N",
        type=positive_integer,
        help="how many ids to write after it (default: until the model ends it)",
    )


def _time_signature(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be such as 3/4, not {text!r}")
    return int(match[1]), int(match[2])


def _program(text: str) -> int | str:
    """Return the number of an instrument from 0, or its name."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else text


def _note(text: str) -> str:
    """Return the name or the number of a note, which is short."""
    if len(text) > LONGEST_NOTE:
        raise argparse.ArgumentTypeError("must be a note such as C3")
    return text


def _voice(text: str) -> int | str:
    """Return the number of an instrument, or its name, which has a letter."""
    return text if any(map(str.isalpha, text)) else positive_integer(text)


def _bars(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"([0-9]{1,6})(-([0-9]{0,6}))?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be such as 5-8, 5 or 5-, not {text!r}")
    last = match[3] if match[2] else match[1]
    if last and int(last) < int(match[1]):
        raise argparse.ArgumentTypeError(f"begins after its end: {text}")
    return int(match[1]), int(last) if last else None


def _check_together(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing without another, or contradict it."""
    for name in ("seed_bars", "from_bar"):
        if getattr(options, name) is not None and options.seed_midi is None:
            fail(f"--{name.replace('_', '-')} is about --seed-midi, which is missing")
    for name in ("seed_midi", "rewrite"):
        if getattr(options, name) == "":
            fail(f"--{name.replace('_', '-')} needs the name of a file")
    if options.bars_to_rewrite is not None and options.rewrite is None:
        fail("--bars-to-rewrite is about --rewrite, which is missing")
    if options.harmonize is None and options.rewrite is None:
        if options.alone and options.seed_midi is None and options.seed_notes is None:
            fail("--alone is about --seed-midi or --seed-notes, which are missing")
        if options.voices is not None and len(options.voices) > 1:
            fail("--voices: a melody has one voice; several are for --harmonize and --rewrite")
        if options.voices is not None and options.seed_notes is None and options.seed_midi is None:
            fail("--voice is about a seed, --harmonize or --rewrite, which are missing")
        return
    name = "rewrite" if options.harmonize is None else "harmonize"
    if options.alone:
        fail(f"--alone: --{name} keeps only what it is given; leave it out")
    if options.seed_midi is not None:
        fail(f"--{name} FILE takes the file itself: leave out --seed-midi")
    if options.rewrite and options.seed_notes is not None:
        fail("--rewrite FILE keeps that piece from its beginning on: leave out --seed-notes")
    if options.rewrite is None and bool(options.harmonize) == (options.seed_notes is not None):
        fail("--harmonize needs one melody: that of a file, or that of --seed-notes")
    for length in ("bars", "seconds", "notes"):
        if getattr(options, length) is not None:
            fail(f"--{length}: --{name} keeps the length of the piece; leave it out")


def _check_counts(options: argparse.Namespace) -> None:
    """Refuse numbers that no machine holds."""
    for name, most in (("num_samples", MOST_PIECES), ("best_of", MOST_CANDIDATES)):
        if (getattr(options, name) or 0) > most:
            fail(f"--{name.replace('_', '-')}: at most {most} pieces are written at once")


def _is_about_ids(options: argparse.Namespace, parser: argparse.ArgumentParser) -> bool:
    """Return whether sequences are asked for; refuse options that make none of them."""
    if Path(options.out).suffix not in ID_SUFFIXES:
        for name in ("seed_ids", "ids"):
            if getattr(options, name) is not None:
                fail(f"--{name.replace('_', '-')} needs --out FILE.jsonl or FILE.npy")
        return False
    for name, value in vars(options).items():
        if name not in OF_IDS and value != parser.get_default(name):
            fail(f"--{name.replace('_', '-')} is about music, and {options.out} holds ids")
    if options.checkpoint is None:
        fail(f"--out {options.out} needs --checkpoint, of a model that learned from ids")
    return True


def _check_files(options: argparse.Namespace) -> None:
    """Refuse the names of files that are not there."""
    files = (options.checkpoint, options.seed_midi, options.harmonize, options.rewrite)
    for path in filter(None, files):
        check_file(path)


def _stems(options: argparse.Namespace) -> list[Path]:
    """Return the path of each piece's files without its ending.

    Raises:
        OSError: no such files can be written.
    """
    file = options.seed_midi or options.harmonize or options.rewrite
    name = Path(file).stem if file else "notes" if options.seed_notes else "nothing"
    out = Path(options.out)
    if not options.out:
        fail("--out needs a name for the files, such as music/piece")
    if options.out.endswith(("/", os.sep)) or out.is_dir():
        stem = out / f"from-{name}"
    else:
        stem = out.with_suffix("") if out.suffix in ENDINGS else out
    count = options.num_samples
    numbered = [stem.with_name(f"{stem.name}-{number}") for number in range(1, count + 1)]
    stems = [stem] if count == 1 else numbered
    check_writable(f"{stems[0]}.mid")
    for path in (Path(f"{stem}{ending}") for stem in stems for ending in ENDINGS):
        if path.is_dir():
            fail(f"--out {options.out}: {path} is a folder")
    return stems


def _length(options: argparse.Namespace) -> Length | None:
    """Return how much is to be written; None: as long as what is given."""
    if options.harmonize is not None or options.rewrite is not None:
        return None
    length = Length(bars=options.bars, seconds=options.seconds, notes=options.notes)
    return DEFAULT_LENGTH if length == Length() and options.chords is None else length


def _constraints(options: argparse.Namespace) -> Constraints:
    asked = {name: its for name, its in vars(options).items() if name in _CONSTRAINTS}
    lists = {name: tuple(its) for name, its in asked.items() if isinstance(its, list)}
    return Constraints(**(asked | lists))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command: check all options first, since to import the rest takes a second."""
    parser = command_line()
    options = parser.parse_args(argv)
    _check_together(options)
    _check_counts(options)
    _check_files(options)
    is_about_ids = _is_about_ids(options, parser)
    asked = {field.name: getattr(options, field.name) for field in fields(SamplingOptions)}
    options.sampling = {name: value for name, value in asked.items() if value is not None}
    try:
        SamplingOptions(**options.sampling)
    except ValueError as error:
        fail(f"--{str(error).replace('_', '-')}")
    if is_about_ids:
        with quick_imports():
            from generation.command import run_ids
        with ended_by_ctrl_c():
            return run_ids(options)
    try:
        options.constraints = _constraints(options)
        options.length = _length(options)
        if options.seed_notes is not None:
            parse_seed_notes(options.seed_notes, Grid())
        stems = _stems(options)
        which = None
        if options.checkpoint is None:
            options.checkpoint, which = default_model()
    except (ConstraintError, SeedError, OSError) as error:
        fail(str(error))
    if which:
        say(which)

    with quick_imports():
        from generation.command import run
    with ended_by_ctrl_c():
        run(options, stems)


if __name__ == "__main__":
    main()
