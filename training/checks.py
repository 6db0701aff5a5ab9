"""Why a run is refused or stopped, in one line that says what, where, and what to do."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from training.optimizer import MuonAdamW


class RunError(ValueError):
    """A run that cannot go on, or not as it was asked to; the message is one line."""


def out_of_memory_message(error: BaseException) -> str | None:
    """Return what to do where an error is one of memory; None for other errors."""
    first = str(error).strip().partition("\n")[0]
    signs = ("out of memory", "can't allocate memory", "not enough memory")
    is_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
    if not is_memory and not any(sign in first for sign in signs):
        return None
    return (
        f"the memory ran out ({first or 'of this machine'}): lower data.batch_size, "
        f"model.context_length, model.n_layer or model.n_embd; the checkpoint before is untouched"
    )


def has_form_of(saved: Any, ours: Any) -> bool:
    """Return whether saved values have the keys, lengths, shapes and kinds of ours, at any depth.

    Further keys do no harm. A number has to be finite.
    """
    if isinstance(ours, Mapping):
        return (
            isinstance(saved, Mapping)
            and saved.keys() >= ours.keys()
            and all(has_form_of(saved[key], value) for key, value in ours.items())
        )
    if isinstance(ours, list | tuple):
        return (
            isinstance(saved, list | tuple)
            and len(saved) == len(ours)
            and all(map(has_form_of, saved, ours))
        )
    if isinstance(ours, torch.Tensor):
        return (
            isinstance(saved, torch.Tensor)
            and saved.shape == ours.shape
            and saved.is_floating_point() == ours.is_floating_point()
        )
    if isinstance(ours, float):
        return isinstance(saved, float | int) and math.isfinite(saved)
    return type(saved) is type(ours) and (not isinstance(ours, int) or 0 <= saved < 2**53)


def form_of_state(optimizer: MuonAdamW, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a state saved of an optimizer must hold; values mean nothing."""
    groups = optimizer.state_dict()["param_groups"]
    forms: dict[int, Any] = {}
    for number, (group, ours) in enumerate(zip(groups, optimizer.param_groups, strict=True)):
        for index, weight in zip(group["params"], ours["params"], strict=True):
            adamw = {name: weight.detach() for name in ("exp_avg", "exp_avg_sq")}
            forms[index] = {"step": torch.zeros(()), **adamw}
            if not number:
                forms[index] = {"momentum_buffer": weight.detach()}
    known = saved.get("state")
    has_state = known if isinstance(known, Mapping) else forms
    return {
        "param_groups": groups,
        "state": {index: form for index, form in forms.items() if index in has_state},
    }
