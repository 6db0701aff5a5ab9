"""The decoder of torch as scoring sees it, on the device where it is; its weights as arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from common.arrays import Floats, Ids
from common.interface import SideInput
from model.decoder import Decoder
from model.network import Network
from model.steps import SideArrays


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

    @torch.inference_mode()
    def logits(self, ids: Ids, side: SideArrays | None = None) -> Floats:
        """Return logits of whole windows, as `Scorer` says."""
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


def side_tensors(side: SideArrays | None, device: torch.device) -> SideInput[Tensor] | None:
    """Return a side input as torch's tensors on a device; None stays None."""
    return side and side.map(lambda array: torch.from_numpy(array).to(device))
