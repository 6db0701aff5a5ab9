"""Likelihood: how many nats per note a model needs for whole pieces. This is the one definition.

Start is given. Every later token, including End, is scored exactly once, by the logits of the ids
that the grammar admits at its place. The sum over a piece's tokens is minus the log of the
probability that the sampler of `model.sampling` would write this piece.

A piece that is longer than the context is read in windows. The first window fills the context.
Where it ends, all ids so far are handed to `rebase`, the same function that shortens a history when
sampling fills the context. It gives a shorter prompt (from a bar line, with the tempo restated),
which begins the next window and is not scored again. The prompt must be at least half a context, so
every token that is scored after the first window sees at least that much of the past.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from common.arrays import Bools, Floats, Ids, Ints, Reals
from common.compiled import compiled
from common.interface import PAD, SideArrays
from model.reader import Rebase
from model.steps import Scorer


class Row(NamedTuple):
    """Where a row of ids stands: its last id is number `end` - 1 of the piece."""

    piece: int
    end: int


# takes ids (B, T), Pad at the right end, and where they stand; returns their side input
MakeSide = Callable[[Ids, Sequence[Row]], SideArrays | None]


class Scores(NamedTuple):
    """The scores of the T - 1 tokens of a piece after Start."""

    nats: Reals  # float64 (S, T - 1), minus the log of the probability, at each of S temperatures
    is_likeliest: Bools  # bool (T - 1,), whether no id that the grammar admits was likelier


def token_nats(
    steps: Scorer,
    pieces: Sequence[Ids],
    allowed: Sequence[Bools],
    *,
    rebase: Rebase,
    side: MakeSide | None = None,
) -> list[Reals]:
    """Return only the nats of `score_tokens`: float64 (T - 1,) for each piece."""
    scores = score_tokens(steps, pieces, allowed, rebase=rebase, side=side)
    return [score.nats[0] for score in scores]


def score_tokens(
    steps: Scorer,
    pieces: Sequence[Ids],
    allowed: Sequence[Bools],
    *,
    rebase: Rebase,
    side: MakeSide | None = None,
    temperatures: Sequence[float] = (1.0,),
    batch_tokens: int = 8192,
) -> list[Scores]:
    """Score every token after Start: how likely was it?

    Args:
        steps: the decoder.
        pieces: arrays of ids (T,), from Start to End.
        allowed: for each piece bool (T - 1, V), which ids the grammar admits in the place of tokens
            1 .. T - 1.
        rebase: takes all ids before a place, and returns the prompt with which the next window
            begins: at least half a context, and shorter than it.
        side: computes the side input; None: the decoder has none.
        temperatures: S numbers; the logits are divided by each in turn.
        batch_tokens: the most ids, padding included, that the decoder reads in one pass.

    Returns:
        The scores of each piece.

    Raises:
        ValueError: a prompt has the wrong length, or an `allowed` has the wrong shape or does not
            admit the piece's own token.
    """
    windows: list[_Window] = []
    for index, (piece, mask) in enumerate(zip(pieces, allowed, strict=True)):
        _check_allowed(index, piece, mask, steps.config.vocabulary_size)
        windows.extend(_windows(index, piece, steps.config.context_length, rebase))
    scores = [
        Scores(np.full((len(temperatures), T), np.nan), np.zeros(T, dtype=bool))
        for T in (len(piece) - 1 for piece in pieces)
    ]
    for batch in _batches(windows, batch_tokens):
        logits = _forward(steps, batch, side)  # (B, T, V)
        for row, window in zip(logits, batch, strict=True):
            piece = pieces[window.piece]
            _score(row, window, piece, allowed[window.piece], temperatures, scores[window.piece])
    return scores


def _check_allowed(index: int, piece: Ids, mask: Bools, vocabulary_size: int) -> None:
    """Refuse a mask, bool (T - 1, V), that does not admit the tokens of its piece (T,)."""
    if mask.shape != (len(piece) - 1, vocabulary_size):
        expected = (len(piece) - 1, vocabulary_size)
        raise ValueError(f"piece {index}: allowed is {mask.shape}, not {expected}")
    refused = np.flatnonzero(~mask[np.arange(len(piece) - 1), piece[1:]])
    if len(refused):
        bad = int(refused[0]) + 1
        raise ValueError(f"piece {index}: token {bad}, id {piece[bad]}, is not allowed")


def _score(
    logits: Floats,
    window: "_Window",
    piece: Ids,
    allowed: Bools,
    temperatures: Sequence[float],
    scores: Scores,
) -> None:
    """Fill in the scores of the tokens that a window scores, from its logits (T, V)."""
    place = slice(window.first - 1, window.end - 1)  # where the scored tokens stand in the scores
    tokens = np.asarray(piece[window.first : window.end], dtype=np.int64)
    scored = logits[len(window.ids) - len(tokens) : len(window.ids)]  # (T, V)
    at = np.array(temperatures, dtype=np.float64)
    nats, is_likeliest = scores.nats[:, place], scores.is_likeliest[place]
    score_ids(scored, np.ascontiguousarray(allowed[place]), tokens, at, nats, is_likeliest)


@compiled
def score_ids(
    logits: Floats,
    allowed: Bools,
    tokens: Ints,
    temperatures: Reals,
    nats: Reals,
    is_likeliest: Bools,
) -> None:
    """Score ids (T,) by the logits (T, V) of the ids that are allowed, (T, V).

    This sets `nats` (S, T), minus the log of the softmax at each of S temperatures, and
    `is_likeliest` (T,), whether no allowed id was likelier.
    """
    for t in range(len(tokens)):
        own = logits[t, tokens[t]]
        most = own
        for v in range(logits.shape[1]):
            if allowed[t, v]:
                most = max(most, logits[t, v])
        is_likeliest[t] = own >= most
        for s in range(len(temperatures)):
            total = 0.0
            for v in range(logits.shape[1]):
                if allowed[t, v]:
                    total += math.exp((logits[t, v] - most) / temperatures[s])
            nats[s, t] = math.log(total) - (own - most) / temperatures[s]


@dataclass(frozen=True)
class _Window:
    """What one row of a pass reads; it scores the tokens first .. end - 1 of the piece."""

    piece: int
    ids: Ids  # the last `end` - `first` places give the scores
    first: int
    end: int


def _windows(index: int, piece: Ids, context: int, rebase: Rebase) -> Iterator[_Window]:
    """Yield the windows of one piece; together they score tokens 1 .. T - 1, each once."""
    prompt, first = piece[:1], 1
    while first < len(piece):
        # the prompt's last place scores token `first`; each further id read scores the next
        end = min(first + context - len(prompt) + 1, len(piece))
        yield _Window(index, np.concatenate((prompt, piece[first : end - 1])), first, end)
        first = end
        if first < len(piece):
            prompt = rebase(piece[:first])
            if not context <= 2 * len(prompt) < 2 * context:
                raise ValueError(
                    f"rebase gave {len(prompt)} tokens: at least half the context of {context} "
                    f"and less than the whole is needed"
                )


def _batches(windows: list[_Window], batch_tokens: int) -> Iterator[list[_Window]]:
    """Yield batches of windows of similar length, so that there is little padding."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda w: -len(w.ids)):
        if batch and (len(batch) + 1) * len(batch[0].ids) > batch_tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _forward(steps: Scorer, batch: list[_Window], side: MakeSide | None) -> Floats:
    """Return the logits (B, T, V) of windows, padded at the right, where no place sees it."""
    ids = np.full((len(batch), len(batch[0].ids)), PAD, dtype=np.int64)
    for row, window in zip(ids, batch, strict=True):
        row[: len(window.ids)] = window.ids
    rows = [Row(window.piece, window.end - 1) for window in batch]
    return steps.logits(ids, None if side is None else side(ids, rows))


