"""The benchmark of frames: they become notes and come back, and its unit is right."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks import frames
from data.corpus.corpus import CorpusOptions, open_corpus
from data.score import Grid
from generation.model import load
from tests.runs import SMOKE, refusal

GRID = Grid(steps_per_beat=2)


def pieces():
    """Frames of four keys next to each other; at the end one sounds."""
    few = st.integers(0, 40).flatmap(lambda count: arrays(bool, (count, 4)))
    return few.map(
        lambda keys: np.pad(np.vstack([keys, np.eye(4, dtype=bool)[0]]), ((0, 0), (40, 44)))
    )


@given(pieces(), st.integers(0, 9))
def test_frames_come_back_however_often_keys_are_struck(sounds, strike):
    assert np.array_equal(frames.frames_of(frames.score_of(sounds, GRID, strike)), sounds)


@given(pieces())
def test_a_key_that_sounds_on_is_one_note_or_one_a_frame(sounds):
    begins = np.diff(sounds.astype(int), axis=0, prepend=0) == 1
    assert len(frames.score_of(sounds, GRID).notes) == begins.sum()
    assert len(frames.score_of(sounds, GRID, 1).notes) == sounds.sum()


def test_nats_are_of_the_whole_split_over_its_frames(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    packed = {}
    for split, counts in {"train": (40, 60, 50), "valid": (30, 45)}.items():
        sounds = rng.random((sum(counts), frames.KEYS)) < 0.03
        sounds[np.cumsum(counts) - 1, 40] = True
        packed[split], packed[f"{split}_frames"] = np.packbits(sounds, axis=1), np.array(counts)
    np.savez("Some.npz", **packed)
    monkeypatch.setattr(frames, "CONFIG", str(SMOKE))
    steps = ["--trainer.max_steps", "4", "--trainer.val_check_interval", "2"]
    frames.main(["Some.npz", *steps])
    printed = capsys.readouterr().out
    options = CorpusOptions(steps_per_beat=2)
    split = open_corpus("datasets/frames/Some-0", options=options).split("valid")
    model = load("runs/Some/model.safetensors")
    nats = sum(each.sum() for each in model.token_nats([split.piece(n) for n in range(2)]))
    assert "valid: 2 pieces, 75 frames" in printed
    (a_frame,) = re.findall(r"^nats a frame ([0-9.]+)", printed, re.MULTILINE)
    assert float(a_frame) == pytest.approx(nats / 75, abs=1e-3)

    for name, array in packed.items():
        np.savez("Bad.npz", **packed | {name: array[:1]})
        line = refusal(capsys, "Bad.npz", command=frames)
    assert "Bad.npz: valid: not 88 keys in each of 30 frames" in line
