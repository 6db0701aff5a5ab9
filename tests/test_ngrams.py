"""N-gram baselines against counts made by hand."""

import math

import numpy as np
import pytest

from data.corpus import open_corpus
from data.ngrams import NGram, nats_per_note, train
from data.windows import WholePieces, masks_of_pieces, unpacked
from tests.folders import write_tunes

# Pad 0, Start 1, End 2, and three more ids.
SIZE = 6
PIECES = [np.array([1, 3, 3, 4, 2]), np.array([1, 3, 5, 2])]
CONTEXTS = np.array([[1], [3], [4], [0]])


def test_a_unigram_counts():
    # after Start: 3 three times, 2 twice, 4 and 5 once; n1 = 2, n2 = 1, d = 2 / 4
    p = NGram(PIECES, 1, SIZE).probabilities(np.empty((1, 0), dtype=np.int64))[0]
    rest = 0.5 * 4 / 7 / 6
    np.testing.assert_allclose(
        p, [rest, rest, 1.5 / 7 + rest, 2.5 / 7 + rest, 0.5 / 7 + rest, 0.5 / 7 + rest]
    )


def test_a_bigram_counts_and_falls_back():
    model = NGram(PIECES, 2, SIZE)
    unigram = NGram(PIECES, 1, SIZE).probabilities(np.empty((1, 0), dtype=np.int64))[0]
    # 1 3 twice; 3 3, 3 4, 3 5, 4 2, 5 2 once; n1 = 5, n2 = 1, d = 5 / 7
    d = 5 / 7
    after_start, after_three, after_four, after_pad = model.probabilities(CONTEXTS)
    seen = np.eye(SIZE)
    np.testing.assert_allclose(after_start, (2 - d) / 2 * seen[3] + d / 2 * unigram)
    three = (1 - d) / 3 * (seen[3] + seen[4] + seen[5]) + d * unigram
    np.testing.assert_allclose(after_three, three)
    np.testing.assert_allclose(after_four, (1 - d) * seen[2] + d * unigram)
    np.testing.assert_allclose(after_pad, unigram)  # a context that was never seen


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one(order):
    rng = np.random.default_rng(0)
    pieces = [np.append(1, rng.integers(2, SIZE, size=50)) for _ in range(5)]
    p = NGram(pieces, order, SIZE).probabilities(rng.integers(0, SIZE, size=(200, order - 1)))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p > 0).all()


def test_tokens_are_scored_among_the_allowed():
    model = NGram(PIECES, 1, SIZE)
    piece = np.array([1, 3, 2])
    allowed = np.array([[0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 1, 1]], dtype=bool)
    rest = 2 / 7 / 6
    two, three, four = 1.5 / 7 + rest, 2.5 / 7 + rest, 0.5 / 7 + rest
    expected = [-math.log(three / (two + three)), -math.log(two / (two + 2 * four))]
    np.testing.assert_allclose(model.token_nats(piece, allowed), expected)


def test_a_corpus_is_scored_total_over_total(tmp_path):
    corpus = open_corpus(write_tunes(tmp_path / "tunes", 20), tmp_path / "out", progress=False)
    split, vocabulary = corpus.split("valid"), corpus.vocabulary
    pieces = [split.piece(index) for index in range(len(split))]
    masks = masks_of_pieces(pieces, vocabulary)
    for order in (1, 2):
        model = train(corpus, order)
        total = 0.0
        for piece, mask in zip(pieces, masks, strict=True):
            allowed = unpacked(mask, vocabulary)
            for at in range(1, len(piece)):
                context = piece[None, at - order + 1 : at]
                p = model.probabilities(context)[0] * allowed[at - 1]
                total -= math.log(p[piece[at]] / p.sum())
        note = nats_per_note(model, WholePieces(split, vocabulary))
        assert note == pytest.approx(total / split.note_counts.sum())
