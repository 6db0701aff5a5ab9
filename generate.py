"""Write music with a trained model, from nothing, seed notes or a MIDI file: .mid, .wav and .png.

    python generate.py --seed-notes "C4 E4 G4 C5" --bars 8
    python generate.py --seed-midi piece.mid --seed-bars 2 --key "D minor" --best-of 8
    python generate.py --harmonize melody.mid
    python generate.py --rewrite piece.mid --bars-to-rewrite 5-8

From Python:

    model = load("runs/bach/model.safetensors")
    midi = continue_midi(model, pretty_midi.PrettyMIDI("piece.mid"), Length(bars=16))
    midi.write("longer.mid")
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.cli import Parser, fail, positive_integer, random_seed
from data.corpus.corpus import CorpusError
from data.midi.quantize import MidiError
from data.tokens.vocabulary import Vocabulary
from generation.compose import (
    DEFAULT_LENGTH,
    DEFAULT_SAMPLING,
    Piece,
    accompany,
    compose,
    continue_midi,
    harmonize_midi,
    rank_by_likelihood,
    rewrite_midi,
    stream,
    write_piece,
)
from generation.constraints import ConstraintError, Constraints
from generation.given import GivenTokens
from generation.length import Length
from generation.model import DEFAULT_CHECKPOINT, Model, load, training_runs
from generation.note_text import SeedError
from generation.seeds import (
    Seed,
    given_from_midi,
    no_seed,
    rewrite_from_midi,
    seed_from_midi,
    seed_from_notes,
    voices_of,
)
from model.sampling import SamplingOptions
from model.serialization import ModelFileError

# The Python API.
__all__ = ["Constraints", "Length", "Model", "Piece", "SamplingOptions", "Seed"]
__all__ += ["given_from_midi", "load", "no_seed", "rewrite_from_midi", "seed_from_midi"]
__all__ += ["accompany", "compose", "seed_from_notes", "stream", "voices_of"]
__all__ += ["continue_midi", "harmonize_midi", "rewrite_midi"]
__all__ += ["rank_by_likelihood", "training_runs", "write_piece"]

DEFAULT_SEED_BARS = 2


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the options, in the order in which --help lists them."""
    parser = Parser(
        description=(__doc__ or "").splitlines()[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--checkpoint",
        "-c",
        metavar="FILE",
        default=DEFAULT_CHECKPOINT,
        help="the model.safetensors of a training run\n(default: %(default)s)",
    )
    _add_seed(parser)
    _add_given_notes(parser)
    _add_length(parser)
    _add_constraints(parser)
    _add_sampling(parser)
    _add_files(parser)
    return parser


def _add_seed(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the piece begins with (default: nothing)")
    seeds = group.add_mutually_exclusive_group()
    seeds.add_argument(
        "--seed-notes",
        metavar="TEXT",
        help='notes or chords: "C4:1 E4:.5 [C4 E4 G4]:2 R:1" or "Am F C G7"',
    )
    seeds.add_argument("--seed-midi", metavar="FILE", help="some bars of this MIDI file")
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
        nargs="?",
        const="",
        help="the melody in this MIDI file; without FILE, that of --seed-notes",
    )
    whole.add_argument("--rewrite", metavar="FILE", help="write some of this MIDI file anew")
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
        type=positive_integer,
        help="which of the model's instruments play the melody of the seed, or the\n"
        "voices that are harmonized (default: 1, the first); or are rewritten\n"
        "(default: those in the piece)",
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
    group.add_argument("--seconds", metavar="S", type=float, help="seconds, at one tempo")
    group.add_argument("--notes", metavar="N", type=positive_integer, help="notes")


def _add_constraints(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the new music must be (default: as the model likes)")
    group.add_argument(
        "--key",
        help='such as "D minor", Bb or "F# major"; minor includes its raised\nsixth and seventh',
    )
    group.add_argument(
        "--pitch-range",
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="the lowest and the highest note, such as C3 C6",
    )
    group.add_argument(
        "--programs",
        nargs="+",
        type=int,
        metavar="N",
        help="the instruments, as General MIDI programs from 0; 128 is drums",
    )
    group.add_argument(
        "--max-polyphony",
        metavar="N",
        type=positive_integer,
        help="how many notes may sound at once",
    )
    group.add_argument("--tempo", metavar="BPM", type=float, help="quarter notes a minute")
    group.add_argument(
        "--time-signature", metavar="N/D", type=_time_signature, help="of new bars, such as 3/4"
    )
    group.add_argument(
        "--avoid-copying",
        metavar="N",
        type=positive_integer,
        help="no run of N notes, of one voice or of all, as in the training set, in any\n"
        "key; the corpus must be in datasets/",
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how bold the choices are")
    for option, kind, metavar, text in (
        ("temperature", float, "T", "below 1 safer, above 1 wilder; 0: always the likeliest"),
        (
            "top_p",
            float,
            "P",
            "choose among the likeliest tokens that reach this probability",
        ),
        ("top_k", int, "K", "choose among this many of the likeliest tokens"),
        ("min_p", float, "P", "choose among tokens at least this likely relative to the likeliest"),
    ):
        default = getattr(DEFAULT_SAMPLING, option)
        shown = "" if default is None else "\n(default: %(default)s)"
        name = "--" + option.replace("_", "-")
        group.add_argument(name, metavar=metavar, type=kind, default=default, help=text + shown)


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how many pieces, and where they go")
    group.add_argument(
        "--num-samples",
        metavar="N",
        type=positive_integer,
        default=1,
        help="pieces to keep (default: %(default)s)",
    )
    group.add_argument(
        "--best-of",
        metavar="K",
        type=positive_integer,
        help="write this many and keep those that the model finds likeliest",
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
        help="write NAME.mid, NAME.wav and NAME.png\n(default: in music/ beside the checkpoint)",
    )


def _time_signature(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be such as 3/4, not {text!r}")
    return int(match[1]), int(match[2])


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
            fail(f"--{name.replace('_', '-')} needs the name of a MIDI file")
    if options.bars_to_rewrite is not None and options.rewrite is None:
        fail("--bars-to-rewrite is about --rewrite, which is missing")
    if options.harmonize is None and options.rewrite is None:
        if options.alone and options.seed_midi is None and options.seed_notes is None:
            fail("--alone is about --seed-midi or --seed-notes, which are missing")
        if options.voices is not None and len(options.voices) > 1:
            fail("--voices: a melody has one voice; several are for --harmonize and --rewrite")
        if options.voices is not None and options.seed_notes is None:
            fail("--voice is about --seed-notes, --harmonize or --rewrite, which are missing")
        return
    name = "rewrite" if options.harmonize is None else "harmonize"
    if options.alone:
        fail(f"--alone: --{name} keeps only what it is given; leave it out")
    if options.seed_midi is not None or (options.rewrite and options.seed_notes is not None):
        fail(
            f"--{name} keeps a piece from its beginning on: leave out --seed-midi and --seed-notes"
        )
    if options.rewrite is None and bool(options.harmonize) == (options.seed_notes is not None):
        fail("--harmonize needs one melody: that of a MIDI file, or that of --seed-notes")
    for length in ("bars", "seconds", "notes"):
        if getattr(options, length) is not None:
            fail(f"--{length}: --{name} keeps the length of the piece; leave it out")


def _check_counts(options: argparse.Namespace) -> None:
    """Refuse to keep more pieces than are written."""
    if options.best_of is not None and options.best_of < options.num_samples:
        fail(f"--best-of {options.best_of} is fewer than the {options.num_samples} pieces to keep")


def _stems(options: argparse.Namespace) -> list[Path]:
    """Return the path of each piece's files without its ending."""
    if options.out:
        out = Path(options.out)
        if out.name in ("", ".."):
            fail(f"--out {options.out}: a name for the files is needed, such as music/piece")
        stem = out.with_suffix("") if out.suffix in (".mid", ".wav", ".png") else out
    else:
        file = options.seed_midi or options.harmonize or options.rewrite
        name = Path(file).stem if file else "notes" if options.seed_notes else "nothing"
        stem = Path(options.checkpoint).parent / "music" / f"from-{name}"
    count = options.num_samples
    if count == 1:
        return [stem]
    return [stem.with_name(f"{stem.name}-{number}") for number in range(1, count + 1)]


def _constraints(options: argparse.Namespace) -> Constraints:
    return Constraints(
        key=options.key,
        pitch_range=options.pitch_range and tuple(options.pitch_range),
        programs=options.programs and tuple(options.programs),
        max_polyphony=options.max_polyphony,
        tempo_bpm=options.tempo,
        time_signature=options.time_signature,
    )


def _seed(model: Model, options: argparse.Namespace, constraints: Constraints) -> Seed:
    """Return what the piece is given."""
    vocabulary, voices = model.vocabulary, options.voices or ()
    if options.rewrite:
        bars = options.bars_to_rewrite
        return rewrite_from_midi(options.rewrite, vocabulary, bars=bars, voices=voices)
    if options.harmonize:
        return given_from_midi(options.harmonize, vocabulary, voices=voices or (1,))
    if options.seed_midi is not None:
        seed = seed_from_midi(
            options.seed_midi,
            vocabulary,
            bars=options.seed_bars or DEFAULT_SEED_BARS,
            from_bar=options.from_bar or 1,
        )
    elif options.seed_notes is not None:
        seed = seed_from_notes(options.seed_notes, vocabulary, constraints)
        if options.harmonize is not None:
            harmonized = voices_of(seed.score, vocabulary, voices or (1,))
            return dataclasses.replace(harmonized, changes=seed.changes + harmonized.changes)
        if voices:
            seed = seed.played_by(voices[0], vocabulary)
    else:
        return no_seed(vocabulary)
    return seed if options.alone else accompany(model, seed)


def _tell_of_voices(seed: Seed, vocabulary: Vocabulary, constraints: Constraints) -> None:
    """Print how many voices may join a seed before it ends, if any."""
    own = set(seed.score.notes["program"].tolist())
    others = np.array(vocabulary.programs)[seed.is_open.any(axis=1)].tolist()
    playing = set(constraints.programs or vocabulary.programs)
    joining = len(playing.intersection(others) - own)
    if constraints.max_polyphony is not None:
        joining = min(joining, constraints.max_polyphony - len(own))
    if joining > 0:
        who = "1 voice joins" if joining == 1 else f"{joining} voices join"
        print(f"{who} the seed; --alone leaves it as it is")


def _write(
    options: argparse.Namespace, model: Model, pieces: list[Piece], stems: list[Path]
) -> None:
    """Write the files of the first pieces, one a stem, and print a line about each."""
    for piece, stem in zip(pieces, stems, strict=False):
        written = piece
        if options.no_seed_in_output:
            nothing = GivenTokens(no_seed(model.vocabulary), model.vocabulary)
            written = dataclasses.replace(piece, score=piece.new_notes(), given=nothing)
        midi, wav, picture = write_piece(written, stem)
        score = written.score
        print(
            f"{midi} ({len(score.bars)} bar{'s' * (len(score.bars) != 1)}, "
            f"{len(score.notes)} note{'s' * (len(score.notes) != 1)}, "
            f"{score.step_seconds(score.end_step):.0f} s), {wav.name}, {picture.name}"
        )
    if options.best_of is not None:
        figures = [f"{piece.nats_per_note:.3f}" for piece in pieces]
        kept = len(stems)
        print(f"nats per note: kept {', '.join(figures[:kept])}; left {', '.join(figures[kept:])}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = command_line().parse_args(argv)
    names = [field.name for field in dataclasses.fields(SamplingOptions)]
    try:
        sampling = SamplingOptions(**{name: getattr(options, name) for name in names})
    except ValueError as error:
        fail(f"--{str(error).replace('_', '-')}")
    _check_together(options)
    _check_counts(options)
    stems = _stems(options)
    try:
        constraints = _constraints(options)
        model = load(options.checkpoint)
        if options.avoid_copying is not None:
            runs = training_runs(model, options.avoid_copying)
            constraints = dataclasses.replace(constraints, avoided_runs=runs)
        seed = _seed(model, options, constraints)
        how = {
            "sampling": sampling,
            "samples": options.best_of or options.num_samples,
            "random_seed": options.seed,
            "progress": True,
        }
        length = None  # as long as what is given
        if options.harmonize is None and options.rewrite is None:
            length = Length(bars=options.bars, seconds=options.seconds, notes=options.notes)
            length = DEFAULT_LENGTH if length == Length() else length
        pieces = compose(model, seed, length, constraints, **how)
        if seed.changes:
            print(f"about what was given: {'; '.join(seed.changes)}")
        if length is not None:
            _tell_of_voices(seed, model.vocabulary, constraints)
        if options.best_of is not None:
            pieces = rank_by_likelihood(model, pieces)
        _write(options, model, pieces, stems)
    except (ModelFileError, MidiError, SeedError, ConstraintError, CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
