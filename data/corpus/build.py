"""The two passes that turn MIDI files into token arrays.

The first reads every file once, learns what is in it and keeps its Score on disk; then it is
known which pieces are copies, which split each goes to and what the vocabulary needs. The second
spells the pieces. Both share the work among processes and take the results in order, so that the
same bytes come of it however many there are; and of the music never more lies in memory than
some pieces at a time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.text import printable
from data.corpus.duplicates import Windows, window_marks
from data.corpus.options import SPLITS, CorpusError, CorpusOptions
from data.corpus.reader import Readings, read_pieces
from data.corpus.report import Census, near_copies, report_text
from data.corpus.scratch import MedleyOnDisk, MedleyWriter, encode_batch
from data.corpus.store import MOST_IDS, GrowingArray, SplitWriter, TokenArrays, token_arrays
from data.corpus.worker_pool import SUFFIXES, Failed, guarded, guarded_batches
from data.score import Score, ScoreBatch, offsets
from data.tokens.vocabulary import Survey, Vocabulary

FORMAT = 2  # of what is written; another number is never read, but built anew
LIMIT_SECONDS = 60.0  # that a file may take to be read
CHUNK_PIECES = 64  # that are handled together; fewer where they hold
CHUNK_TOKENS = 2**19  # about so many tokens, or
CHUNK_BARS = 2**14  # so many bars, which keeps the steps of all of them within 32 bits


def build(
    name: str,
    source: Path,
    files: Sequence[str],
    left_out: Sequence[tuple[str, str]],
    out: Path,
    options: CorpusOptions,
    workers: int = 1,
    progress: bool = False,
) -> None:
    """Builds a corpus of files.

    Args:
        name: of the corpus, for people.
        source: the folder that the files are in.
        files: the names of the MIDI files, relative to it.
        left_out: name and reason of each that is known not to be used.
        out: an empty folder, which is filled.
        options: how.
        workers: how many processes share the work.
        progress: whether to show bars.

    A folder with MIDI files in train/, valid/ or test/ is split so, and keeps its copies;
    otherwise the first of each group of copies is used and pieces are dealt by their content.

    Raises:
        CorpusError: nothing there to train on.
        OSError: it cannot be written.
    """
    scratch = out / "scratch"
    scratch.mkdir()
    found = _Found(any(file.split("/")[0] in SPLITS for file in files))
    for file, reason in left_out:
        found.leave_out(file, reason)
    readable = files
    if found.splits_given:
        readable = [file for file in files if file.split("/")[0] in SPLITS]
        for file in sorted(set(files) - set(readable)):
            found.leave_out(file, "not in train/, valid/ or test/")
    with MedleyWriter(scratch) as writer, _bar(len(readable), "reading", progress) as bar:
        _read_all(found, source, readable, writer, options, workers, bar)
    members = _members(found, source, options)
    vocabulary = found.survey.vocabulary(options.time_grid, options.transpose)
    if vocabulary.size > MOST_IDS:
        raise CorpusError(
            f"{source}: needs {vocabulary.size:,} kinds of token, {MOST_IDS:,} at most"
        )
    chunks = {split: found.chunks(members[split]) for split in SPLITS}
    rows = (found.rows(chunk) for split in SPLITS for chunk in chunks[split])
    spell = partial(spell_chunk, vocabulary=vocabulary, scratch=scratch)
    spelled = guarded(spell, rows, workers, LIMIT_SECONDS * CHUNK_PIECES)
    splits, windows = {}, {}
    with _bar(len(found.names), "writing", progress) as bar:
        for split in SPLITS:
            pieces = [found.names[number] for number in members[split]]
            here = islice(spelled, len(chunks[split]))
            splits[split], windows[split] = _write_split(out / split, scratch, pieces, here, bar)
    report = {
        "name": name,
        "files": len(files) + sum(name.lower().endswith(SUFFIXES) for name, _ in left_out),
        "splits_given": found.splits_given,
        "copies_kept": found.splits_given or not options.deduplicate,
        "grid": dataclasses.asdict(options.time_grid),
        "vocabulary_size": vocabulary.size,
        "splits": {
            split: {what: count for what, count in counts.items() if what != "files"}
            for split, counts in splits.items()
        },
        **found.census.report(),
        "near_copies": near_copies(windows, {split: splits[split]["files"] for split in SPLITS}),
        "without_beats": found.without_beats,
        "copies": found.copies,
        "left_out": found.left_out,
    }
    corpus = {
        "format": FORMAT,
        "options": dataclasses.asdict(options),
        "splits": splits,
        "vocabulary": json.loads(vocabulary.to_json()),
    }
    del windows  # mapped from what goes now
    shutil.rmtree(scratch)
    for file, text in (
        ("report.json", json.dumps(report, indent=1)),
        ("report.txt", report_text(report)),
        ("corpus.json", json.dumps(corpus, indent=1)),
    ):
        (out / file).write_text(text + "\n", encoding="utf-8")


def _members(found: _Found, source: Path, options: CorpusOptions) -> dict[str, list[int]]:
    """The pieces of each split, of which training needs two; or what is missing."""
    if not found.names:
        reasons = Counter(entry["reason"] for entry in found.left_out)
        raise CorpusError(
            f"{source}: none of its {len(found.left_out)} MIDI files can be used; "
            f"most often: {reasons.most_common(1)[0][0]}"
        )
    members = _given(found.names) if found.splits_given else deal(found.marks, options)
    if not members:
        only = f"{source}: only one piece ({printable(found.names[0])})"
        raise CorpusError(f"{only}: training needs one, validation another")
    for name in SPLITS[:2]:
        if not members[name]:
            given = (
                "it has folders of its own for train/, valid/ or test/, but " * found.splits_given
            )
            raise CorpusError(f"{source}: {given}no MIDI file in {name}/ can be used")
    return members


def _write_split(
    folder: Path,
    scratch: Path,
    names: list[str],
    spelled: Iterable[tuple[Rows, Spelled | Failed]],
    bar: tqdm,
) -> tuple[dict[str, Any], Windows]:
    """Writes the pieces of a split; what was written, and their two-bar windows."""
    counts = GrowingArray(scratch / f"{folder.name}-counts.npy", np.int64)
    marks = GrowingArray(scratch / f"{folder.name}-marks.npy", np.uint64)
    with SplitWriter(folder) as split, counts, marks:
        counts.append([])
        marks.append([])
        for rows, chunk in spelled:
            if isinstance(chunk, Failed):
                raise CorpusError(f"a piece could not be spelled: {chunk.reason}")
            done = len(split.names)
            split.add(names[done : done + len(rows.notes)], chunk.tokens)
            counts.append(chunk.window_counts)
            marks.append(chunk.window_marks)
            bar.update(len(rows.notes))
    return split.report(), Windows(marks.mapped(), offsets(counts.mapped()))


def _bar(total: int, what: str, progress: bool) -> tqdm:
    """A progress bar."""
    hidden = None if progress else True  # None: shown where someone looks at it
    return tqdm(total=total, desc=what, unit="file", disable=hidden, leave=False)


# The first pass


@dataclass
class _Found:
    """What the first pass learns; the pieces that are used, by number.

    Of 100,000 files some hundred bytes each.
    """

    splits_given: bool
    names: list[str] = field(default_factory=list)
    marks: list[bytes] = field(default_factory=list)
    sizes: array[int] = field(default_factory=lambda: array("q"))
    note_offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    bar_offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    left_out: list[dict[str, str]] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    without_beats: list[str] = field(default_factory=list)
    survey: Survey = field(default_factory=Survey)
    census: Census = field(default_factory=Census)

    def leave_out(self, name: str, reason: str) -> None:
        """Notes that a file is not used, and why."""
        self.left_out.append({"file": name, "reason": reason})

    def use(self, readings: Readings, number: int) -> None:
        """Takes a piece of these into account, but for its music."""
        self.names.append(readings.names[number])
        self.marks.append(readings.marks[number])
        self.sizes.append(readings.sizes[number])
        self.census.add_losses(readings.losses[number])
        self.census.unkept_notes += readings.unkept_notes[number]
        if not readings.has_beats[number]:
            self.without_beats.append(readings.names[number])

    def add(self, batch_of_scores: ScoreBatch) -> None:
        """Takes the music of pieces into account."""
        self.note_offsets.extend(
            (self.note_offsets[-1] + batch_of_scores.note_offsets[1:]).tolist()
        )
        self.bar_offsets.extend((self.bar_offsets[-1] + batch_of_scores.bar_offsets[1:]).tolist())
        self.census.add(batch_of_scores)
        # a survey asks which meters, tempi and notes there are, not in which piece
        self.survey.add(
            Score(
                batch_of_scores.notes,
                batch_of_scores.bars,
                batch_of_scores.tempo_bpm,
                batch_of_scores.grid,
            )
        )

    def chunks(self, members: Sequence[int]) -> list[Sequence[int]]:
        """These pieces, in their order, so many together as are spelled at once."""
        chunks, begin = [], 0
        tokens = bars = 0
        for at, number in enumerate(members, start=1):
            tokens += self.sizes[number]
            bars += self.bar_offsets[number + 1] - self.bar_offsets[number]
            is_full = at - begin == CHUNK_PIECES or tokens > CHUNK_TOKENS or bars > CHUNK_BARS
            if is_full or at == len(members):
                chunks.append(members[begin:at])
                begin, tokens, bars = at, 0, 0
        return chunks

    def rows(self, members: Sequence[int]) -> Rows:
        """Where these pieces are on disk."""
        return Rows(
            [(self.note_offsets[number], self.note_offsets[number + 1]) for number in members],
            [(self.bar_offsets[number], self.bar_offsets[number + 1]) for number in members],
        )


def _read_all(
    found: _Found,
    source: Path,
    names: Sequence[str],
    writer: MedleyWriter,
    options: CorpusOptions,
    workers: int,
    bar: tqdm,
) -> None:
    """The first pass."""
    keeps_copies = found.splits_given or not options.deduplicate
    first_with: dict[bytes, tuple[str, int]] = {}  # mark -> name, lowest pitch
    read = partial(read_pieces, folder=source, grid=options.time_grid, instruments=options.kept)
    for names_of, readings in guarded_batches(read, names, workers, LIMIT_SECONDS):
        bar.update(len(names_of))
        if isinstance(readings, Failed):
            found.leave_out(names_of[0], readings.reason)
            continue
        for name, reason in readings.left_out:
            found.leave_out(name, reason)
        is_used = np.ones(len(readings.names), dtype=bool)
        for number, name in enumerate(readings.names):
            mine = (name, readings.lowest_pitches[number])
            first, lowest = first_with.setdefault(readings.marks[number], mine)
            if first != name:
                semitones = mine[1] - lowest
                found.copies.append({"file": name, "of": first, "semitones": semitones})
                is_used[number] = keeps_copies
            if is_used[number]:
                found.use(readings, number)
        batch_of_scores = readings.batch_of_scores.some(is_used)
        found.add(batch_of_scores)
        writer.add(batch_of_scores)


# Between the passes


def _given(names: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of each split's pieces where subfolders say so."""
    return {s: [i for i, name in enumerate(names) if name.split("/")[0] == s] for s in SPLITS}


