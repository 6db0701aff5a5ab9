"""A trained decoder as arrays: its config and its weights, with the names that torch gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.config import DecoderConfig


@dataclass(frozen=True, eq=False)
class Network:
    """A decoder's config and weights, float32: what a model file holds, and what is sampled from.

    Attributes:
        config: of the decoder.
        weights: by the names of its `state_dict`, of the shapes that `engine.gather` asks for.
    """

    config: DecoderConfig
    weights: Mapping[str, NDArray[np.floating[Any]]]

    @property
    def parameter_count(self) -> int:
        """How many numbers were learned."""
        return sum(weight.size for weight in self.weights.values()) - 1  # not the temperature
