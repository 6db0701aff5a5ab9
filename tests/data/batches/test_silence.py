"""Training windows in which some programs are silent."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.interface import NOT_SCORED
from data.tokens.augment import ids_left, programs_of, silent_programs
from data.tokens.features import SideFeatures
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from tests.data.batches.test_windows import random_split
from tests.music import BOTH, scores, vocabulary_for, windows_of
from tests.tensors import flat, told

CONTEXT = 40


@given(scores(*BOTH), st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_what_is_left_spells_the_piece_without_the_notes_of_these_programs(score, bits):
    vocabulary = vocabulary_for(score)
    silent = (bits >> np.arange(len(vocabulary.programs))) % 2 == 1
    ids = encode(score, vocabulary)
    left = ids[ids_left(ids[None], silent[None], vocabulary)[0]]
    is_left = ~np.isin(score.notes["program"], np.array(vocabulary.programs)[silent])
    expected = encode(replace(score, notes=score.notes[is_left]), vocabulary)
    assert left.tolist() == expected.tolist()


def test_of_the_programs_that_are_there_some_fall_silent_but_never_all():
    rng = np.random.default_rng(0)
    present = rng.random((2000, 4)) < 0.7
    share = np.where(rng.random(2000) < 0.5, rng.random(2000), -1)
    silent = silent_programs(present, share, rng.random((2000, 4)))
    there, gone = present.sum(axis=1), silent.sum(axis=1)
    assert not (silent & ~present).any()
    assert not gone[(share < 0) | (there < 2)].any()
    falls = (share >= 0) & (there >= 2)
    assert (gone[falls] >= 1).all()
    assert (gone[falls] < there[falls]).all()
    for count in (2, 3, 4):  # every number that may be is drawn, and every program
        assert set(gone[falls & (there == count)].tolist()) == set(range(1, count))
    assert silent.any(axis=0).all()


@pytest.fixture(scope="module")
def split():
    return random_split(seed=3, transpose=2)


def test_windows_are_those_without_silence_less_some_programs(split, monkeypatch):
    monkeypatch.setattr("data.batches.windows.KNOWN_KEY_SHARE", 0)
    pieces, vocabulary = split
    whole = windows_of(pieces, vocabulary, CONTEXT, reach=2)
    quiet = windows_of(pieces, vocabulary, CONTEXT, reach=2, silence=0.5)
    said = SideFeatures(vocabulary)
    shorter = 0
    for step in range(10):
        before, heard = whole.batch(0, step, 16), quiet.batch(0, step, 16)
        silence = told(heard[2], said).bits[..., said.blocks["silent"]]
        assert not told(before[2], said).bits[..., said.blocks["silent"]].any()
        for row, target, its, scored, names in zip(*before[:2], *heard[:2], silence, strict=True):
            length = int((its != 0).sum())
            if length == (row != 0).sum():
                np.testing.assert_array_equal((its, scored), (row, target))
                assert not names.any()
                continue
            shorter += 1
            window = np.append(row, max(target[-1], 0))[None]  # what it reads, and what follows
            there, left = programs_in(row, vocabulary), programs_in(its, vocabulary)
            assert left < there
            silent = np.isin(np.arange(len(vocabulary.programs)), [*there - left])
            np.testing.assert_array_equal(names, silent & (its != 0)[:, None])
            expected = window[ids_left(window, silent[None], vocabulary)]
            np.testing.assert_array_equal(its[:length], expected[:length])
            assert len(expected) - length in (0, 1)
            follows = np.zeros(CONTEXT, dtype=np.int64)
            follows[: len(expected) - 1] = expected[1:]
            is_scored = scored != NOT_SCORED
            np.testing.assert_array_equal(scored[is_scored], follows[is_scored])
            is_tempo = vocabulary.kind_of[follows] == Kind.TEMPO  # which may be a restated one
            assert (is_scored | is_tempo | (follows == 0)).all()
        after = said.blocks["moved"].stop
        expected = flat(said.compute(heard[0]), said)
        np.testing.assert_array_equal(flat(heard[2], said)[..., after:], expected[..., after:])
    assert 50 < shorter < 110  # of 160


def programs_in(ids, vocabulary):
    """The numbers of the programs that have notes among ids."""
    return set(programs_of(ids[vocabulary.kind_of[ids] == Kind.NOTE], vocabulary).tolist())
