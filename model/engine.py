"""The decoder compiled for a CPU: `model/decoder.py` defines it, and this repeats it in loops.

It needs no torch. The letters are those of `model/attention.py`. N tokens are read at once, from
any rows: one of each row makes a step, and many make prompts. All numbers are float32, and matrices
are as in torch: y = x W^T.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.arrays import Floats, Ids, Ints, Reals
from common.compiled import compiled, compiled_inside, compiled_inside_with_arrays
from common.interface import ENDS, PAD, SideArrays, SideInput
from model.config import END_ROWS, LONGEST, NEAR, DecoderConfig, interval_rows
from model.interval_loops import Notes, add_intervals
from model.network import Network

CHUNK = 64  # most tokens at once, so that all between layers stays in the processor's cache
ZERO, ONE = np.float32(0), np.float32(1)


class Shape(NamedTuple):
    """What the loops must know about a config, as numbers."""

    context_length: int
    n_layer: int
    n_attention: int
    is_post: bool  # whether norms stand after residual sums
    is_centered: bool  # whether the norm is LayerNorm
    eps: np.float32  # added in norms, so that nothing is divided by 0
    qk_norm: bool
    qk_eps: np.float32
    is_squared: bool  # whether ReLU is squared
    by_time: bool  # whether odd pairs turn by musical time
    notes: Notes  # of the interval head; P is 0 if there is none
    n_durations: int  # how many Durations the end head has
    first_duration: int
    temperature: np.float32


class Weights(NamedTuple):
    """The weights of A attention and L feed-forward sub-layers; norms have gains and biases."""

    embedding: Floats  # (V, D)
    side: Floats  # (S + 1, D), for each feature, or (0, D)
    position: Floats  # (C, D), added to the embeddings, or (0, D)
    angle: Reals  # (d / 2,), by which each pair turns from place to place, or (0,)
    attention_norm: Floats  # (A, 2, D)
    qkv: Floats  # (A, 3 D, D)
    mix: Floats  # (A, D, D), W_O
    feed_norm: Floats  # (L, 2, D)
    w_1: Floats  # (L, 4 D, D)
    b_1: Floats  # (L, 4 D)
    w_2: Floats  # (L, D, 4 D)
    b_2: Floats  # (L, D)
    norm: Floats  # (2, D), before the head
    head: Floats  # (V, D)
    interval: Floats  # (R, D), the interval head's table, or (0, D)
    end: Floats  # (R', D), the end head's table, or (0, D)


class Window(NamedTuple):
    """Ids to read, the latest at the right, and the side input beside them."""

    ids: Ints  # (B, T); Pad is not read
    bag: NDArray[np.int32]  # (B, T, K)
    references: Ints  # (B, T, 2 P + SHARED_REFERENCES)
    moves: Ints  # (B, T, P)
    sounding: Ints  # (B, T, 12)
    ends: Ints  # (B, T, ENDS)
    time: Ints  # (B, T)


class Cache(NamedTuple):
    """The keys and values of what was read; the first id of each row has place 0."""

    key: Floats  # (A, B, H, C, d)
    value: Floats  # (A, B, H, C, d)
    length: Ints  # (B,), how many ids were read in each row
    maps: Floats  # (A, B, H, R, T), what the last R of T places attend to; R is 0 if nobody looks


@compiled
def find_tokens(ids: Ints, length: Ints, n_ids: int, context: int) -> Ints:
    """Return (N, 3): the row, column and place of each id to read, row by row."""
    tokens = np.empty((ids.size, 3), np.int64)
    n = 0
    for b in range(ids.shape[0]):
        place = length[b]
        for t in range(ids.shape[1]):
            if ids[b, t] == PAD:
                continue
            if not 0 <= ids[b, t] < n_ids:
                raise ValueError("an id that the vocabulary does not have")
            if place >= context:
                raise ValueError("more tokens than the context holds")
            tokens[n, 0], tokens[n, 1], tokens[n, 2] = b, t, place
            place += 1
            n += 1
    return tokens[:n]


@compiled
def blocks(shape: Shape, w: Weights, cache: Cache, window: Window, tokens: Ints) -> Floats:
    """Return what leaves the blocks and the last norm, for tokens (N, 3): (N, D)."""
    x = embed(w, window, tokens)  # (N, D)
    cos, sin = angles(shape, w.angle, window.time, tokens)  # (N, d / 2)
    for layer in range(shape.n_layer):
        for a in range(layer * shape.n_attention, (layer + 1) * shape.n_attention):
            h = x if shape.is_post else norm(shape, x, w.attention_norm[a])
            qkv = product(h, w.qkv[a])  # (N, 3 D)
            y = attend(shape, cache, a, qkv, cos, sin, tokens)  # (N, D)
            x = residual(shape, x, product(y, w.mix[a]), w.attention_norm[a])
        h = x if shape.is_post else norm(shape, x, w.feed_norm[layer])
        wide = product(h, w.w_1[layer])  # (N, 4 D)
        activate(shape, wide, w.b_1[layer])
        y = product(wide, w.w_2[layer])  # (N, D)
        for n in range(len(y)):
            add(y[n], w.b_2[layer])
        x = residual(shape, x, y, w.feed_norm[layer])
    return x if shape.is_post else norm(shape, x, w.norm)


@compiled_inside_with_arrays
def residual(shape: Shape, x: Floats, y: Floats, gain_and_bias: Floats) -> Floats:
    """Return x + y, both (N, D); x is changed. A post-norm follows, if there is one."""
    for n in range(len(x)):
        add(x[n], y[n])
    return norm(shape, x, gain_and_bias) if shape.is_post else x


@compiled_inside_with_arrays
def embed(w: Weights, window: Window, tokens: Ints) -> Floats:
    """Return the sum of the vectors of all that is known about each token: (N, D)."""
    x = np.zeros((len(tokens), w.embedding.shape[1]), np.float32)
    for n in range(len(tokens)):
        b, t, place = tokens[n, 0], tokens[n, 1], tokens[n, 2]
        add(x[n], w.embedding[window.ids[b, t]])
        if len(w.position):
            add(x[n], w.position[place])
        for feature in window.bag[b, t]:
            if not feature:
                break
            add(x[n], w.side[feature])
    return x


@compiled_inside
def add(x: Floats, y: Floats) -> None:
    """Add vector y to x."""
    for i in range(len(x)):
        x[i] += y[i]


@compiled_inside_with_arrays
def angles(shape: Shape, angle: Reals, time: Ints, tokens: Ints) -> tuple[Floats, Floats]:
    """Return the cosines and sines of the angle of each pair, (N, d / 2) each."""
    cos = np.empty((len(tokens), len(angle)), np.float32)
    sin = np.empty_like(cos)
    for n in range(len(tokens)):
        b, t, place = tokens[n, 0], tokens[n, 1], tokens[n, 2]
        for i in range(len(angle)):
            moved = time[b, t] if shape.by_time and i % 2 else place
            turned = np.float32(moved * angle[i])
            cos[n, i], sin[n, i] = math.cos(turned), math.sin(turned)
    return cos, sin


@compiled_inside_with_arrays
def norm(shape: Shape, x: Floats, gain_and_bias: Floats) -> Floats:
    """Return the LayerNorm or RMSNorm of each row of x (N, D)."""
    D = x.shape[1]
    y = np.empty_like(x)
    gain, bias = gain_and_bias[0], gain_and_bias[1]
    for n in range(len(x)):
        total, square = ZERO, ZERO
        if shape.is_centered:
            for i in range(D):
                total += x[n, i]
        mean = np.float32(total / D)
        for i in range(D):
            square += (x[n, i] - mean) ** 2
        scale = np.float32(1 / math.sqrt(square / D + shape.eps))
        for i in range(D):
            y[n, i] = (x[n, i] - mean) * scale * gain[i] + bias[i]
    return y


@compiled
def product(x: Floats, w: Floats) -> Floats:
    """Return x W^T: (N, I), (O, I) -> (N, O).

    With four rows or more, sums for four rows and two outputs are computed together, so that each
    number that was read is used several times. The last group may overlap with the one before.
    """
    N, O, I = len(x), len(w), w.shape[1]  # noqa: E741
    y = np.empty((N, O), np.float32)
    if N < 4:
        for o in range(O):
            for n in range(N):
                total = ZERO
                for i in range(I):
                    total += x[n, i] * w[o, i]
                y[n, o] = total
        return y
    for begin in range(0, O, 2):
        o = min(begin, max(O - 2, 0))
        p = min(o + 1, O - 1)
        w0, w1 = w[o], w[p]
        for four in range(0, N, 4):
            n = min(four, N - 4)
            x0, x1, x2, x3 = x[n], x[n + 1], x[n + 2], x[n + 3]
            y00 = y10 = y20 = y30 = y01 = y11 = y21 = y31 = ZERO
            for i in range(I):
                y00 += x0[i] * w0[i]
                y10 += x1[i] * w0[i]
                y20 += x2[i] * w0[i]
                y30 += x3[i] * w0[i]
                y01 += x0[i] * w1[i]
                y11 += x1[i] * w1[i]
                y21 += x2[i] * w1[i]
                y31 += x3[i] * w1[i]
            y[n, o], y[n + 1, o], y[n + 2, o], y[n + 3, o] = y00, y10, y20, y30
            y[n, p], y[n + 1, p], y[n + 2, p], y[n + 3, p] = y01, y11, y21, y31
    return y


@compiled_inside
def activate(shape: Shape, x: Floats, bias: Floats) -> None:
    """Turn x (N, 4 D) into f(x + b_1)."""
    for n in range(len(x)):
        for i in range(x.shape[1]):
            x[n, i] += bias[i]
            x[n, i] = max(x[n, i], ZERO)
            if shape.is_squared:
                x[n, i] *= x[n, i]


@compiled_inside_with_arrays
def attend(
    shape: Shape, cache: Cache, a: int, qkv: Floats, cos: Floats, sin: Floats, tokens: Ints
) -> Floats:
    """Write keys and values into the cache, then attend to all that each token's row has there.

    Args:
        shape: of the decoder.
        cache: of all sub-layers.
        a: the number of the sub-layer.
        qkv: (N, 3 D), changed in place.
        cos, sin: (N, d / 2), or (N, 0).
        tokens: (N, 3).

    Returns:
        (N, D), the heads side by side.
    """
    key, value, maps = cache.key[a], cache.value[a], cache.maps[a]
    _, H, C, d = key.shape
    first = maps.shape[3] - maps.shape[2]  # the first place whose attention is kept in `maps`
    y = np.zeros((len(qkv), H * d), np.float32)
    score = np.empty(C, np.float32)
    for n in range(len(qkv)):
        b, place = tokens[n, 0], tokens[n, 2]
        for h in range(H):
            q = qkv[n, h * d : (h + 1) * d]
            k = qkv[n, (H + h) * d : (H + h + 1) * d]
            v = qkv[n, (2 * H + h) * d : (2 * H + h + 1) * d]
            for each in (q, k):
                if shape.qk_norm:
                    to_unit(each, shape.qk_eps)
                turn(each, cos[n], sin[n])
            keys, values = key[b, h], value[b, h]  # (C, d)
            for i in range(d):
                keys[place, i], values[place, i] = k[i], v[i]
                q[i] *= np.float32(1 / math.sqrt(d))
            seen = score[: place + 1]
            for s in range(len(seen)):
                total = ZERO
                for i in range(d):
                    total += q[i] * keys[s, i]
                seen[s] = total
            softmax(seen)
            if place >= first:
                for s in range(len(seen)):  # a slice of unknown length takes seconds to compile
                    maps[b, h, place - first, s] = seen[s]
            head = y[n, h * d : (h + 1) * d]
            for s in range(len(seen)):
                for i in range(d):
                    head[i] += seen[s] * values[s, i]
    return y


@compiled_inside
def to_unit(x: Floats, eps: np.float32) -> None:
    """Scale a vector to a root mean square of 1."""
    square = ZERO
    for i in range(len(x)):
        square += x[i] * x[i]
    scale = np.float32(1 / math.sqrt(square / len(x) + eps))
    for i in range(len(x)):
        x[i] *= scale


@compiled_inside
def turn(x: Floats, cos: Floats, sin: Floats) -> None:
    """Turn the pairs (x_i, x_{i + d/2}) of a vector."""
    half = len(cos)  # 0: nothing turns
    for i in range(half):
        first, second = x[i], x[i + half]
        x[i] = first * cos[i] - second * sin[i]
        x[i + half] = second * cos[i] + first * sin[i]


@compiled_inside
def softmax(x: Floats) -> None:
    """Turn scores (S,) into weights that add up to 1, in place."""
    most, total = x[0], ZERO
    for s in range(len(x)):
        most = max(most, x[s])
    for s in range(len(x)):
        x[s] = math.exp(x[s] - most)
        total += x[s]
    scale = ONE / total
    for s in range(len(x)):
        x[s] *= scale


@compiled_inside
def add_ends(shape: Shape, by_row: Floats, ends_of: Ints, logits: Floats) -> None:
    """Add the logits of Extend and the Durations by distance from ends, as `EndHead` does.

    Args:
        shape: of the decoder.
        by_row: (N, ENDS END_ROWS), what the head's table gives.
        ends_of: (N, ENDS), from the side input.
        logits: (N, V), changed in place.
    """
    longest, first = shape.n_durations, shape.first_duration - 1  # a Duration's id less its steps
    for n in range(len(logits)):
        for which in range(ENDS):
            end, rows = ends_of[n, which], by_row[n, which * END_ROWS : (which + 1) * END_ROWS]
            logits[n, first] += rows[END_ROWS - 2 if end > longest else END_ROWS - 1]
            for steps in range(1, longest + 1):
                row = END_ROWS - 1
                if 1 <= end <= longest:
                    row = min(max(steps - end, -NEAR), NEAR) + NEAR
                logits[n, first + steps] += rows[row]


@compiled
def heads(
    shape: Shape, w: Weights, x: Floats, references: Ints, moves: Ints, sounding: Ints, ends: Ints
) -> Floats:
    """Return the logits (N, V) for what leaves the blocks, (N, D)."""
    logits = product(x, w.head)
    if shape.notes.n_programs:
        by_row = product(x, w.interval)
        add_intervals(shape.notes, by_row, references, moves, sounding, logits, False)
    if len(w.end):
        add_ends(shape, product(x, w.end), ends, logits)
    for n in range(len(logits)):
        for v in range(logits.shape[1]):
            logits[n, v] /= shape.temperature
    return logits


class Engine:
    """A decoder for a CPU that samples and scores, with a copy of its weights.

    Args:
        network: its config and weights.
    """

    def __init__(self, network: Network) -> None:
        self.config = config = network.config
        eps = np.float32(np.finfo(np.float32).eps)  # that of torch's RMSNorm
        programs = config.n_programs if config.has_interval_head else 0
        self.shape = Shape(
            config.context_length,
            config.n_layer,
            config.n_attention,
            config.norm_position == "post",
            config.norm == "layer",
            np.float32(1e-5) if config.norm == "layer" else eps,
            config.qk_norm,
            eps,
            config.activation == "squared_relu",
            config.positions == "rotary_time",
            Notes(programs, config.n_pitches, config.first_note, config.n_classes),
            config.n_durations,
            config.first_duration,
            np.float32(network.weights["temperature"]),
        )
        self.weights = gather(config, network.weights)

    def read(
        self, ids: Ids, side: SideArrays | None = None, cache: Cache | None = None
    ) -> tuple[Floats, Cache]:
        """Read ids, as `Steps.read` (`model/steps.py`) says."""
        cache = cache or self._cache(len(ids))
        return self._read(self._window(ids, side), cache), cache

    def repeated(self, cache: Cache, times: int) -> Cache:
        """Return a cache with `times` copies of each row, as `Steps.repeated` says."""
        batch, used = len(cache.length), cache.length.max()
        new = self._cache(batch * times)
        for old, own in zip(cache[:2], new[:2], strict=True):
            own[:, :, :, :used] = old[:, :, :, :used].repeat(times, axis=1)
        return new._replace(length=cache.length.repeat(times))

    def logits(self, ids: Ids, side: SideArrays | None = None) -> Floats:
        """Return the logits of whole windows, as `Scorer.logits` (`model/steps.py`) says."""
        window, cache = self._window(ids, side), self._cache(len(ids))
        logits = np.zeros((*ids.shape, len(self.weights.head)), np.float32)  # (B, T, V)
        for tokens, x in self._chunks(window, cache):
            at = tokens[:, 0], tokens[:, 1]
            beside = (array[at] for array in window[2:-1])  # without ids, bag and time
            logits[at] = heads(self.shape, self.weights, x, *beside)
        return logits

    def explained(
        self, ids: Ids, side: SideArrays | None = None, last: int = 1
    ) -> tuple[Floats, Floats]:
        """Return the logits (B, V) after whole windows (B, T), and what their last ids attend to.

        Returns:
            The logits; and (A, B, H, R, T), the attention of the last R ids of each row to each id,
            by the H heads of A sub-layers.
        """
        cache = self._cache(len(ids), last, ids.shape[1])
        return self._read(self._window(ids, side), cache), cache.maps

    def attention_maps(self, ids: Ids, side: SideArrays | None = None) -> dict[str, Floats]:
        """Return how ids (T,) attend to each other: (H, T, T) of each attention sub-layer by name.

        Each row sums to 1. The side input is that of one row.
        """
        _, maps = self.explained(ids[None], side, len(ids))
        twice = ("",) if self.config.n_attention == 1 else (", attention 1", ", attention 2")
        names = [f"layer {n + 1}{which}" for n in range(self.config.n_layer) for which in twice]
        return dict(zip(names, maps[:, 0], strict=True))

    def _read(self, window: Window, cache: Cache) -> Floats:
        """Return the logits (B, V) after each row of a window; 0 for rows that end with Pad."""
        B, T = window.ids.shape
        last = np.zeros((B, self.config.n_embd), np.float32)
        for tokens, x in self._chunks(window, cache):
            is_last = tokens[:, 1] == T - 1
            last[tokens[is_last, 0]] = x[is_last]
        beside = (array[:, -1] for array in window[2:-1])  # as in `logits`
        return heads(self.shape, self.weights, last, *map(np.ascontiguousarray, beside))

    def _chunks(self, window: Window, cache: Cache) -> Iterator[tuple[Ints, Floats]]:
        """Read a window into the cache; yield tokens (N, 3) and what leaves the blocks (N, D)."""
        w, context = self.weights, self.config.context_length
        tokens = find_tokens(window.ids, cache.length, len(w.embedding), context)
        for begin in range(0, len(tokens), CHUNK):
            some = tokens[begin : begin + CHUNK]
            yield some, blocks(self.shape, w, cache, window, some)
        cache.length[tokens[:, 0]] = tokens[:, 2] + 1

    def _cache(self, batch: int, shown: int = 0, size: int = 0) -> Cache:
        """Return a cache for rows that have read nothing.

        Attention is kept for the last `shown` of `size` places; a size of 0 stands for the whole
        context.
        """
        config, width = self.config, self.config.n_embd // self.config.n_head
        layers = config.n_layer * config.n_attention
        shape = (layers, batch, config.n_head, config.context_length, width)
        # not zeros: nothing reads a place before it is written
        keys, values = np.empty(shape, np.float32), np.empty(shape, np.float32)
        maps = np.zeros((*shape[:3], shown, size or config.context_length), np.float32)
        return Cache(keys, values, np.zeros(batch, np.int64), maps)

    def _window(self, ids: Ids, side: SideArrays | None) -> Window:
        """Check what is to be read, and return it as the loops take it."""
        if (side is None) != (self.config.n_features == 0):
            raise ValueError("a side input where the decoder has none, or none where it has one")
        if side is None:
            none = np.zeros((*ids.shape, 0), np.int64)
            side = SideInput(none, none, none, none, none, np.zeros(ids.shape, np.int64))
        bag = np.ascontiguousarray(side.bag, np.int32)
        if bag.size and not 0 <= bag.min() <= bag.max() < len(self.weights.side):
            raise ValueError("the side input has features that the decoder does not know")
        others = (np.ascontiguousarray(array, np.int64) for array in side[1:])
        return Window(np.ascontiguousarray(ids, np.int64), bag, *others)


def gather(config: DecoderConfig, weights: Mapping[str, NDArray[Any]]) -> Weights:
    """Return the weights of a decoder as the loops take them; those it lacks have no rows.

    Raises:
        ValueError: a weight is missing, unknown or of the wrong shape; the message is its name.
    """
    unread, D, V = dict(weights), config.n_embd, config.vocabulary_size
    has_end, has_intervals = config.has_end_head, config.has_interval_head
    rows = interval_rows(config.n_programs, config.n_classes) if has_intervals else 0

    def find(name: str, *shape: int, is_there: bool = True, default: float = 0.0) -> Floats:
        if not is_there or 0 in shape:
            return np.full(shape, default, np.float32)
        found = unread.pop(name, None)
        if found is None or found.shape != shape:
            raise ValueError(name)
        return np.ascontiguousarray(found, np.float32)

    def norm_of(name: str, is_there: bool = True) -> Floats:
        gain = find(f"{name}.weight", D, is_there=is_there, default=1)
        has_bias = is_there and config.norm == "layer"
        return np.stack((gain, find(f"{name}.bias", D, is_there=has_bias)))

    layers = [f"blocks.{number}" for number in range(config.n_layer)]
    attentions = [f"{layer}.attention.{n}" for layer in layers for n in range(config.n_attention)]
    feeds, bias = [f"{layer}.feed_forward" for layer in layers], config.bias
    find("temperature")  # which `Shape` has
    embedding = find("embedding.weight", V, D)  # first, since it says how large the others are
    position, angle = positions(config)
    found = Weights(
        embedding=embedding,
        side=find("side.weight", config.n_features and config.n_features + 1, D),
        position=position,
        angle=angle,
        attention_norm=np.stack([norm_of(f"{name}.norm") for name in attentions]),
        qkv=np.stack([find(f"{name}.layer.w_qkv.weight", 3 * D, D) for name in attentions]),
        mix=np.stack([find(f"{name}.layer.w_o.weight", D, D) for name in attentions]),
        feed_norm=np.stack([norm_of(f"{name}.norm") for name in feeds]),
        w_1=np.stack([find(f"{name}.layer.w_1.weight", 4 * D, D) for name in feeds]),
        b_1=np.stack([find(f"{name}.layer.w_1.bias", 4 * D, is_there=bias) for name in feeds]),
        w_2=np.stack([find(f"{name}.layer.w_2.weight", D, 4 * D) for name in feeds]),
        b_2=np.stack([find(f"{name}.layer.w_2.bias", D, is_there=bias) for name in feeds]),
        norm=norm_of("norm", is_there=config.norm_position == "pre"),
        head=find("head.weight", V, D),
        interval=find("interval_head.table.weight", rows, D),
        end=find("end_head.table.weight", ENDS * END_ROWS if has_end else 0, D),
    )
    if unread:
        raise ValueError(min(unread))
    return found


def positions(config: DecoderConfig) -> tuple[Floats, Reals]:
    """Return what is added at each place, (C, D) or (0, D), and pairs' angles (`Weights`)."""
    D, by_time = config.n_embd, config.positions == "rotary_time"
    if config.positions == "sinusoidal":
        angle = 10000.0 ** (-np.arange(0, D, 2) / D) * np.arange(config.context_length)[:, None]
        angle = angle.astype(np.float32)
        return np.stack((np.sin(angle), np.cos(angle)), axis=2).reshape(-1, D), np.zeros(0)
    pair = np.arange(D // config.n_head // (4 if by_time else 2))
    angle = 10000.0 ** (-pair / len(pair))
    if by_time:
        of_time = 2 * np.pi / (2 * (LONGEST / 2) ** (pair / max(len(pair) - 1, 1)))
        angle = np.stack((angle, of_time), axis=1).ravel()
    return np.zeros((0, D), np.float32), angle.astype(np.float32).astype(np.float64)
