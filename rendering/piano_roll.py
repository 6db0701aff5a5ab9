"""Piano rolls: a Score as a picture, colored by instrument or by surprise."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Bools, Ints, Reals, Records
from data.chords import Span
from data.harmony import numeral, symbol
from data.instrument_names import instrument_name, sound_name
from data.keys import Key, notated_key
from data.score import DRUMS, MOST_PROGRAM, Score
from rendering.svg import LINE, SMALL_SIZE, TITLE_SIZE, Style, boxes, legend, svg, text

# The colors of Okabe and Ito, which color-blind readers can tell apart, and ten more. After 16
# programs they begin again.
_PALETTE = (
    *("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#5D3A9B", "#8C510A", "#66A61E", "#9E0142", "#7F7F7F"),
    *("#B15FC9", "#00B8BE", "#B5A260", "#01665E", "#FF8DA1"),
)
_SEED, _SEED_TINT = "#343C46", 0.2  # the color of a seed note, with so much of its program's
_SEED_GROUND = "#F5ECD3"
_BLACK_KEY: dict[str, Style] = {"fill": "#0F2A47", "fill_opacity": 0.06}
_IS_BLACK_KEY = np.array([0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0], dtype=bool)

# In pixels. A system is one line of bars, in which every pitch has a row.
_WIDTH, _LEFT, _RIGHT, _BOTTOM, _GAP, _TEXT_LINE = 1560, 54, 18, 36, 66, 32
_MARKS, _CHORDS = 36, 34  # room for meters above the first system, and for chords above each
_DRUM_NAMES = 132  # more room at the left if there are drums
_ROW, _ROW_OF_MANY, _MOST_HEIGHT = 10, 8, 720  # of a row, alone or in many systems; of a system
# Quarter notes or seconds in a system, and how many systems; longer pieces get denser systems.
_SYSTEM_BEATS, _MAX_SYSTEMS = {"beats": 32, "seconds": 16}, 16
_MAX_NUMBERS = 24  # bar numbers in a system
_LEGEND_COLUMNS = 6
_LETTER, _LEAST_NAME = 8.5, 10  # pixels of a letter in a chord's name; of the shortest name
# In rows. A note is a little higher than its row, and a drum's row is higher than a pitch's.
_NOTE_HEIGHT, _DRUM_ROW = 1.25, 2.4
# Colors of surprise: pale for expected notes, through amber, to ever darker red.
MAX_NATS = 8
_SURPRISE = ("#A6BDD8", "#F2B33D", "#D9542B", "#8E0F2E", "#3D0026")
_NOT_SCORED, _LIST_COLUMNS = "#FFFFFF", 2
_SHADES = 16  # shades in a nat: colors that can be told apart
_SCALE_WIDTH = 312
_BOLD: dict[str, Style] = {"font_weight": "bold", "fill": _SEED}
_SMALL: dict[str, Style] = {"font_size": SMALL_SIZE}
_MIDDLE: dict[str, Style] = {"text_anchor": "middle"}
_NUMBER = _SMALL | _MIDDLE
_HALO: dict[str, Style] = {"stroke": "#ffffff", "stroke_width": 4, "paint_order": "stroke"}
_MARK = _BOLD | _MIDDLE | _HALO
_ALL_OPEN = np.zeros(0, dtype=bool)


@dataclass(frozen=True)
class SystemPlace:
    """Where a system of a piano roll is in the picture, and when its music sounds.

    Attributes:
        top, bottom: as shares of the height of the picture, from its top.
        times: (share of the width, seconds) of its first and last step and the bar lines between.
    """

    top: float
    bottom: float
    times: list[tuple[float, float]]


@dataclass(frozen=True)
class PianoRoll:
    """A picture of a Score.

    Attributes:
        svg: the picture, with `width` and `height` in pixels.
        systems: where its systems are, from the top down.
    """

    svg: str
    width: int
    height: int
    systems: list[SystemPlace]


@dataclass(frozen=True)
class _System:
    """A line of bars: the steps from `start` to `end`, and the pixels and rows of its edges."""

    start: int
    end: int
    left: int
    step_width: float
    top: int
    bottom: int
    highest: float
    row_height: int

    def x(self, step: ArrayLike) -> Reals:
        """Return how many pixels grid steps are from the left."""
        return self.left + (np.asarray(step) - self.start) * self.step_width

    def y(self, row: ArrayLike) -> Reals:
        """Return how many pixels rows are from the top."""
        return self.top + (self.highest - np.asarray(row)) * self.row_height

    def place(self, score: Score, height: int) -> SystemPlace:
        """Return where the system is in a picture that is `height` pixels high."""
        lines = score.bar_starts[(score.bar_starts > self.start) & (score.bar_starts < self.end)]
        steps = np.array([self.start, *lines.tolist(), self.end])
        times = np.stack([self.x(steps) / _WIDTH, score.step_seconds(steps)], axis=1).round(5)
        top, bottom = (round(edge / height, 5) for edge in (self.top, self.bottom))
        return SystemPlace(top, bottom, times.tolist())


def draw_piano_roll(
    score: Score,
    is_closed: Bools = _ALL_OPEN,
    is_given: Bools | None = None,
    title: str = "",
    chords: Sequence[Span] = (),
    key: Key | None = None,
) -> PianoRoll:
    """Draw pitch over time, one color for each program, in as many systems as the bars need.

    An upbeat is bar 0. On a grid of seconds, the vertical lines are seconds. Programs that hold the
    same pitch at the same time share its row. Drums stand below the pitches, one row for each. A
    soft note is less high than a loud one.

    Args:
        score: with N notes.
        is_closed: (S,) whether each grid step is closed to new notes. The ground there is shaded,
            and the picture says, where this first ends, that the model goes on.
        is_given: (N,) whether each note is given, and so dark; None: those on shaded ground are.
        title: of the picture.
        chords: their names stand above, and what they are in `key`.
        key: None: `notated_key` finds it.
    """
    notes = score.notes
    color_of = {
        program: _PALETTE[index % len(_PALETTE)]
        for index, program in enumerate(np.unique(notes["program"]).tolist())
    }
    is_dark = np.isin(notes["onset"], np.flatnonzero(is_closed)) if is_given is None else is_given
    entries = [(_SEED, "kept")] if is_dark.any() else []
    for program, color in color_of.items():
        if not is_dark[notes["program"] == program].all():
            entries.append((color, instrument_name(program, score.grid)))
    colors = _rgb([color_of[program] for program in notes["program"].tolist()])
    colors[is_dark] = (1 - _SEED_TINT) * _rgb([_SEED]) + _SEED_TINT * colors[is_dark]
    lines = range(0, len(entries), _LEGEND_COLUMNS)
    page = _Page(score, title, head=_TEXT_LINE * len(lines), above=_CHORDS * bool(chords))
    parts = [
        legend(page.left, page.head + at * _TEXT_LINE, entries[first : first + _LEGEND_COLUMNS])
        for at, first in enumerate(lines)
    ]
    if chords:
        key = key or notated_key(score)
        parts += [name for system in page.systems for name in _names(system, chords, key)]
    return page.roll([*_systems(page, colors, is_closed), *parts])


def draw_surprise(
    score: Score, nats: Reals, listed: Sequence[tuple[int, str]], title: str = ""
) -> PianoRoll:
    """Draw pitch over time, from pale for expected notes to dark for surprising ones.

    A color means the same surprise in every picture. From MAX_NATS up, all notes are equally dark.
    `nats` are (N,); notes without a figure (NaN) are white. `listed` has the notes to point at:
    their index in the Score and a line of text. The first is number 1.
    """
    is_known = np.isfinite(nats)
    colors = _surprise_colors(np.where(is_known, nats, 0))
    colors[~is_known] = _rgb([_NOT_SCORED])
    lines = -(-len(listed) // _LIST_COLUMNS)
    foot = _TEXT_LINE * lines + 42 if listed else 0
    page = _Page(score, title, head=50, foot=foot)
    parts = [*_systems(page, colors), *_surprise_scale(page, bool(is_known.all()))]
    for number, (note, line) in enumerate(listed):
        parts += page.mark(note, str(number + 1))
        column, place = divmod(number, lines)
        x = page.left + column * (_WIDTH - page.left) / _LIST_COLUMNS
        y = page.height - foot + 36 + place * _TEXT_LINE
        parts += [text(x, y, str(number + 1), **_BOLD), text(x + 36, y, line, fill=_SEED)]
    return page.roll(parts)


class _Page:
    """How a piano roll is laid out.

    Args:
        score, title: of the roll.
        head, foot: pixels between the title and the systems, and below the systems.
        above: pixels between the meters above a system and the system.

    Attributes:
        row: (N,) the row of each note; see `_rows`.
        left: pixels from the left edge to the systems.
        head: pixels from the top to the middle of the first line below the title.
    """

    def __init__(self, score: Score, title: str, head: int, foot: int = 0, above: int = 0) -> None:
        self.score, self.title, self.above = score, title, above
        self.row, self.row_names = _rows(score)
        shown = self.row if len(self.row) else np.array([60.0])
        rows = int(max(16, np.ptp(shown) + 5))
        spans = _spans(score)
        row_height = min(_ROW if len(spans) == 1 else _ROW_OF_MANY, _MOST_HEIGHT // rows)
        self.left = _LEFT + _DRUM_NAMES * bool(np.any(score.notes["program"] == DRUMS))
        step_width = (_WIDTH - self.left - _RIGHT) / max(end - start for start, end in spans)
        title_height = _TEXT_LINE * bool(title)
        self.head, height = title_height + 20, rows * row_height
        highest = (shown.min() + shown.max() + rows) / 2
        tops = itertools.count(title_height + head + _MARKS + above, height + _GAP + above)
        self.systems = [
            _System(*span, self.left, step_width, top, top + height, highest, row_height)
            for top, span in zip(tops, spans, strict=False)
        ]
        self.height = self.systems[-1].bottom + _BOTTOM + foot

    def roll(self, parts: Sequence[str]) -> PianoRoll:
        """Return the picture with its title and these parts."""
        own = [text(self.left, 22, self.title, font_size=TITLE_SIZE, font_weight="bold")]
        if not len(self.score.notes):
            words = "no notes"
            own.append(text(_WIDTH / 2, self.height / 2, words, font_size=TITLE_SIZE, **_MIDDLE))
        places = [system.place(self.score, self.height) for system in self.systems]
        return PianoRoll(svg(_WIDTH, self.height, [*parts, *own]), _WIDTH, self.height, places)

    def mark(self, note: int, words: str) -> list[str]:
        """Return words above a note, which is given by its index in the Score."""
        onset, duration = self.score.notes[note].tolist()[:2]
        parts = []
        for system in self.systems:
            if system.start <= onset < system.end:
                x = float(system.x(onset + min(duration, system.end - onset) / 2))
                parts += [text(x, float(system.y(self.row[note] + 0.7)) - 7, words, **_MARK)]
        return parts


def _systems(page: _Page, colors: Reals, is_closed: Bools = _ALL_OPEN) -> list[str]:
    """Return the parts of the systems, with notes in these colors, (N, 3) RGB from 0 to 255."""
    notes = page.score.notes
    padded = np.concatenate([[False], is_closed, [False]])
    closed = np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)
    bottom, top = _edges(notes, page.row)
    onset = notes["onset"].astype(np.int64)
    # A gap after each note keeps repeated notes apart.
    gap = np.minimum(notes["duration"] / 4, 6 / page.systems[0].step_width)
    end = onset + notes["duration"] - gap
    fills, fill = np.unique(np.rint(colors).astype(np.int64), axis=0, return_inverse=True)
    parts = []
    for system in page.systems:
        parts += _ground(system, notes, closed)
        parts += _bars(page, system, closed)
        parts += [
            text(system.left - 6, float(system.y(row)), name, text_anchor="end", **_SMALL)
            for row, name in page.row_names.items()
        ]
        is_here = (onset < system.end) & (end > system.start)
        left, right = system.x(onset.clip(system.start)), system.x(end.clip(max=system.end))
        edges = np.stack([left, system.y(top), right, system.y(bottom)])
        for number, (red, green, blue) in enumerate(fills.tolist()):
            here = is_here & (fill == number)
            parts.append(boxes(*edges[:, here], fill=f"#{red:02x}{green:02x}{blue:02x}"))
        is_here = (closed > 0) & (closed >= system.start) & (closed < system.end)
        parts.append(_vertical(system, closed[is_here], width=4, fill=_SEED))
    return parts


def _spans(score: Score) -> list[tuple[int, int]]:
    """Return the first and last step of each system: whole bars, of nearly equal length."""
    lines = score.bar_starts
    if not len(score.bars):
        return [(0, score.grid.bar_steps(*score.grid.default_meter))]
    beats = lines[-1] / score.grid.steps_per_beat
    count = int(np.clip(np.rint(beats / _SYSTEM_BEATS[score.grid.kind]), 1, _MAX_SYSTEMS))
    first_bars = np.unique(lines[:-1] * count // lines[-1], return_index=True)[1]
    # The last notes may ring on, but an hour of it would leave no room for the others.
    end = min(score.end_step, int(lines[-1] + score.bars["length"][-1] // 4))
    return list(itertools.pairwise([*lines[first_bars].tolist(), end]))


def _rows(score: Score) -> tuple[Reals, dict[float, str]]:
    """Return (N,) the row of each note, and the names of rows.

    The row is the note's pitch, or for drums one below all pitches.
    """
    notes = score.notes
    row = notes["pitch"].astype(np.float64)
    is_drum = notes["program"] == DRUMS
    low, high = row[~is_drum].min(initial=128.0), row[~is_drum].max(initial=-1.0)
    names = {float(c): f"C{c // 12 - 1}" for c in range(0, 128, 12) if low - 2 <= c <= high + 2}
    drums = np.unique(row[is_drum])
    drum_rows = low - 3 - _DRUM_ROW * np.arange(len(drums), 0, -1)
    row[is_drum] = drum_rows[np.searchsorted(drums, row[is_drum])]
    for at, drum in zip(drum_rows.tolist(), drums.tolist(), strict=True):
        names[at] = sound_name(DRUMS, int(drum), score.grid)
    return row, names


def _edges(notes: Records, row: Reals) -> tuple[Reals, Reals]:
    """Return (N,) the bottom and top of each note; programs that meet in a row share its height.

    If notes differ in loudness, soft ones are less high.
    """
    order = np.lexsort((notes["onset"], row))
    onset = notes["onset"][order].astype(np.int64)
    end = onset + notes["duration"][order]
    # One time line for all rows, one after the other without touching.
    offset = np.unique(row[order], return_inverse=True)[1] * (end.max(initial=0) + 1)
    latest = np.maximum.accumulate(offset + end)
    # A meeting is a run of notes, each of which begins before all earlier ones have ended.
    is_new = np.ones(len(notes), dtype=bool)
    is_new[1:] = (offset + onset)[1:] >= latest[:-1]
    meeting = np.empty(len(notes), dtype=np.int64)
    meeting[order] = np.cumsum(is_new) - 1
    size = MOST_PROGRAM + 1
    parts, part = np.unique(meeting * size + notes["program"], return_inverse=True)
    _, first, count = np.unique(parts // size, return_index=True, return_counts=True)
    rank, share = part - first[meeting], _NOTE_HEIGHT / count[meeting]
    middle = row + _NOTE_HEIGHT / 2 - (rank + 0.5) * share
    velocity = notes["velocity"]
    if len(np.unique(velocity)) > 1:
        share = share * (0.4 + 0.6 * velocity / 127)
    return middle - share / 2, middle + share / 2


def _ground(system: _System, notes: Records, closed: Ints) -> list[str]:
    """Shade the black keys and what is closed, with edges (N, 2), and mark every C."""
    begin, stop = closed.clip(system.start, system.end).T
    is_seen = begin < stop
    shaded = system.x(begin[is_seen]), system.x(stop[is_seen])
    parts = [boxes(shaded[0], system.top, shaded[1], system.bottom, fill=_SEED_GROUND)]
    pitch = notes["pitch"][notes["program"] != DRUMS].astype(np.int64)
    if len(pitch):
        keys = np.arange(pitch.min() - 2, pitch.max() + 3)
        black, left, right = keys[_IS_BLACK_KEY[keys % 12]], system.left, system.x(system.end)
        parts.append(boxes(left, system.y(black + 0.5), right, system.y(black - 0.5), **_BLACK_KEY))
        below = system.y(keys[keys % 12 == 0] - 0.5)
        parts.append(boxes(left, below, right, below + 1, fill=LINE, fill_opacity=0.6))
    return parts


def _names(system: _System, chords: Sequence[Span], key: Key) -> list[str]:
    """Return the names of the chords above a system, made narrow if there is little room."""
    parts = []
    for span in chords:
        begin, end = max(span.begin, system.start), min(span.end, system.end)
        left, room = float(system.x(begin)), float(system.x(end) - system.x(begin)) - 3
        if begin >= end or room < _LEAST_NAME:
            continue
        names = (symbol(span.chord, key), 26, _BOLD), (numeral(span.chord, key), 9, _SMALL)
        for words, height, style in names:
            fit: dict[str, Style] = {"font_size": SMALL_SIZE}
            if len(words) * _LETTER > room:
                fit |= {"textLength": room, "lengthAdjust": "spacingAndGlyphs"}
            parts.append(text(left, system.top - height, words, **style | fit))
    return parts


def _bars(page: _Page, system: _System, closed: Ints) -> list[str]:
    """Draw bar lines, beats, bar numbers and new meters, and say where what is closed ends."""
    score, top = page.score, system.top - page.above - 13
    lines, bars, start, end = score.bar_starts, score.bars, system.start, system.end
    shown = np.flatnonzero((lines[:-1] >= start) & (lines[:-1] < end))
    numbered = shown[:: 1 + len(shown) // _MAX_NUMBERS]
    is_dense = len(numbered) < len(shown)
    beats: list[float] = []
    marks: dict[int, str] = {}
    for bar in shown.tolist():
        numerator, denominator, length = bars[bar].tolist()
        beat = 4 * score.grid.steps_per_beat / denominator
        beats.extend(lines[bar] + np.arange(0, length, beat)[1:])
        is_new = bar == 0 or bars[bar].tolist()[:2] != bars[bar - 1].tolist()[:2]
        if is_new and score.grid.has_meter:
            marks[int(lines[bar])] = f"{numerator}/{denominator}"
    for begin, stop in closed[:1].tolist():
        if begin == 0 and start <= stop < end:
            marks[stop] = f"{marks.get(stop, '')}   the model goes on →".lstrip()
    inner = lines[(lines >= start) & (lines <= end)]
    numbers = numbered + score.first_number
    unit = "" if score.grid.has_meter else " s"
    return [
        _vertical(system, inner, fill=LINE, fill_opacity=0.4 if is_dense else 1),
        "" if is_dense else _vertical(system, np.array(beats), fill=LINE, fill_opacity=0.3),
        *(text(float(system.x(at)), top, mark, **_BOLD) for at, mark in marks.items()),
        *(
            text(float(system.x(at)), system.bottom + 15, f"{number}{unit}", **_NUMBER)
            for at, number in zip(lines[numbered], numbers.tolist(), strict=True)
        ),
    ]


def _vertical(system: _System, steps: NDArray[Any], width: int = 1, **style: Style) -> str:
    """Return lines at grid steps, from the top of a system to its bottom."""
    left = np.rint(system.x(steps)) - width // 2
    return boxes(left, system.top, left + width, system.bottom, **style)


def _rgb(colors: Sequence[str]) -> Reals:
    """Return colors such as #D55E00 as (N, 3) RGB from 0 to 255."""
    return np.array([[*bytes.fromhex(color[1:])] for color in colors], float).reshape(-1, 3)


