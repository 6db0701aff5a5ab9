"""Pictures of attention: which tokens each head looks at."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from data.tokens.vocabulary import Kind, Vocabulary

# Inches.
_TOKEN_SIZE, _LABEL_ROOM, _PANEL_GAP, _TITLE_HEIGHT = 0.085, 0.55, 0.12, 0.27
_LABEL_POINTS, _LINE = 5, "#5B6570"
_CELL, _CELL_POINTS = 1.5, 6.5  # of `draw_heads`: TensorBoard's cards are some 350 pixels wide


def draw_attention(
    maps: NDArray[np.floating], labels: Sequence[str], layers: Sequence[str]
) -> Figure:
    """Draw attention weights from white (0) to dark (1): a column per layer, a row per head.

    Shades follow the square root of the weights, so that a share of 1% is still seen. The maps,
    (L, H, T, T), hold the weight of each query (down) on each key (across).
    """
    n_layer, n_head, n_token, _ = maps.shape
    side = max(2.0, _TOKEN_SIZE * n_token)
    step, total = side + _PANEL_GAP, n_head * (side + _PANEL_GAP) + _LABEL_ROOM + _TITLE_HEIGHT
    width = n_layer * step + _LABEL_ROOM
    figure = Figure(figsize=(width, total), facecolor="white")
    starts = [at for at, label in enumerate(labels) if label.startswith("Bar ") or " s" in label]
    for layer, head in np.ndindex(n_layer, n_head):
        left, floor = _LABEL_ROOM + layer * step, total - _TITLE_HEIGHT - (head + 1) * step
        axes = figure.add_axes((left / width, floor / total, side / width, side / total))
        axes.imshow(np.sqrt(maps[layer, head]), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.vlines([at - 0.5 for at in starts], -0.5, n_token - 0.5, color=_LINE, lw=0.4)
        axes.hlines([at - 0.5 for at in starts], -0.5, n_token - 0.5, color=_LINE, lw=0.4)
        axes.set(xticks=[], yticks=[])
        # labels at the edges only, and as plain text: they take time, and ticks six times as long
        for at, label in enumerate(labels if head == n_head - 1 else ()):
            axes.text(at, n_token, label, size=_LABEL_POINTS, rotation=90, ha="center", va="top")
        for at, label in enumerate(labels if layer == 0 else ()):
            axes.text(-1, at, label, size=_LABEL_POINTS, ha="right", va="center")
        axes.spines[:].set(color=_LINE, lw=0.4)
        axes.text(0.98, 0.97, f"head {head + 1}", transform=axes.transAxes, ha="right", va="top")
        if head == 0:
            axes.set_title(layers[layer], size=11, weight="bold")
    figure.text(0.005, 1 - 0.1 / total, "looks ↓  at →", va="top", size=7)
    return figure


def draw_heads(maps: NDArray[np.floating], labels: Sequence[str], title: str) -> Figure:
    """Draw the heads of one layer, two a row, small, and with labels to be read as they are.

    The maps are (H, T, T), otherwise as those of `draw_attention`.
    """
    rows = -(-len(maps) // 2)
    width, height = _LABEL_ROOM + 2 * _CELL, _TITLE_HEIGHT + rows * _CELL + _LABEL_ROOM
    figure = Figure(figsize=(width, height), facecolor="white")
    size = (_CELL - 0.05) / width, (_CELL - 0.05) / height
    for head, weights in enumerate(maps):
        row, column = divmod(head, 2)
        left = _LABEL_ROOM + column * _CELL
        floor = height - _TITLE_HEIGHT - (row + 1) * _CELL
        axes = figure.add_axes((left / width, floor / height, *size))
        axes.imshow(np.sqrt(weights), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set(xticks=[], yticks=[])
        axes.text(0.98, 0.97, f"head {head + 1}", transform=axes.transAxes, ha="right", va="top")
        style: dict[str, Any] = {"size": _CELL_POINTS}
        for at, label in enumerate(labels if row == rows - 1 else ()):
            axes.text(at, len(labels), label, rotation=90, ha="center", va="top", **style)
        for at, label in enumerate(labels if column == 0 else ()):
            axes.text(-1, at, label, ha="right", va="center", **style)
    figure.text(0.02, 1 - 0.1 / height, f"{title}: looks ↓  at →", va="top", size=8)
    return figure


def token_labels(ids: NDArray[np.int64], vocabulary: Vocabulary, first_bar: int = 1) -> list[str]:
    """Return a label for each id: bars by number (`Bar 16`, `15 s`), else what the id means.

    The ids, (T,), begin at Start, or at a bar; `first_bar` is their first but for an upbeat.
    """
    kinds = vocabulary.kind_of[ids[:3]].tolist()
    numbers = itertools.count(first_bar - (kinds == [Kind.START, Kind.BAR, Kind.LENGTH]))
    return [
        (f"Bar {next(numbers)}" if vocabulary.grid.has_meter else f"{next(numbers) - 1} s")
        if vocabulary.kind_of[token] == Kind.BAR
        else vocabulary.describe(token)
        for token in ids.tolist()
    ]
