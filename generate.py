"""Write music with a trained model: seed notes in; .mid, .wav and .png out.

    python generate.py --seed-notes "C4 E4 G4 C5" --bars 8
    python generate.py --seed-midi tune.mid --seed-bars 2 --key "D minor" --best-of 8
    python generate.py --harmonize tune.mid

From Python:

    model = load("runs/bach/model.safetensors")
    midi = continue_midi(model, pretty_midi.PrettyMIDI("tune.mid"), Length(bars=16))
    midi.write("longer.mid")
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from common.cli import Parser, fail, positive_integer, random_seed
from data.midi.quantize import MidiError
from generation.compose import (
    DEFAULT_LENGTH,
    DEFAULT_SAMPLING,
    Piece,
    compose,
    continue_midi,
    harmonize,
    harmonize_midi,
    rank_by_likelihood,
    stream,
    write_piece,
)
from generation.constraints import ConstraintError, Constraints
from generation.length import Length
from generation.model import DEFAULT_CHECKPOINT, Model, load
from generation.note_text import SeedError
from generation.seeds import (
    Seed,
    given_from_midi,
    no_seed,
    seed_from_midi,
    seed_from_notes,
    voice_of,
)
from model.sampling import SamplingOptions
from model.serialization import ModelFileError

__all__ = [  # the Python API
    "Constraints",
    "Length",
    "Model",
    "Piece",
    "SamplingOptions",
    "Seed",
    "compose",
    "continue_midi",
    "given_from_midi",
    "harmonize",
    "harmonize_midi",
    "load",
    "no_seed",
    "rank_by_likelihood",
    "seed_from_midi",
    "seed_from_notes",
    "stream",
    "write_piece",
]

DEFAULT_SEED_BARS = 2


def _time_signature(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be such as 3/4, not {text!r}")
    return int(match[1]), int(match[2])


def command_line() -> argparse.ArgumentParser:
    """The options, in the order in which --help tells them."""
    parser = Parser(
        description=(__doc__ or "").splitlines()[0], formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        *("--checkpoint", "-c"),
        metavar="FILE",
        default=DEFAULT_CHECKPOINT,
        help="the model.safetensors of a run\n(default: %(default)s)",
    )
    _add_givens(parser)
    _add_constraints(parser)
    _add_chances(parser)
    return parser


def _add_givens(parser: argparse.ArgumentParser) -> None:
    """What the model is given."""
    seeds = parser.add_argument_group("what to begin with (nothing: the model begins)")
    kinds = seeds.add_mutually_exclusive_group()
    kinds.add_argument(
        "--seed-notes", metavar="TEXT", help='such as "C4:1 E4:.5 [C4 E4 G4]:2 R:1" or "Am F C G7"'
    )
    kinds.add_argument(
        "--seed-midi", metavar="FILE", help="a MIDI file of which some bars are kept"
    )
    seeds.add_argument(
        *("--seed-bars", "-k"),
        metavar="N",
        type=positive_integer,
        help=f"how many of its bars, an upbeat not counted; seconds, where the\n"
        f"model counts those (default: {DEFAULT_SEED_BARS})",
    )
    seeds.add_argument(
        "--from-bar", metavar="N", type=positive_integer, help="the first of them (1)"
    )
    seeds.add_argument(
        "--no-seed-in-output", action="store_true", help="write what is new alone, from its bar on"
    )
    tunes = parser.add_argument_group("or a tune to write other voices to, every note kept")
    tunes.add_argument(
        "--harmonize",
        metavar="FILE",
        nargs="?",
        const="",
        help="of this MIDI file; without a name, that of --seed-notes",
    )
    tunes.add_argument(
        "--voice",
        metavar="N",
        type=positive_integer,
        help="which of the model's instruments plays it, and which voice of the\n"
        "file it is if there are several (1, the first)",
    )


def _add_constraints(parser: argparse.ArgumentParser) -> None:
    """What is asked of the music."""
    lengths = parser.add_argument_group(
        f"how much to write after the seed (default: {DEFAULT_LENGTH.bars} bars)"
    ).add_mutually_exclusive_group()
    lengths.add_argument(
        *("--bars", "-n"), metavar="N", type=positive_integer, help="bars; or seconds, likewise"
    )
    lengths.add_argument("--seconds", metavar="S", type=float, help="seconds, at one tempo")
    lengths.add_argument("--notes", metavar="N", type=positive_integer, help="notes")
    music = parser.add_argument_group("what to ask of it (nothing: as the model likes)")
    music.add_argument(
        "--key",
        help='such as "D minor", Bb, "F# major"; minor has its raised\nsixth and seventh too',
    )
    music.add_argument(
        "--pitch-range", nargs=2, metavar=("LOW", "HIGH"), help="such as C3 C6, both included"
    )
    music.add_argument(
        "--programs", nargs="+", type=int, metavar="N", help="General MIDI from 0; drums are 128"
    )
    music.add_argument(
        "--max-polyphony", metavar="N", type=positive_integer, help="so many notes at once"
    )
    music.add_argument("--tempo", metavar="BPM", type=float, help="quarter notes a minute")
    music.add_argument(
        "--time-signature", metavar="N/D", type=_time_signature, help="of new bars, such as 3/4"
    )


def _add_chances(parser: argparse.ArgumentParser) -> None:
    """How it is drawn, and where it goes."""
    chance = parser.add_argument_group("how bold to be")
    for option, kind, sign, text in (
        ("temperature", float, "T", "below 1 safer, above 1 wilder, 0 the likeliest always"),
        ("top_p", float, "P", "choose among the likeliest tokens that together reach this"),
        ("top_k", int, "K", "choose among so many likeliest tokens"),
        ("min_p", float, "P", "choose among tokens at least this likely beside the likeliest"),
    ):
        default = getattr(DEFAULT_SAMPLING, option)
        shown = "" if default is None else "\n(default: %(default)s)"
        name = "--" + option.replace("_", "-")
        chance.add_argument(name, metavar=sign, type=kind, default=default, help=text + shown)
    files = parser.add_argument_group("how many, and where")
    files.add_argument(
        "--num-samples",
        metavar="N",
        type=positive_integer,
        default=1,
        help="pieces to keep (default: %(default)s)",
    )
    files.add_argument(
        "--best-of",
        metavar="K",
        type=positive_integer,
        help="write so many and keep those that the model itself finds likeliest",
    )
    files.add_argument(
        "--seed",
        metavar="N",
        type=random_seed,
        default=0,
        help="the same number, the same files (default: 0)",
    )
    files.add_argument(
        *("--out", "-o"),
        metavar="NAME",
        help="files are NAME.mid, .wav and .png\n(default: in music/ beside the checkpoint)",
    )


def _check_together(given: argparse.Namespace) -> None:
    """Options that say nothing without another, or contradict it."""
    for name in ("seed_bars", "from_bar"):
        if getattr(given, name) is not None and given.seed_midi is None:
            fail(f"--{name.replace('_', '-')} is about --seed-midi, which is missing")
    if given.harmonize is None:
        if given.voice is not None:
            fail("--voice is about --harmonize, which is missing")
    elif given.seed_midi is not None:
        fail("--harmonize keeps a tune from its beginning on: leave out --seed-midi")
    elif bool(given.harmonize) == (given.seed_notes is not None):
        fail("--harmonize needs one tune: a MIDI file, or none and --seed-notes")
    else:
        for name in ("bars", "seconds", "notes"):
            if getattr(given, name) is not None:
                fail(f"--{name}: a harmonized piece is as long as its tune; leave it out")
    if given.best_of is not None and given.best_of < given.num_samples:
        fail(f"--best-of {given.best_of} is fewer than the {given.num_samples} pieces to keep")


def _stems(given: argparse.Namespace) -> list[Path]:
    """The path of each sample's files, less its ending."""
    if given.out:
        out = Path(given.out)
        if out.name in ("", ".."):
            fail(f"--out {given.out}: a name for the files is needed, such as music/piece")
        stem = out.with_suffix("") if out.suffix in (".mid", ".wav", ".png") else out
    else:
        file = given.seed_midi or given.harmonize
        name = Path(file).stem if file else "notes" if given.seed_notes else "nothing"
        stem = Path(given.checkpoint).parent / "music" / f"from-{name}"
    count = given.num_samples
    if count == 1:
        return [stem]
    return [stem.with_name(f"{stem.name}-{number}") for number in range(1, count + 1)]


