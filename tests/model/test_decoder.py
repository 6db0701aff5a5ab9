"""The decoder: causality, rows that do not meet, torch's own layers, errors.

All of its formulas stand once more in the engine, to which test_engine.py holds them.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.attention import causal_mask
from model.config import DecoderConfig
from model.decoder import Block, Decoder
from model.positions import Rotary, rotate
from tests.tensors import opinionated

V, C = 13, 16


CLASSIC = {
    "n_attention": 2,
    "positions": "sinusoidal",
    "norm": "layer",
    "norm_position": "post",
    "activation": "relu",
    "qk_norm": False,
    "bias": True,
}
# Every value of every choice stands in one of these.
VARIANTS = [
    {},
    CLASSIC,
    {"n_attention": 2},
    {"norm": "layer", "bias": True},
    {"positions": "sinusoidal", "norm_position": "post", "qk_norm": False},
]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=range(len(VARIANTS)))


def make(seed: int = 0, **changes: int | float | str) -> Decoder:
    """A tiny decoder in evaluation mode, none of whose weights are zero."""
    options = {"n_layer": 2, "n_head": 2, "n_embd": 16, "context_length": C} | changes
    return opinionated(DecoderConfig(V, **options), seed, std=0.2)


def test_an_untrained_decoder_finds_all_tokens_equally_likely():
    decoder = Decoder(DecoderConfig(V, n_layer=1, n_head=1, n_embd=8))
    assert torch.equal(decoder(torch.randint(V, (2, 5))), torch.zeros(2, 5, V))


@every_variant
@given(place=st.integers(0, C - 1), token=st.integers(0, V - 1))
@settings(max_examples=20, deadline=None)
def test_a_later_token_changes_no_earlier_logit(variant, place, token):
    decoder = make(**variant)
    ids = torch.arange(C).remainder(V)[None]
    changed = ids.clone()
    changed[0, place] = token
    before, after = decoder(ids), decoder(changed)
    torch.testing.assert_close(before[:, :place], after[:, :place])
    assert token == ids[0, place] or not torch.allclose(before[:, place], after[:, place])


def test_dropout_acts_in_training_only():
    decoder = make(dropout=0.5)
    ids = torch.randint(V, (1, 8))
    assert torch.equal(decoder(ids), decoder(ids))
    decoder.train()
    assert not torch.equal(decoder(ids), decoder(ids))


def test_rotary_keeps_the_dtype():
    x = torch.randn(1, 1, 2, 4, dtype=torch.bfloat16)
    assert rotate(x, Rotary(4)(torch.arange(2))).dtype == torch.bfloat16


def test_too_long_a_sequence_says_so():
    decoder = make()
    with pytest.raises(ValueError, match="17 tokens are too many: the context length is 16"):
        decoder(torch.zeros(1, C + 1, dtype=torch.long))


# Against torch's own layers, weight for weight


def encoder_layer(config: DecoderConfig, block: Block) -> torch.nn.TransformerEncoderLayer:
    """torch's layer with one attention, holding the weights of ours."""
    layer = torch.nn.TransformerEncoderLayer(
        config.n_embd,
        config.n_head,
        dim_feedforward=4 * config.n_embd,
        dropout=0,
        activation=config.activation,
        batch_first=True,
        norm_first=config.norm_position == "pre",
    ).eval()
    attention, feed_forward = block.attention[0], block.feed_forward
    torch.nn.init.zeros_(layer.self_attn.in_proj_bias)
    torch.nn.init.zeros_(layer.self_attn.out_proj.bias)
    layer.self_attn.in_proj_weight.data = attention.layer.w_qkv.weight.data
    layer.self_attn.out_proj.weight.data = attention.layer.w_o.weight.data
    layer.linear1, layer.linear2 = feed_forward.layer.w_1, feed_forward.layer.w_2
    layer.norm1, layer.norm2 = attention.norm, feed_forward.norm
    return layer


@pytest.mark.parametrize("norm_position", ["pre", "post"])
def test_the_block_of_the_paper_is_torchs(norm_position):
    decoder = make(**CLASSIC | {"n_attention": 1, "norm_position": norm_position})
    block = decoder.blocks[0]
    for name, weight in block.named_parameters():
        if weight.ndim == 1:  # gains and biases that are not 1 and 0
            torch.nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.3)
    x = torch.randn(2, 7, 16)
    theirs = encoder_layer(decoder.config, block)(x, src_mask=~causal_mask(7))
    torch.testing.assert_close(block(x), theirs, rtol=1e-4, atol=1e-5)
