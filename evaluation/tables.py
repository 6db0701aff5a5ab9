"""Results as tables and lines of text: the one place where figures are formatted.

evaluate.py prints the tables; evaluation/templates shows the same on a page.
"""

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.bootstrap import CONFIDENCE, RESAMPLES, Estimate
from evaluation.comparison import DRAWS, SETS, Comparison, SetSummary, Spread, StatisticRow
from evaluation.likelihood import ASPECTS, NoteSurprise, SetLikelihood
from evaluation.originality import LENGTHS, Originality, PieceOriginality, SetOriginality
from evaluation.sequences import SequenceLikelihood
from evaluation.summary import ModelSummary

# What is heard of a statistic that is far from real pieces: where it is higher, and lower.
DIFFERENCES = {
    "pitch_class_entropy": ("notes spread over more of the scale", "notes of less of the scale"),
    "scale_consistency": ("few notes from outside the key", "more notes from outside the key"),
    "pitch_range": ("a wider range", "a narrower range"),
    "polyphony": ("more notes at once", "fewer notes at once"),
    "note_density": ("a livelier pace", "a calmer pace"),
    "groove_consistency": ("a more even rhythm", "a less steady rhythm"),
    "bar_similarity": ("bars that are too much alike", "bars that have little in common"),
    "repeated_material": ("more repetition", "themes that seldom come back"),
    "parallel_fifths": ("parallel fifths", "fewer parallel fifths"),
    "parallel_octaves": ("parallel octaves", "fewer parallel octaves"),
    "voice_crossing": ("voices that cross", "voices that keep apart"),
    "out_of_range": ("notes out of a singer's range", "safer voice ranges"),
    "intervals": ("other steps in the melodies", "other steps in the melodies"),
    "durations": ("longer notes", "shorter notes"),
    "above_tonic": ("other notes of the key", "other notes of the key"),
}
# How much is as in real pieces, by the least share of the statistics.
_MUCH = ((0.9, "Nearly all"), (0.6, "Most"), (0.3, "Some"), (0.0, "Little"))
_MOST_TOLD, _CLEARLY_LESS = 3, 0.8
_FEW_PIECES = 10  # with fewer, written or held out, hardly anything can be told from real pieces

LINE_WIDTH = 100  # characters
_FIGURE = re.compile("$|\\[|NaN|\N{MINUS SIGN}?[0-9]")  # as one begins, or nothing
_MAX_FILES = 20  # files that have a line of their own


def number(value: float, digits: int) -> str:
    """Format a number with so many digits after the point; NaN where it is not defined."""
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
    """A table whose first column names its rows."""

    caption: str
    head: Sequence[str]  # of each column
    rows: Sequence[Sequence[str]]  # the texts of the cells
    marked: str = ""  # the name of the row that stands out

    @property
    def are_figures(self) -> list[bool]:
        """Whether each column is of figures, which are aligned at their right."""
        columns = zip(*self.rows, strict=True)
        return [all(_FIGURE.match(text) for text in texts) for texts in columns]

    def lines(self) -> Iterator[str]:
        """Yield the table as lines of text."""
        cells = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        gap = "  " if sum(widths) + 2 * len(widths) <= LINE_WIDTH else " "
        yield self.caption
        for row in cells:
            columns = zip(row, widths, self.are_figures, strict=True)
            padded = [text.rjust(w) if figure else text.ljust(w) for text, w, figure in columns]
            yield gap.join(padded).replace("\N{MINUS SIGN}", "-").rstrip()


def verdict(summary: ModelSummary) -> str:
    """Answer in words, without a number, how good the music is."""
    rows = _known(summary.music)
    far = sorted((name for name in rows if rows[name].is_far), key=lambda n: _distance(rows[n]))
    share = 1 - len(far) / max(len(rows), 1)
    much = next(word for least, word in _MUCH if share >= least)
    text = f"{much} of what we count in its music is as it is in real pieces."
    if not rows:  # as of drums alone
        text = "There is nothing to compare its music by."
    elif min(summary.music.pieces.values()) < _FEW_PIECES:
        text = f"There are too few pieces to be sure, so only listening tells. {text}"
    if far:
        told = [_difference(name, rows[name]) for name in far[:_MOST_TOLD]]
        text += f" What gives it away: {_listed(told)}."
    copied, of_real = (
        each.line.shares[8] for each in (summary.originality.all, summary.originality.held_out)
    )
    if copied > of_real / _CLEARLY_LESS:
        text += " It has more of the training pieces in it than real pieces have: it copies."
    elif copied <= of_real:
        text += " It shares less with the training pieces than real pieces do."
    return text


def _known(music: Comparison) -> dict[str, StatisticRow]:
    """Return the statistics that are defined for generated pieces."""
    return {name: row for name, row in music.rows.items() if not math.isnan(row.overlap)}


def _distance(row: StatisticRow) -> float:
    """Return how much of the overlap that real pieces have is left."""
    return row.overlap / (row.real_overlap.mean or 1.0)


def _difference(name: str, row: StatisticRow) -> str:
    """Say in words how generated pieces differ from held-out ones."""
    more, less = DIFFERENCES[name]
    return more if row.generated.mean > row.held_out.mean else less


