"""What a piece begins with, or a voice that it keeps, in a vocabulary that a model speaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pretty_midi

from data.midi.io import from_pretty_midi, read_midi
from data.midi.quantize import MidiError
from data.score import BAR, DRUMS, NOTE, Grid, Score, canonical
from data.tokens.adapt import adapt_score
from data.tokens.vocabulary import Vocabulary
from generation.constraints import UNCONSTRAINED, Constraints
from generation.note_text import SeedError, parse_seed_notes

Midi: TypeAlias = str | Path | pretty_midi.PrettyMIDI  # a path, or what is in the file


@dataclass(frozen=True)
class Seed:
    """A beginning that a vocabulary can spell.

    Attributes:
        score: its notes; none: begin from nothing.
        end_step: the new music begins here, in the last bar of the seed or at its end.
        told: a clause for each thing that was changed to bring it into the vocabulary.
    """

    score: Score
    end_step: int
    told: tuple[str, ...] = ()

    def at_tempo(self, tempo_bpm: int) -> Seed:
        """The same at another tempo, one that the vocabulary has."""
        tempi = np.full_like(self.score.tempo_bpm, tempo_bpm)
        return replace(self, score=replace(self.score, tempo_bpm=tempi))


def no_seed(vocabulary: Vocabulary) -> Seed:
    """Nothing to begin with: the model begins."""
    return Seed(canonical(np.empty(0, NOTE), np.empty(0, BAR), [], vocabulary.grid)[0], 0)


def seed_from_notes(
    text: str, vocabulary: Vocabulary, constraints: Constraints = UNCONSTRAINED
) -> Seed:
    """A seed from text such as `C4:1 E4:.5 [C4 E4 G4]:2` (see generation/note_text.py).

    Args:
        text: the notes.
        vocabulary: what it is brought into.
        constraints: of which programs (of its voices, in their order), time signature and tempo
            count
            for the seed too; else these are the vocabulary's without drums, 4/4, and its middle
            tempo, or 120 where it has none. Loudness is its middle one.

    Raises:
        SeedError: the text cannot be read.
        ConstraintError: the vocabulary lacks what is asked for.
    """
    vocabulary = constraints.retimed(vocabulary)
    tempo = constraints.tempo_number(vocabulary)
    constraints.meter_number(vocabulary)
    tempos = vocabulary.tempos if vocabulary.tells_tempo else (120,)
    score = parse_seed_notes(
        text,
        vocabulary.grid,
        programs=_pitched(constraints.programs or vocabulary.programs) or [0],
        tempo_bpm=tempos[len(tempos) // 2 if tempo is None else tempo],
        meter=constraints.time_signature or (4, 4),
        velocity=vocabulary.velocities[len(vocabulary.velocities) // 2],
    )
    score, told = adapt_score(score, vocabulary)
    if not len(score.notes):
        raise SeedError("the seed holds no notes that the model has an instrument for")
    ends = score.notes["onset"].astype(np.int64) + score.notes["duration"]
    return Seed(score, min(int(ends.max()), int(score.bar_starts[-1])), tuple(told))


def seed_from_midi(
    midi: Midi, vocabulary: Vocabulary, *, bars: int | None = None, from_bar: int = 1
) -> Seed:
    """Some bars of a MIDI file, or of a pretty_midi object, as a seed.

    Args:
        midi: the path of a file, or the object.
        vocabulary: what it is brought into.
        bars: how many; an upbeat before bar 1 comes on top. None: all.
        from_bar: the first of them, from 1; where that is bar 1, its upbeat comes with it.

    Raises:
        FileNotFoundError, MidiError: there is no such file, no such bar, or no music in it.
    """
    score, name = _read(midi, vocabulary.grid)
    upbeat = int(score.has_upbeat)
    bars = len(score.bars) if bars is None else bars
    last = len(score.bars) - upbeat  # the number of the last bar
    if from_bar > max(last, 1):
        raise MidiError(f"{name}: no bar {from_bar}, its last with a note is {last}")
    begin = from_bar - 1 + upbeat if from_bar > 1 else 0
    part = score.excerpt(begin, from_bar - 1 + upbeat + bars)
    if not len(part.notes):
        where = f"its first {bars} bars" if from_bar == 1 else f"{bars} bars from bar {from_bar} on"
        raise MidiError(f"{name}: no notes in {where}; keep more with --seed-bars")
    fitted, told = adapt_score(part, vocabulary)
    end = begin + len(part.bars) - upbeat  # the number of its last bar
    if end < min(from_bar + bars - 1, last):
        told.append(f"it ends with bar {end}, the last with a note")
    if not len(fitted.notes):
        raise MidiError(f"{name}: no notes that the model has an instrument for")
    return Seed(fitted, int(fitted.bar_starts[-1]), tuple(told))


def given_from_midi(midi: Midi, vocabulary: Vocabulary, *, voice: int = 1) -> Seed:
    """One voice of a MIDI file, or of a pretty_midi object, as a whole (see `voice_of`).

    Raises:
        FileNotFoundError, MidiError: there is no such file, no such voice, or no music in it.
    """
    score, name = _read(midi, vocabulary.grid)
    try:
        return voice_of(score, vocabulary, voice)
    except SeedError as error:
        raise MidiError(f"{name}: {error}") from None


def voice_of(score: Score, vocabulary: Vocabulary, voice: int = 1) -> Seed:
    """One voice of a piece, as an instrument of the vocabulary, from the piece's beginning on.

    Args:
        score: of one voice, which is taken whatever its instrument; or of several: of these the
            one with the vocabulary's own instrument, or else the `voice`-th.
        vocabulary: what it is brought into.
        voice: which of the vocabulary's instruments it is, from 1; drums do not count.

    Raises:
        SeedError: the vocabulary, or the piece, has no such voice.
    """
    programs = _pitched(vocabulary.programs)
    if voice > len(programs):
        raise SeedError(f"the model has {len(programs)} voices, there is no voice {voice}")
    program = programs[voice - 1]
    mine = _pitched(np.unique(score.notes["program"]).tolist())
    if not mine:
        raise SeedError("there is no voice in it that has pitches")
    if len(mine) > 1 and program not in mine and voice > len(mine):
        raise SeedError(f"there are {len(mine)} voices in it, no voice {voice}")
    kept = program if program in mine else mine[voice - 1 if len(mine) > 1 else 0]
    notes = score.notes[score.notes["program"] == kept].copy()
    notes["program"] = program
    tune = canonical(notes, score.bars, score.tempo_bpm, score.grid)[0]
    fitted, told = adapt_score(tune, vocabulary)
    return Seed(fitted, fitted.end_step, tuple(told))


def _pitched(programs: Sequence[int]) -> list[int]:
    """Without drums."""
    return [program for program in programs if program != DRUMS]


def _read(midi: Midi, grid: Grid) -> tuple[Score, str]:
    """A Score with notes in it, and what to call where it comes from."""
    if isinstance(midi, pretty_midi.PrettyMIDI):
        score, name = from_pretty_midi(midi, grid)[0], "the pretty_midi object"
    else:
        score, name = read_midi(midi, grid)[0], str(midi)
    if not len(score.notes):
        raise MidiError(f"{name}: no notes in it")
    return score, name
