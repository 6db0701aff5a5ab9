"""No rests: instruments that may play sound to the end, whoever chooses; what is kept may rest."""

import numpy as np
import pytest

from data.texture import rests
from generation.constraints import FREE, NO_RESTS, STRICT, TOGETHER, Constraints
from generation.length import Length
from generation.seeds import (
    accompanied,
    continued,
    continued_at_once,
    rewritten,
    seed_from_notes,
    voices_of,
)
from tests.generation import test_constrained_grammar as cases
from tests.models import QUARTET, four_parts


def pieces(how, seed=None, bars=4, **others):
    """Four of them, each by a chooser of its own."""
    return cases.pieces(Constraints(rests=how, **others), Length(bars=bars), seed, QUARTET)


def silent(score, begin, end):
    """Whether each of the four instruments is silent in each step from begin to end: (4, steps)."""
    sounds = np.zeros((44, int(score.end_step) + 1), dtype=bool)
    for onset, duration, _, _, program in score.notes.tolist():
        sounds[program, onset : onset + duration] = True
    return ~sounds[40:, begin:end]


def silence(score, begin, end):
    """Steps from begin to end in which each of the four instruments is silent."""
    return silent(score, begin, end).sum(axis=1).tolist()


def test_nobody_rests_from_the_first_note_to_the_last_bar_line():
    for score in pieces(NO_RESTS):
        first = int(score.notes["onset"].min())
        assert silence(score, first, int(score.bar_starts[-1])) == [0, 0, 0, 0]
    assert min(map(rests, pieces(FREE))) > 0.05


def test_all_rest_together():
    some = []
    for score in pieces(TOGETHER, bars=8, programs=(40, 43), counterpoint=STRICT):
        first, last = int(score.notes["onset"].min()), int(score.bar_starts[-1])
        one, _, _, other = silent(score, first, last)
        np.testing.assert_array_equal(one, other)
        some.append(one.any())
    assert any(some)


@pytest.mark.parametrize("how", [TOGETHER, NO_RESTS])
def test_who_answers_begins_where_the_held_note_ends(how):
    score = seed_from_notes("C5 D5", QUARTET).score
    for opens in (30, 48):
        for answer in pieces(how, continued_at_once(score, QUARTET, opens=opens), bars=2):
            assert min(onset for onset, *_ in answer.notes.tolist() if onset >= 24) == opens


def test_who_joins_a_melody_may_rest_where_it_does():
    tune = accompanied(continued(seed_from_notes("C5 D5 R:1 E5", QUARTET).score, QUARTET), QUARTET)
    for score in pieces(TOGETHER, tune, bars=1):
        rests_at = np.flatnonzero(silent(score, 0, 48).any(axis=0))
        assert all(24 <= step < 36 for step in rests_at)


def test_who_joins_a_melody_plays_as_long_as_it_does_though_it_rests_itself():
    tune = seed_from_notes("C5 D5 R:1 E5", QUARTET).score
    for score in pieces(NO_RESTS, accompanied(continued(tune, QUARTET), QUARTET), bars=1):
        assert silence(score, 0, 48) == [12, 0, 0, 0]


@pytest.mark.parametrize(("last", "ends"), [("2", 120), ("1", 108), ("4", 144)])
def test_who_joins_a_tune_after_rests_falls_silent_with_it(last, ends):
    tune = seed_from_notes(f"R:3 C5:1 D5 E5 F5 D5 C5:{last}", QUARTET).score
    for score in pieces(TOGETHER, voices_of(tune, QUARTET), bars=3):
        assert not silent(score, 96, ends).any()
        assert silent(score, ends, 144).all()


def test_a_gap_is_filled():
    seed = rewritten(four_parts(4), QUARTET, range(1, 3), [40, 42])
    for score in pieces(NO_RESTS, seed):
        first, _, third, _ = silence(score, 48, 144)
        assert (first, third) == (0, 0)


def test_it_asks_nothing_of_those_who_may_not_play():
    for score in pieces(NO_RESTS, programs=(40, 43), max_polyphony=1):
        assert set(score.notes["program"].tolist()) <= {40, 43}
