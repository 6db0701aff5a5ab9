"""From logits to sequences: filters, the choice of an id, and the loop that samples.

Nothing here knows what a token means. What may come next is asked of a `Grammar`, and how a
long history is shortened is asked of a function; the caller brings both.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from common.interface import PAD
from model.attention import KVCache
from model.decoder import Decoder
from model.decoding import Ids, SideArrays, Step, decode_one, prefill, right_aligned

State = TypeVar("State", contravariant=True)  # of a grammar

Logits = NDArray[np.floating[Any]]
Weights = NDArray[np.float64]
Rebase = Callable[[Ids], Ids]  # whole history of a row -> the shorter prompt that stands for it


class Grammar(Protocol[State]):
    """Which ids may come next, row by row; the state is the grammar's own affair."""

    def allowed(self, state: State) -> NDArray[np.bool_]:
        """bool (B, V), at least one True a row; after the last token of a row only Pad."""

    def advance(self, state: State, ids: Ids) -> None:
        """Take one id (B,) a row, changing the state in place."""

    def side(self, state: State, ids: Ids) -> SideArrays:
        """The side input beside ids (B, T) that end where the rows stand.

        Asked only for decoders that have one, and once for all that they read: for prompts, Pad
        at their left, with which rows begin or begin anew, then for each id that follows.
        """


@dataclass(frozen=True)
class SamplingOptions:
    """How one id is chosen from logits; by default as the model says, without any filter.

    Raises:
        ValueError: a value out of range; the message names it.
    """

    temperature: float = 1.0  # below 1 bolder on the likely, above 1 wilder; 0 = the likeliest
    top_k: int | None = None  # only the k likeliest ids
    top_p: float = 1.0  # only the likeliest ids that together reach this probability
    min_p: float = 0.0  # only ids at least this likely, as a share of the likeliest

    def __post_init__(self) -> None:
        if not (0 <= self.temperature < math.inf):
            raise ValueError(f"temperature must be 0 (greedy) or more, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be 1 or more, not {self.top_k}")
        if not (0 < self.top_p <= 1):
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not (0 <= self.min_p <= 1):
            raise ValueError(f"min_p must be from 0 to 1, not {self.min_p}")


def keep_allowed(logits: Logits, allowed: NDArray[np.bool_]) -> Logits:
    """Logits with -inf but where `allowed`, bool (B, V), is True.

    Raises:
        ValueError: a row in which nothing is allowed.
    """
    any_allowed = allowed.any(axis=1)
    if not any_allowed.all():
        raise ValueError(f"nothing is allowed to come next in row {any_allowed.argmin()}")
    masked: Logits = np.where(allowed, logits, -math.inf)
    return masked


def weights(logits: Logits, temperature: float) -> Weights:
    """exp(logits / temperature), above 0, in proportion to probability: of the likeliest 1."""
    below = logits - logits.max(axis=1, keepdims=True)
    weight: Weights = np.exp(np.divide(below, temperature, dtype=np.float64))
    return weight


# Filters: weights (B, V) -> weights (B, V), 0 where an id is out. None touches the likeliest.


def keep_top_k(weight: Weights, k: int) -> Weights:
    """The k largest, and what is as large as the smallest of them (Fan et al. 2018)."""
    place = max(weight.shape[1] - k, 0)
    return _at_least(weight, np.partition(weight, place, axis=1)[:, place])


def keep_top_p(weight: Weights, p: float) -> Weights:
    """The fewest likeliest ids that reach probability p (Holtzman et al. 2020), and ties."""
    rising = np.sort(weight, axis=1)
    total = rising.cumsum(axis=1)  # of each and the less likely
    # out is what is outweighed p to 1 - p by the likelier: never the likeliest, the last
    out = np.count_nonzero(total[:, :-1] <= (1 - p) * total[:, -1:], axis=1)  # (B,)
    return _at_least(weight, rising[np.arange(len(rising)), out])


def keep_min_p(weight: Weights, p: float) -> Weights:
    """Ids at least p times as likely as the likeliest (Nguyen et al. 2024)."""
    return _at_least(weight, p * weight.max(axis=1))


def _at_least(weight: Weights, least: Weights) -> Weights:
    """Weights (B, V) where they reach their row's least (B,), else 0."""
    return weight * (weight >= least[:, None])


