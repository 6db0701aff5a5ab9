"""What we use of Lightning that Lightning does not promise (training/loops.py).

Where a new Lightning fails one of these, runs may no longer resume to the same bits: look at what
the message names, and then at tests/training/test_resume.py.
"""

import pytest
import torch
from lightning.pytorch.demos.boring_classes import BoringModel

from tests.training.test_module import trainer as trainer_of
from training import loops

COUNTS = {"ready", "started", "processed", "completed"}


@pytest.fixture
def trainer(tmp_path):
    return trainer_of(tmp_path, 3, limit_val_batches=2, val_check_interval=3)


@pytest.mark.filterwarnings("ignore::UserWarning:lightning.*")
def test_a_checkpoint_counts_batches_as_correct_counts_takes_them(trainer, tmp_path):
    trainer.fit(BoringModel())
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=False)
    saved = checkpoint["loops"]["fit_loop"]
    for name in ("epoch_loop.batch_progress", "epoch_loop.val_loop.batch_progress"):
        assert name in saved, f"Lightning no longer saves {name}; correct_counts corrects it"
        for part in ("total", "current"):
            assert saved[name][part].keys() >= COUNTS, f"Lightning counts {name} otherwise"
    assert saved["epoch_loop.batch_progress"]["total"]["processed"] == 3
    loops.correct_counts(checkpoint, is_validating=True)
    assert saved["epoch_loop.val_loop.batch_progress"]["current"]["ready"] == 0


def test_the_loops_have_what_is_read_and_set_there(trainer):
    assert getattr(trainer.fit_loop.epoch_loop, "_batches_that_stepped", None) == 0, (
        "Lightning no longer logs at _batches_that_stepped, which count_logged_steps sets"
    )
    loops.count_logged_steps(trainer)
    loops.end_workers(trainer)
