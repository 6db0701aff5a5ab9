"""The one canonical form of scores, whole arrays of them at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Ints, Records, offsets, reduce_segments, segment_ids
from data.score import (
    BAR,
    DRUMS,
    MOST_NUMERATOR,
    MOST_PROGRAM,
    TEMPO_LEVELS,
    VELOCITY_LEVELS,
    Grid,
    Score,
    can_be_said,
    nearest_level,
)


@dataclass(frozen=True)
class ScoreBatch:
    """P pieces on one grid, canonical, end to end.

    Piece i has notes[note_offsets[i] : note_offsets[i + 1]], and likewise bars and tempi. Its
    onsets count from its own beginning.
    """

    notes: Records  # (N,) of NOTE
    bars: Records  # (M,) of BAR
    tempo_bpm: NDArray[np.int32]  # (M,)
    note_offsets: Ints  # (P + 1,)
    bar_offsets: Ints  # (P + 1,)
    grid: Grid

    @classmethod
    def from_scores(cls, scores: Sequence[Score]) -> Self:
        """Join pieces, one at least, which are all on the same grid."""
        return cls(
            np.concatenate([score.notes for score in scores]),
            np.concatenate([score.bars for score in scores]),
            np.concatenate([score.tempo_bpm for score in scores]),
            offsets([len(score.notes) for score in scores]),
            offsets([len(score.bars) for score in scores]),
            scores[0].grid,
        )

    def __len__(self) -> int:
        return len(self.note_offsets) - 1

    def __getitem__(self, index: int) -> Score:
        """Return the piece of that number."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        note = slice(self.note_offsets[index], self.note_offsets[index + 1])
        bar = slice(self.bar_offsets[index], self.bar_offsets[index + 1])
        return Score(self.notes[note], self.bars[bar], self.tempo_bpm[bar], self.grid)


@dataclass
class GridChanges:
    """What bringing a piece to the grid changed."""

    merged: int = 0  # notes dropped since another has the same onset, program and pitch
    cut: int = 0  # notes shortened since the same program and pitch begins again
    moved: int = 0  # notes whose onset was not on the grid
    error_steps: float = 0.0  # sum over notes of how far the onset moved
    worst_error_steps: float = 0.0  # the largest of those moves
    split_bars: int = 0  # that were longer than any meter's
    clipped_bytes: int = 0  # of the file, read as 127
    empty_bars: int = 0  # before the first note, left out of a corpus


# Bits of a sorting key that a voice (see `_voice`) and an onset take.
_VOICE_BITS, _ONSET_BITS = 16, 31
_VELOCITY_LEVEL_OF = nearest_level(VELOCITY_LEVELS, np.arange(128))  # of each MIDI velocity


def canonical(
    notes: Records, bars: Records, tempo_bpm: ArrayLike, grid: Grid
) -> tuple[Score, GridChanges]:
    """Return the one Score for these notes and bars, and what that merged and cut.

    Args:
        notes: (N,) of NOTE on the grid, in any order; a duration below 1 counts as 1.
        bars: (M,) of BAR, no longer than their meters say. If notes begin after the last, bars of
            its meter are added. Bars after the one in which the last note begins are dropped.
        tempo_bpm: (M,) quarter notes a minute, one a bar.
        grid: of the steps. Where it has no meter, no bars and no tempi need be given.

    Of notes with the same onset, program and pitch the longest, then the loudest, stays; a note
    is cut where the same program and pitch begins again.

    Raises:
        ValueError: a note or a bar that no Score can hold.
    """
    ends = offsets([len(notes)]), offsets([len(bars)])
    batch, changes = canonical_batch(notes, bars, tempo_bpm, *ends, grid)
    return batch[0], changes[0]


