"""Attention: the formula, and the layer with many heads.

Each token asks with a vector, its query. Each token before it, and the token itself, answers with a
key and a value. The better a key fits the query, the more of that value the asking token takes.

Letters, here and in all of model/: B rows side by side, T tokens that ask, S tokens that answer, H
heads, D the width of the model, d the width of one head, V ids, C the context length. A column is
the same place in all rows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.positions import rotate


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return softmax(Q K^T * scale), over the keys that each query may see.

    This is the definition (Vaswani et al. 2017, equation 1). Tests compare all faster ways with it.

    Args:
        query: float (..., T, d).
        key: float (..., S, d), with the same leading axes.
        mask: bool, broadcastable to (..., T, S); True: may be seen. None: everything may.
        causal: also hide later keys; then there must be as many keys as queries.
        scale: factor on the products; None: 1 / sqrt(d).

    Returns:
        (..., T, S). Each row sums to 1, or is all 0 if its query may see nothing.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.mT  # (..., T, d) @ (..., d, S) -> (..., T, S)
    seen = _seen(mask, causal, query)
    if seen is None:
        return scores.softmax(dim=-1)
    weights = scores.masked_fill(~seen, -math.inf).softmax(dim=-1)
    return weights.masked_fill(~seen, 0)  # a query that may see nothing would get NaN


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return `attention_weights` @ V, computed by torch's fused kernel.

    Args:
        query: float (..., T, d_k).
        key: float (..., S, d_k).
        value: float (..., S, d_v); d_v may differ from d_k.
        mask, causal, scale: as in `attention_weights`.

    Returns:
        (..., T, d_v); 0 where a query may see nothing.
    """
    if mask is None and causal:
        # the kernel is fastest with its own causal mask
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale
        )
    seen = _seen(mask, causal, query)
    output = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scale)
    if seen is None:
        return output
    return output.masked_fill(~seen.any(dim=-1, keepdim=True), 0)


def causal_mask(n: int, device: torch.device | None = None, *, strict: bool = False) -> Tensor:
    """Return bool (T, T), in which no query sees a later key.

    With `strict`, no query sees its own key either, only those before it.
    """
    return torch.ones(n, n, dtype=torch.bool, device=device).tril(-1 if strict else 0)


def padding_mask(is_token: Tensor) -> Tensor:
    """Return a mask (B, 1, 1, S) in which no query sees an empty place.

    `is_token`, bool (B, S), says which places hold a token. Join the mask with others by `&`:
    `causal_mask(T) & padding_mask(ids != 0)`.
    """
    return is_token[:, None, None, :]


def _seen(mask: Tensor | None, causal: bool, query: Tensor) -> Tensor | None:
    """Join `mask` and causality in one boolean mask; None: nothing is hidden."""
    if not causal:
        return mask
    later_hidden = causal_mask(query.shape[-2], query.device)
    return later_hidden if mask is None else mask & later_hidden


class MultiHeadAttention(nn.Module):
    """H heads of attention side by side, concatenated and mixed by W_O.

    MultiHead(x) = Concat(head_1 .. head_H) W_O, head_i = Attention(x W_Q, x W_K, x W_V) (Vaswani et
    al. 2017, section 3.2.2).

    Args:
        n_embd: D.
        n_head: H.
        key_width: d_k, the width of each head's queries and keys; None: D / H.
        value_width: d_v, the width of each head's values; None: D / H.
        qk_norm: scale queries and keys to a root mean square of 1, so that no score can run away
            (Henry et al. 2020).
    """

    # for training on a CPU, model/cpu.py has a faster one with the same results
    attend = staticmethod(scaled_dot_product_attention)

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        d_k = n_embd // n_head if key_width is None else key_width
        d_v = n_embd // n_head if value_width is None else value_width
        self.n_head = n_head
        self.qk_norm = nn.RMSNorm(d_k, elementwise_affine=False) if qk_norm else nn.Identity()
        self.widths = (2 * n_head * d_k, n_head * d_v)  # of queries with keys, and of values
        self.w_qkv = nn.Linear(n_embd, sum(self.widths), bias=False)  # W_Q, W_K, W_V in one
        self.w_o = nn.Linear(n_head * d_v, n_embd, bias=False)

    def forward(
        self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Let each token of x attend to the tokens of x.

        Args:
            x: float (B, T, D).
            rotation: what `Rotary` returns for the T positions; None: nothing is turned.
            mask: bool, broadcastable to (B, H, T, T); True: may be seen. None: causal.

        Returns:
            (B, T, D).
        """
        query, key, value = self.project(x, rotation)  # (B, H, T, d)
        y = self.attend(query, key, value, mask, causal=mask is None)
        mixed: Tensor = self.w_o(y.transpose(1, 2).flatten(2))  # (B, H, T, d_v) -> (B, T, D)
        return mixed

    def project(
        self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys (B, H, T, d_k each) and values (B, H, T, d_v) of x (B, T, D)."""
        both, value = self.w_qkv(x).split(self.widths, dim=-1)
        both = both.unflatten(-1, (2, self.n_head, -1)).permute(2, 0, 3, 1, 4)  # (2, B, H, T, d_k)
        value = value.unflatten(-1, (self.n_head, -1)).transpose(1, 2)  # (B, H, T, d_v)
        both = self.qk_norm(both)
        if rotation is not None:
            both = rotate(both, rotation)
        query, key = both.unbind()  # until here both were treated alike
        return query, key, value
