"""Attention: the formula, its many-headed layer, and the cache of keys and values."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.cpu import RMSNorm
from model.positions import rotate


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(Q K^T * scale) over the keys that may be seen (Vaswani et al. 2017, equation 1).

    Args:
        query: float (..., T, d).
        key: float (..., S, d), with the same leading axes.
        mask: bool, broadcastable to (..., T, S); True = may look. None = everything.
        causal: also hide later keys; the T queries are the last T of the S keys.
        scale: factor on the products; None = 1 / sqrt(d).

    Returns:
        (..., T, S); each row sums to 1, or is all 0 where a query may see nothing.
    """
    T, S = query.shape[-2], key.shape[-2]
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    seen = _seen(mask, causal, T, S, query.device)
    if seen is None:
        return ((query * scale) @ key.mT).softmax(dim=-1)
    blind = None if mask is None else ~seen.any(dim=-1, keepdim=True)  # causal alone sees itself
    hidden = ~seen if blind is None else ~(seen | blind)  # -inf in a whole row would give NaN
    bias = torch.zeros(seen.shape, dtype=query.dtype, device=query.device)
    bias = bias.masked_fill(hidden, -math.inf)
    # product, scale and mask in one pass: a third faster than masked_fill on the scores
    scores = torch.baddbmm(
        bias.expand(*query.shape[:-1], S).reshape(-1, T, S),  # (..., T, S) -> (N, T, S)
        query.reshape(-1, T, query.shape[-1]),  # (..., T, d) -> (N, T, d)
        key.reshape(-1, S, key.shape[-1]).mT,  # (..., S, d) -> (N, d, S)
        alpha=scale,
    )
    weights = scores.softmax(dim=-1).view(*query.shape[:-1], S)  # (N, T, S) -> (..., T, S)
    return weights if blind is None else weights.masked_fill(blind, 0)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(Q K^T * scale) V (Vaswani et al. 2017, equation 1).

    On a CPU it is written out, which forward and backward is faster than torch's fused kernel;
    elsewhere the fused kernel runs.

    Args:
        query: float (..., T, d_k).
        key: float (..., S, d_k).
        value: float (..., S, d_v); d_v need not be d_k.
        mask, causal, scale: as in `attention_weights`.

    Returns:
        (..., T, d_v); 0 where a query may see nothing.
    """
    if query.device.type != "cpu":
        return _fused(query, key, value, mask, causal, scale)
    T, S = query.shape[-2], key.shape[-2]
    if mask is not None or not causal or T != S or T == 1:
        return attention_weights(query, key, mask, causal=causal, scale=scale) @ value
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    one_axis = (
        x.reshape(-1, T, x.shape[-1]) for x in (query, key, value)
    )  # (..., T, d) -> (N, T, d)
    output: Tensor = _CausalBands.apply(*one_axis, scale)  # type: ignore[no-untyped-call]
    return output.view(*query.shape[:-1], -1)  # (N, T, d_v) -> (..., T, d_v)


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


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float | None,
) -> Tensor:
    """The same by torch's kernel."""
    T, S = query.shape[-2], key.shape[-2]
    if mask is None and causal and T == S:  # the kernel's own causal mask is its fastest way
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale
        )
    seen = _seen(mask, causal, T, S, query.device)
    output = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scale)
    if mask is None or seen is None:
        return output
    return output.masked_fill(~seen.any(dim=-1, keepdim=True), 0)


def causal_mask(
    n_query: int, n_key: int, device: torch.device | None = None, *, strict: bool = False
) -> Tensor:
    """bool (T, S): the T queries are the last of the S keys; none sees a later key.

    With `strict` none sees its own either: a look-up in what came before.
    """
    square = torch.ones(n_query, n_key, dtype=torch.bool, device=device)
    return square.tril(n_key - n_query - strict)


def padding_mask(is_token: Tensor) -> Tensor:
    """bool (B, S), which places hold a token -> (B, 1, 1, S): no query sees an empty one.

    Joined with others by `&`: `causal_mask(T, T) & padding_mask(ids != 0)`.
    """
    return is_token[:, None, None, :]


def _seen(
    mask: Tensor | None, causal: bool, n_query: int, n_key: int, device: torch.device
) -> Tensor | None:
    """`mask` and causality as one boolean mask; None where nothing is hidden."""
    if not causal or n_query == 1:  # the one last query sees every key
        return mask
    later_hidden = causal_mask(n_query, n_key, device)
    return later_hidden if mask is None else mask & later_hidden


