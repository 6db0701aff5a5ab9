"""What generate.py does with its checked options: load a model, read a seed, write the files."""

from __future__ import annotations

import argparse
import dataclasses
import textwrap
from pathlib import Path

import numpy as np

from common.cli import fail, say
from common.files import check_writable
from common.text import counted
from data.corpus.corpus import CorpusError
from data.midi.quantize import MidiError
from data.tokens.adapt import called
from data.tokens.vocabulary import Vocabulary
from generation import sequences
from generation.compose import accompany, candidates, compose, write_piece
from generation.constraints import ConstraintError, Constraints
from generation.defaults import DEFAULT_SEED_BARS
from generation.model import Model, load
from generation.note_text import SeedError
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
from generation.writing import Piece, silent_programs
from model.config import SamplingOptions
from model.serialization import ModelFileError

SHOWN = 100  # characters of a sequence that are printed


def run(options: argparse.Namespace, stems: list[Path]) -> None:
    """Write pieces to files, or fail with a one-line message.

    Args:
        options: the options of generate.py. `length` and `constraints` are as `compose` takes them;
            `sampling` holds only those options of `SamplingOptions` that were given.
        stems: for each piece, the path of its files without the ending.
    """
    constraints = options.constraints
    try:
        model = load(options.checkpoint)
        seed = _seed(model, options, constraints)
        many = options.best_of or candidates(model)
        request = Request(
            seed,
            options.length,
            constraints,
            sampling=dataclasses.replace(model.sampling, **options.sampling),
            samples=options.num_samples,
            random_seed=options.seed,
            candidates=many,
        )
        pieces = compose(model, request, progress=True)
        if seed.changes:
            say(f"about what was given: {'; '.join(seed.changes)}")
        for clause in request.strange_heights(model) + request.strange_meters(model):
            say(clause)
        if options.length is not None:
            _tell_of_voices(seed, model.vocabulary, constraints)
        _write(options, model, pieces, stems)
    except (ModelFileError, MidiError, SeedError, ConstraintError, CorpusError, OSError) as error:
        fail(str(error))


def run_ids(options: argparse.Namespace) -> None:
    """Write sequences that are not music to a file, or fail with a one-line message."""
    path = Path(options.out)
    try:
        check_writable(path)
        model = sequences.load(options.checkpoint)
        seed = model.vocabulary.parse(options.seed_ids or "").tolist()
        rows = sequences.write(
            *(model, seed),
            count=options.num_samples,
            length=options.ids,
            sampling=SamplingOptions(**options.sampling),
            random_seed=options.seed,
        )
        sequences.save(rows, path)
    except (ModelFileError, ValueError, OSError) as error:
        fail(str(error))
    size = f"{counted(len(rows), 'sequence')}, {counted(sum(map(len, rows)), 'id')}"
    say(f"{path} ({size}), of which the first is")
    say(textwrap.shorten(model.vocabulary.words(rows[0]), SHOWN, placeholder=" ..."))


def _seed(model: Model, options: argparse.Namespace, constraints: Constraints) -> Seed:
    """Return the seed that the options ask for."""
    vocabulary, tune, voices = model.vocabulary, model.style.tune, options.voices or ()
    if options.rewrite:
        bars = options.bars_to_rewrite
        return rewrite_from_midi(options.rewrite, vocabulary, bars=bars, voices=voices, tune=tune)
    if options.harmonize:
        return given_from_midi(options.harmonize, vocabulary, voices=voices, tune=tune)
    if options.seed_midi is not None:
        seed = seed_from_midi(
            options.seed_midi,
            vocabulary,
            bars=options.seed_bars or DEFAULT_SEED_BARS,
            from_bar=options.from_bar or 1,
            tune=tune,
        )
    elif options.seed_notes is not None:
        seed = seed_from_notes(options.seed_notes, vocabulary, constraints, style=model.style)
        if options.harmonize is not None:
            harmonized = voices_of(seed.score, vocabulary, voices, tune=tune)
            return dataclasses.replace(harmonized, changes=seed.changes + harmonized.changes)
    else:
        return no_seed(vocabulary)
    if voices:
        seed = seed.played_by(voices[0], vocabulary)
    return seed if options.alone else accompany(model, seed)


def _tell_of_voices(seed: Seed, vocabulary: Vocabulary, constraints: Constraints) -> None:
    """Print how many voices, or which named parts, may join the seed before it ends, if any."""
    own = set(seed.score.notes["program"].tolist())
    others = np.array(vocabulary.programs)[seed.is_open.any(axis=1)].tolist()
    playing = set(constraints.playing(vocabulary))
    parts = sorted(playing.intersection(others) - own)
    joining = len(parts)
    if constraints.max_polyphony is not None:
        joining = min(joining, constraints.max_polyphony - len(own))
    if joining > 0:
        who = counted(joining, "voice")
        if vocabulary.grid.parts and joining == len(parts):
            who = " and ".join(called(part, vocabulary) for part in parts)
        who += " joins" if joining == 1 else " join"
        say(f"{who} the seed; add --alone to leave the seed as it is")


def _write(
    options: argparse.Namespace, model: Model, pieces: list[Piece], stems: list[Path]
) -> None:
    """Write the files of the best pieces, one for each stem, and print a line about each."""
    for piece, stem in zip(pieces, stems, strict=False):
        written = piece.without_given(model.vocabulary) if options.no_seed_in_output else piece
        midi, *others = write_piece(written, stem, options.key)
        score = written.score
        say(
            f"{midi} ({counted(len(score.bars), 'bar')}, {counted(len(score.notes), 'note')}, "
            f"{score.step_seconds(score.end_step):.0f} s), {', '.join(p.name for p in others)}"
        )
        if silent := silent_programs(score, model.vocabulary, options.constraints):
            numbers = " and ".join(called(n, model.vocabulary) for n in silent)
            plays = "plays" if len(silent) == 1 else "play"
            say(
                f"{numbers} {plays} no note in {midi.name}: --programs allows instruments but does "
                "not force them; --best-of prefers pieces in which all of them play"
            )
