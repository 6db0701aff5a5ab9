"""Repairs what symusic reads wrongly: notes without end, late times, escapes, bytes over 127."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import symusic
from numpy.typing import NDArray

from common.arrays import Ints
from common.compiled import compiled, compiled_inside

_CHUNK_HEAD = 8  # bytes: MTrk, and a length
_END_OF_TRACK = b"\xff\x2f\x00"
_MOST_TRACKS = 512  # that are examined: each takes eight kilobytes more for it
_LONGEST_DELTA = b"\xff\xff\xff\x7f"
_LATE = 2 * (2**28 - 1)  # ticks, two of the longest deltas: no note lasts this long
_MOST_HANGING = 4096  # hanging notes of one pitch
_MOST_ENDS = 2**19  # ends that are put in: each takes 64 bytes, and hundreds while it is read
LAST_TICK = 2**31 - _LATE - 1  # symusic counts to 2^31, and late ends come after the last tick
_OFF, _ON = 0x80, 0x90  # status bytes of notes
MESSAGE, _ESCAPE, _META = 0xF0, 0xF7, 0xFF  # status bytes of events that have a length


def repaired(content: bytes) -> symusic.Score | None:
    """Read a MIDI file in which notes hang, that is, have no end; None: no note hangs.

    symusic pairs the beginnings and ends of each pitch in the order in which they come. So after a
    beginning without an end, each later note of that pitch would get the end of the next one. Here,
    a hanging note ends where its pitch begins again, and is no note if it never does. To find
    hanging notes, ends of every pitch are put in, far too late, and the hanging ones last until
    these. In a small file this takes four times as long as reading it, so `walk` finds the few
    files in which a note may hang.

    Files that are not whole, or have very many tracks, are taken to have no hanging notes.

    Raises:
        ValueError: too many notes hang.
    """
    if len(track_bytes(content)) > _MOST_TRACKS:
        return None
    pitches, each = np.arange(128), 1
    n_tracks = content.count(b"MTrk")
    while True:
        file = _with_late_ends(content, pitches, each)
        if file is None:
            return None
        notes = [track.notes.numpy() for track in file.tracks]
        hanging = [its["pitch"][its["duration"] >= _LATE] for its in notes]
        most = max((int(np.bincount(its).max()) for its in hanging if len(its)), default=0)
        if most == 0:
            return None
        if most < each:
            break
        pitches, each = np.unique(np.concatenate(hanging)), each * 16
        if each > _MOST_HANGING or each * len(pitches) * n_tracks > _MOST_ENDS:
            raise ValueError("too many notes are never ended")
    for track, its, pitch in zip(file.tracks, notes, hanging, strict=True):
        if len(pitch):
            track.notes = _ended(its, np.unique(pitch).tolist())
    return file


def _with_late_ends(content: bytes, pitches: Ints, each: int) -> symusic.Score | None:
    """Read a file with `each` more ends of each pitch in each track; None: it is not whole."""
    ends = np.zeros((each, 16, len(pitches), 4), dtype=np.uint8)  # messages, each with a delta of 0
    ends[..., 0], ends[..., 1] = 0x80 | np.arange(16)[:, None], pitches
    nothing = b"\xff\x01\x00"  # after the delta that belonged to the end of the track
    late = nothing + _LONGEST_DELTA + nothing + _LONGEST_DELTA + ends.tobytes()
    parts = [content[:14]]
    for length, body in track_bytes(content):
        if not body.endswith(_END_OF_TRACK) and len(body) == length and walk(body).is_whole:
            body += b"\0" + _END_OF_TRACK  # the end is missing
        if not body.endswith(_END_OF_TRACK):
            return None
        body = body.removesuffix(_END_OF_TRACK) + late + _END_OF_TRACK
        parts += [b"MTrk", len(body).to_bytes(4, "big"), body]
    try:
        return symusic.Score.from_midi(b"".join(parts))
    except (RuntimeError, ValueError):
        return None


def _ended(notes: dict[str, NDArray[Any]], hanging: list[int]) -> Any:
    """Return the notes of a track, with new ends for the notes of the `hanging` pitches."""
    time, pitches = notes["time"].astype(np.int64), notes["pitch"]
    end = time + notes["duration"]
    for pitch in hanging:
        its = np.flatnonzero(pitches == pitch)
        end[its] = _ends(time[its], end[its])
    known = np.flatnonzero(end >= 0)
    duration = (end - time)[known].astype(np.int32)
    columns = (notes["time"][known], duration, pitches[known], notes["velocity"][known])
    return symusic.Note.from_numpy(*columns)


def _ends(time: Ints, end: Ints) -> Ints:
    """Return when notes of one pitch end, (N,): when the pitch begins again, or at the next end.

    -1 if there is neither. An end at the same tick as a beginning belongs to the note before.
    """
    begins, never = np.sort(time), np.iinfo(np.int64).max
    ends = np.append(np.sort(end[end - time < _LATE]), never)
    order = np.argsort(time, kind="stable")
    again = np.empty_like(time)
    again[order] = np.append(begins[1:], never)
    first = np.minimum(again, ends[np.searchsorted(ends, time, side="right")])
    return np.where(first == never, -1, first)


def mended(content: bytes, places: list[list[int]], byte: int) -> bytes:
    """Return a MIDI file with `byte` at some places in each track."""
    if not any(places):
        return content
    mended, at = bytearray(content), 14
    for (_, body), its in zip(track_bytes(content), places, strict=True):
        at += _CHUNK_HEAD
        for place in its:
            mended[at + place] = byte
        at += len(body)
    return bytes(mended)


class Walk(NamedTuple):
    """What reading a track event by event shows."""

    last_tick: int
    is_whole: bool  # whether the last event is whole
    may_hang: bool  # whether a note may hang; also if some bytes make no sense
    over: list[int]  # where data bytes over 127 stand
    escapes: list[int]  # where F7 begins an event


@compiled
def walk(body: bytes) -> Walk:
    """Read the events of a track one after the other, as far as they can be read."""
    at = tick = status = 0
    over, escapes = [at for _ in range(0)], [at for _ in range(0)]  # empty, of a type Numba knows
    sounding = np.zeros((16, 128), dtype=np.int32)  # how many notes have begun and not ended
    while at < len(body):
        delta, at = _number(body, at)
        tick += delta
        if at >= len(body) or (body[at] < 0x80 and status >= MESSAGE):
            at = len(body) + 1  # it is cut short, or nothing may follow without a status of its own
            break
        if body[at] >= 0x80:
            status, at = body[at], at + 1
            if status == _ESCAPE:
                escapes.append(at - 1)
        if status >= MESSAGE:  # a system message begins with its length
            length, at = _number(body, at + (status == _META))
            at += length
            continue
        first, at = at, at + (1 if status & 0xE0 == 0xC0 else 2)  # C0 and D0 have one byte
        for place in range(first, min(at, len(body))):
            if body[place] > 127:
                over.append(place)
        if status & 0xE0 == _OFF and at <= len(body):  # or _ON
            notes, pitch = sounding[status & 15], body[first] & 127
            is_begun = status >= _ON and body[first + 1] > 0
            notes[pitch] = max(notes[pitch] + (1 if is_begun else -1), 0)
    is_whole = at == len(body)
    may_hang = not is_whole or len(over) > 0 or bool(sounding.any())
    return Walk(tick, is_whole, may_hang, over, escapes)


@compiled_inside
def _number(body: bytes, at: int) -> tuple[int, int]:
    """Return a number with 7 bits in each byte, and where it ends; beyond all if it is too long."""
    value = 0
    for place in range(at, min(at + 4, len(body))):
        value = value << 7 | body[place] & 0x7F
        if body[place] < 0x80:
            return value, place + 1
    return 0, len(body) + 1


def track_bytes(content: bytes) -> list[tuple[int, bytes]]:
    """Return the tracks of a MIDI file with their lengths, as far as they follow each other.

    If the file is cut short, the last track has fewer bytes than its length.
    """
    bodies, at = [], 14
    while content[at : at + 4] == b"MTrk":
        length = int.from_bytes(content[at + 4 : at + _CHUNK_HEAD], "big")
        bodies.append((length, content[at + _CHUNK_HEAD : at + _CHUNK_HEAD + length]))
        at += _CHUNK_HEAD + length
    return bodies
