"""The optimizer, Muon and AdamW as one, and the schedule of its learning rates."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from model.decoder import Decoder


class BatchedMuon(Muon):
    """torch's Muon, with matrices of one shape orthogonalized in one batched product.

    The iteration is in bfloat16, as in torch, or in float32: whichever is faster in training.
    """

    def __init__(
        self,
        matrices: list[nn.Parameter],
        iterate_in: torch.dtype = torch.bfloat16,
        **options: float,
    ) -> None:
        super().__init__(matrices, **options)  # type: ignore[arg-type]
        self.iterate_in = iterate_in

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient once."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, ...], list[nn.Parameter]] = defaultdict(list)
            for weight in group["params"]:
                if weight.grad is not None:
                    by_shape[tuple(sorted(weight.shape))].append(weight)
            for weights in by_shape.values():
                self._update(weights, group)

    def _update(self, weights: list[nn.Parameter], group: dict[str, Any]) -> None:
        rate, momentum = group["lr"], group["momentum"]
        updates = []
        for weight in weights:
            assert weight.grad is not None
            if not (state := self.state[weight]):
                state["momentum_buffer"] = torch.zeros_like(weight.grad)
            average = state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
            update = weight.grad.lerp(average, momentum)  # Nesterov's
            update = update if len(update) <= update.shape[1] else update.mT
            updates.append(update.to(self.iterate_in))
        matrices = torch.stack(updates)
        matrices /= torch.linalg.matrix_norm(matrices, keepdim=True).clamp(min=1e-7)
        iterate = _orthogonalize_bf16 if self.iterate_in == torch.bfloat16 else _orthogonalize
        orthogonal = iterate(matrices, group["ns_coefficients"], group["ns_steps"])
        for weight, update in zip(weights, orthogonal, strict=True):
            rows, columns = weight.shape
            weight.mul_(1 - rate * group["weight_decay"])
            stretch = math.sqrt(max(1, rows / columns))
            update = update if rows <= columns else update.mT
            weight.add_(update, alpha=-rate * stretch)


def _orthogonalize_bf16(x: Tensor, coefficients: tuple[float, float, float], steps: int) -> Tensor:
    """Move matrices near the closest orthogonal ones, by Newton and Schulz (Jordan 2024).

    A step is x <- (a + b G + c G^2) x, where G = x x^T. The matrices are bfloat16 (N, m, n),
    m <= n, each of norm 1; the coefficients are a, b and c.
    """
    a, b, c = coefficients
    for _ in range(steps):
        gram = x.bmm(x.mT)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def _orthogonalize(x: Tensor, coefficients: tuple[float, float, float], steps: int) -> Tensor:
    """Do the same in float32, with half of the products.

    The factors a + b G + c G^2 of all steps commute, so that they and G are computed without x,
    m by m; for this bfloat16 has too few digits.
    """
    a, b, c = coefficients
    gram, factors = x.bmm(x.mT), list[Tensor]()
    for _ in range(steps):
        if factors:
            gram = factors[-1].bmm(gram).bmm(factors[-1])
        factors.append(torch.baddbmm(gram, gram, gram, beta=b, alpha=c))
        factors[-1].diagonal(dim1=-2, dim2=-1).add_(a)
    return reduce(torch.bmm, reversed(factors)).bmm(x)


class MuonAdamW(Optimizer):
    """Muon for the matrices inside the blocks, AdamW for everything else, as one Optimizer.

    Muon (Jordan 2024) steps along the orthogonal matrix nearest to a matrix's momentum. AdamW
    (Loshchilov & Hutter 2019) updates embedding and head, whose rows are looked up one by one,
    and gains, which have no weight decay. The two share this object's `param_groups` and `state`,
    so that clipping, schedulers, accumulation and checkpoints see one ordinary optimizer.
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

    def form_of(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a saved state with the weights of this one must hold; values mean nothing."""
        groups = self.state_dict()["param_groups"]
        forms: dict[int, Any] = {}
        for number, (group, ours) in enumerate(zip(groups, self.param_groups, strict=True)):
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
