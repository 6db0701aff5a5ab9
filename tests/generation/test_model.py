"""A model file that lies is refused with one line."""

import pytest
import torch

from data.tokens.features import SideFeatures
from generation.model import load
from model.config import DecoderConfig
from model.decoder import Decoder
from model.serialization import ModelFileError, save_model_file
from tests.music import SMALL

TRUE = SMALL.to_json()


def saved(path, summary=None, vocabulary=TRUE):
    """Write a model file that says this."""
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 16, "context_length": 64}
    decoder = Decoder(DecoderConfig(SMALL.size, **sizes, **SideFeatures(SMALL).shape))
    save_model_file(path, decoder, vocabulary, summary or {})
    return path


def test_what_a_summary_says_is_read(tmp_path):
    model = load(saved(tmp_path / "m.safetensors", {"voices": 2, "step": None, "data": {}}))
    assert model.voices == 2


@pytest.mark.parametrize(
    "summary",
    [
        *({"voices": "many"}, {"voices": [4]}, {"voices": -1}, {"step": {}}),
        *({"parallels_per_100_bars": "none"}, {"data": "bach"}, {"data": [1]}),
    ],
)
def test_a_summary_that_lies_is_refused(tmp_path, summary):
    path = saved(tmp_path / "m.safetensors", summary)
    with pytest.raises(ModelFileError, match=next(iter(summary))) as error:
        load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[[2, 4]", "[[2, 0]"),
        ("[72,", "[17,"),
        ("[0, 40", "[40, 0"),
        ("63", "130"),
        ("{", "[" * 10**5),
    ],
)
def test_a_vocabulary_that_lies_is_refused(tmp_path, old, new):
    path = saved(tmp_path / "m.safetensors", vocabulary=TRUE.replace(old, new, 1))
    with pytest.raises(ModelFileError, match="not a vocabulary") as error:
        load(path)
    assert "\n" not in str(error.value)
