"""What a decoder has read of the rows that are sampled; it reads as late as possible."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.arrays import Bools, Floats, Ids
from common.interface import SideArrays
from model.steps import Steps, joined, right_aligned

Rebase = Callable[[Ids], Ids]  # the whole history of a row -> a shorter prompt in its place


class Reader:
    """What a decoder has read of B rows, and what it has yet to read.

    Args:
        steps, prompts, rebase: as in `sample`.
        side: computes the side input beside the latest ids (B, T); None: the decoder has none.
        guidance: as in `Grammar`; without a side input there is no guidance.
        copies: each group of this many rows in turn begins alike; their beginning is read once.

    Raises:
        ValueError: a prompt is empty.
    """

    def __init__(
        self,
        steps: Steps,
        prompts: Sequence[Ids],
        side: Callable[[Ids], SideArrays] | None,
        rebase: Rebase | None,
        guidance: float,
        copies: int = 1,
    ) -> None:
        if min(map(len, prompts), default=0) == 0:
            raise ValueError("a prompt must hold at least one token")
        self._steps, self._side, self._rebase = steps, side, rebase
        self._guidance = guidance if side else 0.0
        self._times = 2 if self._guidance else 1  # how often each row is read
        self._copies = copies  # how many rows share what is read first
        self._histories = [[int(i) for i in prompt] for prompt in prompts]
        self._latest: Ids = np.zeros(len(prompts), dtype=np.int64)
        self._cache: Any = None
        self._columns = 0  # in the longest row, including those still unread
        self._unread: list[tuple[Ids, SideArrays | None]] = []  # (B, 1) each

    def add(self, ids: Ids, ended: Bools) -> None:
        """Take the next ids (B,), except in rows that have ended (B,)."""
        self._latest = ids
        for row in np.flatnonzero(~ended):
            self._histories[row].append(int(ids[row]))

    def read(self, ended: Bools) -> None:
        """Read the latest ids, or keep them for later together with what stands beside them now.

        If the context is full, rows are shortened, and all are read again.

        Raises:
            ValueError: nothing may shorten the rows, or they are still too long.
        """
        context = self._steps.config.context_length
        if self._columns and self._columns < context:
            ids = self._latest[:, None]
            self._columns += 1
        else:
            if self._columns or max(map(len, self._histories)) > context:
                self._shorten(ended, context)
            if self._columns:
                self._copies = 1
            ids = right_aligned([np.array(history) for history in self._histories])
            self._columns, self._unread, self._cache = ids.shape[1], [], None
        self._unread.append((ids, self._side and self._side(ids)))

    def logits(self) -> Floats:
        """Return the logits (B, V) of the next ids, after reading what was kept."""
        if self._unread:
            windows, sides = zip(*self._unread, strict=True)
            ids = np.tile(np.concatenate(windows, axis=1), (self._times, 1))
            side = joined(sides) if self._side else None
            times = self._copies
            if times > 1 and self._cache is None and len(windows) == 1:
                side = side and side.map(lambda array: array[::times])
                logits, cache = self._steps.read(ids[::times], side)
                self._logits = logits.repeat(times, axis=0)
                self._cache = self._steps.repeated(cache, times)
            else:
                self._logits, self._cache = self._steps.read(ids, side, self._cache)
            self._unread = []
        if not self._guidance:
            return self._logits
        told, untold = np.split(self._logits, 2)
        return np.asarray(told + self._guidance * (told - untold))

    def _shorten(self, ended: Bools, context: int) -> None:
        """Replace long histories by shorter ones, so that what is forgotten takes no memory."""
        if self._rebase is None:
            raise ValueError(f"the context of {context} tokens is full and nothing may shorten it")
        for row, over in enumerate(ended):
            kept = self._histories[row]
            if over:
                kept = kept[-1:]  # a row that has ended needs only one token
            if 2 * len(kept) > context:
                kept = self._rebase(np.array(kept)).tolist()
                if not 1 <= len(kept) < context:
                    raise ValueError(f"rebase gave {len(kept)} tokens, not 1 to {context - 1}")
            self._histories[row] = kept
