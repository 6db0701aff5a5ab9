"""What the tests of the model room share."""

from typing import NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

from common.interface import ENDS, OCTAVE, PAD, SHARED_REFERENCES, SideInput
from data.tokens.features import SideFeatures
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import PlainSteps, network_of
from model.engine import Engine
from model.reader import Rebase
from model.steps import joined


def opinionated(config: DecoderConfig, seed: int, std: float) -> Decoder:
    """An untrained decoder in evaluation mode, none of whose weights are zero.

    The zero start would hide most of what is tested.
    """
    torch.manual_seed(seed)
    decoder = Decoder(config).eval()
    for weight in decoder.parameters():
        if not weight.any():
            torch.nn.init.normal_(weight, std=std)
    return decoder


class PlainReader(PlainSteps):
    """A decoder that reads on as `Steps` says: the ids are kept, and all are read anew."""

    def read(self, ids, side=None, cache=None):
        if cache is not None:
            ids = np.concatenate((cache[0], ids), axis=1)
            side = joined((cache[1], side)) if cache[1] and side else None
        counts = np.count_nonzero(ids, axis=1)  # of each row, but for Pad
        order = np.argsort(ids == PAD, axis=1, kind="stable")[:, : counts.max()]  # Pad at the right
        rows = np.arange(len(ids))
        at = rows[:, None], order
        logits = self.logits(ids[at], side and side.map(lambda array: array[at]))  # (B, T, V)
        return logits[rows, counts - 1], (ids, side)

    def repeated(self, cache, times):
        ids, side = cache
        return ids.repeat(times, axis=0), side and side.map(lambda array: array.repeat(times, 0))


def engine_of(decoder: Decoder) -> Engine:
    """A decoder compiled for a CPU, with the weights that it has now."""
    return Engine(network_of(decoder))


@st.composite
def configs(draw, vocabulary_size, context_length):
    """Configs of any of the choices, side input and logits by interval among them."""
    positions = draw(st.sampled_from(["sinusoidal", "rotary", "rotary_time"]))
    programs = draw(st.sampled_from([0, 2]))
    with_side = programs or positions == "rotary_time" or draw(st.booleans())
    return DecoderConfig(
        vocabulary_size,
        n_layer=2,
        n_head=2,
        n_embd=16,
        context_length=context_length,
        n_attention=draw(st.sampled_from([1, 2])),
        positions=positions,
        norm=draw(st.sampled_from(["layer", "rms"])),
        norm_position=draw(st.sampled_from(["post", "pre"])),
        activation=draw(st.sampled_from(["relu", "squared_relu"])),
        qk_norm=draw(st.booleans()),
        bias=draw(st.booleans()),
        side_blocks=(1, 2) if with_side else (),
        n_programs=programs,
        n_pitches=(vocabulary_size - 5) // 2 if programs else 0,
        first_note=5 if programs else 0,
        n_classes=draw(st.sampled_from([0, 12])) if programs else 0,
        n_durations=3 if programs else 0,
        first_duration=vocabulary_size - 3 if programs else 0,
    )


def random_side(config: DecoderConfig, ids, rng) -> SideInput | None:
    """A side input that a decoder may have beside ids (B, T), one column in four set."""
    if not config.side_blocks:
        return None
    P, N = config.n_programs, config.n_pitches
    bits = rng.random((*ids.shape, config.n_features)) < 0.25
    references = rng.integers(-N, N + 1, (*ids.shape, 2 * P + SHARED_REFERENCES if P else 0))
    moves = rng.integers(-N, 2 * N, (*ids.shape, P))
    time = rng.integers(0, 500, ids.shape)
    is_token = (ids != PAD)[..., None]
    sounding = rng.integers(2, size=(*ids.shape, OCTAVE))
    ends = rng.integers(-2, 6, (*ids.shape, ENDS))
    there = (its.clip(min=0) * is_token for its in (references, moves, sounding, ends))
    return SideInput(bag_of(bits * is_token), *there, time * is_token[..., 0])


def bag_of(bits) -> np.ndarray:
    """The bag (B, T, K) of bits (B, T, S), NumPy's or torch's: their numbers, from 1."""
    bits = np.asarray(bits).astype(bool)
    bag = np.sort(np.where(bits, np.arange(1, bits.shape[-1] + 1), 0), axis=-1)
    return np.ascontiguousarray(bag[..., ::-1], dtype=np.int32)


def side_input(bits, time=None) -> SideInput:
    """A side input of these bits (B, T, S), NumPy's or torch's, and of no programs."""
    is_tensor = isinstance(bits, torch.Tensor)
    bag = torch.from_numpy(bag_of(bits)) if is_tensor else bag_of(bits)
    none = bits[..., :0]
    return SideInput(bag, none, none, none, none, bits[..., 0] if time is None else time)


class Told(NamedTuple):
    """A side input whose bag is spread out, NumPy's."""

    bits: np.ndarray  # (B, T, S + 1)
    references: np.ndarray
    moves: np.ndarray
    sounding: np.ndarray
    ends: np.ndarray
    time: np.ndarray

    @property
    def flat(self) -> np.ndarray:
        """(B, T, columns) all of it side by side, bits first."""
        parts = (*self[:5], self.time[..., None])
        return np.concatenate([np.asarray(part) for part in parts], axis=-1)


def told(side: SideInput, features: SideFeatures) -> Told:
    """Spread a side input out; each feature stands in it once."""
    bag, *beside = (np.asarray(array) for array in side)
    bits = np.zeros((*bag.shape[:2], features.size), dtype=int)
    np.add.at(bits, (*np.indices(bag.shape)[:2], bag), bag > 0)
    assert bits.max(initial=0) <= 1
    return Told(bits, *beside)


def flat(side: SideInput, features: SideFeatures) -> np.ndarray:
    """(B, T, columns) all of a side input side by side, bits first."""
    return told(side, features).flat


def last_half(context_length: int) -> Rebase:
    """The plain `rebase`: the last half of the context, rounded up, wherever that begins."""
    keep = (context_length + 1) // 2

    def rebase(history: np.ndarray) -> np.ndarray:
        return history[-keep:]

    return rebase