class KVCache:
    """Keys and values of the columns decoded so far, so that each is computed once.

    Rows of different lengths stand right-aligned: row b has `start[b]` columns of padding at
    its left, which nothing ever attends to, and its positions count from its own first token.

    Attributes:
        key: float (n_slot, B, H, C, d_k), preallocated; a slot is one attention layer.
        value: float (n_slot, B, H, C, d_v).
        length: the number of columns filled, at most C; a tensor while a step is recorded.
        start: int64 (B,), the number of padding columns of each row.
        padded: whether any row has padding (kept so that no device is asked at every step).
    """

    def __init__(
        self, n_slot: int, start: Tensor, shape: tuple[int, int, int, int], like: Tensor
    ) -> None:
        """An empty cache.

        Args:
            n_slot: how many attention layers write into it.
            start: int64 (B,), see above.
            shape: (H, C, d_k, d_v).
            like: its dtype and device are the cache's.
        """
        H, C, d_k, d_v = shape
        self.key = like.new_zeros((n_slot, len(start), H, C, d_k))
        self.value = like.new_zeros((n_slot, len(start), H, C, d_v))
        self.length = 0
        self.padded = bool(start.any())
        self.start = start.to(like.device)

    def positions(self, n_new: int) -> Tensor:
        """Positions of the next T columns: int64 (T,), or (B, T) where rows are padded."""
        columns = self.length + torch.arange(n_new, device=self.key.device)
        if not self.padded:
            return columns
        return (columns - self.start[:, None]).clamp(min=0)  # (B, T)

    def not_padding(self, n_new: int) -> Tensor:
        """bool (B, 1, 1, S): which of the columns up to the next T hold tokens."""
        columns = torch.arange(self.length + n_new, device=self.key.device)
        return padding_mask(columns >= self.start[:, None])

    def append(self, slot: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write (B, H, T, d) keys and values of one layer; all so far, (B, H, S, d), return.

        (d is d_k for keys, d_v for values.)

        `length` stays until `advance`, since each layer writes the same columns.
        """
        T, end = key.shape[-2], self.length + key.shape[-2]
        keys, values = self.key[slot], self.value[slot]  # (B, H, C, d)
        keys.narrow(2, self.length, T).copy_(key)  # views made by name cost half of slices
        values.narrow(2, self.length, T).copy_(value)
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def advance(self, n_new: int) -> None:
        """Count that many columns as filled: every layer has written them."""
        self.length = self.length + n_new  # not in place: a tensor while a step is recorded


class MultiHeadAttention(nn.Module):
    """H heads of attention side by side, concatenated and mixed by W_O.

    MultiHead(x) = Concat(head_1 .. head_H) W_O, head_i = Attention(x W_Q, x W_K, x W_V)
    (Vaswani et al. 2017, section 3.2.2).

    Args:
        n_embd: D.
        n_head: H.
        slot: which slot of a `KVCache` is this layer's.
        key_width: d_k, of each head's queries and keys; None = D / H.
        value_width: d_v, of each head's values; None = D / H.
        qk_norm: bring queries and keys to RMS 1, so that no score can run away (Henry et al.
            2020).
    """

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        slot: int = 0,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        d_k = n_embd // n_head if key_width is None else key_width
        d_v = n_embd // n_head if value_width is None else value_width
        self.n_head = n_head
        self.slot = slot
        # each vector to RMS 1
        self.qk_norm = RMSNorm(d_k, elementwise_affine=False) if qk_norm else nn.Identity()
        self.widths = (2 * n_head * d_k, n_head * d_v)  # of queries and keys, and of values
        self.w_qkv = nn.Linear(n_embd, sum(self.widths), bias=False)  # W_Q, W_K, W_V at once
        self.w_o = nn.Linear(n_head * d_v, n_embd, bias=False)

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Attend.

        Args:
            x: float (B, T, D).
            rotation: `Rotary` of the positions of the T; None = positions do not turn.
            mask: bool, broadcastable to (B, H, T, S); True = may look. None = causal.
            cache: keys and values of earlier columns; the T new ones are appended.

        Returns:
            (B, T, D).
        """
        query, key, value = self.project(x, rotation)  # (B, H, T, d)
        if cache is not None:
            key, value = cache.append(self.slot, key, value)  # (B, H, S, d)
        y = scaled_dot_product_attention(query, key, value, mask, causal=mask is None)
        mixed: Tensor = self.w_o(y.transpose(1, 2).flatten(2))  # (B, H, T, d_v) -> (B, T, D)
        return mixed

    def weights(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """The weights with which `forward`, given the same, sums the values: (B, H, T, T)."""
        query, key, _ = self.project(x, rotation)
        return attention_weights(query, key, mask, causal=mask is None)

    def project(
        self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys (B, H, T, d_k) and values (B, H, T, d_v) of x (B, T, D)."""
        both, value = self.w_qkv(x).split(self.widths, dim=-1)
        both = both.unflatten(-1, (2, self.n_head, -1)).permute(2, 0, 3, 1, 4)  # (2, B, H, T, d_k)
        value = value.unflatten(-1, (self.n_head, -1)).transpose(1, 2)  # (B, H, T, d_v)
        both = self.qk_norm(both)
        if rotation is not None:
            both = rotate(both, rotation)
        query, key = both.unbind()  # what is done to queries is done to keys
        return query, key, value
