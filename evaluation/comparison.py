"""Compare two sets of pieces by every musical statistic."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from common.files import NOT_JSON
from data import texture, voice_leading
from data.extremes import note_density
from data.keys import above_tonic
from data.score import Score
from evaluation import metrics
from evaluation.cadences import ending_figures
from evaluation.classifier import ToldApart, tell_apart
from evaluation.distances import Distance, between_histograms, between_values

DRAWS = 20  # of training pieces: an overlap below all of them has a chance of 1 in 21
TENTHS = (0.1, 0.9)  # the share of the pieces, or notes, below the ends of a line in a chart
SETS = {"generated": "generated", "held_out": "held-out", "train": "training"}


Value = TypeVar("Value", float, Counter[int])


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
STATISTICS: Mapping[str, Statistic[Any]] = {**MEASURES, **HISTOGRAMS}


@dataclass(frozen=True)
class PieceValues:
    """A measure of a set of pieces; what is not defined for a piece is in no mean."""

    mean: float
    sd: float
    undefined: int  # how many values are NaN
    values: list[float]  # one per piece
    tenths: list[float] = field(metadata=NOT_JSON)  # lowest and highest tenth

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Self:
        """Summarize (P,) values, of which some may be NaN."""
        known = _defined(values)
        tenths = np.quantile(known, TENTHS).tolist() if len(known) else [float("nan")] * 2
        return cls(*_mean_and_sd(known), len(values) - len(known), values.tolist(), tenths)


@dataclass(frozen=True)
class BinShares:
    """A histogram of a set of pieces."""

    mean: float
    sd: float  # over the notes
    shares: list[float]  # of each bin; all 0 without notes
    tenths: list[float] = field(metadata=NOT_JSON)  # bins of the lowest and highest tenth
    undefined: ClassVar[int] = 0

    @classmethod
    def of(cls, bins: NDArray[np.float64], counts: NDArray[np.int64]) -> Self:
        """Summarize (B,) counts of these bins."""
        shares = counts / max(counts.sum(), 1)
        tenths, below = [float("nan")] * 2, np.cumsum(shares)
        if counts.any():
            tenths = bins[np.searchsorted(below, np.array(TENTHS) * below[-1])].tolist()
        return cls(*_mean_and_sd(np.repeat(bins, counts)), shares.tolist(), tenths)


@dataclass(frozen=True)
class Spread:
    """A distance over all draws of training pieces."""

    mean: float
    sd: float
    farthest: float


@dataclass(frozen=True)
class DistanceSpread:
    """The spread of both parts of a `Distance`."""

    overlap: Spread
    divergence: Spread


SetSummary = TypeVar("SetSummary", PieceValues, BinShares)


@dataclass(frozen=True)
class StatisticRow(Generic[SetSummary]):
    """One statistic of the three sets, and how far they are apart."""

    label: str
    generated: SetSummary
    held_out: SetSummary
    train: SetSummary
    distance: Distance  # of the generated pieces from the held-out ones
    real_distance: DistanceSpread  # of DRAWS draws of training pieces from the held-out ones

    @property
    def is_far(self) -> bool:
        """Whether generated pieces overlap less with held-out ones than any draw; not if NaN."""
        return self.distance.overlap < self.real_distance.overlap.farthest

    @property
    def is_far_in_bits(self) -> bool:
        """Whether generated pieces diverge more from held-out ones than any draw; not if NaN."""
        return self.distance.divergence > self.real_distance.divergence.farthest


@dataclass(frozen=True)
class HistogramRow(StatisticRow[BinShares]):
    """A histogram of the three sets over the same bins."""

    bins: list[float]


@dataclass(frozen=True)
class Comparison:
    """Generated pieces beside held-out ones, by every statistic."""

    pieces: dict[str, int]  # how many there are in each of SETS
    measures: dict[str, StatisticRow[PieceValues]]
    histograms: dict[str, HistogramRow]
    told_apart: ToldApart

    @property
    def rows(self) -> dict[str, StatisticRow[PieceValues] | HistogramRow]:
        """All statistics, by the names of STATISTICS."""
        return {**self.measures, **self.histograms}


def compare(
    generated: Sequence[Score], held_out: Sequence[Score], train: Sequence[Score], seed: int = 0
) -> Comparison:
    """Measure how far generated pieces are from held-out ones, by every statistic.

    Two sets of real pieces differ too. So the distance of training pieces from the held-out ones
    is given for reference: over DRAWS draws, with repeats, of as many as were generated. What is
    not defined is NaN and stays out of every mean; what is not defined for most of the held-out
    pieces means nothing for such music and is left out. Last comes whether a classifier that sees
    all of it, and how pieces end, can tell the sets apart.

    All pieces are on one grid, at least one of each set; `seed` is that of the draws.
    """
    sets = dict(zip(SETS, (generated, held_out, train), strict=True))
    draws = np.random.default_rng(seed).integers(len(train), size=(DRAWS, len(generated)))
    values = {
        name: {of: np.array([each.of(score) for score in its]) for of, its in sets.items()}
        for name, each in MEASURES.items()
    }
    values = {n: its for n, its in values.items() if np.isnan(its["held_out"]).mean() <= 0.5}
    counts = {name: _count(each, sets) for name, each in HISTOGRAMS.items()}
    counts = {name: its for name, its in counts.items() if its[1]["held_out"].any()}
    figures = {
        of: np.column_stack(
            [
                *(its[of] for its in values.values()),
                *(
                    its[of] / its[of].sum(axis=1, keepdims=True).clip(1)
                    for _, its in counts.values()
                ),
                *np.array([ending_figures(score) for score in pieces]).T,
            ]
        )
        for of, pieces in sets.items()
    }
    return Comparison(
        {name: len(pieces) for name, pieces in sets.items()},
        {name: _compare_measure(MEASURES[name].label, its, draws) for name, its in values.items()},
        {
            name: _compare_histogram(HISTOGRAMS[name].label, *its, draws)
            for name, its in counts.items()
        },
        tell_apart(figures["generated"], figures["held_out"], figures["train"], seed),
    )


def _compare_measure(
    label: str, values: Mapping[str, NDArray[np.float64]], draws: NDArray[np.int64]
) -> StatisticRow[PieceValues]:
    """Compare the values (pieces,) of the three sets."""
    generated, held_out = _defined(values["generated"]), _defined(values["held_out"])
    real = [between_values(_defined(values["train"][draw]), held_out) for draw in draws]
    return StatisticRow(
        label,
        **{name: PieceValues.of(each) for name, each in values.items()},
        distance=between_values(generated, held_out),
        real_distance=_spreads(real),
    )


def _count(
    histogram: Statistic[Counter[int]], sets: Mapping[str, Sequence[Score]]
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.int64]]]:
    """Return the bins (B,) that any piece has, and by set the counts (pieces, B)."""
    counters = {name: [histogram.of(score) for score in pieces] for name, pieces in sets.items()}
    keys = sorted({key for each in counters.values() for counter in each for key in counter})
    counts = {
        name: np.array([[c[key] for key in keys] for c in each], dtype=np.int64)
        for name, each in counters.items()
    }
    grid = sets["held_out"][0].grid
    return np.array(keys) / (grid.steps_per_beat if histogram.is_time else 1), counts


def _compare_histogram(
    label: str,
    bins: NDArray[np.float64],
    counts: Mapping[str, NDArray[np.int64]],
    draws: NDArray[np.int64],
) -> HistogramRow:
    """Compare the counts (pieces, B) of the three sets."""
    totals = {name: each.sum(axis=0) for name, each in counts.items()}
    train, held_out = counts["train"], totals["held_out"]
    real = [between_histograms(train[draw].sum(axis=0), held_out) for draw in draws]
    return HistogramRow(
        label,
        **{name: BinShares.of(bins, each) for name, each in totals.items()},
        distance=between_histograms(totals["generated"], held_out),
        real_distance=_spreads(real),
        bins=bins.tolist(),
    )


def _defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _mean_and_sd(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and sample standard deviation; NaN where there are too few values."""
    return (
        float(values.mean()) if len(values) else float("nan"),
        float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
    )


def _spreads(distances: Sequence[Distance]) -> DistanceSpread:
    """Summarize the distances of all draws, as far as they are defined."""
    overlap = _defined(np.array([each.overlap for each in distances]))
    divergence = _defined(np.array([each.divergence for each in distances]))
    farthest = (overlap.min(), divergence.max()) if len(overlap) else [float("nan")] * 2
    return DistanceSpread(
        Spread(*_mean_and_sd(overlap), float(farthest[0])),
        Spread(*_mean_and_sd(divergence), float(farthest[1])),
    )
