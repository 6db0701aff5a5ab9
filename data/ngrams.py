"""Counting as a model: n-gram baselines over ids, scored as the decoder is.

Interpolated absolute discounting (Ney, Essen and Kneser 1994, "On structuring probabilistic
dependences in stochastic language modelling"). With c(h w) how often w followed the context h,
c(h) its sum over w, and r(h) how many different w did:

    p(w | h) = max(c(h w) - d, 0) / c(h)  +  d r(h) / c(h) * p(w | h without its first id)

down to the empty context, under which lies 1 / V. Each order has its own d = n1 / (n1 + 2 n2),
where nk is how many h w were counted k times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.corpus import Corpus
from data.windows import WholePieces

NAMES = {1: "unigram", 2: "bigram"}
CHUNK = 4096  # places scored at once, each with a row of the vocabulary


@dataclass(frozen=True)
class _Counts:
    """What followed each context of one length; C contexts, E different continuations.

    Attributes:
        contexts: (C,) int64, rising, each a context as one number.
        begins: (C + 1,) int64, where each context's continuations begin.
        ids: (E,) int64, the continuations.
        counts: (E,) int64, how often each was seen.
        discount: d.
    """

    contexts: NDArray[np.int64]
    begins: NDArray[np.int64]
    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    discount: float


class NGram:
    """A model of order n: each id given the n - 1 before it.

    Args:
        pieces: 1-D ids from Start to End, of lengths T. No context reaches over a piece's Start.
        order: n, 1 or more.
        size: V, the number of ids.
    """

    def __init__(self, pieces: Iterable[NDArray[np.int64]], order: int, size: int) -> None:
        self.order, self.size = order, size
        rows = np.concatenate([_with_contexts(piece, order) for piece in pieces])
        self._levels = [_count(rows[:, order - n :], size) for n in range(1, order + 1)]

    def probabilities(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N, V) what follows each of N contexts, (N, n - 1), as they stand in `_with_contexts`."""
        p = np.full((len(contexts), self.size), 1 / self.size)
        for length, level in enumerate(self._levels):
            code = _as_numbers(contexts[:, self.order - 1 - length :], self.size)
            at = np.minimum(np.searchsorted(level.contexts, code), len(level.contexts) - 1)
            rows = np.flatnonzero(level.contexts[at] == code)  # others keep the shorter context's
            begin, end = level.begins[at[rows]], level.begins[at[rows] + 1]
            different = end - begin
            # one entry for each continuation of each row's context
            row = np.repeat(rows, different)
            entry = np.arange(len(row)) + np.repeat(end - np.cumsum(different), different)
            total = np.bincount(row, weights=level.counts[entry], minlength=len(p))
            p[rows] *= (level.discount * different / total[rows])[:, None]
            p[row, level.ids[entry]] += (level.counts[entry] - level.discount) / total[row]
        return p

    def token_nats(
        self, piece: NDArray[np.int64], allowed: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(T - 1,) minus the log-probability of each id after Start, among the allowed ones.

        Args:
            piece: (T,) ids from Start to End.
            allowed: (T - 1, V), what the grammar admits in the place of each id after Start.
        """
        rows = _with_contexts(piece, self.order)
        nats = np.empty(len(rows))
        for begin in range(0, len(rows), CHUNK):
            here = slice(begin, begin + CHUNK)
            p = self.probabilities(rows[here, :-1]) * allowed[here]
            nats[here] = np.log(p.sum(axis=1) / p[np.arange(len(p)), rows[here, -1]])
        return nats


def _with_contexts(piece: NDArray[np.int64], order: int) -> NDArray[np.int64]:
    """(T - 1, n) each id after Start, and before it those it follows; Pad before Start."""
    padded = np.concatenate([np.zeros(max(order - 2, 0), dtype=np.int64), piece])
    if order == 1:
        return padded[1:, None]
    return np.lib.stride_tricks.sliding_window_view(padded, order)


def _as_numbers(contexts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """(N,) each context, (N, k), as one number to base V."""
    numbers = np.zeros(len(contexts), dtype=np.int64)
    for column in contexts.T:
        numbers = numbers * size + column
    return numbers


def _count(rows: NDArray[np.int64], size: int) -> _Counts:
    """Counts of (N, n) rows: contexts of n - 1 ids, and the id that followed."""
    pairs = np.stack([_as_numbers(rows[:, :-1], size), rows[:, -1]], axis=1)
    seen, counts = np.unique(pairs, axis=0, return_counts=True)
    contexts, begins = np.unique(seen[:, 0], return_index=True)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    # a corpus can be too small or too even to tell: then half a count
    discount = once / (once + 2 * twice) if once and twice else 0.5
    return _Counts(contexts, np.append(begins, len(seen)), seen[:, 1], counts, discount)


def train(corpus: Corpus, order: int) -> NGram:
    """The n-gram model of a corpus's train split.

    Counted in the keys it stands in: held-out pieces stand in much the same ones, and counting
    every transposition made each order worse (bigram on the chorales: 5.74 for 5.47 nats a note).
    """
    split = corpus.split("train")
    pieces = (split.piece(index) for index in range(len(split)))
    return NGram(pieces, order, corpus.vocabulary.size)


def nats_per_note(model: NGram, pieces: WholePieces) -> float:
    """Over whole pieces: total nats over total notes."""
    total, notes = 0.0, 0
    for batch in pieces:
        for piece, allowed in zip(batch["pieces"], batch["allowed"], strict=True):
            total += float(model.token_nats(piece, allowed).sum())
        notes += sum(batch["notes"])
    return total / notes
