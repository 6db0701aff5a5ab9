"""The benchmark of the literature: its grid becomes notes and comes back, and its unit is right."""

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks import chorales
from data.corpus.corpus import CorpusOptions, open_corpus
from generation.model import load
from model.config import DecoderConfig
from model.decoder import Decoder
from tests.runs import SMOKE, refusal

OPTIONS = CorpusOptions(steps_per_beat=4)


def grids():
    """A few pitches a voice, so that many go on, and rests; at the end all voices sound."""
    pitch = st.sampled_from([chorales.REST, 60, 62])
    last = np.full((1, 4), 60)
    steps = st.integers(0, 40).flatmap(lambda count: arrays(np.int64, (count, 4), elements=pitch))
    return steps.map(lambda grid: np.concatenate([grid, last]))


@given(grids(), st.integers(0, 16))
def test_the_grid_comes_back_however_often_its_pitches_are_struck(grid, strike):
    assert np.array_equal(chorales.grid_of(chorales.score_of(grid, strike)), grid)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file like that of the literature, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pieces = {
        split: [
            np.repeat(rng.integers(60, 72, (beats, 4)), 4, axis=0).tolist() for beats in lengths
        ]
        for split, lengths in {"train": (12, 17, 20), "valid": (9, 16), "test": (8,)}.items()
    }
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(pieces), encoding="utf-8")
    return path


def test_nats_are_of_the_whole_split_over_four_voices_times_its_sixteenths(source, capsys):
    steps = ["--trainer.max_steps", "4", "--trainer.val_check_interval", "2"]
    options = ["--config", str(SMOKE), "--run", "runs/new", "--data.steps_per_beat", "4", *steps]
    chorales.main([str(source), *options])
    printed = capsys.readouterr().out
    model = load("runs/new/model.safetensors")
    split = open_corpus(chorales.FOLDER.format(4), options=OPTIONS).split("valid")
    nats = sum(each.sum() for each in model.token_nats([split.piece(n) for n in range(2)]))
    assert "valid: 2 pieces, 400 voice-sixteenths, 100 notes" in printed
    (a_cell,) = re.findall(r"^a note +([0-9.]+)", printed, re.MULTILINE)
    assert float(a_cell) == pytest.approx(nats / 400, abs=1e-4)

    trained = ["-c", "runs/new/model.safetensors"]
    chorales.main([str(source), *trained, *trained])
    twice = capsys.readouterr().out
    assert re.findall(r"^a note +([0-9.]+)", twice, re.MULTILINE) == [a_cell]

    line = refusal(capsys, source, "--strike", 2, *trained, command=chorales)
    assert "not datasets/jsb/struck-2: which --strike?" in line


def test_the_mean_of_decoders_is_that_of_their_probabilities():
    decoders = []
    for seed in range(3):
        torch.manual_seed(seed)
        decoder = Decoder(DecoderConfig(30, n_layer=1, n_head=2, n_embd=16, context_length=8))
        torch.nn.init.normal_(decoder.head.weight)
        decoder.temperature.fill_(1 + seed / 10)
        decoders.append(decoder.eval())
    ids = torch.randint(30, (2, 8))
    mean = torch.stack([decoder(ids).softmax(dim=-1) for decoder in decoders]).mean(dim=0)
    torch.testing.assert_close(chorales.Mean(decoders)(ids).softmax(dim=-1), mean)
