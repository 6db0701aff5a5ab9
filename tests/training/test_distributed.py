"""Two processes that train and judge one model, on the CPU."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import train
from tests.folders import write_tunes
from training.module import MusicModule

CONFIG = Path(train.__file__).parent / "configs" / "smoke.yaml"
TUNES = ("--config", CONFIG, "--data.path", "tunes", "--trainer.enable_progress_bar", "false")
CPU = (*TUNES, "--trainer.accelerator", "cpu", "--trainer.precision", "32-true")
TWO = (*CPU, "--trainer.devices", 2, "--trainer.strategy", "ddp")
UNREAD = ("fit", *CPU, "--data.path", "bach")  # what is embedded is there, and not yet read

# What a process notes: what it builds and writes; its first windows and gradients.
WRITES = """
import torch, data.corpus.build, training.checkpoints

def noted(module, name, text):
    done = getattr(module, name)
    def noting(*arguments, **options):
        with open("noted", "a") as file:
            file.write(f"{rank} {text}\\n")
        return done(*arguments, **options)
    setattr(module, name, noting)

noted(data.corpus.build, "build", "corpus")
noted(torch, "save", "checkpoint")
noted(training.checkpoints, "save_model_file", "model")
"""
STEP = """
import numpy, torch
from training import command

class Noting(command.MusicModule):
    def training_step(self, batch, batch_idx):
        if self.global_step == 0:
            numpy.save(f"windows{rank}.npy", batch["ids"].numpy())
        return super().training_step(batch, batch_idx)

    def on_before_optimizer_step(self, optimizer):
        if self.global_step == 0:
            gradients = [weight.grad.flatten() for weight in self.parameters()]
            numpy.save(f"gradients{rank}.npy", torch.cat(gradients).numpy())

command.MusicModule = Noting
"""
# Ends both in the middle of a run.
STOPS = """
from training.tensorboard import MusicMonitor
def stop(self, trainer, *_):
    if trainer.global_step == 15:
        raise SystemExit(7)
MusicMonitor.on_train_batch_end = stop
"""
# Tells the second process to stop after its third step.
TERMINATES = """
import os, signal
from training.tensorboard import MusicMonitor
def stop(self, trainer, *_):
    if rank and trainer.global_step == 3:
        os.kill(os.getpid(), signal.SIGTERM)
