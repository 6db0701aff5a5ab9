"""Turns music files into token arrays.

Several processes read the files, each file once, and keep its ids on disk. When all are read, it is
known which pieces are copies, to which split each piece goes, and what the vocabulary needs. Then
the ids are translated to this vocabulary and written to their splits. Results are taken in order,
so that the same bytes come out with any number of processes. Only some pieces at a time are in
memory.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from common.arrays import Ints, offsets
from common.files import write_json
from common.text import printable
from common.worker_pool import MOST_ITEMS, Failed, guarded
from data.canonical import GridChanges
from data.corpus.duplicates import find_works, fingerprint_of, lowest_pitch, sketch_of
from data.corpus.notation import notation_as_midi
from data.corpus.options import FOLDERS, SPLITS, CorpusError, CorpusOptions
from data.corpus.reader import read_piece
from data.corpus.report import Copy, CorpusReport, LeftOut, report_text
from data.corpus.store import FORMAT, Split, SplitCounts, write_split
from data.corpus.survey import Survey, translation
from data.corpus.trials import Reading, reading_of
from data.files.source_text import SUFFIXES
from data.midi.instruments import Instruments
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Vocabulary

HELD_OUT = 0.1  # share of the pieces in valid, and also in test; at least one piece
CHUNK_TOKENS = 2**19  # tokens that are translated to the vocabulary together, about


@dataclass(frozen=True)
class Source:
    """A folder of music files."""

    name: str  # what people call the corpus
    folder: Path
    files: Mapping[str, Path]  # by their names, which are relative to the folder
    left_out: Sequence[tuple[str, str]]  # files that are known not to be used, and why
    is_embedded: bool = False  # an embedded corpus never changes: published figures rest on it


@dataclass(frozen=True)
class Piece:
    """What is known about a piece, apart from its music."""

    name: str  # the name of its file
    tokens: int  # how many tokens it has in the widest vocabulary
    fingerprint: bytes  # shared by copies in any key; see `duplicates.fingerprint_of`
    sketch: NDArray[np.uint32]  # shared, in part, by pieces of one work; see `duplicates.sketch_of`
    lowest_pitch: int  # of its notes, without drums
    grid_changes: GridChanges  # what bringing it to the grid changed
    unkept_notes: int  # notes of instruments that were not to be kept


def build(source: Source, out: Path, options: CorpusOptions, workers: int) -> None:
    """Build a corpus in the empty folder `out`; `workers` processes share the work.

    If the source has files in train/, valid/ or test/, these are the splits, and copies are kept.
    Otherwise only the first of several copies is used, and pieces are split by their content. All
    pieces of one work go to one split, unless the source is embedded.

    Raises:
        CorpusError: there is nothing to train on.
        OSError: the corpus cannot be written.
    """
    converted = out / "midi"
    unread = sum(name.lower().endswith(SUFFIXES) for name, _ in source.left_out)
    file_count = len(source.files) + unread  # a book of tunes is one file
    midi, left_out = notation_as_midi(source.files, converted, workers)
    source = replace(source, files=midi, left_out=[*source.left_out, *left_out])
    files = _Pass(source, reading_of([*midi.values()], options, workers))
    scratch = out / "ids"
    with scratch.open("wb") as file:
        for ids in files.ids(workers):
            file.write(ids.tobytes())
    numbers = files.split()
    wide_ids = np.memmap(scratch, np.uint16, "r")
    begins = offsets([piece.tokens for piece in files.pieces])
    for chunk in _chunks(range(len(files.pieces)), np.diff(begins)):
        files.survey.add(wide_ids[begins[chunk[0]] : begins[chunk[-1] + 1]])
    vocabulary = files.survey.vocabulary(options.transpose)
    table = translation(files.survey.wide, vocabulary)

    def pieces_of(split: str) -> Iterator[Split]:
        for chunk in _chunks(numbers[split], np.diff(begins)):
            found = [table[wide_ids[slice(*begins[n : n + 2])]] for n in chunk.tolist()]
            # if all notes have one velocity, there are no Velocity tokens
            pieces = [ids[ids >= 0] for ids in found]
            names = [files.pieces[number].name for number in chunk]
            yield Split.of_pieces(names, pieces, vocabulary)

    written = {split: write_split(out / split, pieces_of(split)) for split in SPLITS}
    files_of = {split: names for split, (_, names) in written.items()}
    counts = {split: each for split, (each, _) in written.items()}
    scratch.unlink()
    report = files.report(file_count, counts, {*files_of["train"]}, vocabulary.size)
    corpus = {
        "format": FORMAT,
        "options": asdict(files.reading.options),
        "files": files_of,
        "vocabulary": json.loads(vocabulary.to_json()),
    }
    shutil.rmtree(converted, ignore_errors=True)
    (out / "report.txt").write_text(report_text(report) + "\n", encoding="utf-8")
    write_json(report, out / "report.json")
    write_json(corpus, out / "corpus.json")


class _Pass:
    """Reads all files, and remembers what the rest of the build needs: some hundred bytes each."""

    def __init__(self, source: Source, reading: Reading) -> None:
        self.source, self.reading, self.grid = source, reading, reading.grid
        self.splits_given = any(file.split("/")[0] in FOLDERS for file in source.files)
        self.left_out = [LeftOut(file, reason) for file, reason in source.left_out]
        self.copies: list[Copy] = []
        self.pieces: list[Piece] = []  # the pieces that are used
        self.survey = Survey(self.grid)
        self._first_with: dict[bytes, Piece] = {}  # the first piece with each fingerprint

    def ids(self, workers: int) -> Iterator[NDArray[np.uint16]]:
        """Read the files, and yield the ids of the pieces that are used, in order."""
        files = self.source.files
        if self.splits_given:
            files = {name: files[name] for name in files if name.split("/")[0] in FOLDERS}
            for file in sorted({*self.source.files} - {*files}):
                self.left_out.append(LeftOut(file, "not in train/, valid/ or test/"))
        read = partial(
            read_and_encode,
            wide=self.survey.wide,
            instruments=self.reading.instruments,
            begins_with_notes=not self.source.is_embedded,
        )
        each = guarded(read, files.items(), workers, most_items=MOST_ITEMS)
        # disable=None: the bar is shown on a terminal only
        bar = tqdm(each, "reading", len(files), unit="file", disable=None, leave=False)
        for (name, _), found in bar:
            if isinstance(found, Failed):
                self.left_out.append(LeftOut(name, found.reason))
            elif self._is_used(found[0]):
                yield found[1]

    def _is_used(self, piece: Piece) -> bool:
        """Count a piece and return True, unless it is a copy that is not kept."""
        first = self._first_with.setdefault(piece.fingerprint, piece)
        if first is not piece:
            semitones = piece.lowest_pitch - first.lowest_pitch
            self.copies.append(Copy(piece.name, first.name, semitones))
            if not self.splits_given:
                return False
        self.pieces.append(piece)
        self.survey.add_changes(piece.grid_changes, piece.unkept_notes)
        return True

    def split(self) -> dict[str, list[int]]:
        """Return the numbers of the pieces in each split.

        Raises:
            CorpusError: there are too few pieces to train on.
        """
        folder = self.source.folder
        marks = [piece.fingerprint for piece in self.pieces]
        self.works = find_works([piece.sketch for piece in self.pieces], marks)
        if not self.pieces:
            reasons = Counter(entry.reason for entry in self.left_out)
            raise CorpusError(
                f"{folder}: none of its {len(self.left_out)} files can be used; "
                f"most often: {reasons.most_common(1)[0][0]}"
            )
        if self.splits_given:
            given = [FOLDERS[piece.name.split("/")[0]] for piece in self.pieces]
            numbers = {s: [i for i, split in enumerate(given) if split == s] for s in SPLITS}
        else:
            tied = [*marks]
            for work in () if self.source.is_embedded else self.works:
                for number in work:
                    tied[number] = min(marks[number] for number in work)
            # if all are one work, it may be divided
            tokens = [piece.tokens for piece in self.pieces]
            numbers = random_splits(tied, tokens) or random_splits(marks, tokens)
        if not numbers:
            only = f"{folder}: only one piece ({printable(self.pieces[0].name)})"
            raise CorpusError(f"{only}: training needs one, and validation needs another")
        for name in SPLITS[:2]:
            if not numbers[name]:
                raise CorpusError(
                    f"{folder}: it has folders of its own for train/, valid/ or test/, "
                    f"but no file in {name}/ can be used"
                )
        return numbers

    def report(
        self,
        file_count: int,
        splits: dict[str, SplitCounts],
        trained_on: set[str],
        vocabulary_size: int,
    ) -> CorpusReport:
        """Return the report on the corpus after it is written."""
        source = self.source
        works = [
            [self.pieces[number].name for number in work] for work in self.works if len(work) > 1
        ]
        held_out = [sum(name not in trained_on for name in work) for work in works]
        return CorpusReport(
            name=source.name,
            files=file_count,
            splits_given=self.splits_given,
            grid=self.grid,
            vocabulary_size=vocabulary_size,
            splits=splits,
            music=self.survey.counts(),
            chosen=self.reading.chosen,
            copies=tuple(self.copies),
            works=tuple(map(tuple, works)),
            held_out_of_trained=sum(
                count for count, work in zip(held_out, works, strict=True) if count < len(work)
            ),
            left_out=tuple(self.left_out),
        )


def read_and_encode(
    file: tuple[str, Path], wide: Vocabulary, instruments: Instruments, begins_with_notes: bool
) -> tuple[Piece, NDArray[np.uint16]] | Failed:
    """Read a music file, given as (name, path), and return its piece and the ids of the piece.

    If `begins_with_notes`, bars before the first note are left out, since models would otherwise
    learn to begin with silence.
    """
    name, path = file
    found = read_piece(path, wide.grid, instruments)
    if isinstance(found, Failed):
        return found
    score, changes = found.score, found.changes
    if begins_with_notes and (empty := int(score.bar_positions[0][0])):
        score, changes.empty_bars = score.excerpt(empty, len(score.bars)), empty
    ids = encode(score, wide).astype(np.uint16)
    marks = fingerprint_of(score), sketch_of(found.events), lowest_pitch(score)
    return Piece(name, len(ids), *marks, changes, found.unkept_notes), ids


def random_splits(fingerprints: Sequence[bytes], tokens: Sequence[int]) -> dict[str, list[int]]:
    """Return the numbers of the pieces in each split, drawn and ordered by their content.

    Pieces with one fingerprint go to one split. They go to training if there are more than twice as
    many as another split still needs, or if they have more than twice its share of all tokens (if
    all others do too, the shortest are held out). Train and valid have at least one piece each. If
    all pieces have one fingerprint, there are no splits. A split whose pieces are so short that
    they have less than half of its share of all tokens gets more pieces, twice as many at most.

    Args:
        fingerprints: (P,) of each piece.
        tokens: (P,) how many tokens each piece has.
    """
    groups: dict[bytes, list[int]] = {}
    for number, fingerprint in enumerate(fingerprints):
        groups.setdefault(fingerprint, []).append(number)
    if len(groups) < 2:
        return {}

    def rank(fingerprint: bytes) -> bytes:
        return hashlib.blake2b(f"0 {fingerprint.hex()}".encode()).digest()

    sizes = {mark: sum(tokens[number] for number in group) for mark, group in groups.items()}
    shuffled = sorted(groups, key=rank)
    held_out, share = max(1, round(len(fingerprints) * HELD_OUT)), HELD_OUT * sum(tokens)
    numbers: dict[str, list[int]] = {name: [] for name in SPLITS}
    for name in ("valid", "test") if len(groups) >= 3 else ("valid",):
        own, least, size = numbers[name], min(len(groups[mark]) for mark in shuffled), 0
        few = [mark for mark in shuffled if len(groups[mark]) <= max(2 * held_out, least)]
        most = max(2 * share, min(sizes[mark] for mark in few))
        for mark in tuple(shuffled):
            group, added, room = groups[mark], sizes[mark], held_out - len(own)
            if room > 0:
                fits = len(group) <= max(2 * room, least) and added <= most
            elif size < share / 2 and len(shuffled) > 2:
                fits = len(group) <= held_out + room and added <= share
            else:
                break
            if fits and len(shuffled) > 1:  # training keeps at least one
                shuffled.remove(mark)
                own += group
                size += added
    numbers["train"] = [number for fingerprint in shuffled for number in groups[fingerprint]]
    return numbers


def _chunks(numbers: Sequence[int], sizes: Ints) -> list[Ints]:
    """Cut the numbers of some pieces into groups that are counted, or translated, together."""
    chunk = np.cumsum(sizes[numbers]) // CHUNK_TOKENS if numbers else np.empty(0)
    cut = np.split(np.array(numbers, dtype=np.int64), np.flatnonzero(np.diff(chunk)) + 1)
    return [each for each in cut if len(each)]
