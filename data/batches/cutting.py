"""Windows of pieces: where they begin, and which ids they have.

A window has W = T + 1 tokens. The model reads the first T; the target at each of them is the token
that follows it. Here is a piece, and a window with W = 5 that begins at its second bar:

    piece      Start  Bar 4/4  Tempo 80  @0  C4  1/1  Bar 4/4  @0  D4  1/1  Bar 4/4  @0 ..
    window     Bar 4/4     Tempo 80  @0  D4  1/1
    ids        Bar 4/4     Tempo 80  @0  D4
    targets    not scored  @0        D4  1/1

A piece has a Tempo token only where its tempo changes. So that the model always knows the tempo, it
is restated after the first Bar of a window. There it is not a target.
"""

from __future__ import annotations

import numpy as np

from common.arrays import Bools, Ids, Ints
from common.interface import NOT_SCORED, PAD
from data.tokens.context import bar_head_sizes
from data.tokens.vocabulary import Vocabulary


class WindowCutter:
    """Draws windows of W tokens from P pieces that lie end to end.

    First a token is drawn as the middle of the window; every token of the pieces is equally likely.
    The window begins at the last bar that lies at least half a window before this middle, or at the
    next bar if it would otherwise end before the middle. It begins no later than at the first bar
    from which the rest of the piece fits, so no window is much shorter than W unless its piece is.
    A window from a piece's first bar begins with Start. A piece shorter than W counts as W tokens,
    since it fills a window all the same. Nothing after the first W tokens of a bar is ever seen.

    Args:
        tokens: (N,) the ids of all pieces.
        piece_offsets: (P + 1,) where each piece begins in `tokens`, and where the last one ends.
        bar_offsets: (M,) where each bar begins in `tokens`.
        bar_tempos: (M,) the id of the Tempo that holds in each bar.
        length: W.
        vocabulary: what the ids mean.

    Attributes:
        first_bar: (P,) the number of each piece's first bar among all M.
        bar_after: (P,) the number after that of each piece's last bar.
    """

    def __init__(
        self,
        tokens: Ids,
        piece_offsets: Ints,
        bar_offsets: Ints,
        bar_tempos: Ids,
        length: int,
        vocabulary: Vocabulary,
    ) -> None:
        self._tokens, self._pieces, self._tempos = tokens, piece_offsets, bar_tempos
        self._length, self._vocabulary = length, vocabulary
        begin, end = piece_offsets[:-1], piece_offsets[1:]
        # Where a window may begin: at every bar; for a piece's first bar, at its Start.
        self._starts = bar_offsets.copy()
        self.first_bar = np.searchsorted(bar_offsets, begin)
        self._starts[self.first_bar] = begin
        self.bar_after = np.append(self.first_bar[1:], len(self._starts))
        last = np.searchsorted(self._starts, end - length)  # the first bar from which the rest fits
        self._last = np.clip(last, self.first_bar, self.bar_after - 1)
        self._places = np.cumsum(np.maximum(end - begin, length))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
        """Draw `count` windows: return (count,) pieces, and (count,) the bars where they begin."""
        place = rng.integers(self._places[-1], size=count)
        piece = np.searchsorted(self._places, place, side="right")
        from_end = self._places[piece] - place  # 1 .. the piece's length, or W
        middle = self._pieces[piece + 1] - from_end
        bar = np.searchsorted(self._starts, middle - self._length // 2, side="right") - 1
        # If this bar is longer than half a window, the middle may lie beyond the window's end.
        after = np.minimum(bar + 1, len(self._starts) - 1)
        is_beyond = self._starts[bar] + self._length - 1 <= middle
        bar = np.where(is_beyond & (self._starts[after] <= middle), after, bar)
        return piece, np.clip(bar, self.first_bar[piece], self._last[piece])

    def cut(self, piece: Ints, bar: Ints) -> tuple[Ints, Bools, Bools]:
        """Cut B windows, each from a piece (B,) and beginning at a bar (B,).

        Returns:
            Three arrays (B, W): the ids; where a tempo is restated; and which places lie beyond the
            end of the piece, where the ids mean nothing.
        """
        start, end = self._starts[bar], self._pieces[piece + 1][:, None]
        head, has_tempo = bar_head_sizes(self._tokens, start, self._vocabulary)  # Bar [Length]
        restates = ~has_tempo & (start != self._pieces[piece]) & self._vocabulary.grid.has_meter
        column, head, restates = np.arange(self._length), head[:, None], restates[:, None]
        is_restated = restates & (column == head)  # (B, W)
        source = start[:, None] + column - (restates & (column >= head))
        ids = self._tokens[np.minimum(source, end - 1)].astype(np.int64)
        ids = np.where(is_restated, self._tempos[bar][:, None], ids)
        return ids, is_restated, source >= end


def ids_and_targets(
    window: Ints, is_beyond: Bools, is_restated: Bools | bool = False
) -> tuple[Ints, Ints]:
    """Return what the model reads in windows (B, W), and what it learns: two arrays (B, W - 1)."""
    ids = np.where(is_beyond, PAD, window)[:, :-1]
    targets = np.where(is_beyond | is_restated, NOT_SCORED, window)[:, 1:]
    return ids, targets
