"""MIDI files and pretty_midi objects to Scores and back.

symusic reads and writes the bytes (100 times faster than pretty_midi); pretty_midi is what the
Python API takes and returns. Both ways in meet in `Events`, so both give the same Score.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pretty_midi
import symusic
from numpy.typing import NDArray

from data.files import written_beside
from data.score import BAR, DRUMS, NOTE, Grid, Losses, Score, canonical

MAX_FILE_BYTES = 32 * 2**20
MAX_TICK = 10**7  # pretty_midi's limit too
MAX_BAR_BEATS = 16  # a meter with longer bars than this is taken for a mistake
SUSTAIN = 64  # the controller number of the sustain pedal; values from 64 up mean down


class MidiError(ValueError):
    """A file or object that holds no music that can be read; the message is one line."""


@dataclass(frozen=True)
class Events:
    """What a MIDI file says, times in ticks, before anything is brought to a grid.

    Attributes:
        ticks_per_beat: ticks a quarter note.
        notes: (N, 5) int64: start, end, pitch, velocity, program (128: drums); pedal folded in.
        meters: (M, 3) int64: tick, numerator, denominator.
        tempi: (K, 2) float64: tick, quarter notes a minute.
    """

    ticks_per_beat: int
    notes: NDArray[np.int64]
    meters: NDArray[np.int64]
    tempi: NDArray[np.float64]


def read_midi(path: str | Path, grid: Grid) -> tuple[Score, Losses]:
    """The Score in a MIDI file, and what bringing it to the grid changed.

    Raises:
        FileNotFoundError: no such file.
        MidiError: the file is not MIDI, or broken. (One without notes is an empty Score.)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise MidiError(f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB, not read")
    content = path.read_bytes()
    if content[:4] != b"MThd":
        raise MidiError(f"{path}: not a MIDI file (it does not begin with MThd)")
    try:
        file = symusic.Score.from_midi(content)
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()
        raise MidiError(
            f"{path}: broken MIDI file ({reason[0] if reason else 'no reason given'})"
        ) from None
    try:
        return score_from_events(_events_from_symusic(file), grid)
    except MidiError as error:
        raise MidiError(f"{path}: {error}") from None


def from_pretty_midi(midi: pretty_midi.PrettyMIDI, grid: Grid) -> tuple[Score, Losses]:
    """The Score that a pretty_midi object holds, and what bringing it to the grid changed."""
    times, bpm = midi.get_tempo_changes()
    beats = np.concatenate([[0.0], np.cumsum(np.diff(times) * bpm[:-1] / 60)])

    def ticks(seconds: list[float]) -> NDArray[np.int64]:
        at = np.asarray(seconds, dtype=np.float64)
        segment = np.maximum(np.searchsorted(times, at, side="right") - 1, 0)
        in_beats = beats[segment] + (at - times[segment]) * bpm[segment] / 60
        return np.asarray(np.rint(in_beats * midi.resolution), dtype=np.int64)

    tracks = []
    for instrument in midi.instruments:
        pedal = [c for c in instrument.control_changes if c.number == SUSTAIN]
        notes = instrument.notes
        rows = np.empty((len(notes), 5), dtype=np.int64)
        rows[:, 0] = ticks([note.start for note in notes])
        rows[:, 1] = ticks([note.end for note in notes])
        rows[:, 2] = [note.pitch for note in notes]
        rows[:, 3] = [note.velocity for note in notes]
        rows[:, 4] = DRUMS if instrument.is_drum else instrument.program
        tracks.append(
            _hold_pedal(rows, ticks([c.time for c in pedal]), np.array([c.value for c in pedal]))
        )
    signatures = midi.time_signature_changes
    meters = np.empty((len(signatures), 3), dtype=np.int64)
    meters[:, 0] = ticks([signature.time for signature in signatures])
    meters[:, 1] = [signature.numerator for signature in signatures]
    meters[:, 2] = [signature.denominator for signature in signatures]
    tempi = np.stack([ticks(times), bpm], axis=1)
    return score_from_events(Events(midi.resolution, _joined(tracks), meters, tempi), grid)


def to_pretty_midi(score: Score) -> pretty_midi.PrettyMIDI:
    """The Score as a pretty_midi object, an instrument a program."""
    return pretty_midi.PrettyMIDI(io.BytesIO(midi_bytes(score)))


def write_midi(score: Score, path: str | Path) -> None:
    """Writes the Score as a MIDI file; `read_midi` on the same grid gives it back unchanged."""
    with written_beside(path) as beside:
        beside.write_bytes(midi_bytes(score))


def midi_bytes(score: Score) -> bytes:
    """The Score as the bytes of a MIDI file, a track a program.

    A time signature begins a bar. So one is written wherever a bar would not begin by itself:
    after a bar that is shorter than its meter says (an anacrusis), even if the meter stays.
    """
    steps_per_beat = score.grid.steps_per_beat
    ticks_per_step = max(1, 480 // steps_per_beat)
    file = symusic.Score(ticks_per_step * steps_per_beat)
    starts = score.bar_starts * ticks_per_step

    bars = score.bars
    numerator, denominator = bars["numerator"], bars["denominator"]
    is_whole = bars["length"] * denominator == numerator * 4 * steps_per_beat
    is_marked = np.ones(len(bars), dtype=bool)
    is_marked[1:] = (
        bars[["numerator", "denominator"]][1:] != bars[["numerator", "denominator"]][:-1]
    ) | ~is_whole[:-1]
    marks = np.flatnonzero(is_marked)
    at, numerator, denominator = starts[marks], numerator[marks], denominator[marks]
    if len(bars) and not is_whole[-1]:  # the end of a last bar that is short must be told too
        at, numerator, denominator = (
            np.append(array, last)
            for array, last in (
                (at, starts[-1]),
                (numerator, bars["numerator"][-1]),
                (denominator, bars["denominator"][-1]),
            )
        )
    file.time_signatures = symusic.TimeSignature.from_numpy(
        at.astype(np.int32), numerator.astype(np.uint8), denominator.astype(np.uint8)
    )
    changes = np.flatnonzero(np.diff(score.tempo_bpm, prepend=0))
    file.tempos = symusic.Tempo.from_numpy(
        starts[changes].astype(np.int32),
        np.rint(60e6 / score.tempo_bpm[changes]).astype(np.int32),
    )
    for program in np.unique(score.notes["program"]).tolist() or [0]:  # no file without a track
        notes = score.notes[score.notes["program"] == program]
        is_drum = program == DRUMS
        name = "Drums" if is_drum else pretty_midi.program_to_instrument_name(program)
        track = symusic.Track(name=name, program=0 if is_drum else program, is_drum=is_drum)
        track.notes = symusic.Note.from_numpy(
            (notes["onset"] * ticks_per_step).astype(np.int32),
            (notes["duration"] * ticks_per_step).astype(np.int32),
            notes["pitch"].astype(np.int8),
            notes["velocity"].astype(np.int8),
        )
        file.tracks.append(track)
    return bytes(file.dumps_midi())


def score_from_events(events: Events, grid: Grid) -> tuple[Score, Losses]:
    """Brings events to the grid.

    Onsets, ends and bar lines go to the nearest step, half way up; bar lines are rounded from
    their exact places, so that rounding does not add up. A bar's tempo is the one that gives it
    its length in seconds.

    Raises:
        MidiError: times or values that no music has.
    """
    _check_events(events)
    tick_to_step = events.ticks_per_beat, grid.steps_per_beat
    start, end, pitch, velocity, program = events.notes.T
    notes = np.empty(len(start), dtype=NOTE)
    notes["onset"] = _steps(start, *tick_to_step)
    notes["duration"] = _steps(end, *tick_to_step) - notes["onset"]
    notes["pitch"], notes["velocity"], notes["program"] = pitch, velocity, program

    last_tick = int(start.max(initial=0))
    bars, bar_ticks = _bars(events, last_tick, grid)
    score, losses = canonical(notes, bars, _bar_tempi(events, bar_ticks), grid)

    exact = start * grid.steps_per_beat / events.ticks_per_beat
    error = np.abs(notes["onset"] - exact)
    losses.moved = int((error > 0).sum())
    losses.error_steps = float(error.sum())
    losses.worst_error_steps = float(error.max(initial=0.0))
    return score, losses


def _steps(ticks: NDArray[np.int64], ticks_per_beat: int, steps_per_beat: int) -> NDArray[np.int64]:
    """Ticks to the nearest grid step, half way up, in whole numbers."""
    return (2 * ticks * steps_per_beat + ticks_per_beat) // (2 * ticks_per_beat)


def _bars(
    events: Events, last_tick: int, grid: Grid
) -> tuple[NDArray[np.void], NDArray[np.float64]]:
    """(M,) of BAR up to the one that holds `last_tick`; (M + 1,) the exact ticks of bar lines."""
    meters = events.meters[np.argsort(events.meters[:, 0], kind="stable")]
    meters = meters[meters[:, 0] <= last_tick]
    if not len(meters) or meters[0, 0] > 0:
        meters = np.concatenate([np.array([[0, 4, 4]]), meters])
    is_last_here = np.append(np.diff(meters[:, 0]) > 0, True)
    meters = meters[is_last_here]  # of several at one tick the last holds

    after = events.meters[:, 0][events.meters[:, 0] > last_tick]
    lines, numerators, denominators = [], [], []
    for index, (tick, numerator, denominator) in enumerate(meters.tolist()):
        bar_ticks = numerator * 4 * events.ticks_per_beat / denominator
        if index + 1 < len(meters):
            end = float(meters[index + 1, 0])
        else:  # a signature after the last onset may still say that the last bar is short
            whole = tick + bar_ticks * ((last_tick - tick) // bar_ticks + 1)
            end = min(whole, float(after.min(initial=whole + 1)))
        count = int(np.ceil((end - tick) / bar_ticks))
        lines.append(tick + bar_ticks * np.arange(count))
        numerators.append(np.full(count, numerator))
        denominators.append(np.full(count, denominator))
    exact = np.append(np.concatenate(lines), end)
    steps = np.floor(exact * grid.steps_per_beat / events.ticks_per_beat + 0.5).astype(np.int64)
    length = np.diff(steps)
    bars = np.empty(len(length), dtype=BAR)
    bars["numerator"] = np.concatenate(numerators)
    bars["denominator"] = np.concatenate(denominators)
    bars["length"] = length
    keep = length > 0
    return bars[keep], np.append(exact[:-1][keep], exact[-1])


def _bar_tempi(events: Events, bar_ticks: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M,) quarter notes a minute: beats over minutes of each bar, by the tempo map."""
    tempi = events.tempi[np.argsort(events.tempi[:, 0], kind="stable")]
    if not len(tempi) or tempi[0, 0] > 0:
        tempi = np.concatenate([np.array([[0.0, 120.0]]), tempi])
    tick, bpm = tempi.T
    minutes_per_tick = 1 / (bpm * events.ticks_per_beat)
    minutes = np.concatenate([[0.0], np.cumsum(np.diff(tick) * minutes_per_tick[:-1])])
    segment = np.searchsorted(tick, bar_ticks, side="right") - 1
    at = minutes[segment] + (bar_ticks - tick[segment]) * minutes_per_tick[segment]
    return np.asarray(np.diff(bar_ticks) / events.ticks_per_beat / np.diff(at))


def _events_from_symusic(file: symusic.Score) -> Events:
    tracks = []
    for track in file.tracks:
        notes, controls = track.notes.numpy(), track.controls.numpy()
        rows = np.empty((len(notes["time"]), 5), dtype=np.int64)
        rows[:, 0] = notes["time"]
        rows[:, 1] = notes["time"].astype(np.int64) + notes["duration"]
        rows[:, 2] = notes["pitch"]
        rows[:, 3] = notes["velocity"]
        rows[:, 4] = DRUMS if track.is_drum else track.program
        is_pedal = controls["number"] == SUSTAIN
        tracks.append(
            _hold_pedal(
                rows, controls["time"][is_pedal].astype(np.int64), controls["value"][is_pedal]
            )
        )
    signatures, tempi = file.time_signatures.numpy(), file.tempos.numpy()
    meters = np.stack(
        [signatures[name].astype(np.int64) for name in ("time", "numerator", "denominator")], axis=1
    )
    with np.errstate(divide="ignore"):
        bpm = 60e6 / tempi["mspq"]
    return Events(
        file.ticks_per_quarter,
        _joined(tracks),
        meters,
        np.stack([tempi["time"].astype(np.float64), bpm], axis=1),
    )


def _hold_pedal(
    notes: NDArray[np.int64], pedal_ticks: NDArray[np.int64], values: NDArray[np.integer]
) -> NDArray[np.int64]:
    """A track's notes, those released while the sustain pedal is down held until it comes up."""
    if not len(notes) or not len(pedal_ticks) or notes[0, 4] == DRUMS:
        return notes
    order = np.argsort(pedal_ticks, kind="stable")
    at, is_down = pedal_ticks[order], values[order] >= 64
    end = notes[:, 1]
    ups = np.append(np.flatnonzero(~is_down), len(at))
    up_ticks = np.append(at, max(int(end.max()), int(at[-1])))  # never lifted: to the track's end
    latest = np.searchsorted(at, end, side="right") - 1
    is_held = (latest >= 0) & is_down[latest]
    next_up = up_ticks[ups[np.searchsorted(ups, np.maximum(latest, 0))]]
    held = notes.copy()
    held[:, 1] = np.where(is_held, np.maximum(next_up, end), end)
    return held


def _joined(tracks: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty((0, 5), dtype=np.int64), *tracks])


def _check_events(events: Events) -> None:
    if events.ticks_per_beat <= 0:
        raise MidiError("its time division is not in ticks a quarter note, so it has no beats")
    start, end, pitch, velocity, program = events.notes.T
    if not len(start):
        return
    if start.min() < 0 or end.max() > MAX_TICK or np.any(end < start):
        raise MidiError(f"a note lies outside ticks 0..{MAX_TICK}")
    if pitch.min() < 0 or pitch.max() > 127 or velocity.min() < 1 or velocity.max() > 127:
        raise MidiError("a pitch or a velocity lies outside 0..127")
    if program.min() < 0 or program.max() > DRUMS:
        raise MidiError("a program lies outside 0..127")
    bpm = events.tempi[:, 1]
    if not np.all(np.isfinite(bpm) & (bpm > 0)):
        raise MidiError("a tempo of zero or infinity")
    _, numerator, denominator = events.meters.T
    if np.any((numerator < 1) | (denominator < 1) | (numerator * 4 > MAX_BAR_BEATS * denominator)):
        raise MidiError(f"a time signature that is none, or with bars over {MAX_BAR_BEATS} beats")
