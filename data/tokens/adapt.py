"""Adapts a piece to a vocabulary by the least change, and says what was changed.

A model can only continue what it has tokens for; a user's own music may well hold others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from data.canonical import canonical
from data.instrument_names import instrument_name
from data.score import BAR, DRUMS, FAMILY_PROGRAMS, Score
from data.tokens.vocabulary import Vocabulary, VocabularyError

_C3 = 48
_BASSES = 4  # the family of bass guitars
# Of General MIDI's instruments that play in one register; all others are in the middle.
_MIDDLE_PITCHES = {
    **{8: 84, 9: 91, 10: 84, 11: 72, 13: 79, 14: 72},  # celesta to tubular bells
    **{40: 76, 41: 67, 42: 54, 43: 41, 47: 45},  # violin, viola, cello, contrabass; timpani
    **{56: 70, 57: 54, 58: 41, 60: 57},  # trumpet, trombone, tuba, horn
    **{64: 71, 65: 63, 66: 58, 67: 51},  # saxophones
    **{68: 74, 69: 67, 70: 51, 71: 66},  # oboe, English horn, bassoon, clarinet
    **{72: 86, 73: 79},  # piccolo, flute
}


def adapt_score(score: Score, vocabulary: Vocabulary) -> tuple[Score, list[str]]:
    """Return the nearest piece that the vocabulary can encode, and a clause for each change.

    Instruments become ones of the same family in the vocabulary, or else of any: high voices take
    the high ones, a bass the lowest, each its own while there are enough. Drums are left out where
    it has none; pitches move by octaves; velocities and tempi go to the nearest; a bar of a meter
    that is not known becomes a (shortened) bar of one that is, or several.

    Raises:
        VocabularyError: the piece is on another grid.
    """
    if score.grid != vocabulary.grid:
        raise VocabularyError(f"the piece is on {score.grid}, the vocabulary on {vocabulary.grid}")
    changes: list[str] = []
    notes = _adapt_programs(score.notes, vocabulary, changes)
    notes = _adapt_pitches(notes, vocabulary, changes)
    velocity = _nearest(vocabulary.velocities, notes["velocity"])
    if np.any(velocity != notes["velocity"]):
        changes.append("loudness went to the nearest the model knows")
    notes["velocity"] = velocity
    tempo = _nearest(vocabulary.tempos, score.tempo_bpm)
    if np.any(tempo != score.tempo_bpm):
        changes.append("the tempo went to the nearest the model knows")
    bars, tempo = _adapt_bars(score, tempo, vocabulary, changes)
    adapted, merging = canonical(notes, bars, tempo, score.grid)
    if merging.merged or merging.cut:
        changes.append(f"{merging.merged} notes fell together and {merging.cut} were cut short")
    return adapted, changes


def without_unknown(
    score: Score, vocabulary: Vocabulary
) -> tuple[Score, NDArray[np.bool_], list[str]]:
    """Return what the vocabulary can represent of a piece: its notes that have a token.

    Returns:
        The piece as `adapt_score` gives it; (N,) which of `score`'s notes those of it are, in the
        same order; and a clause for each kind of change to bars, tempi and loudness.

    Raises:
        VocabularyError: the piece is on another grid.
    """
    notes, pitch = score.notes, score.notes["pitch"]
    is_known = np.isin(notes["program"], vocabulary.programs)
    is_known &= (pitch >= vocabulary.lowest_pitch) & (pitch <= vocabulary.highest_pitch)
    adapted, changes = adapt_score(replace(score, notes=notes[is_known]), vocabulary)
    return adapted, is_known, changes


def _adapt_programs(
    notes: NDArray[np.void], vocabulary: Vocabulary, changes: list[str]
) -> NDArray[np.void]:
    pitched = [program for program in vocabulary.programs if program != DRUMS]
    is_drum = notes["program"] == DRUMS
    playable = np.where(is_drum, DRUMS in vocabulary.programs, bool(pitched))
    if not playable.all():
        silent = np.unique(notes["program"][~playable]).tolist()
        names = ", ".join(instrument_name(program, vocabulary.grid) for program in silent)
        changes.append(f"{int((~playable).sum())} notes of {names} were left out")
    notes = notes[playable].copy()
    programs = np.unique(notes["program"]).tolist()
    means = {p: float(notes["pitch"][notes["program"] == p].mean()) for p in programs}
    old = notes["program"].copy()
    for program, known in sorted(_instruments(means, vocabulary, pitched).items()):
        notes["program"][old == program] = known
        changes.append(became(program, known, vocabulary))
    return notes


def called(program: int, vocabulary: Vocabulary) -> str:
    """Return what people call who plays: a number, or where parts have names a name."""
    grid = vocabulary.grid
    return instrument_name(program, grid) if grid.parts else str(program)


def became(program: int, known: int, vocabulary: Vocabulary) -> str:
    """Say that another plays the notes of a program."""
    names = (instrument_name(each, vocabulary.grid) for each in (program, known))
    return " became ".join(names)


def _instruments(
    mean_pitches: dict[int, float], vocabulary: Vocabulary, pitched: Sequence[int]
) -> dict[int, int]:
    """Return what each unknown program of a piece becomes.

    Args:
        mean_pitches: of the notes of each program of the piece.
        vocabulary: of the model.
        pitched: its programs that are not drums.
    """
    sound = vocabulary.grid.general_midi
    taken = {program for program in mean_pitches if program in vocabulary.programs}
    groups: dict[tuple[int, ...], list[int]] = {}  # unknown programs by what they may become
    for program in mean_pitches:
        if program not in taken:
            its = sound(program) // FAMILY_PROGRAMS
            family = [p for p in pitched if sound(p) // FAMILY_PROGRAMS == its]
            groups.setdefault(tuple(family or pitched), []).append(program)
    became: dict[int, int] = {}
    for candidates, unknown in sorted(groups.items()):
        free = [program for program in candidates if program not in taken] or candidates
        high_to_low = sorted(free, key=lambda program: (-_middle_pitch(sound(program)), program))
        voices = sorted(unknown, key=lambda program: (-mean_pitches[program], program))
        is_bass = [_is_bass(sound(p), mean_pitches[p], len(voices)) for p in voices]
        for place, program in enumerate(voices):
            became[program] = high_to_low[_rank_in(len(high_to_low), place, is_bass)]
        taken |= set(became.values())
    return became


def _is_bass(program: int, mean_pitch: float, voices: int) -> bool:
    """Return whether a voice is a bass: by its instrument, or below C3, or C4 beside others."""
    return _middle_pitch(program) < _C3 or mean_pitch < (_C3 if voices == 1 else _C3 + 12)


def _rank_in(instruments: int, place: int, is_bass: list[bool]) -> int:
    """Return which instrument a voice takes; both are counted from the highest, from 0.

    Where instruments are left over, voices take them from the top down, but from the first bass on
    the lowest. Where they are too few, voices next to each other share one.

    Args:
        instruments: how many there are.
        place: of the voice.
        is_bass: of each voice.
    """
    voices = len(is_bass)
    if voices > instruments:
        return (2 * place * (instruments - 1) + voices - 1) // (2 * (voices - 1))
    return place + instruments - voices if any(is_bass[: place + 1]) else place


def _middle_pitch(program: int) -> int:
    """Return a pitch about the middle of an instrument's range; only their order matters."""
    if program // FAMILY_PROGRAMS == _BASSES:
        return 40
    return _MIDDLE_PITCHES.get(program, 64)


