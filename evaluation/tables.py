"""Results as tables and lines of text: the one place where figures are formatted.

evaluate.py prints the tables, and evaluation/templates shows the same on a page.
"""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.text import counted
from evaluation.bootstrap import CONFIDENCE, RESAMPLES, Estimate
from evaluation.classifier import FOLDS
from evaluation.comparison import Comparison, StatisticRow
from evaluation.likelihood import ASPECTS, NoteSurprise, SequenceLikelihood, SetLikelihood
from evaluation.originality import LENGTHS, Originality, SetOriginality
from evaluation.summary import ModelSummary

# How well classifiers separate its music from real music, by the least area under the ROC curve.
_TOLD = (
    (0.9, "Its music is nearly always told from real pieces by what we count in it."),
    (0.75, "Its music is often told from real pieces by what we count in it."),
    (0.6, "Its music can sometimes be told from real pieces by what we count in it."),
    (0.0, "Its music can hardly be told from real pieces by what we count in it."),
)
_MOST_TOLD, _LEAST_AREA, _CLEARLY_LESS = 3, 0.6, 0.8
_MOST_SHOWN = 20  # statistics
_FEW_PIECES = 10  # with fewer pieces in either set, hardly anything can be separated

LINE_WIDTH = 100  # characters
_MAX_FILES = 20  # how many files have a line of their own


def number(value: float, digits: int) -> str:
    """Format a number with `digits` digits after the point; NaN: it is not defined."""
    return "NaN" if math.isnan(value) else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return "NaN" if math.isnan(share) else f"{share:.1%}"


def interval(estimate: Estimate, digits: int) -> str:
    """Format the interval of an estimate."""
    if math.isnan(estimate.low):
        return "[NaN]"
    return f"[{number(estimate.low, digits)} to {number(estimate.high, digits)}]"


@dataclass(frozen=True)
class Table:
    """A table whose first column has the names of its rows."""

    caption: str
    head: Sequence[str]  # the title of each column
    rows: Sequence[Sequence[str]]  # the texts of the cells
    marked: str = ""  # the name of a row to highlight
    words: int = 1  # how many columns at the left have words; figures are aligned at their right

    def lines(self) -> Iterator[str]:
        """Yield the table as lines of text."""
        cells = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        gap = "  " if sum(widths) + 2 * len(widths) <= LINE_WIDTH else " "
        yield self.caption
        for row in cells:
            cells_by_width = enumerate(zip(row, widths, strict=True))
            padded = [t.ljust(w) if n < self.words else t.rjust(w) for n, (t, w) in cells_by_width]
            yield gap.join(padded).replace("\N{MINUS SIGN}", "-").rstrip()


def verdict(summary: ModelSummary) -> str:
    """Answer in words, without a number, how good the music is."""
    music = summary.music
    area = max(music.by_forest.generated, music.by_regression.generated)
    if not music.rows:
        text = "There is nothing to compare its music by."
    elif min(music.pieces.values()) < _FEW_PIECES:
        text = "There are too few pieces to be sure, so only listening tells."
    else:
        text = next(words for least, words in _TOLD if area >= least)
        most = [row for row in music.rows[:_MOST_TOLD] if row.area >= _LEAST_AREA]
        if most:
            text += f" What gives it away: {'; '.join(map(_difference, most))}."
    copied, of_real = (
        each.line.shares[8] for each in (summary.originality.all, summary.originality.held_out)
    )
    if copied > of_real / _CLEARLY_LESS:
        text += " It has more of the training pieces in it than real pieces have: it copies."
    elif copied < of_real:
        text += " It shares less with the training pieces than real pieces do."
    return text


def _difference(row: StatisticRow) -> str:
    """Say in words how generated pieces differ from held-out ones in a statistic."""
    more = "more" if row.generated.mean > row.held_out.mean else "less"
    return f"{row.name}, {more}"


