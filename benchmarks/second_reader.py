"""A second, independent reader of MIDI files, based on mido.

It is slow and plain, and shares no code with `data.midi.io`, which is compared with it.
"""

from __future__ import annotations

import io
from collections import defaultdict, deque

import mido

Note = tuple[int, int, int, int, int]  # start, end (ticks), pitch, velocity, program
DRUM_CHANNEL, DRUMS = 9, 128


class NotComparedError(Exception):
    """A file that mido refuses, or reads differently for a known reason."""


def second_reading(content: bytes) -> list[Note]:
    """Return all notes of a file, sorted, extended to where the sustain pedal is released.

    Raises:
        NotComparedError: mido refuses the file, or reads it by rules of its own.
    """
    tracks, at = [], 14
    try:
        while content[at : at + 4] == b"MTrk":  # one by one, so that none reads on into the next
            end = at + 8 + int.from_bytes(content[at + 4 : at + 8], "big")
            alone = content[:10] + b"\0\1" + content[12:14] + content[at:end]
            tracks += mido.MidiFile(file=io.BytesIO(alone), clip=True).tracks
            at = end
    except (OSError, EOFError, ValueError, KeyError, IndexError, mido.KeySignatureError) as error:
        raise NotComparedError(f"mido refuses it ({type(error).__name__})") from None
    if not len(tracks) == content.count(b"MTrk") == int.from_bytes(content[10:12], "big"):
        raise NotComparedError("another number of tracks than the header says")
    return sorted(note for track in tracks for note in _notes_of(track))


def _notes_of(track: mido.MidiTrack) -> list[Note]:
    tick, playing = 0, {}
    programs: dict[int, set[int]] = defaultdict(set)
    begun: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    ends: dict[tuple[int, int], list[int]] = defaultdict(list)
    pedals: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for message in track:
        tick += message.time
        if message.type == "unknown_meta":
            raise NotComparedError("mido forgets the time of a message that it does not know")
        if message.type == "end_of_track" and message is not track[-1]:
            raise NotComparedError("a track that goes on after its end")
        if message.type == "control_change" and message.control == 64:
            pedals[message.channel].append((tick, message.value >= 64))
        if message.type == "program_change":
            playing[message.channel] = message.program
        if message.type in ("note_on", "note_off"):
            voice = message.channel, message.note
            if message.type == "note_on" and message.velocity:
                begun[voice].append((tick, message.velocity))
                programs[message.channel].add(playing.get(message.channel, 0))
            elif len(ends[voice]) < len(begun[voice]):  # otherwise there is no note to end
                ends[voice].append(tick)
    if any(len(its) > 1 for its in programs.values()):
        raise NotComparedError("a channel that changes its instrument")
    notes = []
    for channel, (program,) in programs.items():
        its = [
            (pitch, start, end, velocity)
            for (where, pitch), begins in begun.items()
            if where == channel
            for start, end, velocity in _with_ends(begins, ends[channel, pitch])
        ]
        if channel == DRUM_CHANNEL:
            program = DRUMS
        elif pedals[channel] and its:
            its = _held(sorted(its, key=lambda note: note[:2]), pedals[channel])
        notes += [(start, end, pitch, velocity, program) for pitch, start, end, velocity in its]
    return notes


def _held(
    notes: list[tuple[int, int, int, int]], pedal: list[tuple[int, bool]]
) -> list[tuple[int, int, int, int]]:
    """Extend notes that end while the pedal is down until it is up or the pitch begins again."""
    last = max([end for _, _, end, _ in notes] + [tick for tick, _ in pedal])
    held = []
    for at, (pitch, start, end, velocity) in enumerate(notes):
        until = [is_down for tick, is_down in pedal if tick <= end]
        if until and until[-1]:
            up = next((tick for tick, is_down in pedal[len(until) :] if not is_down), last)
            again = notes[at + 1][1] if at + 1 < len(notes) and notes[at + 1][0] == pitch else last
            end = max(end, min(up, again))
        held.append((pitch, start, end, velocity))
    return held


def _with_ends(begins: list[tuple[int, int]], ends: list[int]) -> list[tuple[int, int, int]]:
    """Pair beginnings with ends in order; if an end is missing, notes end where the next begins."""
    if len(begins) == len(ends):
        return [(start, end, velocity) for (start, velocity), end in zip(begins, ends, strict=True)]
    told = deque(ends)
    notes = []
    for number, (start, velocity) in enumerate(begins):
        while told and told[0] <= start:
            told.popleft()
        again = [begins[number + 1][0]] if number + 1 < len(begins) else []
        if soonest := again + [*told][:1]:
            notes.append((start, min(soonest), velocity))
    return notes
