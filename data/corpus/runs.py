"""Runs of notes: the lines and the texture of pieces.

A run is some consecutive notes of a piece, in either of two representations:

- `line`: each instrument by itself. Of each program's notes those with no higher note of that
  program above them: all notes of a voice that plays one at a time, and the top of chords and
  accompaniment (the skyline of Uitdenbogerd and Zobel 1998, "Manipulation of music for melody
  matching").
- `texture`: all instruments together, by onset and then from the lowest note up. A unison is one
  note.

Two runs are the same if from note to note both move by the same number of semitones and wait the
same number of grid steps between onsets. So key, instrument, tempo, velocity, the place in the bar
and how long notes are held make no difference; a changed rhythm does, and so do added notes. Drums
have no key and their patterns are common property: they are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.arrays import offsets, segment_ids
from data.canonical import ScoreBatch
from data.corpus.store import Split
from data.score import DRUMS, MOST_PROGRAM
from data.tokens.batch_tokenizer import decode_batch
from data.tokens.vocabulary import Vocabulary

REPRESENTATIONS = ("line", "texture")
CHUNK = 2**21  # training tokens that are read at once


Integers = NDArray[np.int64]


@dataclass(frozen=True)
class NoteSequence:
    """N notes in the order of one representation, line after line; all arrays are (N,)."""

    piece: Integers  # its index
    program: Integers  # -1 where instruments are taken together
    bar: Integers  # its number (an upbeat is bar 0); on a grid of seconds the second
    onset: Integers  # grid steps
    pitch: Integers
    # one number for the semitones and grid steps to the next note; for the last note of a line a
    # negative number that no other note has
    step: Integers
    left: Integers  # how many notes its line has from this one on


def read_sequences(
    train: Split, vocabulary: Vocabulary
) -> Iterator[tuple[int, dict[str, NoteSequence]]]:
    """Yield the notes of a training set in each of REPRESENTATIONS, CHUNK tokens at a time.

    With each chunk comes the index of its first piece. So memory does not grow with the set.
    """
    chunk_of = train.piece_offsets[:-1] // CHUNK
    for members in np.split(np.arange(len(train)), np.flatnonzero(np.diff(chunk_of)) + 1):
        first, last = members[[0, -1]].tolist()
        ends = train.piece_offsets[first : last + 2]
        ids = train.tokens[ends[0] : ends[-1]].astype(np.int64)
        batch = decode_batch(ids, np.diff(ends), vocabulary)
        yield first, {name: note_sequence(batch, name) for name in REPRESENTATIONS}


def note_sequence(batch: ScoreBatch, representation: str) -> NoteSequence:
    """Return the notes of some pieces in one of REPRESENTATIONS."""
    is_pitched = batch.notes["program"] != DRUMS
    notes = batch.notes[is_pitched]
    piece, bar = segment_ids(batch.note_offsets)[is_pitched], _bar_numbers(batch)[is_pitched]
    onset, pitch, program = (notes[name].astype(np.int64) for name in ("onset", "pitch", "program"))
    program = program if representation == "line" else np.full(len(notes), -1)
    line = piece * (MOST_PROGRAM + 1) + program
    order = np.lexsort((pitch, onset, line))
    place = np.stack([line, onset, pitch])[:, order]
    if representation == "line":
        release = batch.grid.steps_per_beat // 8  # of a note held into the next
        duration = notes["duration"][order].astype(np.int64)
        order = order[_is_on_top(place[0], place[1], place[2], duration, release)]
    else:
        order = order[np.append(True, np.any(np.diff(place), axis=0))[: len(order)]]
    line, onset, pitch = line[order], onset[order], pitch[order]
    is_last = np.append(line[1:] != line[:-1], True)[: len(line)]
    step = np.append(np.diff(onset) * 256 + np.diff(pitch) + 128, 0)[: len(line)]
    ends = np.flatnonzero(is_last)
    left = np.repeat(ends, np.diff(ends, prepend=-1)) - np.arange(len(line)) + 1
    step = np.where(is_last, -1 - np.arange(len(line)), step)
    return NoteSequence(piece[order], program[order], bar[order], onset, pitch, step, left)


def _bar_numbers(batch: ScoreBatch) -> Integers:
    """Return (N,) the number of the bar that each note begins in."""
    first = batch.bar_offsets[segment_ids(batch.note_offsets)]  # bar of each note's piece
    line = offsets(batch.bars["length"])
    bar = np.searchsorted(line, line[first] + batch.notes["onset"], side="right") - 1
    if not batch.grid.has_meter:
        return np.asarray(bar - first)
    numerator, denominator = (batch.bars[n].astype(np.int64) for n in ("numerator", "denominator"))
    is_short = batch.bars["length"] < batch.grid.bar_steps(numerator, denominator)
    return np.asarray(bar - first + 1 - is_short[first])  # an upbeat is bar 0


def _is_on_top(
    line: Integers, onset: Integers, pitch: Integers, duration: Integers, release: int
) -> NDArray[np.bool_]:
    """Return (N,) whether each note is the highest of its line that begins or sounds at its onset.

    The notes are sorted by line, onset and pitch. In the last `release` steps of one the next may
    already begin.
    """
    # one time axis for all lines, one after the other, on which no two touch
    begin = onset + line * int((onset + duration).max(initial=0) + 1)
    end = np.maximum(begin + 1, begin + duration - release)
    latest = np.searchsorted(begin, begin, side="right") - 1  # of the notes that begin with each
    reach = np.full(len(begin), np.iinfo(np.int64).min)  # the ends of all higher notes
    is_on_top = np.ones(len(begin), dtype=bool)
    for height in np.unique(pitch)[::-1].tolist():
        here = np.flatnonzero(pitch == height)
        is_on_top[here] = np.maximum.accumulate(reach)[latest[here]] <= begin[here]
        reach[here] = end[here]
    return is_on_top
