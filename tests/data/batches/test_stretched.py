"""Training pieces at other speeds."""

import numpy as np

from data.batches.stretched import factors, stretched
from data.score import SECONDS
from data.tokens.tokenizer import decode
from tests.folders import data_of_tunes
from tests.music import piece


def test_a_stretched_piece_counted_by_hand():
    """A chord of 0.25 s, whose end begins a note of 0.07 s, and another a second later."""
    notes = [(10, 25, 60, 80, 0), (10, 25, 64, 96, 0), (35, 7, 62, 40, 0), (142, 3, 62, 40, 0)]
    played = piece(notes, bars=[(1, 4, 100)] * 2, tempo=60, grid=SECONDS)
    slower, faster = stretched(played, 1.5), stretched(played, 0.5)
    assert slower.notes.tolist() == [
        *((15, 37, 60, 80, 0), (15, 37, 64, 96, 0), (52, 11, 62, 40, 0), (213, 5, 62, 40, 0))
    ]
    assert faster.notes.tolist() == [
        *((5, 13, 60, 80, 0), (5, 13, 64, 96, 0), (18, 3, 62, 40, 0), (71, 1, 62, 40, 0))
    ]
    assert (len(slower.bars), len(faster.bars)) == (3, 1)


def test_performances_are_learned_at_other_speeds_too_and_scored_as_they_are(tunes):
    plain, data = (data_of_tunes(grid="seconds", stretch=share) for share in (0.0, 0.2))
    assert data.corpus == plain.corpus
    own, learned = plain.source.learned, data.source.learned
    assert factors(0.2) == [0.8, 0.9, 1.1, 1.2]
    lengths = (1, *factors(0.2))
    assert learned.names == own.names * len(lengths)
    for number in range(len(learned)):
        original = decode(own.piece(number % len(own)), plain.vocabulary)
        expected = stretched(original, lengths[number // len(own)])
        assert decode(learned.piece(number), data.vocabulary) == expected
    for mine, its in zip(data.val_dataloader(), plain.val_dataloader(), strict=True):
        assert [*map(bytes, mine["pieces"])] == [*map(bytes, its["pieces"])]
    drawn = [data.source.training()._choose(0, step, 8).piece for step in range(60)]
    assert {*np.concatenate(drawn).tolist()} == {*range(len(learned))}
    beats = data_of_tunes(stretch=0.2)
    assert len(beats.source.learned) == len(beats.corpus.split("train"))  # their tempo is told
