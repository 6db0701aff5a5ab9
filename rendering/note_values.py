"""Note values: spans of grid steps as quarters, dots, triplets and ties, as musicians read them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from data.score import Grid, is_compound

_TYPES = ("breve", "whole", "half", "quarter", "eighth", "16th", "32nd", "64th", "128th", "256th")
_TYPES_FROM_QUARTER = _TYPES.index("quarter")
_SMALLEST = 3  # of the smallest note outside triplets; a quarter has 2^n times as many
FLAGS = {name: flags for flags, name in enumerate(_TYPES[_TYPES_FROM_QUARTER:])}  # or beams


class NoteValue(NamedTuple):
    """A note or a rest as it is written."""

    start: int  # in notation steps (see `steps_per_quarter`)
    duration: int  # notation steps
    type: str  # such as "quarter", as in MusicXML
    dots: int
    triplet: tuple[int, int] | None  # where its triplet begins and ends, if it is in one


class Bar(NamedTuple):
    """A bar: its meter, its notation steps, and the steps it would have if it were whole."""

    numerator: int
    denominator: int
    length: int
    whole: int

    @property
    def is_compound(self) -> bool:
        """Whether its beats divide into three, as in 6/8."""
        return is_compound(self.numerator, self.denominator)


Span: TypeAlias = tuple[int, int, tuple[int, ...]]  # begin, end, and the notes between, if any


def steps_per_quarter(grid: Grid) -> int:
    """Return the notation steps of a quarter note, with triplets: the grid's, or a multiple.

    Raises:
        ValueError: the grid follows no beat, or divides it so that no note value fits.
    """
    if not grid.has_meter:
        raise ValueError("music on a grid of seconds has no meter, so it cannot be engraved")
    for steps in (12, 24, 48, 96):
        if steps % grid.steps_per_beat == 0:
            return steps
    raise ValueError(f"no note values for {grid.steps_per_beat} steps a beat; 12 have them")


class BarRhythm:
    """How time is written in a bar.

    Args:
        bar: the bar.
        quarter: notation steps in a quarter note.
        start: when the bar begins. At 0, a bar that is not whole is an upbeat.

    Attributes:
        origin: steps from the beginning of the piece to where this bar would begin if it were
            whole.
        levels: notation steps of what a bar divides into, from the bar itself to the smallest note
            outside triplets: 48, 24, 12, 6, 3 for 4/4.
        beat: steps of a beat, which divides into three in a compound meter (6/8).
        is_compound: whether the meter is compound.
        cell: steps that a triplet replaces; with `pairs`, it replaces two of them.
    """

    def __init__(self, bar: Bar, quarter: int, start: int) -> None:
        self.quarter, self.is_compound = quarter, bar.is_compound
        self.origin = start if start else bar.length - bar.whole
        part = 4 * quarter // bar.denominator
        if 4 * quarter % bar.denominator or part % _SMALLEST:  # such as 7/32 or 3/5
            part = _SMALLEST
        self.beat = 3 * part if self.is_compound else part
        levels = [bar.whole]
        while levels[-1] % (2 * self.beat) == 0:
            levels.append(levels[-1] // 2)
        if levels[-1] != self.beat:
            levels.append(self.beat)
        if self.is_compound:
            levels.append(part)
        while levels[-1] % (2 * _SMALLEST) == 0:
            levels.append(levels[-1] // 2)
        self.levels, self.cell = levels, min(part, quarter)
        self.pairs = self.cell == quarter

    def beam_group(self, start: int) -> int:
        """Return the number of the group of notes that share a beam, by the start of a note."""
        whole, at = self.levels[0], start - self.origin
        if self.is_compound:
            return at // self.beat
        return min(at // self.quarter, max(whole // self.quarter - 1, 0))  # 3/8, 5/8: with the rest

    def values(self, spans: Sequence[Span]) -> list[list[NoteValue]]:
        """Return how each span is written, as values that are tied; the spans fill a bar."""
        origin = self.origin
        edges = sorted({edge - origin for begin, end, _ in spans for edge in (begin, end)})
        triplets = list(self._triplets(edges, edges[0], edges[-1]))
        written = []
        for start, end, notes in spans:
            begin, stop, values, is_rest = start - origin, end - origin, [], not notes
            for low, high in triplets:
                if begin < high and low < stop:
                    if begin < low:
                        values += self._plain(begin, low, is_rest)
                    inside = max(begin, low), min(stop, high)
                    values += self._in_triplet(*inside, (low, high))
                    begin = inside[1]
            if begin < stop:
                values += self._plain(begin, stop, is_rest)
            written.append([value._replace(start=value.start + origin) for value in values])
        return written

    def _triplets(self, edges: list[int], first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the spans that are written as triplets, by where notes begin and end."""
        start = first - first % self.cell
        while start < last:
            size = self.cell
            if self.pairs and start % (2 * size) == 0 and start + 2 * size <= last:
                inside = [edge - start for edge in edges if start < edge < start + 2 * size]
                if inside and all(edge * 3 in (2 * size, 4 * size) for edge in inside):
                    yield start, start + 2 * size
                    start += 2 * size
                    continue
            yield from self._divided(edges, start, size)
            start += size

    def _divided(self, edges: list[int], start: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield the triplets in a cell: one for each half if a note begins in its middle."""
        inside = [edge - start for edge in edges if start < edge < start + size]
        if all(edge % self.levels[-1] == 0 for edge in inside):
            return
        if size % 2 == 0 and size // 2 in inside and size > self.levels[-1]:
            yield from self._divided(edges, start, size // 2)
            yield from self._divided(edges, start + size // 2, size // 2)
        else:
            yield start, start + size

    def _plain(self, start: int, end: int, is_rest: bool) -> list[NoteValue]:
        """Return values outside triplets, which show the strong beats that they pass."""
        value = self._value(start, end - start, None)
        if value and self._is_readable(start, end, is_rest, value.dots):
            return [value]
        strongest = min(self._level(edge) for edge in range(start + 1, end))
        step = self.levels[strongest]
        inside = [edge for edge in range(start + 1, end) if edge % step == 0]
        middle = inside[0]
        if self._level(start) <= self._level(end):  # if the start is strong, long values come first
            for edge in inside:
                first = self._value(start, edge - start, None)
                if first and self._is_readable(start, edge, is_rest, first.dots):
                    middle = edge
        return self._plain(start, middle, is_rest) + self._plain(middle, end, is_rest)

    def _in_triplet(self, start: int, end: int, triplet: tuple[int, int]) -> list[NoteValue]:
        """Return values inside a triplet, the longest first."""
        if start == end:
            return []
        sizes = range(end - start, 0, -1)
        first = next(filter(None, (self._value(start, size, triplet) for size in sizes)))
        return [first, *self._in_triplet(start + first.duration, end, triplet)]

    def _value(
        self, start: int, duration: int, triplet: tuple[int, int] | None
    ) -> NoteValue | None:
        """Return the single value with this duration; None: there is none."""
        nominal = 3 * duration if triplet else 2 * duration  # in half steps: 3 in the time of 2
        for number, name in enumerate(_TYPES):
            size = 2 * self.quarter << _TYPES_FROM_QUARTER >> number
            if nominal in (size, size * 3 / 2):
                return NoteValue(start, duration, name, int(nominal > size), triplet)
        return None

    def _level(self, at: int) -> int:
        """Return how weak a place in the bar is; 0: it is the beginning of the bar."""
        return next((n for n, size in enumerate(self.levels) if at % size == 0), len(self.levels))

    def _is_readable(self, start: int, end: int, is_rest: bool, dots: int) -> bool:
        """Return whether a single value for this span hides no beat stronger than its ends."""
        duration = end - start
        if duration <= self.levels[-1]:
            return True
        crossed = min(self._level(edge) for edge in range(start + 1, end))
        is_beats = start % self.beat == 0 and end % self.beat == 0
        if self.is_compound and crossed <= self.levels.index(self.beat) and not is_beats:
            return False
        if is_rest:
            return start % duration == 0 and (not dots or (self.is_compound and is_beats))
        if crossed >= min(self._level(start), self._level(end)):
            return True
        is_half_late = 2 * (start % duration) == duration  # a syncopation: short, long, short
        return is_half_late and not dots and self.levels[crossed] == duration
