"""Runs that are killed, asked to stop, or find the disk full; and what they are resumed to.

The processes that die here do die: they are started by a server that has the imports done, and
get the signal, or the limit on the size of files, at a moment that is fixed.
"""

import itertools
import os
import resource
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train
from generation.model import corpus_of, load
from model.config import SamplingOptions
from model.serialization import load_model_file
from tests.folders import enter_same_tunes, run_of_tunes, write_tunes
from tests.processes import run_apart
from tests.runs import SMOKE
from training import checkpoints, tensorboard
from training.module import MusicModule

STEPS, EVERY = 9, 3
SETTINGS = {
    "data.path": "tunes",
    "data.batch_size": 1,
    "data.num_workers": 1,
    "model.dropout": 0.2,
    "model.n_embd": 36,  # products are no whole blocks
    "trainer.precision": "32-true",
    "trainer.max_steps": STEPS,
    "trainer.val_check_interval": EVERY,
    "trainer.log_every_n_steps": 1,
    "trainer.enable_progress_bar": "false",
    "trainer.accelerator": "cpu",
    "monitor.times": 1,
}
BEGUN = {"model.begin_with": "first"}  # another model: rates, too, are as they were


def arguments(run, **changes):
    named = SETTINGS | {name.replace("__", "."): value for name, value in changes.items()}
    options = [word for name, value in named.items() for word in (f"--{name}", str(value))]
    return ["fit", "--config", str(SMOKE), *options, "--run", run, "--ckpt_path", "last"]


def draw_attention_alone():
    """Leave of all pictures the quickest, which always come: tests here ask when, not which."""
    tensorboard.MusicMonitor.clock = staticmethod(lambda: 0.0)
    for what in tensorboard.LOGGED.keys() - {"the attention maps"}:
        del tensorboard.LOGGED[what]


@pytest.fixture(scope="module", autouse=True)
def _few_pictures():
    with patch.dict(tensorboard.LOGGED), patch.object(tensorboard.MusicMonitor, "clock"):
        draw_attention_alone()
        yield


def run_until(folder, words, fate):
    """Run train.py in a process of its own, in which `fate` has been prepared."""
    return run_apart(folder, words, partial(prepare, fate))


def prepare(fate):
    draw_attention_alone()
    fate()


def when(owner, name, is_time, act):
    """Make `act` happen in the method of that name, before anything else, when it is time."""
    method = getattr(owner, name)

    def patched(self, *args, **kwargs):
        if is_time(self, *args):
            act()
        return method(self, *args, **kwargs)

    setattr(owner, name, patched)


def signalled(number):
    return partial(os.kill, os.getpid(), number)


def gets(number, hook, step):
    """Have a signal come in a hook of MusicModule, in the batch after `step`."""
    when(MusicModule, hook, lambda self, *_: self.global_step == step, signalled(number))


KILLED = partial(gets, signal.SIGKILL, "training_step", 4)


def killed_as_a_checkpoint_takes_its_place():
    def is_time(_, place):
        return Path(place).name == "last.ckpt" and Path(place).exists()

    when(type(Path()), "replace", is_time, signalled(signal.SIGKILL))


def no_larger_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing disturbed, in which are tunes and their tokens."""

    def begin():
        train.main(arguments("first", trainer__max_steps=1))
        train.main(arguments("run", **BEGUN))

    return run_of_tunes(tmp_path_factory.mktemp("whole"), begin)


@pytest.fixture
def folder(whole, tmp_path, monkeypatch):
    """A folder with the same tunes, to train in."""
    (tmp_path / "first").symlink_to(whole / "first")
    return enter_same_tunes(whole, tmp_path, monkeypatch)


def checkpoint(folder, name="last"):
    return torch.load(folder / "run" / "checkpoints" / f"{name}.ckpt", weights_only=True)


def is_same(one, other):
    """Return whether two trees of dicts, lists and tensors are the same, to the bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def charts(folder):
    """Return the values of each chart but the machine's, and the steps of all, and of pictures."""
    shown = EventAccumulator(str(folder / "run"), size_guidance={"images": 0}).Reload()
    tags = shown.Tags()
    figures = {tag: [(e.step, e.value) for e in shown.Scalars(tag)] for tag in tags["scalars"]}
    valid = EventAccumulator(str(folder / "run" / "valid")).Reload()
    for tag in valid.Tags()["scalars"]:
        figures[f"valid {tag}"] = [(e.step, e.value) for e in valid.Scalars(tag)]
    speed = figures["resources/tokens_per_second"]
    return (
        {tag: line for tag, line in figures.items() if not tag.startswith("resources/")},
        [step for step, _ in speed],
        {tag: [event.step for event in shown.Images(tag)] for tag in tags["images"]},
    )


