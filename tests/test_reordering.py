"""Training windows in which programs take turns in another order where notes begin together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import data.bearings
from data.augment import in_order, programs_of
from data.bearings import Bearings
from data.tokenizer import encode
from data.vocabulary import Kind
from data.windows import NOT_SCORED, TrainingWindows
from tests.music import BOTH, scores, vocabulary_for
from tests.test_windows import random_split

CONTEXT = 40


def chords(ids, vocabulary):
    """What ids say, a list of ids a note or head, from each Bar or Position to the next."""
    begins = (Kind.BAR, Kind.POSITION, Kind.START, Kind.END)
    told = []
    for token, kind in zip(ids.tolist(), vocabulary.kind_of[ids].tolist(), strict=True):
        if kind in begins:
            told.append([[token]])
        elif kind == Kind.NOTE:
            told[-1].append([token])
        else:
            told[-1][-1].append(token)
    return told


def program_of(note, vocabulary):
    """The number of the program of a note's ids."""
    return int(programs_of(np.array(note[0]), vocabulary))


@given(scores(*BOTH), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_programs_take_turns_as_they_are_told_and_nothing_else_moves(score, random):
    vocabulary = vocabulary_for(score)
    order = list(range(len(vocabulary.programs)))
    random.shuffle(order)
    place = np.argsort(order)[None]
    ids = encode(score, vocabulary)
    other = in_order(ids[None], place, vocabulary)[0]
    before, after = chords(ids, vocabulary), chords(other, vocabulary)
    for chord, its in zip(before, after, strict=True):
        assert its[0] == chord[0]
        expected = sorted(chord[1:], key=lambda note: place[0, program_of(note, vocabulary)])
        assert its[1:] == expected
    np.testing.assert_array_equal(
        in_order(ids[None], np.arange(len(order))[None], vocabulary)[0], ids
    )


@pytest.fixture(scope="module")
def split():
    return random_split(seed=3, transpose=2)


@pytest.mark.parametrize("silence", [0.0, 0.6])
def test_windows_say_the_same_in_another_order_but_for_their_last_chord(split, silence):
    pieces, vocabulary = split
    plain = TrainingWindows(pieces, vocabulary, CONTEXT, reach=2, silence=silence)
    mixed = TrainingWindows(pieces, vocabulary, CONTEXT, reach=2, silence=silence, reordering=0.5)
    order_at, open_at = (mixed.bearings.blocks[name] for name in ("order", "open"))
    programs = len(vocabulary.programs)
    moved = 0
    for step in range(10):
        before, (ids, targets, beside) = plain.batch(0, step, 16), mixed.batch(0, step, 16)
        for row, target, its, scored, said in zip(*before[:2], ids, targets, beside, strict=True):
            told = said[0, order_at]
            if not told.any():
                np.testing.assert_array_equal((its, scored), (row, target))
                continue
            moved += 1
            length = int((its != 0).sum())
            np.testing.assert_array_equal(said[:length, order_at], np.tile(told, (length, 1)))
            place = told.reshape(programs, programs).argmax(axis=1)
            assert sorted(place) == list(range(programs))
            whole, heard = chords(row[row != 0], vocabulary), chords(its[:length], vocabulary)
            assert len(whole) - len(heard) == (row[-1] != 0)
            reached = []  # beside each id, the place of the latest program in its chord
            for chord, mine in zip(whole, heard, strict=False):
                assert sorted(mine) == sorted(chord)
                turns = [place[program_of(note, vocabulary)] for note in mine[1:]]
                assert turns == sorted(turns)
                is_end = mine[0] == [vocabulary.first(Kind.END)]
                reached += reached[-1:] if is_end else [-1] * len(mine[0])
                for turn, note in zip(turns, mine[1:], strict=True):
                    reached += [turn] * len(note)
            np.testing.assert_array_equal(
                said[:length, open_at], place > np.array(reached)[:, None]
            )
            is_scored = scored != NOT_SCORED
            np.testing.assert_array_equal(scored[:-1][is_scored[:-1]], its[1:][is_scored[:-1]])
            follows = vocabulary.kind_of[its[1:length]]
            assert (is_scored[: length - 1] | (follows == Kind.TEMPO)).all()
            assert not is_scored[length - (row[-1] != 0) :].any()
    assert 50 < moved < 90  # of 160; of few programs some orders are their own


def test_of_many_programs_the_order_is_not_told(split, monkeypatch):
    monkeypatch.setattr(data.bearings, "FEW", 1)
    pieces, vocabulary = split
    windows = TrainingWindows(pieces, vocabulary, CONTEXT, reach=2, reordering=1.0)
    ids, _, beside = windows.batch(0, 0, 16)
    block = windows.bearings.blocks["order"]
    assert block.start == block.stop
    canonical = Bearings(vocabulary).of(ids)
    at = windows.bearings.blocks["open"]
    assert (beside[..., at] != canonical[..., at]).any()