def _adapt_pitches(
    notes: NDArray[np.void], vocabulary: Vocabulary, changes: list[str]
) -> NDArray[np.void]:
    low, high = vocabulary.lowest_pitch, vocabulary.highest_pitch
    pitch = notes["pitch"].astype(np.int64)
    up = -(-np.maximum(low - pitch, 0) // 12)  # octaves, rounded up
    down = -(-np.maximum(pitch - high, 0) // 12)
    moved = np.clip(pitch + 12 * (up - down), low, high)  # a range below an octave can only clip
    if np.any(moved != pitch):
        changes.append(
            f"{int((moved != pitch).sum())} notes moved by octaves into the model's range"
        )
    notes["pitch"] = moved
    return notes


def _adapt_bars(
    score: Score, tempo: NDArray[np.int32], vocabulary: Vocabulary, changes: list[str]
) -> tuple[NDArray[np.void], NDArray[np.int32]]:
    """Return bars of known meters that cover the same time, and their tempi."""
    rows, tempi = [], []
    for (numerator, denominator, length), bpm in zip(
        score.bars.tolist(), tempo.tolist(), strict=True
    ):
        meter = (numerator, denominator)
        while meter not in vocabulary.meters and length > vocabulary.longest_bar:
            rows.append(_shortest_bar(vocabulary.longest_bar, vocabulary))
            tempi.append(bpm)
            length -= vocabulary.longest_bar
        known = meter in vocabulary.meters
        rows.append((*meter, length) if known else _shortest_bar(length, vocabulary))
        tempi.append(bpm)
    bars = np.array(rows, dtype=BAR)
    if len(bars) != len(score.bars) or np.any(bars != score.bars):
        changes.append("bars of unknown meters became bars of known ones")
    return bars, np.array(tempi, dtype=np.int32)


def _shortest_bar(length: int, vocabulary: Vocabulary) -> tuple[int, int, int]:
    """Return a bar of `length` steps in the known meter that is least longer."""
    whole = vocabulary.grid.bar_steps
    fitting = [meter for meter in vocabulary.meters if whole(*meter) >= length]
    return (*min(fitting, key=lambda meter: (whole(*meter), meter[1])), length)


def _nearest(known: tuple[int, ...], values: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the nearest of the known levels to each value; of two as near, the lower."""
    levels = np.array(known, dtype=np.int32)
    distance = np.abs(levels[:, None] - np.asarray(values)[None, :])
    return np.asarray(levels[np.argmin(distance, axis=0)])
