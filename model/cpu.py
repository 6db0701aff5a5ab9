"""All that exists only to be faster on a CPU: equals of plain PyTorch, swapped in by `speed_up`.

Nothing else depends on this file. A decoder without it computes the same, to rounding, and has the
same weights under the same names; but in bfloat16 it depends on the number of threads. Each piece
stays for as long as it saves 5% of a training step or of a sampling step: `python -m
benchmarks.pieces` measures it, benchmarks/RESULTS.md has the figures. On other devices every piece
is torch's own operation.
"""

import copy
import math
import warnings
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.jit import trace
from torch.nn import functional

from common.interface import SideInput
from model.attention import (
    KVCache,
    MultiHeadAttention,
    attention_weights,
    scaled_dot_product_attention,
)
from model.decoder import Decoder
from model.decoding import Ids, SideArrays, decode_one
from model.layers import FeedForward, squared_relu
from model.positions import rotate


def speed_up(decoder: Decoder, without: Collection[str] = ()) -> "RecordedSteps":
    """Swap the layers of a decoder, in place, for equals that are faster on a CPU.

    Args:
        decoder: to train or to sample from; its weights stay the very same tensors.
        without: names of pieces to leave out, for measuring them.

    Returns:
        `decode_one` of this decoder, recorded: for weights that do not change any more.
    """
    for name, swap in LAYER_PIECES.items():
        if name not in without:
            for module in list(decoder.modules()):
                swap(module)
    for module in decoder.modules():
        if type(module) is nn.Linear:
            module.__class__ = FewRowsLinear
    return RecordedSteps(decoder, without)


def _swap_children(
    kind: type[nn.Module], make: Callable[[Any], nn.Module], parent: nn.Module
) -> None:
    """Put what `make` gives in the place of children of just this class."""
    for name, child in list(parent.named_children()):
        if type(child) is kind:
            setattr(parent, name, make(child).train(child.training))


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
    """Compute `scaled_dot_product_attention`, in bands where a whole sequence is read causally."""
    if not _on_cpu(query):
        return scaled_dot_product_attention(query, key, value, mask, causal=causal, scale=scale)
    T, S = query.shape[-2], key.shape[-2]
    if mask is not None or not causal or T != S or T == 1:
        return attention_weights(query, key, mask, causal=causal, scale=scale) @ value
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    flat = (x.reshape(-1, T, x.shape[-1]) for x in (query, key, value))  # (..., T, d) -> (N, T, d)
    if query.requires_grad and T % 16:  # the softmax's gradient would depend on torch's threads
        flat = (functional.pad(x, (0, 0, 0, -T % 16)) for x in flat)
    output: Tensor = _CausalBands.apply(*flat, scale)  # type: ignore[no-untyped-call]
    return output[:, :T].reshape(*query.shape[:-1], -1)  # (N, T, d_v) -> (..., T, d_v)


class _CausalBands(torch.autograd.Function):
    """Causal attention of query (N, T, d_k), key (N, T, d_k) and value (N, T, d_v), in bands.

    A band of `ROWS` queries meets the keys up to its own end alone: nearly half of the products
    are spared, and what is between them stays in the processor's cache.
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
            scores = (query[:, begin:end] * scale).bmm(key[:, :end].mT)  # (N, R, end)
            scores[:, :, begin:].add_(later_hidden[: end - begin, : end - begin])
            bands.append(scores.softmax(dim=-1))
            output[:, begin:end] = bands[-1].bmm(value[:, :end])
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
            of_value[:, :end].baddbmm_(weights.mT, of_output)
            of_weights = of_output.bmm(value[:, :end].mT)
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            of_query[:, begin:end] = of_scores.bmm(key[:, :end])
            of_key[:, :end].baddbmm_(of_scores.mT, query[:, begin:end])
        return of_query.mul_(ctx.scale), of_key.mul_(ctx.scale), of_value, None


def _swap_attention(module: nn.Module) -> None:
    if isinstance(module, MultiHeadAttention):
        module.attend = causal_bands


# Positions


def rotate_in_place(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Compute `rotate` without a copy of x whose halves have changed places."""
    if not _on_cpu(x):
        return rotate(x, rotation)
    cos, sin = rotation[0].to(x.dtype), rotation[1].to(x.dtype)
    if not x.requires_grad:
        return _turned(x, cos, *sin.chunk(2, dim=-1))
    turned: Tensor = _Turned.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return turned


