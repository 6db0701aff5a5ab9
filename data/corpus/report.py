"""What a person wants to know of a corpus before training: counted while it is built, and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pretty_midi

from common.text import printable
from data.corpus.duplicates import Windows, likest, shares_found
from data.corpus.options import SPLITS
from data.score import DRUMS, GridChanges, ScoreBatch

MOST_ALIKE = 10  # held-out pieces that are named, of those that training knows best
EXAMPLES = 3  # names beside a count
LINES = 8  # of a list that is printed; report.json has all


class Census:
    """Counts over the pieces that are used."""

    def __init__(self) -> None:
        self.programs = np.zeros(DRUMS + 1, dtype=np.int64)  # notes of each
        self.pitches = np.zeros(128, dtype=np.int64)  # but the drums'
        self.velocities = np.zeros(128, dtype=np.int64)
        self.meters: Counter[tuple[int, int]] = Counter()  # bars of each
        self.tempos: Counter[int] = Counter()  # bars of each
        self.losses = GridChanges()
        self.unkept_notes = 0  # of instruments that were not asked for

    def add(self, batch_of_scores: ScoreBatch) -> None:
        """Counts these pieces."""
        notes, bars = batch_of_scores.notes, batch_of_scores.bars
        program = notes["program"]
        self.programs += np.bincount(program, minlength=DRUMS + 1)
        self.pitches += np.bincount(notes["pitch"][program != DRUMS], minlength=128)
        self.velocities += np.bincount(notes["velocity"], minlength=128)
        meter = (bars["numerator"].astype(np.int64) << 32) + bars["denominator"]
        for number, count in zip(*map(np.ndarray.tolist, _counted(meter)), strict=True):
            self.meters[number >> 32, number & 0xFFFFFFFF] += count
        for bpm, count in zip(
            *map(np.ndarray.tolist, _counted(batch_of_scores.tempo_bpm)), strict=True
        ):
            self.tempos[bpm] += count

    def add_losses(self, losses: GridChanges) -> None:
        """Counts what bringing a piece to the grid has lost."""
        total = self.losses
        worst = max(total.worst_error_steps, losses.worst_error_steps)
        for name, value in vars(losses).items():
            setattr(total, name, getattr(total, name) + value)
        total.worst_error_steps = worst

    def report(self) -> dict[str, Any]:
        """The counts as JSON holds them."""
        meters = sorted(self.meters.items(), key=lambda meter: (-meter[1], meter[0]))
        return {
            "programs": {str(n): int(self.programs[n]) for n in np.flatnonzero(self.programs)},
            "pitches": _ends(np.flatnonzero(self.pitches)),
            "velocities": np.flatnonzero(self.velocities).tolist(),
            "meters": {f"{n}/{d}": count for (n, d), count in meters},
            "tempos": {str(bpm): count for bpm, count in sorted(self.tempos.items())},
            "losses": dict(vars(self.losses)),
            "unkept_notes": self.unkept_notes,
        }


def _counted(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.unique(values, return_counts=True)


def _ends(rising: np.ndarray[Any, Any]) -> list[int]:
    return [int(rising[0]), int(rising[-1])] if len(rising) else []


def near_copies(
    windows: Mapping[str, Windows], names: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """How much of each held-out split training has too, in two-bar windows in any key.

    Args:
        windows: of each split's pieces.
        names: of each split's pieces.
    """
    told = {}
    for split in SPLITS[1:]:
        held_out = windows[split]
        share = shares_found(held_out, windows["train"])
        total = int(held_out.offsets[-1])
        most = [int(n) for n in np.argsort(-share, kind="stable")[:MOST_ALIKE] if share[n] > 0]
        like = likest([held_out.of(number) for number in most], windows["train"])
        told[split] = {
            "windows": total,
            "found": round(float(share @ np.diff(held_out.offsets))),
            "pieces_over_half": int((share > 0.5).sum()),
            "most_alike": [
                {
                    "file": names[split][number],
                    "share": round(float(share[number]), 4),
                    "like": names["train"][other],
                }
                for number, other in zip(most, like, strict=True)
            ],
        }
    return told


def summary(report: dict[str, Any]) -> str:
    """The splits, and what was left out, in a few lines."""
    splits, left = report["splits"], len(report["left_out"])
    lines = [
        f"  {name}: {{pieces:,}} pieces, {{notes:,}} notes, {{tokens:,}} tokens".format(
            **splits[name]
        )
        for name in SPLITS
    ]
    fate = "kept" if report["copies_kept"] else "left out"
    lines.append(f"  {len(report['copies'])} copies {fate}, {left} files left out")
    return "\n".join(lines)


def report_text(report: dict[str, Any]) -> str:
    """The report for people, a page."""
    used = sum(counts["pieces"] for counts in report["splits"].values())
    title = f"{printable(report['name'])}: {used:,} pieces out of {report['files']:,} MIDI files"
    parts = [
        [title],
        _splits_table(report),
        _music_lines(report),
        _copies_lines(report),
        _left_out_lines(report["left_out"]),
        _near_copies_lines(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _splits_table(report: dict[str, Any]) -> list[str]:
    counts = report["splits"]
    columns = ("pieces", "notes", "bars", "tokens")
    rows = {name: [counts[name][column] for column in columns] for name in SPLITS}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [" " * 8 + "".join(f"{name:>13}" for name in (*columns, "tokens/note"))]
    for name, row in rows.items():
        ratio = f"{row[3] / row[1]:13.2f}" if row[1] else f"{'-':>13}"
        lines.append(f"  {name:6}" + "".join(f"{value:13,}" for value in row) + ratio)
    return lines


def _music_lines(report: dict[str, Any]) -> list[str]:
    programs = Counter({int(n): count for n, count in report["programs"].items()})
    notes = programs.total()
    instruments = [
        f"{_instrument(number)} {count:,} notes ({count / notes:.1%})"
        for number, count in programs.most_common()
    ]
    velocities, losses, grid = report["velocities"], report["losses"], report["grid"]
    levels = "one level, {}" if len(velocities) == 1 else "{1} levels, {0} to {2}"
    read = notes + losses["merged"]
    meters = [f"{meter} {count:,} bars" for meter, count in report["meters"].items()]
    mean = losses["error_steps"] / read
    pieces = sum(counts["pieces"] for counts in report["splits"].values())
    pitches = [pretty_midi.note_number_to_name(pitch) for pitch in report["pitches"]]
    if report["unkept_notes"]:
        instruments.append(f"{report['unkept_notes']:,} notes of others left out")
    tells_meter = [("meters", _few(meters)), ("tempo", [_tempo_line(report["tempos"])])]
    if grid["kind"] == "seconds":
        tells_meter = []
    lines = [
        ("tokens", [f"{report['vocabulary_size']:,} different ones"]),
        ("instruments", _few(instruments)),
        ("pitches", [" to ".join(dict.fromkeys(pitches))] if pitches else ["drums alone"]),
        ("velocities", [levels.format(velocities[0], len(velocities), velocities[-1])]),
        *tells_meter,
        (
            "grid",
            [
                _grid_line(grid),
                f"{losses['moved']:,} onsets moved ({losses['moved'] / read:.1%}), "
                f"by {losses['worst_error_steps']:.2g} steps at worst; "
                f"the mean of all onsets is {mean:.2g} steps",
                f"{losses['merged']:,} notes merged with another, {losses['cut']:,} cut short",
                _grid_advice(report["without_beats"], pieces),
            ],
        ),
    ]
    return [
        f"  {label if not index else '':14}{text}"
        for label, texts in lines
        for index, text in enumerate(texts)
    ]


def _grid_line(grid: dict[str, Any]) -> str:
    steps = grid["steps_per_beat"]
    if grid["kind"] == "seconds":
        return f"{steps} steps a second"
    return f"{steps} steps a beat (one is {60_000 / 120 / steps:.0f} ms at 120 a minute)"


def _instrument(program: int) -> str:
    return "Drums" if program == DRUMS else pretty_midi.program_to_instrument_name(program)


def _tempo_line(tempos: dict[str, int]) -> str:
    bpm = np.repeat([int(bpm) for bpm in tempos], list(tempos.values()))
    if bpm[0] == bpm[-1]:
        return f"{bpm[0]} quarter notes a minute"
    middle = int(bpm[len(bpm) // 2])
    return f"{bpm[0]} to {bpm[-1]} quarter notes a minute, the middle bar at {middle}"


def _grid_advice(without_beats: list[str], pieces: int) -> str:
    """Which grid suits."""
    if not without_beats:
        return "all pieces keep to a beat, so a grid of beats suits them"
    told = f"{len(without_beats):,} of {pieces:,} pieces keep to no beat that the grid divides"
    suits = "a grid of seconds suits" if 2 * len(without_beats) > pieces else "beats suit the rest"
    return f"{told} ({_named(without_beats)}): {suits}"


def _few(items: Sequence[str]) -> list[str]:
    """The first of them, and how many there are more."""
    more = len(items) - LINES
    return [*items[:LINES], f"and {more:,} more"] if more > 0 else list(items)


def _named(names: Iterable[str]) -> str:
    """A few names."""
    all_names = [printable(name) for name in names]
    return ", ".join(all_names[:EXAMPLES]) + (", ..." if len(all_names) > EXAMPLES else "")


def _copies_lines(report: dict[str, Any]) -> list[str]:
    copies = report["copies"]
    if not copies:
        return ["Copies: none"]
    exact = sum(not copy["semitones"] for copy in copies)
    fate = "kept where they are" if report["splits_given"] else "kept on one side of the split"
    fate = fate if report["copies_kept"] else "left out"
    head = f"Copies: {len(copies):,}, {fate}; {exact:,} exact, {len(copies) - exact:,} transposed"
    lines = []
    for copy in copies:
        moved = f", {copy['semitones']:+d} semitones" if copy["semitones"] else ""
        lines.append(f"  {printable(copy['file'])} is {printable(copy['of'])}{moved}")
    return [head, *_indented(_few(lines))]


def _left_out_lines(left_out: list[dict[str, str]]) -> list[str]:
    if not left_out:
        return ["Left out: none"]
    by_reason: dict[str, list[str]] = {}
    for entry in left_out:
        by_reason.setdefault(entry["reason"], []).append(entry["file"])
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    lines = [f"{len(names):,} {printable(reason)}: {_named(names)}" for reason, names in groups]
    return [f"Left out: {len(left_out):,}", *_indented(_few(lines))]


def _near_copies_lines(report: dict[str, Any]) -> list[str]:
    what = "bars" if report["grid"]["kind"] == "beats" else "seconds"
    lines = [f"Near copies: two {what} running that training has too, in any key"]
    alike = []
    for split, told in report["near_copies"].items():
        if told["windows"]:
            pieces = report["splits"][split]["pieces"]
            lines.append(
                f"  {split:6}{told['found'] / told['windows']:6.1%} of {told['windows']:,}; "
                f"more than half in {told['pieces_over_half']:,} of {pieces:,} pieces"
            )
        alike += [(entry["share"], split, entry) for entry in told["most_alike"]]
    alike.sort(key=lambda row: -row[0])
    for share, split, entry in alike[:LINES]:
        file, like = printable(entry["file"]), printable(entry["like"])
        lines.append(f"  {share:6.0%}  {file} ({split}), most like {like}")
    return lines


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line.strip()}" for line in lines]
