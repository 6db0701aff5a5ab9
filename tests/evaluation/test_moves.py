"""Whether pieces are told apart by what their voices do from note to note."""

import math

import numpy as np
import pytest

from evaluation.classifier import FOLDS
from evaluation.moves import moves_of, tell_by_moves
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


def test_moves_are_steps_of_a_voice_and_of_two_with_the_interval_that_they_come_to():
    notes = [*line([60, 62, 64, 64], program=UPPER), *line([48, 47, 47, 48], program=LOWER)]
    moves = moves_of(piece(notes))
    assert moves == pytest.approx(
        dict.fromkeys(("0 2 2", "3 -1 1", "0 3 2 -1 3", "0 3 2 0 5", "0 3 0 1 4"), 0.2**0.5)
    )


def test_a_line_alone_has_moves_and_a_piece_without_notes_has_none():
    assert moves_of(piece(line([60, 62, 59]))) == {"0 2 -3": 1.0}
    assert moves_of(EMPTY) == {}


def test_the_same_kind_of_pieces_cannot_be_told_and_others_can():
    alike = [moves_of(duet(seed)) for seed in range(60)]
    others = [moves_of(duet(seed, contrary=0.9)) for seed in range(60)]
    real = [moves_of(duet(seed)) for seed in range(100, 220)]
    told = tell_by_moves(alike, real[:60], real[60:], seed=0)
    assert abs(told.generated - 0.5) < 0.15
    assert abs(told.real - 0.5) < 0.15
    assert tell_by_moves(others, real[:60], real[60:], seed=0).generated > 0.95


def test_too_few_pieces_and_pieces_without_moves_have_no_figure_or_a_guess():
    few = [moves_of(duet(0))] * (FOLDS - 1)
    assert math.isnan(tell_by_moves(few, few, few, seed=0).generated)
    assert tell_by_moves([{}] * 9, [{}] * 9, [{}] * 9, seed=0).generated == pytest.approx(0.5)
