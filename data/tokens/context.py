"""The context in which a model goes on in the middle of a piece: a bar, with its tempo restated."""

from __future__ import annotations

import numpy as np

from common.arrays import Bools, Ids, Ints
from data.tokens.vocabulary import Kind, Vocabulary

LEAST_CONTEXT = 8  # tokens: room for a note after the head of its bar


def bar_indices(ids: Ints, vocabulary: Vocabulary) -> Ints:
    """Return the places of the Bar tokens, where windows may begin."""
    return np.flatnonzero(vocabulary.kind_of[ids] == Kind.BAR)


def bar_tempos(ids: Ints, vocabulary: Vocabulary) -> Ints:
    """Return (M,): the id of the Tempo that holds in each bar; Pad on a grid without meter."""
    bars = bar_indices(ids, vocabulary)
    if not vocabulary.grid.has_meter:
        return np.zeros(len(bars), dtype=np.int64)
    tempos = np.flatnonzero(vocabulary.kind_of[ids] == Kind.TEMPO)
    # the latest Tempo before the next bar
    latest = np.searchsorted(tempos, np.append(bars, len(ids))[1:]) - 1
    return ids[tempos[latest]]


def bar_head_sizes(ids: Ids, starts: Ints, vocabulary: Vocabulary) -> tuple[Ints, Bools]:
    """Measure the tokens Bar [Length] of the bars that begin at `starts` (B,) in `ids`.

    Returns:
        (B,) how many tokens they are, 1 or 2, and (B,) whether a Tempo follows.
    """
    last = len(ids) - 1
    size = 1 + (vocabulary.kind_of[ids[np.minimum(starts + 1, last)]] == Kind.LENGTH)
    return size, vocabulary.kind_of[ids[np.minimum(starts + size, last)]] == Kind.TEMPO


def bar_lengths(ids: Ids, starts: Ints, vocabulary: Vocabulary) -> Ints:
    """Return the steps (B,) in the bars that begin at `starts` (B,) in `ids`."""
    whole = vocabulary.whole_bars[ids[starts].astype(np.int64) - vocabulary.first(Kind.BAR)]
    after = ids[starts + 1].astype(np.int64)
    shortened = after - vocabulary.first(Kind.LENGTH) + 1
    return np.where(vocabulary.kind_of[after] == Kind.LENGTH, shortened, whole)


def window_head(ids: Ints, start: int, vocabulary: Vocabulary) -> Ints:
    """Return the ids with which a window begins at the Bar `ids[start]` of a piece.

    They are the bar's own tokens, followed by the tempo that holds there, restated if need be. The
    window goes on with what follows the bar's own tokens in the piece: `ids[start + n:]`, where n =
    `bar_head_size(ids, start)`.
    """
    size = bar_head_size(ids, start, vocabulary)
    head = ids[start : start + size]
    kinds = vocabulary.kind_of[ids[: start + size]]
    if kinds[-1] == Kind.TEMPO or not vocabulary.grid.has_meter:
        return head
    return np.append(head, ids[np.flatnonzero(kinds == Kind.TEMPO)[-1]])


def bar_head_size(ids: Ints, start: int, vocabulary: Vocabulary) -> int:
    """Count the tokens Bar [Length] [Tempo] of the bar that begins at `ids[start]`."""
    size, has_tempo = bar_head_sizes(ids, np.array([start]), vocabulary)
    return int(size[0] + has_tempo[0])


def rebase(history: Ints, context_length: int, vocabulary: Vocabulary) -> Ints:
    """Return the prompt with which a piece goes on when the context is full.

    It is a window as in training, from the latest bar that leaves at least half a context. If a
    single bar is longer than that, the prompt begins inside it: with the head of the bar, which has
    meter and tempo, followed by a later position.

    Args:
        history: (T,) all ids before this place, at least half a context of them. They begin with
            Start, or with a prompt that this function returned.
        context_length: C.
        vocabulary: what the ids mean.

    Returns:
        The prompt, at least half as long as the context and shorter than it.
    """
    half = (context_length + 1) // 2
    bars = bar_indices(history, vocabulary)
    bar = int(bars[np.searchsorted(bars, len(history) - half, side="right") - 1])
    if bar > len(history) - half:  # the history is only a little longer than half the context
        return history
    head = window_head(history, bar, vocabulary)
    first = bar + bar_head_size(history, bar, vocabulary)
    latest = len(history) - half + len(head)  # the rest begins here, or earlier
    if len(history) - first + len(head) < context_length:
        return np.concatenate([head, history[first:]])
    latest = min([latest, *bars[bars > bar][:1].tolist()])  # what follows the head is of its bar
    kinds = vocabulary.kind_of[history]
    soonest = len(history) - context_length + len(head) + 1
    for kind in (Kind.POSITION, Kind.NOTE):  # a chord longer than half a context is cut in two
        places = np.flatnonzero(kinds[soonest : latest + 1] == kind)
        if len(places):
            latest = soonest + int(places[-1])
            break
    return np.concatenate([head, history[latest:]])
