"""A user's piece is brought into a model's vocabulary by the least change."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.score import BAR, DRUMS, NOTE, SECONDS, Grid, canonical
from data.tokens.adapt import adapt_score
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import VocabularyError
from tests.music import BOTH, GRID, ONE_NOTE, SMALL, VOCABULARIES, scores, vocabulary_for


def piece(note=(0, 12, 60, 80, 0), bar=(4, 4, 48), tempo=120):
    return canonical(np.array([note], NOTE), np.array([bar], BAR), [tempo], GRID)[0]


@given(scores(*BOTH))
def test_what_fits_stays_as_it_is(score):
    assert adapt_score(score, vocabulary_for(score)) == (score, [])


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
@given(data=st.data())
def test_whatever_is_brought_in_can_be_spelled(vocabulary, data):
    score = data.draw(scores(vocabulary.grid))
    fitted, told = adapt_score(score, vocabulary)
    assert decode(encode(fitted, vocabulary), vocabulary) == fitted
    assert bool(told) == (fitted != score) or not len(fitted.notes)
    assert all("\n" not in clause for clause in told)


@pytest.mark.parametrize(
    ("score", "field", "value", "word"),
    [
        (piece(note=(0, 12, 73, 80, 0)), "pitch", 61, "octave"),
        (piece(note=(0, 12, 50, 80, 0)), "pitch", 62, "octave"),
        (piece(note=(0, 12, 60, 80, 35)), "program", 40, "program 35 became 40"),
        (piece(note=(0, 12, 60, 127, 0)), "velocity", 80, "loud"),
    ],
)
def test_a_note_goes_to_the_nearest_known(score, field, value, word):
    fitted, told = adapt_score(score, SMALL)
    assert fitted.notes[field].tolist() == [value]
    assert any(word in clause for clause in told)


def test_an_instrument_of_the_same_family_is_nearer_than_any_other():
    # timpani, 47, stand with the strings in General MIDI
    fitted, _ = adapt_score(piece(note=(0, 12, 60, 80, 47)), replace(SMALL, programs=(40, 48)))
    assert fitted.notes["program"].tolist() == [40]


def test_drums_go_where_the_model_has_none():
    notes = np.array([(0, 12, 36, 80, DRUMS), (0, 12, 60, 80, 0)], NOTE)
    score = canonical(notes, np.array([(4, 4, 48)], BAR), [120], GRID)[0]
    fitted, told = adapt_score(score, ONE_NOTE)
    assert fitted.notes["program"].tolist() == [0]
    assert told == ["1 notes without a fitting instrument were left out"]


def test_a_bar_of_an_unknown_meter_keeps_its_length():
    fitted, told = adapt_score(piece(bar=(3, 4, 36)), SMALL)
    assert fitted.bars.tolist() == [(4, 4, 36)]
    assert len(told) == 1


def test_a_bar_longer_than_any_known_becomes_several():
    fitted, _ = adapt_score(piece(note=(60, 12, 60, 80, 0), bar=(6, 4, 72)), SMALL)
    assert fitted.bars.tolist() == [(4, 4, 48), (2, 4, 24)]


@pytest.mark.parametrize("grid", [Grid(4), SECONDS])
def test_another_grid_is_refused(grid):
    score = canonical(np.empty(0, NOTE), np.empty(0, BAR), [], grid)[0]
    with pytest.raises(VocabularyError, match="Grid"):
        adapt_score(score, SMALL)