MusicMonitor.on_train_batch_end = stop
"""


@pytest.fixture(scope="module")
def trained(ranks, tmp_path_factory):
    """A folder in which two processes have trained."""
    folder = tmp_path_factory.mktemp("two")
    write_tunes(folder / "tunes", 8)
    codes, _, errors = ranks.run(folder, "fit", *TWO, "--run", "runs/two", first=WRITES + STEP)
    assert (codes, errors) == ([0, 0], ["", ""])
    return folder


def lines(texts):
    return [line for text in texts for line in text.splitlines()]


def weights(path):
    return torch.load(path, weights_only=True)["state_dict"]


@pytest.mark.slow
def test_one_process_builds_and_writes(trained):
    noted = (trained / "noted").read_text().splitlines()
    assert noted.count("0 corpus") == 1
    assert {"0 checkpoint", "0 model"} < set(noted)
    assert not [line for line in noted if line[0] != "0"]


@pytest.mark.slow
def test_two_processes_make_the_step_of_one_with_their_windows(trained, monkeypatch):
    mine = [np.load(trained / f"windows{rank}.npy") for rank in (0, 1)]
    assert not np.array_equal(*mine)
    monkeypatch.chdir(trained)
    # STEP puts another in its place
    monkeypatch.setattr("training.command.MusicModule", MusicModule)
    exec(STEP, {"rank": "one"})
    twice = ("--data.batch_size", 4, "--trainer.max_steps", 1, "--run", "runs/one")
    train.main(list(map(str, ("fit", *CPU, *twice))))
    whole = np.load("windowsone.npy")
    np.testing.assert_array_equal(np.stack(mine, axis=1).reshape(whole.shape), whole)
    gradients = [np.load(f"gradients{name}.npy") for name in ("one", 0, 1)]
    np.testing.assert_array_equal(gradients[1], gradients[2])
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-3, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["validate", "test"])  # 1 piece each: one rank has none
def test_figures_are_those_of_one_process(ranks, trained, monkeypatch, capsys, command):
    run = ("--run", "runs/two")
    codes, (first, second), _ = ranks.run(trained, command, *TWO, *run)
    assert codes == [0, 0]
    assert "nats_per_note" not in second
    monkeypatch.chdir(trained)
    train.main(list(map(str, (command, *CPU, *run))))
    pattern = r"(\w+/\w+)\s+(\d\S+)"
    two, one = (dict(re.findall(pattern, text)) for text in (first, capsys.readouterr().out))
    assert two.keys() == one.keys() >= {"valid/loss" if command == "validate" else "test/loss"}
    for name, value in one.items():
        assert float(two[name]) == pytest.approx(float(value), rel=1e-6), name


@pytest.mark.slow
def test_a_run_of_two_goes_on_to_the_same_bits(ranks, trained):
    resumed = ("fit", *TWO, "--run", "runs/cut", "--ckpt_path", "last")
    assert ranks.run(trained, *resumed, first=STOPS)[0] == [7, 7]
    assert ranks.run(trained, *resumed)[0] == [0, 0]
    whole, cut = (
        weights(trained / f"runs/{name}/checkpoints/last.ckpt") for name in ("two", "cut")
    )
    for name, tensor in whole.items():
        assert torch.equal(tensor, cut[name]), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "first", "words"),
    [
        (("--data.path", "empty"), "", "no music file"),  # in one process, that builds the corpus
        (("--model.begin_with", "none.safetensors"), "", "none.safetensors"),  # in both
        (
            (),
            "from training.module import MusicModule, RunError\n"
            "def fail(*_): raise RunError('broken')\n"
            "if rank: MusicModule.on_train_batch_start = fail",
            "broken",  # in the other
        ),
    ],
)
def test_a_mistake_is_one_line_of_one_process_and_both_leave(ranks, trained, options, first, words):
    (trained / "empty").mkdir(exist_ok=True)
    codes, _, errors = ranks.run(trained, "fit", *TWO, "--run", "runs/no", *options, first=first)
    assert codes == [2, 2]
    assert len(lines(errors)) == 1, errors
    (line,) = lines(errors)
    assert words in line


@pytest.mark.slow
def test_sigterm_to_one_stops_both(ranks, trained):
    codes, _, errors = ranks.run(trained, "fit", *TWO, "--run", "runs/term", first=TERMINATES)
    assert codes == [143, 143]
    assert len(lines(errors)) == 1


@pytest.mark.slow
def test_two_nodes(ranks, trained):
    environment = {"NODE_RANK": ["0", "1"], "LOCAL_RANK": ["0", "0"]}
    nodes = (*CPU, "--trainer.num_nodes", 2, "--trainer.strategy", "ddp", "--run", "runs/nodes")
    codes, _, errors = ranks.run(trained, "fit", *nodes, environment=environment)
    assert (codes, errors) == ([0, 0], ["", ""])
    two, nodes = (weights(trained / f"runs/{n}/checkpoints/last.ckpt") for n in ("two", "nodes"))
    for name, tensor in two.items():
        assert torch.equal(tensor, nodes[name]), name


@pytest.mark.slow
def test_the_command_starts_the_other_process(trained):
    command = list(
        map(str, (sys.executable, train.__file__, "validate", *TWO, "--run", "runs/two"))
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=trained)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("valid/nats_per_note") == 1


@pytest.mark.parametrize(
    ("options", "environment", "words"),
    [
        (("--trainer.strategy", "nonsense"), {}, ["nonsense"]),
        (("--trainer.num_nodes", 2), {}, ["MASTER_ADDR", "MASTER_PORT", "NODE_RANK"]),
        ((), {"MASTER_PORT": "295oo"}, ["MASTER_PORT must be a whole number, not '295oo'"]),
    ],
)
def test_what_cannot_train_is_refused_before_anything_is_read(
    tmp_path, monkeypatch, capsys, options, environment, words
):
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stop:
        train.main(list(map(str, (*UNREAD, *options))))
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words)
    assert not list(tmp_path.iterdir())
