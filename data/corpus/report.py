"""The report on a corpus, for people: counted while it is built, read before training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from common.text import printable
from data.corpus.options import SPLITS
from data.score import DRUMS, Grid, GridChanges, ScoreBatch

EXAMPLES = 3  # names beside a count
LINES = 8  # of a list that is printed; report.json has all


@dataclass(frozen=True)
class SplitCounts:
    """How much is in a split."""

    pieces: int
    notes: int
    tokens: int
    bars: int


@dataclass(frozen=True)
class Copy:
    """A file that holds the notes of another, `semitones` higher."""

    file: str
    of: str
    semitones: int


@dataclass(frozen=True)
class LeftOut:
    """A file that is not used, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class MusicCounts:
    """What the pieces that are used hold.

    Attributes:
        programs: notes of each program.
        pitches: the lowest and the highest, but for drums; empty where there are drums alone.
        velocities: all that occur, rising.
        meters: bars of each meter, such as "3/4", the commonest first.
        tempos: bars of each tempo in quarter notes a minute, rising.
        grid_changes: what bringing the pieces to the grid changed.
        unkept_notes: of instruments that were not asked for.
    """

    programs: dict[int, int]
    pitches: list[int]
    velocities: list[int]
    meters: dict[str, int]
    tempos: dict[int, int]
    grid_changes: GridChanges
    unkept_notes: int