def _listed(words: Sequence[str]) -> str:
    """Join words as in a sentence."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def likelihood_tables(sets: Sequence[SetLikelihood], digits: int) -> list[Table]:
    """Return nats per note, the same by kind of token, and bits per second: columns are sets."""
    sizes = "; ".join(f"{its.name}: {its.pieces:,} pieces, {its.notes:,} notes" for its in sets)
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
    """Return nats per id of sequences that are no music: columns are sets."""
    sizes = "; ".join(f"{its.name}: {its.sequences:,}, {its.ids:,} ids" for its in sets)
    return Table(
        f"Nats per id of whole sequences, and {CONFIDENCE:.0%} intervals ({sizes})",
        _with_intervals([its.name for its in sets]),
        list(_rows([its.nats_per_id for its in sets], digits=4)),
        marked="model",
    )


def _with_intervals(names: Sequence[str]) -> list[str]:
    """Return the heads of columns of estimates."""
    return ["", *(text for name in names for text in (name, "interval"))]


def _rows(estimates: Sequence[Mapping[str, Estimate]], digits: int) -> Iterator[list[str]]:
    """Yield a row for each name, of estimates and their intervals."""
    for name in dict.fromkeys(name for each in estimates for name in each):
        cells = [name]
        for each in estimates:
            its = each.get(name)
            cells += [number(its.value, digits), interval(its, digits)] if its else ["", ""]
        yield cells


def likelihood_lines(sets: Sequence[SetLikelihood]) -> Iterator[str]:
    """Yield the tables of likelihood, and what else there is to say of them."""
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
    """Yield a line for each file, the most surprising first."""
    files = sorted(pieces.files, key=lambda file: -file.nats_per_note)
    yield "nats per note, file by file"
    for file in files[:_MAX_FILES]:
        left_out = f", {file.notes_left_out} more left out" if file.notes_left_out else ""
        yield f"{number(file.nats_per_note, 4):>8}  {file.name} ({file.notes} notes{left_out})"
    if len(files) > _MAX_FILES:
        yield f"          and {len(files) - _MAX_FILES} more files"


def statistics_table(comparison: Comparison) -> Table:
    """Return means and overlaps of every statistic, beside the overlaps of real pieces."""
    rows = [
        [
            row.label,
            _mean_and_sd(row.generated, row.digits),
            _mean_and_sd(row.held_out, row.digits),
            number(row.overlap, 2) + (" ", "*")[row.is_far],
            _mean_and_sd(row.real_overlap, 2),
        ]
        for row in comparison.rows.values()
    ]
    return Table(
        f"Means and standard deviations over {comparison.pieces['generated']:,} generated and "
        f"{comparison.pieces['held_out']:,} held-out pieces",
        ("", "generated", "held-out", "overlap", "of real pieces"),
        rows,
    )


def _mean_and_sd(summary: SetSummary | Spread, digits: int) -> str:
    return f"{number(summary.mean, digits)} ±{number(summary.sd, digits)}"


def statistics_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the table of statistics, and what there is to say of it."""
    yield from statistics_table(comparison).lines()
    for note in statistics_notes(comparison):
        yield from textwrap.wrap(note, LINE_WIDTH)


def statistics_notes(comparison: Comparison) -> Iterator[str]:
    """Yield what the columns of the statistics mean, and what is not defined."""
    yield (
        "Overlap: 1 where the two are alike, 0 where they share nothing. "
        f"Of real pieces: training pieces in place of the generated, {DRAWS} draws of as many. "
        "*: farther from the held-out pieces than in any of these. ±: standard deviation, from "
        "intervals on over their notes."
    )
    told = comparison.told_apart
    if not math.isnan(told.generated):
        yield (
            "A classifier that sees all of this of a piece, and how it ends, can tell generated "
            f"from held-out pieces with an area under the ROC curve of {told.generated:.2f}, "
            f"training from held-out ones with {told.real:.2f}. 0.5 is a guess, 1 is never wrong."
        )
    for which, called in SETS.items():
        labels: dict[int, list[str]] = {}
        for row in comparison.rows.values():
            undefined = getattr(row, which).undefined
            labels.setdefault(undefined, []).append(row.label.split(",")[0])
        parts = [f"{', '.join(names)} of {count}" for count, names in labels.items() if count]
        if parts:
            head = f"Not defined, of {comparison.pieces[which]} {called} pieces: "
            yield f"{head}{'; '.join(parts)}; left out."


def originality_table(groups: Mapping[str, SetOriginality | PieceOriginality]) -> Table:
    """Return what training has of some groups of pieces, by name: a row per representation."""
    rows = []
    for name, group in groups.items():
        for representation, its in (("line", group.line), ("texture", group.texture)):
            longest = sorted(its.longest)
            ends = [f"{longest[len(longest) // 2]}", f"{longest[-1]}"] if longest else ["NaN"] * 2
            shares = [percent(its.shares[notes]) for notes in LENGTHS]
            rows.append([f"{name}: the {representation}", *shares, *ends])
    head = ("", *(f"{notes} notes" for notes in LENGTHS), "longest, median", "longest of all")
    return Table("Share of the runs of so many notes that training has too", head, rows)


def originality_lines(originality: Originality) -> Iterator[str]:
    """Yield a table of all pieces, and the longest runs of each."""
    training, held_out = originality.training, originality.held_out
    groups: dict[str, SetOriginality | PieceOriginality] = {
        piece.name: piece for piece in originality.pieces
    }
    if len(groups) > 1:
        groups[f"all {len(groups)} pieces"] = originality.all
    some = "" if held_out.pieces == held_out.of else f" of {held_out.of:,}"
    groups[f"{held_out.pieces:,}{some} held-out pieces"] = held_out
    yield (
        f"{training.pieces:,} training pieces, in any key "
        f"({training.corpus}, {training.notes:,} notes)"
    )
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
    return Table("The most surprising notes, in nats", head, rows)
