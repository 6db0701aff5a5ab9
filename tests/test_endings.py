"""How pieces end; and the whole way of the side input, from windows over learning to sampling."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks.endings import with_unknown_end
from common.interface import NOT_SCORED
from data.tokens.features import SideFeatures
from data.tokens.tokenizer import encode
from generation.compose import compose
from generation.length import Length
from generation.model import Model
from generation.request import Request
from model.config import DecoderConfig, SamplingOptions
from model.decoder import Decoder
from model.decoding import network_of
from tests.data.batches.test_windows import split_of
from tests.music import piece, vocabulary_for, windows_of

LAST, OTHER = 67, 60


def tune(bar_count):
    """A whole note a bar; the last one is another."""
    notes = [(48 * bar, 48, OTHER, 80, 0) for bar in range(bar_count - 1)]
    return piece([*notes, (48 * (bar_count - 1), 48, LAST, 80, 0)], bars=[(4, 4, 48)] * bar_count)


@pytest.fixture(scope="module")
def model():
    """Trained for a few seconds on tunes of 2 to 16 bars."""
    tunes = [tune(count) for count in range(2, 17)]
    vocabulary = vocabulary_for(*tunes)
    split = split_of([encode(score, vocabulary) for score in tunes], vocabulary)
    windows = windows_of(split, vocabulary, 32, reach=0)
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 32, "context_length": 32}
    decoder = Decoder(DecoderConfig(vocabulary.size, **sizes, **SideFeatures(vocabulary).shape))
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    for step in range(450):
        *arrays, side = windows.batch(0, step, 16)
        ids, targets = map(torch.from_numpy, arrays)
        logits = decoder(ids, side=side.map(torch.from_numpy))
        loss = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=NOT_SCORED
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return Model(network_of(decoder), vocabulary)


def share_that_end_well(model, bars):
    """Of sampled pieces, those whose last bar is as in training, and no other bar is."""
    pieces = compose(
        model, Request(length=Length(bars=bars), samples=32, sampling=SamplingOptions())
    )
    wanted = [OTHER] * (bars - 1) + [LAST]
    return np.mean([piece.score.notes["pitch"].tolist() == wanted for piece in pieces])


@pytest.mark.parametrize("bars", [2, 5, 8, 14])  # the last past the context
def test_a_model_that_knows_its_end_ends_there_as_it_has_learned(model, bars):
    assert share_that_end_well(model, bars) > 0.9
    assert share_that_end_well(with_unknown_end(model), bars) < 0.5
