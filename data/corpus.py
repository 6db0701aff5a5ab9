"""A folder of MIDI files to token arrays on disk: read, checked, freed of copies, split by piece.

Two passes over the files, so that the corpus never lies in memory: the first learns what is in
each file, the second writes the tokens of those that are used.

    datasets/NAME-HASH/corpus.json       what was done, and the vocabulary
    datasets/NAME-HASH/train/*.npy       the arrays of a `Split`; likewise valid/ and test/
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from data.midi import read_midi
from data.quantise import MidiError
from data.score import DRUMS, Grid, Losses, Score
from data.store import MOST_IDS, Split, SplitWriter, folder_beside
from data.tokenizer import encode
from data.vocabulary import Survey, Vocabulary, VocabularyError

FORMAT = 1  # of what is written; another number is never read, but built anew
SPLITS = ("train", "valid", "test")
SUFFIXES = (".mid", ".midi")
EMBEDDED = "bach"  # the path that means the embedded corpus


class CorpusError(ValueError):
    """No corpus can be made or read; the message is one line, for people."""


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is built.

    Attributes:
        steps_per_beat: of the grid.
        transpose: semitones, up and down, by which the vocabulary must let every piece move.
        valid, test: shares of the pieces that are held out; valid gets one at least.
        seed: another seed, other pieces are held out.

    Raises:
        CorpusError: a value out of range.
    """

    steps_per_beat: int = 12
    transpose: int = 6
    valid: float = 0.1
    test: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps_per_beat < 1:
            raise CorpusError(f"steps_per_beat must be 1 or more, not {self.steps_per_beat}")
        if not 0 <= self.transpose <= 127:
            raise CorpusError(f"transpose must be 0 to 127 semitones, not {self.transpose}")
        if self.valid < 0 or self.test < 0 or not self.valid + self.test < 1:
            raise CorpusError(
                f"the shares of valid and test must leave something to train on, "
                f"not be {self.valid} and {self.test}"
            )

    @property
    def grid(self) -> Grid:
        """The grid that the pieces are brought to."""
        return Grid(self.steps_per_beat)


@dataclass(frozen=True)
class Corpus:
    """A corpus on disk; get one with `open_corpus`.

    Attributes:
        folder: where it lies.
        report: what corpus.json says of how it came about.
        vocabulary: of its tokens.
    """

    folder: Path
    report: dict[str, Any]
    vocabulary: Vocabulary

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        """The corpus that `build_corpus` wrote.

        Raises:
            FileNotFoundError: there is none.
            CorpusError: it is damaged, or of another format.
        """
        path = Path(folder) / "corpus.json"
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            if report["format"] != FORMAT:
                raise CorpusError(f"{path}: format {report['format']}, not {FORMAT}; delete it")
            vocabulary = Vocabulary.from_json(json.dumps(report["vocabulary"]))
        except FileNotFoundError:
            raise FileNotFoundError(f"{folder}: no corpus in it") from None
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, VocabularyError):
            raise CorpusError(f"{path}: damaged; delete its folder to build it anew") from None
        return cls(Path(folder), report, vocabulary)

    def split(self, name: str) -> Split:
        """The split of that name, one of SPLITS.

        Raises:
            CorpusError: its arrays are damaged.
        """
        folder = self.folder / name
        try:
            return Split.load(folder, tuple(self.report["splits"][name]["files"]))
        except (OSError, ValueError):
            raise CorpusError(f"{folder}: damaged; delete it to build the corpus anew") from None

    def summary(self) -> str:
        """What is in the corpus and what was left out, in a few lines for people."""
        report, splits = self.report, self.report["splits"]
        lines = [f"corpus {self.folder}: {report['vocabulary_size']} kinds of token"]
        for name in SPLITS:
            counts = "{pieces:,} pieces, {notes:,} notes, {tokens:,} tokens, {bars:,} bars"
            lines.append(f"  {name}: {counts.format(**splits[name])}")
        copies, losses = report["copies"], report["losses"]
        fate = "kept where they are" if report["splits_given"] else "left out"
        lines.append(f"  copies, in any key: {len(copies)}, {fate}")
        reasons = Counter(entry["reason"] for entry in report["left_out"]).most_common(3)
        told = "; ".join(f"{count} {reason}" for reason, count in reasons)
        lines.append(f"  files left out: {len(report['left_out'])}{told and f' (mostly: {told})'}")
        lines.append(
            "  to the grid: {moved:,} notes moved, {merged:,} merged, {cut:,} cut".format(**losses)
        )
        return "\n".join(lines)


