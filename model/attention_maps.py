"""Attention maps: which token looks at which, in every layer and head."""

from typing import Any

import torch
from torch import Tensor, nn

from common.interface import SideInput
from model.attention import MultiHeadAttention, attention_weights
from model.config import DecoderConfig
from model.decoder import Decoder


def attention_names(config: DecoderConfig) -> list[str]:
    """Return the name of each layer of `attention_maps`."""
    twice = ("",) if config.n_attention == 1 else (", attention 1", ", attention 2")
    return [f"layer {n + 1}{which}" for n in range(config.n_layer) for which in twice]


def weights_of(
    layer: MultiHeadAttention,
    x: Tensor,
    rotation: tuple[Tensor, Tensor] | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the weights with which a layer, given the same, sums values: (B, H, T, T)."""
    query, key, _ = layer.project(x, rotation)
    return attention_weights(query, key, mask, causal=mask is None)


@torch.no_grad()
def attention_maps(decoder: Decoder, ids: Tensor, side: SideInput[Tensor] | None = None) -> Tensor:
    """Return the weights of every attention layer while a decoder reads `ids`.

    Args:
        decoder: the decoder.
        ids: int64 (B, T).
        side: as in `Decoder.forward`.

    Returns:
        float (L, B, H, T, T), L = n_layer * n_attention in the order of reading; each row
        sums to 1.
    """
    maps: list[Tensor] = []

    def look(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        assert isinstance(layer, MultiHeadAttention)
        maps.append(weights_of(layer, *inputs))  # x, rotation

    layers = [layer for layer in decoder.modules() if isinstance(layer, MultiHeadAttention)]
    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    try:
        decoder(ids, side)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(maps)
