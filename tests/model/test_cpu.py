"""What is faster on a CPU against plain PyTorch: values and gradients, and dropout's chances."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from model.config import DecoderConfig
from model.cpu import FastDropout, speed_up
from tests.tensors import configs, opinionated, random_side

V, C = 13, 16


@given(configs(V, C), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_a_decoder_sped_up_is_the_plain_one(config, seed):
    """Logits and the gradient of every weight, by name."""
    plain = opinionated(config, seed, std=0.3).train()
    fast = copy.deepcopy(plain)
    speed_up(fast)
    ids = torch.randint(V, (2, C))
    side = random_side(config, ids.numpy(), np.random.default_rng(seed))
    side = side and side.map(torch.from_numpy)
    logits, gradients = [], []
    for decoder in (plain, fast):
        logits.append(decoder(ids, side))
        weights = dict(decoder.named_parameters())
        loss = logits[-1].logsumexp(-1)[:, 5:].square().sum()
        found = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        gradients.append(dict(zip(weights, found, strict=True)))
    torch.testing.assert_close(logits[1], logits[0], rtol=1e-3, atol=1e-4)
    assert list(gradients[0]) == list(gradients[1])
    for name, gradient in gradients[0].items():
        if gradient is not None:
            close = {"rtol": 1e-2, "atol": 1e-3, "msg": name}
            torch.testing.assert_close(gradients[1][name], gradient, **close)
    with torch.no_grad():
        logits = [decoder(ids, side) for decoder in (plain, fast)]
    torch.testing.assert_close(logits[1], logits[0], rtol=1e-3, atol=1e-4)


def test_speeding_up_keeps_names_weights_and_mode_and_can_be_done_twice():
    config = DecoderConfig(V, n_layer=1, n_head=2, n_embd=16, context_length=C, dropout=0.1)
    plain = opinionated(config, seed=0, std=0.3).train()
    before = dict(plain.named_parameters())
    state = torch.get_rng_state()
    for _ in range(2):
        speed_up(plain)
        assert torch.equal(torch.get_rng_state(), state)
        after = dict(plain.named_parameters())
        assert list(after) == list(before)
        assert all(after[name] is weight for name, weight in before.items())
        kinds = [type(module) for module in plain.modules()]
        assert nn.Dropout not in kinds
        assert nn.RMSNorm not in kinds
        assert all(module.training for module in plain.modules())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.9])
def test_dropout_zeroes_its_share_and_keeps_the_mean(dtype, p):
    torch.manual_seed(0)
    x = torch.ones(1001, 999, dtype=dtype, requires_grad=True)  # no multiple of four
    y = FastDropout(p)(x)
    assert y.dtype == dtype
    n = x.numel()
    zeros = (y == 0).double()
    spread = (p * (1 - p) / n) ** 0.5
    assert abs(zeros.mean().item() - p) < 5 * spread + 2**-15
    kept = y[y != 0].detach().double()
    assert kept.unique().tolist() == pytest.approx([1 / (1 - p)], rel=5e-3)
    for apart in (1, 4):  # neighbors know nothing
        both = zeros[:, apart:] * zeros[:, :-apart]
        assert abs(both.mean().item() - p * p) < 5 * (p / n**0.5)
    y.backward(torch.full_like(y, 2))
    assert torch.equal(x.grad, 2 * y)


def test_dropout_follows_torchs_seed():
    x = torch.ones(64, 64)
    layer = FastDropout(0.5)
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        drawn.append(layer(x))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), x)
