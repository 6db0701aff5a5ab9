"""What a run changes in Lightning's loops, which Lightning does not promise to keep: all of it.

tests/training/test_resume.py fails if a new Lightning has changed them.
"""

from typing import Any

from lightning.pytorch import Trainer


def count_logged_steps(trainer: Trainer) -> None:
    """Correct how many logged steps Lightning counts: one too many after some ways to resume."""
    trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step


def end_workers(trainer: Trainer) -> None:
    """End the workers that read batches, which Lightning leaves waiting during a validation."""
    trainer.fit_loop.teardown()


def correct_counts(checkpoint: dict[str, Any], is_validating: bool) -> None:
    """Correct Lightning's counts: only batches that are done count; a validation begins again.

    Lightning's counts depend on the hook in which they are saved. From some hooks, it would resume
    without the validation, or one step too far.
    """
    loops = checkpoint["loops"]["fit_loop"]
    training = loops["epoch_loop.batch_progress"]
    for counts in (training["total"], training["current"]):
        done = counts["processed"]
        counts.update(ready=done, started=done, completed=done)
    validation = loops["epoch_loop.val_loop.batch_progress"]
    done = validation["total"]["completed"]
    if is_validating:  # the resumed run scores these batches again
        done -= validation["current"]["completed"]
    begun = done + is_validating
    validation["total"].update(ready=begun, started=begun, processed=done, completed=done)
    validation["current"].update(ready=0, started=0, processed=0, completed=0)
