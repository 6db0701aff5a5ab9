"""What the tests of the model room share."""

import numpy as np
import torch

from common.interface import SideInput
from model.config import DecoderConfig
from model.decoder import Decoder
from model.reader import Rebase


def opinionated(config: DecoderConfig, seed: int, std: float) -> Decoder:
    """An untrained decoder in evaluation mode, none of whose weights are zero.

    The zero start would hide most of what is tested.
    """
    torch.manual_seed(seed)
    decoder = Decoder(config).eval()
    for weight in decoder.parameters():
        if not weight.any():
            torch.nn.init.normal_(weight, std=std)
    return decoder


def side_input(bits, time=None) -> SideInput:
    """A side input of these bits (B, T, S), NumPy's or torch's, and of no programs."""
    none = bits[..., :0]
    return SideInput(bits, none, none, bits[..., 0] if time is None else time)


def flat(side: SideInput) -> np.ndarray:
    """All of a side input side by side, NumPy's or torch's: (B, T, columns), bits first."""
    parts = (*side[:3], side.time[..., None])
    return np.concatenate([np.asarray(part) for part in parts], axis=-1)


def last_half(context_length: int) -> Rebase:
    """The plain `rebase`: the last half of the context, rounded up, wherever that begins."""
    keep = (context_length + 1) // 2

    def rebase(history: np.ndarray) -> np.ndarray:
        return history[-keep:]

    return rebase
