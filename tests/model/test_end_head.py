"""Logits of durations by where other notes end: what they are by hand, and in the decoder."""

import numpy as np
import torch

from common.interface import ENDS
from model.config import END_ROWS, NEAR
from model.end_head import EndHead

N, D = 24, 3


def test_every_duration_counts_from_every_end():
    torch.manual_seed(0)
    head, x = EndHead(D, N), torch.randn(1, 4, D)
    ends = torch.tensor([[[0, 5], [N, N + 1], [1, 0], [3 * N, 12]]])
    logits = head(x, ends).detach().numpy()
    rows = head.table(x).detach().numpy().reshape(4, ENDS, END_ROWS)
    for place in range(4):
        expected = np.zeros(N + 1)
        for which, end in enumerate(ends[0, place].tolist()):
            *distances, beyond, none = rows[place, which]
            expected[0] += beyond if end > N else none
            for steps in range(1, N + 1):
                away = max(-NEAR, min(NEAR, steps - end))
                expected[steps] += distances[away + NEAR] if 1 <= end <= N else none
        np.testing.assert_allclose(logits[0, place], expected, atol=1e-5)
