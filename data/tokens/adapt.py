"""Adapts a piece to a vocabulary with the least change, and says what was changed.

A model can only continue what it has tokens for, and people's own music may well have other things
in it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.arrays import Bools, Ids, Records
from common.text import counted
from data.canonical import canonical
from data.instrument_names import instrument_name, spelling
from data.score import BAR, DRUMS, UNNAMED, Score
from data.stand_ins import stand_ins
from data.tokens.vocabulary import Vocabulary, VocabularyError


def adapt_score(
    score: Score, vocabulary: Vocabulary, tune: int | None = None
) -> tuple[Score, list[str]]:
    """Return the nearest piece that the vocabulary can encode, and a clause for each change.

    Each unknown instrument becomes a known one of the same family, or else any: high voices take
    high ones, the highest the one that plays tunes (`Style.tune`) if that is given, and a bass
    takes the lowest, each a different one while there are enough. Drums are left out if the
    vocabulary has none. Pitches move by octaves; those of a single voice move together, if they all
    fit then. Velocities and tempi go to the nearest. A bar of an unknown meter becomes one or
    several bars of known meters, shortened if need be.

    Raises:
        VocabularyError: the piece is on another grid.
    """
    if score.grid != vocabulary.grid:
        raise VocabularyError(f"the piece is on {score.grid}, the vocabulary on {vocabulary.grid}")
    changes: list[str] = []
    notes = _adapt_programs(score.notes, vocabulary, tune, changes)
    notes = _adapt_pitches(notes, vocabulary, changes)
    velocity = _nearest(vocabulary.velocities, notes["velocity"])
    if np.any(velocity != notes["velocity"]):
        changes.append("loudness went to the nearest the model knows")
    notes["velocity"] = velocity
    tempo = _nearest(vocabulary.tempos, score.tempo_bpm)
    if np.any(tempo != score.tempo_bpm):
        is_lost = len(vocabulary.tempos) == 1 < len(np.unique(score.tempo_bpm))
        nearest = "the tempo went to the nearest the model knows"
        changes.append("its changes of tempo were left out" if is_lost else nearest)
    bars, tempo = _adapt_bars(score, tempo, vocabulary, changes)
    adapted, merging = canonical(notes, bars, tempo, score.grid)
    for count, what in ((merging.merged, "fell together"), (merging.cut, "cut short")):
        if count:
            changes.append(f"{counted(count, 'note')} {what}")
    return adapted, changes


def without_unknown(score: Score, vocabulary: Vocabulary) -> tuple[Score, Bools, list[str]]:
    """Return the part of a piece that the vocabulary can encode: its notes that have tokens.

    Returns:
        The piece as `adapt_score` returns it; (N,) which notes of `score` it has, in the same
        order; and a clause for each kind of change to bars, tempi and loudness.

    Raises:
        VocabularyError: the piece is on another grid.
    """
    notes, pitch = score.notes, score.notes["pitch"]
    is_known = np.isin(notes["program"], vocabulary.programs)
    is_known &= (pitch >= vocabulary.lowest_pitch) & (pitch <= vocabulary.highest_pitch)
    adapted, changes = adapt_score(replace(score, notes=notes[is_known]), vocabulary)
    return adapted, is_known, changes


def _adapt_programs(
    notes: Records, vocabulary: Vocabulary, tune: int | None, changes: list[str]
) -> Records:
    pitched = [program for program in vocabulary.programs if program != DRUMS]
    is_drum = notes["program"] == DRUMS
    playable = np.where(is_drum, DRUMS in vocabulary.programs, bool(pitched))
    if not playable.all():
        silent = np.unique(notes["program"][~playable]).tolist()
        names = ", ".join(instrument_name(program, vocabulary.grid) for program in silent)
        changes.append(f"{counted(int((~playable).sum()), 'note')} of {names} left out")
    notes = notes[playable].copy()
    old = notes["program"].copy()
    means = {p: float(notes["pitch"][old == p].mean()) for p in np.unique(old).tolist()}
    means.pop(DRUMS, None)
    play = {p: part for p in means if (part := _part_called(p, vocabulary)) is not None}
    others = {program: mean for program, mean in means.items() if program not in play}
    play |= stand_ins(others, pitched, vocabulary.grid.general_midi, tune)
    for program, known in sorted(play.items()):
        notes["program"][old == program] = known
        changes.append(became(program, known, vocabulary))
    return notes


def _part_called(program: int, vocabulary: Vocabulary) -> int | None:
    """Return the part whose name is that of an instrument without a part, such as PIANO."""
    grid = vocabulary.grid
    if not grid.parts or program < UNNAMED or program in vocabulary.programs:
        return None
    words = spelling(instrument_name(program, grid)).split()
    named = [
        number
        for number, part in enumerate(grid.parts)
        if part.program == grid.general_midi(program) and spelling(part.name) in words
    ]
    return named[0] if named and named[0] in vocabulary.programs else None


def called(program: int, vocabulary: Vocabulary) -> str:
    """Return what people call a player: a number, or a name if parts have names."""
    grid = vocabulary.grid
    return instrument_name(program, grid) if grid.parts else str(program)


def became(program: int, known: int, vocabulary: Vocabulary) -> str:
    """Return a clause which says that another program plays the notes of a program."""
    names = (instrument_name(each, vocabulary.grid) for each in (program, known))
    return " became ".join(names)


def _adapt_pitches(notes: Records, vocabulary: Vocabulary, changes: list[str]) -> Records:
    low, high = vocabulary.lowest_pitch, vocabulary.highest_pitch
    is_unknown = notes["program"] == DRUMS  # since another octave of a drum is another drum
    is_unknown &= (notes["pitch"] < low) | (notes["pitch"] > high)
    if is_unknown.any():
        lost = counted(int(is_unknown.sum()), "note")
        changes.append(f"{lost} of drums out of range left out")
    notes = notes[~is_unknown]
    pitch = notes["pitch"].astype(np.int64)
    up = -(-np.maximum(low - pitch, 0) // 12)  # octaves, rounded up
    down = -(-np.maximum(pitch - high, 0) // 12)
    moved = np.clip(pitch + 12 * (up - down), low, high)  # in a range below an octave, this clips
    if len(np.unique(notes["program"])) == 1:  # the line of a single voice is kept, if it fits
        for way in (12 * up.max(), -12 * down.max()):
            if low <= pitch.min() + way and pitch.max() + way <= high:
                moved = pitch + way
    if np.any(moved != pitch):
        count = counted(int((moved != pitch).sum()), "note")
        changes.append(f"{count} moved by octaves into the model's range")
    notes["pitch"] = moved
    return notes


def _adapt_bars(
    score: Score, tempo: NDArray[np.int32], vocabulary: Vocabulary, changes: list[str]
) -> tuple[Records, NDArray[np.int32]]:
    """Return bars of known meters that cover the same time, and their tempi."""
    rows, tempi = list[tuple[int, int, int]](), list[int]()
    for (numerator, denominator, length), bpm in zip(
        score.bars.tolist(), tempo.tolist(), strict=True
    ):
        meter = (numerator, denominator)
        if not rows and meter not in vocabulary.meters and len(score.bars) > 1:
            *second, _ = score.bars[1].tolist()  # an upbeat that has a meter of its own
            if length < score.grid.bar_steps(*second):
                meter = (second[0], second[1])
        while meter not in vocabulary.meters and length > vocabulary.longest_bar:
            even, rest = divmod(length, -(-length // vocabulary.longest_bar))
            is_known = not rest and even in vocabulary.whole_bars
            part = even if is_known else vocabulary.longest_bar  # 4/2 is 2/2 2/2, not 3/2 2/4
            rows.append(_shortest_bar(part, vocabulary))
            tempi.append(bpm)
            length -= part
        known = meter in vocabulary.meters
        rows.append((*meter, length) if known else _shortest_bar(length, vocabulary))
        tempi.append(bpm)
    bars = np.array(rows, dtype=BAR)
    if len(bars) != len(score.bars) or np.any(bars != score.bars):
        changes.append("bars of unknown meters became bars of known ones")
    return bars, np.array(tempi, dtype=np.int32)


def _shortest_bar(length: int, vocabulary: Vocabulary) -> tuple[int, int, int]:
    """Return a bar of `length` steps, in the shortest known meter that is long enough."""
    whole = vocabulary.grid.bar_steps
    fitting = [meter for meter in vocabulary.meters if whole(*meter) >= length]
    return (*min(fitting, key=lambda meter: (whole(*meter), meter[1])), length)


def _nearest(known: tuple[int, ...], values: Ids) -> NDArray[np.int32]:
    """Return the nearest known level to each value; of two equally near, the lower."""
    levels = np.array(known, dtype=np.int32)
    distance = np.abs(levels[:, None] - np.asarray(values)[None, :])
    return np.asarray(levels[np.argmin(distance, axis=0)])
