"""What ids say, by hand; that every piece is read as it was written is in test_tokenizer.py."""

import numpy as np

from data.tokens.cursor import advance_rows, at_start
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from data.tokens.windows import read_windows
from tests.music import piece, vocabulary_for


def test_two_bars_by_hand():
    """A note that goes on for longer than a Duration says, after a bar that is cut short."""
    tune = piece([(0, 12, 60, 80, 0), (30, 60, 64, 80, 0)], bars=[(4, 4, 24), (3, 4, 36)])
    vocabulary = vocabulary_for(tune)
    ids = encode(tune, vocabulary)
    kinds = "Start Bar Length Tempo Position Note Duration Bar Position Note Extend Duration End"
    (now,), (note_at,) = read_windows(ids[None], vocabulary)
    assert [Kind(kind).name.capitalize() for kind in vocabulary.kind_of[ids]] == kinds.split()
    assert now.tolist() == [*[0] * 7, 24, *[30] * 5]
    assert note_at.tolist() == [*[-1] * 5, 5, 5, -1, -1, 9, 9, 9, 9]
    at = at_start(vocabulary, batch=2)
    for token in ids:  # the first row never begins
        advance_rows(vocabulary.words, at, np.array([0, token]))
    told = {name: at[1][name] for name in at.dtype.names}
    assert told == {
        "kind": Kind.END,
        "bar_count": 2,
        "bar_start": 24,
        "bar_length": 36,
        "tempo": 0,
        "position": 6,
        "now": 30,
        "note": 4,
        "note_bar": 2,
        "extends": 1,
        "note_end": 90,
    }
    assert at[0].now == at[0].bar_count == 0
