"""Pictures as SVG, measured in pixels: boxes and text."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

Style = str | float  # the value of an SVG attribute
INK, LINE = "#1d2329", "#5B6570"
TEXT_SIZE, SMALL_SIZE, TITLE_SIZE = 15, 13, 22


def svg(width: int, height: int, parts: Sequence[str]) -> str:
    """Return a white picture of this size in pixels, with parts on it, the last one on top."""
    size = f'width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}"'
    ground = f'<rect {size} fill="#ffffff"/>'
    return "\n".join([f'{head} font-family="DejaVu Sans, sans-serif">', ground, *parts, "</svg>\n"])


def boxes(
    left: ArrayLike, top: ArrayLike, right: ArrayLike, bottom: ArrayLike, **style: Style
) -> str:
    """Return rectangles whose edges broadcast to (N,), in whole pixels and at least one wide."""
    edges = np.rint(np.stack(np.broadcast_arrays(*np.atleast_1d(left, top, right, bottom))))
    edges[2:] = np.maximum(edges[2:], edges[:2] + 1)
    path = "".join(f"M{x:g} {y:g}H{end:g}V{low:g}H{x:g}z" for x, y, end, low in edges.T.tolist())
    return f'<path d="{path}"{_attributes(style)}/>' if path else ""


def text(x: float, y: float, words: str, **style: Style) -> str:
    """Return words in one line; (x, y) is the middle of its left edge."""
    place: dict[str, Style] = {"x": round(x, 1), "y": round(y, 1), "dy": "0.36em"}
    return f"<text{_attributes(place | _PLAIN | style)}>{escape(words)}</text>"


def legend(x: float, y: float, entries: Sequence[tuple[str, str]]) -> str:
    """Return a line of colors, each before its name; (x, y) is as in `text`."""
    words = "".join(
        f'<tspan dx="{26 * bool(number)}" fill="{color}" font-size="22">■</tspan>'
        f'<tspan dx="8">{escape(name)}</tspan>'
        for number, (color, name) in enumerate(entries)
    )
    place: dict[str, Style] = {"x": round(x, 1), "y": round(y, 1), "dy": "0.36em"}
    return f"<text{_attributes(place | _PLAIN)}>{words}</text>"


_PLAIN: dict[str, Style] = {"font_size": TEXT_SIZE, "fill": INK}


def _attributes(style: dict[str, Style]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
