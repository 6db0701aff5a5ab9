"""Attention against numbers worked out by hand, torch's own, and its masks' meaning."""

import math

import pytest
import torch

from model.attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from model.cpu import causal_bands
from model.positions import Rotary


def test_weights_worked_out_by_hand():
    query = torch.tensor([[math.sqrt(2) * math.log(3), 0.0]])
    key = torch.tensor([[1.0, 5.0], [0.0, 5.0]])
    # scores ln 3 and 0: weights 3/4 and 1/4
    torch.testing.assert_close(attention_weights(query, key), torch.tensor([[0.75, 0.25]]))
    value = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]])  # d_v is not d_k
    output = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, torch.tensor([[3.0, 1.0, 8.0]]))


@pytest.mark.parametrize("function", [scaled_dot_product_attention, causal_bands])
def test_who_may_see_nothing_gets_zero_and_no_gradient(function):
    query = torch.randn(2, 4, 3, requires_grad=True)
    key, value = torch.randn(2, 4, 3, requires_grad=True), torch.randn(2, 4, 3)
    earlier = causal_mask(4, strict=True)  # the first has none
    output = function(query, key, value, earlier)
    assert torch.equal(output[:, 0], torch.zeros(2, 3))
    output.sum().backward()
    assert query.grad is not None
    assert key.grad is not None
    assert torch.equal(query.grad[:, 0], torch.zeros(2, 3))
    assert key.grad.isfinite().all()


@pytest.mark.parametrize("function", [scaled_dot_product_attention, causal_bands])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask_of", ["none", "strict", "padding"])
@pytest.mark.parametrize("length", [1, 6, 128, 300])
def test_what_runs_is_the_formula(function, causal, mask_of, length):
    """Values and gradients, rows that see nothing included."""
    torch.manual_seed(0)
    shapes = ((2, 3, length, 4), (2, 3, length, 4), (2, 3, length, 5))
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    is_token = torch.arange(length) >= torch.tensor([[0], [3]])  # early queries are blind
    masks = {
        "none": None,
        "strict": causal_mask(length, strict=True),
        "padding": padding_mask(is_token),
    }
    options = {"mask": masks[mask_of], "causal": causal, "scale": 0.7}
    results = []
    for output in (
        attention_weights(*inputs[:2], **options) @ inputs[2],
        function(*inputs, **options),
    ):
        results.append([output, *torch.autograd.grad(output.square().sum(), inputs)])
    for by_formula, given in zip(*results, strict=True):
        torch.testing.assert_close(given, by_formula, rtol=1e-4, atol=1e-4)


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return MultiHeadAttention(n_embd=16, n_head=4, qk_norm=True)


def test_heads_are_attention_side_by_side(layer):
    rotation = Rotary(4)(torch.zeros(5, dtype=torch.long))  # all at position 0: no turning
    x = torch.randn(2, 5, 16)
    w_query, w_key, w_value = layer.w_qkv.weight.split(16)
    heads = []
    for head in range(4):
        rows = slice(4 * head, 4 * head + 4)
        query, key = x @ w_query[rows].T, x @ w_key[rows].T
        query = query / query.square().mean(-1, keepdim=True).sqrt()
        key = key / key.square().mean(-1, keepdim=True).sqrt()
        scores = (query @ key.mT / 2).masked_fill(~causal_mask(5, x.device), -math.inf)
        heads.append(scores.softmax(-1) @ (x @ w_value[rows].T))
    expected = torch.cat(heads, dim=-1) @ layer.w_o.weight.T
    torch.testing.assert_close(layer(x, rotation), expected, atol=1e-5, rtol=1e-4)
