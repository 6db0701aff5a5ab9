"""Scores to token ids and back, whole arrays at a time.

Canonical scores and grammatical id sequences are one to one (see `data.tokens.vocabulary` for how
a piece is encoded, `data.tokens.grammar` for what is grammatical).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from data.canonical import canonical
from data.score import BAR, NOTE, Score
from data.tokens.cursor import read_windows
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError


def encode(score: Score, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Encode a piece: return (T,) ids, from Start to End.

    Raises:
        VocabularyError: the vocabulary has no token for something in the piece.
    """
    if score.grid != vocabulary.grid:
        raise VocabularyError(f"the piece is on {score.grid}, the vocabulary on {vocabulary.grid}")
    first = vocabulary.first
    notes, bars = score.notes, score.bars

    # Which optional tokens stand where: most only where something changes.
    meter = _index_of([*map(tuple, bars[["numerator", "denominator"]].tolist())], vocabulary)
    has_length = bars["length"] != vocabulary.whole_bars[meter]
    has_tempo = _is_new(score.tempo_bpm) & vocabulary.grid.has_meter
    has_position = _is_new(notes["onset"])
    extends = (notes["duration"] - 1) // vocabulary.longest_duration
    has_velocity = int(len(vocabulary.velocities) > 1)

    # Where each bar's and each note's first token stands: sums of the sizes of all before.
    starts = score.bar_starts
    bar_of_note = np.searchsorted(starts, notes["onset"], side="right") - 1
    bar_size = 1 + has_length + has_tempo
    note_size = has_position + 1 + extends + 1 + has_velocity
    bar_ends, note_ends = np.cumsum(bar_size), np.cumsum(note_size)
    notes_before_bar = np.searchsorted(notes["onset"], starts[:-1])
    bar_at = 1 + bar_ends - bar_size + np.append(0, note_ends)[notes_before_bar]
    note_at = 1 + note_ends - note_size + bar_ends[bar_of_note]

    # Extend is what is left when everything else is in its place.
    ids = np.full(2 + int(bar_size.sum() + note_size.sum()), first(Kind.EXTEND), dtype=np.int64)
    ids[0], ids[-1] = first(Kind.START), first(Kind.END)
    ids[bar_at] = first(Kind.BAR) + meter
    ids[(bar_at + 1)[has_length]] = first(Kind.LENGTH) + bars["length"][has_length] - 1
    tempo = _index("tempo", score.tempo_bpm[has_tempo], vocabulary.tempos)
    ids[(bar_at + 1 + has_length)[has_tempo]] = first(Kind.TEMPO) + tempo
    position = notes["onset"] - starts[bar_of_note]
    ids[note_at[has_position]] = first(Kind.POSITION) + position[has_position]
    program = _index("program", notes["program"], vocabulary.programs)
    pitch = _index(
        "pitch", notes["pitch"], range(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
    )
    ids[note_at + has_position] = first(Kind.NOTE) + program * vocabulary.pitch_count + pitch
    duration = notes["duration"] - 1 - extends * vocabulary.longest_duration
    duration_at = note_at + has_position + 1 + extends
    ids[duration_at] = first(Kind.DURATION) + duration
    velocity = _index("velocity", notes["velocity"], vocabulary.velocities)
    if has_velocity:
        ids[duration_at + 1] = first(Kind.VELOCITY) + velocity
    return ids


def decode(ids: ArrayLike, vocabulary: Vocabulary) -> Score:
    """Return the piece that ids from Start to End encode: undo `encode`.

    Raises:
        VocabularyError: the ids encode no piece.
    """
    ids = np.asarray(ids, dtype=np.int64)
    if not len(ids) or ids.min() < 0 or ids.max() >= vocabulary.size:
        raise VocabularyError("not a piece: no ids, or ids outside the vocabulary")
    try:
        score = canonical(*decode_parts(ids, vocabulary), vocabulary.grid)[0]
        is_encoding = np.array_equal(encode(score, vocabulary), ids)
    except (ValueError, IndexError):  # the arrays of a broken sequence do not fit together
        is_encoding = False
    if not is_encoding:
        raise VocabularyError("not a piece: the ids break the grammar")
    return score


def decode_parts(
    ids: NDArray[np.int64], vocabulary: Vocabulary
) -> tuple[NDArray[np.void], NDArray[np.void], NDArray[np.int32]]:
    """Return the notes, bars and tempi that grammatical ids encode, of pieces end to end.

    Onsets are counted from the first piece's beginning. Other ids give noise, a ValueError or an
    IndexError.
    """
    read = read_windows(ids[None], vocabulary)
    kind, value = read.kind[0], read.value[0]
    is_bar, note_at = kind == Kind.BAR, np.flatnonzero(kind == Kind.NOTE)
    meters = np.array(vocabulary.meters)[value[is_bar]].reshape(-1, 2)
    bars = np.empty(len(meters), dtype=BAR)
    bars["numerator"], bars["denominator"] = meters.T
    bars["length"] = read.bar_length[0, is_bar]
    tempo = np.full(len(bars), vocabulary.tempos[0])
    if vocabulary.grid.has_meter:
        numbers = bar_tempos(ids, vocabulary) - vocabulary.first(Kind.TEMPO)
        tempo = np.array(vocabulary.tempos)[numbers]

    program, pitch = np.divmod(value[note_at], vocabulary.pitch_count)
    notes = np.empty(len(note_at), dtype=NOTE)
    notes["onset"] = read.now[0, note_at]
    notes["duration"] = read.note_end[0, note_at] - read.now[0, note_at]
    notes["program"] = np.array(vocabulary.programs)[program]
    notes["pitch"] = pitch + vocabulary.lowest_pitch
    notes["velocity"] = vocabulary.velocities[0]
    if len(vocabulary.velocities) > 1:
        notes["velocity"] = np.array(vocabulary.velocities)[value[kind == Kind.VELOCITY]]
    return notes, bars, tempo.astype(np.int32)


def bar_indices(ids: NDArray[np.int64], vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Return the places of the Bar tokens, at which windows may begin."""
    return np.flatnonzero(vocabulary.kind_of[ids] == Kind.BAR)


def bar_tempos(ids: NDArray[np.int64], vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Return (M,), the id of the Tempo in force in each bar; Pad on a grid without meter."""
    bars = bar_indices(ids, vocabulary)
    if not vocabulary.grid.has_meter:
        return np.zeros(len(bars), dtype=np.int64)
    tempos = np.flatnonzero(vocabulary.kind_of[ids] == Kind.TEMPO)
    # the latest Tempo before the next bar
    latest = np.searchsorted(tempos, np.append(bars, len(ids))[1:]) - 1
    return ids[tempos[latest]]


def _is_new(values: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it; the first does."""
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = values[1:] != values[:-1]
    return is_new


def _index_of(meters: list[tuple[int, int]], vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Return (M,), the number of each meter in the vocabulary."""
    numbers = {meter: number for number, meter in enumerate(vocabulary.meters)}
    missing = set(meters) - set(numbers)
    if missing:
        named = ", ".join(f"{n}/{d}" for n, d in sorted(missing))
        raise VocabularyError(f"the vocabulary has no meter {named}")
    return np.array([numbers[meter] for meter in meters], dtype=np.int64)


def _index(
    name: str, values: NDArray[np.integer], known: tuple[int, ...] | range
) -> NDArray[np.int64]:
    """Return the number of each value among the known ones, which rise."""
    rising = np.asarray(known)
    index = np.minimum(np.searchsorted(rising, values), len(rising) - 1)
    is_missing = rising[index] != values
    if is_missing.any():
        named = ", ".join(map(str, np.unique(values[is_missing])[:5].tolist()))
        raise VocabularyError(f"the vocabulary has no {name} {named}")
    return index.astype(np.int64)
