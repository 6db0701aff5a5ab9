"""Dropout of features, block by block."""

import torch
from torch import Tensor, nn


class BlockDropout(nn.Module):
    """Dropout of whole blocks of features: the features of a block are kept or dropped together.

    Args:
        widths: how many features each block has, block after block; features count from 1.
        p: the share of blocks that is dropped.
    """

    block_of: Tensor  # int64 (S + 1,)

    def __init__(self, widths: tuple[int, ...], p: float) -> None:
        super().__init__()
        self.n_blocks, self.p = len(widths), p
        block_of = torch.repeat_interleave(torch.arange(len(widths)), torch.tensor(widths))
        self.register_buffer("block_of", nn.functional.pad(block_of, (1, 0)), persistent=False)

    def forward(self, bag: Tensor) -> Tensor | None:
        """Return the weight (B T, K) of each feature in a bag (B, T, K); None: all are 1."""
        if not self.training or self.p == 0:
            return None
        kept = torch.rand(*bag.shape[:-1], self.n_blocks, device=bag.device) >= self.p
        weight = kept / (1 - self.p)  # (B, T, blocks)
        return weight.gather(-1, self.block_of[bag]).flatten(0, 1)
