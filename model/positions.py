"""Positions: four ways to tell a decoder where in the sequence a token stands."""

import torch
from torch import Tensor, nn

from model.config import LONGEST


class Sinusoidal(nn.Module):
    """Fixed waves, added to the embeddings (Vaswani et al. 2017, section 3.5).

    PE(p, 2i) = sin(p / 10000^(2i/D)),  PE(p, 2i+1) = cos(p / 10000^(2i/D)).

    Args:
        n_embd: D, even.
        context_length: C, the number of positions.

    Raises:
        ValueError: D is odd.
    """

    table: Tensor

    def __init__(self, n_embd: int, context_length: int) -> None:
        super().__init__()
        angle = _angles(n_embd, context_length)  # (C, D/2)
        waves = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (C, D/2, 2)
        self.register_buffer("table", waves.flatten(1), persistent=False)  # (C, D)

    def forward(self, positions: Tensor) -> Tensor:
        """Return the waves of `positions`, int64 (..., T) in [0, C): float (..., T, D)."""
        return self.table[positions]


class Learned(nn.Module):
    """One free vector a position, added to the embeddings (Radford et al. 2018, GPT).

    Args:
        n_embd: D.
        context_length: C, the number of positions.
    """

    def __init__(self, n_embd: int, context_length: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(context_length, n_embd))

    def forward(self, positions: Tensor) -> Tensor:
        """Return the vectors of `positions`, int64 (..., T) in [0, C): float (..., T, D)."""
        return self.table[positions]


class Rotary(nn.Module):
    """Angles by which queries and keys are turned (Su et al. 2021, RoFormer, equation 34).

    Pair i of a head's numbers turns by p / 10000^(2i/d) at position p, so that the product of
    a query and a key depends on their distance alone. `rotate` does the turning.

    Args:
        head_width: d, even.
        context_length: C, the number of positions.

    Raises:
        ValueError: d is odd.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, head_width: int, context_length: int) -> None:
        super().__init__()
        angle = _angles(head_width, context_length)  # (C, d/2)
        cos, sin = angle.cos(), angle.sin()
        self.register_buffer("cos", torch.cat((cos, cos), dim=-1), persistent=False)  # (C, d)
        self.register_buffer("sin", torch.cat((-sin, sin), dim=-1), persistent=False)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines for `rotate`.

        Args:
            positions: int64 (T,), or (B, T) where each row counts for itself; in [0, C).

        Returns:
            Two float tensors (1, T, d) or (B, 1, T, d), which broadcast over heads: the cosines
            twice; and the sines, first with their signs changed, then as they are.
        """
        return self.cos[positions].unsqueeze(-3), self.sin[positions].unsqueeze(-3)


class RotaryTime(nn.Module):
    """Rotary angles of two kinds, alternating: of the place in the sequence, and of musical time.

    Even pairs turn by the place, as those of `Rotary` do. Odd pairs turn by the token's time, which
    the side input has; a full turn takes two grid steps in the first of them, LONGEST in the last.
    So a query's product with a key depends on how many tokens lie between, and how many steps
    (Huang et al. 2018, Music Transformer, section 3.4).

    Args:
        head_width: d, a multiple of 4.

    Raises:
        ValueError: another d.
    """

    by_place: Tensor
    by_time: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        if head_width % 4:
            raise ValueError(f"two kinds of pairs need a width that 4 divides, not {head_width}")
        pair = torch.arange(head_width // 4, dtype=torch.float64)
        last = max(len(pair) - 1, 1)
        by_time = 2 * torch.pi / (2 * (LONGEST / 2) ** (pair / last))
        by_place = 10000.0 ** (-pair / len(pair))
        self.register_buffer("by_place", by_place.float(), persistent=False)  # (d/4,)
        self.register_buffer("by_time", by_time.float(), persistent=False)

    def forward(self, positions: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines for `rotate`.

        Args:
            positions: int64 (T,), or (B, T) where each row counts for itself.
            time: int (B, T), in steps.

        Returns:
            Two float tensors (B, 1, T, d), as `Rotary`'s.
        """
        place_angle = (positions[..., None] * self.by_place).expand(*time.shape, -1)
        time_angle = time[..., None] * self.by_time  # (B, T, d/4)
        angle = torch.stack((place_angle, time_angle), dim=-1).flatten(-2)  # (B, T, d/2), by turns
        cos, sin = angle.cos(), angle.sin()
        cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        return cos.unsqueeze(1), sin.unsqueeze(1)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn queries or keys by the angles of their positions.

    Pair i is (x_i, x_{i + d/2}): the halves layout of GPT-NeoX, a permutation of RoFormer's.

    Args:
        x: float (B, H, T, d).
        rotation: what `Rotary` gave for the positions of these T.

    Returns:
        (B, H, T, d) of x's dtype (the angles are cast to it, so bf16 stays bf16).
    """
    cos, sin = rotation[0].to(x.dtype), rotation[1].to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((second, first), dim=-1) * sin


def _angles(width: int, context_length: int) -> Tensor:
    """Return p / 10000^(2i/width) for position p and pair i: float32 (C, width/2)."""
    if width % 2:
        raise ValueError(f"positions turn pairs of numbers: the width must be even, not {width}")
    pair = torch.arange(0, width, 2, dtype=torch.float64)  # 2i
    position = torch.arange(context_length, dtype=torch.float64)
    return torch.outer(position, 10000.0 ** (-pair / width)).float()
