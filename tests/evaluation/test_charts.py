"""Charts of figures: what stands in them is what was measured."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from evaluation.bootstrap import SETTINGS, Estimate
from evaluation.charts import draw_histograms, draw_likelihood, draw_statistics, svg
from evaluation.comparison import HISTOGRAMS, MEASURES, compare
from evaluation.likelihood import KindNats, SetLikelihood
from tests.folders import tune
from tests.music import EMPTY

TUNES = [tune(seed, bars=3 + seed % 7) for seed in range(12)]


@pytest.fixture(scope="module")
def result():
    """Three tunes and a piece without notes, beside four tunes."""
    return compare([*TUNES[:3], EMPTY], TUNES[3:7], TUNES[7:], seed=0)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_every_statistic_has_a_row_with_its_means(result):
    values, overlaps = draw_statistics(result).axes
    written = texts(values)
    for name, row in result.rows.items():
        its = (MEASURES | HISTOGRAMS)[name]
        place = written.index(row.label)
        for text, which in zip(
            written[place + 1 : place + 3], ("generated", "held_out"), strict=True
        ):
            mean = getattr(row, which).mean
            assert text.replace("\N{MINUS SIGN}", "-").lower() == f"{mean:.{its.digits}f}"
    assert {"mean of 4", "generated", "held-out"} <= set(written)
    assert "overlap with held-out" in texts(overlaps)


def test_what_is_not_defined_is_said_so_and_has_no_dot():
    result = compare([EMPTY], TUNES[3:7], TUNES[7:], seed=0)
    _, overlaps = draw_statistics(result).axes
    undefined = [np.isnan(row.distance.overlap) for row in result.rows.values()]
    assert texts(overlaps).count("not defined") == sum(undefined) > 0
    dots = {
        round(float(line.get_ydata()[0]))
        for line in overlaps.lines
        if line.get_marker() == "o" and np.isfinite(line.get_xdata()).all()
    }
    rows = [*result.measures.values(), *result.histograms.values()]
    assert dots == {place for place, row in enumerate(rows) if np.isfinite(row.distance.overlap)}


def test_a_dot_is_the_mean_on_a_line_from_tenth_to_tenth(result):
    values, _ = draw_statistics(result).axes
    place = list(result.measures).index("note_density")
    row = result.measures["note_density"]
    each = {
        which: np.array(getattr(row, which).values)[np.isfinite(getattr(row, which).values)]
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
    row = list(same.measures).index("note_density")
    (dot,) = (
        line
        for line in overlaps.lines
        if line.get_marker() == "o" and line.get_ydata()[0] == row and line.get_xdata()[0] < 1.01
    )
    its = same.measures["note_density"]
    distance, real = its.distance, its.real_distance
    assert dot.get_xdata()[0] == distance.overlap
    is_within = distance.overlap >= real.overlap.farthest
    assert (dot.get_markerfacecolor() == dot.get_markeredgecolor()) == is_within


def likelihood(name, kinds, value):
    """The likelihood of a set of pieces; of the model without an interval, as of one piece."""
    nan = float("nan")
    estimate = Estimate(value, value - 1, value + 1)
    per_note = {"bigram": estimate, "model": Estimate(1.0, nan, nan)}
    by_kind = {kind: KindNats(1, estimate) for kind in kinds}
    return SetLikelihood(name, 1, 1, 1, 1.0, 0, SETTINGS, per_note, {}, estimate, by_kind, [])


def test_likelihood_is_a_dot_in_an_interval_for_each_set():
    sets = [likelihood("valid", ("bar", "note"), 3.0), likelihood("test", ("note", "end"), 4.0)]
    who, kinds = draw_likelihood(sets).axes
    assert [text.get_text() for text in who.get_yticklabels()] == ["bigram", "model"]
    assert [text.get_text() for text in kinds.get_yticklabels()] == ["bar", "note", "end"]
    dots = [line.get_xdata()[0] for line in who.lines if line.get_marker() == "o"]
    assert dots == [3.0, 4.0, 1.0, 1.0]
    assert list(who.lines[0].get_xdata()) == [2.0, 4.0]
    dots = [line.get_xdata()[0] for line in kinds.lines if line.get_marker() == "o"]
    assert dots == [3.0, 3.0, 4.0, 4.0]


def test_histograms_show_the_shares_of_both_sets(result):
    panels = draw_histograms(result).axes
    assert len(panels) == len(HISTOGRAMS)
    for axes, row in zip(panels, result.histograms.values(), strict=True):
        assert axes.get_title(loc="left") == row.label
        shares = [np.array(getattr(row, which).shares) for which in ("generated", "held_out")]
        shown = np.maximum(*shares) >= 0.004
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(
            np.concatenate([each[shown] for each in shares])
        )
        labels = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.get_xticklabels()]
        assert [float(label) for label in labels] == np.array(row.bins)[shown].tolist()


def test_histograms_of_nothing_say_so():
    panels = draw_histograms(compare([EMPTY], [EMPTY], [EMPTY])).axes
    assert all("not defined" in texts(axes) for axes in panels)


def test_svg_is_whole_dark_where_the_screen_is_and_the_same_again(result):
    text = svg(draw_statistics(result))
    assert text == svg(draw_statistics(result))
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    written = [each.text for each in root.iter() if each.tag.endswith("}text")]
    assert "pitch-class entropy, bits" in written
    assert "@media (prefers-color-scheme: dark)" in text
    drawn = text.partition("</style>")[2]
    assert "var(--c" in drawn
    assert not re.search("#[0-9a-f]{6}\\b", drawn)  # every color has its dark one
    used = set(re.findall(r"var\((--c\d)\)", drawn))
    assert used <= set(re.findall(r"(--c\d):", text))
