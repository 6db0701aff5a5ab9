"""The cache of keys and values: of earlier tokens each is computed once."""

import torch
from torch import Tensor

from model.attention import causal_mask, padding_mask


class KVCache:
    """Keys and values of the columns decoded so far, so that each is computed once.

    Rows of different lengths stand right-aligned: row b has `start[b]` columns of padding at
    its left, which nothing ever attends to, and its positions count from its own first token.

    Attributes:
        key: float (n_slot, B, H, C, d_k), preallocated; a slot is one attention layer.
        value: float (n_slot, B, H, C, d_v).
        length: the number of columns filled, at most C.
        start: int64 (B,), the number of padding columns of each row.
        padded: whether any row has padding (kept so that no device is asked at every step).
    """

    def __init__(
        self, n_slot: int, start: Tensor, shape: tuple[int, int, int, int], like: Tensor
    ) -> None:
        """Make an empty cache.

        Args:
            n_slot: how many attention layers write into it.
            start: int64 (B,), see above.
            shape: (H, C, d_k, d_v).
            like: its dtype and device are the cache's.
        """
        H, C, d_k, d_v = shape
        # not zeros: nothing reads a column before it is written, so none need be cleared
        self.key = like.new_empty((n_slot, len(start), H, C, d_k))
        self.value = like.new_empty((n_slot, len(start), H, C, d_v))
        self.length = 0
        self.padded = bool(start.any())
        self.start = start.to(like.device)

    def positions(self, n_new: int) -> Tensor:
        """Return positions of the next T columns: int64 (T,), or (B, T) where rows are padded."""
        columns = self.length + torch.arange(n_new, device=self.key.device)
        if not self.padded:
            return columns
        return (columns - self.start[:, None]).clamp(min=0)  # (B, T)

    def hide_padding(self, mask: Tensor | None, n_new: int) -> Tensor | None:
        """Return the mask of the next T columns with the padding of rows hidden, too.

        Args:
            mask: bool, broadcastable to (B, H, T, S); None = causal.
            n_new: T.

        Returns:
            `mask` itself where no row is padded, else bool, broadcastable to (B, H, T, S).
        """
        if not self.padded:
            return mask
        columns = torch.arange(self.length + n_new, device=self.key.device)
        is_token = padding_mask(columns >= self.start[:, None])  # (B, 1, 1, S)
        if mask is None and n_new > 1:  # the one last query sees every key
            mask = causal_mask(n_new, self.length + n_new, self.key.device)
        return is_token if mask is None else mask & is_token

    def append(self, slot: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys (B, H, T, d_k) and values (B, H, T, d_v) of one layer.

        `length` stays until `advance`, since each layer writes the same columns.

        Returns:
            All of the layer so far: keys (B, H, S, d_k) and values (B, H, S, d_v).
        """
        begin, end = self.length, self.length + key.shape[-2]
        keys, values = self.key[slot], self.value[slot]  # (B, H, C, d)
        keys[:, :, begin:end] = key
        values[:, :, begin:end] = value
        return keys[:, :, :end], values[:, :, :end]

    def advance(self, n_new: int) -> None:
        """Count that many columns as filled: every layer has written them."""
        self.length += n_new
