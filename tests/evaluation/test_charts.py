"""Charts of figures: what stands in them is what was measured."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from evaluation.charts import draw_statistics, svg
from evaluation.comparison import compare
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
    for row in result.rows.values():
        place = written.index(row.label)
        for text, which in zip(
            written[place + 1 : place + 3], ("generated", "held_out"), strict=True
        ):
            mean = getattr(row, which).mean
            assert text.replace("\N{MINUS SIGN}", "-").lower() == f"{mean:.{row.digits}f}"
    assert {"mean of 4", "generated", "held-out"} <= set(written)
    assert "overlap with held-out" in texts(overlaps)


def test_what_is_not_defined_is_said_so_and_has_no_dot():
    result = compare([EMPTY], TUNES[3:7], TUNES[7:], seed=0)
    _, overlaps = draw_statistics(result).axes
    undefined = [np.isnan(row.overlap) for row in result.rows.values()]
    assert texts(overlaps).count("not defined") == sum(undefined) > 0
    dots = {
        round(float(line.get_ydata()[0]))
        for line in overlaps.lines
        if line.get_marker() == "o" and np.isfinite(line.get_xdata()).all()
    }
    rows = enumerate(result.rows.values())
    assert dots == {place for place, row in rows if np.isfinite(row.overlap)}


def test_a_dot_is_the_mean_on_a_line_from_tenth_to_tenth(result):
    values, _ = draw_statistics(result).axes
    place = list(result.rows).index("note_density")
    row = result.rows["note_density"]
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
    row = list(same.rows).index("note_density")
    (dot,) = (
        line
        for line in overlaps.lines
        if line.get_marker() == "o" and line.get_ydata()[0] == row and line.get_xdata()[0] < 1.01
    )
    found = same.rows["note_density"]
    assert dot.get_xdata()[0] == found.overlap
    is_within = found.overlap >= found.real_overlap.least
    assert (dot.get_markerfacecolor() == dot.get_markeredgecolor()) == is_within


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