def likelihood_tables(sets: Sequence[SetLikelihood], digits: int) -> list[Table]:
    """Return nats per note, in all and by kind of token, and bits per second; columns are sets."""
    sizes = "; ".join(
        f"{its.name}: {counted(its.pieces, 'piece')}, {counted(its.notes, 'note')}" for its in sets
    )
    head = _with_intervals([its.name for its in sets])
    per_note = list(_rows([its.nats_per_note for its in sets], digits))
    per_second = list(_rows([its.bits_per_second for its in sets], 1))
    kinds_caption = "What each kind of token adds to the model's figure"
    return [
        Table(f"Nats per note of whole pieces ({sizes})", head, per_note, marked="model"),
        Table(kinds_caption, head, list(_rows([its.nats_by_kind for its in sets], digits))),
        Table("Bits per second of music", head, per_second, marked="model"),
    ]


def sequence_table(sets: Sequence[SequenceLikelihood]) -> Table:
    """Return nats per id of sequences that are not music; columns are sets."""
    sizes = "; ".join(f"{its.name}: {its.sequences:,}, {its.ids:,} ids" for its in sets)
    return Table(
        f"Nats per id of whole sequences, and {CONFIDENCE:.0%} intervals ({sizes})",
        _with_intervals([its.name for its in sets]),
        list(_rows([its.nats_per_id for its in sets], digits=4)),
        marked="model",
    )


def _with_intervals(names: Sequence[str]) -> list[str]:
    """Return the titles of columns of estimates."""
    return ["", *(text for name in names for text in (name, "interval"))]


def _rows(estimates: Sequence[Mapping[str, Estimate]], digits: int) -> Iterator[list[str]]:
    """Yield a row for each name, with its estimates and their intervals."""
    for name in dict.fromkeys(name for each in estimates for name in each):
        cells = [name]
        for each in estimates:
            its = each.get(name)
            cells += [number(its.value, digits), interval(its, digits)] if its else ["", ""]
        yield cells


def likelihood_lines(sets: Sequence[SetLikelihood]) -> Iterator[str]:
    """Yield the tables of likelihood, and what else there is to say about it."""
    for table in likelihood_tables(sets, digits=4):
        yield from table.lines()
    per_token = (f"{its.name} {number(its.nats_per_token.value, 4)}" for its in sets)
    yield f"Nats per token: {', '.join(per_token)}"
    if left_out := [f"{its.name} {its.notes_left_out:,}" for its in sets if its.notes_left_out]:
        yield f"Notes left out: {', '.join(left_out)}"
    yield (
        f"In brackets: {CONFIDENCE:.0%} intervals, percentile bootstrap over pieces, "
        f"{RESAMPLES:,} resamples."
    )


def file_lines(pieces: SetLikelihood) -> Iterator[str]:
    """Yield a line for each file, the most surprising file first."""
    files = sorted(pieces.files, key=lambda file: -file.nats_per_note)
    yield "nats per note, file by file"
    for file in files[:_MAX_FILES]:
        left_out = f", {file.notes_left_out} more left out" if file.notes_left_out else ""
        size = counted(file.notes, "note") + left_out
        yield f"{number(file.nats_per_note, 4):>8}  {file.name} ({size})"
    if len(files) > _MAX_FILES:
        yield f"          and {len(files) - _MAX_FILES} more files"


def statistics_table(comparison: Comparison) -> Table:
    """Return the statistics that separate best."""
    rows = []
    for row in comparison.rows[:_MOST_SHOWN]:
        sd = row.held_out.sd
        digits = 3 - sum(sd >= least for least in (0.1, 1, 10))
        sets = (
            f"{number(its.mean, digits)} ±{number(its.sd, digits)}"
            for its in (row.generated, row.held_out)
        )
        rows.append([row.name, *sets, number(row.area, 2)])
    pieces = comparison.pieces
    return Table(
        f"What tells most: means and standard deviations over {pieces['generated']:,} generated "
        f"and {pieces['held_out']:,} held-out pieces",
        ("", "generated", "held-out", "area"),
        rows,
    )


