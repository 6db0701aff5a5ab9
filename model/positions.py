"""Positions: how a decoder knows where in the sequence, and in the music, each token stands."""

import torch
from torch import Tensor, nn

from model.config import LONGEST


class Sinusoidal(nn.Module):
    """Fixed waves that are added to the embeddings (Vaswani et al. 2017, section 3.5).

    PE(p, 2i) = sin(p / 10000^(2i/D)),  PE(p, 2i+1) = cos(p / 10000^(2i/D)).

    Args:
        n_embd: D, an even number.
        context_length: C, the number of positions.
    """

    table: Tensor

    def __init__(self, n_embd: int, context_length: int) -> None:
        super().__init__()
        pair = torch.arange(0, n_embd, 2, dtype=torch.float64)  # 2i
        place = torch.arange(context_length, dtype=torch.float64)
        angle = torch.outer(place, 10000.0 ** (-pair / n_embd)).float()  # (C, D/2)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (C, D/2, 2)
        self.register_buffer("table", waves.flatten(1), persistent=False)  # (C, D)

    def forward(self, positions: Tensor) -> Tensor:
        """Return the waves at `positions`, int64 (..., T) in [0, C), as float (..., T, D)."""
        return self.table[positions]


class Rotary(nn.Module):
    """Angles by which queries and keys are turned (Su et al. 2021, RoFormer, equation 34).

    At position p, pair i of a head's numbers turns by p / 10000^(2i/d). So the product of a query
    and a key depends on the distance between them alone. `rotate` does the turning.

    With `by_time`, only the even pairs turn like this. The odd pairs turn by the musical time of
    the token, which is in the side input: a full turn takes two grid steps in the first odd pair,
    and LONGEST steps in the last. So the product depends both on how many tokens and on how many
    steps lie between them (Huang et al. 2018, Music Transformer, section 3.4).

    Args:
        head_width: d, an even number; with `by_time` a multiple of 4.
        by_time: whether odd pairs turn by musical time.
    """

    by_place: Tensor
    by_time: Tensor | None

    def __init__(self, head_width: int, by_time: bool = False) -> None:
        super().__init__()
        pairs = head_width // (4 if by_time else 2)
        pair = torch.arange(pairs, dtype=torch.float64)
        of_time = 2 * torch.pi / (2 * (LONGEST / 2) ** (pair / max(pairs - 1, 1)))
        place = (10000.0 ** (-pair / pairs)).float()
        self.register_buffer("by_place", place, persistent=False)  # (d/2,), or (d/4,)
        self.register_buffer("by_time", of_time.float() if by_time else None, persistent=False)

    def forward(self, positions: Tensor, time: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return cosines and sines for `rotate`.

        Args:
            positions: int64 (T,).
            time: int (B, T), in grid steps; needed for pairs that turn by time.

        Returns:
            Two float tensors (1, T, d) or (B, 1, T, d), which broadcast over the heads. The first
            has the cosines twice. The second has the sines twice, at first with their signs
            changed.
        """
        angle = positions[:, None] * self.by_place  # (T, d/2)
        if self.by_time is not None and time is not None:
            both = angle.expand(*time.shape, -1), time[..., None] * self.by_time  # (B, T, d/4)
            angle = torch.stack(both, dim=-1).flatten(-2)  # (B, T, d/2), place and time by turns
        cos, sin = angle.cos(), angle.sin()
        cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        return cos.unsqueeze(-3), sin.unsqueeze(-3)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn queries or keys by the angles of their positions.

    Pair i is (x_i, x_{i + d/2}). This is the layout of GPT-NeoX, in two halves; RoFormer's pairs
    are neighbors.

    Args:
        x: float (B, H, T, d).
        rotation: what `Rotary` returned for these T positions.

    Returns:
        (B, H, T, d) of the dtype of x. The angles are cast to it, so bf16 stays bf16.
    """
    cos, sin = rotation[0].to(x.dtype), rotation[1].to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((second, first), dim=-1) * sin
