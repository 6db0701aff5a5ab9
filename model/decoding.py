"""The decoder of torch as sampling and scoring see it, on the device where it is."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from common.interface import PAD, SideInput
from model.decoder import Decoder
from model.engine import Engine
from model.network import Network
from model.steps import Ids, SideArrays, joined

Read = tuple[Ids, SideArrays | None]


class PlainSteps:
    """The decoder as it is, on the device where it is: the definition of what an engine does.

    Args:
        decoder: in evaluation mode.

    Raises:
        ValueError: it is in training mode.
    """

    def __init__(self, decoder: Decoder) -> None:
        if decoder.training:
            raise ValueError("the decoder is in training mode: call decoder.eval() first")
        self.decoder, self.config = decoder, decoder.config

    def read(
        self, ids: Ids, side: SideArrays | None = None, cache: Read | None = None
    ) -> tuple[NDArray[np.float32], Read]:
        """Read ids, as `Steps` says; kept are the ids themselves, and all are read anew."""
        if cache is not None:
            ids = np.concatenate((cache[0], ids), axis=1)
            side = joined((cache[1], side)) if cache[1] and side else None
        counts = np.count_nonzero(ids, axis=1)  # of each row, but for Pad
        order = np.argsort(ids == PAD, axis=1, kind="stable")[:, : counts.max()]  # Pad at the right
        rows = np.arange(len(ids))
        at = rows[:, None], order
        logits = self.logits(ids[at], side and side.map(lambda array: array[at]))  # (B, T, V)
        return logits[rows, counts - 1], (ids, side)

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
