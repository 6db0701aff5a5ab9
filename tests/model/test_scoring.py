"""Nats per token against a slow reading, and what makes them a probability."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import PlainSteps
from model.scoring import Tally, hits_by_kind, score_tokens, summarize, token_nats
from tests.tensors import last_half, opinionated

START, END, V, C = 1, 2, 7, 8


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    config = DecoderConfig(V, n_layer=2, n_head=2, n_embd=16, context_length=C)
    return opinionated(config, seed=5, std=0.5)


def from_a_three(history: np.ndarray) -> np.ndarray:
    """From the last 3 that leaves half a context, 6 put in after it: as bars and tempo would."""
    begins = [i for i in np.flatnonzero(history == 3) if C // 2 <= len(history) - i <= C - 2]
    begin = begins[-1] if begins else len(history) - C // 2
    return np.concatenate((history[begin : begin + 1], [6], history[begin + 1 :]))


def draw(length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A piece of `length` tokens and masks that admit it."""
    rng = np.random.default_rng(seed)
    piece = np.concatenate(([START], rng.integers(3, V, length - 2), [END]))
    allowed = rng.random((length - 1, V)) < 0.5
    allowed[np.arange(length - 1), piece[1:]] = True
    return piece, allowed


def slowly(decoder, piece, allowed, rebase) -> list[float]:
    """One token at a time, in the words of the definition."""
    nats, context = [], [int(piece[0])]
    for i in range(1, len(piece)):
        if len(context) > C:
            context = [int(token) for token in rebase(piece[:i])]
        with torch.no_grad():
            logits = decoder(torch.tensor([context]))[0, -1].double()
        admitted = logits[torch.from_numpy(allowed[i - 1])]
        nats.append(float(admitted.logsumexp(0) - logits[piece[i]]))
        context.append(int(piece[i]))
    return nats


@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=5),
    st.integers(0, 99),
    st.sampled_from([last_half(C), from_a_three]),
    st.sampled_from([1, 20, 8192]),
)
@settings(max_examples=25, deadline=None)
def test_every_token_has_the_nats_of_the_slow_reading(decoder, lengths, seed, rebase, size):
    drawn = [draw(length, seed + i) for i, length in enumerate(lengths)]
    pieces, allowed = [d[0] for d in drawn], [d[1] for d in drawn]
    fast = score_tokens(PlainSteps(decoder), pieces, allowed, rebase=rebase, batch_tokens=size)
    for (nats, _), piece, mask in zip(fast, pieces, allowed, strict=True):
        assert nats.shape == (1, len(piece) - 1)
        assert nats.dtype == np.float64
        np.testing.assert_allclose(nats[0], slowly(decoder, piece, mask, rebase), atol=1e-4)


def test_the_likeliest_is_so_among_what_the_grammar_admits():
    plain = Decoder(DecoderConfig(V, n_layer=1, n_head=1, n_embd=8, context_length=C)).eval()
    with torch.no_grad():  # whatever it reads, ids are the likelier the higher they are
        plain.embedding.weight.copy_(torch.ones(V, 8))
        plain.head.weight.copy_(torch.arange(V)[:, None].expand(V, 8) / 8.0)
    piece = np.array([START, 3, 6, 4, END])
    allowed = np.zeros((4, V), dtype=bool)
    for mask, admitted in zip(allowed, ([3, 4], [5, 6], [3, 4], [END]), strict=True):
        mask[admitted] = True
    (scores,) = score_tokens(PlainSteps(plain), [piece], [allowed], rebase=last_half(C))
    assert scores.is_likeliest.tolist() == [False, True, True, True]
    kinds = np.array([0, 0, 1, 2, 2, 2, 2])[piece[1:]]
    hits = hits_by_kind(scores.is_likeliest, kinds, n_kinds=3)
    assert hits.tolist() == [[0, 1, 2], [0, 1, 3]]


def test_errors_say_what_is_wrong(decoder):
    piece, allowed = draw(20, 0)

    def score(mask: np.ndarray, keep: int = C // 2) -> None:
        token_nats(PlainSteps(decoder), [piece], [mask], rebase=lambda history: history[-keep:])

    forbidden = allowed.copy()
    forbidden[6, piece[7]] = False
    with pytest.raises(ValueError, match=f"piece 0: token 7, id {piece[7]}, is not allowed"):
        score(forbidden)
    with pytest.raises(ValueError, match=r"allowed is \(18, 7\), not \(19, 7\)"):
        score(allowed[1:])
    with pytest.raises(ValueError, match="rebase gave 3 tokens"):
        score(allowed, keep=3)
    with pytest.raises(ValueError, match="rebase gave 8 tokens"):
        score(allowed, keep=C)
    with pytest.raises(ValueError, match="training mode"):
        token_nats(PlainSteps(Decoder(decoder.config)), [piece], [allowed], rebase=last_half(C))


def test_a_tally_adds_up():
    tally = summarize(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), n_notes=2, n_kinds=4)
    assert tally.per_note == 3.5
    assert tally.per_token == pytest.approx(7 / 3)
    assert tally.by_kind == [1.0, 0.0, 2.5, 0.0]
    both = tally + summarize(np.array([9.0]), np.array([1]), n_notes=0, n_kinds=4)
    assert (both.per_note, both.per_token, both.counts.tolist()) == (8.0, 4.0, [1, 1, 2, 0])
    assert math.isnan(Tally(np.zeros(2), np.zeros(2, dtype=np.int64), 0).per_note)
