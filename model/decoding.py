"""The decoder of torch as sampling and scoring see it, on the device where it is."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.interface import PAD, SideInput
from model.cache import KVCache
from model.decoder import Decoder
from model.engine import Engine
from model.network import Network
from model.steps import Ids, SideArrays


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

    @torch.inference_mode()
    def logits(self, ids: Ids, side: SideArrays | None = None) -> NDArray[np.float32]:
        """Return logits of whole windows, as `Steps` says."""
        device = self.decoder.head.weight.device
        column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)  # (B, T)
        logits: Tensor = self.decoder(column, side=side_tensors(side, device))  # (B, T, V)
        return logits.float().cpu().numpy()


def network_of(decoder: Decoder) -> Network:
    """Return a copy of a decoder's weights as they are now, as arrays."""
    state = decoder.state_dict()
    return Network(
        decoder.config, {name: w.float().cpu().numpy().copy() for name, w in state.items()}
    )


def decoder_of(network: Network) -> Decoder:
    """Return the decoder of torch with these weights, in evaluation mode, on the CPU."""
    decoder = Decoder(network.config)
    decoder.load_state_dict({name: torch.tensor(w) for name, w in network.weights.items()})
    return decoder.eval()


def engine_of(decoder: Decoder) -> Engine:
    """Return a decoder compiled for a CPU, with the weights that it has now."""
    return Engine(network_of(decoder))


def side_tensors(side: SideArrays | None, device: torch.device) -> SideInput[Tensor] | None:
    """Return a side input as torch's tensors on a device; None stays None."""
    return side and side.map(lambda array: torch.from_numpy(array).to(device))
