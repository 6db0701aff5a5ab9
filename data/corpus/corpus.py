"""Builds token arrays on disk from a folder of music files: checked, split, and without copies.

    python -m data.corpus FOLDER

datasets/NAME-HASH/report.txt        what people want to know; report.json has all of it
datasets/NAME-HASH/corpus.json       the options, the names of the pieces, and the vocabulary
datasets/NAME-HASH/train/*.npy       the arrays of a `Split`; valid/ and test/ are alike
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Self

from common.files import replace_folder
from common.text import printable
from data.corpus.find_files import EMBEDDED, find_music_files
from data.corpus.options import ID_SUFFIXES, SPLITS, CorpusError, CorpusOptions
from data.corpus.store import FORMAT, Split
from data.midi.events import MAX_FILE_BYTES
from data.score import Grid
from data.tokens.vocabulary import Vocabulary

__all__ = ["SPLITS", "Corpus", "CorpusError", "CorpusOptions", "open_corpus"]


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk; `open_corpus` returns one."""

    folder: Path
    files: dict[str, tuple[str, ...]]  # the names of the pieces in each split
    vocabulary: Vocabulary

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the corpus in a folder.

        Raises:
            FileNotFoundError: there is none.
            CorpusError: it is damaged, or has another format.
        """
        path = Path(folder) / "corpus.json"
        try:
            corpus = json.loads(path.read_text(encoding="utf-8"))
            if corpus["format"] != FORMAT:
                told = printable(str(corpus["format"]))
                raise CorpusError(f"{path}: format {told}, not {FORMAT}; delete it")
            vocabulary = Vocabulary.from_json(json.dumps(corpus["vocabulary"]))
            files = {name: tuple(corpus["files"][name]) for name in SPLITS}
            return cls(Path(folder), files, vocabulary)
        except FileNotFoundError:
            raise FileNotFoundError(f"{folder}: no corpus in it") from None
        except CorpusError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise _damaged(path) from None

    @property
    def name(self) -> str:
        """The name of its folder, which no other corpus has."""
        return self.folder.name

    @property
    def content(self) -> str:
        """The hash of its files and of how they were read, which together decide its splits."""
        return self.name.rpartition("-")[2]

    def split(self, name: str) -> Split:
        """Open a split by its name, one of SPLITS.

        Raises:
            CorpusError: the arrays of the split are damaged.
        """
        folder = self.folder / name
        try:
            return Split.load(folder, self.files[name], self.vocabulary)
        except (OSError, ValueError, EOFError, IndexError, SyntaxError, TokenError):
            raise CorpusError(f"{folder}: damaged; delete it to build the corpus anew") from None

    def full_report(self) -> str:
        """Read the report on the corpus and how it was made.

        Raises:
            CorpusError: the report is damaged.
        """
        path = self.folder / "report.txt"
        try:
            return path.read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, ValueError):
            raise _damaged(path) from None

    def summary(self) -> str:
        """Return what the corpus is made of: the beginning of its report.

        Raises:
            CorpusError: the report is damaged.
        """
        return "\n".join(self.full_report().split("\n\n")[:2])


def _damaged(path: Path) -> CorpusError:
    return CorpusError(f"{path}: damaged; delete its folder to build it anew")


def open_corpus(
    path: str | Path,
    datasets: str | Path = "datasets",
    options: CorpusOptions | None = None,
    workers: int | None = None,
) -> Corpus:
    """Open the corpus of a folder of music files, and build it first if it does not exist yet.

    Args:
        path: the folder; or "bach" or "folk", the embedded corpora.
        datasets: the folder of all corpora, each in a folder that is named by what went into it.
        options: None: the defaults.
        workers: how many processes share the work, which changes nothing but the time; None: as
            many as there are cores.

    Raises:
        FileNotFoundError: there is no such folder.
        CorpusError: there is nothing to train on, the folder changes while it is read, or the
            corpus cannot be written.
    """
    options = CorpusOptions() if options is None else options
    if not str(path):
        raise CorpusError("no folder of music files is named")
    folder, name = Path(path), Path(path).resolve().name or "corpus"
    if str(path) in EMBEDDED:
        try:
            from data.corpus import bach, folk  # music21 takes long to import
        except ModuleNotFoundError as error:
            raise CorpusError(f"{path}: {error}: `make install` installs it") from None
        folder, name = Path(datasets) / path / "midi", str(path)
        embedded = bach if name == "bach" else folk
        report = embedded.build(folder, Grid(options.steps_per_beat))
        print(f"{embedded.TITLE}: {report}")
    try:
        names, left_out = find_music_files(folder)
    except NotADirectoryError as error:
        raise CorpusError(str(error)) from None
    if not names and not left_out:
        ids = sorted(str(path) for path in folder.iterdir() if path.suffix in ID_SUFFIXES)
        hint = f"; name the file of sequences: {ids[0]}" if ids else ""
        raise CorpusError(f"{folder}: no music file in it{hint}")
    content = _content_hash(folder, names, options)
    out = Path(datasets) / f"{name}-{content}"
    if not (out / "corpus.json").is_file():
        from data.corpus.build import Source, build  # a corpus that exists is opened without this

        try:
            with replace_folder(out) as temporary:
                files = {each: folder / each for each in names}
                source = Source(name, folder, files, left_out, str(path) in EMBEDDED)
                build(source, temporary, options, workers or cores())
                if _content_hash(folder, names, options) != content:
                    raise CorpusError(f"{folder}: it changed while it was read; run this again")
        except OSError as error:
            reason = error.strerror or error
            raise CorpusError(f"{out}: the corpus cannot be written ({reason})") from None
    return Corpus.open(out)


def cores() -> int:
    """Return how many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _content_hash(folder: Path, names: Sequence[str], options: CorpusOptions) -> str:
    """Hash everything that a corpus depends on (files, their names, options) to 12 hex digits.

    If a file is too large to be read, its size and its beginning are hashed.
    """
    digest = hashlib.blake2b(digest_size=6)
    digest.update(json.dumps([FORMAT, dataclasses.asdict(options)]).encode())
    for name in names:
        path = os.path.join(folder, name)  # noqa: PTH118  # a Path takes as long as all the rest
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                content = hashlib.blake2b(file.read(MAX_FILE_BYTES)).digest()
                size = os.fstat(file.fileno()).st_size
            content += b" %d" % size if size > MAX_FILE_BYTES else b""  # this file is not read
        except OSError as error:
            content = type(error).__name__.encode()  # reading the files will say more
        digest.update(b"%d %s %s" % (len(name), os.fsencode(name), content))
    return digest.hexdigest()
