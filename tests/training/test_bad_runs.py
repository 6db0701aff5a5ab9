"""Runs that cannot go on, or not as they were asked to: one line, exit code 2, nothing lost."""

import math
import resource
from functools import partial
from pathlib import Path

import pytest
import torch

from data.batches.datamodule import MusicDataModule
from data.batches.options import DataOptions
from generation.model import corpus_of, load
from tests.processes import run_apart
from tests.runs import fit, refusal, words
from training import checks
from training.module import MusicModule

LAST = Path("run", "checkpoints", "last.ckpt")


def test_a_loss_that_is_not_finite_stops_the_run(tunes, capsys, monkeypatch):
    forward, seen = MusicModule.forward, []

    def overflowing(self, ids, control=None):
        logits = forward(self, ids, control)
        seen.append(ids)
        return logits * (math.inf if self.training and len(seen) == 14 else 1)

    monkeypatch.setattr(MusicModule, "forward", overflowing)
    run = ("--data.batch_size", 3, "--data.transpose", 0)
    line = refusal(capsys, *words(*run, "--trainer.val_check_interval", 10))
    assert "step 14: the loss is nan (all weights are finite)" in line
    assert torch.load(LAST, weights_only=True)["global_step"] == 10
    monkeypatch.undo()
    monkeypatch.chdir(tunes.parent)
    fit(*run, "--ckpt_path", "last")
    assert torch.load(LAST, weights_only=True)["global_step"] == 20


def test_weights_that_are_not_finite_take_no_checkpoints_place(tunes, capsys, monkeypatch):
    def broken(self, *_):
        if self.global_step == 20:  # which ends the run
            with torch.no_grad():
                self.decoder.head.weight[0, 0] = math.nan

    monkeypatch.setattr(MusicModule, "on_train_batch_end", broken)
    line = refusal(capsys, *words())
    assert "step 20 made decoder.head.weight no longer finite" in line
    kept = torch.load(LAST, weights_only=True)
    assert kept["global_step"] == 10
    assert kept["state_dict"]["decoder.head.weight"].isfinite().all()


def test_a_corpus_of_other_tokens_does_not_go_on(tunes, capsys):
    fit("--trainer.max_steps", 10)
    kept = LAST.read_bytes()
    line = refusal(capsys, *words("--data.instruments", "piano", "--ckpt_path", "last"))
    assert "trained with another vocabulary" in line
    assert LAST.read_bytes() == kept


def test_a_folder_that_has_changed_is_not_gone_on_with_and_named_where_it_is_scored(tunes, capsys):
    fit("--trainer.max_steps", 10)
    model, kept = load("run"), LAST.read_bytes()
    assert corpus_of(model).content == model.record.corpus
    assert "has changed since training" not in capsys.readouterr().out
    next(tunes.glob("*.mid")).unlink()
    line = refusal(capsys, *words("--ckpt_path", "last"))
    assert "the folder has changed since the run began" in line
    assert LAST.read_bytes() == kept
    corpus_of(model)
    assert "has changed since training" in capsys.readouterr().out


def little_memory(more):
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + more, in_use + more))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits need Linux")
def test_memory_that_runs_out_is_reported(tunes):
    large = words("--model.n_embd", 2048, "--model.n_layer", 4)
    code, lines = run_apart(tunes.parent, large, partial(little_memory, 2**29))
    assert code == 2
    assert len(lines) == 1
    assert "the memory ran out" in lines[0]
    assert "lower data.batch_size" in lines[0]


@pytest.mark.slow
def test_what_lightning_cannot_write_is_told_with_the_run(tunes):
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (3_000, 3_000))
    MusicDataModule(DataOptions(path="tunes")).prepare_data()
    code, lines = run_apart(tunes.parent, words(), limit)
    assert code == 2
    (line,) = lines
    assert "File too large: 'run" in line


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (MemoryError(), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (RuntimeError(), False),
    ],
)
def test_errors_of_memory_are_known_by_kind_or_words(error, is_memory):
    line = checks.out_of_memory_message(error)
    assert (line is not None) == is_memory
    assert line is None or ("\n" not in line and "the memory ran out" in line)
