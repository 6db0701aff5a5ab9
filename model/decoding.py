"""A decoder step by step: prompts in one pass, then one token a row."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.interface import PAD, SideInput
from model.attention import KVCache
from model.decoder import Decoder

Ids = NDArray[np.integer[Any]]
SideArrays = SideInput[NDArray[np.integer[Any]]]
# `decode_one` of some decoder: ids (B,), the cache, side input beside (B, 1) -> logits (B, V)
Step = Callable[[Ids, KVCache, SideArrays | None], Tensor]


@torch.inference_mode()
def prefill(
    decoder: Decoder, prompts: Sequence[Ids], side: SideArrays | None = None
) -> tuple[Tensor, KVCache]:
    """Read prompts of any lengths in one pass.

    Args:
        decoder: in evaluation mode.
        prompts: B arrays of ids, none empty, none longer than the context.
        side: the side input beside `right_aligned(prompts)`, if there is one.

    Returns:
        Logits (B, V) of the token after each prompt, and the cache that holds them.

    Raises:
        ValueError: an empty or too long prompt, or a decoder in training mode.
    """
    if decoder.training:
        raise ValueError("the decoder is in training mode: call decoder.eval() first")
    lengths = [len(prompt) for prompt in prompts]
    if min(lengths, default=0) == 0:
        raise ValueError("a prompt must hold at least one token")
    cache = decoder.empty_cache(max(lengths) - torch.tensor(lengths))
    device = cache.start.device
    ids = torch.from_numpy(right_aligned(prompts)).to(device)  # (B, T)
    logits: Tensor = decoder(ids, cache, side=side_tensors(side, device))
    return logits[:, -1], cache  # (B, T, V) -> (B, V)


def right_aligned(prompts: Sequence[Ids]) -> NDArray[np.int64]:
    """Return int64 (B, T): the prompts with Pad at their left, so that all go on at the end."""
    longest = max(map(len, prompts))
    ids = np.full((len(prompts), longest), PAD, dtype=np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return ids


@torch.inference_mode()
def decode_one(
    decoder: Decoder, ids: Ids, cache: KVCache, side: SideArrays | None = None
) -> Tensor:
    """Append one id (B,) to each row of the cache; return logits (B, V) of the token after it.

    `side` is what stands beside the ids as (B, 1), for a decoder that has a side input.

    Raises:
        ValueError: the cache is full.
    """
    device = cache.start.device
    column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)[:, None]  # (B, 1)
    logits: Tensor = decoder(column, cache, side=side_tensors(side, device))  # (B, 1, V)
    return logits[:, -1]


def side_tensors(side: SideArrays | None, device: torch.device) -> SideInput[Tensor] | None:
    """Return a side input as torch's tensors on a device; None stays None."""
    return side and side.map(lambda array: torch.from_numpy(array).to(device))
