"""The optimizer, Muon and AdamW as one, and the schedule of its learning rates."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from model.decoder import Decoder
from training.muon import BatchedMuon


class MuonAdamW(Optimizer):
    """Muon for the matrices inside the blocks, AdamW for everything else, as one Optimizer.

    Both move weights against their gradients, averaged over the latest steps. Muon (Jordan 2024)
    first replaces that average, a matrix, by the nearest orthogonal one, so that it moves all
    directions equally far. AdamW (Loshchilov & Hutter 2019) moves each number about equally far. It
    has embeddings and heads, whose rows are ids, and the gains of norms, which do not decay. The
    two share this object's `param_groups` and `state`, so that clipping, schedulers and checkpoints
    see one ordinary optimizer.
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
        """Make the parts' groups and state the very objects of this optimizer."""
        muon, adamw = self._parts
        muon.param_groups, adamw.param_groups = self.param_groups[:1], self.param_groups[1:]
        muon.state = adamw.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Update every parameter once; `closure` recomputes loss and gradients before that."""
        with torch.enable_grad():
            loss = closure() if closure else None
        for part in self._parts:
            part.step()
        return loss

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load what `state_dict` gave; that replaces groups and state, so share them anew."""
        super().load_state_dict(dict(state_dict))
        self._share()


def split_parameters(
    decoder: Decoder,
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """Return the parameters in three lists: matrices inside blocks; embedding and head; gains."""
    inside = {id(weight) for weight in decoder.blocks.parameters()}
    weights = list(decoder.parameters())
    matrices = [w for w in weights if w.ndim == 2 and id(w) in inside]
    tables = [w for w in weights if w.ndim == 2 and id(w) not in inside]
    return matrices, tables, [w for w in weights if w.ndim != 2]


def trapezoid(step: int, total: int, warm_up: float, cool_down: float) -> float:
    """Return the factor on the learning rate: a linear rise, a plateau, a linear fall to 0.

    It is the schedule of Zhai et al. 2022 (Scaling Vision Transformers, section 3.5). Of `total`
    updates, `step` were made so far; the first has a factor above 0. The factor rises in the
    share `warm_up` of the run, and falls in the share `cool_down` at its end.
    """
    rise = (step + 1) / max(warm_up * total, 1)
    fall = (total - step) / max(cool_down * total, 1)
    return max(0.0, min(1.0, rise, fall))
