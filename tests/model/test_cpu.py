"""Dropout, RMSNorm and squared relu against torch's, and dropout's chances."""

import pytest
import torch
from torch.nn import functional

from model.cpu import BlockDropout, Dropout, RMSNorm, squared_relu


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.9])
def test_dropout_zeroes_its_share_and_keeps_the_mean(dtype, p):
    torch.manual_seed(0)
    x = torch.ones(1001, 999, dtype=dtype, requires_grad=True)  # no multiple of four
    y = Dropout(p)(x)
    assert y.dtype == dtype
    n = x.numel()
    zeros = (y == 0).double()
    spread = (p * (1 - p) / n) ** 0.5
    assert abs(zeros.mean().item() - p) < 5 * spread + 2**-15
    kept = y[y != 0].detach().double()
    assert kept.unique().tolist() == pytest.approx([1 / (1 - p)], rel=5e-3)
    for along in (
        zeros[:, 1:] * zeros[:, :-1],
        zeros[1:] * zeros[:-1],
        zeros[:, 4:] * zeros[:, :-4],
    ):
        assert abs(along.mean().item() - p * p) < 5 * (p / n**0.5)  # neighbors know nothing
    y.backward(torch.full_like(y, 2))
    assert torch.equal(x.grad, 2 * y)


def test_dropout_follows_torchs_seed():
    x = torch.ones(64, 64)
    layer = Dropout(0.5)
    drawn = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        drawn.append(layer(x))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), x)


def test_dropout_takes_numbers_that_do_not_lie_in_order():
    x = torch.arange(1.0, 13).view(3, 4).T.requires_grad_()
    y = Dropout(0.5)(x)
    assert torch.equal(y[y != 0], 2 * x[y != 0])
    y.sum().backward()
    assert torch.equal(x.grad != 0, y != 0)


@pytest.mark.parametrize("gain", [False, True])
def test_rms_norm_is_torchs(gain):
    torch.manual_seed(0)
    ours, theirs = RMSNorm(6, elementwise_affine=gain), torch.nn.RMSNorm(6, elementwise_affine=gain)
    for layer in (ours, theirs):
        for weight in layer.parameters():
            weight.data = torch.arange(1.0, 7)
    x = torch.randn(4, 5, 6)
    x[0, 0] = 0  # eps alone keeps it finite
    results = []
    for layer in (ours, theirs):
        inputs = [x.clone().requires_grad_(), *layer.parameters()]
        y = layer(inputs[0])
        results.append([y, *torch.autograd.grad((y**3).sum(), inputs)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_squared_relu_is_relu_squared():
    x = torch.linspace(-2, 2, 9, requires_grad=True)
    y = squared_relu(x)
    assert torch.equal(y, functional.relu(x).square())
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(slope, 2 * functional.relu(x))


def test_blocks_drop_out_whole_and_what_is_kept_keeps_the_mean():
    torch.manual_seed(0)
    layer = BlockDropout((2, 1, 3), 0.25)
    x = torch.ones(100, 40, 6)
    y = layer.train()(x)
    kept = y != 0
    assert y.unique().tolist() == pytest.approx([0.0, 4 / 3])
    for block in (slice(0, 2), slice(3, 6)):
        assert (kept[..., block].all(dim=-1) == kept[..., block].any(dim=-1)).all()
    shares = kept[..., [0, 2, 3]].float().mean(dim=(0, 1))
    torch.testing.assert_close(shares, torch.full((3,), 0.75), atol=0.03, rtol=0)
    assert (kept[..., 0] != kept[..., 2]).any()
    assert layer.eval()(x) is x
    assert BlockDropout((), 0.25).train()(x) is x  # blocks are not told
