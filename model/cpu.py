"""What is done to each number or vector by itself, with derivatives written out.

On a CPU each is torch's own operation in fewer passes over memory, forward and backward.
Elsewhere, and where no derivative is wanted, torch's own runs.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Dropout(nn.Dropout):
    """torch's, whose random numbers are cheap on a CPU: 64 bits are drawn at once, for 4 numbers.

    The share that is zeroed is p to the nearest 2^-15, and what is kept is scaled by just that.
    """

    def forward(self, x: Tensor) -> Tensor:
        """float of any shape; while training, a share p of it is 0, the rest larger."""
        if not self.training or self.p == 0 or not _on_cpu(x):
            return super().forward(x)
        dropped: Tensor = _Dropped.apply(x, self.p)  # type: ignore[no-untyped-call]
        return dropped


class _Dropped(torch.autograd.Function):
    """x times a random 0 or 1 / (1 - p)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        bits = torch.int16 if x.element_size() == 2 else torch.int32
        keep = round((1 - p) * 2**15)
        drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        drawn = drawn.view(torch.int16)[: x.numel()].view(x.shape)
        # all bits set where what was drawn, in [0, 2^15), is less than `keep`: sign, then smeared
        mask = drawn.bitwise_and_(2**15 - 1).sub_(keep).bitwise_right_shift_(15).to(bits)
        ctx.save_for_backward(mask)
        ctx.scale = 2**15 / keep
        return _masked(x, mask, ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return _masked(gradient[0], mask, ctx.scale), None


def _masked(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    """x * scale where all bits of the mask are set, 0 where none is."""
    return (x.contiguous().view(mask.dtype) & mask).view(x.dtype).mul_(scale)


class BlockDropout(nn.Module):
    """Dropout of whole blocks of a vector: a block's numbers go and stay together.

    Args:
        widths: of the blocks, one after the other.
        p: share of them that is zeroed.
    """

    def __init__(self, widths: tuple[int, ...], p: float) -> None:
        super().__init__()
        self.widths, self.p = widths, p

    def forward(self, x: Tensor) -> Tensor:
        """float (..., D), D the sum of the widths; while training, what is kept is larger."""
        if not self.training or self.p == 0 or not len(self.widths):
            return x
        kept = torch.rand(*x.shape[:-1], len(self.widths), device=x.device) >= self.p
        scales = (kept.to(x.dtype) / (1 - self.p)).unbind(dim=-1)  # each (...)
        blocks = torch.split_with_sizes(x, self.widths, dim=-1)
        # block by block: a scale for every number, side by side, takes five times as long
        return torch.cat(
            [block * scale[..., None] for block, scale in zip(blocks, scales, strict=True)], -1
        )


class RMSNorm(nn.RMSNorm):
    """torch's (Zhang & Sennrich 2019): x / sqrt(mean(x^2) + eps), times a gain."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        if not x.requires_grad or not _on_cpu(x):
            return super().forward(x)
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        y: Tensor = _Normed.apply(x, eps)  # type: ignore[no-untyped-call]
        return y if self.weight is None else y * self.weight


class _Normed(torch.autograd.Function):
    """x / sqrt(mean(x^2) + eps)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        width = x.shape[-1]
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        factor = norm.square_().div_(width).add_(eps).rsqrt_().to(x.dtype)
        y: Tensor = x * factor
        ctx.save_for_backward(y, factor)
        return y

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None]:
        """(g - y mean(g y)) / sqrt(mean(x^2) + eps)."""
        y, factor = ctx.saved_tensors
        along = (gradient[0] * y).mean(dim=-1, keepdim=True)
        return torch.addcmul(gradient[0], y, along, value=-1).mul_(factor), None


def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0)^2 (So et al. 2021, Primer, section 3)."""
    if not x.requires_grad or not _on_cpu(x):
        return functional.relu(x).square()
    y: Tensor = _SquaredReLU.apply(x)  # type: ignore[no-untyped-call]
    return y


class _SquaredReLU(torch.autograd.Function):
    """max(x, 0)^2."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.relu()
        ctx.save_for_backward(y)
        square: Tensor = y * y
        return square

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return torch.addcmul(y.new_zeros(()), gradient[0], y, value=2)  # 2 g y in one pass


def _on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu"
