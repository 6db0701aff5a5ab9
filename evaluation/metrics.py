"""Musical statistics: one number, or one histogram, per Score.

What is not defined for a piece (entropy without notes, bars where time is not counted in beats) is
NaN, or an empty histogram. Drums have no pitch: they count only where a docstring says so. "As
MusPy" means as its version 0.5 defines a measure (Dong, Chen, McAuley & Berg-Kirkpatrick 2020,
"MusPy: a toolkit for symbolic music generation").
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from data.keys import pitched_notes
from data.score import Score, nearest_level

SCALES = np.array([(0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)])  # major, natural minor
MAX_BAR_DISTANCE = 16  # of bars that are compared: two phrases of eight bars
RUN_NOTES = 8  # so many notes in a row count as repeated material
# Without a beat durations are counted by half octaves: 1, 2, 3, 4, 6 .. steps.
SECONDS_LEVELS = np.unique(np.rint(2.0 ** (np.arange(60) / 2))).astype(np.int32)


def pitch_class_entropy(score: Score) -> float:
    """Return the entropy of the notes' pitch classes in bits, 0 to log2 12 = 3.585: as MusPy.

    From Wu & Yang 2020, "The Jazz Transformer on the front line".
    """
    counts = np.bincount(pitched_notes(score)["pitch"] % 12, minlength=12)
    share = counts[counts > 0] / max(counts.sum(), 1)
    return float(-(share * np.log2(share)).sum()) if len(share) else float("nan")


def scale_consistency(score: Score) -> float:
    """Return the share of the notes in the scale that contains most of them: as MusPy.

    Of the 12 major and 12 natural minor scales. From Mogren 2016, "C-RNN-GAN".
    """
    counts = np.bincount(pitched_notes(score)["pitch"] % 12, minlength=12)
    if not counts.any():
        return float("nan")
    held = max(counts[(scale + root) % 12].sum() for scale in SCALES for root in range(12))
    return float(held / counts.sum())


def pitch_range(score: Score) -> float:
    """Return the semitones from the lowest note to the highest: as MusPy, but NaN without notes."""
    pitch = pitched_notes(score)["pitch"]
    return float(np.ptp(pitch)) if len(pitch) else float("nan")


def groove_consistency(score: Score) -> float:
    """Return how alike onsets in neighboring bars are, drums too: 1 - their mean Hamming distance.

    A bar is a vector with one entry per step, 1 where a note begins; the distance is the share of
    entries that differ, so it depends on the grid's resolution. From Wu & Yang 2020, as MusPy,
    which needs bars of one length: here neighbors of different length are skipped. (MusPy also
    counts bars after the last onset, in which notes only sustain, and an empty one after a note
    that ends with its bar.) NaN without such bars.
    """
    bar, position = score.bar_positions
    lengths = score.bars["length"]
    common, counts = _in_common(bar, position[:, None], len(lengths), distances=1)
    distance = (counts[:-1] + counts[1:] - 2 * common[0]) / lengths[:-1]
    return 1 - _mean(distance[(lengths[:-1] == lengths[1:]) & score.grid.has_meter])


def bar_similarity(score: Score) -> float:
    """Return the mean overlap of two bars, over all pairs at most MAX_BAR_DISTANCE apart.

    The overlap is the notes that two bars share over the notes that either has; notes are the same
    if their place in the bar, program, pitch and duration are, drums too. It is the bar similarity
    of Yu et al. 2022, "Museformer". NaN if all pairs are empty or time is not counted in beats.
    """
    bar, position = score.bar_positions
    notes, bars = score.notes, len(score.bars)
    items = np.column_stack([position, notes["program"], notes["pitch"], notes["duration"]])
    common, counts = _in_common(bar, items, bars, distances=MAX_BAR_DISTANCE)
    overlaps = []
    for distance, shared in enumerate(common, start=1):
        either = counts[: len(shared)] + counts[distance:] - shared
        overlaps.append(shared[either > 0] / either[either > 0])
    return _mean(np.concatenate(overlaps)) if score.grid.has_meter else float("nan")


def repeated_material(score: Score) -> float:
    """Return the share of the melodies' notes in runs of RUN_NOTES that occur again in the piece.

    In any key and any voice, but not at the same time: runs are the same if their intervals and
    the times between their onsets are. A program's melody is its highest note at each onset. NaN
    if no program has so many, or time is not counted in beats.
    """
    program, onset, pitch = melodies(score)
    if len(program) < RUN_NOTES or not score.grid.has_meter:
        return float("nan")
    steps = np.column_stack([np.diff(pitch), np.diff(onset)])
    runs = np.lib.stride_tricks.sliding_window_view(steps, RUN_NOTES - 1, axis=0)
    first = np.flatnonzero(program[: len(runs)] == program[RUN_NOTES - 1 :])
    if not len(first):
        return float("nan")
    _, number = np.unique(runs[first].reshape(len(first), -1), axis=0, return_inverse=True)
    number = number.reshape(-1)
    times = np.unique(np.column_stack([number, onset[first]]), axis=0)[:, 0]
    comes_again = first[np.bincount(times)[number] > 1]
    is_repeated = np.zeros(len(program), dtype=bool)
    is_repeated[(comes_again[:, None] + np.arange(RUN_NOTES)).ravel()] = True
    return float(is_repeated.mean())


def intervals(score: Score) -> Counter[int]:
    """Count melodic intervals in semitones, upwards positive.

    From each note to the next of the same melody (see `repeated_material`), over rests too.
    """
    program, _, pitch = melodies(score)
    return Counter(np.diff(pitch)[program[1:] == program[:-1]].tolist())


def durations(score: Score) -> Counter[int]:
    """Count durations in grid steps; without a beat to the nearest of SECONDS_LEVELS."""
    duration = pitched_notes(score)["duration"]
    if not score.grid.has_meter:
        duration = nearest_level(SECONDS_LEVELS, duration)
    return Counter(duration.tolist())


def melodies(score: Score) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return program, onset and pitch, (N,) each, of each program's highest note at each onset."""
    notes = pitched_notes(score)
    notes = notes[np.lexsort((notes["pitch"], notes["onset"], notes["program"]))]
    begins = (np.diff(notes["program"]) != 0) | (np.diff(notes["onset"]) != 0)
    highest = notes[np.append(begins, True)[: len(notes)]]
    program, onset, pitch = (highest[n].astype(np.int64) for n in ("program", "onset", "pitch"))
    return program, onset, pitch


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _in_common(
    bar: NDArray[np.int64], items: NDArray[np.int64], bars: int, distances: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Count the different items that two of B bars have in common, and that each has.

    Of N items `bar`, (N,), holds the index of the bar, and `items`, (N, K), integers that identify
    it. Returns for each distance d from 1 (B - d,) counts for bars and those d later, and (B,).
    """
    _, number = np.unique(items, axis=0, return_inverse=True)
    size = int(number.max(initial=0)) + 1
    key = np.unique(bar * size + number.reshape(-1))
    common = []
    for distance in range(1, distances + 1):
        found = key[np.isin(key + distance * size, key, assume_unique=True)] // size
        common.append(np.bincount(found, minlength=bars)[: max(bars - distance, 0)])
    return common, np.bincount(key // size, minlength=bars)
