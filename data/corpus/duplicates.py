"""Finds copies of a piece, in any key, and works: pieces that are the same music in other forms.

Several performances of one sonata are a work. Works are found by their notes. For each instrument
the melody is taken, without its rhythm, as runs of intervals between notes that have no higher note
beside them. Pieces that share enough of these runs are one work. A figure that many pieces have,
such as a scale, is only a few of a piece's runs.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints, offsets, segment_ids
from common.compiled import compiled
from data.midi.events import Events
from data.midi.quantize import onset_seconds
from data.score import DRUMS, Score

TOGETHER_MS = 50  # the notes of a chord are struck at most this far apart
RUN = 10  # intervals
SKETCH = 128  # runs of a piece that are kept: those with the lowest hashes
SHARE = 0.12  # share of the shorter piece's runs that both must have to be one work;
LEAST_RUNS = 8  # and at least this many
NEIGHBORS = 16  # pieces that each is compared with: the next ones with the same run
CHUNK_PIECES = 2048  # pieces that are compared at once
_PITCH_BITS, _MS_BITS = 7, 34  # in a sorting key, where the line comes before them
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # for hashes


def fingerprint_of(score: Score) -> bytes:
    """Return 16 bytes: a hash of the onset, duration, program and relative pitch of each note.

    Pitches count from the lowest; those of drums stay as they are. So the same music in another
    key, at another tempo or loudness, has the same fingerprint.
    """
    notes, lowest = score.notes, lowest_pitch(score)
    pitch = np.where(notes["program"] == DRUMS, notes["pitch"], notes["pitch"] - lowest)
    columns = np.array([notes["onset"], notes["duration"], notes["program"], pitch], dtype="<i4")
    return hashlib.blake2b(columns.tobytes(), digest_size=16).digest()


def lowest_pitch(score: Score) -> int:
    """Return the lowest pitch of all notes but drums; 127: there are none."""
    return int(score.notes["pitch"][score.notes["program"] != DRUMS].min(initial=127))


def sketch_of(events: Events) -> NDArray[np.uint32]:
    """Return the hashes of runs in a piece's melodies, rising, at most SKETCH of them."""
    ms = np.rint(onset_seconds(events) * 1000).astype(np.int64)
    pitch, line = events.notes[:, 2], events.notes[:, 4]
    keys = (line << _MS_BITS | ms) << _PITCH_BITS | pitch
    keys = np.sort(keys[line != DRUMS])
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        runs = np.sort(_runs(keys >> _PITCH_BITS, (keys % 2**_PITCH_BITS).astype(np.uint64)))
    is_new = np.append(True, runs[1:] != runs[:-1])[: len(runs)]  # np.unique takes four times this
    return np.asarray(runs[is_new][:SKETCH], dtype=np.uint32)


@compiled
def _runs(time: Ints, pitch: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the hashes of the runs of notes that have no higher note of their line beside them.

    Args:
        time: of each note, with the line in the upper bits and milliseconds below; it rises.
        pitch: of each note; at one time it rises.
    """
    tops, count = np.zeros_like(time), 0  # the numbers of these notes
    for note in range(len(time)):
        is_top = note == 0 or time[note] != time[note - 1] or pitch[note] != pitch[note - 1]
        for step in (-1, 1):
            other = note + step
            while (
                is_top and 0 <= other < len(time) and abs(time[other] - time[note]) <= TOGETHER_MS
            ):
                is_top = pitch[other] <= pitch[note]
                other += step
        if is_top:
            tops[count] = note
            count += 1
    runs, found = np.zeros_like(pitch), 0
    for first in range(count - RUN):
        if time[tops[first]] >> _MS_BITS == time[tops[first + RUN]] >> _MS_BITS:
            run = np.uint64(0)
            for place in range(first, first + RUN):
                run = (run + (pitch[tops[place + 1]] - pitch[tops[place]])) * _FACTOR
                run ^= run >> np.uint64(29)
            runs[found] = run >> np.uint64(32)
            found += 1
    return runs[:found]


def find_works(
    found: Sequence[NDArray[np.uint32]], fingerprints: Sequence[bytes]
) -> list[list[int]]:
    """Return the numbers of the pieces of each work: those alike, and those alike to one of them.

    Args:
        found: the sketches of all pieces, from `sketch_of`.
        fingerprints: of all pieces; those with the same one are one work, however short.
    """
    numbers: dict[bytes, int] = {}
    first = [numbers.setdefault(mark, number) for number, mark in enumerate(fingerprints)]
    alike = [*enumerate(first)]
    begins = offsets([len(sketch) for sketch in found])
    piece, runs = segment_ids(begins), np.concatenate([np.empty(0, np.uint32), *found])
    order = np.lexsort((piece, runs))
    at = np.argsort(order)  # for each run of a piece, its place among all runs in order
    piece, runs = piece[order], runs[order]
    sizes = np.diff(begins)
    for start in range(0, len(found), CHUNK_PIECES):
        mine = at[begins[start] : begins[min(start + CHUNK_PIECES, len(found))]]
        pairs = [np.empty(0, dtype=np.int64)]
        for ahead in range(1, NEIGHBORS + 1):
            mine = mine[mine < len(runs) - ahead]
            mine = mine[runs[mine] == runs[mine + ahead]]
            pairs.append(piece[mine] * len(found) + piece[mine + ahead])
        pair, shared = np.unique(np.concatenate(pairs), return_counts=True)
        one, other = np.divmod(pair, len(found))
        least = np.maximum(LEAST_RUNS, SHARE * np.minimum(sizes[one], sizes[other]))
        is_work = shared >= least
        alike += zip(one[is_work].tolist(), other[is_work].tolist(), strict=True)
    works: dict[int, list[int]] = {}
    for number, first_piece in enumerate(first_tied(len(found), alike)):
        works.setdefault(first_piece, []).append(number)
    return list(works.values())


def first_tied(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return, for each number below `count`, the first that pairs tie it to, even indirectly."""
    first = list(range(count))

    def root(number: int) -> int:
        while first[number] != number:
            first[number] = number = first[first[number]]
        return number

    for pair in pairs:
        begin, end = sorted(map(root, pair))
        first[end] = begin
    return [*map(root, range(count))]
