"""A trained decoder as arrays: its config and its weights, with the names that torch gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.interface import ENDS
from model.config import END_ROWS, DecoderConfig, interval_rows


@dataclass(frozen=True, eq=False)
class Network:
    """A decoder's config and weights, float32: what a model file holds, and what is sampled from.

    Attributes:
        config: of the decoder.
        weights: by the names of its `state_dict`, of the shapes of `weight_shapes`.
    """

    config: DecoderConfig
    weights: Mapping[str, NDArray[np.floating[Any]]]

    @property
    def parameter_count(self) -> int:
        """How many numbers were learned."""
        return sum(weight.size for weight in self.weights.values()) - 1  # not the temperature


def sub_layers(config: DecoderConfig) -> tuple[list[str], list[str]]:
    """Return the names of the attention sub-layers, and of the feed-forward ones."""
    layers = [f"blocks.{number}" for number in range(config.n_layer)]
    attentions = [f"{layer}.attention.{n}" for layer in layers for n in range(config.n_attention)]
    return attentions, [f"{layer}.feed_forward" for layer in layers]


def weight_shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a decoder of this config, by its name."""
    D, V = config.n_embd, config.vocabulary_size
    shapes: dict[str, tuple[int, ...]] = {"temperature": (), "embedding.weight": (V, D)}
    shapes["head.weight"] = (V, D)
    if config.n_features:
        shapes["side.weight"] = (config.n_features + 1, D)
    if config.has_interval_head:
        rows = interval_rows(config.n_programs, config.n_classes)
        shapes["interval_head.table.weight"] = (rows, D)
    if config.has_end_head:
        shapes["end_head.table.weight"] = (ENDS * END_ROWS, D)
    attentions, feeds = sub_layers(config)
    for name in attentions:
        shapes |= {f"{name}.layer.w_qkv.weight": (3 * D, D), f"{name}.layer.w_o.weight": (D, D)}
    for name in feeds:
        shapes[f"{name}.layer.w_1.weight"] = (4 * D, D)
        shapes[f"{name}.layer.w_2.weight"] = (D, 4 * D)
        if config.bias:
            shapes |= {f"{name}.layer.w_1.bias": (4 * D,), f"{name}.layer.w_2.bias": (D,)}
    norms = [f"{name}.norm" for name in (*attentions, *feeds)]
    if config.norm_position == "pre":
        norms.append("norm")
    for name in norms:
        shapes[f"{name}.weight"] = (D,)
        if config.norm == "layer":
            shapes[f"{name}.bias"] = (D,)
    return shapes
