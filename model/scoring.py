"""Likelihood: the nats per note that a model needs for whole pieces, the one definition.

Start is given; each further token, End with it, is scored exactly once, by logits masked to
what the grammar admits there. The sum over a piece's tokens is minus the log of the probability
that the sampler of `model.sampling` would write the piece.

A piece longer than the context is read in windows. The first is as long as the context; where
it ends, all that was read is handed to `rebase`, the very function with which sampling goes on
past the context: it gives the shorter prompt (from a bar line, the tempo restated) that begins
the next window and is not scored again. At least half a context must remain in it, so every
scored token after the first window has at least that much past.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from common.arrays import Bools, Floats, Ids, Ints, Reals
from common.compiled import compiled
from common.interface import PAD
from model.reader import Rebase
from model.steps import Scorer, SideArrays


class Row(NamedTuple):
    """Where a row of ids that are read stands: its last id is `end` - 1 of a piece."""

    piece: int
    end: int


# ids (B, T) that are read, Pad at their right end, and where -> the side input beside them
MakeSide = Callable[[Ids, Sequence[Row]], SideArrays | None]


class Scores(NamedTuple):
    """The scores of every token of a piece after Start, T - 1 of them."""

    nats: Reals  # float64 (S, T - 1), minus the log-probability, at each of S temperatures
    is_likeliest: Bools  # whether no other id that the grammar admits was likelier


def token_nats(
    steps: Scorer,
    pieces: Sequence[Ids],
    allowed: Sequence[Bools],
    *,
    rebase: Rebase,
    side: MakeSide | None = None,
) -> list[Reals]:
    """Return the nats of `score_tokens`: for each piece float64 (T-1,)."""
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
    """Score every token after Start: how likely is it?

    Args:
        steps: of the decoder.
        pieces: 1-D ids from Start to End, of lengths T.
        allowed: for each piece bool (T-1, V), what the grammar admits in the place of token
            1 .. T-1.
        rebase: from all ids before a place, 1-D, to the prompt from which its window is read:
            at least half the context and shorter than it.
        side: computes the side input; None for decoders that have none.
        temperatures: by which the decoder's logits are divided, one after the other.
        batch_tokens: the most ids, padding included, that one pass of the decoder reads.

    Returns:
        The scores of each piece.

    Raises:
        ValueError: a prompt of the wrong length, an `allowed` of the wrong shape or one that does
            not admit the token that stands there.
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
    """Refuse what a grammar admits, bool (T-1, V), where it does not admit the piece (T,)."""
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
    """Write the scores of the tokens of a window of a piece, from its logits (T, V)."""
    place = slice(window.first - 1, window.end - 1)  # of the scored tokens in nats
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
    """Score ids (T,) by logits (T, V) of those that are allowed, (T, V).

    Set are `nats` (S, T), minus the log of the softmax at each of S temperatures, and whether
    nothing else was likelier, (T,).
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
    """What one row of a pass reads, and the tokens first .. end - 1 of the piece it scores."""

    piece: int
    ids: Ids  # its last end - first places are those that score
    first: int
    end: int


def _windows(index: int, piece: Ids, context: int, rebase: Rebase) -> Iterator[_Window]:
    """Yield the windows of one piece: together they score tokens 1 .. T-1, each once."""
    prompt, first = piece[:1], 1
    while first < len(piece):
        # the prompt's last place scores token `first`, each further id read scores the next
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
    """Yield windows of like length together, so that little is padding."""
    batch: list[_Window] = []
    for window in sorted(windows, key=lambda w: -len(w.ids)):
        if batch and (len(batch) + 1) * len(batch[0].ids) > batch_tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _forward(steps: Scorer, batch: list[_Window], side: MakeSide | None) -> Floats:
    """Return logits (B, T, V) of windows padded at their right end, which no earlier place sees."""
    ids = np.full((len(batch), len(batch[0].ids)), PAD, dtype=np.int64)
    for row, window in zip(ids, batch, strict=True):
        row[: len(window.ids)] = window.ids
    rows = [Row(window.piece, window.end - 1) for window in batch]
    return steps.logits(ids, None if side is None else side(ids, rows))


@dataclass(frozen=True)
class Tally:
    """Sums over pieces, from which the averages follow; tallies can be added.

    Attributes:
        nats: float64 (K,), total nats of the tokens of each kind.
        counts: int64 (K,), how many tokens of each kind were scored.
        notes: how many notes the pieces hold.
    """

    nats: Reals
    counts: Ints
    notes: int

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.nats + other.nats, self.counts + other.counts, self.notes + other.notes)

    @property
    def per_note(self) -> float:
        """Total nats over notes; NaN without notes."""
        return _ratio(float(self.nats.sum()), self.notes)

    @property
    def per_token(self) -> float:
        """Total nats over scored tokens; NaN without tokens."""
        return _ratio(float(self.nats.sum()), int(self.counts.sum()))

    @property
    def by_kind(self) -> list[float]:
        """Nats of each kind over notes: K numbers whose sum is `per_note`."""
        return [_ratio(float(kind), self.notes) for kind in self.nats]


def summarize(nats: Reals, kinds: Ids, n_notes: int, n_kinds: int) -> Tally:
    """Add up the tokens of a piece, or of many laid end to end.

    Args:
        nats: float64 (N,), of scored tokens.
        kinds: int (N,) in [0, K), the kind of each.
        n_notes: how many notes they write.
        n_kinds: K.
    """
    totals = np.bincount(kinds, weights=nats, minlength=n_kinds).astype(np.float64)
    return Tally(totals, np.bincount(kinds, minlength=n_kinds).astype(np.int64), n_notes)


def hits_by_kind(is_right: Bools, kinds: Ids, n_kinds: int) -> Ints:
    """Count how often the likeliest id was the right one, by kind of token; such counts add up.

    Args:
        is_right: bool (N,), of N tokens: whether nothing was likelier than what stands there.
        kinds: int (N,) in [0, K), of what stands there.
        n_kinds: K.

    Returns:
        int64 (2, K): how many were right, of how many.
    """
    counts = (np.bincount(of, minlength=n_kinds) for of in (kinds[is_right], kinds))
    return np.stack([*counts]).astype(np.int64)


def _ratio(total: float, count: int) -> float:
    return total / count if count else float("nan")
