"""Compare two sets of pieces by every musical statistic.

What comes out is plain data, for a table, a JSON file or a page.
"""

from __future__ import annotations

import operator
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data import keys
from data.score import Score
from evaluation import metrics
from evaluation import voice_leading as counterpoint
from evaluation.distances import Distance, between_histograms, between_values

DRAWS = 20  # of real pieces: worse than all of them is worse than chance would be once in 21
COLUMNS = 100  # of the table
SETS = {"generated": "generated", "held_out": "held-out", "train": "training"}


@dataclass(frozen=True)
class Measure:
    """A number of each piece.

    Attributes:
        label: with the unit.
        of: what computes it.
        digits: so many are printed after the point.
    """

    label: str
    of: Callable[[Score], float]
    digits: int


@dataclass(frozen=True)
class Histogram:
    """Counts of each piece, added up over a set of them.

    Attributes:
        label: with the unit.
        of: counts by whole numbers.
        is_time: whether those are grid steps, to be told in beats (quarter notes) or seconds.
    """

    label: str
    of: Callable[[Score], Counter[int]]
    is_time: bool
    digits: int = 2


MEASURES = {
    "pitch_class_entropy": Measure("pitch-class entropy, bits", metrics.pitch_class_entropy, 2),
    "scale_consistency": Measure("scale consistency", metrics.scale_consistency, 3),
    "pitch_range": Measure("pitch range, semitones", metrics.pitch_range, 1),
    "polyphony": Measure("polyphony, pitches", metrics.polyphony, 2),
    "note_density": Measure("notes a second", metrics.note_density, 2),
    "groove_consistency": Measure("groove consistency", metrics.groove_consistency, 3),
    "bar_similarity": Measure("similarity of bars", metrics.bar_similarity, 3),
    "repeated_material": Measure("notes in repeated runs", metrics.repeated_material, 3),
    "parallel_fifths": Measure("parallel fifths, 100 bars", counterpoint.parallel_fifths, 2),
    "parallel_octaves": Measure("parallel octaves, 100 bars", counterpoint.parallel_octaves, 2),
    "voice_crossing": Measure("crossed voices, of the time", counterpoint.voice_crossing, 3),
    "out_of_range": Measure("notes out of voice range", counterpoint.out_of_range, 3),
}
HISTOGRAMS = {
    "intervals": Histogram("intervals, semitones", metrics.intervals, is_time=False),
    "durations": Histogram("durations, beats", metrics.durations, is_time=True),
    "above_tonic": Histogram("semitones above the tonic", keys.above_tonic, is_time=False),
}


def compare(
    generated: Sequence[Score], held_out: Sequence[Score], train: Sequence[Score], seed: int = 0
) -> dict[str, Any]:
    """How generated pieces measure, beside held-out ones, and how far the two are apart.

    Two sets of real pieces are apart too. So the distance of training pieces from the held-out
    ones stands beside: of DRAWS draws, with repeats, of as many as were generated.

    Args:
        generated, held_out, train: pieces on one grid, one at least of each.
        seed: of the draws.

    Returns:
        `pieces`: how many of each of SETS. `measures` and `histograms`, by name: the label; for
        each set `mean`, `sd` (over pieces; of a histogram over notes), and `values`, one a piece,
        with how many are `undefined`, or `shares` of each of the `bins`; `distance` of generated
        from held-out pieces, an `overlap` and a `divergence` (evaluation/distances.py); and
        `real_distance`: `mean` and `sd` of each over the draws, and the `farthest`. What is not
        defined is NaN and stays out of every mean.
    """
    sets = dict(zip(SETS, (generated, held_out, train), strict=True))
    draws = np.random.default_rng(seed).integers(len(train), size=(DRAWS, len(generated)))
    return {
        "pieces": {name: len(pieces) for name, pieces in sets.items()},
        "measures": {
            name: _compared_values(measure, sets, draws) for name, measure in MEASURES.items()
        },
        "histograms": {
            name: _compared_histograms(histogram, sets, draws)
            for name, histogram in HISTOGRAMS.items()
        },
    }


def is_far(row: Mapping[str, Any]) -> bool:
    """Whether generated pieces overlap less with held-out ones than in any draw of real ones.

    `row` is a measure or a histogram of what `compare` gives; False where that is not defined.
    """
    return bool(row["distance"]["overlap"] < row["real_distance"]["overlap"]["farthest"])


