"""How much of some pieces is in the training set: runs of notes that both have, in any key.

data/corpus/runs.py says what a run is and when two runs are the same, and finds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from data.corpus.corpus import SPLITS, Corpus
from data.corpus.runs import LongestMatches, SharedRun, find_matches, shared_runs
from data.score import Score
from evaluation.samples import MAX_PIECES, split_scores

LENGTHS = (4, 8, 16)  # in notes: the runs whose shares are given


@dataclass(frozen=True)
class RunShares:
    """How much of some pieces the training set has, in one representation."""

    notes: int  # how many notes the pieces have
    shares: dict[int, float]  # the share of the runs of each length; NaN: there are none
    longest: list[int]  # for each piece, the notes in its longest run; 0: it has none


@dataclass(frozen=True)
class SetOriginality:
    """How much of a set of pieces the training set has."""

    line: RunShares
    texture: RunShares


@dataclass(frozen=True)
class PieceOriginality(SetOriginality):
    """How much of one piece the training set has."""

    name: str
    runs: dict[str, list[SharedRun]]  # by representation, the longest first

    @property
    def longest_runs(self) -> list[SharedRun]:
        """The longest run in each representation that has one."""
        return [run for runs in self.runs.values() for run in runs[:1]]


@dataclass(frozen=True)
class Originality:
    """How much of some pieces the training set has: of each, of all, and of held-out pieces."""

    corpus: str
    training_pieces: int
    pieces: list[PieceOriginality]
    all: SetOriginality
    held_out: SetOriginality


def measure_originality(
    pieces: Sequence[Score], names: Sequence[str], corpus: Corpus
) -> Originality:
    """Find how much of some pieces a corpus's training set has, and how much of held-out ones.

    Held-out pieces were never copied, so what the training set has of them is common property. The
    other figures mean something only beside theirs. All pieces are on the corpus's grid.
    """
    train, count = corpus.split("train"), len(pieces)
    held_out = [score for name in SPLITS[1:] for score in split_scores(corpus, name, MAX_PIECES)]
    scores = [*pieces, *held_out]
    *_, matches = find_matches(scores, train, corpus.vocabulary)
    grid = corpus.vocabulary.grid

    def shares(first: int, end: int) -> tuple[RunShares, RunShares]:
        members = range(first, end)
        return run_shares(matches["line"], members), run_shares(matches["texture"], members)

    def runs(index: int) -> dict[str, list[SharedRun]]:
        return {name: shared_runs(its, index, train.names, grid) for name, its in matches.items()}

    return Originality(
        corpus.folder.name,
        len(train),
        [PieceOriginality(*shares(n, n + 1), name, runs(n)) for n, name in enumerate(names)],
        SetOriginality(*shares(0, count)),
        SetOriginality(*shares(count, len(scores))),
    )


def run_shares(matches: LongestMatches, members: range) -> RunShares:
    """Summarize what was found for the pieces with these indices, taken together."""
    ends = np.searchsorted(matches.notes.piece, np.arange(members.start, members.stop + 1))
    begin, end = ends[[0, -1]].tolist()
    length, left = matches.length[begin:end], matches.notes.left[begin:end]
    shares = {}
    for notes in LENGTHS:
        possible, shared = int((left >= notes).sum()), int((length >= notes).sum())
        shares[notes] = shared / possible if possible else float("nan")
    of_each = (matches.length[slice(*its)] for its in pairwise(ends.tolist()))
    longest = [int(own.max(initial=0, where=own > 1)) for own in of_each]
    return RunShares(end - begin, shares, longest)
