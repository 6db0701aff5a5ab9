"""Compare two sets of pieces by every musical statistic."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from data import texture, voice_leading
from data.extremes import note_density
from data.keys import above_tonic
from data.score import Score
from evaluation import metrics
from evaluation.cadences import ending_figures
from evaluation.classifier import ToldApart, tell_apart
from evaluation.distances import overlap_of_histograms, overlap_of_values

DRAWS = 20  # of training pieces: an overlap below all of them has a chance of 1 in 21
SETS = {"generated": "generated", "held_out": "held-out", "train": "training"}

Value = TypeVar("Value", float, Counter[int])
Values = Mapping[str, NDArray[np.float64]]  # of each of SETS: (pieces,), or (pieces, bins)


@dataclass(frozen=True)
class Statistic(Generic[Value]):
    """What is computed from each piece: a number, or counts by whole numbers, which add up."""

    label: str  # with the unit
    of: Callable[[Score], Value]
    digits: int = 2  # after the point, when it is shown
    is_time: bool = False  # counted in grid steps, shown as quarter notes or seconds


MEASURES = {
    "pitch_class_entropy": Statistic("pitch-class entropy, bits", metrics.pitch_class_entropy),
    "scale_consistency": Statistic("scale consistency", metrics.scale_consistency, 3),
    "pitch_range": Statistic("pitch range, semitones", metrics.pitch_range, 1),
    "polyphony": Statistic("polyphony, pitches", texture.polyphony),
    "note_density": Statistic("notes a second", note_density),
    "groove_consistency": Statistic("groove consistency", metrics.groove_consistency, 3),
    "bar_similarity": Statistic("similarity of bars", metrics.bar_similarity, 3),
    "repeated_material": Statistic("notes in repeated runs", metrics.repeated_material, 3),
    "parallel_fifths": Statistic("parallel fifths, 100 bars", voice_leading.parallel_fifths),
    "parallel_octaves": Statistic("parallel octaves, 100 bars", voice_leading.parallel_octaves),
    "voice_crossing": Statistic("crossed voices, of the time", voice_leading.voice_crossing, 3),
    "out_of_range": Statistic("notes out of voice range", voice_leading.out_of_range, 3),
}
HISTOGRAMS = {
    "intervals": Statistic("intervals, semitones", metrics.intervals),
    "durations": Statistic("durations, beats", metrics.durations, is_time=True),
    "above_tonic": Statistic("semitones above the tonic", above_tonic),
}


@dataclass(frozen=True)
class SetSummary:
    """A statistic of a set of pieces; what is not defined for a piece is in no mean."""

    mean: float
    sd: float  # over the pieces; of a histogram over the notes
    undefined: int  # how many values are NaN
    values: list[float]  # one per piece; of a histogram the share of each bin


@dataclass(frozen=True)
class Spread:
    """An overlap over all draws of training pieces."""

    mean: float
    sd: float
    least: float


@dataclass(frozen=True)
class StatisticRow:
    """One statistic of the three sets, and how far they overlap."""

    label: str
    digits: int
    bins: list[float] | None  # of a histogram
    generated: SetSummary
    held_out: SetSummary
    train: SetSummary
    overlap: float  # of the generated pieces with the held-out ones
    real_overlap: Spread  # of DRAWS draws of training pieces with the held-out ones

    @property
    def is_far(self) -> bool:
        """Whether generated pieces overlap less with held-out ones than any draw; not if NaN."""
        return self.overlap < self.real_overlap.least


@dataclass(frozen=True)
class Comparison:
    """Generated pieces beside held-out ones, by every statistic."""

    pieces: dict[str, int]  # how many there are in each of SETS
    rows: dict[str, StatisticRow]  # by the names of MEASURES and HISTOGRAMS
    told_apart: ToldApart


def compare(
    generated: Sequence[Score], held_out: Sequence[Score], train: Sequence[Score], seed: int = 0
) -> Comparison:
    """Measure how far generated pieces are from held-out ones, by every statistic.

    Two sets of real pieces differ too. So the overlap of training pieces with the held-out ones
    is given for reference: over DRAWS draws, with repeats, of as many as were generated. What is
    not defined is NaN and stays out of every mean; what is not defined for most of the held-out
    pieces means nothing for such music and is left out. Last comes whether a classifier that sees
    all of it, and how pieces end, can tell the sets apart.

    All pieces are on one grid, at least one of each set; `seed` is that of the draws.
    """
    sets = dict(zip(SETS, (generated, held_out, train), strict=True))
    draws = np.random.default_rng(seed).integers(len(train), size=(DRAWS, len(generated)))
    rows: dict[str, StatisticRow] = {}
    figures: dict[str, list[NDArray[np.float64]]] = {of: [] for of in SETS}
    for name, measure in MEASURES.items():
        values = {of: np.array([measure.of(s) for s in pieces]) for of, pieces in sets.items()}
        if np.isnan(values["held_out"]).mean() <= 0.5:
            rows[name] = _compare(measure, values, None, draws)
            for of, each in values.items():
                figures[of].append(each[:, None])
    for name, histogram in HISTOGRAMS.items():
        bins, counts = _count(histogram, sets)
        if counts["held_out"].any():
            rows[name] = _compare(histogram, counts, bins, draws)
            for of, each in counts.items():
                figures[of].append(each / each.sum(axis=1, keepdims=True).clip(1))
    for of, pieces in sets.items():
        figures[of].append(np.array([ending_figures(score) for score in pieces]))
    own, real, known = (np.concatenate(figures[of], axis=1) for of in SETS)
    pieces_of = {of: len(pieces) for of, pieces in sets.items()}
    return Comparison(pieces_of, rows, tell_apart(own, real, known, seed))


def _compare(
    statistic: Statistic[float] | Statistic[Counter[int]],
    values: Values,
    bins: NDArray[np.float64] | None,
    draws: NDArray[np.int64],
) -> StatisticRow:
    """Compare a statistic of the three sets; `bins`, (B,), are those of a histogram."""

    def overlap(ours: NDArray[np.float64]) -> float:
        held_out = values["held_out"]
        if bins is None:
            return overlap_of_values(_defined(ours), _defined(held_out))
        return overlap_of_histograms(ours.sum(axis=0), held_out.sum(axis=0))

    real = _defined(np.array([overlap(values["train"][draw]) for draw in draws]))
    least = float(real.min()) if len(real) else float("nan")
    return StatisticRow(
        statistic.label,
        statistic.digits,
        None if bins is None else bins.tolist(),
        **{of: _summary(each, bins) for of, each in values.items()},
        overlap=overlap(values["generated"]),
        real_overlap=Spread(*_mean_and_sd(real), least),
    )


def _count(
    histogram: Statistic[Counter[int]], sets: Mapping[str, Sequence[Score]]
) -> tuple[NDArray[np.float64], Values]:
    """Return the bins (B,) that any piece has, and by set the counts (pieces, B)."""
    counters = {name: [histogram.of(score) for score in pieces] for name, pieces in sets.items()}
    keys = sorted({key for each in counters.values() for counter in each for key in counter})
    counts = {
        name: np.array([[c[key] for key in keys] for c in each], dtype=np.float64)
        for name, each in counters.items()
    }
    grid = sets["held_out"][0].grid
    return np.array(keys) / (grid.steps_per_beat if histogram.is_time else 1), counts


def _summary(values: NDArray[np.float64], bins: NDArray[np.float64] | None) -> SetSummary:
    """Summarize (P,) values, of which some may be NaN, or (P, B) counts of bins."""
    known, undefined = _defined(values), int(np.isnan(values).sum())
    if bins is not None:
        counts = values.sum(axis=0)
        known, values = np.repeat(bins, counts.astype(np.int64)), counts / max(counts.sum(), 1)
    return SetSummary(*_mean_and_sd(known), undefined, values.tolist())


def _defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _mean_and_sd(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and sample standard deviation; NaN where there are too few values."""
    return (
        float(values.mean()) if len(values) else float("nan"),
        float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
    )