def table(result: Mapping[str, Any]) -> str:
    """What `compare` gives, for people, in COLUMNS columns."""
    head = ("generated", "held-out", "overlap", "real", "JS", "real")
    lines = [(" " * 27 + "{:>13}{:>15}{:>10}{:>12}{:>8}{:>13}").format(*head)]
    rows = result["measures"] | result["histograms"]
    for name, measure in (MEASURES | HISTOGRAMS).items():
        row, digits = rows[name], measure.digits
        figures = [
            f"{row[which]['mean']:>8.{digits}f} ±{row[which]['sd']:<5.{digits}f}"
            for which in ("generated", "held_out")
        ]
        lines.append(f"{row['label']:27}{''.join(figures)}{_distances_text(row)}")
    pieces = result["pieces"]
    legend = (
        f"Mean ± standard deviation over {pieces['generated']} generated and {pieces['held_out']} "
        "held-out pieces, of the last three over their notes. Overlap: 1 where the two "
        "are alike, 0 where they share nothing; JS, in bits: the other way round. Real: training "
        f"pieces in place of the generated, {DRAWS} draws of as many. *: farther from the held-out "
        "pieces than in any of these."
    )
    return "\n".join([*lines, "", textwrap.fill(legend, COLUMNS), *_undefined_text(result)])


def _distances_text(row: Mapping[str, Any]) -> str:
    """Overlap and divergence, each beside the real one, with a mark where it is beyond that."""
    text = ""
    for kind, is_nearer, digits in (("overlap", operator.gt, 2), ("divergence", operator.lt, 3)):
        value, real = row["distance"][kind], row["real_distance"][kind]
        mark = "*" if is_nearer(real["farthest"], value) else " "
        text += f"{value:>8.{digits}f}{mark}{real['mean']:>6.{digits}f} ±{real['sd']:.{digits}f}"
    return text


def _undefined_text(result: Mapping[str, Any]) -> list[str]:
    """What is not defined for how many pieces, a line or more for each set with such pieces."""
    lines = []
    for which, called in SETS.items():
        labels: dict[int, list[str]] = {}
        for row in result["measures"].values():
            labels.setdefault(row[which]["undefined"], []).append(row["label"].split(",")[0])
        told = [f"{', '.join(names)} of {count}" for count, names in labels.items() if count]
        if told:
            head = f"Not defined, of {result['pieces'][which]} {called} pieces: "
            lines += textwrap.wrap(f"{head}{'; '.join(told)}; left out.", COLUMNS)
    return lines


def _compared_values(
    measure: Measure, sets: Mapping[str, Sequence[Score]], draws: NDArray[np.int64]
) -> dict[str, Any]:
    values = {name: np.array([measure.of(s) for s in pieces]) for name, pieces in sets.items()}
    held_out = _defined(values["held_out"])
    return {
        "label": measure.label,
        **{
            name: {
                **_mean_and_sd(_defined(each)),
                "undefined": int(np.isnan(each).sum()),
                "values": each.tolist(),
            }
            for name, each in values.items()
        },
        **_distances(
            between_values(_defined(values["generated"]), held_out),
            [between_values(_defined(values["train"][draw]), held_out) for draw in draws],
        ),
    }


def _compared_histograms(
    histogram: Histogram, sets: Mapping[str, Sequence[Score]], draws: NDArray[np.int64]
) -> dict[str, Any]:
    counters = {name: [histogram.of(score) for score in pieces] for name, pieces in sets.items()}
    keys = sorted({key for each in counters.values() for counter in each for key in counter})
    counts = {  # (pieces, bins)
        name: np.array([[c[key] for key in keys] for c in each], dtype=np.int64)
        for name, each in counters.items()
    }
    grid = sets["held_out"][0].grid
    bins = np.array(keys, dtype=np.int64) / (grid.steps_per_beat if histogram.is_time else 1)
    held_out = counts["held_out"].sum(axis=0)
    return {
        "label": histogram.label,
        "bins": bins.tolist(),
        **{
            name: {
                **_mean_and_sd(np.repeat(bins, each.sum(axis=0))),
                "shares": (each.sum(axis=0) / max(each.sum(), 1)).tolist(),
            }
            for name, each in counts.items()
        },
        **_distances(
            between_histograms(counts["generated"].sum(axis=0), held_out),
            [between_histograms(counts["train"][draw].sum(axis=0), held_out) for draw in draws],
        ),
    }


def _defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _mean_and_sd(values: NDArray[np.float64]) -> dict[str, float]:
    """NaN where there are too few values."""
    return {
        "mean": float(values.mean()) if len(values) else float("nan"),
        "sd": float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
    }


def _distances(distance: Distance, real: Sequence[Distance]) -> dict[str, Any]:
    """Those of the generated pieces, and what those of the real draws come to."""
    overlap, divergence = (_defined(np.array(each)) for each in zip(*real, strict=True))
    return {
        "distance": distance._asdict(),
        "real_distance": {
            "overlap": {
                **_mean_and_sd(overlap),
                "farthest": float(overlap.min()) if len(overlap) else float("nan"),
            },
            "divergence": {
                **_mean_and_sd(divergence),
                "farthest": float(divergence.max()) if len(divergence) else float("nan"),
            },
        },
    }
