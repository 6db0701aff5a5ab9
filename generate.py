"""Continue music with a trained model: seed notes in; .mid, .wav and .png out.

    python generate.py --checkpoint runs/bach/model.safetensors --seed-notes "C4 E4 G4 C5"
    python generate.py --seed-midi tune.mid --seed-bars 2 --bars 16 --num-samples 4

From Python:

    model = load("runs/bach/model.safetensors")
    piece = continue_score(model, read_seed_midi(model, "tune.mid", bars=2), bars=8)[0]
    write_midi(piece.score, "longer.mid")
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from data.audio import write_wav
from data.fit import fit_score
from data.grammar import BarLimit, Grammar
from data.midi import read_midi, write_midi
from data.quantise import MidiError
from data.render import write_piano_roll
from data.score import BAR, DRUMS, NOTE, Score, canonical
from data.seed_notes import SeedError, parse_seed_notes
from data.tokenizer import decode, encode
from data.vocabulary import CONTROLS, Vocabulary, VocabularyError
from data.windows import rebase
from model.bundle import BundleError, load_bundle
from model.decoder import Decoder
from model.sampling import Choice, sample

DEFAULT_CHECKPOINT = "runs/bach/model.safetensors"
DEFAULT_CHOICE = Choice(temperature=1.0, top_p=0.95)


@dataclass(frozen=True)
class Model:
    """A trained decoder, the vocabulary it speaks, and how it was trained."""

    decoder: Decoder
    vocabulary: Vocabulary
    summary: dict[str, Any]


@dataclass(frozen=True)
class Seed:
    """A beginning that a model's vocabulary can spell.

    Attributes:
        score: its notes; none: begin from nothing.
        end_step: the new music begins here, in the last bar of the seed or at its end.
        told: a clause for each thing that was changed to bring it into the vocabulary.
    """

    score: Score
    end_step: int
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A seed with its continuation; notes with an onset before `seed_steps` are the seed's."""

    score: Score
    seed_steps: int


def load(path: str | Path) -> Model:
    """The model in a `model.safetensors`.

    Raises:
        BundleError: there is no such file, or it is not one of ours.
    """
    decoder, vocabulary_json, summary = load_bundle(path)
    try:
        vocabulary = Vocabulary.from_json(vocabulary_json)
    except VocabularyError as error:
        raise BundleError(f"{path}: {error}") from None
    if vocabulary.size != decoder.config.vocabulary_size:
        raise BundleError(f"{path}: the vocabulary does not fit the model beside it")
    if decoder.config.n_control not in (0, CONTROLS):
        raise BundleError(f"{path}: its side input is not the one that this program gives")
    return Model(decoder, vocabulary, summary)


def no_seed(model: Model) -> Seed:
    """Nothing to begin with: the model begins."""
    empty = canonical(np.empty(0, NOTE), np.empty(0, BAR), [], model.vocabulary.grid)[0]
    return Seed(empty, 0)