class _Turned(torch.autograd.Function):
    """The same with its derivative, which autograd would not make of changes in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turned(x, cos, *sin.chunk(2, dim=-1))

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None, None]:
        """Turn the gradient by the same angles, the other way."""
        cos, sin = ctx.saved_tensors
        return _turned(gradient[0], cos, *sin.chunk(2, dim=-1)[::-1]), None, None


def _turned(x: Tensor, cos: Tensor, to_first: Tensor, to_second: Tensor) -> Tensor:
    """Return x cos, and to each half of it the other half of x times its sine added."""
    y = x * cos
    first, second = x.chunk(2, dim=-1)
    y_first, y_second = y.chunk(2, dim=-1)
    y_first.addcmul_(second, to_first)
    y_second.addcmul_(first, to_second)
    return y


def _swap_rotation(module: nn.Module) -> None:
    if isinstance(module, MultiHeadAttention):
        module.rotate = rotate_in_place


# Products


class FewRowsLinear(nn.Linear):
    """torch's Linear for at most `ROWS` rows at a time.

    The gradient of a bfloat16 weight, a sum over more rows, depends on the number of threads.
    """

    ROWS = 1024

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., D) to (..., M), as torch's does."""
        is_long = x.numel() > self.ROWS * x.shape[-1] and torch.is_grad_enabled()
        if not (is_long and torch.is_autocast_enabled("cpu") and _on_cpu(x)):
            return super().forward(x)
        parts = torch.split(x.flatten(0, -2), self.ROWS)
        y = torch.cat([functional.linear(part, self.weight, self.bias) for part in parts])
        return y.view(*x.shape[:-1], -1)


# Norms and activation


class FastRMSNorm(nn.RMSNorm):
    """torch's RMSNorm with a derivative in fewer passes over memory."""

    def forward(self, x: Tensor) -> Tensor:
        """Norm (..., D), as torch's does."""
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


def _swap_norms(module: nn.Module) -> None:
    def make(norm: nn.RMSNorm) -> nn.Module:
        fast = FastRMSNorm(norm.normalized_shape, norm.eps, norm.elementwise_affine)
        fast.weight = norm.weight  # the same parameter
        return fast

    _swap_children(nn.RMSNorm, make, module)


def fast_squared_relu(x: Tensor) -> Tensor:
    """Compute `squared_relu` with a derivative in one pass."""
    if not x.requires_grad or not _on_cpu(x):
        return squared_relu(x)
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


def _swap_activation(module: nn.Module) -> None:
    if isinstance(module, FeedForward) and module.activation is squared_relu:
        module.activation = fast_squared_relu


# Dropout


class FastDropout(nn.Dropout):
    """torch's Dropout with cheaper random numbers: 64 bits are drawn at once, for 4 numbers.

    The share that is zeroed is p to the nearest 2^-15, and what is kept is scaled by just that.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Zero a share p of float x, of any shape, and scale up the rest, while training."""
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
    """Return x * scale where all bits of the mask are set, 0 where none is."""
    return (x.contiguous().view(mask.dtype) & mask).view(x.dtype).mul_(scale)


def _swap_dropout(module: nn.Module) -> None:
    _swap_children(nn.Dropout, lambda dropout: FastDropout(dropout.p), module)


def _on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu"


LAYER_PIECES: dict[str, Callable[[nn.Module], None]] = {
    "attention": _swap_attention,
    "rotation": _swap_rotation,
    "norms": _swap_norms,
    "activation": _swap_activation,
    "dropout": _swap_dropout,
}
STEP_PIECES = ("recording", "step norms", "step bits")


# Steps of sampling


