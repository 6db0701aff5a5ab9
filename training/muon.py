"""Muon, made fast by updating all matrices of one shape together."""

import math
from collections import defaultdict
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Muon

from model.threads import steady_products


class BatchedMuon(Muon):
    """torch's Muon, which orthogonalizes all matrices of one shape in one batched product.

    The iteration is in bfloat16, as in torch, or in float32, whichever makes training faster.
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
            update = weight.grad.lerp(average, momentum)  # Nesterov's momentum
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
    """Move matrices close to the nearest orthogonal ones, by Newton-Schulz steps (Jordan 2024).

    Each step is x <- (a + b G + c G^2) x, where G = x x^T. The matrices are bfloat16 (N, m, n), m
    <= n, each with norm 1. The coefficients are a, b and c.
    """
    a, b, c = coefficients
    with steady_products():
        for _ in range(steps):
            gram = x.bmm(x.mT)
            x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def _orthogonalize(x: Tensor, coefficients: tuple[float, float, float], steps: int) -> Tensor:
    """Do the same in float32, with half of the products.

    The factors a + b G + c G^2 of all steps commute. So the factors and G, which are m by m, can be
    computed without x. bfloat16 has too few digits for this.
    """
    a, b, c = coefficients
    gram, factors = x.bmm(x.mT), list[Tensor]()
    for _ in range(steps):
        if factors:
            gram = factors[-1].bmm(gram).bmm(factors[-1])
        factors.append(torch.baddbmm(gram, gram, gram, beta=b, alpha=c))
        factors[-1].diagonal(dim1=-2, dim2=-1).add_(a)
    return reduce(torch.bmm, reversed(factors)).bmm(x)