def open_corpus(
    path: str | Path,
    datasets: str | Path = "datasets",
    options: CorpusOptions | None = None,
    progress: bool = True,
) -> Corpus:
    """The corpus of a folder of MIDI files, built where that has not been done before.

    Args:
        path: the folder, or "bach": the embedded corpus.
        datasets: where corpora lie; each in a folder named by what went into it.
        options: None means the defaults.
        progress: whether to show bars while building, and print the summary.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: nothing there to train on.
    """
    options = CorpusOptions() if options is None else options
    folder, chorales = Path(path), None
    if str(path) == EMBEDDED:
        from data import bach  # music21 takes its time to import

        folder = Path(datasets) / EMBEDDED / "midi"
        chorales = bach.build(folder, options.grid, progress)
    name = EMBEDDED if chorales else folder.resolve().name or "corpus"
    out = Path(datasets) / f"{name}-{_content_hash(folder, options)}"
    is_built = out.is_dir()
    corpus = Corpus.open(out) if is_built else build_corpus(folder, out, options, progress)
    if progress:
        print(*filter(None, [chorales, corpus.summary()]), sep="\n")
    return corpus


def build_corpus(
    path: str | Path, out: str | Path, options: CorpusOptions, progress: bool = True
) -> Corpus:
    """Builds the corpus of the folder `path` as the folder `out`, which appears when it is whole.

    A folder with train/ and valid/ (and test/) inside is split so, and keeps its copies;
    otherwise the first of each group of copies is used and pieces are dealt by their content.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: nothing there to train on, or it changes while it is read.
    """
    path, out = Path(path), Path(out)
    found = _read_all(path, options, progress)
    names = _given_splits(found) if found.splits_given else _deal(found, options)
    for name in SPLITS[:2]:
        if not names[name]:
            raise CorpusError(f"{path}: no MIDI file in {name}/ can be used")
    vocabulary = found.survey.vocabulary(options.grid, options.transpose)
    if vocabulary.size > MOST_IDS:
        raise CorpusError(f"{path}: needs {vocabulary.size:,} kinds of token, {MOST_IDS:,} at most")
    with folder_beside(out) as folder:
        splits = {}
        for name in SPLITS:
            with SplitWriter(folder / name, vocabulary) as writer:
                for file in _bar(names[name], f"writing {name}", progress):
                    writer.add(file, _ids(path, file, vocabulary))
            splits[name] = writer.report()
        report = {
            "format": FORMAT,
            "folder": path.resolve().name,
            "options": dataclasses.asdict(options),
            "splits_given": found.splits_given,
            "splits": splits,
            "left_out": found.left_out,
            "copies": found.copies,
            "losses": dataclasses.asdict(found.losses),
            "vocabulary_size": vocabulary.size,
            "vocabulary": json.loads(vocabulary.to_json()),
        }
        (folder / "corpus.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return Corpus.open(out)


def _ids(folder: Path, name: str, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The second reading of a file, whose notes the first one has seen."""
    try:
        return encode(read_midi(folder / name, vocabulary.grid)[0], vocabulary)
    except (MidiError, VocabularyError, OSError) as error:
        raise CorpusError(f"{name} changed while it was read ({error})") from None


def _bar(names: list[str], what: str, progress: bool) -> Iterable[str]:
    """The names, with a progress bar."""
    hidden = None if progress else True  # None: shown where someone looks at it
    bar: Iterable[str] = tqdm(names, desc=what, unit="file", disable=hidden, leave=False)
    return bar


def fingerprint(score: Score) -> str:
    """What copies share: onset, duration, program and relative pitch of every note.

    The same music in another key, at another tempo or loudness has the same one.
    """
    notes = score.notes
    pitch = notes["pitch"].astype("<i4")
    is_pitched = notes["program"] != DRUMS
    pitch[is_pitched] -= pitch[is_pitched].min(initial=127)
    columns = [notes["onset"], notes["duration"], notes["program"], pitch]
    return hashlib.blake2b(np.stack(columns).astype("<i4").tobytes(), digest_size=16).hexdigest()


def midi_files(folder: Path) -> list[str]:
    """The names of all MIDI files in a folder and below, relative to it, sorted.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: it is no folder, or holds no MIDI file.
    """
    if not folder.exists():
        raise FileNotFoundError(f"{folder}: no such folder")
    if not folder.is_dir():
        raise CorpusError(f"{folder}: a file, where a folder of MIDI files is needed")
    names = [
        (Path(root) / name).relative_to(folder).as_posix()
        for root, _, files in os.walk(folder)
        for name in files
        if name.lower().endswith(SUFFIXES)
    ]
    if not names:
        raise CorpusError(f"{folder}: no .mid or .midi file in it")
    return sorted(names)


@dataclass
class _Found:
    """What the first pass learns."""

    splits_given: bool
    used: dict[str, str] = field(default_factory=dict)  # name -> fingerprint
    left_out: list[dict[str, str]] = field(default_factory=list)
    copies: list[dict[str, str]] = field(default_factory=list)
    survey: Survey = field(default_factory=Survey)
    losses: Losses = field(default_factory=Losses)


def _read_all(folder: Path, options: CorpusOptions, progress: bool) -> _Found:
    """The first pass: every file read once."""
    files = midi_files(folder)
    found = _Found(splits_given=all((folder / name).is_dir() for name in SPLITS[:2]))
    first_with: dict[str, str] = {}  # fingerprint -> name
    for name in _bar(files, "reading", progress):
        try:
            if found.splits_given and name.split("/")[0] not in SPLITS:
                raise MidiError("not in train/, valid/ or test/")
            score, losses = read_midi(folder / name, options.grid)
            if not len(score.notes):
                raise MidiError("it holds no notes")
        except (MidiError, OSError) as error:
            reason = str(error).removeprefix(f"{folder / name}: ")
            found.left_out.append({"file": name, "reason": reason})
            continue
        mark = fingerprint(score)
        first = first_with.setdefault(mark, name)
        if first != name:
            found.copies.append({"file": name, "of": first})
            if not found.splits_given:
                continue
        found.used[name] = mark
        found.survey.add(score)
        _add_losses(found.losses, losses)
    if not found.used:
        reasons = Counter(entry["reason"] for entry in found.left_out)
        raise CorpusError(
            f"{folder}: none of its {len(files)} MIDI files can be used; "
            f"most often: {reasons.most_common(1)[0][0]}"
        )
    return found


def _add_losses(total: Losses, losses: Losses) -> None:
    worst = max(total.worst_error_steps, losses.worst_error_steps)
    for name, value in dataclasses.asdict(losses).items():
        setattr(total, name, getattr(total, name) + value)
    total.worst_error_steps = worst


def _given_splits(found: _Found) -> dict[str, list[str]]:
    """The files of each split where subfolders say so."""
    return {split: [n for n in found.used if n.split("/")[0] == split] for split in SPLITS}


def _deal(found: _Found, options: CorpusOptions) -> dict[str, list[str]]:
    """The files of each split, chosen and ordered by what is in them, whatever their names."""
    count = len(found.used)
    if count < 2:
        only = next(iter(found.used))
        raise CorpusError(f"only one piece ({only}): training needs one, validation another")

    def lot(name: str) -> bytes:
        return hashlib.blake2b(f"{options.seed} {found.used[name]}".encode()).digest()

    names = sorted(found.used, key=lot)
    valid = max(1, round(count * options.valid))
    test = round(count * options.test)
    if options.test > 0 and count >= 3:
        test = max(1, test)
    test = min(test, count - 1 - valid)  # training keeps one
    return {
        "train": names[valid + test :],
        "valid": names[:valid],
        "test": names[valid : valid + test],
    }


def _content_hash(folder: Path, options: CorpusOptions) -> str:
    """Twelve hex digits of all that a corpus depends on: files and their names, and options."""
    digest = hashlib.blake2b(digest_size=6)
    digest.update(json.dumps([FORMAT, dataclasses.asdict(options)]).encode())
    for name in midi_files(folder):
        path = folder / name
        try:
            if not path.is_file():  # opening a pipe would wait for ever
                raise FileNotFoundError
            with path.open("rb") as file:
                content = hashlib.file_digest(file, hashlib.blake2b).hexdigest()
        except OSError as error:
            content = type(error).__name__  # the first pass will say more
        digest.update(json.dumps([name, content]).encode())
    return digest.hexdigest()


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data.corpus",
        description="Builds the corpus of a folder of MIDI files and says what is in it.",
    )
    parser.add_argument("folder", help='a folder of MIDI files, or "bach": the embedded corpus')
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    wishes = parser.parse_args()
    try:
        open_corpus(wishes.folder, wishes.datasets)
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