def assert_nothing_happened(folder, whole):
    """Assert that a run ended as the undisturbed one: weights, counts, model and charts."""
    for name in ("last", "best"):
        one, other = checkpoint(folder, name), checkpoint(whole, name)
        for part in ("global_step", "state_dict", "optimizer_states", "lr_schedulers", "seed"):
            assert is_same(one[part], other[part]), (name, part)
        assert one["callbacks"]["Checkpoints"] == other["callbacks"]["Checkpoints"]
    one, other = (load_model_file(at / "run" / "model.safetensors") for at in (folder, whole))
    assert is_same(one.network.weights, other.network.weights)
    assert replace(one, network=None) == replace(other, network=None)
    assert charts(folder) == charts(whole)
    assert [path.name for path in folder.glob("run*")] == ["run"]
    assert not list(folder.rglob("*.unfinished*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fate", "exit_code", "kept"),
    [
        (KILLED, -signal.SIGKILL, EVERY),
        (partial(gets, signal.SIGKILL, "validation_step", 2 * EVERY), -signal.SIGKILL, EVERY),
        (killed_as_a_checkpoint_takes_its_place, -signal.SIGKILL, EVERY),
        (partial(gets, signal.SIGTERM, "training_step", 4), 128 + signal.SIGTERM, 5),
        (partial(gets, signal.SIGTERM, "validation_step", 2 * EVERY), 128 + signal.SIGTERM, 6),
        (partial(gets, signal.SIGINT, "training_step", 7), 128 + signal.SIGINT, 8),
    ],
)
def test_a_run_that_dies_and_is_resumed_ends_with_the_same_bits(
    folder, whole, fate, exit_code, kept
):
    code, lines = run_until(folder, arguments("run", **BEGUN), fate)
    assert code == exit_code, lines
    assert checkpoint(folder)["global_step"] == kept
    if code > 0:
        assert f"after step {kept}; to go on, add --ckpt_path last" in lines[-1]
    torch.set_num_threads(2)  # one so far; the same bits come of any number
    train.main(arguments("run", **BEGUN))
    torch.set_num_threads(1)
    assert_nothing_happened(folder, whole)