def _surprise_colors(nats: Reals) -> Reals:
    """Return (N, 3): the colors of surprise, as many as can be told apart."""
    stops = np.linspace(0, MAX_NATS, len(_SURPRISE))
    shade = np.rint(nats * _SHADES) / _SHADES
    return np.stack([np.interp(shade, stops, channel) for channel in _rgb(_SURPRISE).T], axis=1)


def _surprise_scale(page: _Page, is_all_known: bool) -> list[str]:
    """Return the scale that says what the colors of surprise mean."""
    left, top, shares = page.left, page.head - 14, np.linspace(0, 1, len(_SURPRISE)).tolist()
    stops = "".join(
        f'<stop offset="{share}" stop-color="{color}"/>'
        for share, color in zip(shares, _SURPRISE, strict=True)
    )
    unit = "and more nats of surprise" + ("" if is_all_known else "; white: not scored")
    return [
        f'<linearGradient id="surprise">{stops}</linearGradient>',
        boxes(left, top, left + _SCALE_WIDTH, top + 13, fill="url(#surprise)"),
        text(left + _SCALE_WIDTH + 20, top + 6.5, unit, **_SMALL),
        *(text(left + n * _SCALE_WIDTH, top + 25, f"{n * MAX_NATS:g}", **_NUMBER) for n in shares),
    ]
