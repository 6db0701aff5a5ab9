"""How pieces end; and the whole way of the side input, from windows over learning to sampling."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks.endings import ends_on_tonic, final_chord, root_of_triad, with_unknown_end
from common.interface import NOT_SCORED
from data.batches.windows import TrainingWindows
from data.corpus import bach
from data.keys import Key, estimate_key
from data.score import DRUMS, NOTE, Grid
from data.tokens.features import SideFeatures
from data.tokens.tokenizer import encode
from generation.compose import compose
from generation.length import Length
from generation.model import Model
from model.config import DecoderConfig, SamplingOptions
from model.decoder import Decoder
from tests.data.batches.test_windows import split_of
from tests.music import EMPTY, chord, line, piece, vocabulary_for

LAST, OTHER = 67, 60
C_MAJOR = (60, 62, 64, 65, 67, 69, 71)


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
    windows = TrainingWindows(split, vocabulary, 32, reach=0)
    torch.manual_seed(0)
    config = DecoderConfig(
        vocabulary.size,
        n_layer=2,
        n_head=2,
        n_embd=32,
        context_length=32,
        **SideFeatures(vocabulary).shape,
    )
    decoder = Decoder(config)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    for step in range(200):
        *arrays, side = windows.batch(0, step, 16)
        ids, targets = map(torch.from_numpy, arrays)
        logits = decoder(ids, side=side.map(torch.from_numpy))
        loss = functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=NOT_SCORED
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return Model(decoder.eval(), vocabulary, {})


def share_that_end_well(model, bars):
    """Of sampled pieces, those whose last bar is as in training, and no other bar is."""
    pieces = compose(model, length=Length(bars=bars), samples=32, sampling=SamplingOptions())
    wanted = [OTHER] * (bars - 1) + [LAST]
    return np.mean([piece.score.notes["pitch"].tolist() == wanted for piece in pieces])


@pytest.mark.parametrize("bars", [2, 5, 8, 14])  # the last past the context
def test_a_model_that_knows_its_end_ends_there_as_it_has_learned(model, bars):
    assert share_that_end_well(model, bars) > 0.9
    assert share_that_end_well(with_unknown_end(model), bars) < 0.5


def test_the_final_chord_is_what_sounds_at_the_last_onset():
    notes = [(0, 24, 48, 80, 0), (0, 12, 64, 80, 0), (12, 6, 62, 80, 0), (18, 30, 60, 80, 0)]
    drum = (24, 12, 36, 80, DRUMS)  # later, but no pitch
    assert final_chord(piece([*notes, drum]))["pitch"].tolist() == [48, 60]
    assert len(final_chord(EMPTY)) == 0


@pytest.mark.parametrize(
    ("pitches", "root"),
    [
        ((48, 55, 64, 72), 0),  # C E G
        ((48, 63, 67), 0),  # C Eb G
        ((48, 64, 60), 0),  # no fifth
        ((43, 59, 62, 67), 7),
        ((52, 60, 67), None),  # E in the bass
        ((48, 55, 60), None),  # no third
        ((48, 63, 64, 67), None),  # both thirds
        ((48, 64, 67, 70), None),  # a seventh
        ((48, 60), None),
        ((), None),
    ],
)
def test_a_triad_in_root_position(pitches, root):
    notes = np.array(chord(*pitches), dtype=NOTE)
    assert root_of_triad(notes) == root


def test_an_ending_on_the_tonic():
    before = line(C_MAJOR) + line((60, 64, 67, 60, 67), start=84)  # three bars of C major
    endings = {
        "tonic": ((48, 64, 67), True),
        "Picardy third of another key": ((57, 61, 64), False),
        "minor": ((48, 63, 67), True),
        "dominant": ((43, 59, 62), False),
        "first inversion": ((52, 60, 67), False),
    }
    for name, (pitches, is_tonic) in endings.items():
        score = piece(before + chord(*pitches, start=144), [(4, 4, 48)] * 4)
        assert ends_on_tonic(score) == is_tonic, name
    # However long it sounds, the last bar does not decide what the key is.
    long = piece(before + chord(57, 60, 64, start=144, duration=4800), [(4, 4, 48)] * 4)
    assert estimate_key(long) == Key(9, "minor")
    assert not ends_on_tonic(long)
    assert not ends_on_tonic(piece(chord(48, 64, 67)))  # nothing before it
    assert not ends_on_tonic(EMPTY)


@pytest.mark.parametrize(
    ("name", "is_tonic"),
    [
        ("bwv66.6", True),  # a Picardy third
        ("bwv269", True),
        ("bwv277", True),
        ("bwv253", True),
        ("bwv10.7", True),
        ("bwv153.5", False),  # phrygian, on E
    ],
)
def test_endings_of_chorales(name, is_tonic):
    (path,) = [path for path in bach.entries() if path.name == f"{name}.mxl"]
    assert ends_on_tonic(bach.chorale_score(bach.read_entry(path), Grid())) == is_tonic
