"""A decoder as sampling sees it: it reads the next ids of some rows, and remembers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.interface import PAD, SideInput
from model.attention import KVCache
from model.config import DecoderConfig
from model.decoder import Decoder
from model.engine import Engine

Ids = NDArray[np.integer[Any]]
SideArrays = SideInput[NDArray[np.integer[Any]]]


class Steps(Protocol):
    """A decoder, as the definition has it (`PlainSteps`) or compiled (`engine_of`).

    Attributes:
        config: of the decoder.
    """

    config: DecoderConfig

    def read(
        self, ids: Ids, side: SideArrays | None = None, cache: Any = None
    ) -> tuple[NDArray[np.float32], Any]:
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


class PlainSteps:
    """The decoder as it is, on the device where it is.

    Args:
        decoder: in evaluation mode.

    Raises:
        ValueError: it is in training mode.
    """

    def __init__(self, decoder: Decoder) -> None:
        if decoder.training:
            raise ValueError("the decoder is in training mode: call decoder.eval() first")
        self.decoder, self.config = decoder, decoder.config

    @torch.inference_mode()
    def read(
        self, ids: Ids, side: SideArrays | None = None, cache: KVCache | None = None
    ) -> tuple[NDArray[np.float32], KVCache]:
        """Read ids, as `Steps` says."""
        if cache is None:
            cache = self.decoder.empty_cache(torch.from_numpy((ids != PAD).argmax(axis=1)))
        device = cache.start.device
        column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)  # (B, T)
        logits: Tensor = self.decoder(column, cache, side=side_tensors(side, device))  # (B, T, V)
        return logits[:, -1].float().cpu().numpy(), cache


def engine_of(decoder: Decoder) -> Engine:
    """Return a decoder compiled for a CPU, with the weights that it has now."""
    weights = decoder.state_dict()
    return Engine(decoder.config, {name: w.float().cpu().numpy() for name, w in weights.items()})


def right_aligned(prompts: Sequence[Ids]) -> NDArray[np.int64]:
    """Return int64 (B, T): the prompts with Pad at their left, so that all go on at the end."""
    longest = max(map(len, prompts))
    ids = np.full((len(prompts), longest), PAD, dtype=np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return ids


def joined(sides: Sequence[SideArrays]) -> SideArrays:
    """Return side inputs of the same rows one after the other, as of one window (B, T)."""
    most = max(side.bag.shape[2] for side in sides)
    bags = [np.pad(side.bag, ((0, 0), (0, 0), (0, most - side.bag.shape[2]))) for side in sides]
    rest = zip(*(side[1:] for side in sides), strict=True)  # references, moves and time
    return SideInput(*(np.concatenate(arrays, axis=1) for arrays in (bags, *rest)))


def side_tensors(side: SideArrays | None, device: torch.device) -> SideInput[Tensor] | None:
    """Return a side input as torch's tensors on a device; None stays None."""
    return side and side.map(lambda array: torch.from_numpy(array).to(device))