@dataclass(frozen=True)
class CorpusReport:
    """How a corpus came about.

    Attributes:
        name: of the corpus.
        files: how many MIDI files there were.
        splits_given: whether folders said which piece is in which split.
        copies_kept: whether copies are used.
        grid: that onsets and durations were brought to.
        vocabulary_size: how many tokens there are.
        splits: by name.
        music: what the pieces hold.
        without_beats: the files that keep to no beat.
        copies: those found, in any key.
        left_out: the files that are not used.
    """

    name: str
    files: int
    splits_given: bool
    copies_kept: bool
    grid: Grid
    vocabulary_size: int
    splits: dict[str, SplitCounts]
    music: MusicCounts
    without_beats: list[str]
    copies: list[Copy]
    left_out: list[LeftOut]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CorpusReport:
        """Return the report that `to_json` made plain.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        music = dict(data["music"])
        music["programs"] = {int(number): n for number, n in music["programs"].items()}
        music["tempos"] = {int(bpm): n for bpm, n in music["tempos"].items()}
        music["grid_changes"] = GridChanges(**music["grid_changes"])
        parts = {
            "grid": Grid(**data["grid"]),
            "splits": {name: SplitCounts(**counts) for name, counts in data["splits"].items()},
            "music": MusicCounts(**music),
            "copies": [Copy(**copy) for copy in data["copies"]],
            "left_out": [LeftOut(**entry) for entry in data["left_out"]],
        }
        return cls(**data | parts)


class MusicCounter:
    """Counts over the pieces that are used."""

    def __init__(self) -> None:
        self._programs = np.zeros(DRUMS + 1, dtype=np.int64)  # notes of each
        self._pitches = np.zeros(128, dtype=np.int64)  # but the drums'
        self._velocities = np.zeros(128, dtype=np.int64)
        self._meters: Counter[tuple[int, int]] = Counter()  # bars of each
        self._tempos: Counter[int] = Counter()  # bars of each
        self._changes = GridChanges()
        self._unkept_notes = 0

    def add(self, scores: ScoreBatch) -> None:
        """Count the music of these pieces."""
        notes, bars = scores.notes, scores.bars
        program = notes["program"]
        self._programs += np.bincount(program, minlength=DRUMS + 1)
        self._pitches += np.bincount(notes["pitch"][program != DRUMS], minlength=128)
        self._velocities += np.bincount(notes["velocity"], minlength=128)
        meter = (bars["numerator"].astype(np.int64) << 32) + bars["denominator"]
        for number, count in _counted(meter):
            self._meters[number >> 32, number & 0xFFFFFFFF] += count
        for bpm, count in _counted(scores.tempo_bpm):
            self._tempos[bpm] += count

    def add_changes(self, changes: GridChanges, unkept_notes: int) -> None:
        """Count what reading a piece changed, and the notes that it left out."""
        totals = {name: getattr(self._changes, name) + n for name, n in vars(changes).items()}
        worst = max(self._changes.worst_error_steps, changes.worst_error_steps)
        self._changes = GridChanges(**totals | {"worst_error_steps": worst})
        self._unkept_notes += unkept_notes

    def counts(self) -> MusicCounts:
        """Return the counts so far."""
        meters = sorted(self._meters.items(), key=lambda meter: (-meter[1], meter[0]))
        pitches = np.flatnonzero(self._pitches).tolist()
        return MusicCounts(
            programs={int(n): int(self._programs[n]) for n in np.flatnonzero(self._programs)},
            pitches=[pitches[0], pitches[-1]] if pitches else [],
            velocities=np.flatnonzero(self._velocities).tolist(),
            meters={f"{n}/{d}": count for (n, d), count in meters},
            tempos=dict(sorted(self._tempos.items())),
            grid_changes=self._changes,
            unkept_notes=self._unkept_notes,
        )


def _counted(values: NDArray[Any]) -> Iterable[tuple[int, int]]:
    numbers, counts = np.unique(values, return_counts=True)
    return zip(numbers.tolist(), counts.tolist(), strict=True)


def summary(report: CorpusReport) -> str:
    """Return the splits, and how much was left out, in a few lines."""
    lines = [
        f"  {name}: {n.pieces:,} pieces, {n.notes:,} notes, {n.tokens:,} tokens"
        for name, n in report.splits.items()
    ]
    fate, left_out = "kept" if report.copies_kept else "left out", len(report.left_out)
    lines.append(f"  {len(report.copies)} copies {fate}, {left_out} files left out")
    return "\n".join(lines)


def report_text(report: CorpusReport) -> str:
    """Write the report for people, on a page."""
    used = sum(counts.pieces for counts in report.splits.values())
    title = f"{printable(report.name)}: {used:,} pieces out of {report.files:,} MIDI files"
    parts = [
        [title],
        _splits_table(report),
        _music_lines(report),
        _copies_lines(report),
        _left_out_lines(report.left_out),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _splits_table(report: CorpusReport) -> list[str]:
    columns = ("pieces", "notes", "bars", "tokens")
    rows = {name: [getattr(report.splits[name], c) for c in columns] for name in SPLITS}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [" " * 8 + "".join(f"{name:>13}" for name in (*columns, "tokens/note"))]
    for name, row in rows.items():
        ratio = f"{row[3] / row[1]:13.2f}" if row[1] else f"{'-':>13}"
        lines.append(f"  {name:6}" + "".join(f"{value:13,}" for value in row) + ratio)
    return lines


def _music_lines(report: CorpusReport) -> list[str]:
    music = report.music
    programs = Counter(music.programs)
    instruments = [
        f"{_instrument(number)} {count:,} notes ({count / programs.total():.1%})"
        for number, count in programs.most_common()
    ]
    if music.unkept_notes:
        instruments.append(f"{music.unkept_notes:,} notes of others left out")
    pitches = [pretty_midi.note_number_to_name(pitch) for pitch in music.pitches]
    levels = "one level, {}" if len(music.velocities) == 1 else "{1} levels, {0} to {2}"
    meters = [f"{meter} {count:,} bars" for meter, count in music.meters.items()]
    lines = [
        ("tokens", [f"{report.vocabulary_size:,} different ones"]),
        ("instruments", _few(instruments)),
        ("pitches", [" to ".join(dict.fromkeys(pitches))] if pitches else ["drums alone"]),
        (
            "velocities",
            [levels.format(music.velocities[0], len(music.velocities), music.velocities[-1])],
        ),
        ("meters", _few(meters)),
        ("tempo", [_tempo_line(music.tempos)]),
        ("grid", _grid_lines(report)),
    ]
    return [
        f"  {label if not index else '':14}{text}"
        for label, texts in lines
        if report.grid.has_meter or label not in ("meters", "tempo")
        for index, text in enumerate(texts)
    ]


def _grid_lines(report: CorpusReport) -> list[str]:
    grid, changes = report.grid, report.music.grid_changes
    notes = sum(report.music.programs.values()) + changes.merged
    steps = grid.steps_per_beat
    pieces = sum(counts.pieces for counts in report.splits.values())
    return [
        f"{steps} steps a beat (one is {60_000 / 120 / steps:.0f} ms at 120 a minute)"
        if grid.has_meter
        else f"{steps} steps a second",
        f"{changes.moved:,} onsets moved ({changes.moved / notes:.1%}), "
        f"by {changes.worst_error_steps:.2g} steps at worst; "
        f"the mean of all onsets is {changes.error_steps / notes:.2g} steps",
        f"{changes.merged:,} notes merged with another, {changes.cut:,} cut short",
        _grid_advice(report.without_beats, pieces),
    ]


def _instrument(program: int) -> str:
    return "Drums" if program == DRUMS else pretty_midi.program_to_instrument_name(program)


def _tempo_line(tempos: dict[int, int]) -> str:
    bpm = np.repeat(list(tempos), list(tempos.values()))
    if bpm[0] == bpm[-1]:
        return f"{bpm[0]} quarter notes a minute"
    middle = int(bpm[len(bpm) // 2])
    return f"{bpm[0]} to {bpm[-1]} quarter notes a minute, the middle bar at {middle}"


def _grid_advice(without_beats: list[str], pieces: int) -> str:
    """Say which grid suits the pieces."""
    if not without_beats:
        return "all pieces keep to a beat, so a grid of beats suits them"
    how_many = f"{len(without_beats):,} of {pieces:,} pieces keep to no beat that the grid divides"
    suits = "a grid of seconds suits" if 2 * len(without_beats) > pieces else "beats suit the rest"
    return f"{how_many} ({_named(without_beats)}): {suits}"


def _few(items: Sequence[str]) -> list[str]:
    """Return the first of some lines, and how many there are more."""
    more = len(items) - LINES
    return [*items[:LINES], f"and {more:,} more"] if more > 0 else list(items)


def _named(names: Iterable[str]) -> str:
    """Join the first few of some names."""
    all_names = [printable(name) for name in names]
    return ", ".join(all_names[:EXAMPLES]) + (", ..." if len(all_names) > EXAMPLES else "")


def _copies_lines(report: CorpusReport) -> list[str]:
    copies = report.copies
    if not copies:
        return ["Copies: none"]
    exact = sum(not copy.semitones for copy in copies)
    fate = "kept where they are" if report.splits_given else "kept on one side of the split"
    fate = fate if report.copies_kept else "left out"
    head = f"Copies: {len(copies):,}, {fate}; {exact:,} exact, {len(copies) - exact:,} transposed"
    lines = []
    for copy in copies:
        moved = f", {copy.semitones:+d} semitones" if copy.semitones else ""
        lines.append(f"  {printable(copy.file)} is {printable(copy.of)}{moved}")
    return [head, *_indented(_few(lines))]


def _left_out_lines(left_out: list[LeftOut]) -> list[str]:
    if not left_out:
        return ["Left out: none"]
    by_reason: dict[str, list[str]] = {}
    for entry in left_out:
        by_reason.setdefault(entry.reason, []).append(entry.file)
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    lines = [f"{len(names):,} {printable(reason)}: {_named(names)}" for reason, names in groups]
    return [f"Left out: {len(left_out):,}", *_indented(_few(lines))]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line.strip()}" for line in lines]
