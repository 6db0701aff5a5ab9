"""Damage the bytes of files, and the values in JSON or in a checkpoint."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data.midi.io import midi_bytes
from tests.music import random_score

FOLDER = "ETUDE_FUZZ_FOLDER"  # an environment variable, because worker processes inherit it

Mutation = Callable[[bytes, np.random.Generator], bytes]

# Values that replace a correct one.
LIES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 3, 2**31, 2**70, -0.5, 1e300, float("nan"), float("inf")),
    *("", "x", "7", "\x1b[31m\n", "../..", [], {}, [[]], [0], {"a": 1}, [[[[]]]] * 3),
)


@cache
def originals() -> tuple[bytes, ...]:
    """Return the contents of the files that mutants are made from."""
    if FOLDER in os.environ:
        return tuple(path.read_bytes() for path in sorted(Path(os.environ[FOLDER]).glob("*.mid")))
    return tuple(midi_bytes(random_score(np.random.default_rng(seed))) for seed in range(200))


def mutant(number: int, seed: int) -> bytes:
    """Return a file with one to three mutations; the same number and seed give the same file.

    Half of the files then get correct track lengths, or few would pass the first check.
    """
    rng = np.random.default_rng((seed, number))
    content = _any_original(rng)
    for _ in range(int(rng.integers(1, 4))):
        content = MUTATIONS[int(rng.integers(len(MUTATIONS)))](content, rng)
    return _with_lengths(content) if rng.random() < 0.5 else content


def _any_original(rng: np.random.Generator) -> bytes:
    return originals()[int(rng.integers(len(originals())))]


def _noise(rng: np.random.Generator, most: int) -> bytes:
    below = 128 if rng.random() < 0.7 else 256  # data bytes more often than status bytes
    return rng.integers(below, size=rng.integers(1, most + 1), dtype=np.uint8).tobytes()


def _with_lengths(content: bytes) -> bytes:
    """Correct the headers of tracks to state their true lengths."""
    head, *tracks = content.split(b"MTrk")
    return head + b"".join(
        b"MTrk" + max(0, len(track) - 4).to_bytes(4, "big") + track[4:] for track in tracks
    )


def _flip_bits(content: bytes, rng: np.random.Generator) -> bytes:
    flipped = np.frombuffer(content, dtype=np.uint8).copy()
    at = rng.integers(max(1, len(flipped)), size=rng.integers(1, 9))
    if len(flipped):
        flipped[at] ^= (1 << rng.integers(8, size=len(at))).astype(np.uint8)
    return flipped.tobytes()


def _insert(content: bytes, rng: np.random.Generator, most: int = 8) -> bytes:
    """Insert bytes that are no event of their own, and shift everything after them."""
    at = int(rng.integers(len(content) + 1))
    return content[:at] + _noise(rng, most) + content[at:]


def _delete(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) + 1))
    return content[:at] + content[at + int(rng.integers(1, 9)) :]


def _truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _splice(content: bytes, rng: np.random.Generator) -> bytes:
    other = _any_original(rng)
    return _truncate(content, rng) + other[int(rng.integers(len(other) + 1)) :]


def _any_track(content: bytes, rng: np.random.Generator) -> int | None:
    """Return the offset of a random track's length; None if there is no track."""
    tracks = [found.end() for found in re.finditer(b"MTrk", content)]
    return tracks[int(rng.integers(len(tracks)))] if tracks else None


def _chunk_length(content: bytes, rng: np.random.Generator) -> bytes:
    at = _any_track(content, rng)
    if at is None:
        return content
    length = int(rng.integers(2 ** int(rng.integers(1, 33))))
    return content[:at] + length.to_bytes(4, "big") + content[at + 4 :]


def _header(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(14))
    return content[:at] + _noise(rng, 1) + content[at + 1 :]


def _odd_event(content: bytes, rng: np.random.Generator) -> bytes:
    """Insert an event that is well-formed but absurd at the start of a track."""
    at = _any_track(content, rng)
    if at is None:
        return content
    kind, size = ((0x51, 3), (0x58, 4), (0x59, 2), (0x51, 1), (0x2F, 0))[int(rng.integers(5))]
    delta = (b"\0", b"\x60", b"\xff\x7f", b"\xff\xff\xff\x7f")[int(rng.integers(4))]
    said = rng.choice([0, 1, 2, 4, 8, 127, 128, 255], size=size).astype(np.uint8).tobytes()
    return _with_events(content, at, delta + bytes([0xFF, kind, size]) + said)


