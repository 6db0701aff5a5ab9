"""From logits to sequences: filters, the cache's two verbs, and the loop that samples.

Nothing here knows what a token means. What may come next is asked of a `Grammar`, and how a
long history is shortened is asked of a function; the caller brings both.
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.jit import trace

from model.attention import KVCache
from model.decoder import Decoder

State = TypeVar("State")  # of a grammar

PAD = 0  # the id that fills the places without a token

Ids = NDArray[np.integer[Any]]
Rebase = Callable[[Ids], Ids]  # whole history of a row -> the shorter prompt that stands for it


class Grammar(Protocol[State]):
    """Which ids may come next, row by row; the state is the grammar's own affair."""

    def start(self, batch: int) -> State:
        """The state of `batch` rows at the beginning of a piece."""

    def allowed(self, state: State) -> NDArray[np.bool_]:
        """bool (B, V), at least one True a row; after the last token of a row only Pad."""

    def advance(self, state: State, ids: Ids) -> None:
        """Take one id (B,) a row, changing the state in place."""

    def control(self, state: State, ids: Ids) -> Ids:
        """int (B, T): the side input beside ids (B, T) that end where the rows stand.

        Asked only for decoders that have one.
        """


@dataclass(frozen=True)
class Choice:
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


# Filters: float (B, V) -> float (B, V) with -inf where an id is out. None touches the likeliest.


def keep_allowed(logits: Tensor, allowed: Tensor) -> Tensor:
    """Ids where `allowed`, bool (B, V), is True.

    Raises:
        ValueError: a row in which nothing is allowed.
    """
    if not bool(allowed.any(dim=-1).all()):
        row = int((~allowed.any(dim=-1)).nonzero()[0])
        raise ValueError(f"nothing is allowed to come next in row {row}")
    return logits.masked_fill(~allowed, -math.inf)


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Logits over the temperature, above 0; the largest is set to 0 first, so none overflows."""
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """The k largest, and what is as large as the smallest of them (Fan et al. 2018)."""
    least = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]  # (B, 1)
    return logits.masked_fill(logits < least, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """The fewest likeliest ids that reach probability p (Holtzman et al. 2020), and ties."""
    ordered = logits.sort(dim=-1, descending=True).values
    probability = ordered.softmax(dim=-1)
    before = probability.cumsum(dim=-1) - probability  # of the likelier ids: 0 for the first
    kept = (before < p).sum(dim=-1, keepdim=True).clamp(min=1)  # (B, 1)
    least = ordered.gather(-1, kept - 1)
    return logits.masked_fill(logits < least, -math.inf)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Ids at least p times as likely as the likeliest (Nguyen et al. 2024)."""
    if p == 0:
        return logits
    least = logits.amax(dim=-1, keepdim=True) + math.log(p)  # (B, 1)
    return logits.masked_fill(logits < least, -math.inf)


def choose(logits: Tensor, choice: Choice, uniform: Tensor) -> Tensor:
    """One id a row: temperature, top-k, top-p, min-p, then the inverse of the distribution.

    Args:
        logits: float (B, V), -inf where an id is not allowed.
        choice: how.
        uniform: float64 (B,) in [0, 1): row b depends on uniform[b] and logits[b] alone.

    Returns:
        int64 (B,), never an id whose logit is -inf.
    """
    if choice.temperature == 0:
        return logits.argmax(dim=-1)
    logits = apply_temperature(logits.double(), choice.temperature)
    if choice.top_k is not None:
        logits = keep_top_k(logits, choice.top_k)
    if choice.top_p < 1:
        logits = keep_top_p(logits, choice.top_p)
    if choice.min_p > 0:
        logits = keep_min_p(logits, choice.min_p)
    total = logits.exp().cumsum(dim=-1)  # (B, V); the largest term is 1
    target = uniform[:, None] * total[:, -1:]  # (B, 1), below the last total
    # the first id whose total is above the target: an id of probability 0 adds nothing to it
    return torch.searchsorted(total, target, right=True).squeeze(-1)  # (B, 1) -> (B,)


@torch.inference_mode()
def prefill(
    decoder: Decoder, prompts: Sequence[Ids], control: Ids | None = None
) -> tuple[Tensor, KVCache]:
    """Read prompts of any lengths in one pass.

    Args:
        decoder: in evaluation mode.
        prompts: B arrays of ids, none empty, none longer than the context.
        control: int (B, T), the side input beside `right_aligned(prompts)`; None = unknown.

    Returns:
        Logits (B, V) of the token after each prompt, and the cache that holds them.

    Raises:
        ValueError: an empty or too long prompt, or a decoder in training mode.
    """
    if decoder.training:
        raise ValueError("the decoder is in training mode: call decoder.eval() first")
    lengths = [len(prompt) for prompt in prompts]
    if min(lengths, default=0) == 0:
        raise ValueError("a prompt must hold at least one token")
    cache = decoder.empty_cache(max(lengths) - torch.tensor(lengths))
    device = cache.start.device
    ids = torch.from_numpy(right_aligned(prompts)).to(device)  # (B, T)
    beside = None if control is None else torch.from_numpy(control).to(device)
    logits: Tensor = decoder(ids, cache, control=beside)
    return logits[:, -1], cache  # (B, T, V) -> (B, V)


