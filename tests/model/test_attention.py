"""What runs of attention against its formula, which test_notes.py holds to numbers by hand."""

import pytest
import torch

from model.attention import (
    attention_weights,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from model.cpu import causal_bands


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
