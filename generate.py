"""Write music with a trained model, from nothing, seed notes or a file: to hear and to see.

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
from textwrap import fill
from typing import Any

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
from common.options import comments_of, hints_of, takes
from data.corpus.options import ID_SUFFIXES
from data.score import Grid
from generation.chord_track import CADENCES
from generation.constraints import FREE, NO_RESTS, STRICT, TOGETHER, ConstraintError, Constraints
from generation.defaults import DEFAULT_LENGTH, DEFAULT_SEED_BARS, add_checkpoint, default_model
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
ENDINGS = (".mid", ".wav", ".png", ".musicxml", ".svg")  # of the files of a piece
# Options of sequences that are no music; all others are about music.
OF_IDS = {"checkpoint", "seed_ids", "ids", "num_samples", "seed", "out"}
OF_IDS |= {"temperature", "top_p", "top_k", "min_p"}
_FLAGS = {"bars": ["--bars", "-n"], "tempo_bpm": ["--tempo"]}


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
    _add_fields(parser)
    _add_files(parser)
    _add_ids(parser)
    return parser


def _add_seed(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the piece begins with (default: nothing)")
    seeds = group.add_mutually_exclusive_group()
    notes = 'notes or chords: "C4:1 E4:.5 [C4 E4 G4]:2 R:1" or "Am F C G7"'
    seeds.add_argument("--seed-notes", metavar="TEXT", help=notes)
    midi = "some bars of this file, MIDI or score"
    seeds.add_argument("--seed-midi", metavar="FILE", type=file_name, help=midi)
    add = group.add_argument
    bars = (
        "how many bars of the file, an upbeat not counted; seconds, if the\n"
        f"model has no bars (default: {DEFAULT_SEED_BARS})"
    )
    add("--seed-bars", "-k", metavar="N", type=positive_integer, help=bars)
    add("--from-bar", metavar="N", type=positive_integer, help="the first of them (default: 1)")
    alone = "let a seed of few voices stay as it is; else others join it"
    add("--alone", action="store_true", help=alone)
    new = "write only what is new, from the bar in which it begins"
    add("--no-seed-in-output", action="store_true", help=new)


def _add_given_notes(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("or music of which every note is kept but some")
    add = group.add_mutually_exclusive_group().add_argument
    melody = "the melody in this file; without FILE, that of --seed-notes"
    add("--harmonize", metavar="FILE", type=file_name, nargs="?", const="", help=melody)
    add("--rewrite", metavar="FILE", type=file_name, help="write some of this file anew")
    bars = "the first and the last, as 5-8, 5 or 5- (default: all); an upbeat is bar 0"
    group.add_argument("--bars-to-rewrite", metavar="N-M", type=_bars, help=bars)
    voices = (
        "which of the model's instruments, by number or name, play the melody of\n"
        "the seed, or the voices that are harmonized (default: the highest of the\n"
        "usual ones; never the drums); or are rewritten (default: those in the piece)"
    )
    group.add_argument("--voices", "--voice", metavar="N", nargs="+", type=_player, help=voices)


def _add_fields(parser: argparse.ArgumentParser) -> None:
    """Add the fields of `Length`, `Constraints` and `SamplingOptions` that have a comment."""
    length = f"how much to write after the seed (default: {DEFAULT_LENGTH.bars} bars)"
    constraints = "what the new music must be (default: as the model likes)"
    sampling = "how bold the choices are (default: as suits the model)"
    for title, kind in ((length, Length), (constraints, Constraints), (sampling, SamplingOptions)):
        group: Any = parser.add_argument_group(title)
        add = (group.add_mutually_exclusive_group() if kind is Length else group).add_argument
        hints = hints_of(kind)
        for name, comment in comments_of(kind).items():
            read = number if takes(hints[name], 0.5) else positive_integer
            how = {"type": read, "metavar": "N"} if takes(hints[name], 1) else {}
            add(
                *_FLAGS.get(name, [_option(name)]),
                dest=name,
                help=fill(comment, 76),
                **_HOW.get(name, how),
            )


def _add_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("how many pieces, and where they go").add_argument
    count = "pieces to keep (default: %(default)s)"
    add("--num-samples", "--count", metavar="N", type=positive_integer, default=1, help=count)
    best = (
        "write so many at once, and every few bars go on from the one most like training\n"
        "pieces, or in which all --programs play (default: 8 with a model that can judge)"
    )
    add("--best-of", metavar="K", type=positive_integer, help=best)
    seed = "of the random numbers: the same seed writes the same files (default: 0)"
    add("--seed", metavar="N", type=random_seed, default=0, help=seed)
    out = (
        "write NAME.mid, .wav, .png, .musicxml and .svg; into NAME, if it is\n"
        "a folder (default: %(default)s)"
    )
    add("--out", "-o", metavar="NAME", type=file_name, help=out, default="music/")


def _add_ids(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "sequences that are no music",
        "Of a model that learned from ids; --out is a .jsonl or a .npy file.",
    ).add_argument
    seed = 'what they begin with, such as "3 7 11" (default: nothing)'
    add("--seed-ids", metavar="TEXT", help=seed)
    count = "how many ids to write after it (default: until the model ends it)"
    add("--ids", metavar="N", type=positive_integer, help=count)


def _time_signature(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be a meter such as 3/4, not {text!r}")
    return int(match[1]), int(match[2])


def _player(text: str) -> int | str:
    """Return the number of an instrument, or its name."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else text


