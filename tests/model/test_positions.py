"""Positions: formulas against literals, and what makes rotary positions relative."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from model.positions import Rotary, Sinusoidal, rotate


def test_sinusoidal_is_the_formula_of_the_paper():
    waves = Sinusoidal(n_embd=4, context_length=8)(torch.tensor([0, 3]))
    expected = [[0, 1, 0, 1], [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]]
    torch.testing.assert_close(waves, torch.tensor(expected))


def test_rotary_turns_a_pair_by_its_angle():
    rotation = Rotary(2)(torch.tensor([0, 2]))
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).view(1, 1, 2, 2)
    expected = torch.tensor([[1.0, 0.0], [math.cos(2), math.sin(2)]]).view(1, 1, 2, 2)
    torch.testing.assert_close(rotate(x, rotation), expected)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_rotary_products_depend_on_distance_alone(p, q, shift):
    rotary = Rotary(8)
    generator = torch.Generator().manual_seed(p)
    query, key = torch.randn(2, 1, 1, 1, 8, generator=generator)

    def product(at_query: int, at_key: int) -> torch.Tensor:
        turned = rotate(query, rotary(torch.tensor([at_query])))
        return (turned * rotate(key, rotary(torch.tensor([at_key])))).sum()

    torch.testing.assert_close(product(p, q), product(p + shift, q + shift), atol=1e-4, rtol=1e-4)


def test_rotary_keeps_the_dtype():
    x = torch.randn(1, 1, 2, 4, dtype=torch.bfloat16)
    assert rotate(x, Rotary(4)(torch.arange(2))).dtype == torch.bfloat16