@pytest.mark.parametrize("hook", ["on_validation_start", "validation_step"])
def test_batches_of_a_validation_that_was_stopped_are_counted_once(tmp_path, monkeypatch, hook):
    """In each validation two pieces are scored, a batch each; the signal comes at the last."""
    monkeypatch.setattr("data.batches.windows.EVALUATION_TOKENS", 1)
    write_tunes(tmp_path / "tunes", 20)
    monkeypatch.chdir(tmp_path)
    run = arguments("run", data__num_workers=0)
    with monkeypatch.context() as patched:
        method, calls = getattr(MusicModule, hook), itertools.count(1)

        def signalled_once(self, *args):
            if next(calls) == (2 if hook == "on_validation_start" else 4):
                os.kill(os.getpid(), signal.SIGTERM)
            return method(self, *args)

        patched.setattr(MusicModule, hook, signalled_once)
        with pytest.raises(SystemExit):
            train.main(run)
    assert checkpoint(tmp_path)["global_step"] == 2 * EVERY
    train.main(run)
    loops = checkpoint(tmp_path)["loops"]["fit_loop"]
    counts = loops["epoch_loop.val_loop.batch_progress"]["total"]
    assert set(counts.values()) == {2 * STEPS // EVERY}
    assert set(loops["epoch_loop.batch_progress"]["total"].values()) == {STEPS}


def test_validation_scores_a_sample_in_training_and_all_pieces_at_the_end(tmp_path, monkeypatch):
    """A stop in the midst of the end is answered at once, and what is left is done later."""
    monkeypatch.setattr("data.batches.windows.SAMPLE_TOKENS", 1)
    monkeypatch.setattr("data.batches.windows.EVALUATION_TOKENS", 1)
    scored, stop = [], []
    tally = MusicModule._tally

    def counted(self, decoder, batch):
        scored.append((self.global_step, len(batch["pieces"]), batch["pieces"][0].tobytes()))
        if len(scored) in stop:
            os.kill(os.getpid(), signal.SIGTERM)
        tally(self, decoder, batch)

    monkeypatch.setattr(MusicModule, "_tally", counted)
    write_tunes(tmp_path / "tunes", 30)
    monkeypatch.chdir(tmp_path)
    apart = {"data__num_workers": 0}
    run = arguments("run", **apart, trainer__precision="32-true")
    train.main(run)
    steps = [step for step, _, _ in scored]
    assert steps == [EVERY, 2 * EVERY, STEPS, STEPS, STEPS, STEPS]
    assert len({ids for *_, ids in scored[:3]}) == 1  # the same each time
    assert {ids for *_, ids in scored[3:]} > {scored[0][-1]}
    path = tmp_path / "run" / "model.safetensors"
    model, content = load(path), path.read_bytes()
    valid = corpus_of(model).split("valid")
    pieces = [valid.piece(number) for number in range(len(valid))]
    nats = sum(float(nats.sum()) for nats in model.token_nats(pieces))
    assert len(pieces) == 3
    assert model.record.valid_nats_per_note == pytest.approx(nats / valid.note_counts.sum())

    (tmp_path / "run").rename("undisturbed")
    scored.clear()
    stop.append(4)  # the first batch of all pieces
    with pytest.raises(SystemExit) as end:
        train.main(run)
    assert end.value.code == 128 + signal.SIGTERM
    assert len(scored) == 4
    stop.clear()
    assert checkpoint(tmp_path)["global_step"] == STEPS
    train.main(run)
    assert path.read_bytes() == content
    assert len(scored) == 4 + 3
    train.main(run)
    assert len(scored) == 4 + 3  # nothing is left to do


def test_sampling_that_was_not_fitted_to_the_end_is_fitted_by_going_on(tunes, monkeypatch, capsys):
    found = SamplingOptions(0.8, rhythm_temperature=1.0)
    fits = iter([lambda _: os.kill(os.getpid(), signal.SIGTERM), lambda its: its.sampled(found)])
    monkeypatch.setattr("training.finish.fit_sampling", lambda model, *_: next(fits)(model))
    run, path = arguments("run"), Path("run", "model.safetensors")
    with pytest.raises(SystemExit) as end:
        train.main(run)
    assert end.value.code == 128 + signal.SIGTERM
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "which is whole" in told
    assert told.endswith("; to go on, add --ckpt_path last")
    assert load(path).style.temperature is None
    train.main(run)
    style = load(path).style
    assert style.temperature == 0.8
    steps = "drawn steps of a beat" if style.rhythms else "any step"
    assert f"with notes on {steps}: these are now its defaults" in capsys.readouterr().out
    train.main(run)  # nothing is left to do


@pytest.mark.slow
def test_a_full_disk_is_reported_and_the_checkpoint_before_stays_whole(folder, whole):
    run_until(folder, arguments("run", **BEGUN), KILLED)
    last = folder / "run" / "checkpoints" / "last.ckpt"
    before = last.read_bytes()
    run = arguments("run", monitor__times=0)  # pictures are larger than checkpoints
    code, lines = run_until(folder, run, partial(no_larger_files, last.stat().st_size - 1))
    assert code == 2
    assert len(lines) == 1
    assert "best.ckpt cannot be written (File too large)" in lines[0]
    assert last.read_bytes() == before
    assert not list(folder.rglob("*.unfinished*"))
    train.main(arguments("run", **BEGUN))
    assert_nothing_happened(folder, whole)


def test_the_last_checkpoint_is_the_last_even_where_it_is_not_the_best(folder, monkeypatch):
    figures = iter([3.0, 2.0, 2.5])

    def worsening(self, split):
        self.log("valid/nats_per_note", next(figures))
        return 1.0

    monkeypatch.setattr(MusicModule, "_log_tally", worsening)
    train.main(arguments("run", data__num_workers=0))
    assert checkpoint(folder, "best")["global_step"] == 6
    assert checkpoint(folder)["global_step"] == 9
    assert checkpoint(folder)["callbacks"]["Checkpoints"] == {"best": 2.0}


def test_a_run_is_kept_between_validations_too(folder, monkeypatch):
    kept = []
    save_checkpoint = checkpoints.AtomicCheckpointIO.save_checkpoint

    def noted(self, checkpoint, path, storage_options=None):
        kept.append((path.name, checkpoint["global_step"]))
        save_checkpoint(self, checkpoint, path)

    monkeypatch.setattr(checkpoints.AtomicCheckpointIO, "save_checkpoint", noted)
    often = {"checkpoint__minutes": 0, "trainer__val_check_interval": 100, "trainer__max_steps": 4}
    train.main(arguments("run", data__num_workers=0, **often))
    between = [("last.ckpt", 1), ("last.ckpt", 2), ("last.ckpt", 3)]
    assert kept == [*between, ("best.ckpt", 4), ("last.ckpt", 4)]
