"""The benchmark of sampling: what it measures is what it says."""

import numpy as np
import torch

from benchmarks import speed
from data.tokens.tokenizer import decode
from model.decoding import engine_of
from model.sampling import sample


def test_the_comparison_has_512_ids():
    assert speed.vocabulary(pitches=90).size == 512


def test_the_chorale_is_four_voices_in_quarter_notes():
    words = speed.vocabulary(pitches=20)
    decoder = speed.random_decoder(words, width=8)
    chorale = speed.Chorale(words, bars=3)
    prompt = speed.chorale_start(words)
    state = chorale.after(prompt, batch=2)
    generator = torch.Generator().manual_seed(0)
    steps = sample(engine_of(decoder), [prompt] * 2, chorale, state, generator=generator)
    new = np.stack(list(steps), axis=1)
    assert not np.array_equal(*new)
    for row in new:
        score = decode(chorale.whole(np.concatenate([prompt, row])), words)
        assert len(score.bars) == 3
        assert score.notes["onset"].tolist() == np.repeat(np.arange(0, 144, 12), 4).tolist()
        assert set(score.notes["duration"].tolist()) == {12}
        assert score.notes["program"].tolist() == list(words.programs) * 12


def test_a_long_piece_is_told_in_tenths():
    words = speed.vocabulary(pitches=20)
    tenths = speed.long_piece(speed.random_decoder(words, width=8), words, bars=20)
    assert len(tenths) == 10
    assert all(seconds > 0 and megabytes > 0 for seconds, megabytes in tenths)