def right_aligned(prompts: Sequence[Ids]) -> NDArray[np.int64]:
    """int64 (B, T): prompts of any lengths with Pad at their left, so that all go on at the end."""
    longest = max(map(len, prompts))
    ids = np.full((len(prompts), longest), PAD, dtype=np.int64)
    for row, prompt in zip(ids, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    return ids


@torch.inference_mode()
def decode_one(decoder: Decoder, ids: Ids, cache: KVCache, control: Ids | None = None) -> Tensor:
    """Append one id (B,) to each row of the cache; logits (B, V) of the token after it.

    `control`, int (B, 1), stands beside the ids; None = unknown.

    Raises:
        ValueError: the cache is full.
    """
    device = cache.start.device
    column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)[:, None]  # (B, 1)
    beside = None if control is None else torch.from_numpy(control).to(device)
    logits: Tensor = decoder(column, cache, control=beside)  # (B, 1, V)
    return logits[:, -1]


class RecordedSteps:
    """`decode_one`, its tensor operations recorded once and run without the Python between them.

    The decoder itself is run to record them (`torch.jit.trace`), so that there is no second
    implementation to keep in step: the logits are those of `decode_one`, in half the time.

    Args:
        decoder: in evaluation mode; later changes of its weights are not seen.
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = _by_column(decoder)
        self.recorded: dict[tuple[int, bool], Callable[..., Tensor]] = {}  # rows, padded or not

    @torch.inference_mode()
    def __call__(self, ids: Ids, cache: KVCache, control: Ids | None = None) -> Tensor:
        """As `decode_one`; the cache must not be full."""
        device = cache.start.device
        column = torch.from_numpy(np.asarray(ids, dtype=np.int64)).to(device)[:, None]
        beside = torch.zeros_like(column) if control is None else torch.from_numpy(control)
        length = torch.tensor(cache.length)
        inputs = (column, beside.to(device), length, cache.key, cache.value, cache.start)
        variant = (len(column), cache.padded)
        if variant not in self.recorded:
            self.recorded[variant] = self._record(cache, inputs)
        logits = self.recorded[variant](*inputs)
        cache.advance(1)
        return logits

    def _record(self, cache: KVCache, inputs: tuple[Tensor, ...]) -> Callable[..., Tensor]:
        """The operations of a step, of which `length` and the cache's tensors are arguments."""

        has_control = self.decoder.control is not None

        def step(
            ids: Tensor, beside: Tensor, length: Tensor, key: Tensor, value: Tensor, start: Tensor
        ) -> Tensor:
            now = copy.copy(cache)
            now.key, now.value, now.start = key, value, start
            now.length = length  # type: ignore[assignment]  # a tensor, so that it stays variable
            logits: Tensor = self.decoder(ids, now, control=beside if has_control else None)
            return logits[:, -1]

        with warnings.catch_warnings():
            # that sizes become constants, and that trace gives way to compile (which needs g++)
            warnings.simplefilter("ignore")
            recorded: Callable[..., Tensor] = trace(step, inputs, check_trace=False)  # type: ignore[no-untyped-call]
        return recorded


def _by_column(decoder: Decoder) -> Decoder:
    """A copy whose matrices are stored by column.

    A product with one vector then adds up columns, which streams through memory up to twice as
    fast as many short dot products; with more vectors it costs the same.
    """
    decoder = copy.deepcopy(decoder).requires_grad_(False)
    for layer in decoder.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.weight.data = layer.weight.data.t().contiguous().t()
    return decoder


def sample(
    decoder: Decoder,
    prompts: Sequence[Ids],
    grammar: Grammar[State],
    state: State,
    *,
    generator: torch.Generator,
    choice: Choice | None = None,
    rebase: Rebase | None = None,
    steps: RecordedSteps | None = None,
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
        grammar: of which `allowed` and `advance` are called.
        state: the grammar's state after the prompts; it is changed in place.
        generator: on the CPU; the only source of chance.
        choice: temperature and filters; None = as the model says.
        rebase: from all the ids of a row, prompt included, to those with which it goes on:
            fewer than the context length, about half of it. None = a full context is an error.
        steps: of this decoder, from an earlier call; None = recorded anew, in a tenth of a second.

    Yields:
        int64 (B,), the ids of a step; Pad (0) in rows that have ended.

    Raises:
        ValueError: an empty prompt, a prompt or history too long for the context with no
            `rebase` to shorten it, or a grammar that allows nothing.
    """
    choice = Choice() if choice is None else choice
    context = decoder.config.context_length
    histories = [[int(i) for i in prompt] for prompt in prompts]
    allowed = grammar.allowed(state)  # (B, V)
    ended = _only_pad(allowed)
    steps = RecordedSteps(decoder) if steps is None else steps

    def control(ids: Ids) -> Ids | None:
        return None if decoder.control is None else grammar.control(state, ids)

    cache: KVCache | None = None
    ids: Ids = np.zeros(len(prompts), dtype=np.int64)
    while not ended.all():
        if cache is None and max(map(len, histories)) <= context:
            prompts = [np.array(history) for history in histories]
            logits, cache = prefill(decoder, prompts, control(right_aligned(prompts)))
        elif cache is not None and cache.length < context:
            logits = steps(ids, cache, control(ids[:, None]))
        else:
            prompts = _rebased(histories, ended, rebase, context)
            histories = [prompt.tolist() for prompt in prompts]  # what is forgotten takes no memory
            logits, cache = prefill(decoder, prompts, control(right_aligned(prompts)))
        masked = keep_allowed(logits.float().cpu(), torch.from_numpy(allowed))
        uniform = torch.rand(len(prompts), dtype=torch.float64, generator=generator)
        ids = choose(masked, choice, uniform).numpy()
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
