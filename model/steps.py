"""What sampling and scoring need from a decoder: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from common.arrays import Floats, Ids, Ints
from common.interface import PAD, SideArrays, SideInput
from model.config import DecoderConfig


class Scorer(Protocol):
    """A decoder that reads whole windows: the definition (`PlainSteps`), or compiled (`Engine`).

    Attributes:
        config: of the decoder.
    """

    config: DecoderConfig

    def logits(self, ids: Ids, side: SideArrays | None = None) -> Floats:
        """Return the logits (B, T, V) of the token after each of ids (B, T), Pad at the right end.

        Args:
            ids, side: as in `Steps.read`. The numbers after Pad mean nothing.
        """


class Steps(Scorer, Protocol):
    """A decoder that can go on reading, id by id (`Engine`)."""

    def read(
        self, ids: Ids, side: SideArrays | None = None, cache: Any = None
    ) -> tuple[Floats, Any]:
        """Read the next ids of B rows: prompts, or what follows them.

        Args:
            ids: (B, T); Pad stands at the left of shorter prompts, and in rows that have ended.
            side: the side input beside them, if the decoder has one.
            cache: what was read before, to which these ids are added; None: nothing.

        Returns:
            The logits (B, V) of the token after each row, which mean nothing in rows that have
            ended; and the cache.

        Raises:
            ValueError: there are more tokens than the context holds, or the side input does not
                fit.
        """

    def repeated(self, cache: Any, times: int) -> Any:
        """Return a cache with `times` copies of each row side by side, which all go on from it."""


def right_aligned(prompts: Sequence[Ids]) -> Ints:
    """Return the prompts as int64 (B, T), with Pad at their left, so that all end alike."""
    longest = max(map(len, prompts))
    ids = np.full((len(prompts), longest), PAD, dtype=np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return ids


def joined(sides: Sequence[SideArrays]) -> SideArrays:
    """Join side inputs of the same rows that follow each other in time, as of one window (B, T)."""
    most = max(side.bag.shape[2] for side in sides)
    bags = [np.pad(s.bag, ((0, 0), (0, 0), (0, most - s.bag.shape[2]))) for s in sides]
    rest = zip(*(side[1:] for side in sides), strict=True)  # all but the bag
    return SideInput(*(np.concatenate(arrays, axis=1) for arrays in (bags, *rest)))
