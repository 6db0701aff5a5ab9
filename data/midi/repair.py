"""What symusic reads wrongly: notes without end, late times, escapes, data bytes over 127."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import symusic
from numpy.typing import NDArray

from common.arrays import Ints

_CHUNK_HEAD = 8  # bytes: MTrk and a length
_END_OF_TRACK = b"\xff\x2f\x00"
_MOST_TRACKS = 512  # that are looked into: each takes eight kilobytes more for it
_LONGEST_DELTA = b"\xff\xff\xff\x7f"
_LATE = 2 * (2**28 - 1)  # ticks, two such deltas: no note lasts so long
_MOST_HANGING = 4096  # notes of one pitch
_MOST_ENDS = 2**19  # that are put in: each takes 64 bytes, and hundreds while it is read
LAST_TICK = 2**31 - _LATE - 1  # symusic counts to 2^31, and late ends are put in after the last
_LONG_DELTAS = re.compile(rb"[\x80-\xff]{2,3}[\x00-\x7f]")  # and other bytes that look like one
_DATA_BYTES = {0xC0: 1, 0xD0: 1}  # of a channel's messages; the others have 2
_MESSAGE, _ESCAPE, _META = 0xF0, 0xF7, 0xFF  # status bytes of what has a length


def repaired(content: bytes) -> symusic.Score | None:
    """Read a MIDI file in which notes hang; None where none does.

    symusic pairs the beginnings and ends of a pitch first come, first served. So behind a beginning
    without an end each later note of that pitch would get the end of the one after it. Here a note
    that hangs ends where its pitch begins again, or says nothing where it does not. To find them,
    ends of every pitch are put in, far too late: notes that hang last until there.

    Files that are not whole, or of very many tracks, are taken to have none.

    Raises:
        ValueError: too many hang.
    """
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
    """Read a file with so many ends more of each pitch in each track; None if it is not whole."""
    ends = np.zeros((each, 16, len(pitches), 4), dtype=np.uint8)  # messages, each with a delta of 0
    ends[..., 0], ends[..., 1] = 0x80 | np.arange(16)[:, None], pitches
    nothing = b"\xff\x01\x00"  # after the delta that the end of the track had
    late = nothing + _LONGEST_DELTA + nothing + _LONGEST_DELTA + ends.tobytes()
    parts = [content[:14]]
    for length, body in track_bytes(content):
        if not body.endswith(_END_OF_TRACK) and len(body) == length and walk(body).is_whole:
            body += b"\0" + _END_OF_TRACK  # which is missing
        if not body.endswith(_END_OF_TRACK) or len(parts) > 3 * _MOST_TRACKS:
            return None
        body = body.removesuffix(_END_OF_TRACK) + late + _END_OF_TRACK
        parts += [b"MTrk", len(body).to_bytes(4, "big"), body]
    try:
        return symusic.Score.from_midi(b"".join(parts))
    except (RuntimeError, ValueError):
        return None


def _ended(notes: dict[str, NDArray[Any]], hanging: list[int]) -> Any:
    """Return the notes of a track, those of some pitches with other ends."""
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
    """Return when notes of one pitch end, (N,): where it begins again, or at the next end.

    -1 where there is neither. An end at the tick of a beginning is of the note before.
    """
    begins, never = np.sort(time), np.iinfo(np.int64).max
    ends = np.append(np.sort(end[end - time < _LATE]), never)
    order = np.argsort(time, kind="stable")
    again = np.empty_like(time)
    again[order] = np.append(begins[1:], never)
    first = np.minimum(again, ends[np.searchsorted(ends, time, side="right")])
    return np.where(first == never, -1, first)


def has_late_events(content: bytes) -> bool:
    """Return whether something comes too late for symusic's ticks, which wrap, to find its end.

    Few files have bytes that could be so many long deltas; only these are read event by event.
    """
    longest = sum(2 ** (7 * len(delta)) for delta in _LONG_DELTAS.findall(content))
    if longest + len(content) * 2**14 < LAST_TICK:
        return False
    return any(walk(body).last_tick >= LAST_TICK for _, body in track_bytes(content))


def without_escapes(content: bytes) -> bytes:
    """Return a MIDI file with each escape (F7, a length, bytes to send) made a message (F0).

    symusic takes an escape's length for the next event's delta, and its bytes for events. Most
    files have no byte F7; a track that has some is read up to the last.
    """
    if _ESCAPE not in content:
        return content
    mended, at = bytearray(content), 14
    for _, body in track_bytes(content):
        at += _CHUNK_HEAD
        for escape in walk(body[: body.rfind(_ESCAPE) + 1]).escapes:
            mended[at + escape] = _MESSAGE
        at += len(body)
    return bytes(mended)


def clipped(content: bytes) -> tuple[bytes, int]:
    """Return a MIDI file with its data bytes over 127 made 127, as players do, and how many it had.

    One in which a track is not whole is returned as it is, with none.
    """
    parts, count = [content[:14]], 0
    for length, body in track_bytes(content):
        found = walk(body)
        if not found.is_whole:
            return content, 0
        mended = bytearray(body)
        for at in found.over:
            mended[at] = 127
        parts += [b"MTrk", length.to_bytes(4, "big"), bytes(mended)]
        count += len(found.over)
    return b"".join(parts), count


class Walk(NamedTuple):
    """What is met where a track is read event by event."""

    last_tick: int
    is_whole: bool  # so is the last event
    over: list[int]  # where data bytes over 127 stand
    escapes: list[int]  # where F7 begins an event


def walk(body: bytes) -> Walk:
    """Read a track's events one after the other, as far as they can be read."""
    at = tick = status = 0
    over: list[int] = []
    escapes: list[int] = []
    try:
        while at < len(body):
            delta, at = _number(body, at)
            tick += delta
            if body[at] >= 0x80:
                status, at = body[at], at + 1
                if status == _ESCAPE:
                    escapes.append(at - 1)
            elif status >= _MESSAGE:  # which nothing may follow without a status of its own
                return Walk(tick, False, over, escapes)
            if status >= _MESSAGE:  # a system message: its length comes before it
                length, at = _number(body, at + (status == _META))
                at += length
            else:
                data = range(at, at + _DATA_BYTES.get(status & 0xF0, 2))
                over += [place for place in data if body[place] > 127]
                at = data.stop
    except IndexError:  # cut short
        return Walk(tick, False, over, escapes)
    return Walk(tick, at == len(body), over, escapes)


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, and where it ends; IndexError if it has over four bytes."""
    value, last = 0, at + 3
    while body[at] >= 0x80:
        if at == last:
            raise IndexError(at)
        value, at = value << 7 | body[at] & 0x7F, at + 1
    return value << 7 | body[at], at + 1


def track_bytes(content: bytes) -> list[tuple[int, bytes]]:
    """Return the tracks of a MIDI file, as far as they follow each other, with their lengths.

    The last has fewer bytes than its length where the file is cut short.
    """
    bodies, at = [], 14
    while content[at : at + 4] == b"MTrk":
        length = int.from_bytes(content[at + 4 : at + _CHUNK_HEAD], "big")
        bodies.append((length, content[at + _CHUNK_HEAD : at + _CHUNK_HEAD + length]))
        at += _CHUNK_HEAD + length
    return bodies