def deal(marks: Sequence[bytes], options: CorpusOptions) -> dict[str, list[int]]:
    """The numbers of each split's pieces, chosen and ordered by what is in them.

    Args:
        marks: of each piece; pieces with the same mark go to the same split.
        options: the shares, and the seed.

    Returns:
        By split; train and valid hold one at least. Nothing where all pieces are the same.
    """
    groups: dict[bytes, list[int]] = {}
    for number, mark in enumerate(marks):
        groups.setdefault(mark, []).append(number)
    if len(groups) < 2:
        return {}

    def lot(mark: bytes) -> bytes:
        return hashlib.blake2b(f"{options.seed} {mark.hex()}".encode()).digest()

    drawn = sorted(groups, key=lot)
    test = round(len(marks) * options.test)
    if options.test > 0 and len(groups) >= 3:
        test = max(1, test)
    sizes = {"valid": max(1, round(len(marks) * options.valid)), "test": test}
    members: dict[str, list[int]] = {name: [] for name in SPLITS}
    for name, size in sizes.items():
        while len(members[name]) < size and len(drawn) > 1:  # training keeps one
            members[name] += groups[drawn.pop(0)]
    members["train"] = [number for mark in drawn for number in groups[mark]]
    return members


# The second pass


@dataclass(frozen=True)
class Rows:
    """Where some pieces are on disk."""

    notes: list[tuple[int, int]]  # begin and end of each
    bars: list[tuple[int, int]]


@dataclass(frozen=True)
class Spelled:
    """What the second pass makes of some pieces."""

    tokens: TokenArrays
    window_marks: NDArray[np.uint64]
    window_counts: NDArray[np.int64]


def spell_chunk(rows: Rows, vocabulary: Vocabulary, scratch: Path) -> Spelled | Failed:
    """Some pieces as tokens, and the marks of their two-bar windows."""
    batch_of_scores = MedleyOnDisk(scratch, vocabulary.grid).pieces(rows.notes, rows.bars)
    tokens = token_arrays(*encode_batch(batch_of_scores, vocabulary), vocabulary)
    return Spelled(tokens, *window_marks(batch_of_scores))
