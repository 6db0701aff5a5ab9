"""What one voice, or two, do from note to note."""

import numpy as np
import pytest

from data.moves import FARTHEST, FIRST_OF_PAIRS, IS_KEPT_BACK, MOVES, moves_of
from data.statistics import Music
from tests.music import EMPTY, line, piece

UPPER, LOWER = 40, 42  # the programs of two voices
# Were it others, critics would have weighed what they are judged by.
GOLDEN = [False, True, True, True, False, False, False, False]


def duet(upper, lower):
    """The moves of two voices of quarter notes, and when they are over."""
    return moves_of(Music(piece([*line(upper, program=UPPER), *line(lower, program=LOWER)])))


def pairs(upper, lower):
    """Those of both together."""
    moves, _ = duet(upper, lower)
    return {*moves[moves >= FIRST_OF_PAIRS].tolist()}


def test_moves_are_two_steps_of_a_voice_and_one_of_both_to_an_interval_in_any_key():
    moves, times = duet([60, 62, 64, 64], [48, 47, 47, 48])
    of_pairs = moves >= FIRST_OF_PAIRS
    assert len({*moves.tolist()}) == len(moves) == 5
    assert times[~of_pairs].tolist() == [24, 36]
    assert times[of_pairs].tolist() == [12, 24, 36]
    assert ((moves >= 0) & (moves < MOVES)).all()
    higher, _ = duet([65, 67, 69, 69], [53, 52, 52, 53])
    assert np.array_equal(moves, higher)


@pytest.mark.parametrize("lower", [[48, 47, 48], [47, 47, 46]])
def test_moves_to_another_interval_or_by_another_step_are_others(lower):
    assert not pairs([60, 62, 64], lower) & pairs([60, 62, 64], [48, 48, 47])


def test_steps_further_than_the_farthest_are_alike():
    assert pairs([50, 51 + FARTHEST], [40, 41]) == pairs([38, 51 + FARTHEST], [40, 41])


def test_a_line_alone_moves_and_a_piece_without_notes_does_not():
    moves, times = moves_of(Music(piece(line([60, 62, 62, 59]))))
    assert times.tolist() == [36]
    assert 0 <= moves[0] < FIRST_OF_PAIRS
    assert [len(each) for each in moves_of(Music(EMPTY))] == [0, 0]


def test_a_half_is_kept_back_the_same_always():
    assert abs(IS_KEPT_BACK.mean() - 0.5) < 0.01
    assert IS_KEPT_BACK[:8].tolist() == GOLDEN
