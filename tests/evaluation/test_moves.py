"""Whether pieces are told apart by the moves that no critic weighs."""

import numpy as np
import pytest

from data.moves import IS_KEPT_BACK
from evaluation.classifier import tell_apart
from evaluation.moves import by_moves, counted, kept_back
from tests.music import EMPTY, line, piece

UPPER, LOWER = 40, 42  # the programs of two voices


def duet(seed, contrary=0.5):
    """Two voices of sixty quarter notes, of which so many go against each other."""
    rng = np.random.default_rng(seed)
    steps = rng.choice((1, 2), 60) * np.resize((1, -1), 60)
    is_contrary = rng.random(60) < contrary
    upper, lower = 72 + np.cumsum(steps), 55 + np.cumsum(np.where(is_contrary, -steps, steps))
    notes = [*line(upper.tolist(), program=UPPER), *line(lower.tolist(), program=LOWER)]
    return piece(notes, bars=[(4, 4, 48)] * 15)


def test_only_moves_that_are_kept_back_are_counted():
    moves = [kept_back(duet(0)), kept_back(EMPTY)]
    assert len(moves[0])
    assert IS_KEPT_BACK[moves[0]].all()
    counts = counted(moves).toarray()
    assert counts.sum(axis=1).tolist() == [len(moves[0]), 0]
    assert counts[0, moves[0][0]] == (moves[0] == moves[0][0]).sum()


def test_the_same_kind_of_pieces_cannot_be_told_and_others_can():
    alike = [kept_back(duet(seed)) for seed in range(60)]
    others = [kept_back(duet(seed, contrary=0.9)) for seed in range(60)]
    real = [kept_back(duet(seed)) for seed in range(100, 220)]
    told = tell_apart(by_moves, alike, real[:60], real[60:], seed=0)
    assert abs(told.generated - 0.5) < 0.15
    assert abs(told.real - 0.5) < 0.15
    assert tell_apart(by_moves, others, real[:60], real[60:], seed=0).generated > 0.95


def test_pieces_without_moves_are_a_guess():
    none = [kept_back(EMPTY)] * 9
    assert tell_apart(by_moves, none, none, none, seed=0).generated == pytest.approx(0.5)