def read_seed_notes(model: Model, text: str) -> Seed:
    """A seed from text such as `C4:1 E4:.5 [C4 E4 G4]:2` (see data/seed_notes.py).

    Voices take the model's instruments from the first on, tempo and loudness are its middle ones;
    a model of seconds, which has no tempo, gets 120 quarter notes a minute.

    Raises:
        SeedError: the text cannot be read.
    """
    vocabulary = model.vocabulary
    score = parse_seed_notes(
        text,
        vocabulary.grid,
        programs=[program for program in vocabulary.programs if program != DRUMS] or [0],
        tempo_bpm=vocabulary.tempos[len(vocabulary.tempos) // 2] if vocabulary.tells_tempo else 120,
        velocity=vocabulary.velocities[len(vocabulary.velocities) // 2],
    )
    score, told = fit_score(score, vocabulary)
    ends = score.notes["onset"] + score.notes["duration"]
    return Seed(score, min(int(ends.max(initial=0)), int(score.bar_starts[-1])), tuple(told))


def read_seed_midi(model: Model, path: str | Path, bars: int) -> Seed:
    """The first `bars` bars of a MIDI file as a seed; an upbeat before bar 1 comes on top.

    Raises:
        FileNotFoundError, MidiError: there is no such file, or no music in it.
    """
    score, _ = read_midi(path, model.vocabulary.grid)
    if not len(score.notes):
        raise MidiError(f"{path}: no notes in it")
    opening = score.first_bars(bars + score.has_upbeat)
    if not len(opening.notes):
        raise MidiError(f"{path}: no notes in its first {bars} bars; keep more with --seed-bars")
    fitted, told = fit_score(opening, model.vocabulary)
    if len(opening.bars) < min(bars + score.has_upbeat, len(score.bars)):
        told.append(
            f"it ends with bar {len(opening.bars) - score.has_upbeat}, the last with a note"
        )
    if not len(fitted.notes):
        raise MidiError(f"{path}: no notes that the model has an instrument for")
    return Seed(fitted, int(fitted.bar_starts[-1]), tuple(told))


def continue_score(
    model: Model,
    seed: Seed,
    *,
    bars: int,
    choice: Choice = DEFAULT_CHOICE,
    samples: int = 1,
    random_seed: int = 0,
) -> list[Piece]:
    """Pieces that begin with the seed and end `bars` bars after it.

    Args:
        model: from `load`.
        seed: from `read_seed_notes`, `read_seed_midi` or `no_seed`.
        bars: how many bars to write after the seed's last; at least 1.
        choice: temperature and filters.
        samples: how many pieces, written side by side.
        random_seed: the same seed gives the same pieces.

    Raises:
        ValueError: no bars or no samples are asked for.
    """
    if bars < 1 or samples < 1:
        raise ValueError(f"bars and samples must be 1 or more, not {bars} and {samples}")
    vocabulary = model.vocabulary
    grammar = Grammar(vocabulary)
    prompt = encode(seed.score, vocabulary)[:-1]  # the music goes on where End stood
    state = grammar.start(samples)
    for token in prompt[1:]:
        grammar.advance(state, np.full(samples, token))
    grammar.wait(state, seed.end_step)

    limit = BarLimit(grammar, len(seed.score.bars) + bars)
    context_length = model.decoder.config.context_length
    steps = sample(
        model.decoder,
        [prompt] * samples,
        limit,
        state,
        generator=torch.Generator().manual_seed(random_seed),
        choice=choice,
        rebase=partial(rebase, context_length=context_length, vocabulary=vocabulary),
    )
    new = np.stack(list(steps), axis=1)  # (B, T)
    pieces = []
    for row in new:
        ids = np.concatenate([prompt, limit.ending(row)])
        pieces.append(Piece(decode(ids, vocabulary), seed.end_step))
    return pieces


def write_piece(piece: Piece, stem: str | Path) -> list[Path]:
    """Writes `stem`.mid, .wav and .png, each whole or not at all; gives their paths."""
    stem = Path(stem)
    midi, wav, picture = (stem.with_name(stem.name + end) for end in (".mid", ".wav", ".png"))
    write_midi(piece.score, midi)
    write_wav(piece.score, wav)
    write_piano_roll(piece.score, picture, seed_steps=piece.seed_steps)
    return [midi, wav, picture]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and leaves with exit code 2."""
        fail(f"{message} (--help lists the options)")


def fail(message: str) -> NoReturn:
    """Says what is wrong in one line and leaves with exit code 2."""
    print(f"{Path(sys.argv[0]).name}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def at_least_one(text: str) -> int:
    """An option's whole number from 1 up."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 up, not {text!r}")
    return number


def _random_seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^63 - 1, not {text!r}")
    return int(text)


def command_line() -> argparse.ArgumentParser:
    """The options, in the order in which --help tells them."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        *("--checkpoint", "-c"),
        default=DEFAULT_CHECKPOINT,
        help="the model.safetensors of a run (default: %(default)s)",
    )
    seeds = parser.add_argument_group("what to begin with (nothing: the model begins)")
    kinds = seeds.add_mutually_exclusive_group()
    kinds.add_argument("--seed-notes", metavar="TEXT", help='such as "C4:1 E4:.5 [C4 E4 G4]:2"')
    kinds.add_argument("--seed-midi", metavar="FILE", help="a MIDI file whose opening is kept")
    seeds.add_argument(
        *("--seed-bars", "-k"),
        type=at_least_one,
        default=2,
        help="how many bars of --seed-midi to keep, after an upbeat; or seconds, where the model "
        "counts those (default: %(default)s)",
    )
    music = parser.add_argument_group("what to write")
    music.add_argument(
        *("--bars", "-n"),
        type=at_least_one,
        default=8,
        help="bars, or seconds, to write after the seed (default: %(default)s)",
    )
    music.add_argument(
        "--num-samples", type=at_least_one, default=1, help="pieces (default: %(default)s)"
    )
    music.add_argument(
        "--seed",
        type=_random_seed,
        default=0,
        help="the same number, the same files (default: 0)",
    )
    chance = parser.add_argument_group("how bold to be")
    for option, kind, text in (
        ("temperature", float, "below 1 safer, above 1 wilder, 0 the likeliest note always"),
        ("top_p", float, "choose among the likeliest tokens that together reach this"),
        ("top_k", int, "choose among so many likeliest tokens"),
        ("min_p", float, "choose among tokens at least this likely beside the likeliest"),
    ):
        default = getattr(DEFAULT_CHOICE, option)
        shown = "" if default is None else " (default: %(default)s)"
        name = "--" + option.replace("_", "-")
        chance.add_argument(name, type=kind, default=default, help=text + shown)
    parser.add_argument(
        *("--out", "-o"),
        metavar="NAME",
        help="files are NAME.mid, .wav and .png (default: music/ beside the checkpoint)",
    )
    return parser


def _stems(arguments: argparse.Namespace) -> list[Path]:
    """The path of each sample's files, less its ending."""
    if arguments.out:
        out = Path(arguments.out)
        if out.name in ("", ".."):
            fail(f"--out {arguments.out}: a name for the files is needed, such as music/piece")
        stem = out.with_suffix("") if out.suffix in (".mid", ".wav", ".png") else out
    else:
        seed_name = Path(arguments.seed_midi).stem if arguments.seed_midi else "notes"
        name = seed_name if arguments.seed_midi or arguments.seed_notes else "nothing"
        stem = Path(arguments.checkpoint).parent / "music" / f"from-{name}"
    count = arguments.num_samples
    if count == 1:
        return [stem]
    return [stem.with_name(f"{stem.name}-{number}") for number in range(1, count + 1)]


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    arguments = command_line().parse_args(argv)
    names = [field.name for field in dataclasses.fields(Choice)]
    try:
        choice = Choice(**{name: getattr(arguments, name) for name in names})
    except ValueError as error:
        fail(f"--{str(error).replace('_', '-')}")
    stems = _stems(arguments)
    try:
        model = load(arguments.checkpoint)
        if arguments.seed_notes is not None:
            seed = read_seed_notes(model, arguments.seed_notes)
        elif arguments.seed_midi is not None:
            seed = read_seed_midi(model, arguments.seed_midi, arguments.seed_bars)
        else:
            seed = no_seed(model)
        if seed.told:
            print(f"the seed was fitted to the model: {'; '.join(seed.told)}")
        pieces = continue_score(
            model,
            seed,
            bars=arguments.bars,
            choice=choice,
            samples=arguments.num_samples,
            random_seed=arguments.seed,
        )
        for piece, stem in zip(pieces, stems, strict=True):
            midi, wav, picture = write_piece(piece, stem)
            score = piece.score
            print(
                f"{midi} ({len(score.bars)} bars, {len(score.notes)} notes, "
                f"{score.step_seconds(score.end_step):.0f} s), {wav.name}, {picture.name}"
            )
    except (BundleError, MidiError, SeedError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
