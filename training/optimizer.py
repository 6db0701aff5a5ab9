"""The optimizer, which joins Muon and AdamW, and the schedule of its learning rates."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from model.decoder import Decoder
from training.muon import BatchedMuon


class MuonAdamW(Optimizer):
    """Muon for the matrices inside the blocks, and AdamW for everything else, as one Optimizer.

    Both move weights against an average of their latest gradients. Muon (Jordan 2024) first
    replaces this average, a matrix, by the nearest orthogonal matrix, so that it moves equally far
    in all directions. AdamW (Loshchilov & Hutter 2019) moves each number about equally far. AdamW
    has the embeddings and heads, whose rows belong to ids, and the gains of norms, which have no
    weight decay. Both parts share the `param_groups` and `state` of this object, so that clipping,
    schedulers and checkpoints see one ordinary optimizer.

    Args:
        decoder: whose weights learn.
        learning_rate, muon_learning_rate: of AdamW and of Muon.
        weight_decay: each step shrinks a weight by this times its learning rate.
        iterate_in: the dtype in which Muon computes (`BatchedMuon`).
    """

    def __init__(
        self,
        decoder: Decoder,
        learning_rate: float,
        muon_learning_rate: float,
        weight_decay: float,
        iterate_in: torch.dtype = torch.bfloat16,
    ) -> None:
        matrices, tables, gains = split_parameters(decoder)
        muon = BatchedMuon(matrices, iterate_in, lr=muon_learning_rate, weight_decay=weight_decay)
        groups: list[dict[str, Any]] = [{"params": tables}, {"params": gains, "weight_decay": 0.0}]
        adamw = AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), weight_decay=weight_decay)
        self._parts = (muon, adamw)
        super().__init__([*muon.param_groups, *adamw.param_groups], {})
        self._share()

    def _share(self) -> None:
        """Give both parts the groups and the state of this optimizer, not copies of them."""
        muon, adamw = self._parts
        muon.param_groups, adamw.param_groups = self.param_groups[:1], self.param_groups[1:]
        muon.state = adamw.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter once; `closure`, if any, first recomputes loss and gradients."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for part in self._parts:
            part.step()
        return loss

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned, which replaces groups and state; so share them anew."""
        super().load_state_dict(dict(state_dict))
        self._share()


def split_parameters(
    decoder: Decoder,
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """Return three lists: the matrices inside blocks; the embeddings and heads; and the gains."""
    inside = {id(weight) for weight in decoder.blocks.parameters()}
    weights = list(decoder.parameters())
    matrices = [w for w in weights if w.ndim == 2 and id(w) in inside]
    tables = [w for w in weights if w.ndim == 2 and id(w) not in inside]
    return matrices, tables, [w for w in weights if w.ndim != 2]


def trapezoid(step: int, total: int, warm_up: float, cool_down: float) -> float:
    """Return the factor on the learning rate: it rises linearly, stays at 1, and falls to 0.

    This is the schedule of Zhai et al. 2022 (Scaling Vision Transformers, section 3.5).

    Args:
        step: how many updates were made so far; the factor of the first update is above 0.
        total: how many updates the run has.
        warm_up: the share of the run in which the factor rises.
        cool_down: the share of the run, at its end, in which it falls.
    """
    rise = (step + 1) / max(warm_up * total, 1)
    fall = (total - step) / max(cool_down * total, 1)
    return max(0.0, min(1.0, rise, fall))