class RecordedSteps:
    """`decode_one` on a CPU, recorded once and run without the Python between its operations.

    What is recorded (`torch.jit.trace`) is the forward pass of a copy, in which layers have given
    way to equals that are faster on a few rows of one token (`_for_few`). On other devices every
    step is `decode_one`.

    Args:
        decoder: in evaluation mode; later changes of its weights are not seen.
    """

    def __init__(self, decoder: Decoder, without: Collection[str] = ()) -> None:
        self.decoder, self.without = decoder, without
        self.recorded: dict[tuple[int, bool], Callable[..., Tensor]] = {}  # rows, padded or not

    @torch.inference_mode()
    def __call__(self, ids: Ids, cache: KVCache, side: SideArrays | None = None) -> Tensor:
        """Decode one token a row, as `decode_one` does; the cache must not be full."""
        if cache.start.device.type != "cpu":
            return decode_one(self.decoder, ids, cache, side)
        column = torch.from_numpy(np.asarray(ids, dtype=np.int64))[:, None]
        tensors = () if side is None else side.map(torch.from_numpy)
        inputs = (column, torch.tensor(cache.length), cache.key, cache.value, cache.start, *tensors)
        variant = (len(column), cache.padded)
        if variant not in self.recorded:
            self.recorded[variant] = self._record(cache, inputs)
        logits = self.recorded[variant](*inputs)
        cache.advance(1)
        return logits

    @cached_property
    def fast(self) -> Decoder:
        """The copy that is recorded."""
        return _for_few(self.decoder, self.without)

    def _record(self, cache: KVCache, inputs: tuple[Tensor, ...]) -> Callable[..., Tensor]:
        """Record a step; `length` and the cache's tensors are arguments of what returns."""
        with warnings.catch_warnings():
            # that sizes become constants, and that trace gives way to compile (which needs g++)
            warnings.simplefilter("ignore")
            recorded: Callable[..., Tensor] = trace(
                _Step(self.fast, cache), inputs, check_trace=False
            )  # type: ignore[no-untyped-call]
        return recorded


class _Step(nn.Module):
    """What is recorded: a step whose place in the cache is an argument.

    Args:
        decoder: that takes it.
        cache: of which all but the arguments of `forward` stays as it is.
    """

    def __init__(self, decoder: Decoder, cache: KVCache) -> None:
        super().__init__()
        self.hidden = (decoder, cache)  # out of sight: trace would rebuild every layer

    def forward(
        self,
        ids: Tensor,
        length: Tensor,
        key: Tensor,
        value: Tensor,
        start: Tensor,
        *side: Tensor,
    ) -> Tensor:
        """Return logits (B, V) after ids (B, 1); `side` has a `SideInput`'s tensors, or none."""
        decoder, cache = self.hidden
        cache = copy.copy(cache)
        cache.key, cache.value, cache.start = key, value, start
        cache.length = length  # type: ignore[assignment]  # a tensor, so that it stays variable
        logits: Tensor = decoder(ids, cache, side=SideInput(*side) if side else None)  # (B, 1, V)
        return logits[:, -1]


class FewRowsRMSNorm(nn.Module):
    """x / RMS(x) by way of x's norm: half the operations of torch's on a CPU.

    Args:
        layer: that it stands for.
    """

    gain: Tensor
    least: Tensor

    def __init__(self, layer: nn.RMSNorm) -> None:
        super().__init__()
        width = layer.normalized_shape[0]
        eps = torch.finfo(torch.float32).eps if layer.eps is None else layer.eps
        gain = torch.ones(()) if layer.weight is None else layer.weight.data
        self.register_buffer("gain", gain * width**0.5)
        self.register_buffer("least", torch.tensor((width * eps) ** 0.5))

    def forward(self, x: Tensor) -> Tensor:
        """Norm x, (B, 1, D)."""
        norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / norm.hypot(self.least) * self.gain  # sqrt(D) x / sqrt(|x|^2 + D eps)


class FewBitsLinear(nn.Module):
    """A product with a vector of zeros and few ones: the sum of the columns where it has ones.

    Args:
        layer: that it stands for, without a bias.
    """

    columns: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("columns", layer.weight.data.T.contiguous())  # (S, D)

    def forward(self, bits: Tensor) -> Tensor:
        """Multiply zeros and ones, (B, 1, S) -> (B, 1, D)."""
        row, column = bits[:, 0].nonzero().unbind(dim=1)
        begin = torch.searchsorted(row, torch.arange(len(bits)))
        summed: Tensor = torch.embedding_bag(self.columns, column.contiguous(), begin)[0]
        return summed[:, None]


def _for_few(decoder: Decoder, without: Collection[str]) -> Decoder:
    """Return a copy whose layers are fast on a few rows of one token."""
    decoder = copy.deepcopy(decoder).requires_grad_(False)
    if decoder.side is not None and "step bits" not in without:
        decoder.side = FewBitsLinear(decoder.side)  # type: ignore[assignment]
    for parent in list(decoder.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Dropout):
                setattr(parent, name, nn.Identity())
            elif isinstance(layer, nn.RMSNorm) and "step norms" not in without:
                setattr(parent, name, FewRowsRMSNorm(layer))
    return decoder
