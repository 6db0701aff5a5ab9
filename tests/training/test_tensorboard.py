"""What TensorBoard shows of small runs, and that showing it changes no run."""

import os
import signal
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from data.tokens.vocabulary import Kind
from tests import runs
from tests.folders import enter_same_tunes, run_of_tunes
from training import tensorboard
from training.module import MusicModule
from training.optimizer import trapezoid
from training.options import ModelOptions
from training.tensorboard import MusicMonitor

STEPS, TIMES = 8, 2
EVERYTHING = {"images": 0, "audio": 0, "scalars": 0, "tensors": 0}
OPTIONS = (
    f"--data.batch_size 1 --model.dropout 0.1 --monitor.times {TIMES} --trainer.max_steps {STEPS}"
    " --trainer.val_check_interval 4 --trainer.log_every_n_steps 2"
).split()


@pytest.fixture(scope="module", autouse=True)
def clock():
    """A clock that stands still, so there is time for everything, unless a test moves it."""
    stopped = SimpleNamespace(seconds=0.0)
    with patch.object(MusicMonitor, "clock", lambda _: stopped.seconds):
        yield stopped


fit = partial(runs.fit, *OPTIONS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run with its page."""
    return run_of_tunes(tmp_path_factory.mktemp("whole"), lambda: fit("--run", "run"))


@pytest.fixture
def folder(whole, tmp_path, monkeypatch):
    """A folder with the same tunes, to train in."""
    return enter_same_tunes(whole, tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def shown(whole):
    return EventAccumulator(str(whole / "run"), size_guidance=EVERYTHING).Reload()


@pytest.fixture(scope="module")
def valid(whole):
    return EventAccumulator(str(whole / "run" / "valid"), size_guidance=EVERYTHING).Reload()


def steps(events):
    return [event.step for event in events]


def weights(run):
    return torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def test_pictures_and_sound_come_at_fixed_points_under_tags_of_their_own(shown):
    tags = shown.Tags()
    assert sorted(tags["audio"]) == ["music/audio_1", "music/audio_2"]
    assert sorted(tags["images"]) == [
        *("music/roll_1", "music/roll_2", "music/score_1", "music/score_2"),
        "tokens/attention_layer_1",
    ]
    assert not set(tags["audio"]) & set(tags["images"])  # TensorBoard would show but one of two
    for tag in tags["audio"]:
        assert steps(shown.Audio(tag)) == [4, 8]
    for tag in tags["images"]:
        assert steps(shown.Images(tag)) == [4, 8]
    one, other = shown.Audio("music/audio_1")
    assert one.encoded_audio_string != other.encoded_audio_string


def test_figures_stand_at_the_steps_they_are_of(shown, valid):
    resources = ("resources/tokens_per_second", "resources/memory_gib")
    for tag in ("learning/loss", "tokens/accuracy_note", "optimizer/gradient_norm", *resources):
        assert steps(shown.Scalars(tag)) == [2, 4, 6, 8], tag
    for tag in resources:
        assert all(event.value > 0 for event in shown.Scalars(tag))
    figures = valid.Tags()["scalars"]
    assert {"learning/nats_per_note", "tokens/nats_note", "tokens/nats_end"} <= {*figures}
    assert not {"epoch", "hp_metric"} & {*shown.Tags()["scalars"]}
    for tag in figures:
        assert steps(valid.Scalars(tag)) == [4, 8], tag
    for tag in (tag for tag in shown.Tags()["scalars"] if "accuracy" in tag):
        assert all(0 <= event.value <= 1 + 1e-6 for event in shown.Scalars(tag)), tag
    rates = [
        [e.value for e in shown.Scalars(f"optimizer/learning_rate_{n}")] for n in ("muon", "adamw")
    ]
    shape = ModelOptions()
    schedule = [trapezoid(n - 1, STEPS, shape.warm_up, shape.cool_down) for n in (2, 4, 6, 8)]
    np.testing.assert_allclose(rates, np.outer([0.06, 0.006], schedule), rtol=1e-5)


def test_the_accuracy_of_a_kind_stands_at_the_steps_that_have_it(folder, monkeypatch):
    def without_durations(self, split, hits):
        if self.global_step == 3 and split == "train":
            hits[:, Kind.DURATION] = 0
        log_accuracy(self, split, hits)

    log_accuracy = MusicModule._log_accuracy
    monkeypatch.setattr(MusicModule, "_log_accuracy", without_durations)
    fit("--run", "run", "--monitor.times", "0", "--trainer.log_every_n_steps", "1")
    logged = EventAccumulator("run").Reload()
    assert steps(logged.Scalars("tokens/accuracy_duration")) == [1, 2, 3, 5, 6, 7, 8]


def test_settings_configuration_and_corpus_stand_there(shown):
    (config,) = shown.Tensors("run/settings/text_summary")
    (corpus,) = shown.Tensors("run/corpus/text_summary")
    settings = config.tensor_proto.string_val[0].decode().splitlines()
    assert "  n_embd: 32" in settings
    assert settings[1:3] == ["run: run", "data:"]
    assert f"  max_steps: {STEPS}" in settings
    assert "8 pieces out of 8 files" in corpus.tensor_proto.string_val[0].decode()


def test_what_is_shown_changes_no_weight(whole, folder, monkeypatch):
    monkeypatch.setattr(MusicMonitor, "on_train_start", lambda *_: None)
    monkeypatch.setattr(MusicMonitor, "on_train_batch_end", lambda *_: None)
    fit("--run", "bare")
    assert not EventAccumulator("bare").Reload().Tags()["images"]
    with_pictures, without = weights(whole / "run"), weights(folder / "bare")
    assert with_pictures.keys() == without.keys()
    assert all(torch.equal(with_pictures[name], without[name]) for name in without)


def test_what_fails_is_reported_once_and_the_run_goes_on(whole, folder, monkeypatch, capsys):
    def fail(snapshot):
        torch.rand(1)  # as if it had used the run's random numbers
        snapshot.model.network.weights["head.weight"][:] = 0  # as if it had spoilt the model
        raise OSError("no\nfont")

    shown = {"the piano rolls of samples": tensorboard.log_rolls}
    failing = dict.fromkeys(("the sound of samples", "the attention maps"), fail)
    monkeypatch.setattr("training.tensorboard.LOGGED", failing | shown)
    fit("--run", "run")
    lines = [line for line in capsys.readouterr().err.splitlines() if "TensorBoard" in line]
    assert lines == [
        f"train.py: TensorBoard: {what} cannot be shown: OSError: no font" for what in failing
    ]
    tags = EventAccumulator("run").Reload().Tags()
    assert "tokens/attention_layer_1" not in tags["images"]
    assert "music/roll_1" in tags["images"]
    assert "music/audio_1" not in tags["audio"]
    one, other = weights(whole / "run"), weights(folder / "run")
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def draw(clock, monkeypatch):
    """A second a step, and a picture that takes so many; gives the steps at which it was drawn."""
    drawn, begin = [], MusicModule.on_train_batch_start

    def step_of_a_second(self, batch, batch_idx):
        clock.seconds += 1
        begin(self, batch, batch_idx)

    def replace_pictures(seconds):
        def log(shown):
            clock.seconds += seconds
            drawn.append(shown.step)

        monkeypatch.setattr(
            "training.tensorboard.LOGGED", {"one": log, "other": lambda shown: None}
        )
        return drawn

    monkeypatch.setattr(MusicModule, "on_train_batch_start", step_of_a_second)
    return replace_pictures


def test_pictures_take_no_more_than_their_share_of_the_run(folder, draw, capsys):
    drawn = draw(0.2)
    fit("--run", "run", "--trainer.max_steps", "40", "--monitor.times", "8")
    assert drawn == [5, 10, 20, 30, 40]  # 2.2% of 5 steps are 0.11 s: begun, and saved for
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "TensorBoard" in line]
    assert "some samples of step 5 are left out, as they may take 2.2% of the run" in line
    assert "(--monitor.share)" in line


def test_compiling_takes_no_pictures_time(folder, clock, draw, monkeypatch):
    def compiled_once(*arguments):
        clock.seconds += 0 if asked else 100
        asked.append(arguments)
        return writing(*arguments)

    asked, writing = [], tensorboard.Writing
    monkeypatch.setattr("training.tensorboard.Writing", compiled_once)
    drawn = draw(0.02)
    fit("--run", "run", "--trainer.max_steps", "10")
    assert drawn == [5, 10]
    asked.clear()
    fit("--run", "none", "--monitor.times", "0")
    assert not asked


def test_the_time_of_samples_is_no_part_of_the_tokens_a_second(folder, draw, monkeypatch):
    starts = []
    end = "on_train_batch_end"
    monkeypatch.setattr(MusicModule, end, lambda self, *_: starts.append(self.clock_start))
    draw(1e6)
    fit("--run", "run")
    assert (np.diff(starts) > 0.9e6).tolist() == [n == 4 for n in range(2, STEPS + 1)]


def test_a_signal_is_answered_while_something_is_drawn(folder, monkeypatch, capsys):
    drawn = []
    logged = {
        "one": lambda shown: os.kill(os.getpid(), signal.SIGTERM),
        "other": lambda shown: drawn.append(shown.step),
    }
    monkeypatch.setattr("training.tensorboard.LOGGED", logged)
    with pytest.raises(SystemExit) as stop:
        fit("--run", "run")
    assert stop.value.code == 128 + signal.SIGTERM
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "stopped by SIGTERM after step 4" in line
    assert not drawn
