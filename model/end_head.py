"""Logits of durations by where other notes end."""

import torch
from torch import Tensor, nn

from common.interface import ENDS
from model.config import END_ROWS, NEAR

BEYOND, NONE = END_ROWS - 2, END_ROWS - 1  # rows: Extend, if the end is still beyond; all else


class EndHead(nn.Module):
    """Logits of Extend and the Durations by their distance from ends, added to those by id.

    Half of the notes in a performance end together with others, when the pedal is released. They
    began at different times, so their numbers of steps differ, and a head with one row for each
    duration must learn these one by one. This head has one row for each distance, as `IntervalHead`
    has for pitches.

    Args:
        n_embd: D.
        n_durations: N, for Durations of 1 to N steps; an Extend adds N to the Duration that
            follows.
    """

    row: Tensor

    def __init__(self, n_embd: int, n_durations: int) -> None:
        super().__init__()
        self.table = nn.Linear(n_embd, ENDS * END_ROWS, bias=False)
        end = torch.arange(n_durations + 2)[:, None]  # 0: none; N + 1: beyond N steps
        row = (torch.arange(n_durations + 1) - end).clamp(-NEAR, NEAR) + NEAR
        row[0] = row[-1] = row[:, 0] = NONE
        row[-1, 0] = BEYOND
        self.register_buffer("row", row, persistent=False)  # (N + 2, N + 1), by end and id

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        """Return the logits of Extend and of the N Durations.

        Args:
            x: float (B, T, D).
            ends: int64 (B, T, ENDS), as in `SideInput`.

        Returns:
            float (B, T, N + 1).
        """
        rows = self.row[ends.clamp(max=len(self.row) - 1)]  # (B, T, ENDS, N + 1)
        by_row = self.table(x).unflatten(
            -1, (ENDS, END_ROWS)
        )  # (B, T, R) -> (B, T, ENDS, R / ENDS)
        logits: Tensor = by_row.gather(-1, rows).sum(dim=2)  # (B, T, ENDS, N + 1) -> (B, T, N + 1)
        return logits
