"""The cursor and the array function read alike, and as notes are by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.tokens.cursor import Cursor, read_windows
from data.tokens.spans import NEVER
from data.tokens.tokenizer import bar_indices, encode
from data.tokens.vocabulary import Kind
from tests.music import BOTH, VOCABULARIES, piece, random_walks, scores, vocabulary_for


def assert_read_alike(ids, vocabulary):
    """Each row's windows say what the cursor says after each id."""
    windows = read_windows(ids, vocabulary)
    cursor = Cursor.at_start(vocabulary, len(ids))
    for place, column in enumerate(ids.T):
        cursor.advance(column)
        for row in range(len(ids)):
            note_at = windows.note_at[row, place]
            note = windows.value[row, note_at] if note_at >= 0 else -1
            said = (cursor.kind[row], cursor.now[row], max(cursor.position[row], 0))
            read = (windows.kind, windows.now, windows.position)
            assert said == tuple(array[row, place] for array in read)
            assert cursor.now[row] == cursor.bar_start[row] + windows.position[row, place]
            assert cursor.note[row] == note
            assert cursor.bar_count[row] == (windows.kind[row, : place + 1] == Kind.BAR).sum()
            if windows.kind[row, place] == Kind.DURATION and note_at >= 0:
                assert windows.duration_at[row, note_at] == place
                assert windows.note_end[row, note_at] == cursor.note_end[row]
    is_told = windows.duration_at[windows.kind == Kind.NOTE] < ids.shape[1]
    assert ((windows.note_end[windows.kind == Kind.NOTE] < NEVER) == is_told).all()
    lengths = np.where(windows.kind == Kind.BAR, windows.bar_length, 0).sum(axis=1)
    np.testing.assert_array_equal(lengths, cursor.bar_start + cursor.bar_length)


@given(scores(*BOTH), st.integers(0, 2**16), st.booleans())
@settings(max_examples=40, deadline=None)
def test_windows_are_read_as_id_by_id(score, number, at_right):
    vocabulary = vocabulary_for(score)
    ids = encode(score, vocabulary)
    bars = [0, *bar_indices(ids, vocabulary)]
    window = ids[bars[number % len(bars)] :]
    both = np.zeros((2, len(ids)), dtype=np.int64)
    both[0] = ids
    both[1, : len(window)] = window
    if not at_right:
        both[1] = np.roll(both[1], len(ids) - len(window))
    assert_read_alike(both, vocabulary)


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
def test_what_the_grammar_admits_is_read_alike(vocabulary):
    for ids in random_walks(vocabulary, np.random.default_rng(2), batch=10, steps=100):
        assert_read_alike(np.asarray(ids)[None], vocabulary)


def test_two_bars_by_hand():
    """A note that goes on for longer than a Duration says, after a bar that is cut short."""
    tune = piece([(0, 12, 60, 80, 0), (30, 60, 64, 80, 0)], bars=[(4, 4, 24), (3, 4, 36)])
    vocabulary = vocabulary_for(tune)
    ids = encode(tune, vocabulary)
    kinds = "Start Bar Length Tempo Position Note Duration Bar Position Note Extend Duration End"
    windows = read_windows(ids[None], vocabulary)
    assert [Kind(kind).name.capitalize() for kind in windows.kind[0]] == kinds.split()
    assert windows.now[0].tolist() == [*[0] * 7, 24, *[30] * 5]
    assert windows.position[0].tolist() == [*[0] * 8, *[6] * 5]
    assert windows.onset_before[0].tolist() == [*[-1] * 7, *[0] * 6]
    assert windows.note_at[0].tolist() == [*[-1] * 5, 5, 5, -1, -1, 9, 9, 9, 9]
    assert windows.bar_length[0, [1, 7]].tolist() == [24, 36]
    assert windows.duration_at[0, [5, 9]].tolist() == [6, 11]
    assert windows.note_end[0, [5, 9]].tolist() == [12, 90]
