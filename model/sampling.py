"""Sampling: the choice of an id, and the loop that writes rows of ids.

Nothing here knows what a token means. What may come next is asked of a `Grammar`, and how a
long history is shortened is asked of a function; the caller brings both.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from common.arrays import Bools, Ids, Ints, Reals
from common.interface import PAD
from model.config import SamplingOptions
from model.reader import Reader, Rebase
from model.steps import SideArrays, Steps
from model.temperature import (
    Logits,
    allowed_alone,
    group_weights,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    weights,
)

State = TypeVar("State", contravariant=True)  # of a grammar


class Grammar(Protocol[State]):
    """Which ids may come next, and what stands beside those read; only the grammar knows the state.

    One that writes music is in generation/constrained_grammar.py: the grammar of a
    vocabulary, less what a person rules out, with the side input.

    Attributes:
        guidance: with g above 0 every row is read twice, the second time without being told all,
            and sampled from told + g (told - untold): what was told counts for more
            (classifier-free guidance, Ho & Salimans 2022). 0 = no row is read twice.
    """

    guidance: float

    def allowed(self, state: State) -> Bools:
        """Return bool (B, V), at least one True a row; after the last token of a row only Pad."""

    def advance(self, state: State, ids: Ids) -> None:
        """Take one id (B,) a row, changing the state in place."""

    def side(self, state: State, ids: Ids) -> SideArrays:
        """Return the side input beside ids (B, T) that end where the rows stand.

        Asked only for decoders that have one, and once for all that they read: for prompts, Pad
        at their left, with which rows begin or begin anew, then for each id that follows. With
        guidance it has 2 B rows: those that are told, then the same as they are not told.
        """


def choose(
    logits: Logits, sampling: SamplingOptions, uniform: Reals, group: Ids | None = None
) -> Ints:
    """Choose one id a row: temperature, top-k, top-p, min-p, then the inverse of the distribution.

    Args:
        logits: float (B, V), -inf where an id is not allowed.
        sampling: temperature and filters.
        uniform: float64 (B,) in [0, 1): row b depends on uniform[b] and logits[b] alone.
        group: (B, V) or (V,), the number of each id's group, for `rhythm_temperature`.

    Returns:
        int64 (B,), never an id whose logit is -inf.
    """
    if sampling.temperature == 0:
        return np.asarray(logits.argmax(axis=1))
    if sampling.rhythm_temperature is None or group is None:
        weight = weights(logits, sampling.temperature)
    else:
        weight = group_weights(logits, sampling.temperature, sampling.rhythm_temperature, group)
    if sampling.top_k is not None:
        weight = keep_top_k(weight, sampling.top_k)
    if sampling.top_p < 1:
        weight = keep_top_p(weight, sampling.top_p)
    if sampling.min_p > 0:
        weight = keep_min_p(weight, sampling.min_p)
    total = weight.cumsum(axis=1)  # (B, V)
    target = uniform[:, None] * total[:, -1:]  # (B, 1), below the last total
    # the first id whose total is above the target: an id of weight 0 adds nothing to it
    ids: Ints = (total > target).argmax(axis=1)
    return ids


def sample(
    steps: Steps,
    prompts: Sequence[Ids],
    grammar: Grammar[State],
    state: State,
    *,
    generator: np.random.Generator,
    sampling: SamplingOptions | None = None,
    rebase: Rebase | None = None,
    group: Ids | None = None,
    tilt: Callable[[State, Logits], Logits] | None = None,
    copies: int = 1,
) -> Iterator[Ids]:
    """Continue B prompts, a token a row and step, until every row has ended.

    A row has ended when the grammar allows it nothing but Pad. Where every row is allowed one id
    alone, the decoder is not asked; it reads these ids later, when there is a choice again. Where
    the context is full, rows longer than half of it are shortened by `rebase`, and all read anew.

    Args:
        steps: of the decoder, plain or compiled.
        prompts: B arrays of ids, none empty.
        grammar: its `side` is called for decoders that have a side input.
        state: the grammar's state after the prompts; it is changed in place.
        generator: the only source of chance. Every row takes one number at every step, even if it
            has ended, so that what happens in one row changes no other.
        sampling: temperature and filters, after the grammar's mask; None = as the model says.
        rebase: from all the ids of a row, prompt included, to those with which it goes on:
            fewer than the context length, about half of it. None = a full context is an error.
        group: (V,) as in `choose`.
        tilt: from logits (B, V) to those that are sampled from; None = the same.
        copies: so many rows, one after the other, have the same prompt, and the same beside it.

    Yields:
        int64 (B,), the ids of a step; Pad (0) in rows that have ended.

    Raises:
        ValueError: an empty prompt, a prompt or history too long for the context with no
            `rebase` to shorten it, or a grammar that allows nothing.
    """
    sampling = SamplingOptions() if sampling is None else sampling
    side = partial(grammar.side, state) if steps.config.side_blocks else None
    reader = Reader(steps, prompts, side, rebase, grammar.guidance, copies)
    allowed = grammar.allowed(state)  # (B, V)
    while not (ended := _only_pad(allowed)).all():
        reader.read(ended)
        uniform = generator.random(len(allowed))
        if np.count_nonzero(allowed) == len(allowed):  # one id a row
            ids = allowed.argmax(axis=1)
        else:
            logits = reader.logits() if tilt is None else tilt(state, reader.logits())
            few, their_ids = allowed_alone(logits, allowed)  # (B, A)
            chosen = choose(few, sampling, uniform, None if group is None else group[their_ids])
            ids = their_ids[np.arange(len(chosen)), chosen]
        grammar.advance(state, ids)
        reader.add(ids, ended)
        allowed = grammar.allowed(state)
        yield ids


def _only_pad(allowed: Bools) -> Bools:
    """Return bool (B,): whether nothing but Pad may follow, of allowed (B, V)."""
    return allowed[:, PAD] & ~allowed[:, PAD + 1 :].any(axis=1)