def _with_events(content: bytes, at: int, events: bytes) -> bytes:
    """Insert events at the beginning of the track whose length stands at an offset."""
    length = (int.from_bytes(content[at : at + 4], "big") + len(events)) % 2**32
    return content[:at] + length.to_bytes(4, "big") + events + content[at + 4 :]


def _in_first_track(content: bytes, events: bytes) -> bytes:
    """Insert events at the beginning of the first track."""
    at = content.find(b"MTrk") + 4
    return content if at < 4 else _with_events(content, at, events)


def _long_deltas(content: bytes, rng: np.random.Generator) -> bytes:
    """Add up to 32 of the longest deltas; 16 of them reach 2^32, where ticks wrap."""
    return _in_first_track(content, b"\xff\xff\xff\x7f\xff\x01\x00" * int(rng.integers(1, 33)))


def _hanging(content: bytes, rng: np.random.Generator) -> bytes:
    """Add notes that never end, at a few pitches, some of them very often."""
    pitches = rng.integers(128, size=int(rng.integers(1, 128)))
    often = int(rng.choice([1, 3, 20, 300]))
    events = b"".join(bytes([0, 0x90, pitch, 64]) for pitch in pitches.tolist())
    return _in_first_track(content, events + bytes([0, 0x90, int(pitches[0]), 64]) * often)


def _long_bars(content: bytes, rng: np.random.Generator) -> bytes:
    """Begin with one or more bars of up to 1,020 beats, each a moment after the one before."""
    events = b""
    for _ in range(int(rng.integers(1, 4))):
        delta = (b"\0", b"\x30", b"\x8f\x00")[int(rng.integers(3))]
        numerator, power = int(rng.integers(17, 256)), int(rng.integers(0, 8))
        events += delta + bytes([0xFF, 0x58, 4, numerator, power, 24, 8])
    return _in_first_track(content, events)


def _high_data(content: bytes, rng: np.random.Generator) -> bytes:
    """Raise one or several data bytes of notes and controllers above 127."""
    found = [at.start() for at in re.finditer(rb"[\x80-\xbf][\x00-\x7f]{2}", content[14:])]
    changed = bytearray(content)
    for at in rng.choice(found, size=int(rng.integers(1, 5))).tolist() if found else ():
        changed[14 + at + int(rng.integers(1, 3))] |= 0x80
    return bytes(changed)


def _many_tracks(content: bytes, rng: np.random.Generator) -> bytes:
    """Repeat the last track, up to 600 times."""
    at = content.rfind(b"MTrk")
    return content if at < 0 else content + content[at:][:512] * int(rng.integers(1, 600))


MUTATIONS: tuple[Mutation, ...] = (
    *(_flip_bits, _insert, _delete, _truncate, _splice),
    *(_chunk_length, partial(_insert, most=64), _header, _odd_event),
    *(_long_deltas, _hanging, _many_tracks, _long_bars, _high_data),
)

# mutations that work on any file, not only on MIDI
ANYWHERE = MUTATIONS[:5]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes of any file after a mutation that does not need MIDI."""
    return ANYWHERE[int(rng.integers(len(ANYWHERE)))](content, rng)


def with_a_lie(said: Any, rng: np.random.Generator) -> Any:
    """Return nested dictionaries, lists, tensors and values with a random one replaced by a lie."""
    said = copy.deepcopy(said)
    holder: Any = None
    key: Any = None
    inside = said
    while (
        isinstance(inside, dict | list) and len(inside) and (holder is None or rng.random() < 0.8)
    ):
        keys = [*inside] if isinstance(inside, dict) else range(len(inside))
        holder, key = inside, keys[int(rng.integers(len(keys)))]
        inside = holder[key]
    if holder is None or rng.random() < 0.05:
        return LIES[int(rng.integers(len(LIES)))]
    if rng.random() < 0.15:
        del holder[key]
    elif isinstance(inside, torch.Tensor) and rng.random() < 0.7:
        holder[key] = _another_tensor(inside, rng)
    else:
        holder[key] = LIES[int(rng.integers(len(LIES)))]
    return said


def _another_tensor(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    others = (tensor.flatten()[1:], tensor[None], tensor.double() * float("nan"), tensor.bool())
    return others[int(rng.integers(len(others)))].clone()
