"""The decoder: causality, rows that do not meet, the cache, learning, errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from model.decoder import Decoder, DecoderConfig
from tests.tensors import opinionated

V, C = 13, 16


def make(seed: int = 0, **changes: int | float) -> Decoder:
    """A tiny decoder in evaluation mode, none of whose weights are zero."""
    options = {"n_layer": 2, "n_head": 2, "n_embd": 16, "context_length": C} | changes
    return opinionated(DecoderConfig(V, **options), seed, std=0.2)


def test_an_untrained_decoder_finds_all_tokens_equally_likely():
    decoder = Decoder(DecoderConfig(V, n_layer=1, n_head=1, n_embd=8))
    assert torch.equal(decoder(torch.randint(V, (2, 5))), torch.zeros(2, 5, V))


@given(st.integers(0, C - 1), st.integers(0, V - 1))
@settings(max_examples=30, deadline=None)
def test_a_later_token_changes_no_earlier_logit(place, token):
    decoder = make()
    ids = torch.arange(C).remainder(V)[None]
    changed = ids.clone()
    changed[0, place] = token
    before, after = decoder(ids), decoder(changed)
    torch.testing.assert_close(before[:, :place], after[:, :place])
    assert token == ids[0, place] or not torch.allclose(before[:, place], after[:, place])


def test_rows_of_a_batch_do_not_meet():
    decoder = make()
    ids = torch.randint(V, (4, C))
    alone = torch.cat([decoder(row[None]) for row in ids])
    torch.testing.assert_close(decoder(ids), alone)


def test_order_matters():
    decoder = make()
    one, other = decoder(torch.tensor([[1, 2, 3, 4]])), decoder(torch.tensor([[2, 1, 3, 4]]))
    assert not torch.allclose(one[:, -1], other[:, -1])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_with_a_cache_in_any_portions_the_logits_are_the_same(portions):
    decoder = make()
    ids = torch.randint(V, (2, min(sum(portions), C)), generator=torch.Generator().manual_seed(1))
    cache = decoder.empty_cache(torch.zeros(2, dtype=torch.long))
    parts = [decoder(part, cache) for part in ids.split(portions[0], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), decoder(ids))


def test_left_padding_in_the_cache_leaves_each_row_as_if_alone():
    decoder = make()
    ids = torch.randint(V, (3, 9))
    start = torch.tensor([0, 4, 7])
    for portions in ((9,), (8, 1), (3, 3, 3)):
        cache = decoder.empty_cache(start)
        parts = [decoder(part, cache) for part in ids.split(portions, dim=1)]
        logits = torch.cat(parts, dim=1)
        assert logits.isfinite().all()
        for row, skip in enumerate(start.tolist()):
            alone = decoder(ids[row : row + 1, skip:])
            torch.testing.assert_close(logits[row : row + 1, skip:], alone)


def test_a_mask_replaces_causality():
    decoder = make()
    ids = torch.randint(V, (2, 6))
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    torch.testing.assert_close(decoder(ids, mask=causal), decoder(ids))
    everything = torch.ones(6, 6, dtype=torch.bool)
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % V
    first, then = decoder(ids, mask=everything), decoder(changed, mask=everything)
    assert not torch.allclose(first[:, 0], then[:, 0])  # the first token sees the last


def test_a_batch_is_learnt_by_heart():
    decoder = make(dropout=0.0).train()
    optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
    ids = torch.randint(V, (4, C))
    for _ in range(150):
        logits = decoder(ids[:, :-1])
        loss = functional.cross_entropy(logits[:, 3:].flatten(0, 1), ids[:, 4:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.01


def test_dropout_acts_in_training_only():
    decoder = make(dropout=0.5)
    ids = torch.randint(V, (1, 8))
    assert torch.equal(decoder(ids), decoder(ids))
    decoder.train()
    assert not torch.equal(decoder(ids), decoder(ids))


def test_too_long_a_sequence_says_so():
    decoder = make()
    with pytest.raises(ValueError, match="17 tokens are too many: the context length is 16"):
        decoder(torch.zeros(1, C + 1, dtype=torch.long))
    cache = decoder.empty_cache(torch.zeros(1, dtype=torch.long))
    decoder(torch.zeros(1, C, dtype=torch.long), cache)
    with pytest.raises(ValueError, match="17 tokens are too many"):
        decoder(torch.zeros(1, 1, dtype=torch.long), cache)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_layer": 0}, "n_layer must be a whole number"),
        ({"context_length": 10**9}, "context_length must be"),
        ({"n_embd": 18}, "n_embd must be n_head times an even number"),
        ({"n_head": 2.0}, "n_head must be a whole number"),
        ({"dropout": 1.0}, "dropout must be"),
        ({"dropout": float("nan")}, "dropout must be"),
    ],
)
def test_impossible_configs_are_refused_by_name(changes, words):
    with pytest.raises(ValueError, match=words):
        DecoderConfig(V, **({"n_head": 2, "n_embd": 16} | changes))
