"""A chart of musical statistics."""

import io
import re
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluation.comparison import SETS, Comparison, StatisticRow
from evaluation.tables import number

GROUND, INK, MUTED, FAINT, ACCENT = "#ffffff", "#1d2329", "#616b76", "#e3e7eb", "#0072b2"
# The same on a dark screen; templates/report.css has them too.
_DARK = {GROUND: "#14181c", INK: "#e4e7ea", MUTED: "#98a2ac", FAINT: "#2b3238", ACCENT: "#5ab4f0"}
# Inches.
_WIDTH, _ROW, _TOP, _BOTTOM = 9.6, 0.36, 0.75, 0.5
# Where a mean is written, beside panels from 0 to 1; how far its line is from the row; its color.
_SETS = {"generated": (-0.42, -0.13, ACCENT), "held_out": (-0.1, 0.13, INK)}
# Where the panels are, in shares of the width; each row of the first has a scale of its own.
_VALUES, _OVERLAPS = (0.42, 0.27), (0.74, 0.23)


def draw_statistics(comparison: Comparison) -> Figure:
    """Draw every statistic of generated and held-out pieces, one row each.

    On the left the values: a dot is the mean, a line goes from the lowest tenth of the pieces (of
    a histogram, of its notes) to the highest. On the right how much of the two distributions
    overlaps, on a band in which training pieces lie in the place of the generated ones.
    """
    rows = [*comparison.rows.values()]
    height = _TOP + _BOTTOM + _ROW * len(rows)
    figure = Figure(figsize=(_WIDTH, height), facecolor=GROUND)
    values, overlaps = (
        _panel(figure, (left, _BOTTOM / height, width, _ROW * len(rows) / height))
        for left, width in (_VALUES, _OVERLAPS)
    )
    for place, row in enumerate(rows):
        _draw_values(values, place, row)
        _draw_overlap(overlaps, place, row)
    for axes in (values, overlaps):
        axes.set(ylim=(len(rows) - 0.5, -0.5), yticks=[])
    values.set(xlim=(-0.04, 1.04), xticks=[])
    overlaps.set(xlim=(0, 1.02), xticks=[0, 0.5, 1])
    pieces = comparison.pieces
    for which, (x, _, color) in _SETS.items():
        _write(values, x, -1.25, SETS[which], color=color, ha="right", weight="bold")
        _write(values, x, -0.75, f"mean of {pieces[which]}", color=MUTED, ha="right", size=7.5)
    _write(values, 0.5, -1.25, "mean, lowest to highest tenth", ha="center", weight="bold")
    _write(values, 0.5, -0.75, "each row on a scale of its own", color=MUTED, ha="center", size=7.5)
    _write(overlaps, 0.5, -1.25, "overlap with held-out", ha="center", weight="bold")
    key = "band: of real pieces; filled: within it"
    _write(overlaps, 0.5, -0.75, key, color=MUTED, ha="center", size=7.5)
    return figure


def _draw_values(axes: Axes, place: int, row: StatisticRow) -> None:
    """Draw a statistic's label, its two means, and two dots with lines on a scale of their own."""
    _write(axes, -1.45, place, row.label)
    values = np.array([[*its.tenths, its.mean] for its in (row.generated, row.held_out)])
    known = values[np.isfinite(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    scaled = (values - low) / ((high - low) or 1.0)
    for (_, _, mean), (*ends, middle), (x, shift, color) in zip(
        values, scaled, _SETS.values(), strict=True
    ):
        _write(axes, x, place, number(mean, row.digits), color=color, ha="right")
        axes.plot(ends, [place + shift] * 2, color=color, lw=2, alpha=0.45)
        axes.plot(middle, place + shift, "o", color=color, ms=4.5)
    if not len(known):
        _write_undefined(axes, place)
    axes.axhline(place + 0.5, color=FAINT, lw=0.6)


def _draw_overlap(axes: Axes, place: int, row: StatisticRow) -> None:
    """Draw the band that training pieces reach with their mean, and the generated pieces."""
    value, real = row.overlap, row.real_overlap
    if np.isfinite(real.least):
        axes.barh(place, 1 - real.least, left=real.least, height=0.56, color=FAINT)
        axes.plot([real.mean] * 2, [place - 0.28, place + 0.28], color=MUTED, lw=1.2)
    if np.isfinite(value):
        face = GROUND if row.is_far else ACCENT
        axes.plot(value, place, "o", ms=6, mec=ACCENT, mfc=face, mew=1.5, clip_on=False)
    else:
        _write_undefined(axes, place)
    axes.axhline(place + 0.5, color=FAINT, lw=0.6)


def _panel(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Add Axes without a frame: left, bottom, width and height in shares of the figure."""
    axes = figure.add_axes(box, facecolor="none")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=8, labelcolor=MUTED)
    return axes


def _write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write text that no file name can turn into a formula."""
    given = {"size": 9, "color": INK, "va": "center", **style}
    axes.text(x, y, text, **given).set_parse_math(False)


def _write_undefined(axes: Axes, y: float) -> None:
    _write(axes, 0.5, y, "not defined", color=MUTED, ha="center", style="italic")


def svg(figure: Figure) -> str:
    """Return the chart as SVG that is dark where the reader's screen is.

    Text stays text, in the reader's own font; equal charts are equal text.
    """
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "etude"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>", "", file.getvalue(), flags=re.DOTALL)
    text = re.sub(r"font-family: [^;\"]*", "font-family: system-ui, sans-serif", text)
    names = {color: f"--c{number}" for number, color in enumerate(_DARK)}
    for color, name in names.items():
        text = text.replace(color, f"var({name})")
    light = "".join(f"{name}:{color};" for color, name in names.items())
    dark = "".join(f"{name}:{_DARK[color]};" for color, name in names.items())
    style = f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
    return text.replace('<style type="text/css">', f'<style type="text/css">{style}', 1)
