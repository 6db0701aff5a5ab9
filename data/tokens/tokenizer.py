"""Scores to token ids and back: a canonical Score has one encoding, and each decodes to one Score.

`data/tokens/vocabulary.py` says what the tokens are, and in which order they stand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.compiled import compiled
from data.canonical import canonical
from data.score import BAR, NOTE, Score
from data.tokens.cursor import Ints, read_windows
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError, Words


def encode(score: Score, vocabulary: Vocabulary) -> Ints:
    """Encode a piece: return (T,) ids, from Start to End.

    Raises:
        VocabularyError: the vocabulary has no token for something in the piece.
    """
    if score.grid != vocabulary.grid:
        raise VocabularyError(f"the piece is on {score.grid}, the vocabulary on {vocabulary.grid}")
    notes, bars = score.notes, score.bars
    meter = _index_of([*map(tuple, bars[["numerator", "denominator"]].tolist())], vocabulary)
    tempo = np.full(len(bars), -1)
    if vocabulary.grid.has_meter:
        tempo = _index("tempo", score.tempo_bpm, vocabulary.tempos)
    program = _index("program", notes["program"], vocabulary.programs)
    pitches = range(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
    number = program * vocabulary.pitch_count + _index("pitch", notes["pitch"], pitches)
    velocity = _index("velocity", notes["velocity"], vocabulary.velocities)
    if len(vocabulary.velocities) == 1:
        velocity = np.full(len(notes), -1)
    length, onset, duration = (
        array.astype(np.int64) for array in (bars["length"], notes["onset"], notes["duration"])
    )
    firsts = np.array(vocabulary.firsts)
    return _write(vocabulary.words, firsts, meter, tempo, length, onset, number, duration, velocity)


@compiled
def _write(
    words: Words,
    firsts: Ints,
    meter: Ints,
    tempo: Ints,
    length: Ints,
    onset: Ints,
    number: Ints,
    duration: Ints,
    velocity: Ints,
) -> Ints:
    """Return the ids (T,) of M bars and N notes.

    Args:
        words: of the vocabulary.
        firsts: the first id of each kind.
        meter, tempo, length: (M,) numbers of meters and tempi (-1: no tokens), and steps.
        onset, number, duration, velocity: (N,) steps, the number of program and pitch, steps, and
            the number of the velocity (-1: no tokens).
    """
    ids, note, start = [firsts[Kind.START]], 0, 0
    for bar in range(len(meter)):
        ids.append(firsts[Kind.BAR] + meter[bar])
        if length[bar] != words.whole_bars[meter[bar]]:
            ids.append(firsts[Kind.LENGTH] + length[bar] - 1)
        if tempo[bar] >= 0 and (bar == 0 or tempo[bar] != tempo[bar - 1]):
            ids.append(firsts[Kind.TEMPO] + tempo[bar])
        latest = -1  # onset in this bar
        while note < len(onset) and onset[note] < start + length[bar]:
            if onset[note] != latest:
                latest = onset[note]
                ids.append(firsts[Kind.POSITION] + latest - start)
            ids.append(firsts[Kind.NOTE] + number[note])
            left = duration[note]
            while left > words.longest_duration:
                ids.append(firsts[Kind.EXTEND])
                left -= words.longest_duration
            ids.append(firsts[Kind.DURATION] + left - 1)
            if velocity[note] >= 0:
                ids.append(firsts[Kind.VELOCITY] + velocity[note])
            note += 1
        start += length[bar]
    ids.append(firsts[Kind.END])
    return np.array(ids)


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
