"""Sampling: how an id is chosen, and the loop that writes rows of ids.

Nothing here knows what a token means. The caller brings a `Grammar`, which says what may come next,
and a function that shortens a long history.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from common.arrays import Bools, Ids, Ints, Reals
from common.interface import PAD, SideArrays
from model.config import SamplingOptions
from model.reader import Reader, Rebase
from model.steps import Steps
from model.temperature import (
    Logits,
    allowed_alone,
    group_weights,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    weights,
)

State = TypeVar("State", contravariant=True)  # what a grammar knows about the rows


class Grammar(Protocol[State]):
    """Says which ids may come next, and what stands beside those read; only it knows its state.

    The one that writes music is in generation/constrained_grammar.py. It is the grammar of a
    vocabulary, narrowed by what a person asks for, and it gives the side input.

    Attributes:
        guidance: if this is a number g above 0, every row is read twice: told everything, and with
            something left untold. Ids are chosen by told + g (told - untold), which gives more
            weight to what was told (classifier-free guidance, Ho & Salimans 2022). 0: every row is
            read once.
    """

    guidance: float

    def allowed(self, state: State) -> Bools:
        """Return bool (B, V), with a True in every row; a row that has ended allows only Pad."""

    def advance(self, state: State, ids: Ids) -> None:
        """Read the next id of each row, (B,), and change the state in place."""

    def side(self, state: State, ids: Ids) -> SideArrays:
        """Return the side input beside ids (B, T), the last of which are the rows' latest.

        This is called only for decoders that have a side input, and once for each id that they
        read: first for the prompts, with Pad at their left, then for each id that follows. A prompt
        comes again when a row was shortened. With guidance there are 2 B rows: those told
        everything, then the same rows with something left untold.
        """


def choose(
    logits: Logits, sampling: SamplingOptions, uniform: Reals, group: Ids | None = None
) -> Ints:
    """Choose one id a row: temperature, top-k, top-p, min-p, then inverse transform sampling.

    Args:
        logits: float (B, V), -inf where an id is not allowed.
        sampling: the temperature and the filters.
        uniform: float64 (B,) in [0, 1): the choice in row b depends on uniform[b] and logits[b]
            alone.
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
    # the first id whose total exceeds the target: never one of weight 0, which adds nothing
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
    """Continue B prompts, by one id in every row at each step, until all rows have ended.

    A row has ended when the grammar allows only Pad. If the grammar leaves no choice in any row,
    the decoder is not asked, and reads these ids later, when there is a choice again. If the
    context is full, rows longer than half of it are shortened by `rebase`, and all rows are read
    again.

    Args:
        steps: the decoder, plain or compiled.
        prompts: B arrays of ids, none empty.
        grammar: its `side` is called only for decoders that have a side input.
        state: the state of the grammar after the prompts; it is changed in place.
        generator: the only source of chance. At every step each row takes one number, even if it
            has ended, so that what happens in one row changes no other.
        sampling: the temperature and filters that follow the grammar; None: as the model says.
        rebase: takes all ids of a row, prompt included, and returns fewer, about half a context,
            with which the row goes on. None: a full context is an error.
        group: (V,) as in `choose`.
        tilt: changes the logits (B, V) before an id is chosen; None: they stay as they are.
        copies: each group of this many rows in turn has the same prompt and side input.

    Yields:
        int64 (B,), the ids of a step; Pad (0) in rows that have ended.

    Raises:
        ValueError: a prompt is empty, a prompt or history is too long for the context and `rebase`
            does not shorten it, or the grammar allows nothing.
    """
    sampling = SamplingOptions() if sampling is None else sampling
    side = partial(grammar.side, state) if steps.config.side_blocks else None
    reader = Reader(steps, prompts, side, rebase, grammar.guidance, copies)
    allowed = grammar.allowed(state)  # (B, V)
    while not (ended := _only_pad(allowed)).all():
        reader.read(ended)
        uniform = generator.random(len(allowed))
        if np.count_nonzero(allowed) == len(allowed):  # no choice
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
    """Return bool (B,): in which rows `allowed`, (B, V), has nothing but Pad."""
    return allowed[:, PAD] & ~allowed[:, PAD + 1 :].any(axis=1)
