"""The lecture notes that the project grew from, number for number, by the code that trains.

Where a note rounds or multiplies wrongly the right number stands here, and why. `printed` is the
tolerance of four printed decimals.
"""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from model.attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
)

printed = partial(torch.testing.assert_close, rtol=0, atol=5.1e-5)
SECOND = 1  # the second word, "is", whose attention note 002 follows


def layer_of(w_query: Tensor, w_key: Tensor, w_value: Tensor) -> MultiHeadAttention:
    """A layer with these projections: (H, d, D), or (d, D) for one head."""
    w_query, w_key, w_value = (w if w.ndim == 3 else w[None] for w in (w_query, w_key, w_value))
    H, d_k, D = w_query.shape
    layer = MultiHeadAttention(D, H, key_width=d_k, value_width=w_value.shape[1])
    stacked = torch.cat([w.flatten(0, 1) for w in (w_query, w_key, w_value)])  # (H d, D) each
    layer.w_qkv.weight.data.copy_(stacked)
    return layer


# Note 002: "Life is short, eat dessert first", d_k = 24 and d_v = 28 on 16-wide words


def sentence() -> Tensor:
    """(1, 6, 16) the embedded words; whatever is drawn next follows from the same seed."""
    torch.manual_seed(123)
    embedding = torch.nn.Embedding(6, 16)
    return embedding(torch.tensor([[0, 4, 5, 2, 1, 3]])).detach()


def projections() -> tuple[Tensor, Tensor, Tensor]:
    return torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)


def test_note_002():
    words, one_head = sentence(), projections()  # and no second seed
    three_heads = torch.rand(3, 24, 16), torch.rand(3, 24, 16), torch.rand(3, 28, 16)
    query, key, value = layer_of(*one_head).project(words)
    scores = query[0, 0, SECOND] @ key[0, 0].T
    printed(scores, torch.tensor([-7.0847, -4.5398, 3.9887, 10.2379, 2.3206, -10.5434]))
    weights = attention_weights(query, key)
    printed(weights[0, 0, SECOND], torch.tensor([0.0185, 0.0312, 0.1778, 0.6368, 0.1265, 0.0092]))
    context = [
        *(-0.9495, -1.4345, -2.0504, -0.3737, -1.5098, -0.5921, -0.4289, -1.9790, -1.7937, -0.7146),
        *(-0.9926, -2.0061, -2.1961, -1.7174, -1.0732, -0.7900, -1.7367, -2.2095, -0.9344, -1.5299),
        *(-0.2828, -0.5350, -1.7285, -1.5485, -0.2043, -0.7109, -1.5165, -1.5167),
    ]
    output = scaled_dot_product_attention(query, key, value)
    printed(output[0, 0, SECOND], torch.tensor(context))

    query, key, value = layer_of(*three_heads).project(words)
    assert query.shape == key.shape == (1, 3, 6, 24)
    assert value.shape == (1, 3, 6, 28)
    first_four = [
        [-0.5317, -1.6069, 1.1446, -1.7651],
        [-1.7130, 0.7300, 0.3016, 1.2672],
        [-0.2142, 0.3233, -0.9046, -1.1118],
    ]
    printed(query[0, :, SECOND, :4], torch.tensor(first_four))


# Note 001: "cat chases mouse", projections that change nothing

WORDS = torch.tensor([[[1.0, 0.0], [0.2, 1.0], [0.8, 0.0]]])
three_decimals = partial(torch.testing.assert_close, rtol=0, atol=0.00051)


def animals() -> MultiHeadAttention:
    layer = layer_of(*[torch.eye(2)] * 3)
    layer.w_o.weight.data.copy_(torch.eye(2))
    return layer


def weights_of(layer, mask=None):
    query, key, _ = layer.project(WORDS, None)
    return attention_weights(query, key, mask, causal=mask is None)


def test_note_001_as_a_decoder():
    # The note rounds its second row loosely (0.35, 0.65; output 0.48, 0.65): 1 / (1 + e^0.594)
    # is 0.356, and 0.356 * 1 + 0.644 * 0.2 = 0.485. Its third row holds.
    weights = [[1, 0, 0], [0.356, 0.644, 0], [0.395, 0.251, 0.353]]
    outputs = [[1, 0], [0.485, 0.644], [0.728, 0.251]]
    layer = animals()
    three_decimals(weights_of(layer)[0, 0], torch.tensor(weights))
    three_decimals(layer(WORDS)[0], torch.tensor(outputs))


def test_note_001_as_an_encoder():
    everything = torch.ones(3, 3, dtype=torch.bool)  # nothing hidden: the first row sees the last
    weights = [[0.410, 0.233, 0.356], [0.264, 0.479, 0.257], [0.395, 0.251, 0.353]]
    outputs = [[0.742, 0.233], [0.566, 0.479], [0.728, 0.251]]
    layer = animals()
    three_decimals(weights_of(layer, everything)[0, 0], torch.tensor(weights))
    three_decimals(layer(WORDS, mask=everything)[0], torch.tensor(outputs))


# Note 003: whole numbers


def test_note_003():
    inputs = torch.tensor([[[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]])
    # the note multiplies rows by its matrices, a layer keeps their transposes
    w_key = torch.tensor([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]).T
    w_query = torch.tensor([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]).T
    w_value = torch.tensor([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]).T
    query, key, value = layer_of(w_query, w_key, w_value).project(inputs)
    assert key[0, 0].tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert query[0, 0].tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert value[0, 0].tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]

    # The note's scores [4, 7, 3] come of multiplying the query by the key matrix untransposed,
    # that is by its columns; a score is the product of the query and one key, a row.
    first = query[0, 0, 0]
    assert (first @ key[0, 0]).tolist() == [4, 7, 3]
    assert (first @ key[0, 0].T).tolist() == [2, 4, 4]

    weights = attention_weights(query, key, scale=1)  # the note does not scale
    three_decimals(weights[0, 0, 0], torch.tensor([0.063, 0.468, 0.468]))
    output = scaled_dot_product_attention(query, key, value, scale=1)
    three_decimals(output[0, 0, 0], torch.tensor([1.937, 6.683, 1.595]))


# Note 004: attention as a soft database, in which a word looks up the words before it


@pytest.mark.parametrize("values_are_keys", [True, False])
def test_note_004(values_are_keys):
    torch.manual_seed(0)
    words = torch.randn(1, 5, 6)
    w_query, w_key = torch.randn(4, 6), torch.randn(4, 6)
    w_value = w_key if values_are_keys else torch.randn(3, 6)
    query, key, value = layer_of(w_query, w_key, w_value).project(words)
    earlier = causal_mask(5, strict=True)
    found = scaled_dot_product_attention(query, key, value, earlier, scale=1)[0, 0]
    assert found[0].eq(0).all()  # an empty database has nothing to give
    for j in range(1, 5):  # softmax(q_j K) V over the words 1 .. j - 1
        scores = [math.exp(float(query[0, 0, j] @ key[0, 0, i])) for i in range(j)]
        mean = sum(s * value[0, 0, i] for i, s in enumerate(scores)) / sum(scores)
        torch.testing.assert_close(found[j], mean)
