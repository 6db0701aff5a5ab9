"""The report on a corpus, for people."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import numpy as np
import pretty_midi

from common.text import counted, printable
from data.corpus.options import SPLITS
from data.corpus.store import SplitCounts
from data.corpus.survey import MusicCounts
from data.corpus.trials import Chosen
from data.instrument_names import instrument_name
from data.midi.instruments import MOST_COMMON
from data.score import Grid

EXAMPLES = 3  # how many names are printed beside a count
LINES = 8  # of a list that are printed; report.json has all of it
WIDTH = 100  # of a long line, in letters
INSTRUMENTS = MOST_COMMON + 2  # the common ones, drums, and what was left out
WHY = {  # options are chosen
    "--grid seconds": "most files keep to no beat",
    "--steps-per-beat": "most files need more than 12 steps a beat",
    "--time-signature": "notes are at the beats of other bars than the files'",
    "--instruments": "there are more instruments than a model tells apart",
    "--parts": "fewer notes meet",
}


@dataclass(frozen=True)
class Copy:
    """A file with the notes of another, `semitones` higher."""

    file: str
    of: str
    semitones: int


@dataclass(frozen=True)
class LeftOut:
    """A file that is not used, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class CorpusReport:
    """How a corpus was made."""

    name: str
    files: int  # how many music files there were
    splits_given: bool  # whether folders said to which split each piece belongs
    grid: Grid
    vocabulary_size: int
    splits: dict[str, SplitCounts]
    music: MusicCounts
    chosen: Chosen | None  # the options that the files decided
    copies: tuple[Copy, ...]  # the copies that were found, in any key
    works: tuple[tuple[str, ...], ...]  # the files of each work that has more than one
    held_out_of_trained: int  # held-out pieces of works that are also in training
    left_out: tuple[LeftOut, ...]

    @property
    def pieces(self) -> int:
        """The number of pieces that are used."""
        return sum(counts.pieces for counts in self.splits.values())


def report_text(report: CorpusReport) -> str:
    """Return the report as a page for people."""
    name = printable(report.name)
    title = f"{name}: {counted(report.pieces, 'piece')} out of {counted(report.files, 'file')}"
    parts = [[title], _splits_table(report), _music_lines(report)]
    parts += [_copies_lines(report), _works_lines(report), _left_out_lines(report.left_out)]
    return "\n\n".join("\n".join(lines) for lines in parts)


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
        f"{instrument_name(number, report.grid)} {counted(n, 'note')} ({n / programs.total():.1%})"
        for number, n in programs.most_common()
    ]
    if music.unkept_notes:
        instruments.append(f"{counted(music.unkept_notes, 'note')} of others left out")
    pitches = [pretty_midi.note_number_to_name(pitch) for pitch in music.pitches]
    levels = "one level, {}" if len(music.velocities) == 1 else "{1} levels, {0} to {2}"
    velocities = levels.format(music.velocities[0], len(music.velocities), music.velocities[-1])
    lines = {
        "tokens": [f"{report.vocabulary_size:,} different ones"],
        "instruments": _few(instruments, most=INSTRUMENTS),
        "pitches": [" to ".join(dict.fromkeys(pitches)) or "drums alone"],
        "velocities": [velocities],
    }
    if report.grid.has_meter:
        lines["meters"] = _few([f"{its} {counted(n, 'bar')}" for its, n in music.meters.items()])
        lines["tempo"] = [_tempo_line(music.tempos)]
    lines["chosen"] = _chosen_lines(report.chosen) if report.chosen else []
    lines["grid"] = _grid_lines(report)
    return [
        f"  {label if not index else '':14}{text}"
        for label, texts in lines.items()
        for index, text in enumerate(texts)
    ]


def _chosen_lines(chosen: Chosen) -> list[str]:
    """Say which options were chosen, why, and what was measured with them."""
    why = "; ".join(reason for option, reason in WHY.items() if option in chosen.options)
    replaced = ", ".join(instrument_name(program, Grid()) for program in chosen.replaced)
    return [
        f"{chosen.options}: {why}",
        *(wrap(f"common instruments also play the notes of {replaced}", WIDTH) if replaced else []),
        f"{chosen.lost:.1%} of the notes merged or cut short; {chosen.lost_without:.1%} otherwise",
    ]


def _tempo_line(tempos: dict[int, int]) -> str:
    bpm = np.repeat(list(tempos), list(tempos.values()))
    if bpm[0] == bpm[-1]:
        return f"{bpm[0]} quarter notes a minute"
    middle = int(bpm[len(bpm) // 2])
    return f"{bpm[0]} to {bpm[-1]} quarter notes a minute, the middle bar at {middle}"


def _grid_lines(report: CorpusReport) -> list[str]:
    changes, steps = report.music.grid_changes, report.grid.steps_per_beat
    notes = sum(report.music.programs.values()) + changes.merged
    mends = (
        (changes.split_bars, "bar", "split, too long for any meter"),
        (changes.clipped_bytes, "byte", "over 127 read as 127"),
        (changes.empty_bars, "empty bar", "before first notes left out"),
    )
    return [
        f"{steps} steps a beat (one is {60_000 / 120 / steps:.0f} ms at 120 a minute)"
        if report.grid.has_meter
        else f"{steps} steps a second",
        f"{changes.moved:,} onsets moved ({changes.moved / notes:.1%}), "
        f"by {changes.worst_error_steps:.2g} steps at worst; "
        f"the mean of all onsets is {changes.error_steps / notes:.2g} steps",
        f"{counted(changes.merged, 'note')} merged with another, {changes.cut:,} cut short",
        *(f"{counted(count, noun)} {what}" for count, noun, what in mends if count),
    ]


def _copies_lines(report: CorpusReport) -> list[str]:
    copies = report.copies
    if not copies:
        return ["Copies: none"]
    exact = sum(not copy.semitones for copy in copies)
    fate = "kept where they are" if report.splits_given else "left out"
    head = f"Copies: {len(copies):,}, {fate}; {exact:,} exact, {len(copies) - exact:,} transposed"
    lines = [
        f"  {printable(copy.file)} is {printable(copy.of)}"
        + (f", {copy.semitones:+d} semitones" if copy.semitones else "")
        for copy in copies
    ]
    return [head, *_few(lines, "  ")]


def _works_lines(report: CorpusReport) -> list[str]:
    works, torn = sorted(report.works, key=len, reverse=True), report.held_out_of_trained
    if not works:
        return ["Works of several pieces: none"]
    fate = f"kept where they are: {torn:,} held-out pieces are of works that training has, too"
    fate = fate if torn else "each in one split"
    head = f"Works of several pieces: {len(works):,} ({sum(map(len, works)):,} pieces), {fate}"
    return [head, *_few([f"  {len(names):,}: {_named(names)}" for names in works], "  ")]


def _left_out_lines(left_out: Sequence[LeftOut]) -> list[str]:
    if not left_out:
        return ["Left out: none"]
    by_reason: dict[str, list[str]] = {}
    for entry in left_out:
        by_reason.setdefault(entry.reason, []).append(entry.file)
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    lines = [f"  {len(names):,} {printable(reason)}: {_named(names)}" for reason, names in groups]
    return [f"Left out: {len(left_out):,}", *_few(lines, "  ")]


def _few(lines: Sequence[str], indent: str = "", most: int = LINES) -> list[str]:
    """Return the first few lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], f"{indent}and {more:,} more"] if more > 0 else list(lines)


def _named(names: Sequence[str]) -> str:
    """Join the first few names."""
    few = ", ".join(printable(name) for name in names[:EXAMPLES])
    return few + (", ..." if len(names) > EXAMPLES else "")
