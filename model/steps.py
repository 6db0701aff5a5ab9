"""A decoder as sampling and scoring see it: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from common.arrays import Floats, Ids, Ints
from common.interface import PAD, SideInput
from model.config import DecoderConfig

SideArrays = SideInput[Ids]


class Scorer(Protocol):
    """A decoder that reads whole windows: as the definition has it (`PlainSteps`) or compiled.

    Attributes:
        config: of the decoder.
    """

    config: DecoderConfig

    def logits(self, ids: Ids, side: SideArrays | None = None) -> Floats:
        """Return logits (B, T, V) of the token after each of ids (B, T), Pad at the right end.

        Args:
            ids, side: as in `Steps.read`. After Pad there stand any numbers.
        """


class Steps(Scorer, Protocol):
    """A decoder that reads on, id by id (`Engine`)."""

    def read(
        self, ids: Ids, side: SideArrays | None = None, cache: Any = None
    ) -> tuple[Floats, Any]:
        """Read the next ids of B rows: prompts, or what follows them.

        Args:
            ids: (B, T); Pad stands at the left of shorter prompts, and in rows that are over.
            side: the side input beside them, for a decoder that has one.
            cache: what was read before, to which these are added; None: nothing was.

        Returns:
            Logits (B, V) of the token after each row, for rows that are over any numbers; and the
            cache.

        Raises:
            ValueError: more tokens than the context holds, or a side input that does not fit.
        """

    def repeated(self, cache: Any, times: int) -> Any:
        """Return the cache of so many rows in the place of each, which all go on from it."""


def right_aligned(prompts: Sequence[Ids]) -> Ints:
    """Return int64 (B, T): the prompts with Pad at their left, so that all go on at the end."""
    longest = max(map(len, prompts))
    ids = np.full((len(prompts), longest), PAD, dtype=np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return ids


def joined(sides: Sequence[SideArrays]) -> SideArrays:
    """Return side inputs of the same rows one after the other, as of one window (B, T)."""
    most = max(side.bag.shape[2] for side in sides)
    bags = [np.pad(s.bag, ((0, 0), (0, 0), (0, most - s.bag.shape[2]))) for s in sides]
    rest = zip(*(side[1:] for side in sides), strict=True)  # all but the bag
    return SideInput(*(np.concatenate(arrays, axis=1) for arrays in (bags, *rest)))
