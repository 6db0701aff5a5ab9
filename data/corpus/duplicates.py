"""Copies of a piece, in any key, and near copies: pieces that share many of their bars."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from data.score import DRUMS, Score, ScoreBatch, reduced

CHUNK = 2**20  # marks of windows that are looked up at once


def fingerprint(score: Score) -> bytes:
    """16 bytes that copies share: onset, duration, program and relative pitch of every note.

    The same music in another key, at another tempo or loudness has the same one.
    """
    return fingerprints(ScoreBatch.of([score]))[0]


def fingerprints(batch_of_scores: ScoreBatch) -> list[bytes]:
    """The fingerprint of each piece."""
    notes, offsets = batch_of_scores.notes, batch_of_scores.note_offsets
    lowest = np.repeat(lowest_pitches(batch_of_scores), np.diff(offsets))
    pitch = np.where(notes["program"] == DRUMS, notes["pitch"], notes["pitch"] - lowest)
    columns = np.stack([notes["onset"], notes["duration"], notes["program"], pitch]).astype("<i4")
    return [
        hashlib.blake2b(columns[:, begin:end].tobytes(), digest_size=16).digest()
        for begin, end in pairwise(offsets.tolist())
    ]


def lowest_pitches(batch_of_scores: ScoreBatch) -> NDArray[np.int16]:
    """(P,) the lowest pitch of each piece's notes but the drums'; 127 where there are none."""
    notes = batch_of_scores.notes
    pitch = np.where(notes["program"] == DRUMS, np.int16(127), notes["pitch"])
    return reduced(np.minimum, pitch, batch_of_scores.note_offsets, empty=127)


def window_marks(batch_of_scores: ScoreBatch) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A number for each two consecutive bars: equal where these hold the same notes in any key.

    What counts of a note that begins there is its onset in the two bars, its duration, its
    program, and its pitch above the lowest; the drums' pitch as it is. A piece of a single bar
    has one window, that bar. Windows without a note are left out.

    Returns:
        (W,) uint64, piece after piece, and (P,) how many are each piece's.
    """
    notes, length = batch_of_scores.notes, batch_of_scores.bars["length"].astype(np.int64)
    line = np.concatenate([[0], np.cumsum(length)])  # (M + 1,) steps from the medley's beginning
    first_bar, bar_counts = batch_of_scores.bar_offsets[:-1], np.diff(batch_of_scores.bar_offsets)
    begin = np.repeat(
        line[first_bar], np.diff(batch_of_scores.note_offsets)
    )  # (N,) of each note's piece
    onset = begin + notes["onset"]
    bar = np.searchsorted(line, onset, side="right") - 1
    note_offsets = np.searchsorted(onset, line)  # (M + 1,) the notes of each bar

    program = notes["program"].astype(np.int64)
    pitch = notes["pitch"].astype(np.int64)
    is_drum = program == DRUMS
    size = np.diff(note_offsets)
    lowest = reduced(np.minimum, np.where(is_drum, 127, pitch), note_offsets, empty=127)  # (M,)
    is_last = np.zeros(len(length), dtype=bool)
    is_last[batch_of_scores.bar_offsets[1:][bar_counts > 0] - 1] = True
    lowest = np.where(
        is_last, lowest, np.minimum(lowest, np.append(lowest[1:], 127))
    )  # of two bars

    # The sum over a window's notes of a number a note: first those of its first bar, then of its
    # second; the windows that the two bars begin differ in where the note is and what is lowest.
    rest = (notes["duration"].astype(np.int64) << 8) + program
    in_bar = onset - line[bar]
    above = np.where(is_drum, pitch, pitch - lowest[bar])
    first = _sums(_scrambled(in_bar, above, rest), note_offsets)
    before = np.maximum(bar - 1, 0)
    above = np.where(is_drum, pitch, pitch - lowest[before])
    second = _sums(_scrambled(in_bar + length[before], above, rest), note_offsets)
    second, later_size = np.append(second[1:], np.uint64(0)), np.append(size[1:], 0)
    marks = np.where(is_last, first, first + second)
    has_notes = np.where(is_last, size, size + later_size) > 0
    is_only = np.repeat(bar_counts == 1, bar_counts)
    is_window = has_notes & (~is_last | is_only)
    counted = np.concatenate([[0], np.cumsum(is_window)])
    return marks[is_window], np.diff(counted[batch_of_scores.bar_offsets])


def _sums(values: NDArray[np.uint64], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """(M,) sums, modulo 2^64, of the values between each two offsets."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values)])
    return np.asarray(np.diff(total[offsets]))


def _scrambled(
    position: NDArray[np.int64], pitch: NDArray[np.int64], rest: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """(N,) a number a note, spread over all 64 bits (the finalizer of splitmix64)."""
    x = ((position << 8) + pitch).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x += rest.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


@dataclass(frozen=True)
class Windows:
    """The windows of the pieces of a split.

    Attributes:
        marks: (W,) uint64, piece after piece; may be mapped from disk.
        offsets: (P + 1,) int64: piece i has marks[offsets[i] : offsets[i + 1]].
    """

    marks: NDArray[np.uint64]
    offsets: NDArray[np.int64]

    def of(self, piece: int) -> NDArray[np.uint64]:
        """The windows of one piece."""
        return np.asarray(self.marks[self.offsets[piece] : self.offsets[piece + 1]])

    def chunks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """All marks, so many at a time, and the number of the first."""
        for begin in range(0, len(self.marks), CHUNK):
            yield begin, np.asarray(self.marks[begin : begin + CHUNK])


def shares_found(held_out: Windows, train: Windows) -> NDArray[np.float64]:
    """(P,) the share of each held-out piece's windows that some training piece has too."""
    known, number = np.unique(held_out.marks, return_inverse=True)
    is_found = np.zeros(len(known), dtype=bool)
    for _, marks in train.chunks():
        at, is_known = _places(marks, known)
        is_found[at[is_known]] = True
    found = np.concatenate([[0], np.cumsum(is_found[number])])
    return np.diff(found[held_out.offsets]) / np.maximum(np.diff(held_out.offsets), 1)


def likest(pieces: list[NDArray[np.uint64]], train: Windows) -> list[int]:
    """The training piece that has the most windows of each of these pieces.

    Args:
        pieces: the windows of each; a few pieces, each with a window in training at least.
    """
    known = np.unique(np.concatenate([np.empty(0, np.uint64), *pieces]))
    found_marks, found_pieces = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for begin, marks in train.chunks():
        _, is_known = _places(marks, known)
        places = np.flatnonzero(is_known)
        found_marks.append(marks[places])
        found_pieces.append(np.searchsorted(train.offsets, begin + places, side="right") - 1)
    marks, owners = np.concatenate(found_marks), np.concatenate(found_pieces)
    pairs = np.unique(np.stack([owners.astype(np.uint64), marks]), axis=1)  # each window once
    owners, marks = pairs[0].astype(np.int64), pairs[1]
    return [int(np.bincount(owners[np.isin(marks, piece)]).argmax()) for piece in pieces]


def _places(
    marks: NDArray[np.uint64], known: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each mark stands among the known ones, which rise, and whether it does."""
    if not len(known):
        return np.zeros(len(marks), dtype=np.int64), np.zeros(len(marks), dtype=bool)
    at = np.minimum(np.searchsorted(known, marks), len(known) - 1)
    return at, np.asarray(known[at] == marks)
