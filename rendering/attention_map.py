"""Pictures of attention: which tokens each head looks at."""

import itertools
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common.arrays import Ints
from data.tokens.labels import describe
from data.tokens.vocabulary import Kind, Vocabulary
from rendering.svg import LINE, Style, boxes, svg, text

# Pixels.
_TOKEN, _LEAST_PANEL, _LABEL_ROOM, _GAP, _TITLE_HEIGHT = 10, 240, 66, 14, 36
_LABEL_SIZE = 8.5
_DARK, _SHADES = "#08306B", 64
_END: dict[str, Style] = {"text_anchor": "end"}


def draw_attention(maps: NDArray[np.floating], labels: Sequence[str], layers: Sequence[str]) -> str:
    """Draw attention weights from white (0) to dark (1): a column a layer, a row a head.

    Shades follow the square root of the weights, so that a weight of 1% can still be seen. The maps
    (L, H, T, T) have the weight of each query (down) on each key (across). The result is SVG.
    """
    n_layer, n_head, n_token, _ = maps.shape
    token = max(_TOKEN, -(-_LEAST_PANEL // n_token))
    side = token * n_token
    is_bar = [re.fullmatch(r"Bar .*|\d+ s", name) is not None for name in labels]
    starts = np.flatnonzero(is_bar)
    parts = [text(4, 16, "looks ↓  at →", font_size=12)]
    for layer, head in np.ndindex(n_layer, n_head):
        left = _LABEL_ROOM + layer * (side + _GAP)
        top = _TITLE_HEIGHT + head * (side + _GAP)
        parts += _panel(left, top, token, maps[layer, head], f"head {head + 1}")
        x, y = left + starts * token, top + starts * token
        style: dict[str, Style] = {"fill": LINE, "fill_opacity": 0.6}
        parts += [boxes(x, top, x + 1, top + side, **style)]
        parts += [boxes(left, y, left + side, y + 1, **style)]
        for at, label in enumerate(labels):
            middle = (at + 0.5) * token
            if layer == 0:
                parts.append(text(left - 3, top + middle, label, font_size=_LABEL_SIZE, **_END))
            if head == n_head - 1:
                x, y = left + middle, top + side + 3
                turned = f"rotate(-90 {x:.1f} {y:.1f})"
                parts.append(text(x, y, label, font_size=_LABEL_SIZE, transform=turned, **_END))
        if head == 0:
            title: dict[str, Style] = {"font_weight": "bold", "text_anchor": "middle"}
            parts += [text(left + side / 2, 16, layers[layer], **title)]
    width, height = _LABEL_ROOM + n_layer * (side + _GAP), n_head * (side + _GAP)
    return svg(width, _TITLE_HEIGHT + height + _LABEL_ROOM, parts)


def _panel(
    left: float, top: float, token: float, weights: NDArray[np.floating], name: str
) -> list[str]:
    """Draw the weights of one head (T, T), each as a square of `token` pixels."""
    side = token * len(weights)
    frame: dict[str, Style] = {"fill": "none", "stroke": LINE, "stroke_width": 0.7}
    parts = [boxes(left, top, left + side, top + side, **frame)]
    shades = np.rint(_SHADES * np.sqrt(weights))
    for shade in np.unique(shades[shades > 0]).tolist():
        query, key = np.nonzero(shades == shade)
        x, y = left + key * token, top + query * token
        style: dict[str, Style] = {"fill": _DARK, "fill_opacity": shade / _SHADES}
        parts.append(boxes(x, y, x + token, y + token, **style))
    return [*parts, text(left + side - 5, top + 11, name, font_size=12, **_END)]


def token_labels(ids: Ints, vocabulary: Vocabulary) -> list[str]:
    """Return a label for each id: bars by number (`Bar 16`, `15 s`), all others by what they mean.

    The ids (T,) begin with Start; an upbeat is bar 0.
    """
    kinds = vocabulary.kind_of[ids[:3]].tolist()
    numbers = itertools.count(1 - (kinds == [Kind.START, Kind.BAR, Kind.LENGTH]))
    return [
        (f"Bar {next(numbers)}" if vocabulary.grid.has_meter else f"{next(numbers) - 1} s")
        if vocabulary.kind_of[token] == Kind.BAR
        else describe(vocabulary, token)
        for token in ids.tolist()
    ]
