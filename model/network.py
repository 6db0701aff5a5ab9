"""A trained decoder as arrays: its config, and its weights under torch's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.config import DecoderConfig


@dataclass(frozen=True, eq=False)
class Network:
    """The config and the float32 weights of a decoder: what a model file has, and what is sampled.

    Attributes:
        config: of the decoder.
        weights: by the names in its `state_dict`, with the shapes that `engine.gather` asks for.
    """

    config: DecoderConfig
    weights: Mapping[str, NDArray[np.floating[Any]]]

    @property
    def parameter_count(self) -> int:
        """How many numbers were learned."""
        return sum(weight.size for weight in self.weights.values()) - 1  # all but the temperature