def _bars(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"([0-9]{1,6})(-([0-9]{0,6}))?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be bars such as 5-8, 5 or 5-, not {text!r}")
    last = match[3] if match[2] else match[1]
    if last and int(last) < int(match[1]):
        raise argparse.ArgumentTypeError(f"begins after its end: {text}")
    return int(match[1]), int(last) if last else None


# Of fields that are neither a text nor a number.
_HOW: dict[str, dict[str, Any]] = {
    "pitch_range": {"nargs": 2, "metavar": ("LOW", "HIGH")},
    "programs": {"nargs": "+", "type": _player, "metavar": "N"},
    "time_signature": {"type": _time_signature, "metavar": "N/D"},
    "cadence": {"choices": CADENCES},
    "counterpoint": {"choices": (STRICT, FREE)},
    "rests": {"choices": (NO_RESTS, TOGETHER, FREE)},
}


def _check_together(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing without another, or contradict it; and large numbers."""
    if options.num_samples > MOST_PIECES or (options.best_of or 1) > MOST_CANDIDATES:
        fail(f"--num-samples is at most {MOST_PIECES}, --best-of at most {MOST_CANDIDATES}")
    given = {n for n, value in vars(options).items() if value is not None and value is not False}
    beginning, whole = {"seed_midi", "seed_notes"}, {"harmonize", "rewrite"}
    for name in sorted(given & whole):
        for other in sorted(given & {"alone", "seed_midi", "bars", "seconds", "notes"}):
            fail(f"{_option(name)} keeps the piece that it is given: leave out {_option(other)}")
    for name, others in (
        ("seed_bars", {"seed_midi"}),
        ("from_bar", {"seed_midi"}),
        ("bars_to_rewrite", {"rewrite"}),
        ("alone", beginning),
        ("no_seed_in_output", beginning | whole),
        ("voices", beginning | whole),
    ):
        if name in given and not given & others:
            fail(f"{_option(name)} needs {' or '.join(map(_option, sorted(others)))}")
    if options.seed_midi == "" or options.rewrite == "":
        fail("--seed-midi and --rewrite need the name of a file")
    if "harmonize" in given and bool(options.harmonize) == ("seed_notes" in given):
        fail("--harmonize needs one melody: from a file, or from --seed-notes")
    if {"rewrite", "seed_notes"} <= given:
        fail("--rewrite FILE keeps that piece from its beginning on: leave out --seed-notes")
    if not given & whole and len(options.voices or ()) > 1:
        fail("--voices: a melody has one voice; several are for --harmonize and --rewrite")


def _option(name: str) -> str:
    """Return how an option is written."""
    return f"--{name.replace('_', '-')}"


def _is_about_ids(options: argparse.Namespace, parser: argparse.ArgumentParser) -> bool:
    """Return whether sequences are asked for; refuse options that make none of them."""
    if Path(options.out).suffix not in ID_SUFFIXES:
        for name in ("seed_ids", "ids"):
            if getattr(options, name) is not None:
                fail(f"{_option(name)} needs --out FILE.jsonl or FILE.npy")
        return False
    for name, value in vars(options).items():
        if name not in OF_IDS and value != parser.get_default(name):
            fail(f"{_option(name)} is about music, and {options.out} holds ids")
    if options.checkpoint is None:
        fail(f"--out {options.out} needs --checkpoint, of a model that learned from ids")
    return True


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
    length = Length(options.bars, options.seconds, options.notes)
    return DEFAULT_LENGTH if length == Length() and options.chords is None else length


def _constraints(options: argparse.Namespace) -> Constraints:
    said = vars(options)
    asked = {name: said[name] for name in hints_of(Constraints).keys() & said}
    lists = {name: tuple(its) for name, its in asked.items() if isinstance(its, list)}
    return Constraints(**(asked | lists))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command: check all options first, since to import the rest takes a second."""
    parser = command_line()
    options = parser.parse_args(argv)
    _check_together(options)
    files = (options.checkpoint, options.seed_midi, options.harmonize, options.rewrite)
    for path in filter(None, files):
        check_file(path)
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
