"""A folder of music files to token arrays on disk: read, checked, freed of copies, split by piece.

    python -m data.corpus FOLDER

datasets/NAME-HASH/report.txt        what a person wants to know; all of it in report.json
datasets/NAME-HASH/corpus.json       options, the names of the pieces, and the vocabulary
datasets/NAME-HASH/train/*.npy       the arrays of a `Split`; likewise valid/ and test/
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
from data.corpus.options import SPLITS, CorpusError, CorpusOptions
from data.corpus.store import FORMAT, Split
from data.midi.events import MAX_FILE_BYTES
from data.score import Grid
from data.tokens.vocabulary import Vocabulary

__all__ = ["SPLITS", "Corpus", "CorpusError", "CorpusOptions", "open_corpus"]


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk; get one with `open_corpus`."""

    folder: Path
    files: dict[str, tuple[str, ...]]  # the names of each split's pieces
    vocabulary: Vocabulary

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open the corpus that lies in this folder.

        Raises:
            FileNotFoundError: there is none.
            CorpusError: it is damaged, or of another format.
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
        """The hash of its files and of how they were read, by which splits are as they are."""
        return self.name.rpartition("-")[2]

    def split(self, name: str) -> Split:
        """Open the split of that name, one of SPLITS.

        Raises:
            CorpusError: its arrays are damaged.
        """
        folder = self.folder / name
        try:
            return Split.load(folder, self.files[name], self.vocabulary)
        except (OSError, ValueError, EOFError, IndexError, SyntaxError, TokenError):
            raise CorpusError(f"{folder}: damaged; delete it to build the corpus anew") from None

    def full_report(self) -> str:
        """Read the page on the corpus and how it came about.

        Raises:
            CorpusError: it is damaged.
        """
        path = self.folder / "report.txt"
        try:
            return path.read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, ValueError):
            raise _damaged(path) from None

    def summary(self) -> str:
        """Say what the corpus is made of: the beginning of its report.

        Raises:
            CorpusError: it is damaged.
        """
        return "\n".join(self.full_report().split("\n\n")[:2])


def _damaged(path: Path) -> CorpusError:
    return CorpusError(f"{path}: damaged; delete its folder to build it anew")


def open_corpus(
    path: str | Path,
    datasets: str | Path = "datasets",
    options: CorpusOptions | None = None,
    progress: bool = True,
    workers: int | None = None,
) -> Corpus:
    """Open the corpus of a folder of music files; build it where that has not been done before.

    Args:
        path: the folder; or "bach" or "folk", the embedded corpora.
        datasets: where corpora lie; each in a folder named by what went into it.
        options: None means the defaults.
        progress: whether to show bars while building, and print what an embedded corpus kept.
        workers: processes that share the work, which change nothing but the time; None means
            as many as there are cores.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: nothing there to train on, it changes while it is read, or the corpus cannot
            be written.
    """
    options = CorpusOptions() if options is None else options
    if not str(path):
        raise CorpusError("no folder of music files is named")
    folder, name = Path(path), Path(path).resolve().name or "corpus"
    if str(path) in EMBEDDED:
        try:
            from data.corpus import bach, folk  # music21 takes its time to import
        except ModuleNotFoundError as error:
            raise CorpusError(f"{path}: {error}: `make install` installs it") from None
        folder, name = Path(datasets) / path / "midi", str(path)
        embedded = bach if name == "bach" else folk
        report = embedded.build(folder, Grid(options.steps_per_beat), progress)
        if progress:
            print(f"{embedded.TITLE}: {report}")
    try:
        names, left_out = find_music_files(folder)
    except NotADirectoryError as error:
        raise CorpusError(str(error)) from None
    if not names and not left_out:
        raise CorpusError(f"{folder}: no music file in it")
    content = _content_hash(folder, names, options)
    out = Path(datasets) / f"{name}-{content}"
    if not (out / "corpus.json").is_file():
        from data.corpus.build import Source, build  # what is built is opened without it

        try:
            with replace_folder(out) as temporary:
                files = {each: folder / each for each in names}
                source = Source(name, folder, files, left_out, str(path) in EMBEDDED)
                build(source, temporary, options, workers or cores(), progress)
                if _content_hash(folder, names, options) != content:
                    raise CorpusError(f"{folder}: it changed while it was read; run this again")
        except OSError as error:
            reason = error.strerror or error
            raise CorpusError(f"{out}: the corpus cannot be written ({reason})") from None
    return Corpus.open(out)


def cores() -> int:
    """Return how many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _content_hash(folder: Path, names: Sequence[str], options: CorpusOptions) -> str:
    """Hash all that a corpus depends on, files, their names and options, to 12 hex digits.

    Of a file that is too large to be read it is the size and the beginning.
    """
    digest = hashlib.blake2b(digest_size=6)
    digest.update(json.dumps([FORMAT, dataclasses.asdict(options)]).encode())
    for name in names:
        path = os.path.join(folder, name)  # noqa: PTH118  # a Path takes as long as the rest
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                content = hashlib.blake2b(file.read(MAX_FILE_BYTES)).digest()
                size = os.fstat(file.fileno()).st_size
            content += b" %d" % size if size > MAX_FILE_BYTES else b""  # which is not read
        except OSError as error:
            content = type(error).__name__.encode()  # the first pass will say more
        digest.update(b"%d %s %s" % (len(name), os.fsencode(name), content))
    return digest.hexdigest()
