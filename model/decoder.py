"""The decoder: token ids in, logits of the next token out."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.attention import KVCache, MultiHeadAttention, causal_mask
from model.positions import Rotary


@dataclass(frozen=True)
class DecoderConfig:
    """What a decoder looks like.

    Raises:
        ValueError: a value that no decoder can have; the message names the field.
    """

    vocabulary_size: int  # V, how many different token ids there are
    n_layer: int = 4  # blocks, one after the other
    n_head: int = 4  # H, attention heads in each block
    n_embd: int = 128  # D, width of the residual stream; n_head times an even number
    context_length: int = 512  # C, the most tokens that are seen at once
    dropout: float = 0.0  # share of numbers zeroed, while training, after embedding and sub-layers

    def __post_init__(self) -> None:
        for name in ("vocabulary_size", "n_layer", "n_head", "n_embd", "context_length"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= 2**20:
                raise ValueError(f"{name} must be a whole number from 1 to {2**20}, not {value!r}")
        if self.n_embd % (2 * self.n_head):
            raise ValueError(
                f"n_embd must be n_head times an even number (rotary positions turn pairs): "
                f"{self.n_embd} with {self.n_head} heads is not"
            )
        if type(self.dropout) not in (int, float) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, not {self.dropout!r}")


class FeedForward(nn.Module):
    """W_2 relu(W_1 x)^2, four times as wide inside (So et al. 2021, Primer, section 3).

    Args:
        n_embd: D.
    """

    def __init__(self, n_embd: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(n_embd, 4 * n_embd, bias=False)
        self.w_2 = nn.Linear(4 * n_embd, n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """float (B, T, D) -> (B, T, D), each position by itself."""
        y: Tensor = self.w_2(self.w_1(x).relu().square())
        return y


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)): pre-norm (Xiong et al. 2020).

    The norm is RMSNorm (Zhang & Sennrich 2019).

    Args:
        config: of the decoder.
        slot: which slot of a `KVCache` is this block's.
    """

    def __init__(self, config: DecoderConfig, slot: int) -> None:
        super().__init__()
        self.norm_1 = nn.RMSNorm(config.n_embd)
        self.attention = MultiHeadAttention(config.n_embd, config.n_head, slot)
        self.norm_2 = nn.RMSNorm(config.n_embd)
        self.feed_forward = FeedForward(config.n_embd)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """float (B, T, D) -> (B, T, D); the arguments are `MultiHeadAttention`'s."""
        x = x + self.dropout(self.attention(self.norm_1(x), rotation, mask, cache))
        x = x + self.dropout(self.feed_forward(self.norm_2(x)))
        return x


class Decoder(nn.Module):
    """Embedding, blocks, norm, head: a GPT (Radford et al. 2018) of today's parts.

    Args:
        config: its shape.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.n_embd)
        self.rotary = Rotary(config.n_embd // config.n_head, config.context_length)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, slot) for slot in range(config.n_layer))
        self.norm = nn.RMSNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocabulary_size, bias=False)
        self.apply(_initialise)
        for name, weight in self.named_parameters():
            if name.endswith(("w_o.weight", "w_2.weight", "head.weight")):
                nn.init.zeros_(weight)  # every block starts as the identity, every guess as even

    def forward(
        self, ids: Tensor, cache: KVCache | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Logits of the token after each of `ids`.

        Args:
            ids: int64 (B, T) in [0, V).
            cache: what came before; `ids` are appended to it.
            mask: bool, broadcastable to (B, H, T, S), S the columns cached and T more;
                True = may look. None = causal.

        Returns:
            float (B, T, V).

        Raises:
            ValueError: more tokens than the context holds.
        """
        T = ids.shape[1]
        S = T if cache is None else cache.length + T
        context = self.config.context_length
        if context < S:
            raise ValueError(f"{S} tokens are too many: the context length is {context}")
        if cache is None:
            positions = torch.arange(T, device=ids.device)  # (T,)
        else:
            positions = cache.positions(T)  # (T,) or (B, T)
            if cache.padded:
                mask = causal_mask(T, S, ids.device) if mask is None else mask
                mask = mask & cache.not_padding(T)  # (B, 1, T, S)
        rotation = self.rotary(positions)
        x = self.dropout(self.embedding(ids))  # (B, T) -> (B, T, D)
        for block in self.blocks:
            x = block(x, rotation, mask, cache)
        if cache is not None:
            cache.advance(T)
        logits: Tensor = self.head(self.norm(x))  # (B, T, D) -> (B, T, V)
        return logits

    def empty_cache(self, start: Tensor) -> KVCache:
        """A cache for `start.shape[0]` rows with `start` (int64 (B,)) padding columns each."""
        config = self.config
        shape = (config.n_head, config.context_length, config.n_embd // config.n_head)
        return KVCache(config.n_layer, start, shape, like=self.head.weight)


def _initialise(module: nn.Module) -> None:
    """Normal weights: 0.5 / sqrt(fan-in), GPT-2's 0.02 at its width; embeddings of size 1."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.5 * module.in_features**-0.5)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight)
