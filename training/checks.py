"""Why a run is refused or stopped, each in one line that says what, where, and what to do."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from data.batches.datamodule import MusicDataModule

# What can be trained with at all: at a rate above 1 a step takes a weight further than it is large.
RANGES = (
    ("learning_rate", 1e-12, 1),
    ("muon_learning_rate", 1e-12, 1),
    ("weight_decay", 0, 1),
    ("warm_up", 0, 1),
    ("cool_down", 0, 1),
)
MOST_WINDOWS = 8  # of a batch that a message lists


class RunError(ValueError):
    """A run that cannot go on, or not as it was asked to; the message is one line."""


def check_ranges(settings: Mapping[str, Any]) -> None:
    """Refuse settings of the optimizer that are out of range, nan among them.

    Raises:
        RunError: the first of them.
    """
    for name, least, most in RANGES:
        if not least <= settings[name] <= most:
            raise RunError(f"model.{name} must be from {least} to {most}, not {settings[name]}")


def check_weights(weights: Iterable[tuple[str, Tensor]], step: int) -> None:
    """Refuse to save weights that are not finite.

    Args:
        weights: with their names.
        step: that made them.

    Raises:
        RunError: the first of them.
    """
    if name := _first_not_finite(weights):
        raise RunError(
            f"step {step} made {name} no longer finite: the checkpoint before is untouched; "
            f"train afresh with lower rates"
        )


def check_checkpoint(
    checkpoint: Mapping[str, Any],
    settings: Mapping[str, Any],
    data: MusicDataModule,
) -> None:
    """Refuse a checkpoint of another model, or of one that was trained on other tokens.

    Args:
        checkpoint: as it was read.
        settings: of the model, those that have to be as they were.
        data: that the run has now.

    Raises:
        RunError: what differs.
    """
    if "vocabulary" not in checkpoint:
        raise RunError("the checkpoint is not one that train.py wrote")
    saved = checkpoint["hyper_parameters"]
    changed = [
        f"{name} {saved.get(name)}, not {value}"
        for name, value in settings.items()
        if saved.get(name) != value
    ]
    if changed:
        raise RunError(
            f"the checkpoint was trained with {', '.join(changed)}: "
            f"give it those settings, or train afresh under another --run"
        )
    if checkpoint["vocabulary"] != data.vocabulary.to_json():
        size = len(checkpoint["state_dict"]["decoder.embedding.weight"])
        raise RunError(
            f"the checkpoint was trained with another vocabulary ({size} ids) than the data "
            f"has now ({data.vocabulary.size}): use the data it was trained on, or train "
            f"afresh under another --run"
        )
    if checkpoint.get("side_shape") != data.side_shape:
        raise RunError(
            "the checkpoint was trained with another side input than the data has now: "
            "train afresh under another --run"
        )


def loss_error(
    step: int,
    loss: Tensor,
    logits: Tensor,
    weights: Iterable[tuple[str, Tensor]],
    rates: Sequence[float],
    windows: Sequence[str],
) -> RunError:
    """Return the error of a loss that is not finite, with what may explain it.

    Args:
        step: that was to be made.
        loss: float ().
        logits: float (B, T, V), whose loss it is.
        weights: that gave the logits, with their names.
        rates: learning rates of the step.
        windows: where each of the batch comes from.
    """
    rest = f" and {len(windows) - MOST_WINDOWS} more" if len(windows) > MOST_WINDOWS else ""
    name = _first_not_finite(weights)
    cause = f"{name} is not finite" if name else "all weights are finite"
    return RunError(
        f"step {step}: the loss is {loss.item()} (largest logit {logits.abs().max().item():.3g}; "
        f"{cause}; rates {' and '.join(f'{rate:.3g}' for rate in rates)}); in the batch: "
        f"{', '.join(windows[:MOST_WINDOWS])}{rest}. The checkpoint before is untouched: train "
        f"afresh with lower rates, or look at these pieces"
    )


def _first_not_finite(weights: Iterable[tuple[str, Tensor]]) -> str | None:
    return next((name for name, weight in weights if not weight.isfinite().all()), None)


def out_of_memory_message(error: BaseException) -> str | None:
    """Return what to do where an error is one of memory; None for other errors."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else ""
    signs = ("out of memory", "can't allocate memory", "not enough memory")
    is_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
    if not is_memory and not any(sign in first for sign in signs):
        return None
    return (
        f"the memory ran out ({first or 'of this machine'}): lower data.batch_size, "
        f"model.context_length, model.n_layer or model.n_embd; the checkpoint before is untouched"
    )
