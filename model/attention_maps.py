"""Attention maps: which token looks at which, in every layer and head."""

from typing import Any

import torch
from torch import Tensor, nn

from common.arrays import Floats, Ids
from model.attention import MultiHeadAttention, attention_weights
from model.decoding import decoder_of, side_tensors
from model.network import Network
from model.steps import SideArrays


@torch.inference_mode()
def attention_maps(network: Network, ids: Ids, side: SideArrays | None = None) -> dict[str, Floats]:
    """Return the weights of each attention layer, by its name, while a decoder reads ids (T,).

    They are float32 (H, T, T); each row sums to 1. The side input is of one row.
    """
    decoder, found = decoder_of(network), list[Tensor]()

    def look(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        assert isinstance(layer, MultiHeadAttention)
        query, key, _ = layer.project(*inputs)  # x, rotation
        found.append(attention_weights(query, key, causal=True)[0])

    for layer in decoder.modules():
        if isinstance(layer, MultiHeadAttention):
            layer.register_forward_pre_hook(look)
    decoder(torch.from_numpy(ids)[None], side_tensors(side, torch.device("cpu")))
    twice = ("",) if network.config.n_attention == 1 else (", attention 1", ", attention 2")
    names = [f"layer {n + 1}{which}" for n in range(network.config.n_layer) for which in twice]
    return {name: weights.numpy() for name, weights in zip(names, found, strict=True)}
