"""Many scores at once have the ids that each has by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data.canonical import ScoreBatch
from data.tokens.batch_tokenizer import decode_batch, encode_batch
from data.tokens.tokenizer import encode
from tests.music import piece, scores, vocabulary_for


@given(
    st.lists(scores() | st.just(piece([])), min_size=1, max_size=6).filter(
        lambda pieces: any(len(score.notes) for score in pieces)
    )
)
def test_a_batch_is_encoded_as_its_pieces_are(pieces):
    vocabulary = vocabulary_for(*pieces)
    ids, lengths = encode_batch(ScoreBatch.from_scores(pieces), vocabulary)
    encoded = [encode(score, vocabulary) for score in pieces]
    np.testing.assert_array_equal(ids, np.concatenate(encoded))
    assert lengths.tolist() == list(map(len, encoded))
    back = decode_batch(ids, lengths, vocabulary)
    assert [back[index] for index in range(len(back))] == pieces
