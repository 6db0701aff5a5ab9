"""Notes that are begun and never ended, and what they would do to the notes after them.

symusic pairs the beginnings and ends of a pitch first come, first served. So behind a beginning
without an end each later note of that pitch would get the end of the one after it.
"""

import io

import mido
import symusic
from mido.midifiles.meta import KeySignatureError

_CHUNK_HEAD = 8  # bytes: MTrk and a length
_END_OF_TRACK = b"\xff\x2f\x00"
_MOST_TRACKS = 512  # that are looked into: each takes eight kilobytes more for it
_LATE = 2**28 - 1  # ticks, the longest delta there is: no note lasts so long
# After the delta that the end of the track had: nothing, and much later an end of every pitch.
_ENDINGS = (
    b"\xff\x01\x00"
    + b"\xff\xff\xff\x7f"
    + b"\x00".join(
        bytes([0x80 | channel, pitch, 0]) for channel in range(16) for pitch in range(128)
    )
    + b"\x00"
)


def has_hanging_notes(content: bytes) -> bool:
    """Return whether a note in a MIDI file is never ended.

    It puts in an end of every pitch, far too late, and looks whether a note uses it.

    Files that are not whole, or of very many tracks, are taken to have none.
    """
    parts, at = [content[:14]], 14
    while content[at : at + 4] == b"MTrk":
        length = int.from_bytes(content[at + 4 : at + _CHUNK_HEAD], "big")
        body = content[at + _CHUNK_HEAD : at + _CHUNK_HEAD + length]
        if not body.endswith(_END_OF_TRACK) or len(parts) > 3 * _MOST_TRACKS:
            return False
        body = body.removesuffix(_END_OF_TRACK) + _ENDINGS + _END_OF_TRACK
        parts += [b"MTrk", len(body).to_bytes(4, "big"), body]
        at += _CHUNK_HEAD + length
    try:
        ended = symusic.Score.from_midi(b"".join(parts))
    except (RuntimeError, ValueError):
        return False
    return any((track.notes.numpy()["duration"] >= _LATE).any() for track in ended.tracks)


def end_hanging_notes(content: bytes) -> bytes:
    """End notes that hang where their pitch begins again; return a broken file as it is."""
    try:
        file = mido.MidiFile(file=io.BytesIO(content))
        for track in file.tracks:
            track[:] = _ended(track)
        repaired = io.BytesIO()
        file.save(file=repaired)
    except (OSError, EOFError, ValueError, LookupError, TypeError, KeySignatureError):
        return content
    return repaired.getvalue()


def _ended(track: mido.MidiTrack) -> list[mido.Message]:
    """Return a track in which a note that hangs ends where its pitch begins again."""
    open_notes: dict[tuple[int, int], int] = {}
    for message in track:
        key = _pitch(message)
        if key is not None:
            change = 1 if _begins(message) else -1
            open_notes[key] = max(0, open_notes.get(key, 0) + change)
    hanging = {key for key, count in open_notes.items() if count}
    sounding, messages = set(), []
    for message in track:
        key = _pitch(message)
        if key in hanging:
            if not _begins(message):
                sounding.discard(key)
            elif key in sounding:
                channel, note = key
                off = mido.Message("note_off", channel=channel, note=note, time=message.time)
                messages.append(off)
                message = message.copy(time=0)
            if _begins(message):
                sounding.add(key)
        messages.append(message)
    return messages


def _pitch(message: mido.Message) -> tuple[int, int] | None:
    """Return channel and pitch of a message that begins or ends a note; of others None."""
    return (message.channel, message.note) if message.type in ("note_on", "note_off") else None


def _begins(message: mido.Message) -> bool:
    return bool(message.type == "note_on" and message.velocity)
