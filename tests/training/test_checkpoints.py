"""Who has a run's folder; what we use of Lightning that Lightning does not promise.

Where a new Lightning fails one of these, runs may no longer resume to the same bits: look at what
the message names, and then at tests/training/test_resume.py.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.demos.boring_classes import BoringModel

from training.checkpoints import run_folder
from training.checks import RunError

COUNTS = {"ready", "started", "processed", "completed"}


@pytest.fixture
def trainer(tmp_path):
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return Trainer(
        accelerator="cpu",
        max_steps=3,
        limit_val_batches=2,
        enable_checkpointing=False,
        default_root_dir=tmp_path,
        **quiet,
    )


@pytest.mark.filterwarnings("ignore::UserWarning:lightning.*")
def test_a_checkpoint_counts_batches_as_on_save_checkpoint_corrects_them(trainer, tmp_path):
    trainer.fit(BoringModel())
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    loops = torch.load(tmp_path / "last.ckpt", weights_only=False)["loops"]["fit_loop"]
    for name in ("epoch_loop.batch_progress", "epoch_loop.val_loop.batch_progress"):
        assert name in loops, f"Lightning no longer saves {name}; Checkpoints corrects it"
        for part in ("total", "current"):
            assert loops[name][part].keys() >= COUNTS, f"Lightning counts {name} otherwise"
    assert loops["epoch_loop.batch_progress"]["total"]["processed"] == 3


def test_lightning_counts_the_steps_at_which_it_logs_by_themselves(trainer):
    loop = trainer.fit_loop.epoch_loop
    assert getattr(loop, "_batches_that_stepped", None) == 0, (
        "Lightning no longer logs at _batches_that_stepped, which Checkpoints sets"
    )


def test_lightning_counts_the_batches_of_a_step(trainer):
    current = trainer.fit_loop.epoch_loop.batch_progress.current
    assert current.completed == 0, "_is_between_steps reads how many batches are done"


def test_a_fit_loop_ends_its_workers(trainer):
    assert callable(getattr(trainer.fit_loop, "teardown", None)), (
        "Lightning no longer has fit_loop.teardown(), with which Checkpoints ends workers"
    )


def test_the_validation_interval_can_be_set_after_the_trainer_is_made(trainer):
    assert hasattr(trainer, "val_check_interval"), (
        "train.py counts trainer.val_check_interval in steps, Lightning in batches"
    )


def test_runs_that_begin_at_once_get_a_folder_each(tmp_path):
    run = tmp_path / "runs" / "a"
    with ExitStack() as held, ThreadPoolExecutor(8) as threads:
        stacks = [held.enter_context(ExitStack()) for _ in range(8)]
        folders = list(threads.map(partial(run_folder, run, None), stacks))
        assert {folder.name for folder in folders} == {"a", *(f"a-{n}" for n in range(2, 9))}
        with pytest.raises(RunError, match="a: another process trains there"):
            run_folder(run, "last", held)
        first = stacks[folders.index(run)]
        (run / "model.safetensors").touch()
        first.close()
        assert run_folder(run, None, first).name == "a-9"  # there is a run in it now
        first.close()
        assert run_folder(run, "last", first) == run
    assert [path.name for path in run.parent.iterdir()] == ["a"]  # of the others nothing was made
    assert [path.name for path in run.iterdir()] == ["model.safetensors"]
    (Path(run) / ".lock").touch()  # of a killed process
    with ExitStack() as held:
        assert run_folder(run, "last", held) == run
