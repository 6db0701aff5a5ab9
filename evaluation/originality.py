"""How much of some pieces is in the training set: shared runs of notes, in any key.

data/corpus/runs.py says what a run is, and when two are the same. Notes are compared
exactly, through the sorted suffixes of both sides (Manber and Myers 1993, "Suffix arrays"): there
are no hashes, so there are no false matches.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data.arrays import reduce_segments
from data.canonical import ScoreBatch
from data.corpus.corpus import SPLITS, Corpus
from data.corpus.runs import REPRESENTATIONS, Integers, NoteSequence, note_sequence, read_sequences
from data.corpus.store import Split
from data.instrument_names import instrument_name
from data.score import Grid
from data.tokens.vocabulary import Vocabulary
from evaluation.samples import MAX_PIECES, split_scores

LENGTHS = (4, 8, 16)  # notes: of the runs whose shares are given


@dataclass(frozen=True)
class LongestMatches:
    """For each of N notes the longest run from it that the training set has too, and one place."""

    notes: NoteSequence
    length: Integers  # (N,) notes in the run; 1 where training never continues in this way
    piece: Integers  # (N,) the index of the training piece
    bar: Integers  # (N,) the bar in which the run begins there
    semitones: Integers  # (N,) how much higher it is there


@dataclass(frozen=True)
class RunShares:
    """How much of some pieces the training set has, in one representation."""

    notes: int  # how many the pieces have
    shares: dict[int, float]  # of the runs of so many notes; NaN where there are none so long
    longest: list[int]  # for each piece the notes in its longest run; 0 where it has none


@dataclass(frozen=True)
class SharedRun:
    """A run of notes, and where it is in the training set."""

    notes: int  # how many there are
    instrument: str  # or "texture", where they are taken together
    bar: int  # where it begins
    file: str  # where it begins in training
    file_bar: int
    semitones: int  # how much higher it is there

    def __str__(self) -> str:
        """Say how long it is, and where it is found."""
        semitones = abs(self.semitones)
        moved = f", {semitones} semitone{'s' * (semitones > 1)} " if semitones else ""
        moved += ("higher" if self.semitones > 0 else "lower") * bool(semitones)
        return (
            f"{self.notes} notes from bar {self.bar} ({self.instrument}) stand in "
            f"{self.file} from bar {self.file_bar}{moved}"
        )


@dataclass(frozen=True)
class PieceOriginality:
    """How much of one piece the training set has."""

    name: str
    line: RunShares
    texture: RunShares
    runs: dict[str, list[SharedRun]]  # by representation, the longest first

    @property
    def longest_runs(self) -> list[SharedRun]:
        """The longest run of each representation that has one."""
        return [run for runs in self.runs.values() for run in runs[:1]]


@dataclass(frozen=True)
class SetOriginality:
    """How much of a set of pieces the training set has; they may be drawn from more."""

    pieces: int
    of: int
    line: RunShares
    texture: RunShares


@dataclass(frozen=True)
class TrainingSet:
    """What runs are looked for in."""

    corpus: str
    pieces: int
    notes: int


@dataclass(frozen=True)
class Originality:
    """How much the training set has of some pieces: of each, of all, and of held-out ones."""

    training: TrainingSet
    pieces: list[PieceOriginality]
    all: SetOriginality
    held_out: SetOriginality


def measure_originality(pieces: ScoreBatch, names: Sequence[str], corpus: Corpus) -> Originality:
    """Find what a corpus's training set has of some pieces, on its grid, and of held-out ones.

    Held-out pieces were never copied, so what training has of them is common property: the other
    figures mean something only beside theirs.
    """
    train = corpus.split("train")
    held_out = [score for name in SPLITS[1:] for score in split_scores(corpus, name, MAX_PIECES)]
    total = sum(len(corpus.split(name)) for name in SPLITS[1:])
    scores = [pieces[index] for index in range(len(pieces))] + held_out
    matches = find_matches(ScoreBatch.from_scores(scores), train, corpus.vocabulary)

    grid = corpus.vocabulary.grid

    def shares(first: int, end: int) -> tuple[RunShares, RunShares]:
        members = range(first, end)
        return run_shares(matches["line"], members), run_shares(matches["texture"], members)

    return Originality(
        TrainingSet(corpus.folder.name, len(train), int(train.note_counts.sum())),
        [
            PieceOriginality(
                name,
                *shares(index, index + 1),
                {
                    each: shared_runs(matches[each], index, train.names, grid)
                    for each in REPRESENTATIONS
                },
            )
            for index, name in enumerate(names)
        ],
        SetOriginality(len(pieces), len(pieces), *shares(0, len(pieces))),
        SetOriginality(len(held_out), total, *shares(len(pieces), len(scores))),
    )


def find_matches(
    pieces: ScoreBatch, train: Split, vocabulary: Vocabulary
) -> dict[str, LongestMatches]:
    """Find the longest run from each note that `train` has, in each of REPRESENTATIONS."""
    notes = {name: note_sequence(pieces, name) for name in REPRESENTATIONS}
    best = {name: np.zeros((4, len(notes[name].step)), dtype=np.int64) for name in REPRESENTATIONS}
    for first, chunks in read_sequences(train, vocabulary):
        for name in REPRESENTATIONS:
            chunk = chunks[name]
            if not len(chunk.step):  # drums alone
                continue
            length, at = _longest_matches(notes[name].step, chunk.step)
            semitones = chunk.pitch[at] - notes[name].pitch
            new = np.stack([length, first + chunk.piece[at], chunk.bar[at], semitones])
            best[name] = np.where(length > best[name][0], new, best[name])
    return {
        name: LongestMatches(notes[name], length + 1, piece, bar, semitones)
        for name, (length, piece, bar, semitones) in best.items()
    }


def _longest_matches(asked: Integers, there: Integers) -> tuple[Integers, Integers]:
    """Find the longest run of steps from each place in `asked` that `there` has, and where.

    Negative steps equal nothing; `there` has at least one step. Returns (N,) how many steps match,
    and (N,) at which place in `there` they begin.
    """
    n, count = len(asked), len(asked) + len(there)
    steps = np.concatenate([np.where(asked < 0, asked - len(there), asked), there])
    # ranks[k][i]: the rank of the 2^k steps from i on among all such, in alphabetical order
    ranks = [np.unique(steps, return_inverse=True)[1]]
    while np.isin(ranks[-1][:n], ranks[-1][n:]).any():
        width = 2 ** (len(ranks) - 1)
        second = np.append(ranks[-1][width:] + 1, np.zeros(min(width, count), dtype=np.int64))
        ranks.append(np.unique(ranks[-1] * (count + 1) + second, return_inverse=True)[1])
    # the longest match of a place is its neighbor in that order, on one side or the other
    order = np.argsort(ranks[-1], kind="stable")
    is_there = order >= n
    mine, theirs = order[~is_there], order[is_there]
    after = np.cumsum(is_there)[~is_there]  # of each of mine, the first of theirs that follows
    length, at = np.zeros(n, dtype=np.int64), np.full(n, n)
    for neighbor in (after - 1, after):
        other = theirs[neighbor.clip(0, len(theirs) - 1)]
        shared = np.zeros(n, dtype=np.int64)
        for level in range(len(ranks) - 2, -1, -1):
            rank = ranks[level]
            shared += (rank[mine + shared] == rank[other + shared]) << level
        is_longer = shared > length[mine]
        length[mine[is_longer]], at[mine[is_longer]] = shared[is_longer], other[is_longer]
    return length, at - n


def run_shares(matches: LongestMatches, members: range) -> RunShares:
    """Summarize what was found of the pieces with these indices, taken together."""
    ends = np.searchsorted(matches.notes.piece, np.arange(members.start, members.stop + 1))
    begin, end = ends[[0, -1]].tolist()
    length, left = matches.length[begin:end], matches.notes.left[begin:end]
    shares = {}
    for notes in LENGTHS:
        possible, shared = int((left >= notes).sum()), int((length >= notes).sum())
        shares[notes] = shared / possible if possible else float("nan")
    longest = reduce_segments(np.maximum, length, ends - begin, empty=0)
    return RunShares(end - begin, shares, np.where(longest > 1, longest, 0).tolist())


def shared_runs(
    matches: LongestMatches, piece: int, names: Sequence[str], grid: Grid
) -> list[SharedRun]:
    """Return the runs of a piece that are no part of another, the longest first.

    Those of LENGTHS[0] notes or more, for the piece of this index; `names` are of training pieces.
    """
    begin, end = np.searchsorted(matches.notes.piece, (piece, piece + 1)).tolist()
    length = matches.length[begin:end]
    # a run that begins one note later and ends with this one is a part of it
    is_part = np.append(False, length[:-1] == length[1:] + 1)[: len(length)]
    rows = np.flatnonzero(~is_part & (length >= LENGTHS[0]))
    rows = rows[np.argsort(-length[rows], kind="stable")] + begin
    runs = []
    for row in rows.tolist():
        program = int(matches.notes.program[row])
        runs.append(
            SharedRun(
                int(matches.length[row]),
                "texture" if program < 0 else instrument_name(program, grid),
                int(matches.notes.bar[row]),
                names[matches.piece[row]],
                int(matches.bar[row]),
                int(matches.semitones[row]),
            )
        )
    return runs
