"""Two optimizers that behave as one, and the schedule's shape."""

import copy

import pytest
import torch
from torch.nn import functional

from model.config import DecoderConfig
from model.decoder import Decoder
from training.muon import BatchedMuon
from training.optimizer import MuonAdamW, split_parameters, trapezoid

IDS = torch.arange(12).remainder(7).view(2, 6)


def make(width: int = 8) -> tuple[Decoder, MuonAdamW]:
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(7, n_layer=2, n_head=2, n_embd=width))
    return decoder, MuonAdamW(decoder, 0.01, 0.05, 0.1)


def train(decoder: Decoder, optimizer: MuonAdamW, steps: int) -> float:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(decoder(IDS[:, :-1]).flatten(0, 1), IDS[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    return loss.item()


def test_every_parameter_has_one_place():
    decoder, optimizer = make()
    names = {id(p): name for name, p in decoder.named_parameters()}
    matrices, tables, gains = ([names[id(p)] for p in part] for part in split_parameters(decoder))
    assert sorted(matrices + tables + gains) == sorted(names.values())
    assert tables == ["embedding.weight", "head.weight"]
    assert all("norm" in name for name in gains)
    grouped = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
    assert grouped == matrices + tables + gains
    assert optimizer.param_groups[-1]["weight_decay"] == 0


def test_matrices_go_where_muon_takes_them_and_the_rest_where_adamw_does():
    decoder, optimizer = make(width=32)  # on smaller ones bf16 products in a batch round unlike
    twin = copy.deepcopy(decoder)
    matrices, tables, gains = split_parameters(twin)
    muon = torch.optim.Muon(matrices, lr=0.05, weight_decay=0.1)
    adamw = torch.optim.AdamW(tables, lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    plain = torch.optim.AdamW(gains, lr=0.01, betas=(0.9, 0.95), weight_decay=0.0)
    train(decoder, optimizer, 5)
    for _ in range(5):
        twin.zero_grad()
        logits = twin(IDS[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1), IDS[:, 1:].flatten()).backward()
        for part in (muon, adamw, plain):
            part.step()
    for ours, theirs in zip(decoder.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_schedule_rises_holds_and_falls():
    factors = [trapezoid(step, 10, 0.2, 0.4) for step in range(12)]
    assert factors == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0])


@pytest.mark.parametrize("shape", [(32, 96), (96, 32), (32, 32)])
@pytest.mark.parametrize("rank", [32, 4])
def test_in_float32_singular_values_go_exactly_where_the_iteration_takes_them(shape, rank):
    torch.manual_seed(0)
    gradient = torch.randn(2, shape[0], rank) @ torch.randn(2, rank, shape[1])
    matrices = [torch.nn.Parameter(torch.zeros(shape)) for _ in gradient]
    for matrix, its in zip(matrices, gradient, strict=True):
        matrix.grad = its.clone()
    BatchedMuon(matrices, torch.float32, lr=1.0, weight_decay=0.0).step()
    for matrix, its in zip(matrices, gradient, strict=True):
        u, values, v = torch.linalg.svd(its.double(), full_matrices=False)
        values /= values.norm()
        for _ in range(5):  # Jordan's coefficients
            values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
        expected = u @ values.diag() @ v * max(1, shape[0] / shape[1]) ** 0.5
        torch.testing.assert_close(-matrix.double(), expected, rtol=0, atol=1e-4)
