"""Turns Scores into token ids, and ids back into Scores.

Each Score has exactly one encoding, and each encoding decodes to exactly one Score. What the tokens
are, and in which order they stand, is in `data/tokens/vocabulary.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Ids, Ints, Records
from common.compiled import compiled
from data.canonical import canonical
from data.score import BAR, NOTE, Score
from data.tokens.cursor import Cursor, advance, at_start
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError, Words


def encode(score: Score, vocabulary: Vocabulary) -> Ints:
    """Encode a piece: return its ids (T,), from Start to End.

    Raises:
        VocabularyError: the vocabulary has no token for something in the piece.
    """
    if score.grid != vocabulary.grid:
        raise VocabularyError(f"the piece is on {score.grid}, the vocabulary on {vocabulary.grid}")
    notes, bars = score.notes, score.bars
    codes = bars["numerator"] << 8 | bars["denominator"]
    meter = _numbers("meter", codes, vocabulary, lambda code: f"{code >> 8}/{code & 255}")
    tempo = np.full(len(bars), -1)
    if vocabulary.grid.has_meter:
        tempo = _numbers("tempo", score.tempo_bpm, vocabulary)
    program = _numbers("program", notes["program"], vocabulary)
    number = program * vocabulary.pitch_count + _numbers("pitch", notes["pitch"], vocabulary)
    velocity = _numbers("velocity", notes["velocity"], vocabulary)
    if len(vocabulary.velocities) == 1:
        velocity = np.full(len(notes), -1)
    length, onset, duration = (
        array.astype(np.int64) for array in (bars["length"], notes["onset"], notes["duration"])
    )
    return _write(vocabulary.words, meter, tempo, length, onset, number, duration, velocity)


@compiled
def _write(
    words: Words,
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
        words: the tables of the vocabulary.
        meter, tempo, length: (M,) of each bar: the number of its meter, the number of its tempo
            (-1: write no Tempo), and its steps.
        onset, number, duration, velocity: (N,) of each note: its onset in steps, the number of its
            program and pitch, its steps, and the number of its velocity (-1: write no Velocity).
    """
    firsts, note, start = words.firsts, 0, 0
    ids = [firsts[Kind.START]]
    for bar in range(len(meter)):
        ids.append(firsts[Kind.BAR] + meter[bar])
        if length[bar] != words.whole_bars[meter[bar]]:
            ids.append(firsts[Kind.LENGTH] + length[bar] - 1)
        if tempo[bar] >= 0 and (bar == 0 or tempo[bar] != tempo[bar - 1]):
            ids.append(firsts[Kind.TEMPO] + tempo[bar])
        latest = -1  # the latest onset in this bar
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
    """Return the piece that ids from Start to End encode; this undoes `encode`.

    Raises:
        VocabularyError: the ids do not encode a piece.
    """
    ids = np.asarray(ids, dtype=np.int64)
    if not len(ids) or ids.min() < 0 or ids.max() >= vocabulary.size:
        raise VocabularyError("not a piece: no ids, or ids outside the vocabulary")
    try:
        score = canonical(*decode_parts(ids, vocabulary), vocabulary.grid)[0]
        is_encoding = np.array_equal(encode(score, vocabulary), ids)
    except (ValueError, IndexError):  # the ids break the grammar, so their arrays do not fit
        is_encoding = False
    if not is_encoding:
        raise VocabularyError("not a piece: the ids break the grammar")
    return score


def decode_parts(ids: Ints, vocabulary: Vocabulary) -> tuple[Records, Records, NDArray[np.int32]]:
    """Return the notes, bars and tempi that ids encode, of one piece or of several end to end.

    Onsets count from the beginning of the first piece. The ids must follow the grammar. Otherwise
    the result is noise, a ValueError or an IndexError.
    """
    kind = vocabulary.kind_of[ids]
    of_bars = np.zeros((np.count_nonzero(kind == Kind.BAR), 3), dtype=np.int64)
    of_notes = np.zeros((np.count_nonzero(kind == Kind.NOTE), 4), dtype=np.int64)
    _read(vocabulary.words, at_start(vocabulary, 1)[0], ids, of_bars, of_notes)
    meter, length, tempo = of_bars.T
    bars = np.empty(len(of_bars), dtype=BAR)
    bars["numerator"], bars["denominator"] = np.array(vocabulary.meters)[meter].T
    bars["length"] = length

    notes = np.empty(len(of_notes), dtype=NOTE)
    notes["onset"], number, notes["duration"], velocity = of_notes.T
    program, pitch = np.divmod(number, vocabulary.pitch_count)
    notes["program"] = np.array(vocabulary.programs)[program]
    notes["pitch"] = pitch + vocabulary.lowest_pitch
    notes["velocity"] = np.array(vocabulary.velocities)[velocity]
    return notes, bars, np.array(vocabulary.tempos, dtype=np.int32)[tempo]


@compiled
def _read(words: Words, here: Cursor, ids: Ints, of_bars: Ints, of_notes: Ints) -> None:
    """Read ids (T,), and fill in what they say about M bars and N notes.

    Args:
        words: the tables of the vocabulary.
        here: the cursor of a row that has read nothing.
        ids: the ids.
        of_bars: (M, 3), set to the number of each bar's meter, its steps, and the number of its
            tempo.
        of_notes: (N, 4), set to each note's onset, its number, its steps, and the number of its
            velocity.
    """
    bar = note = -1
    for token in ids:
        advance(words, here, token)
        kind, value = here.kind, token - words.firsts[here.kind]
        if kind == Kind.BAR:
            bar += 1
            of_bars[bar, 0] = value
        elif kind == Kind.NOTE:
            note += 1
            of_notes[note, 0], of_notes[note, 1] = here.now, value
        elif kind == Kind.DURATION and note >= 0:
            of_notes[note, 2] = here.note_end - here.now
        elif kind == Kind.VELOCITY and note >= 0:
            of_notes[note, 3] = value
        if bar >= 0:
            of_bars[bar, 1], of_bars[bar, 2] = here.bar_length, here.tempo


def _numbers(
    name: str, values: Ids, vocabulary: Vocabulary, written: Callable[[int], str] = str
) -> Ints:
    """Return the number of each value, from the table `name` of `Vocabulary.numbers`.

    A VocabularyError lists values that have none, as `written` shows them.
    """
    numbers = vocabulary.numbers[name].take(values, mode="clip")
    if (numbers < 0).any():
        named = ", ".join(map(written, np.unique(values[numbers < 0])[:5].tolist()))
        raise VocabularyError(f"the vocabulary has no {name} {named}")
    return numbers
