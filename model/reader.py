"""The decoder beside rows that are sampled: it reads as late as can be."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from model.attention import KVCache
from model.decoder import Decoder
from model.decoding import Ids, SideArrays, Step, prefill, right_aligned

Rebase = Callable[[Ids], Ids]  # whole history of a row -> the shorter prompt that stands for it


class Reader:
    """What a decoder has read of B rows, and what it has yet to read.

    Args:
        decoder, prompts, rebase, step: as in `sample`.
        side: from the latest ids (B, T) to the side input beside them; None: the decoder has none.
        guidance: as a `Grammar` has it; without side input there is none.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Sequence[Ids],
        side: Callable[[Ids], SideArrays] | None,
        rebase: Rebase | None,
        step: Step,
        guidance: float,
    ) -> None:
        self._decoder, self._side, self._rebase, self._step = decoder, side, rebase, step
        self._guidance = guidance if side else 0.0
        self._times = 2 if self._guidance else 1  # that each row is read
        self._histories = [[int(i) for i in prompt] for prompt in prompts]
        self._latest: Ids = np.zeros(len(prompts), dtype=np.int64)
        self._cache: KVCache | None = None
        self._unread: list[tuple[Ids, SideArrays | None]] = []  # of the latest, not in the cache

    def add(self, ids: Ids, ended: NDArray[np.bool_]) -> None:
        """Take the next ids (B,); rows that have ended (B,) take none."""
        self._latest = ids
        for row in np.flatnonzero(~ended):
            self._histories[row].append(int(ids[row]))

    def read(self, ended: NDArray[np.bool_]) -> None:
        """Read the latest ids, or keep them for later, with what stands beside them now.

        Where the context is full, rows are shortened, and all are read anew.

        Raises:
            ValueError: nothing may shorten them, or not enough.
        """
        context = self._decoder.config.context_length
        if self._cache is not None and self._cache.length + len(self._unread) < context:
            self._unread.append((self._latest, self._beside(self._latest[:, None])))
            return
        if self._cache is not None or max(map(len, self._histories)) > context:
            self._shorten(ended, context)
        rows = [np.array(history) for history in self._histories]
        side = self._beside(right_aligned(rows))
        self._logits, self._cache = prefill(self._decoder, rows * self._times, side)
        self._unread = []

    def logits(self) -> NDArray[np.float32]:
        """Return the logits (B, V) of the next ids; what was kept is read."""
        assert self._cache is not None  # `read` comes first
        for ids, side in self._unread:
            self._logits = self._step(np.tile(ids, self._times), self._cache, side)
        self._unread = []
        logits: NDArray[np.float32] = self._logits.float().cpu().numpy()
        if not self._guidance:
            return logits
        told, untold = np.split(logits, 2)
        return np.asarray(told + self._guidance * (told - untold))

    def _beside(self, ids: Ids) -> SideArrays | None:
        return None if self._side is None else self._side(ids)

    def _shorten(self, ended: NDArray[np.bool_], context: int) -> None:
        """Let shorter rows stand for long ones: what is forgotten takes no memory either."""
        if self._rebase is None:
            raise ValueError(f"the context of {context} tokens is full and nothing may shorten it")
        for row, over in enumerate(ended):
            kept = self._histories[row]
            if over:
                kept = kept[-1:]  # the ended need but one token
            if 2 * len(kept) > context:
                kept = self._rebase(np.array(kept)).tolist()
                if not 1 <= len(kept) < context:
                    raise ValueError(f"rebase gave {len(kept)} tokens, not 1 to {context - 1}")
            self._histories[row] = kept
