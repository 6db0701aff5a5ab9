"""Turns MIDI files and pretty_midi objects into Scores, and Scores into them.

symusic reads and writes the bytes, 100 times faster than pretty_midi. The Python API takes and
returns pretty_midi objects, by way of the same bytes.
"""

import dataclasses
import io
import re
from pathlib import Path

import numpy as np
import pretty_midi
import symusic
from numpy.typing import ArrayLike

from common.arrays import Ints
from common.files import write_file
from data.instrument_names import instrument_name
from data.midi.events import MAX_FILE_BYTES, Events
from data.midi.quantize import MidiError
from data.midi.repair import LAST_TICK, MESSAGE, Walk, mended, repaired, track_bytes, walk
from data.score import DRUMS, Score

MAX_NOTES = 300_000  # in a file
SUSTAIN = 64  # the sustain pedal's controller number; values from 64 up mean down


def content_of(path: str | Path) -> bytes:
    """Return the bytes of a music file.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the file cannot be read.
        MidiError: it is no regular file, or is larger than MAX_FILE_BYTES.
    """
    path = Path(path)
    if not path.is_file():  # opening a pipe would wait forever
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        reason = "a folder, where a music file is needed" if path.is_dir() else "not a regular file"
        raise MidiError(f"{path}: {reason}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise MidiError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, not read")
    return path.read_bytes()


def parse_events(content: bytes, path: str) -> Events:
    """Read what the bytes of a MIDI file say; `path` names the file in messages.

    Many mistakes are let pass: things that no Score holds (keys, names, lyrics) may say anything; a
    note-off may end nothing; a note-on without a note-off ends where its pitch begins again, or is
    no note; the end of a track may be missing, and garbage may follow the last one. The patterns of
    a type 2 file sound together. A data byte over 127 is read as 127, and counted. But what a Score
    rests on must be right: one impossible tempo or time signature, and the file is refused, since
    nothing after it could be trusted.

    Raises:
        MidiError: the bytes are no MIDI, are broken, or have more than MAX_NOTES notes, which would
            take more than seconds. (A file without notes is an empty Score.)
    """
    if content[:4] == b"RIFF" and content[8:12] == b"RMID":
        raise MidiError(f"{path}: a RIFF file; save the music in it as a standard MIDI file")
    if not content:
        raise MidiError(f"{path}: an empty file")
    if content[:4] != b"MThd":
        raise MidiError(f"{path}: not a MIDI file (it does not begin with MThd)")
    if content[12:13] >= b"\x80":
        raise MidiError(f"{path}: counts film frames (SMPTE), so it has no beats")
    walks = _walks(content)
    if any(found.last_tick >= LAST_TICK for found in walks):
        raise MidiError(f"{path}: goes on beyond tick {LAST_TICK:,}")
    # symusic reads the length of an escape (F7, a length, bytes to send) as the delta of the next
    # event, and its bytes as events. It skips a message (F0) correctly.
    content, over = mended(content, [found.escapes for found in walks], MESSAGE), 0
    try:
        try:
            file = _parsed(content, walks)
        except RuntimeError:
            over = sum(len(found.over) for found in walks)
            if not over or not all(found.is_whole for found in walks):
                raise
            content = mended(content, [found.over for found in walks], 127)
            file = _parsed(content, _walks(content))
    except (RuntimeError, ValueError) as error:
        raise MidiError(f"{path}: broken MIDI file ({_reason(str(error))})") from None
    notes = sum(len(track.notes) for track in file.tracks)
    if notes > MAX_NOTES:
        raise MidiError(f"{path}: {notes:,} notes are too many; {MAX_NOTES:,} are read at most")
    return dataclasses.replace(_events_from_symusic(file), clipped_bytes=over)


def _walks(content: bytes) -> list[Walk]:
    return [walk(body) for _, body in track_bytes(content)]


def _parsed(content: bytes, walks: list[Walk]) -> symusic.Score:
    may_hang = any(found.may_hang for found in walks)
    return (repaired(content) if may_hang else None) or symusic.Score.from_midi(content)


# What symusic says about a broken file, and the same in words for people.
_REASONS = (
    ("EOF|Invalid chunk length|File size", "it is cut short"),
    ("chunk length is not 6", "its header has another length than 6 bytes"),
    ("midi format", "its header names none of the three formats"),
    ("status", "a byte that begins no event stands where an event should"),
    (r"Get \w+=", "an event has a value out of range"),
)


def _reason(message: str) -> str:
    for pattern, words in _REASONS:
        if re.search(pattern, message):
            return words
    lines = message.replace("MiniMidi: ", "").replace(": iostream error", "").strip().splitlines()
    return lines[0] if lines else "no reason given"


def pretty_midi_events(midi: pretty_midi.PrettyMIDI) -> Events:
    """Read what a pretty_midi object says, from the file that pretty_midi writes of it.

    Raises:
        MidiError: pretty_midi writes no file, or one in which no music can be read.
    """
    content, name = io.BytesIO(), "the pretty_midi object"
    try:
        midi.write(content)
    except (TypeError, ValueError) as error:
        raise MidiError(f"{name} cannot be written ({error})") from None
    return parse_events(content.getvalue(), name)