def canonical_batch(
    notes: Records,
    bars: Records,
    tempo_bpm: ArrayLike,
    note_offsets: Ints,
    bar_offsets: Ints,
    grid: Grid,
) -> tuple[ScoreBatch, list[GridChanges]]:
    """Make P pieces canonical, fewer than 2^16 and given end to end; see `canonical`.

    Raises:
        ValueError: a note or a bar that no Score can hold.
    """
    _check_ranges(notes, bars, tempo_bpm, grid)
    # Sorted by (piece, program, pitch, onset): the next row is the next note of the same voice.
    piece, voice = segment_ids(note_offsets), _voice(notes)
    onset, duration = notes["onset"].astype(np.int64), np.maximum(notes["duration"], 1)
    key = (piece << _VOICE_BITS | voice) << _ONSET_BITS | onset
    order = np.argsort(key)
    is_repeat = key[order[1:]] == key[order[:-1]]
    merged = np.bincount(piece[order[1:][is_repeat]], minlength=len(note_offsets) - 1)
    if is_repeat.any():
        at = np.flatnonzero(np.append(is_repeat, False) | np.append(False, is_repeat))
        equal = order[at]
        order[at] = equal[np.lexsort((-notes["velocity"][equal], -duration[equal], key[equal]))]
        order = order[np.append(True, ~is_repeat)]
    piece, voice, onset, duration = piece[order], voice[order], onset[order], duration[order]
    is_same_voice = (voice[1:] == voice[:-1]) & (piece[1:] == piece[:-1])
    room = np.where(is_same_voice, onset[1:] - onset[:-1], duration[:-1])
    is_cut = duration[:-1] > room
    cut = np.bincount(piece[:-1][is_cut], minlength=len(note_offsets) - 1)
    duration[:-1][is_cut] = room[is_cut]

    # And now by (piece, onset, program, pitch).
    by_onset = np.argsort((piece << _ONSET_BITS | onset) << _VOICE_BITS | voice)
    notes = notes[order[by_onset]]
    notes["duration"] = duration[by_onset]
    notes["velocity"] = _VELOCITY_LEVEL_OF[notes["velocity"]]
    note_offsets = offsets(np.diff(note_offsets) - merged)

    tempo = nearest_level(TEMPO_LEVELS, tempo_bpm)
    last_onset = reduce_segments(
        np.maximum, notes["onset"].astype(np.int64), note_offsets, empty=-1
    )
    bars, tempo, bar_offsets = _fit_bars(bars, tempo, bar_offsets, last_onset, grid)
    changes = [GridChanges(*counts) for counts in zip(merged.tolist(), cut.tolist(), strict=True)]
    return ScoreBatch(notes, bars, tempo, note_offsets, bar_offsets, grid), changes


def _voice(notes: Records) -> Ints:
    """Return one number for (program, pitch) of each note, rising with program, then pitch."""
    return np.asarray(notes["program"].astype(np.int64) * 128 + notes["pitch"])


def _fit_bars(
    bars: Records, tempo: NDArray[np.int32], bar_offsets: Ints, last_onset: Ints, grid: Grid
) -> tuple[Records, NDArray[np.int32], Ints]:
    """Return bars, tempi and offsets up to the bar of each piece's last onset; none for -1."""
    bar_counts = np.diff(bar_offsets)
    if not bar_counts.all():
        at = bar_offsets[:-1][bar_counts == 0]
        meter = grid.default_meter
        bars = np.insert(bars, at, np.array((*meter, grid.bar_steps(*meter)), dtype=BAR))
        tempo = np.insert(tempo, at, grid.default_tempo_bpm)
        bar_offsets = offsets(np.maximum(bar_counts, 1))
    piece, lines = segment_ids(bar_offsets), offsets(bars["length"])
    begins = lines[bar_offsets[:-1]]
    whole = grid.bar_steps(*(bars[n].astype(np.int64) for n in ("numerator", "denominator")))
    count = (lines[:-1] - begins[piece] <= last_onset[piece]).astype(np.int64)  # of each bar
    last_bar = bar_offsets[1:] - 1
    beyond = last_onset - (lines[bar_offsets[1:]] - begins)
    count[last_bar] += np.maximum(beyond // whole[last_bar] + 1, 0)
    chosen = np.repeat(np.arange(len(bars)), count)
    is_added = chosen == np.append(-1, chosen[:-1])
    bars = bars[chosen]
    bars["length"][is_added] = whole[chosen[is_added]]
    return bars, tempo[chosen], offsets(np.bincount(piece[chosen], minlength=len(last_onset)))


def _check_ranges(notes: Records, bars: Records, tempo_bpm: ArrayLike, grid: Grid) -> None:
    for name, low, high in (
        ("onset", 0, 2**30),
        ("pitch", 0, 127),
        ("velocity", 1, 127),
        ("program", 0, MOST_PROGRAM if grid.parts else DRUMS),
    ):
        values = notes[name]
        if len(values) and (values.min() < low or values.max() > high):
            raise ValueError(
                f"note {name} must lie in {low}..{high}, got {values.min()}..{values.max()}"
            )
    tempo = np.asarray(tempo_bpm)
    if len(tempo) != len(bars):
        raise ValueError(f"{len(bars)} bars need as many tempi, got {len(tempo)}")
    if not np.all(np.isfinite(tempo) & (tempo > 0)):
        raise ValueError("a tempo must be a positive number of beats a minute")
    if np.any(~can_be_said(bars["numerator"], bars["denominator"])):
        raise ValueError(f"a meter must be 1 to {MOST_NUMERATOR} over a power of 2 up to 128")
    whole = grid.bar_steps(*(bars[n].astype(np.int64) for n in ("numerator", "denominator")))
    if np.any((bars["length"] < 1) | (bars["length"] > whole)):
        raise ValueError("a bar must last at least one step and no longer than its meter says")
    if not grid.has_meter and (
        np.any(bars != np.array((*grid.default_meter, grid.steps_per_beat), dtype=BAR))
        or np.any(tempo != grid.default_tempo_bpm)
    ):
        raise ValueError("on a grid of seconds every bar is a second, of 1/4 at 60 beats a minute")
