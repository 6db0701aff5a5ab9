"""The benchmark of the literature: its data become notes and come back, and its units are right."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks import published
from benchmarks.published import CHORALES, KEYS, LOWEST, REST, frames
from data.corpus.corpus import CorpusOptions, open_corpus
from generation.model import load
from tests.runs import SMOKE, refusal

FRAMES = frames("Some")
STEPS = ["--config", str(SMOKE), "--trainer.max_steps", "4", "--trainer.val_check_interval", "2"]


def chorales():
    """A few pitches a voice, so that many go on, and rests; at the end all voices sound."""
    pitch = st.sampled_from([REST, 60, 62])
    last = np.full((1, 4), 60)
    steps = st.integers(0, 40).flatmap(lambda count: arrays(np.int64, (count, 4), elements=pitch))
    return steps.map(lambda grid: np.concatenate([grid, last]))


def keys():
    """Frames of four keys next to each other; at the end one sounds."""
    few = st.integers(0, 40).flatmap(lambda count: arrays(bool, (count, 4)))
    sounds = few.map(
        lambda keys: np.pad(np.vstack([keys, np.eye(4, dtype=bool)[0]]), ((0, 0), (40, 44)))
    )
    return sounds.map(lambda each: np.where(each, LOWEST + np.arange(KEYS), REST))


@pytest.mark.parametrize(("layout", "pieces"), [(CHORALES, chorales()), (FRAMES, keys())])
def test_a_source_comes_back_however_often_its_pitches_are_struck(layout, pieces):
    @given(pieces, st.integers(0, 16))
    def comes_back(source, strike):
        back = np.full_like(source, REST)
        for onset, duration, pitch, _, program in published.score_of(source, layout, strike).notes:
            line = layout.programs.index(program) if layout is CHORALES else pitch - LOWEST
            back[onset : onset + duration, line] = pitch
        assert np.array_equal(back, source)

    comes_back()


@given(keys())
def test_a_key_that_sounds_on_is_one_note_or_one_a_frame(pitches):
    sounds = pitches != REST
    begins = np.diff(sounds.astype(int), axis=0, prepend=0) == 1
    assert len(published.score_of(pitches, FRAMES, 0).notes) == begins.sum()
    assert len(published.score_of(pitches, FRAMES, 1).notes) == sounds.sum()


def nats_of(run, folder, steps_per_beat):
    """The nats of the two validation pieces of a folder, by a run's model."""
    options = CorpusOptions(steps_per_beat=steps_per_beat)
    split = open_corpus(folder, options=options).split("valid")
    pieces = [split.piece(number) for number in range(2)]
    return sum(each.sum() for each in load(f"{run}/model.safetensors").token_nats(pieces))


def test_nats_are_of_the_whole_split_over_four_voices_times_its_sixteenths(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pieces = {
        split: [
            np.repeat(rng.integers(60, 72, (beats, 4)), 4, axis=0).tolist() for beats in lengths
        ]
        for split, lengths in {"train": (12, 17, 20), "valid": (9, 16), "test": (8,)}.items()
    }
    source = tmp_path / "grid.json"
    source.write_text(json.dumps(pieces), encoding="utf-8")
    published.main([str(source), "--run", "runs/new", *STEPS])
    printed = capsys.readouterr().out
    nats = nats_of("runs/new", CHORALES.folder.format(4), 4)
    assert "valid: 2 pieces, 400 voice-sixteenths, 100 notes" in printed
    (a_cell,) = re.findall(r"^all +([0-9.]+)", printed, re.MULTILINE)
    assert float(a_cell) == pytest.approx(nats / 400, abs=1e-4)

    trained = ["-c", "runs/new/model.safetensors"]
    line = refusal(capsys, source, "--strike", 2, *trained, command=published)
    assert "not datasets/jsb/struck-2: which --strike?" in line


def test_nats_are_of_the_whole_split_over_its_frames(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    packed = {}
    for split, counts in {"train": (40, 60, 50), "valid": (30, 45)}.items():
        sounds = rng.random((sum(counts), KEYS)) < 0.03
        sounds[np.cumsum(counts) - 1, 40] = True
        packed[split], packed[f"{split}_frames"] = np.packbits(sounds, axis=1), np.array(counts)
    np.savez("Some.npz", **packed)
    published.main(["Some.npz", *STEPS])
    printed = capsys.readouterr().out
    assert "valid: 2 pieces, 75 frames" in printed
    (a_frame,) = re.findall(r"^all +([0-9.]+)", printed, re.MULTILINE)
    nats = nats_of("runs/Some", "datasets/frames/Some-0", 2)
    assert float(a_frame) == pytest.approx(nats / 75, abs=1e-3)

    for name, array in packed.items():
        np.savez("Bad.npz", **packed | {name: array[:1]})
        line = refusal(capsys, "Bad.npz", command=published)
    assert "Bad.npz: valid: not 88 keys in each of 30 frames" in line
