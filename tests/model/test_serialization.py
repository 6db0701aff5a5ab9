"""Model files come back as they were; anything else is refused in one line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from common.typed_json import to_json
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import decoder_of, network_of
from model.engine import gather
from model.record import TrainingRecord
from model.serialization import VERSION, ModelFile, ModelFileError, load_model_file, save_model_file
from tests.tensors import configs

RECORD = TrainingRecord(step=3, valid_nats_per_note=1.25, data={"path": "Präludien"})
CONFIG = DecoderConfig(7, n_layer=1, n_head=2, n_embd=8, context_length=16, dropout=0.1)


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    torch.manual_seed(0)
    decoder = Decoder(CONFIG)
    torch.nn.init.normal_(decoder.head.weight)
    return decoder


@pytest.fixture
def content(decoder) -> ModelFile:
    return ModelFile(network_of(decoder), '{"tokens": ["Pad"]}', "style", RECORD)


@pytest.fixture
def model_file(tmp_path, content):
    path = tmp_path / "model.safetensors"
    save_model_file(path, content)
    return path


def test_everything_comes_back(model_file, content):
    again = load_model_file(model_file)
    assert again.network.config == CONFIG
    assert replace(again, network=content.network) == content
    for name, weight in content.network.weights.items():
        np.testing.assert_array_equal(again.network.weights[name], weight)


def test_equal_models_make_equal_files(tmp_path, content):
    path, files = tmp_path / "model.safetensors", set()
    for _ in range(20):  # the order of an unsorted header is another one nearly every time
        save_model_file(path, content)
        files.add(path.read_bytes())
    assert len(files) == 1


def refused(path) -> str:
    """The message with which a file is refused: one line that names it."""
    with pytest.raises(ModelFileError) as caught:
        load_model_file(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_what_is_not_there(tmp_path):
    assert "no such file" in refused(tmp_path / "none.safetensors")
    assert "no model.safetensors in it" in refused(tmp_path)


@given(st.floats(0, 1, exclude_max=True))
@settings(max_examples=40, deadline=None)
def test_a_truncated_file(tmp_path_factory, decoder, share):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_model_file(path, ModelFile(network_of(decoder), "{}", "{}"))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    assert "damaged" in refused(path)


def test_of_a_checkpoint_the_model_beside_it_is_named(model_file, decoder):
    path = model_file.parent / "checkpoints" / "last.ckpt"
    path.parent.mkdir()
    torch.save({"state_dict": decoder.state_dict()}, path)
    assert refused(path).endswith(
        f"is a training checkpoint, from which only train.py goes on; use {model_file}"
    )
    model_file.unlink()
    assert refused(path).endswith("use a model.safetensors that train.py wrote")


def test_weights_may_be_stored_in_half_the_size(tmp_path, decoder):
    path = tmp_path / "half.safetensors"
    save_model_file(path, ModelFile(network_of(decoder), "{}", "{}"), np.float16)
    again = decoder_of(load_model_file(path).network).state_dict()
    for name, weight in decoder.state_dict().items():
        assert again[name].dtype == torch.float32
        assert torch.equal(again[name], weight.half().float())
    weights = sum(weight.numel() for weight in again.values())
    assert path.stat().st_size - 2 * weights < 4096


@given(configs(7, 16))
@settings(max_examples=40)
def test_a_network_has_the_weights_of_the_decoder(config):
    weights = network_of(Decoder(config)).weights
    gather(config, weights)
    for name, weight in weights.items():
        for wrong in ({}, {name: weight[None]}, {name: weight, "more": weight}):
            with pytest.raises(ValueError, match=r"weight|bias|temperature|more"):
                gather(config, {n: w for n, w in weights.items() if n != name} | wrong)
    learned = sum(weight.numel() for weight in Decoder(config).parameters())
    assert network_of(Decoder(config)).parameter_count == learned


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1e38])
@pytest.mark.parametrize("name", ["head.weight", "norm.weight", "temperature"])
def test_weights_of_which_nothing_can_come_are_refused(tmp_path, decoder, name, bad):
    weights = decoder.state_dict()
    weights[name] = weights[name].clone()
    weights[name].view(-1)[0] = bad
    path = with_header(tmp_path / "model.safetensors", decoder, weights=weights)
    assert f"{name} is not finite, or is out of range" in refused(path)


def test_no_temperature_and_weights_that_are_integers_are_refused(tmp_path, decoder):
    path, weights = tmp_path / "model.safetensors", decoder.state_dict()
    zero = weights | {"temperature": torch.tensor(0.0)}
    assert "temperature is" in refused(with_header(path, decoder, weights=zero))
    whole = weights | {"head.weight": weights["head.weight"].int()}
    assert "head.weight holds I32" in refused(with_header(path, decoder, weights=whole))


def with_header(path, decoder, weights=None, **changes):
    """A model file whose header entries, or weights, are replaced, or left out where None."""
    metadata = {
        "format": "etude",
        "version": VERSION,
        "config": json.dumps(vars(CONFIG)),
        "vocabulary": "{}",
        "style": "{}",
        "training": to_json(RECORD),
    }
    metadata = {k: v for k, v in (metadata | changes).items() if v is not None}
    save_file(decoder.state_dict() if weights is None else weights, path, metadata)
    return path


@pytest.mark.parametrize("version", ["2", "12"])
def test_files_of_before_are_refused_with_the_command_that_makes_one_anew(
    tmp_path, decoder, version
):
    message = refused(with_header(tmp_path / "model.safetensors", decoder, version=version))
    assert f"version '{version}'" in message
    assert "python train.py fit --config configs/bach.yaml" in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": None}, "another program"),
        ({"config": None}, "lacks its 'config'"),
        ({"vocabulary": None}, "lacks its 'vocabulary'"),
        ({"config": "{"}, "decoderconfig is not JSON"),
        ({"config": "[" * 100_000}, "decoderconfig is not JSON"),
        ({"config": '{"vocabulary_size": 7, "wings": 2}'}, "decoderconfig has no 'wings'"),
        ({"config": json.dumps(vars(CONFIG) | {"n_embd": -8})}, "n_embd"),
        ({"config": json.dumps(vars(CONFIG) | {"n_embd": 16})}, "do not fit"),
        ({"config": json.dumps(vars(CONFIG) | {"n_layer": 2**20})}, "do not fit"),
        ({"style": None}, "lacks its 'style'"),
        ({"training": None}, "lacks its 'training'"),
        ({"training": "[]"}, "trainingrecord must be an object, not '[]'"),
        ({"training": '{"data": "bach"}'}, "trainingrecord.data must be an object"),
    ],
)
def test_headers_that_are_wrong(tmp_path, decoder, changes, words):
    assert words in refused(with_header(tmp_path / "model.safetensors", decoder, **changes))