def statistics_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the table of statistics, and what there is to say about it."""
    yield from statistics_table(comparison).lines()
    for note in statistics_notes(comparison):
        yield from textwrap.wrap(note, LINE_WIDTH)


def statistics_notes(comparison: Comparison) -> Iterator[str]:
    """Yield how well all statistics separate the pieces, and what the columns mean."""
    forest, regression = comparison.by_forest, comparison.by_regression
    moves = comparison.by_moves
    if not math.isnan(forest.generated):
        yield (
            f"By all {len(comparison.rows)} statistics generated pieces are told from held-out "
            f"ones with an area under the ROC curve of {forest.generated:.2f} (random forest) "
            f"and {regression.generated:.2f} (logistic regression), training from held-out ones "
            f"with {forest.real:.2f} and {regression.real:.2f}. A second judge "
            f"sees only steps of one voice and of two that no critic has seen: "
            f"{number(moves.generated, 2)}; training pieces: {number(moves.real, 2)}."
        )
    else:
        yield f"There are no areas by all statistics: a set has fewer than {FOLDS} pieces."
    yield (
        "Area: the same by one statistic alone. 0.5 is a guess, 1 is never wrong. Shares are "
        "between 0 and 1, heights and distances in semitones."
    )


def kept_note(comparison: Comparison, candidates: int) -> str:
    """Return how well a critic's choices among several are separated from held-out pieces."""
    forest, regression = comparison.by_forest.generated, comparison.by_regression.generated
    return (
        f"These were drawn once. Where every few bars the model's critic takes the best of "
        f"{candidates}, as generate.py does, the areas are {number(forest, 2)} and "
        f"{number(regression, 2)}, by moves {number(comparison.by_moves.generated, 2)}."
    )


def originality_table(groups: Mapping[str, SetOriginality]) -> Table:
    """Return how much of each group of pieces training has: a row for each representation."""
    rows = []
    for name, group in groups.items():
        for representation, its in (("line", group.line), ("texture", group.texture)):
            longest: list[float] = sorted(its.longest) or [math.nan]
            ends = (number(run, 0) for run in (longest[len(longest) // 2], longest[-1]))
            shares = (percent(its.shares[notes]) for notes in LENGTHS)
            rows.append([f"{name}: the {representation}", *shares, *ends])
    head = ("", *(f"{notes} notes" for notes in LENGTHS), "longest, median", "longest of all")
    return Table("Share of the runs of so many notes that training has too", head, rows)


def originality_lines(originality: Originality) -> Iterator[str]:
    """Yield a table for all pieces, and the longest runs of each."""
    groups: dict[str, SetOriginality] = {piece.name: piece for piece in originality.pieces}
    if len(groups) > 1:
        groups[f"all {len(groups)} pieces"] = originality.all
    groups[f"{len(originality.held_out.line.longest):,} held-out pieces"] = originality.held_out
    yield f"{originality.training_pieces:,} training pieces, in any key ({originality.corpus})"
    yield from originality_table(groups).lines()
    for piece in originality.pieces[:_MAX_FILES]:
        yield from (f"{piece.name}: {run}" for run in piece.longest_runs)


def surprise_table(notes: Sequence[NoteSurprise]) -> Table:
    """Return the most surprising notes, with the nats of each aspect."""
    least = 0.05  # a smaller figure is shown as 0.0
    aspects = [name for name in ASPECTS if any(note.parts[name] >= least for note in notes)]
    rows = [
        [f"{place}", note.place, note.name, note.instrument, number(note.nats, 1)]
        + [number(note.parts[aspect], 1) for aspect in aspects]
        for place, note in enumerate(notes, start=1)
    ]
    head = ("", "where", "note", "voice", "all", *aspects)
    return Table("The most surprising notes, in nats", head, rows, words=4)
