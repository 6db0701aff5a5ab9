"""The two passes that turn MIDI files into token arrays.

The first reads every file once, learns what is in it and keeps its score on disk. Then it is
known which pieces are copies, which split each goes to and what the vocabulary needs. The second
encodes the pieces. Both share the work among processes and take the results in order, so that the
same bytes come of it however many there are; and of the music never more lies in memory than
some pieces at a time.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.files import write_json
from common.text import printable
from data.corpus.advice import Trial
from data.corpus.duplicates import find_works
from data.corpus.find_files import SUFFIXES
from data.corpus.options import SPLITS, CorpusError, CorpusOptions
from data.corpus.reader import MidiPieces, read_pieces
from data.corpus.report import Copy, CorpusReport, LeftOut, report_text
from data.corpus.scratch import ARRAYS, ScratchScores
from data.corpus.store import FORMAT, MOST_IDS, ArrayWriter, Split, SplitWriter
from data.corpus.survey import Survey
from data.corpus.trials import grid_of, measured_options, some_of
from data.corpus.worker_pool import Failed, guarded, guarded_batches
from data.score import Grid, ScoreBatch
from data.tokens.batch_tokenizer import encode_batch
from data.tokens.vocabulary import Vocabulary

LIMIT_SECONDS = 60.0  # that a file may take to be read
CHUNK_PIECES = 64  # that are encoded together; fewer where they hold
CHUNK_TOKENS = 2**19  # about so many tokens, or
CHUNK_BARS = 2**14  # so many bars, which keeps the steps of all of them within 32 bits


@dataclass(frozen=True)
class Source:
    """A folder of MIDI files."""

    name: str  # of the corpus, for people
    folder: Path
    files: Sequence[str]  # their names, relative to the folder
    left_out: Sequence[tuple[str, str]]  # name and reason of each that is known not to be used
    ties_works: bool = True  # whether all pieces of a work go to one split


def build(
    source: Source, out: Path, options: CorpusOptions, workers: int = 1, progress: bool = False
) -> None:
    """Build a corpus in the empty folder `out`; `workers` processes share the work.

    A source with MIDI files in train/, valid/ or test/ is split so, and keeps its copies;
    otherwise the first of each group of copies is used and pieces are split by their content,
    all of a work to one split if the source says so.

    Raises:
        CorpusError: nothing there to train on.
        OSError: it cannot be written.
    """
    bar = partial(tqdm, unit="file", disable=None if progress else True, leave=False)
    grid = grid_of(source.folder, source.files, options, workers)
    scratch = ScratchScores(out / "scratch", grid)
    first_pass = _FirstPass(source, options, grid)
    with (
        ArrayWriter(scratch.folder, ARRAYS) as writer,
        bar(total=len(source.files), desc="reading") as reading,
    ):
        for scores in first_pass.scores(workers, reading):
            scratch.append(scores, writer)
    numbers = first_pass.split()
    vocabulary = first_pass.survey.vocabulary(grid, options.transpose)
    if vocabulary.size > MOST_IDS:
        raise CorpusError(
            f"{source.folder}: needs {vocabulary.size:,} kinds of token, {MOST_IDS:,} at most"
        )
    chunks = {
        split: _chunks(numbers[split], first_pass.tokens, scratch.bar_offsets) for split in SPLITS
    }
    encoded = guarded(
        partial(encode_pieces, scratch=scratch, names=first_pass.names, vocabulary=vocabulary),
        (chunk for split in SPLITS for chunk in chunks[split]),
        workers,
        LIMIT_SECONDS * CHUNK_PIECES,
    )
    writers = {}
    with bar(total=len(first_pass.names), desc="writing") as writing:
        for split in SPLITS:
            with SplitWriter(out / split) as writers[split]:
                for _, pieces in islice(encoded, len(chunks[split])):
                    if isinstance(pieces, Failed):
                        raise CorpusError(f"a piece could not be encoded: {pieces.reason}")
                    writers[split].add(pieces)
                    writing.update(len(pieces))
    shutil.rmtree(scratch.folder)
    report = first_pass.report(writers, vocabulary, workers)
    corpus = {
        "format": FORMAT,
        "options": asdict(options),
        "splits": report.splits,
        "files": {split: writer.names for split, writer in writers.items()},
        "vocabulary": json.loads(vocabulary.to_json()),
    }
    (out / "report.txt").write_text(report_text(report) + "\n", encoding="utf-8")
    write_json(report, out / "report.json")
    write_json(corpus, out / "corpus.json")


class _FirstPass:
    """Reads all files, and keeps what it learns of them, some hundred bytes each."""

    def __init__(self, source: Source, options: CorpusOptions, grid: Grid) -> None:
        self.source, self.options, self.grid = source, options, grid
        self.splits_given = any(file.split("/")[0] in SPLITS for file in source.files)
        self.keeps_copies = self.splits_given or not options.deduplicate
        self.left_out = [LeftOut(file, reason) for file, reason in source.left_out]
        self.copies: list[Copy] = []
        self.trials: list[Trial] = []
        self.survey = Survey()
        # Of the pieces that are used, by number:
        self.names: list[str] = []
        self.fingerprints: list[bytes] = []
        self.sketches: list[NDArray[np.uint32]] = []
        self.tokens: list[int] = []  # at least
        self._first_with: dict[bytes, tuple[str, int]] = {}  # fingerprint: name, lowest pitch

    def scores(self, workers: int, bar: tqdm) -> Iterator[ScoreBatch]:
        """Read the files; yield the scores that are used, some at a time."""
        files = self.source.files
        if self.splits_given:
            files = [file for file in files if file.split("/")[0] in SPLITS]
            for file in sorted(set(self.source.files) - set(files)):
                self.left_out.append(LeftOut(file, "not in train/, valid/ or test/"))
        read = partial(
            read_pieces,
            folder=self.source.folder,
            grid=self.grid,
            instruments=self.options.kept_instruments,
            tried=frozenset(some_of(files)),
        )
        for batch, pieces in guarded_batches(read, files, workers, LIMIT_SECONDS):
            bar.update(len(batch))
            if isinstance(pieces, Failed):
                self.left_out.append(LeftOut(batch[0], pieces.reason))
                continue
            self.left_out += [LeftOut(name, reason) for name, reason in pieces.left_out]
            is_used = [self._is_used(pieces, number) for number in range(len(pieces.names))]
            used = {name for name, used in zip(pieces.names, is_used, strict=True) if used}
            self.trials += [trial for trial in pieces.trials if trial.name in used]
            scores = pieces.scores.select(np.array(is_used, dtype=bool))
            self.survey.add(scores)
            yield scores

    def _is_used(self, pieces: MidiPieces, number: int) -> bool:
        """Count one of the pieces, unless it is a copy that is not kept."""
        mine = name, lowest_pitch = pieces.names[number], pieces.lowest_pitches[number]
        first, lowest = self._first_with.setdefault(pieces.fingerprints[number], mine)
        if first != name:
            self.copies.append(Copy(name, first, lowest_pitch - lowest))
            if not self.keeps_copies:
                return False
        self.names.append(name)
        self.fingerprints.append(pieces.fingerprints[number])
        self.sketches.append(pieces.sketches[number])
        self.tokens.append(pieces.least_tokens[number])
        self.survey.add_changes(pieces.grid_changes[number], pieces.unkept_notes[number])
        return True

    def split(self) -> dict[str, list[int]]:
        """Return the numbers of each split's pieces.

        Raises:
            CorpusError: too few pieces to train on.
        """
        folder = self.source.folder
        self.works = find_works(self.sketches, self.fingerprints)
        if not self.names:
            reasons = Counter(entry.reason for entry in self.left_out)
            raise CorpusError(
                f"{folder}: none of its {len(self.left_out)} MIDI files can be used; "
                f"most often: {reasons.most_common(1)[0][0]}"
            )
        if self.splits_given:
            given = [name.split("/")[0] for name in self.names]
            numbers = {s: [i for i, split in enumerate(given) if split == s] for s in SPLITS}
        else:
            marks = list(self.fingerprints)
            for work in self.works if self.source.ties_works else ():
                mark = min(marks[number] for number in work)
                for number in work:
                    marks[number] = mark
            numbers = random_splits(marks, self.options)
            if not numbers:  # all are one work
                numbers = random_splits(self.fingerprints, self.options)
        if not numbers:
            only = f"{folder}: only one piece ({printable(self.names[0])})"
            raise CorpusError(f"{only}: training needs one, validation another")
        for name in SPLITS[:2]:
            if not numbers[name]:
                raise CorpusError(
                    f"{folder}: it has folders of its own for train/, valid/ or test/, "
                    f"but no MIDI file in {name}/ can be used"
                )
        return numbers

    def report(
        self, writers: dict[str, SplitWriter], vocabulary: Vocabulary, workers: int
    ) -> CorpusReport:
        """Return the report on the corpus, once it is written; other options are tried for it."""
        source = self.source
        measured = measured_options(
            source.folder, source.files, self.options, self.trials, vocabulary, workers
        )
        trained_on = {*writers["train"].names}
        works = [[self.names[number] for number in work] for work in self.works if len(work) > 1]
        held_out = [sum(name not in trained_on for name in work) for work in works]
        others = sum(name.lower().endswith(SUFFIXES) for name, _ in source.left_out)
        return CorpusReport(
            name=source.name,
            files=len(source.files) + others,
            splits_given=self.splits_given,
            copies_kept=self.keeps_copies,
            grid=self.grid,
            vocabulary_size=vocabulary.size,
            splits={split: writer.counts() for split, writer in writers.items()},
            music=self.survey.counts(),
            trials=self.trials,
            measured=measured,
            copies=self.copies,
            works=works,
            held_out_of_trained=sum(
                count for count, work in zip(held_out, works, strict=True) if count < len(work)
            ),
            left_out=self.left_out,
        )


def random_splits(fingerprints: Sequence[bytes], options: CorpusOptions) -> dict[str, list[int]]:
    """Return the numbers of each split's pieces, drawn and ordered by what is in them.

    Pieces with one fingerprint go to one split: to training, where they are more than twice what
    another still needs. Train and valid hold one piece at least; where all are the same, there
    are no splits.
    """
    groups: dict[bytes, list[int]] = {}
    for number, fingerprint in enumerate(fingerprints):
        groups.setdefault(fingerprint, []).append(number)
    if len(groups) < 2:
        return {}

    def rank(fingerprint: bytes) -> bytes:
        return hashlib.blake2b(f"{options.seed} {fingerprint.hex()}".encode()).digest()

    shuffled = sorted(groups, key=rank)
    test = round(len(fingerprints) * options.test)
    if options.test > 0 and len(groups) >= 3:
        test = max(1, test)
    sizes = {"valid": max(1, round(len(fingerprints) * options.valid)), "test": test}
    numbers: dict[str, list[int]] = {name: [] for name in SPLITS}
    for name, size in sizes.items():
        least = min(len(groups[mark]) for mark in shuffled)
        for mark in tuple(shuffled):
            room = size - len(numbers[name])
            fits = room > 0 and len(groups[mark]) <= max(2 * room, least)
            if fits and len(shuffled) > 1:  # training keeps one
                shuffled.remove(mark)
                numbers[name] += groups[mark]
    numbers["train"] = [number for fingerprint in shuffled for number in groups[fingerprint]]
    return numbers


def _chunks(
    numbers: Sequence[int], tokens: Sequence[int], bar_offsets: Sequence[int]
) -> list[NDArray[np.int64]]:
    """Cut the numbers of some pieces into those that are encoded together."""
    if not numbers:
        return []
    share = np.maximum(np.array(tokens) / CHUNK_TOKENS, np.diff(bar_offsets) / CHUNK_BARS)
    chunk = np.cumsum(np.maximum(share, 1 / CHUNK_PIECES)[numbers]).astype(np.int64)
    return np.split(np.array(numbers), np.flatnonzero(np.diff(chunk)) + 1)


def encode_pieces(
    numbers: NDArray[np.int64], scratch: ScratchScores, names: Sequence[str], vocabulary: Vocabulary
) -> Split:
    """Encode the pieces with these numbers."""
    ids, lengths = encode_batch(scratch.read(numbers), vocabulary)
    return Split.of_ids([names[number] for number in numbers], ids, lengths, vocabulary)
