"""A decoder step by step: prompts in one pass, then one token a row, plainly or recorded."""

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.jit import trace

from model.attention import KVCache
from model.decoder import Decoder

PAD = 0  # the id that fills the places without a token

Ids = NDArray[np.integer[Any]]
SideArray = NDArray[np.int16]


@torch.inference_mode()
def prefill(
    decoder: Decoder, prompts: Sequence[Ids], side: SideArray | None = None
) -> tuple[Tensor, KVCache]:
    """Read prompts of any lengths in one pass.

    Args:
        decoder: in evaluation mode.
        prompts: B arrays of ids, none empty, none longer than the context.
        side: int16 (B, T, S), the side input beside `right_aligned(prompts)`, if there is one.

    Returns:
        Logits (B, V) of the token after each prompt, and the cache that holds them.

    Raises:
        ValueError: an empty or too long prompt, or a decoder in training mode.
    """
    if decoder.training:
        raise ValueError("the decoder is in training mode: call decoder.eval() first")
    lengths = [len(prompt) for prompt in prompts]
    if min(lengths, default=0) == 0:
        raise ValueError("a prompt must hold at least one token")
    cache = decoder.empty_cache(max(lengths) - torch.tensor(lengths))
    device = cache.start.device
    ids = torch.from_numpy(right_aligned(prompts)).to(device)  # (B, T)
    logits: Tensor = decoder(ids, cache, side=_on(device, side))
    return logits[:, -1], cache  # (B, T, V) -> (B, V)


def right_aligned(prompts: Sequence[Ids]) -> NDArray[np.int64]:
    """int64 (B, T): prompts of any lengths with Pad at their left, so that all go on at the end."""
    longest = max(map(len, prompts))
    ids = np.full((len(prompts), longest), PAD, dtype=np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return ids


@torch.inference_mode()
def decode_one(decoder: Decoder, ids: Ids, cache: KVCache, side: SideArray | None = None) -> Tensor:
    """Append one id (B,) to each row of the cache; logits (B, V) of the token after it.

    `side`, int16 (B, 1, S), is the side input of a decoder that has one.

    Raises:
        ValueError: the cache is full.
    """
    device = cache.start.device
    column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)[:, None]  # (B, 1)
    logits: Tensor = decoder(column, cache, side=_on(device, side))  # (B, 1, V)
    return logits[:, -1]


def _on(device: torch.device, side: SideArray | None) -> Tensor | None:
    return None if side is None else torch.from_numpy(side).to(device)


class RecordedSteps:
    """`decode_one` on a CPU, recorded once and run without the Python between its operations.

    The decoder itself is run to record them (`torch.jit.trace`), so that there is no second
    implementation to keep in step: a copy of it, in which layers give way to equals that are
    quicker on a few rows (`_for_few`). On other devices every step is `decode_one`.

    Args:
        decoder: in evaluation mode; later changes of its weights are not seen.
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.quick: dict[int, Decoder] = {}  # by rows
        self.recorded: dict[tuple[int, bool], Callable[..., Tensor]] = {}  # rows, padded or not

    @torch.inference_mode()
    def __call__(self, ids: Ids, cache: KVCache, side: SideArray | None = None) -> Tensor:
        """As `decode_one`; the cache must not be full."""
        if cache.start.device.type != "cpu":
            return decode_one(self.decoder, ids, cache, side)
        column = torch.from_numpy(np.asarray(ids, dtype=np.int64))[:, None]
        told = torch.empty(len(column), 1, 0) if side is None else torch.from_numpy(side)
        inputs = (column, told, torch.tensor(cache.length), cache.key, cache.value, cache.start)
        variant = (len(column), cache.padded)
        if variant not in self.recorded:
            self.recorded[variant] = self._record(cache, inputs)
        logits = self.recorded[variant](*inputs)
        cache.advance(1)
        return logits

    def _record(self, cache: KVCache, inputs: tuple[Tensor, ...]) -> Callable[..., Tensor]:
        """The operations of a step, of which `length` and the cache's tensors are arguments."""
        rows = len(cache.start)
        if rows not in self.quick:
            self.quick[rows] = _for_few(self.decoder, rows)
        with warnings.catch_warnings():
            # that sizes become constants, and that trace gives way to compile (which needs g++)
            warnings.simplefilter("ignore")
            recorded: Callable[..., Tensor] = trace(
                _Step(self.quick[rows], cache), inputs, check_trace=False
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
        # Out of sight: trace would rebuild every layer. What is no plain tensor has to be seen.
        self.hidden = (decoder, cache)
        packed = [layer.packed for layer in decoder.modules() if isinstance(layer, PackedLinear)]
        for number, weight in enumerate(packed):
            self.register_buffer(f"packed_{number}", weight)

    def forward(
        self, ids: Tensor, side: Tensor, length: Tensor, key: Tensor, value: Tensor, start: Tensor
    ) -> Tensor:
        """Logits (B, V) after ids (B, 1)."""
        decoder, cache = self.hidden
        cache = copy.copy(cache)
        cache.key, cache.value, cache.start = key, value, start
        cache.length = length  # type: ignore[assignment]  # a tensor, so that it stays variable
        logits: Tensor = decoder(ids, cache, side=side)  # (B, 1, V)
        return logits[:, -1]


class ColumnLinear(nn.Module):
    """A Linear whose matrix is stored by column.

    A product with one vector then adds up columns, which streams through memory faster than many
    short dot products.

    Args:
        layer: that it stands for.
    """

    columns: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("columns", layer.weight.data.t().contiguous())
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """As the Linear's of (1, 1, D)."""
        y: Tensor = torch.mm(x[0], self.columns)[None]  # half the overhead of `linear`
        return y if self.bias is None else y + self.bias


class PackedLinear(nn.Module):
    """A Linear whose matrix oneDNN has packed: two to three times as fast on 2 to 16 rows.

    Args:
        layer: of float32, on the CPU.
        rows: of the inputs to come; others are right too, but slower.
    """

    packed: Tensor

    def __init__(self, layer: nn.Linear, rows: int) -> None:
        super().__init__()
        packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.data, rows)
        self.register_buffer("packed", packed)
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """As the Linear's."""
        y: Tensor = _packed_product(x, self.packed, self.bias)
        return y


@torch.jit.script
def _packed_product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """W x + b; a script, since `trace` cannot write down the operation's empty list."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return y


class QuickRMSNorm(nn.Module):
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
        """As the RMSNorm's."""
        norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / norm.hypot(self.least) * self.gain  # sqrt(D) x / sqrt(|x|^2 + D eps)


def _for_few(decoder: Decoder, rows: int) -> Decoder:
    """A copy whose layers are quick on so many rows of one token."""
    decoder = copy.deepcopy(decoder).requires_grad_(False)
    can_pack = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    for parent in list(decoder.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Dropout):
                setattr(parent, name, nn.Identity())
            elif isinstance(layer, nn.RMSNorm):
                setattr(parent, name, QuickRMSNorm(layer))
            elif isinstance(layer, nn.Linear) and rows == 1:
                setattr(parent, name, ColumnLinear(layer))
            elif isinstance(layer, nn.Linear) and can_pack and layer.weight.dtype == torch.float32:
                setattr(parent, name, PackedLinear(layer, rows))
    return decoder
