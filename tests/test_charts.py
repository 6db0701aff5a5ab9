"""Charts of figures: what stands in them is what was measured."""

import numpy as np
import pytest

from data.charts import draw_statistics
from data.compare import HISTOGRAMS, MEASURES, compare
from tests.folders import tune
from tests.music import EMPTY

TUNES = [tune(seed, bars=3 + seed % 7) for seed in range(12)]


@pytest.fixture(scope="module")
def result():
    """Three tunes and a piece without notes, beside four tunes; none has four parts."""
    return compare([*TUNES[:3], EMPTY], TUNES[3:7], TUNES[7:], seed=0)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_every_statistic_has_a_row_with_its_means(result):
    values, overlaps = draw_statistics(result).axes
    written = texts(values)
    for name, its in (MEASURES | HISTOGRAMS).items():
        row = (result["measures"] | result["histograms"])[name]
        place = written.index(row["label"])
        for text, which in zip(
            written[place + 1 : place + 3], ("generated", "held_out"), strict=True
        ):
            mean = row[which]["mean"]
            assert text.replace("\N{MINUS SIGN}", "-").lower() == f"{mean:.{its.digits}f}"
    assert {"mean of 4", "generated", "held-out"} <= set(written)
    assert "overlap with held-out" in texts(overlaps)


def test_what_is_not_defined_is_said_so_and_has_no_dot(result):
    values, overlaps = draw_statistics(result).axes
    undefined = [np.isnan(row["generated"]["mean"]) for row in result["measures"].values()]
    assert sum(undefined) >= 4  # what four parts have
    assert texts(values).count("not defined") == sum(
        bool(np.isnan([row[which]["mean"] for which in ("generated", "held_out")]).all())
        for row in result["measures"].values()
    )
    dots = {
        round(float(line.get_ydata()[0]))
        for line in overlaps.lines
        if line.get_marker() == "o" and np.isfinite(line.get_xdata()).all()
    }
    rows = [*result["measures"].values(), *result["histograms"].values()]
    assert dots == {
        place for place, row in enumerate(rows) if np.isfinite(row["distance"]["overlap"])
    }


def test_a_dot_is_the_mean_on_a_line_from_tenth_to_tenth(result):
    values, _ = draw_statistics(result).axes
    place = list(MEASURES).index("note_density")
    row = result["measures"]["note_density"]
    each = {
        which: np.array(row[which]["values"])[np.isfinite(row[which]["values"])]
        for which in ("generated", "held_out")
    }
    ends = np.quantile(each["generated"], (0.1, 0.9))
    both = np.concatenate([ends, np.quantile(each["held_out"], (0.1, 0.9))])
    both = np.append(both, [its.mean() for its in each.values()])
    expected = (np.array([*ends, each["generated"].mean()]) - both.min()) / np.ptp(both)
    line, dot = (line for line in values.lines if line.get_ydata()[0] == place - 0.13)
    assert [*line.get_xdata(), *dot.get_xdata()] == pytest.approx(expected)


def test_a_dot_is_filled_where_real_pieces_are_as_far():
    same = compare(TUNES[:6], TUNES[6:], TUNES[:6])
    _, overlaps = draw_statistics(same).axes
    row = list(MEASURES).index("note_density")
    (dot,) = (
        line
        for line in overlaps.lines
        if line.get_marker() == "o" and line.get_ydata()[0] == row and line.get_xdata()[0] < 1.01
    )
    distance, real = (same["measures"]["note_density"][k] for k in ("distance", "real_distance"))
    assert dot.get_xdata()[0] == distance["overlap"]
    is_within = distance["overlap"] >= real["overlap"]["farthest"]
    assert (dot.get_markerfacecolor() == dot.get_markeredgecolor()) == is_within
