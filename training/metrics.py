"""What is logged of a step's optimizer beside the loss: gradient norms and learning rates."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.nn.utils import get_total_norm


def gradient_norms(weights: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Return the L2 norm of the gradients of each part of a decoder, and of `all` together.

    Args:
        weights: with their names in a decoder; each of its `blocks` is a part, `layer_1` and on.
    """
    parts: dict[str, list[Tensor]] = defaultdict(list)
    for name, weight in weights:
        if weight.grad is not None:
            part, number, *_ = name.split(".")
            parts[f"layer_{int(number) + 1}" if part == "blocks" else part].append(weight.grad)
    norms = {part: get_total_norm(gradients) for part, gradients in parts.items()}
    return {"all": get_total_norm(list(norms.values())), **norms}


def learning_rates(groups: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return the rates of `muon` and of `adamw`, from the parameter groups of `MuonAdamW`."""
    return {"muon" if "ns_steps" in group else "adamw": group["lr"] for group in groups}