@dataclass(frozen=True)
class Tally:
    """Sums over pieces, from which averages follow. Tallies can be added.

    Attributes:
        nats: float64 (K,), the total nats of the tokens of each kind.
        counts: int64 (K,), how many tokens of each kind were scored.
        notes: how many notes the pieces have.
    """

    nats: Reals
    counts: Ints
    notes: int

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.nats + other.nats, self.counts + other.counts, self.notes + other.notes)

    @property
    def per_note(self) -> float:
        """All nats divided by the number of notes; NaN if there are none."""
        return _ratio(float(self.nats.sum()), self.notes)

    @property
    def per_token(self) -> float:
        """All nats divided by the number of scored tokens; NaN if there are none."""
        return _ratio(float(self.nats.sum()), int(self.counts.sum()))

    @property
    def by_kind(self) -> list[float]:
        """Nats of each kind divided by the number of notes: K numbers that sum to `per_note`."""
        return [_ratio(float(kind), self.notes) for kind in self.nats]


def summarize(nats: Reals, kinds: Ids, n_notes: int, n_kinds: int) -> Tally:
    """Add up the scored tokens of a piece, or of many pieces end to end.

    Args:
        nats: float64 (N,), of the tokens.
        kinds: int (N,) in [0, K), the kind of each token.
        n_notes: how many notes they encode.
        n_kinds: K.
    """
    totals = np.bincount(kinds, weights=nats, minlength=n_kinds).astype(np.float64)
    return Tally(totals, np.bincount(kinds, minlength=n_kinds).astype(np.int64), n_notes)


def hits_by_kind(is_right: Bools, kinds: Ids, n_kinds: int) -> Ints:
    """Count how often the likeliest id was the right one, by kind of token. Such counts add up.

    Args:
        is_right: bool (N,), whether no id was likelier than each of N tokens.
        kinds: int (N,) in [0, K), the kind of each token.
        n_kinds: K.

    Returns:
        int64 (2, K): how many were right, and out of how many.
    """
    counts = (np.bincount(of, minlength=n_kinds) for of in (kinds[is_right], kinds))
    return np.stack([*counts]).astype(np.int64)


def _ratio(total: float, count: int) -> float:
    return total / count if count else float("nan")
