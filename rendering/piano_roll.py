"""Piano rolls: a Score as a picture, colored by instrument or by surprise."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pretty_midi
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from data.instrument_names import instrument_name
from data.score import DRUMS, MOST_PROGRAM, Score

# Okabe and Ito's colors, which color-blind readers tell apart; past six programs they repeat.
_PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_SEED, _SEED_TINT = "#343C46", 0.2  # a seed note: this, with so much of its program's color
_SEED_GROUND, _BLACK_KEY, _LINE = "#F5ECD3", "#0F2A4710", "#5B6570"
_IS_BLACK_KEY = np.array([0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0], dtype=bool)

# Inches. A system is one line of bars, and every pitch has a row in it.
_WIDTH, _LEFT, _RIGHT, _BOTTOM, _GAP, _TEXT_LINE = 13.0, 0.45, 0.15, 0.3, 0.55, 0.27
_DRUM_NAMES = 1.1  # more room at the left where there are drums
# Quarter notes or seconds per system, and systems; longer pieces get denser systems.
_SYSTEM_BEATS, _MAX_SYSTEMS = {"beats": 32, "seconds": 16}, 16
_MAX_NUMBERS = 24  # bar numbers per system
_LEGEND_COLUMNS = 6
# Rows. A note is a little higher than its row, a drum's row higher than a pitch's.
_NOTE_HEIGHT, _DRUM_ROW = 1.25, 1.8
# Surprise: pale where a note was expected, through amber to dark red, ever darker.
MAX_NATS = 8
_SURPRISE = LinearSegmentedColormap.from_list(
    "surprise", ["#A6BDD8", "#F2B33D", "#D9542B", "#8E0F2E", "#3D0026"]
)
_NOT_SCORED, _LIST_COLUMNS = "#FFFFFF", 2
_ALL_OPEN = np.zeros(0, dtype=bool)


def draw_piano_roll(
    score: Score,
    is_closed: NDArray[np.bool_] = _ALL_OPEN,
    is_given: NDArray[np.bool_] | None = None,
    title: str = "",
    continues: str = "the model goes on",
) -> Figure:
    """Draw pitch over time, one color per program, in as many systems as the bars need.

    An upbeat is bar 0; on a grid of seconds the vertical lines are seconds. Programs that hold the
    same pitch at the same time share its row. Drums stand below the pitches, one row per drum.
    Grid steps (S,) that `is_closed` names hold nothing new: their ground is shaded, and where it
    first ends `continues` is written. Notes (N,) that `is_given` names are dark, which by default
    are those that begin on shaded ground.
    """
    notes = score.notes
    color_of = {
        program: _PALETTE[index % len(_PALETTE)]
        for index, program in enumerate(np.unique(notes["program"]).tolist())
    }
    is_dark = np.isin(notes["onset"], np.flatnonzero(is_closed)) if is_given is None else is_given
    is_seed = is_closed.any() and bool(np.all(notes["onset"][is_dark] < is_closed.argmin()))
    is_seed |= bool(is_closed.size and is_closed.all())
    entries = [Patch(color=_SEED, label="seed" if is_seed else "kept")] if is_dark.any() else []
    for program, color in color_of.items():
        if is_seed or not is_dark[notes["program"] == program].all():
            entries.append(Patch(color=color, label=instrument_name(program, score.grid)))
    colors = np.array([to_rgb(color_of[p]) for p in notes["program"].tolist()]).reshape(-1, 3)
    colors[is_dark] = (1 - _SEED_TINT) * np.array(to_rgb(_SEED)) + _SEED_TINT * colors[is_dark]
    head = _TEXT_LINE * -(-len(entries) // _LEGEND_COLUMNS)
    figure, (left, top) = _draw_roll(score, colors, is_closed, title, continues, head)
    style: dict[str, Any] = {"frameon": False, "fontsize": 9, "borderpad": 0.2, "handlelength": 1.2}
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (left, top), "borderaxespad": 0}
    figure.legend(handles=entries, ncols=_LEGEND_COLUMNS, **place, **style)
    return figure


def _draw_roll(
    score: Score,
    colors: NDArray[np.float64],
    is_closed: NDArray[np.bool_] = _ALL_OPEN,
    title: str = "",
    continues: str = "",
    head: float = 0.0,
    foot: float = 0.0,
) -> tuple[Figure, tuple[float, float]]:
    """Draw notes in these colors, (N, 3) RGB: one Axes per system, from the top down.

    `head` and `foot` are inches to leave between the title and the systems, and below them. Returns
    the figure, and the upper left corner of the head as fractions of its width and height.
    """
    notes = score.notes
    row, row_names = _rows(notes)
    bottom, top = _edges(notes, row)
    middle = 60.0 if not len(row) else (row.min() + row.max()) / 2
    reach = max(8.0, np.ptp(row) / 2 + 2.5) if len(row) else 8.0
    systems = _systems(score)
    widest = max(end - start for start, end in systems)
    title_height = _TEXT_LINE * bool(title)
    header = title_height + head + 0.3
    height = min(2 * reach * (0.085 if len(systems) == 1 else 0.068), 6.0)
    total = header + len(systems) * (height + _GAP) - _GAP + _BOTTOM + foot
    left = _LEFT + _DRUM_NAMES * bool(np.any(notes["program"] == DRUMS))

    padded = np.concatenate([[False], is_closed, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)
    figure = Figure(figsize=(_WIDTH, total), facecolor="white")
    if not len(notes):
        figure.text(0.5, 0.5, "no notes", ha="center", va="center", size=13, color=_LINE)
    heading = figure.text(left / _WIDTH, 1 - 0.08 / total, title, va="top", size=13, weight="bold")
    heading.set_parse_math(False)  # a file name may hold dollar signs
    onset = notes["onset"].astype(np.int64)
    # A gap after each note, so that repeated notes do not run together.
    note_end = onset + notes["duration"] - np.minimum(0.25 * notes["duration"], 0.004 * widest)
    for index, (start, end) in enumerate(systems):
        floor = total - header - index * (height + _GAP) - height
        axes = figure.add_axes(
            (left / _WIDTH, floor / total, 1 - (left + _RIGHT) / _WIDTH, height / total)
        )
        axes.set(xlim=(start, start + widest), ylim=(middle - reach, middle + reach))
        axes.set_yticks(list(row_names), list(row_names.values()))
        axes.tick_params(length=0, labelsize=8)
        axes.spines[:].set_visible(False)
        _draw_ground(axes, notes, start, end, edges)
        _draw_bars(axes, score, start, end, edges, continues)
        here = (onset < end) & (note_end > start)
        begin, stop = np.maximum(onset[here], start), np.minimum(note_end[here], end)
        _add_boxes(axes, begin, stop, bottom[here], top[here], facecolor=colors[here], zorder=3)
    return figure, (left / _WIDTH, 1 - (title_height + 0.06) / total)


def _systems(score: Score) -> list[tuple[int, int]]:
    """Return the first and last step of each system: whole bars, nearly equal in length."""
    lines = score.bar_starts
    if not len(score.bars):
        return [(0, score.grid.bar_steps(*score.grid.default_meter))]
    beats = lines[-1] / score.grid.steps_per_beat
    count = int(np.clip(np.rint(beats / _SYSTEM_BEATS[score.grid.kind]), 1, _MAX_SYSTEMS))
    first_bars = np.unique(lines[:-1] * count // lines[-1], return_index=True)[1]
    # The last notes may ring on, but showing an hour of it would leave no room for the others.
    end = min(score.end_step, int(lines[-1] + score.bars["length"][-1] // 4))
    return list(itertools.pairwise([*lines[first_bars].tolist(), end]))


def _rows(notes: NDArray[np.void]) -> tuple[NDArray[np.float64], dict[float, str]]:
    """Return (N,) the row of each note, its pitch or for drums one below all, and row names."""
    row = notes["pitch"].astype(np.float64)
    is_drum = notes["program"] == DRUMS
    low, high = row[~is_drum].min(initial=128.0), row[~is_drum].max(initial=-1.0)
    names = {float(c): f"C{c // 12 - 1}" for c in range(0, 128, 12) if low - 2 <= c <= high + 2}
    drums = np.unique(row[is_drum])
    drum_rows = low - 3 - _DRUM_ROW * np.arange(len(drums), 0, -1)
    row[is_drum] = drum_rows[np.searchsorted(drums, row[is_drum])]
    for at, drum in zip(drum_rows.tolist(), drums.tolist(), strict=True):
        names[at] = pretty_midi.note_number_to_drum_name(drum) or f"Drum {drum:.0f}"
    return row, names


def _edges(
    notes: NDArray[np.void], row: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (N,) bottom and top of each note; programs that meet in a row share its height."""
    order = np.lexsort((notes["onset"], row))
    onset = notes["onset"][order].astype(np.int64)
    end = onset + notes["duration"][order]
    # One time line for all rows, row after row, on which no two rows touch.
    offset = np.unique(row[order], return_inverse=True)[1] * (end.max(initial=0) + 1)
    latest = np.maximum.accumulate(offset + end)
    # A meeting is a run of notes each of which begins before all the earlier ones have ended.
    is_new = np.ones(len(notes), dtype=bool)
    is_new[1:] = (offset + onset)[1:] >= latest[:-1]
    meeting = np.empty(len(notes), dtype=np.int64)
    meeting[order] = np.cumsum(is_new) - 1
    size = MOST_PROGRAM + 1
    parts, part = np.unique(meeting * size + notes["program"], return_inverse=True)
    _, first, count = np.unique(parts // size, return_index=True, return_counts=True)
    rank, share = part - first[meeting], _NOTE_HEIGHT / count[meeting]
    top = row + _NOTE_HEIGHT / 2 - rank * share
    return top - share, top


def _draw_ground(
    axes: Axes, notes: NDArray[np.void], start: int, end: int, closed: NDArray[np.int64]
) -> None:
    """Shade what is closed, of which (N, 2) are the edges, and the black keys; mark every C."""
    for begin, stop in closed.clip(start, end).tolist():
        if begin < stop:
            _add_boxes(axes, begin, stop, *axes.get_ylim(), color=_SEED_GROUND, zorder=0)
    pitch = notes["pitch"][notes["program"] != DRUMS].astype(np.int64)
    if len(pitch):
        keys = np.arange(pitch.min() - 2, pitch.max() + 3)
        black = keys[_IS_BLACK_KEY[keys % 12]]
        _add_boxes(axes, start, end, black - 0.5, black + 0.5, facecolor=_BLACK_KEY, zorder=1)
        axes.hlines(keys[keys % 12 == 0] - 0.5, start, end, color=_LINE, lw=0.5, alpha=0.6)


def _draw_bars(
    axes: Axes, score: Score, start: int, end: int, closed: NDArray[np.int64], continues: str
) -> None:
    """Draw bar lines, beats, bar numbers, new meters, and where what is closed begins and ends."""
    lines, bars, low_high = score.bar_starts, score.bars, axes.get_ylim()
    shown = np.flatnonzero((lines[:-1] >= start) & (lines[:-1] < end))
    numbered = shown[:: 1 + len(shown) // _MAX_NUMBERS]
    is_dense = len(numbered) < len(shown)
    inner = lines[(lines >= start) & (lines <= end)]
    axes.vlines(inner, *low_high, color=_LINE, lw=0.3 if is_dense else 0.8, clip_on=False)
    beats: list[float] = []
    marks: dict[int, str] = {}
    for bar in shown.tolist():
        numerator, denominator, length = bars[bar].tolist()
        beat = 4 * score.grid.steps_per_beat / denominator
        beats.extend(lines[bar] + np.arange(0, length, beat)[1:])
        is_new = bar == 0 or bars[bar].tolist()[:2] != bars[bar - 1].tolist()[:2]
        if is_new and score.grid.has_meter:
            marks[int(lines[bar])] = f"{numerator}/{denominator}"
    if not is_dense:
        axes.vlines(beats, *low_high, color=_LINE, lw=0.4, alpha=0.3)
    edges = closed[(closed > 0) & (closed >= start) & (closed < end)]
    axes.vlines(edges, *low_high, color=_SEED, lw=2.2, zorder=4)
    for begin, stop in closed[:1].tolist():
        if begin == 0 and start <= stop < end:
            marks[stop] = f"{marks.get(stop, '')}   {continues} →".lstrip()
    for step, mark in marks.items():
        axes.text(step, low_high[1] + 0.5, mark, size=9, weight="bold", color=_SEED)
    numbers = numbered + (score.grid.has_meter and not score.has_upbeat)
    unit = "" if score.grid.has_meter else " s"
    axes.set_xticks(lines[numbered], [f"{number}{unit}" for number in numbers.tolist()])


def _add_boxes(
    axes: Axes, left: ArrayLike, right: ArrayLike, bottom: ArrayLike, top: ArrayLike, **style: Any
) -> None:
    """Add rectangles from edges that broadcast to (N,), all in one artist."""
    left, right, bottom, top = np.broadcast_arrays(*np.atleast_1d(left, right, bottom, top))
    corners = [[left, bottom], [left, top], [right, top], [right, bottom]]
    axes.add_collection(PolyCollection(list(np.moveaxis(np.array(corners), 2, 0)), lw=0, **style))


@dataclass(frozen=True)
class SystemPlace:
    """Where a system of a piano roll is in the picture, and when what is in it sounds.

    Attributes:
        top, bottom: shares of the height of the picture, from its top.
        times: (share of the width, seconds) of its first and last step and the bar lines between.
    """

    top: float
    bottom: float
    times: list[tuple[float, float]]


def system_places(figure: Figure, score: Score) -> list[SystemPlace]:
    """Return where the systems of `draw_piano_roll` are, from the top down."""
    places = []
    for (start, end), axes in zip(_systems(score), figure.axes, strict=False):
        box, widest = axes.get_position(), float(np.ptp(axes.get_xlim()))
        lines = score.bar_starts[(score.bar_starts > start) & (score.bar_starts < end)]
        steps = np.array([start, *lines.tolist(), end])
        left = box.x0 + (steps - start) / widest * box.width
        times = np.stack([left, score.step_seconds(steps)], axis=1).round(5).tolist()
        places.append(SystemPlace(round(1 - box.y1, 5), round(1 - box.y0, 5), times))
    return places


def draw_surprise(
    score: Score, nats: NDArray[np.float64], listed: Sequence[tuple[int, str]], title: str = ""
) -> Figure:
    """Draw pitch over time, from pale for expected notes to dark for surprising ones.

    A color means the same surprise in every picture; from MAX_NATS up all notes are equally dark.
    Of N notes the nats are (N,); notes without a figure (NaN) are white. `listed` has the index in
    the Score, and a line of text, of notes to point at; the first is 1.
    """
    is_known = np.isfinite(nats)
    colors = _SURPRISE(np.where(is_known, nats, 0) / MAX_NATS)[:, :3]
    colors[~is_known] = to_rgb(_NOT_SCORED)
    lines = -(-len(listed) // _LIST_COLUMNS)
    foot = _TEXT_LINE * lines + 0.35 if listed else 0.0
    figure, (left, top) = _draw_roll(score, colors, title=title, head=0.42, foot=foot)
    total = figure.get_figheight()
    systems = list(zip(_systems(score), figure.axes, strict=True))
    row = _rows(score.notes)[0]
    bold: dict[str, Any] = {"size": 9, "weight": "bold", "color": _SEED}
    for number, (note, line) in enumerate(listed):
        onset, duration = score.notes[note].tolist()[:2]
        for (start, end), axes in systems:
            if start <= onset < end:
                middle, above = onset + min(duration, end - onset) / 2, row[note] + 0.7
                mark = axes.text(middle, above, f"{number + 1}", ha="center", va="bottom", **bold)
                mark.set(zorder=5, path_effects=[withStroke(linewidth=2.5, foreground="white")])
        column, place = divmod(number, lines)
        at = left + column * (1 - left) / _LIST_COLUMNS, (foot - 0.3 - place * _TEXT_LINE) / total
        figure.text(*at, f"{number + 1}", va="center", **bold)
        text = figure.text(at[0] + 0.3 / _WIDTH, at[1], line, size=9, va="center", color=_SEED)
        text.set_parse_math(False)
    scale = figure.add_axes((left, top - 0.3 / total, 2.6 / _WIDTH, 0.11 / total))
    scale.imshow(np.linspace(0, 1, 256)[None], cmap=_SURPRISE, aspect="auto", extent=(0, 1, 0, 1))
    ticks = np.linspace(0, 1, 5)
    scale.set_xticks(ticks, [f"{tick * MAX_NATS:g}" for tick in ticks])
    scale.set_yticks([])
    scale.tick_params(length=0, labelsize=8, pad=2)
    scale.spines[:].set_visible(False)
    unit = "and more nats of surprise" + ("; white: not scored" if not is_known.all() else "")
    scale.text(1.06, 0.5, unit, size=8, va="center")
    return figure
