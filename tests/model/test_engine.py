"""The compiled decoder against the definition: logits, pieces, and what it refuses."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common.interface import PAD
from generation.defaults import model_path
from generation.model import load
from model.attention import MultiHeadAttention, attention_weights
from model.config import DecoderConfig
from model.decoding import decoder_of
from model.steps import right_aligned
from tests.runs import python
from tests.tensors import PlainReader, configs, engine_of, opinionated, random_side, side_input

V, C = 40, 18


def assert_equal(decoder, prompts, widths, rng):
    """Read prompts, then windows of these widths, in which a row may be over, both ways."""
    plain, engine = PlainReader(decoder), engine_of(decoder)
    ids, caches = right_aligned(prompts), [None, None]
    is_over = np.zeros(len(prompts), dtype=bool)
    for width in (*widths, 0):
        side = random_side(decoder.config, ids, rng)
        expected, caches[0] = plain.read(ids, side, caches[0])
        logits, caches[1] = engine.read(ids, side, caches[1])
        assert np.abs(logits - expected)[~is_over].max(initial=0) < 1e-4
        ids = rng.integers(1, decoder.config.vocabulary_size, (len(prompts), width))
        is_over |= rng.random(len(prompts)) < 0.1
        ids[is_over] = PAD


@given(configs(V, C), st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_the_engine_is_the_plain_decoder(config, lengths, seed):
    """Any config, prompts of like or different lengths, to the end of the context."""
    rng = np.random.default_rng(seed)
    decoder = opinionated(config, seed, std=0.3)
    for weight in decoder.parameters():
        weight.data += 0.1 * torch.randn_like(weight)  # biases and gains, too
    decoder.temperature.fill_(1.3)
    prompts = [rng.integers(1, V, length) for length in lengths]
    assert_equal(decoder, prompts, [1, 3, 1, 1, C - 6 - max(lengths)], rng)
    assert_windows_equal(decoder, rng)


def assert_windows_equal(decoder, rng):
    """Read whole windows both ways, Pad at the right end; and what the last id attends to."""
    ids = rng.integers(1, decoder.config.vocabulary_size, (2, C))
    ids[1, C // 2 :] = PAD
    side, engine = random_side(decoder.config, ids, rng), engine_of(decoder)
    expected, logits = PlainReader(decoder).logits(ids, side), engine.logits(ids, side)
    assert np.abs(logits - expected)[ids != PAD].max() < 1e-4
    first = side and side.window(0)
    last, maps = engine.explained(ids[:1], first, last=2)
    assert np.abs(last - expected[:1, -1]).max() < 1e-4
    plain = plain_maps(decoder, ids[0], first)
    assert np.abs(maps[:, 0] - plain[:, :, -2:]).max() < 1e-5
    named = engine.attention_maps(ids[0], first)
    assert np.abs(np.stack([*named.values()]) - plain).max() < 1e-5


def plain_maps(decoder, ids, side):
    """What each sub-layer of attention looks at, (A, H, T, T), by the formula."""
    found = []

    def look(layer, inputs):
        query, key, _ = layer.project(*inputs)
        found.append(attention_weights(query, key, causal=True)[0])

    layers = [each for each in decoder.modules() if isinstance(each, MultiHeadAttention)]
    hooks = [layer.register_forward_pre_hook(look) for layer in layers]
    PlainReader(decoder).logits(ids[None], side)
    for hook in hooks:
        hook.remove()
    return np.stack(found)


@pytest.mark.parametrize("name", ["bach", "folk", "pop"])
def test_the_models_that_ship_give_the_plain_logits(name):
    rng = np.random.default_rng(0)
    decoder = decoder_of(load(model_path(name)).network)
    for batch in (1, 3, 8, 64):
        lengths = rng.integers(1, 8, batch)
        prompts = [rng.integers(1, decoder.config.vocabulary_size, length) for length in lengths]
        assert_equal(decoder, prompts, [1, 2, 1], rng)


def test_what_cannot_be_read_leaves_the_cache_as_it_was():
    config = DecoderConfig(V, n_layer=1, n_head=2, n_embd=16, context_length=C, side_blocks=(3,))
    engine = engine_of(opinionated(config, seed=3, std=0.3))

    def beside(ids, columns=3):
        return side_input(np.ones((*ids.shape, columns), dtype=np.int16))

    ids = np.full((2, C), 5)
    ids[1, :4] = PAD
    _, cache = engine.read(ids, beside(ids))
    lengths = cache.length.tolist()
    assert lengths == [C, C - 4]
    one = np.array([[PAD], [7]])
    with pytest.raises(ValueError, match="more tokens than the context holds"):
        engine.read(one[::-1], beside(one), cache)
    for wrong in (-1, V):
        with pytest.raises(ValueError, match="an id that the vocabulary does not have"):
            engine.read(np.array([[PAD], [wrong]]), beside(one), cache)
    for side, words in ((None, "none where it has one"), (beside(one, 4), "features that the")):
        with pytest.raises(ValueError, match=words):
            engine.read(one, side, cache)
    assert cache.length.tolist() == lengths
    engine.read(one, beside(one), cache)  # a row that is over may be full
    assert cache.length.tolist() == [C, C - 3]


AS_PYTHON = """
import numpy as np
from model.config import DecoderConfig
from model.engine import blocks
from tests.tensors import PlainReader, engine_of, opinionated
assert type(blocks).__name__ == "function"
decoder = opinionated(DecoderConfig(9, n_layer=1, n_head=2, n_embd=8), seed=3, std=0.3)
ids = np.array([[0, 5, 3], [2, 7, 8], [0, 0, 4], [0, 3, 3], [1, 1, 1]])
expected, _ = PlainReader(decoder).read(ids)
logits, _ = engine_of(decoder).read(ids)
print(np.abs(logits - expected).max())
"""


def test_without_the_compiler_it_is_the_same_in_python():
    told, errors, _ = python(AS_PYTHON, NUMBA_DISABLE_JIT="1")
    assert not errors
    assert float(told) < 1e-5
