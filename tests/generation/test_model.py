"""A model file that lies is refused with one line."""

import numpy as np
import pytest
import torch

from common.typed_json import to_json
from data.style import Style
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Kind
from generation.model import load
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import network_of
from model.serialization import ModelFile, ModelFileError, save_model_file
from tests.music import SMALL

TRUE = SMALL.to_json()


def saved(path, style_json=None, vocabulary=TRUE, context=64, **style):
    """Write a model file that says this."""
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 16, "context_length": context}
    decoder = Decoder(DecoderConfig(SMALL.size, **sizes, **SideFeatures(SMALL).shape))
    style_json = style_json or to_json(Style(**style))
    save_model_file(path, ModelFile(network_of(decoder), vocabulary, style_json))
    return path


def test_a_context_in_which_no_music_fits_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="shorter than 8 tokens"):
        load(saved(tmp_path / "m.safetensors", context=7))


def test_a_style_that_lies_is_refused_in_one_line(tmp_path):
    path = saved(tmp_path / "m.safetensors", style_json='{"version": 1, "voices": "many"}')
    with pytest.raises(ModelFileError, match=r"m\.safetensors: style\.voices must be a whole"):
        load(path)


def test_all_pitches_of_a_program_are_one_choice_of_rhythm(tmp_path):
    model = load(saved(tmp_path / "m.safetensors"))
    pitches = SMALL.pitch_count
    of_notes = model.choices[SMALL.ids(Kind.NOTE)].reshape(-1, pitches)
    assert (of_notes == of_notes[:, :1]).all()
    assert len(np.unique(model.choices)) == SMALL.size - len(of_notes) * (pitches - 1)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[[2, 4]", "[[2, 0]", "there is no meter (2, 0)"),
        ("[72,", "[NaN,", "vocabulary.tempos must be a whole number"),
        ("highest_pitch", "highest", "vocabulary has no 'highest'"),
        ("{", "[" * 10**5, "vocabulary is not JSON"),
    ],
)
def test_a_vocabulary_that_lies_is_refused_in_plain_words(tmp_path, old, new, reason):
    path = saved(tmp_path / "m.safetensors", vocabulary=TRUE.replace(old, new, 1))
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert f"not a vocabulary of music: {reason}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("token", [-1, SMALL.size, 10**9])
def test_an_id_that_no_vocabulary_has_is_not_scored(tmp_path, token):
    model = load(saved(tmp_path / "m.safetensors"))
    with pytest.raises(ValueError, match=f"outside the vocabulary, .* 0 to {SMALL.size - 1}"):
        model.token_nats([np.array([Kind.START, token, Kind.END])])
