"""A torch decoder as scoring sees it, on the device where it is, and its weights as arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from common.arrays import Floats, Ids
from common.interface import SideArrays, SideInput
from model.decoder import Decoder
from model.network import Network


class PlainSteps:
    """The decoder as it is, on the device where it is: the definition that an engine must equal.

    Args:
        decoder: in evaluation mode.

    Raises:
        ValueError: the decoder is in training mode.
    """

    def __init__(self, decoder: Decoder) -> None:
        if decoder.training:
            raise ValueError("the decoder is in training mode: call decoder.eval() first")
        self.decoder, self.config = decoder, decoder.config

    @torch.inference_mode()
    def logits(self, ids: Ids, side: SideArrays | None = None) -> Floats:
        """Return the logits of whole windows, as `Scorer` says."""
        device = self.decoder.head.weight.device
        column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)  # (B, T)
        logits: Tensor = self.decoder(column, side=side_tensors(side, device))  # (B, T, V)
        return logits.float().cpu().numpy()


def network_of(decoder: Decoder) -> Network:
    """Return a copy of a decoder's present weights, as arrays."""
    state = decoder.state_dict()
    return Network(
        decoder.config, {name: w.float().cpu().numpy().copy() for name, w in state.items()}
    )


def decoder_of(network: Network) -> Decoder:
    """Return a torch decoder with these weights, in evaluation mode, on the CPU."""
    decoder = Decoder(network.config)
    decoder.load_state_dict({name: torch.tensor(w) for name, w in network.weights.items()})
    return decoder.eval()


def side_tensors(side: SideArrays | None, device: torch.device) -> SideInput[Tensor] | None:
    """Return a side input as torch tensors on a device; None stays None."""
    return side and side.map(lambda array: torch.from_numpy(array).to(device))
