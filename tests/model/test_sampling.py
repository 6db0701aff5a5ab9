"""Filters against literals; sampling against a slow loop with neither cache nor padding."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.interface import SideInput
from model.config import DecoderConfig, SamplingOptions
from model.decoder import Decoder
from model.sampling import choose, sample
from model.temperature import allowed_alone, keep_min_p, keep_top_k, keep_top_p
from tests.tensors import PlainReader, engine_of, opinionated, side_input

PAD, START, END, V, C = 0, 1, 2, 9, 12
OUT = -math.inf


@dataclass
class CountState:
    last: np.ndarray  # (B,) the last id
    count: np.ndarray  # (B,) ids since Start


class CountGrammar:
    """Start, then ids of 3..8, never the same twice running, End from `least` to `most` on."""

    guidance = 0.0

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def start(self, batch: int) -> CountState:
        return CountState(np.full(batch, -1), np.full(batch, -1))

    def allowed(self, state: CountState) -> np.ndarray:
        mask = np.zeros((len(state.last), V), dtype=bool)
        mask[:, 3:] = True
        mask[:, END] = state.count >= self.least
        mask[state.count >= self.most, 3:] = False
        rows = np.arange(len(mask))
        mask[rows[state.last >= 3], state.last[state.last >= 3]] = False
        mask[state.last == -1] = np.arange(V) == START
        mask[np.isin(state.last, (END, PAD))] = np.arange(V) == PAD
        return mask

    def advance(self, state: CountState, ids: np.ndarray) -> None:
        assert self.allowed(state)[np.arange(len(ids)), ids].all(), "a token that is not allowed"
        state.last[:] = ids
        state.count += 1

    def after(self, prompts: list[np.ndarray]) -> CountState:
        """The state after prompts of different lengths: each row advanced by itself."""
        last, count = [], []
        for prompt in prompts:
            row = self.start(1)
            for token in prompt:
                self.advance(row, np.array([token]))
            last.append(row.last[0])
            count.append(row.count[0])
        return CountState(np.array(last), np.array(count))


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    config = DecoderConfig(V, n_layer=2, n_head=2, n_embd=16, context_length=C)
    return opinionated(config, seed=3, std=0.3)


PROMPTS = [np.array([START, 5, 3]), np.array([START]), np.array([START, 3, 4, 5, 6, 7])]
LONG = np.array([START, *([3, 4] * C)])  # which no context holds


# Filters


def test_top_k_keeps_the_k_largest_and_ties():
    weight = np.array([[1.0, 3.0, 2.0, 2.0], [4.0, 1.0, 2.0, 3.0]])
    assert keep_top_k(weight, 2).tolist() == [[0, 3.0, 2.0, 2.0], [4.0, 0, 0, 3.0]]
    assert np.array_equal(keep_top_k(weight, 99), weight)


def test_top_p_keeps_the_least_set_that_reaches_p():
    weight = np.array([[0.1, 0.5, 0.15, 0.25]])
    kept = {p: (keep_top_p(weight, p) > 0).tolist()[0] for p in (1e-9, 0.4, 0.6, 0.8, 1.0)}
    assert kept[1e-9] == kept[0.4] == [False, True, False, False]
    assert kept[0.6] == [False, True, False, True]
    assert kept[0.8] == [False, True, True, True]
    assert kept[1.0] == [True, True, True, True]
    assert keep_top_p(weight, 0.6).tolist() == [[0, 0.5, 0, 0.25]]
    assert keep_top_p(np.array([[0.2, 0.4, 0.2, 0.2]]), 0.5).all()  # ties


def test_min_p_keeps_what_is_near_the_likeliest():
    weight = np.array([[0.1, 0.5, 0.15, 0.25]])
    assert keep_min_p(weight, 0.4).tolist() == [[0, 0.5, 0, 0.25]]
    assert np.array_equal(keep_min_p(weight, 0), weight)
    assert np.count_nonzero(keep_min_p(weight, 1)) == 1


def test_a_row_without_a_way_on_is_named():
    allowed = np.array([[True, False], [False, False]])
    with pytest.raises(ValueError, match="nothing is allowed to come next in row 1"):
        allowed_alone(np.zeros((2, 2)), allowed)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_choose_nothing(bad):
    allowed = np.array([[True, True, True], [False, True, True]])
    logits = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, bad]])
    with pytest.raises(ValueError, match="the logits of row 1 are not finite"):
        allowed_alone(logits, allowed)
    logits[1] = bad, 1.0, 0.0  # what is not allowed may be anything
    few, ids = allowed_alone(logits, allowed)
    assert few.tolist() == [[0.0, 1.0, 2.0], [1.0, 0.0, OUT]]
    assert ids.tolist() == [[0, 1, 2], [1, 2, 0]]


def test_the_inverse_of_the_distribution():
    logits = np.log(np.tile([0.25, 1e-300, 0.5, 0.25], (6, 1)))
    logits[:, 1] = OUT
    uniform = np.array([0.0, 0.2499, 0.2501, 0.7499, 0.7501, 1 - 2**-53])
    assert choose(logits, SamplingOptions(), uniform).tolist() == [0, 0, 2, 2, 3, 3]
    assert choose(logits, SamplingOptions(temperature=0), uniform).tolist() == [2] * 6
    assert choose(logits, SamplingOptions(temperature=1e-6), uniform).tolist() == [2] * 6


@given(
    st.lists(st.floats(-50, 50), min_size=V, max_size=V),
    st.lists(st.booleans(), min_size=V, max_size=V).filter(any),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([0, 0.01, 0.7, 1, 5]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([0.01, 0.9, 1]),
    st.sampled_from([0, 0.1, 1]),
)
def test_no_choice_ever_takes_what_is_masked(logits, allowed, u, temperature, k, p, min_p):
    few, (ids,) = allowed_alone(np.array([logits], dtype=np.float32), np.array([allowed]))
    sampling = SamplingOptions(temperature, k, p, min_p)
    assert allowed[ids[choose(few, sampling, np.array([u]))[0]]]


# Reading


@pytest.mark.parametrize(("has", "given"), [(3, None), (0, 3)])
def test_a_side_input_amiss_is_refused(has, given):
    decoder = Decoder(DecoderConfig(V, n_layer=1, n_head=1, n_embd=4, side_blocks=(has,)))
    side = None if given is None else side_input(torch.zeros(1, 4, given, dtype=torch.bool))
    with pytest.raises(ValueError, match="a side input where the decoder has none, or none where"):
        decoder(torch.tensor([[5, 6, 7, 8]]), side=side)


# Sampling


def a_few(history: np.ndarray) -> np.ndarray:
    """A `rebase` whose prompts differ in length from row to row."""
    return history[-4 - int(history[-1]) % 3 :]


def slow_sample(decoder, prompts, grammar, generator, sampling, max_tokens):
    """What `sample` yields, each row read alone from the start at every step."""
    state = grammar.after(prompts)
    rows = [list(map(int, prompt)) for prompt in prompts]
    windows = [list(row) for row in rows]
    over = [False] * len(rows)
    while not all(over) and max_tokens:
        max_tokens -= 1
        if max(map(len, windows)) > C:
            windows = [row[-1:] if end else list(row) for row, end in zip(rows, over, strict=True)]
            windows = [w if len(w) <= C // 2 else list(a_few(np.array(w))) for w in windows]
        with torch.no_grad():
            logits = torch.stack([decoder(torch.tensor([w]))[0, -1] for w in windows])
        logits[~torch.from_numpy(grammar.allowed(state))] = OUT
        ids = choose(logits.numpy(), sampling, generator.random(len(rows)))
        grammar.advance(state, ids)
        for row, token in enumerate(ids):
            windows[row].append(int(token))
            if not over[row]:
                rows[row].append(int(token))
            over[row] = over[row] or token == END
        yield ids


def sampled(steps, prompts, grammar, **options):
    """What `sample` yields after prompts, as it yields it; a decoder is read as it is."""
    steps = PlainReader(steps) if isinstance(steps, Decoder) else steps
    generator = np.random.default_rng(0)
    return sample(steps, prompts, grammar, grammar.after(prompts), generator=generator, **options)


@pytest.mark.parametrize(
    "sampling",
    [SamplingOptions(0), SamplingOptions(), SamplingOptions(5), SamplingOptions(1.3, 5, 0.9, 0.02)],
)
@pytest.mark.parametrize(
    ("grammar", "prompts"),
    [(CountGrammar(2, 8), PROMPTS), (CountGrammar(30, 40), [*PROMPTS, LONG])],
)
@pytest.mark.parametrize("reading", [PlainReader, engine_of])
def test_sampling_with_and_without_the_cache_agree(decoder, sampling, grammar, prompts, reading):
    """Rows that end and rows that do not, within half a context and past it, each by itself."""
    fast = sampled(reading(decoder), prompts, grammar, sampling=sampling, rebase=a_few)
    fast = np.array(list(itertools.islice(fast, 60)))
    generator = np.random.default_rng(0)
    slow = np.array(list(slow_sample(decoder, prompts, grammar, generator, sampling, 60)))
    assert np.array_equal(fast, slow)
    assert grammar.most == 8 or len(fast) > C  # the longer ones went past the context


class TellingGrammar(CountGrammar):
    """A grammar that says beside each id which it is, and then nothing beside the same rows."""

    guidance = 1.5

    def side(self, state: CountState, ids: np.ndarray) -> SideInput:
        bits = (ids[..., None] >> np.arange(3)) % 2
        return side_input(np.concatenate([bits, 0 * bits]).astype(np.int16))


@pytest.mark.parametrize("reading", [PlainReader, engine_of])
def test_rows_that_begin_alike_are_those_that_are_read_one_by_one(decoder, reading):
    prompts = [prompt for prompt in PROMPTS for _ in range(3)]
    how = {"sampling": SamplingOptions(1.3), "rebase": a_few}
    one, once = (
        np.array(list(sampled(reading(decoder), prompts, CountGrammar(20, 40), **how, **copies)))
        for copies in ({}, {"copies": 3})
    )
    np.testing.assert_array_equal(once, one)
    assert len({*map(tuple, one.T)}) == len(prompts)  # they go on in their own ways


@pytest.mark.parametrize("reading", [PlainReader, engine_of])
def test_guidance_leads_away_from_what_the_untold_rows_do(reading):
    config = DecoderConfig(V, n_layer=2, n_head=2, n_embd=16, context_length=C, side_blocks=(3,))
    decoder, grammar = opinionated(config, seed=3, std=0.3), TellingGrammar(20, 40)

    def guided(ids):
        side = grammar.side(None, ids.numpy()).map(torch.from_numpy)
        told, untold = decoder(ids.repeat(2, 1), side=side)
        return (told + 1.5 * (told - untold))[None]

    fast = np.array(list(sampled(reading(decoder), PROMPTS, grammar, rebase=a_few)))
    generator = np.random.default_rng(0)
    slow = slow_sample(guided, PROMPTS, grammar, generator, SamplingOptions(), 60)
    assert np.array_equal(fast, np.array(list(slow)))
    assert len(fast) > C  # past the context


class MostlyForced(CountGrammar):
    """A grammar that leaves a choice in the first place and in the sixth."""

    def allowed(self, state: CountState) -> np.ndarray:
        mask = super().allowed(state)
        is_forced = (state.count != 0) & (state.count != 5)
        mask[is_forced & mask[:, 3] & (state.last >= 0)] = np.arange(V) == 3
        mask[is_forced & mask[:, 4] & ~mask[:, 3]] = np.arange(V) == 4
        return mask


def test_where_there_is_no_choice_the_decoder_is_asked_only_if_there_is_one_later(decoder):
    grammar, prompts, asked = MostlyForced(20, 20), [np.array([START])] * 2, []

    class Watched(PlainReader):
        def read(self, ids, side=None, cache=None):
            asked.append(ids.shape)
            return super().read(ids, side, cache)

    new = sampled(Watched(decoder), prompts, grammar)
    fast = np.array([next(new) for _ in range(C - 1)])
    generator = np.random.default_rng(0)
    slow = list(slow_sample(decoder, prompts, grammar, generator, SamplingOptions(), C - 1))
    assert np.array_equal(fast, slow)
    assert asked == [(2, 1), (2, 5)]  # the five at once, and nothing after the last choice


@pytest.mark.parametrize("prompts", [[], [PROMPTS[0], np.array([], dtype=int)]])
def test_an_empty_prompt_is_an_error(decoder, prompts):
    new = sample(PlainReader(decoder), prompts, CountGrammar(1, 2), None, generator=None)
    with pytest.raises(ValueError, match="at least one token"):
        next(new)


def test_what_is_forgotten_takes_no_memory(decoder):
    seen = []

    def watch(history: np.ndarray) -> np.ndarray:
        seen.append(len(history))
        return a_few(history)

    grammar = CountGrammar(10 * C, 10 * C)
    new = sampled(decoder, PROMPTS[:1], grammar, rebase=watch)
    assert len(list(new)) > 9 * C
    assert len(seen) > 9
    assert max(seen) == C + 1  # the context and the id that did not fit in


def test_a_full_context_without_a_rebase_is_an_error(decoder):
    grammar = CountGrammar(50, 60)
    steps = sampled(decoder, PROMPTS, grammar)
    with pytest.raises(ValueError, match="context of 12 tokens is full"):
        list(steps)


def test_a_rebase_that_does_not_shorten_is_an_error(decoder):
    grammar = CountGrammar(50, 60)
    steps = sampled(decoder, PROMPTS, grammar, rebase=lambda history: history)
    with pytest.raises(ValueError, match=r"rebase gave \d+ tokens, not 1 to 11"):
        list(steps)