def _constraints(given: argparse.Namespace) -> Constraints:
    return Constraints(
        key=given.key,
        pitch_range=given.pitch_range and tuple(given.pitch_range),
        programs=given.programs and tuple(given.programs),
        max_polyphony=given.max_polyphony,
        tempo_bpm=given.tempo,
        time_signature=given.time_signature,
    )


def _seed(model: Model, given: argparse.Namespace, constraints: Constraints) -> Seed:
    """The seed, or the tune."""
    vocabulary, voice = model.vocabulary, given.voice or 1
    if given.harmonize:
        return given_from_midi(given.harmonize, vocabulary, voice=voice)
    if given.seed_midi is not None:
        return seed_from_midi(
            given.seed_midi,
            vocabulary,
            bars=given.seed_bars or DEFAULT_SEED_BARS,
            from_bar=given.from_bar or 1,
        )
    if given.seed_notes is None:
        return no_seed(vocabulary)
    seed = seed_from_notes(given.seed_notes, vocabulary, constraints)
    return seed if given.harmonize is None else voice_of(seed.score, vocabulary, voice)


def _write(given: argparse.Namespace, pieces: list[Piece], stems: list[Path]) -> None:
    """Writes pieces and says what each is."""
    for piece, stem in zip(pieces, stems, strict=False):  # the best of them
        written = piece.without_seed() if given.no_seed_in_output else piece
        midi, wav, picture = write_piece(written, stem)
        score = written.score
        print(
            f"{midi} ({len(score.bars)} bars, {len(score.notes)} notes, "
            f"{score.step_seconds(score.end_step):.0f} s), {wav.name}, {picture.name}"
        )
    if given.best_of is not None:
        figures = [f"{piece.nats_per_note:.3f}" for piece in pieces]
        kept = len(stems)
        print(f"nats per note: kept {', '.join(figures[:kept])}; left {', '.join(figures[kept:])}")


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    given = command_line().parse_args(argv)
    names = [field.name for field in dataclasses.fields(SamplingOptions)]
    try:
        sampling = SamplingOptions(**{name: getattr(given, name) for name in names})
    except ValueError as error:
        fail(f"--{str(error).replace('_', '-')}")
    _check_together(given)
    stems = _stems(given)
    try:
        constraints = _constraints(given)
        model = load(given.checkpoint)
        seed = _seed(model, given, constraints)
        if seed.changes:
            what = "seed" if given.harmonize is None else "tune"
            print(f"the {what} was fitted to the model: {'; '.join(seed.changes)}")
        how = {
            "sampling": sampling,
            "samples": given.best_of or given.num_samples,
            "random_seed": given.seed,
            "progress": True,
        }
        if given.harmonize is not None:
            pieces = harmonize(model, seed, constraints, **how)
        else:
            length = Length(bars=given.bars, seconds=given.seconds, notes=given.notes)
            pieces = compose(
                model, seed, DEFAULT_LENGTH if length == Length() else length, constraints, **how
            )
        _write(given, rank_by_likelihood(model, pieces) if given.best_of else pieces, stems)
    except (ModelFileError, MidiError, SeedError, ConstraintError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
