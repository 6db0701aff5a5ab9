"""Logits by distance: what they are by hand, the same in every key, and in the decoder."""

import numpy as np
import pytest
import torch

from common.interface import OCTAVE, SHARED_REFERENCES
from model.interval_head import CLASSES, REACH, STEPS, IntervalHead

P, N, D = 2, 60, 3


@pytest.fixture
def head():
    torch.manual_seed(0)
    return IntervalHead(D, P, N, OCTAVE)


def by_hand(head, x, references, moves, sounding):
    """(P N,) the logits of one token, note by note."""
    logits = np.zeros((P, N))
    own, echo, shared = references[:P], references[P : 2 * P], references[2 * P :]
    rows = head.table(x).detach().numpy()
    sizes = 3 * P * STEPS, 3 * P * CLASSES, P * OCTAVE
    steps, classes, parallel, vertical = np.split(rows, np.cumsum(sizes))
    parallel, vertical = parallel.reshape(P, OCTAVE), vertical.reshape(P, OCTAVE)
    for program, other in np.ndindex(P, P):
        target = own[program] + moves[other] - N
        if own[program] and moves[other] and 1 <= target <= N:
            interval = (own[program] - own[other]) % OCTAVE
            logits[program, target - 1] += parallel[program, interval]
    before, again, latest = steps.reshape(3, P, STEPS)
    others = classes.reshape(3, P, CLASSES)
    for program in range(P):
        for pitch in range(1, N + 1):
            counted = ((before, own[program]), (again, echo[program]), (latest, shared[0]))
            for table, reference in counted:
                row = max(-REACH, min(REACH, pitch - reference)) + REACH if reference else -1
                logits[program, pitch - 1] += table[program, row]
            for table, reference in zip(others, shared[1:], strict=True):
                row = (pitch - reference) % OCTAVE if reference else -1
                logits[program, pitch - 1] += table[program, row]
            for other in np.flatnonzero(sounding):
                logits[program, pitch - 1] += vertical[program, (pitch - 1 - other) % OCTAVE]
    return logits.ravel()


def test_every_note_counts_from_every_reference(head):
    rng = np.random.default_rng(0)
    shape = (2, 5, 3 * P + SHARED_REFERENCES)
    numbers = rng.integers(1, N + 1, shape) * (rng.random(shape) < 0.7)
    references, moves = numbers[..., :-P], numbers[..., -P:]
    x = torch.randn(2, 5, D)
    sounding = rng.integers(2, size=(2, 5, OCTAVE))
    logits = head(x, *map(torch.from_numpy, (references, moves, sounding))).detach().numpy()
    assert logits.shape == (2, 5, P * N)
    for place in np.ndindex(2, 5):
        beside = (array[place].tolist() for array in (references, moves, sounding))
        expected = by_hand(head, x[place], *beside)
        np.testing.assert_allclose(logits[place], expected, atol=1e-5)
