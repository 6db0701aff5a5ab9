"""GPT-2 (Radford et al. 2019) with four heads per layer, for comparison in speed benchmarks."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

CONTEXT = 512
LAYERS = 4
HEADS = 4


class PlainBlock(nn.Module):
    """A block: x + attention(norm(x)), then x + feed-forward(norm(x)), with torch's fused kernels.

    Args:
        width: D.
        dropout: the dropout after both sub-layers.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.w_qkv = nn.Linear(width, 3 * width, bias=False)
        self.w_o = nn.Linear(width, width, bias=False)
        self.w_1 = nn.Linear(width, 4 * width, bias=False)
        self.w_2 = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map float (B, T, D) to (B, T, D)."""
        three = self.w_qkv(self.norm_1(x)).unflatten(-1, (3, HEADS, -1))  # (B, T, 3, H, d)
        query, key, value = three.transpose(1, 3).unbind(2)  # (B, H, T, d) each
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.dropout(self.w_o(y.transpose(1, 2).flatten(2)))  # (B, H, T, d) -> (B, T, D)
        x = x + self.dropout(self.w_2(functional.gelu(self.w_1(self.norm_2(x)))))
        return x


class PlainGPT2(nn.Module):
    """GPT-2 as in nanoGPT: without biases, and with the embedding as the head.

    Args:
        vocabulary_size: V.
        width: D.
        dropout: the dropout after the embedding and the sub-layers.
        layers: the number of blocks.
        context: T.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        dropout: float,
        layers: int = LAYERS,
        context: int = CONTEXT,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.positions = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(PlainBlock(width, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, vocabulary_size, bias=False)
        self.head.weight = self.embedding.weight
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids, int64 (B, T), to logits (B, T, V)."""
        x = self.dropout(self.embedding(ids) + self.positions.weight)  # (B, T) -> (B, T, D)
        logits: Tensor = self.head(self.norm(self.blocks(x)))  # (B, T, D) -> (B, T, V)
        return logits


def of_transformers(
    vocabulary_size: int,
    width: int,
    dropout: float = 0.0,
    layers: int = LAYERS,
    context: int = CONTEXT,
) -> Any:
    """Return the `GPT2LMHeadModel` of the library transformers, which has to be installed."""
    import transformers

    transformers.logging.set_verbosity_error()
    config = transformers.GPT2Config(
        vocab_size=vocabulary_size,
        n_positions=context,
        n_embd=width,
        n_layer=layers,
        n_head=HEADS,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=0.0,  # Etude has no dropout there
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
        use_cache=False,  # not needed in training
    )
    return transformers.GPT2LMHeadModel(config)