def to_pretty_midi(score: Score) -> pretty_midi.PrettyMIDI:
    """Return the Score as a pretty_midi object, with an instrument for each part or program."""
    return pretty_midi.PrettyMIDI(io.BytesIO(midi_bytes(score)))


def write_midi(score: Score, path: str | Path) -> None:
    """Write the Score as a MIDI file; `read_score` on the same grid returns it unchanged."""
    write_file(midi_bytes(score), path)


def midi_bytes(score: Score) -> bytes:
    """Return the Score as the bytes of a MIDI file, with a track for each part or program.

    A time signature begins a bar. So one is written wherever a bar would not begin by itself: after
    each bar that is shorter than its meter says, such as an upbeat, even if the meter stays. If the
    grid replaces the meters of files that have wrong ones, a signature also ends the piece, so that
    this file is not taken for one of them (`data.midi.bars.is_barred_wrongly`).
    """
    steps_per_beat = score.grid.steps_per_beat
    ticks_per_step = max(1, 480 // steps_per_beat)
    file = symusic.Score(ticks_per_step * steps_per_beat)
    starts = score.bar_starts * ticks_per_step
    bars, meters = score.bars, score.bars[["numerator", "denominator"]]
    is_whole = bars["length"] * bars["denominator"] == bars["numerator"] * 4 * steps_per_beat
    is_marked = np.ones(len(bars), dtype=bool)
    is_marked[1:] = (meters[1:] != meters[:-1]) | ~is_whole[:-1]
    signatures = [(starts[n], *meters[n].tolist()) for n in np.flatnonzero(is_marked).tolist()]
    if len(bars) and (
        score.grid.meter or not is_whole[-1]
    ):  # the end of a short last bar is marked, too
        signatures.append((starts[-1], *(score.grid.meter or meters[-1].tolist())))
    file.time_signatures = [symusic.TimeSignature(*map(int, each)) for each in signatures]
    changes = np.flatnonzero(np.diff(score.tempo_bpm, prepend=0))
    file.tempos = symusic.Tempo.from_numpy(
        starts[changes].astype(np.int32), np.rint(60e6 / score.tempo_bpm[changes]).astype(np.int32)
    )
    for number in np.unique(score.notes["program"]).tolist() or [0]:  # every file has a track
        notes = score.notes[score.notes["program"] == number]
        program, name = score.grid.general_midi(number), instrument_name(number, score.grid)
        is_drum = program == DRUMS
        track = symusic.Track(name=name, program=0 if is_drum else program, is_drum=is_drum)
        track.notes = symusic.Note.from_numpy(
            (notes["onset"] * ticks_per_step).astype(np.int32),
            (notes["duration"] * ticks_per_step).astype(np.int32),
            notes["pitch"].astype(np.int8),
            notes["velocity"].astype(np.int8),
        )
        file.tracks.append(track)
    return bytes(file.dumps_midi())


def _events_from_symusic(file: symusic.Score) -> Events:
    """Return what a file says; tracks without notes are not numbered."""
    tracks = [(track.name, _track_rows(track)) for track in file.tracks]
    notes = np.concatenate([np.empty((0, 5), dtype=np.int64), *(rows for _, rows in tracks)])
    signatures, tempi = file.time_signatures.numpy(), file.tempos.numpy()
    meters = _columns(signatures["time"], signatures["numerator"], signatures["denominator"])
    with np.errstate(divide="ignore"):
        tempo_map = np.stack([tempi["time"], 60e6 / tempi["mspq"]], axis=1)
    counts = tuple((name, len(rows)) for name, rows in tracks if len(rows))
    return Events(file.ticks_per_quarter, notes, meters, tempo_map, counts)


def _track_rows(track: symusic.core.TrackTick) -> Ints:
    """Return the notes of a track as `Events` has them.

    A note that is released while the sustain pedal is down lasts until the pedal is up, or until
    its pitch begins again.
    """
    notes, controls = track.notes.numpy(), track.controls.numpy()
    start, pitch = notes["time"].astype(np.int64), notes["pitch"].astype(np.int64)
    end = start + notes["duration"]
    is_pedal = controls["number"] == SUSTAIN
    if len(end) and is_pedal.any() and not track.is_drum:
        pedal_ticks = controls["time"][is_pedal].astype(np.int64)
        order = np.argsort(pedal_ticks, kind="stable")
        at, is_down = pedal_ticks[order], controls["value"][is_pedal][order] >= 64
        ups = np.append(np.flatnonzero(~is_down), len(at))
        up_ticks = np.append(at, max(int(end.max()), int(at[-1])))  # or the track's end
        latest = np.searchsorted(at, end, side="right") - 1
        is_held = (latest >= 0) & is_down[latest]
        next_up = up_ticks[ups[np.searchsorted(ups, np.maximum(latest, 0))]]
        order = np.argsort(pitch << 40 | start, kind="stable")
        again = np.append(start[order[1:]], 0)
        again[np.append(np.diff(pitch[order]) != 0, True)] = up_ticks[-1]
        next_up[order] = np.minimum(next_up[order], again)
        end = np.where(is_held, np.maximum(next_up, end), end)
    program = np.full(len(end), DRUMS if track.is_drum else track.program)
    return _columns(start, end, pitch, notes["velocity"], program)


def _columns(*columns: ArrayLike) -> Ints:
    return np.ascontiguousarray(np.array(columns, dtype=np.int64).T)
