"""Trains faster on a CPU, with layers that equal those of plain PyTorch; `speed_up` puts them in.

Nothing else depends on this file. A decoder without it has the same weights under the same names,
and computes the same up to rounding; but in bfloat16 its results depend on the number of threads.
Each piece stays here for as long as it saves 5% of a training step; benchmarks/RESULTS.md has the
figures. On other devices each piece falls back to torch's own operation.
"""

import math
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from common.interface import SideInput
from model.attention import MultiHeadAttention, scaled_dot_product_attention
from model.config import interval_rows
from model.interval_head import IntervalHead
from model.interval_loops import Notes, add_intervals
from model.threads import steady_products

# Attention


def causal_bands(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Compute `scaled_dot_product_attention`; if it is causal and on a CPU, band by band."""
    T = query.shape[-2]
    if not _on_cpu(query) or mask is not None or not causal:
        return scaled_dot_product_attention(query, key, value, mask, causal=causal, scale=scale)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    flat = (x.reshape(-1, T, x.shape[-1]) for x in (query, key, value))  # (..., T, d) -> (N, T, d)
    if query.requires_grad and T % 16:  # else the softmax's gradient depends on torch's threads
        flat = (functional.pad(x, (0, 0, 0, -T % 16)) for x in flat)
    output: Tensor = _CausalBands.apply(*flat, scale)  # type: ignore[no-untyped-call]
    return output[:, :T].reshape(*query.shape[:-1], -1)  # (N, T, d_v) -> (..., T, d_v)


class _CausalBands(torch.autograd.Function):
    """Causal attention of query (N, T, d_k), key (N, T, d_k) and value (N, T, d_v), band by band.

    A band of `ROWS` queries meets only the keys up to its own end. This saves nearly half of the
    products, and what lies between them stays in the processor's cache.
    """

    ROWS = 128

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        T = query.shape[1]
        square = torch.full((min(T, _CausalBands.ROWS),) * 2, -math.inf, dtype=query.dtype)
        later_hidden = square.triu(1)
        output, bands = value.new_empty(value.shape), []
        for begin in range(0, T, _CausalBands.ROWS):
            end = min(begin + _CausalBands.ROWS, T)
            scores = _product(query[:, begin:end] * scale, key[:, :end].mT)  # (N, R, end)
            scores[:, :, begin:].add_(later_hidden[: end - begin, : end - begin])
            bands.append(scores.softmax(dim=-1))
            output[:, begin:end] = _product(bands[-1], value[:, :end])
        ctx.save_for_backward(query, key, value, *bands)
        ctx.scale = scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, *bands = ctx.saved_tensors
        of_query, of_key = torch.empty_like(query), torch.zeros_like(key)
        of_value = torch.zeros_like(value)
        end = 0
        for weights in bands:
            begin, end = end, weights.shape[-1]
            of_output = gradient[0][:, begin:end]
            _add_product(of_value[:, :end], weights.mT, of_output)
            of_weights = _product(of_output, value[:, :end].mT)
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            of_query[:, begin:end] = _product(of_scores, key[:, :end])
            _add_product(of_key[:, :end], of_scores.mT, query[:, begin:end])
        return of_query.mul_(ctx.scale), of_key.mul_(ctx.scale), of_value, None


def _product(x: Tensor, y: Tensor) -> Tensor:
    """Return the batched product (N, I, O) of x (N, I, K) and y (N, K, O)."""
    with steady_products():
        return x.bmm(y)


def _add_product(to: Tensor, x: Tensor, y: Tensor) -> None:
    """Add what `_product` returns to `to`, (N, I, O)."""
    with steady_products():
        to.baddbmm_(x, y)


class BandedAttention(MultiHeadAttention):
    """`MultiHeadAttention` with causal attention computed band by band."""

    attend = staticmethod(causal_bands)


# Products


class SteadyLinear(nn.Linear):
    """torch's Linear, with results in bfloat16 that do not depend on the number of threads."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., D) to (..., M), as torch's does."""
        is_mixed = torch.is_autocast_enabled("cpu") and torch.is_grad_enabled() and _on_cpu(x)
        if not is_mixed or torch.get_autocast_dtype("cpu") != torch.bfloat16:
            return super().forward(x)
        y: Tensor = _Mapped.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return y


class _Mapped(torch.autograd.Function):
    """x W^T + b in bfloat16.

    The gradient of W sums over all rows. Here it is a sum of sums over at most `ROWS` rows, since
    torch divides longer sums among its threads.
    """

    ROWS = 1024

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.x_type, x, weight = x.dtype, x.bfloat16(), weight.bfloat16()
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        with steady_products():
            return functional.linear(x, weight, None if bias is None else bias.bfloat16())

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_y = gradient[0].bfloat16()
        by_rows = (torch.split(rows.flatten(0, -2), _Mapped.ROWS) for rows in (of_y, x))
        with steady_products():
            of_x = (of_y @ weight).to(ctx.x_type)
            of_weight = sum((g.mT @ part).float() for g, part in zip(*by_rows, strict=True))
        of_bias = of_y.flatten(0, -2).sum(dim=0).float() if ctx.has_bias else None
        assert isinstance(of_weight, Tensor)  # there are rows
        return of_x, of_weight, of_bias


# Norms


class FastRMSNorm(nn.RMSNorm):
    """torch's RMSNorm, with a derivative that passes over memory fewer times."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize float (..., D), as torch's RMSNorm does."""
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


# Dropout


class FastDropout(nn.Dropout):
    """torch's Dropout with cheaper random numbers: 64 bits are drawn at once, for four of them.

    The share that is set to 0 is p, rounded to a multiple of 2^-15. The rest is scaled by exactly
    that share.
    """

    def forward(self, x: Tensor) -> Tensor:
        """In training, set a share p of float x, of any shape, to 0, and scale up the rest."""
        if not self.training or self.p == 0 or not _on_cpu(x):
            return super().forward(x)
        dropped: Tensor = _Dropped.apply(x, self.p)  # type: ignore[no-untyped-call]
        return dropped


class _Dropped(torch.autograd.Function):
    """x times 0 or 1 / (1 - p), at random."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        bits = torch.int16 if x.element_size() == 2 else torch.int32
        keep = round((1 - p) * 2**15)
        drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        drawn = drawn.view(torch.int16)[: x.numel()].view(x.shape)
        # set all bits where the number drawn, in [0, 2^15), is below `keep`: its sign bit, smeared
        mask = drawn.bitwise_and_(2**15 - 1).sub_(keep).bitwise_right_shift_(15).to(bits)
        ctx.save_for_backward(mask)
        ctx.scale = 2**15 / keep
        return _masked(x, mask, ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None]:
        (mask,) = ctx.saved_tensors
        return _masked(gradient[0], mask, ctx.scale), None


def _masked(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return x * scale where all bits of the mask are set, and 0 where none is."""
    return (x.contiguous().view(mask.dtype) & mask).view(x.dtype).mul_(scale)


# Logits by interval


class FastIntervalHead(IntervalHead):
    """`IntervalHead` in compiled loops."""

    def added(self, logits: Tensor, first: int, x: Tensor, side: SideInput[Tensor]) -> Tensor:
        """Return the logits with those of the notes added, as `IntervalHead` does, in float32."""
        if not _on_cpu(x):
            return super().added(logits, first, x, side)
        at = Notes(self.n_programs, self.n_pitches, first, self.n_classes)
        both = logits.float(), self.table(x).float()
        beside = side.references, side.moves, side.sounding
        added: Tensor = _WithIntervals.apply(*both, *beside, at)  # type: ignore[no-untyped-call]
        return added


class _WithIntervals(torch.autograd.Function):
    """Adds to logits (B, T, V) those of notes by distance, which a table gives (B, T, R)."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        by_row: Tensor,
        references: Tensor,
        moves: Tensor,
        sounding: Tensor,
        at: Notes,
    ) -> Tensor:
        beside = _rows(references), _rows(moves), _rows(sounding)
        ctx.at, ctx.beside = at, beside
        added = logits.detach().clone(memory_format=torch.contiguous_format)
        add_intervals(at, _rows(by_row), *beside, _rows(added), False)
        return added

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor | None, ...]:
        of_logits = gradient[0].contiguous()
        width = interval_rows(ctx.at.n_programs, ctx.at.n_classes)
        by_row = of_logits.new_zeros((*of_logits.shape[:-1], width))
        references, moves, sounding = ctx.beside
        rows = _rows(by_row), references, moves, sounding, _rows(of_logits)
        add_intervals(ctx.at, *rows, True)
        return of_logits, by_row, None, None, None, None


def _rows(x: Tensor) -> NDArray[Any]:
    """Return x (B, T, ...) as an array (B T, ...) that shares its memory."""
    rows: NDArray[Any] = x.detach().contiguous().flatten(0, 1).numpy()
    return rows


def _on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu"


FASTER: dict[type[nn.Module], type[nn.Module]] = {
    MultiHeadAttention: BandedAttention,
    nn.RMSNorm: FastRMSNorm,
    nn.Dropout: FastDropout,
    IntervalHead: FastIntervalHead,
    nn.Linear: SteadyLinear,
}


def speed_up(decoder: nn.Module) -> None:
    """Replace the layers of a decoder, in place, by equals that are faster on a CPU.

    The weights stay the very same tensors.
    """
    for module in decoder.modules():
        module.__class__ = FASTER.get(type(module), type(module))