def choose(
    logits: Logits, sampling: SamplingOptions, uniform: NDArray[np.float64]
) -> NDArray[np.int64]:
    """One id a row: temperature, top-k, top-p, min-p, then the inverse of the distribution.

    Args:
        logits: float (B, V), -inf where an id is not allowed.
        choice: how.
        uniform: float64 (B,) in [0, 1): row b depends on uniform[b] and logits[b] alone.

    Returns:
        int64 (B,), never an id whose logit is -inf.
    """
    if sampling.temperature == 0:
        return np.asarray(logits.argmax(axis=1))
    weight = weights(logits, sampling.temperature)
    if sampling.top_k is not None:
        weight = keep_top_k(weight, sampling.top_k)
    if sampling.top_p < 1:
        weight = keep_top_p(weight, sampling.top_p)
    if sampling.min_p > 0:
        weight = keep_min_p(weight, sampling.min_p)
    total = weight.cumsum(axis=1)  # (B, V)
    target = uniform[:, None] * total[:, -1:]  # (B, 1), below the last total
    # the first id whose total is above the target: an id of weight 0 adds nothing to it
    ids: NDArray[np.int64] = (total > target).argmax(axis=1)
    return ids


def sample(
    decoder: Decoder,
    prompts: Sequence[Ids],
    grammar: Grammar[State],
    state: State,
    *,
    generator: torch.Generator,
    sampling: SamplingOptions | None = None,
    rebase: Rebase | None = None,
    step: Step | None = None,
) -> Iterator[Ids]:
    """Continue B prompts, a token a row and step, until every row has ended.

    A row has ended when the grammar allows it nothing but Pad. The mask is applied before
    temperature and filters. One number a row is drawn at every step, whether the row has ended
    or not, so no row's fate changes another's.
    Where the context is full, each row's history is shortened by `rebase`, unless it is within
    half the context anyway, and read anew.

    Args:
        decoder: in evaluation mode.
        prompts: B arrays of ids, none empty.
        grammar: of which `allowed` and `advance` are called, and `side` for decoders that have
            a side input.
        state: the grammar's state after the prompts; it is changed in place.
        generator: on the CPU; the only source of chance.
        choice: temperature and filters; None = as the model says.
        rebase: from all the ids of a row, prompt included, to those with which it goes on:
            fewer than the context length, about half of it. None = a full context is an error.
        step: `decode_one` of this decoder; None = without anything that makes it faster.

    Yields:
        int64 (B,), the ids of a step; Pad (0) in rows that have ended.

    Raises:
        ValueError: an empty prompt, a prompt or history too long for the context with no
            `rebase` to shorten it, or a grammar that allows nothing.
    """
    sampling = SamplingOptions() if sampling is None else sampling
    context = decoder.config.context_length
    histories = [[int(i) for i in prompt] for prompt in prompts]
    allowed = grammar.allowed(state)  # (B, V)
    ended = _only_pad(allowed)
    step = partial(decode_one, decoder) if step is None else step

    def side(ids: Ids) -> SideArrays | None:
        return grammar.side(state, ids) if decoder.config.side_blocks else None

    cache: KVCache | None = None
    ids: Ids = np.zeros(len(prompts), dtype=np.int64)
    while not ended.all():
        if cache is None and max(map(len, histories)) <= context:
            prompts = [np.array(history) for history in histories]
            logits, cache = prefill(decoder, prompts, side(right_aligned(prompts)))
        elif cache is not None and cache.length < context:
            logits = step(ids, cache, side(ids[:, None]))
        else:
            prompts = _rebased(histories, ended, rebase, context)
            histories = [prompt.tolist() for prompt in prompts]  # what is forgotten takes no memory
            logits, cache = prefill(decoder, prompts, side(right_aligned(prompts)))
        masked = keep_allowed(logits.float().cpu().numpy(), allowed)
        uniform = torch.rand(len(prompts), dtype=torch.float64, generator=generator)
        ids = choose(masked, sampling, uniform.numpy())
        grammar.advance(state, ids)
        for row in np.flatnonzero(~ended):
            histories[row].append(int(ids[row]))
        allowed = grammar.allowed(state)
        ended = _only_pad(allowed)
        yield ids


def _only_pad(allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(B,) whether a row has ended: of (B, V), nothing but Pad may follow."""
    return allowed[:, PAD] & ~allowed[:, PAD + 1 :].any(axis=1)


def _rebased(
    histories: list[list[int]], ended: NDArray[np.bool_], rebase: Rebase | None, context: int
) -> list[Ids]:
    """The prompts that stand for the histories of rows."""
    if rebase is None:
        raise ValueError(f"the context of {context} tokens is full and nothing may shorten it")
    prompts = []
    for history, over in zip(histories, ended, strict=True):
        prompt: Ids = np.array(history[-1:] if over else history)  # the ended need but one token
        if 2 * len(prompt) > context:
            prompt = rebase(prompt)
            if not 1 <= len(prompt) < context:
                raise ValueError(f"rebase gave {len(prompt)} tokens, not 1 to {context - 1}")
        prompts.append(prompt)
    return prompts
