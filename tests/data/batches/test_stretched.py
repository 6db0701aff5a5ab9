"""Training pieces at other speeds."""

import numpy as np

from data.batches.datamodule import MusicDataModule
from data.batches.options import DataOptions
from data.batches.stretched import SPEEDS, stretched
from data.score import SECONDS
from data.tokens.tokenizer import decode
from tests.music import piece


def opened(**settings):
    data = MusicDataModule(DataOptions(path="tunes", **settings), context_length=64)
    data.prepare_data()
    return data


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
    plain, data = opened(grid="seconds"), opened(grid="seconds", stretch=0.2)
    assert data.corpus == plain.corpus
    own, learned = plain.source.learned, data.source.learned
    assert learned.names == own.names * (1 + len(SPEEDS))
    factors = (1, *(1 + 0.2 * speed for speed in SPEEDS))
    for number in range(len(learned)):
        original = decode(own.piece(number % len(own)), plain.vocabulary)
        expected = stretched(original, factors[number // len(own)])
        assert decode(learned.piece(number), data.vocabulary) == expected
    for mine, its in zip(data.val_dataloader(), plain.val_dataloader(), strict=True):
        assert [*map(bytes, mine["pieces"])] == [*map(bytes, its["pieces"])]
    drawn = [data.source.training()._choose(0, step, 8).piece for step in range(60)]
    assert {*np.concatenate(drawn).tolist()} == {*range(len(learned))}
    beats = opened(stretch=0.2)
    assert len(beats.source.learned) == len(beats.corpus.split("train"))  # their tempo is told
