"""To which note each nat belongs, and which notes are listed."""

from dataclasses import asdict

import numpy as np
import pytest

from data.score import DRUMS
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from evaluation.likelihood import ASPECTS, most_surprising, note_nats
from tests.music import BOTH, SMALL, piece, random_score, vocabulary_for

CHORD = [(6, 12, 60, 64, 0), (6, 60, 63, 64, 0), (60, 6, 61, 80, 128)]


def test_each_token_belongs_to_the_note_that_it_says():
    score = piece(CHORD, bars=[(4, 4, 48)] * 2, tempo=120)
    ids = encode(score, SMALL)
    words = [Kind(kind).name for kind in SMALL.kind_of[ids[1:]]]
    nats = 2.0 ** np.arange(len(words))
    assert words == [
        *("BAR", "TEMPO", "POSITION", "NOTE", "DURATION", "VELOCITY"),
        *("NOTE", "EXTEND", "DURATION", "VELOCITY"),
        *("BAR", "POSITION", "NOTE", "DURATION", "VELOCITY", "END"),
    ]
    expected = [[1 + 2 + 4, 8, 16, 32], [0, 64, 128 + 256, 512], [1024 + 2048, 4096, 8192, 16384]]
    assert list(ASPECTS) == ["when", "what", "how long", "how loud"]
    np.testing.assert_array_equal(note_nats(ids, nats, SMALL), expected)


@pytest.mark.parametrize("grid", BOTH, ids=lambda grid: grid.kind)
def test_all_but_end_is_counted_once(grid):
    rng = np.random.default_rng(0)
    for seed in range(10):
        score = random_score(np.random.default_rng(seed), grid)
        vocabulary = vocabulary_for(score)
        ids = encode(score, vocabulary)
        nats = rng.random(len(ids) - 1)
        each = note_nats(ids, nats, vocabulary)
        assert each.shape == (len(score.notes), len(ASPECTS))
        if len(score.notes):  # else Start and End
            assert each.sum() == pytest.approx(nats[:-1].sum())


def test_the_most_surprising_are_told_by_bar_and_beat():
    score = piece(CHORD, bars=[(3, 8, 12), (3, 8, 18), (3, 8, 18), (4, 4, 48)], tempo=120)
    nats = np.array([[0, 1, 0, 0], [np.nan] * 4, [1, 2, 3, 0]])
    first, second = most_surprising(score, nats, 10)
    assert asdict(first) == {
        "note": 2,
        "place": "bar 3, beat 2",  # 12 steps of upbeat, twice 18, then the 4/4
        "program": DRUMS,
        "instrument": "Drums",
        "name": "Low Bongo",
        "nats": 6.0,
        "parts": {"when": 1.0, "what": 2.0, "how long": 3.0, "how loud": 0.0},
    }
    assert (second.note, second.place) == (0, "bar 0, beat 2")
    assert second.name == "C4"
    assert len(most_surprising(score, nats, 1)) == 1
