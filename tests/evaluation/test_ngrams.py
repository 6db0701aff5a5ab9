"""N-gram baselines against counts made by hand."""

import math

import numpy as np

from data.corpus.corpus import open_corpus
from data.tokens.grammar import Grammar
from evaluation.ngrams import BASELINES, NGram, fit_baselines
from tests.folders import write_tunes

# Pad 0, Start 1, End 2, and three more ids.
SIZE = 6
PIECES = [np.array([1, 3, 3, 4, 2]), np.array([1, 3, 5, 2])]
CONTEXTS = np.array([[1], [3], [4], [0]])
SEEN = np.eye(SIZE)


def distribution(model, *context):
    return model.probabilities(np.array([context], dtype=np.int64).reshape(1, -1))[0]


def test_a_bigram_counts_and_falls_back_to_how_many_ids_stand_before():
    model = NGram(PIECES, 2, SIZE)
    # before 3 stand 1 and 3, before 2 stand 4 and 5, before 4 and 5 only 3: n1 = n2 = 2, d = 2 / 6
    d = 1 / 3
    shorter = (2 * (2 - d) / 2 * (SEEN[3] + SEEN[2]) + (1 - d) * (SEEN[4] + SEEN[5])) / 6
    shorter += d * 4 / 6 / SIZE
    # 1 3 twice; 3 3, 3 4, 3 5, 4 2, 5 2 once; n1 = 5, n2 = 1, d = 5 / 7
    d = 5 / 7
    after_start, after_three, after_four, after_pad = model.probabilities(CONTEXTS)
    np.testing.assert_allclose(after_start, (2 - d) / 2 * SEEN[3] + d / 2 * shorter)
    three = (1 - d) / 3 * (SEEN[3] + SEEN[4] + SEEN[5]) + d * shorter
    np.testing.assert_allclose(after_three, three)
    np.testing.assert_allclose(after_four, (1 - d) * SEEN[2] + d * shorter)
    np.testing.assert_allclose(after_pad, shorter)  # a context that was never seen


def test_what_is_taken_off_depends_on_the_count():
    # counted once: 2 ids, twice: 2, three times: 2, four times: 1
    ids = [2, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 8]
    y = 2 / (2 + 2 * 2)
    once, twice, more = 1 - 2 * y * 2 / 2, 2 - 3 * y * 2 / 2, 3 - 4 * y * 1 / 2
    p = distribution(NGram([np.array([1, *ids])], 1, 9))
    rest = (2 * once + 2 * twice + 3 * more) / 16 / 9
    counts = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4])
    taken = np.array([0, once, twice, more, more])[counts]
    np.testing.assert_allclose(p, (counts - taken) / 16 + rest)


def test_a_5_gram_reads_four_ids_back_and_as_far_as_it_knows_them():
    model = NGram(PIECES, 5, SIZE)
    # Each id with its four before it was seen once, but Pad Pad Pad Start 3: n1 = 5, n2 = 1.
    d = 5 / 7
    whole, known = distribution(model, 0, 1, 3, 3), distribution(model, 5, 1, 3, 3)
    assert (whole > 0).all()
    # all but what was taken off the one count goes to the shorter context, which is known too
    np.testing.assert_allclose(whole, (1 - d) * SEEN[4] + d * known)
    # what nobody knows is the empty context: so many ids stand before each
    unknown = distribution(model, 1, 3, 3, 0)
    np.testing.assert_allclose(unknown, distribution(NGram(PIECES, 2, SIZE), 0))


def test_contexts_of_a_large_vocabulary_are_told_apart():
    # the oldest of five ids would count V^4 = 2^64, which is nothing modulo 2^64
    model = NGram([np.array([1, 5, 0, 0, 0, 7]), np.array([1, 3, 5, 0, 0, 0, 9])], 6, 2**16)
    after_start, after_three = model.probabilities(np.array([[1, 5, 0, 0, 0], [3, 5, 0, 0, 0]]))
    assert after_start[7] > 2 * after_start[9]
    assert after_three[9] > 2 * after_three[7]


def test_every_place_of_a_piece_is_scored_by_what_stands_before_it(tmp_path):
    corpus = open_corpus(write_tunes(tmp_path / "tunes", 12), tmp_path / "out")
    piece = corpus.split("valid").piece(0)
    allowed = Grammar(corpus.vocabulary).masks(piece)
    padded = np.append(np.zeros(5, dtype=np.int64), piece)
    train = corpus.split("train")
    learned = [train.piece(index) for index in range(len(train))]
    baselines = fit_baselines(corpus)
    for order, name in BASELINES.items():
        model, expected = NGram(learned, order, corpus.vocabulary.size), []
        for at in range(1, len(piece)):
            p = distribution(model, *padded[at + 6 - order : at + 5]) * allowed[at - 1]
            expected.append(-math.log(p[piece[at]] / p.sum()))
        np.testing.assert_allclose(baselines[name](piece, allowed), expected)
