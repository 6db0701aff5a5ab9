"""The layers around attention: feed-forward, residual sum and norm, and the block of all three."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from model.attention import MultiHeadAttention
from model.config import DecoderConfig


def squared_relu(x: Tensor) -> Tensor:
    """Return max(x, 0)^2 (So et al. 2021, Primer, section 3)."""
    return functional.relu(x).square()


class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2, four times as wide inside (Vaswani et al. 2017, equation 2).

    f is relu or squared relu. The biases b are there only if the config asks for them.

    Args:
        config: of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.w_2 = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.activation = squared_relu if config.activation == "squared_relu" else functional.relu

    def forward(self, x: Tensor) -> Tensor:
        """Transform each place by itself: float (B, T, D) -> (B, T, D)."""
        y: Tensor = self.w_2(self.activation(self.w_1(x)))
        return y


class LayerNorm(nn.LayerNorm):
    """torch's LayerNorm, except that its gradients do not depend on the number of threads."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize float (..., D), as torch's LayerNorm does."""
        y = functional.layer_norm(x, self.normalized_shape, eps=self.eps)
        return y * self.weight + self.bias


def make_norm(config: DecoderConfig) -> nn.Module:
    """Return a LayerNorm (Ba et al. 2016) or RMSNorm (Zhang & Sennrich 2019) of width D."""
    return (LayerNorm if config.norm == "layer" else nn.RMSNorm)(config.n_embd)


class AddNorm(nn.Module):
    """A sub-layer f with its residual sum and its norm.

    norm(x + f(x)) is post-norm (Vaswani et al. 2017, section 3.1). x + f(norm(x)) is pre-norm
    (Xiong et al. 2020).

    Args:
        config: of the decoder.
        layer: f.
    """

    def __init__(self, config: DecoderConfig, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.norm = make_norm(config)
        self.is_post = config.norm_position == "post"
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, *others: Any) -> Tensor:
        """Add f(x, *others) to x, and normalize: float (B, T, D) -> (B, T, D)."""
        y: Tensor
        if self.is_post:
            y = self.norm(x + self.dropout(self.layer(x, *others)))
        else:
            y = x + self.dropout(self.layer(self.norm(x), *others))
        return y


class Block(nn.Module):
    """Attention, once or twice, and then feed-forward, each in an `AddNorm`.

    The second attention stands where a translation model attends to its encoder (Vaswani et al.
    2017, figure 1). There is no encoder here, so it attends to the sequence itself, like the first.

    Args:
        config: of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        shape = config.n_embd, config.n_head
        self.attention = nn.ModuleList(
            AddNorm(config, MultiHeadAttention(*shape, qk_norm=config.qk_norm))
            for _ in range(config.n_attention)
        )
        self.feed_forward = AddNorm(config, FeedForward(config))

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Attend, then feed forward: float (B, T, D) -> (B, T, D).

        `rotation` is that of `MultiHeadAttention.forward`.
        """
        for attend in self.attention:
            x = attend(x, rotation)
        x = self.feed_forward(x)
        return x
