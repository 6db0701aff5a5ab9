"""Synthesizes a Score with a sound font, as samples and as WAV files."""

import io
import struct
import sys
import wave
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from common.arrays import Floats, Ints, Records
from common.cli import say
from data.instrument_names import HI_HAT_EDGES
from data.score import DRUMS, Score

_SAMPLE_RATE = 44_100
_MAX_RING_SECONDS = 10.0  # how long a held note may sound after the last bar line
_TAIL_SECONDS = 1.5  # of release, after the last note ends
_SILENCE_SECONDS = 0.5  # the length of a Score without notes
_PEAK = 10 ** (-1 / 20)  # 1 dB below full scale
_CHANNELS = 16  # in each synthesizer
_PAN = 10  # the number of MIDI's pan control
_CENTER, _WIDTH = 64, 40  # in MIDI's 128 places from left to right; between the outermost voices
_ROOM_SECONDS, _ROOM_DECAY, _ROOM_LEVEL = 0.9, 6.0, 0.004  # the room's answer fades by e^6 a second


@cache
def has_sound() -> bool:
    """Return whether sound can be made; if not, say so on stderr."""
    try:
        import tinysoundfont  # noqa: F401  # there is no wheel for Python 3.13 and newer
    except ImportError:
        say("no sound: tinysoundfont is not installed (see README); all else works", sys.stderr)
        return False
    return True


def wav_bytes(score: Score) -> bytes:
    """Return a Score as a WAV file: stereo, 16 bits, 44,100 samples a second.

    It has the sound of `render_audio`, with its voices spread from left to right in a small room.
    """
    sound = _in_room(score, np.unique(score.notes["program"]))
    sound *= _gain(sound)
    return _stereo_wav(sound)


def stems(score: Score) -> Iterator[tuple[int, bytes]]:
    """Yield each program of a Score with a WAV file of it alone; together they are `wav_bytes`."""
    programs = np.unique(score.notes["program"])
    gain = _gain(_in_room(score, programs))
    for program in programs.tolist():
        yield program, _stereo_wav(_in_room(score, np.array([program])) * gain)


def _stereo_wav(sound: Floats) -> bytes:
    """Return sound (samples, 2) as a WAV file."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(_SAMPLE_RATE)
        file.writeframes(np.rint(sound * 32767).astype("<i2").tobytes())
    return content.getvalue()


def _in_room(score: Score, programs: NDArray[np.int16]) -> Floats:
    """Return the sound of some programs at their places in a room: (samples, 2)."""
    dry = _synthesized(score, _SAMPLE_RATE, programs, _WIDTH)
    noise = np.random.default_rng(0).standard_normal((int(_ROOM_SECONDS * _SAMPLE_RATE), 2))
    times = np.arange(len(noise)) / _SAMPLE_RATE
    answer = (_ROOM_LEVEL * noise * np.exp(-_ROOM_DECAY * times)[:, None]).astype(np.float32)
    size = 1 << (2 * len(answer)).bit_length()
    spectrum = np.fft.rfft(answer, size, axis=0)
    wet = dry.copy()
    for begin in range(0, len(dry), size - len(answer)):  # overlap-add
        part = dry[begin : begin + size - len(answer)]
        heard = np.fft.irfft(np.fft.rfft(part, size, axis=0) * spectrum, size, axis=0)
        end = min(begin + size, len(dry))
        wet[begin:end] += heard[: end - begin].astype(np.float32)
    return wet


def mu_law_wav(score: Score) -> bytes:
    """Return the sound of `render_audio` as a WAV file of a quarter of the size, for a page.

    It is mono, with 22,050 samples a second, each in 8 bits by the mu-law of ITU-T G.711 (1988),
    which every browser plays. 256 logarithmic steps keep its noise about 37 dB below the music,
    soft or loud.
    """
    sample_rate, mu_law = 22_050, 7  # 7: the format code in the header
    levels = np.rint(render_audio(score, sample_rate) * 32767).astype(np.int32)
    biased = np.minimum(np.abs(levels), 32635) + 132
    segment = np.log2(biased).astype(np.int32) - 7
    codes = ((levels < 0) << 7) | (segment << 4) | ((biased >> (segment + 3)) & 15)
    samples = (~codes & 255).astype(np.uint8).tobytes()
    data = samples + b"\0" * (len(samples) % 2)  # the size of a chunk must be even
    parts = [
        struct.pack("<4sI4s", b"RIFF", 50 + len(data), b"WAVE"),
        struct.pack("<4sIHHIIHHH", b"fmt ", 18, mu_law, 1, sample_rate, sample_rate, 1, 8, 0),
        struct.pack("<4sII", b"fact", 4, len(samples)),
        struct.pack("<4sI", b"data", len(samples)),
    ]
    return b"".join([*parts, data])


def render_audio(score: Score, sample_rate: int = _SAMPLE_RATE) -> Floats:
    """Synthesize a Score: (samples,) float32, mono, with its peak 1 dB below full scale.

    Each note begins and ends on the sample that the tempo gives. The last notes ring out and fade;
    a held note ends at most ten seconds after the last bar line. If no sound can be made, the
    result is equally long silence.
    """
    sound = _synthesized(score, sample_rate, np.unique(score.notes["program"]))
    mono: Floats = sound.mean(axis=1)
    mono *= _gain(mono)
    return mono


def _gain(sound: Floats) -> np.float32:
    """Return the factor that brings the peak of a sound to 1 dB below full scale."""
    peak = float(np.abs(sound).max())
    return np.float32(_PEAK / peak if peak > 0 else 1)


def _synthesized(
    score: Score, sample_rate: int, programs: NDArray[np.int16], width: int = 0
) -> Floats:
    """Return the sound of some programs of a Score, as long as that of all: (samples, 2).

    Args:
        score, sample_rate: as in `render_audio`.
        programs: (P,), rising.
        width: how far the voices are spread, in MIDI's 128 places from left to right.
    """
    notes = score.notes.copy()
    for drum, heard in HI_HAT_EDGES.items():
        notes["pitch"][(notes["program"] == DRUMS) & (notes["pitch"] == drum)] = heard
    if not len(notes):
        return np.zeros((int(_SILENCE_SECONDS * sample_rate), 2), dtype=np.float32)
    steps = np.stack([notes["onset"], notes["onset"].astype(np.int64) + notes["duration"]])
    latest = score.step_seconds(score.bar_starts[-1]) + _MAX_RING_SECONDS
    seconds = np.minimum(score.step_seconds(steps), latest)  # a note may be held for an hour
    samples = np.rint(seconds * sample_rate).astype(np.int64)
    tail = int(_TAIL_SECONDS * sample_rate)
    audio = np.zeros((int(samples.max()) + tail, 2), dtype=np.float32)
    if not has_sound():
        return audio
    every = np.unique(notes["program"])
    places = np.searchsorted(every, programs) / max(len(every) - 1, 1) - 0.5
    pans = np.rint(_CENTER + width * places * (len(every) > 1))
    for first in range(0, len(programs), _CHANNELS):
        group = programs[first : first + _CHANNELS]
        is_in_group = np.isin(notes["program"], group)
        sounds = [score.grid.general_midi(program) for program in group.tolist()]
        seats = list(zip(sounds, pans[first : first + _CHANNELS].astype(int).tolist(), strict=True))
        channels = np.searchsorted(group, notes["program"][is_in_group])
        _play(notes[is_in_group], channels, samples[:, is_in_group], seats, sample_rate, audio)
    audio[-tail:] *= np.linspace(1, 0, tail, dtype=np.float32)[:, None]
    return audio


def _play(
    notes: Records,
    channels: Ints,
    samples: Ints,
    seats: list[tuple[int, int]],
    sample_rate: int,
    audio: Floats,
) -> None:
    """Add the sound of notes to `audio`.

    Args:
        notes: (N,) of NOTE.
        channels: (N,) from 0 to 15.
        samples: (2, N) the first sample of each note, and its end.
        seats: of each channel the General MIDI program, or DRUMS, and the place from left to right.
        sample_rate: samples a second.
        audio: (samples, 2), changed in place.
    """
    import tinysoundfont  # see `has_sound`

    path = Path(pretty_midi.__file__).with_name("TimGM6mb.sf2")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such sound font; pretty_midi 0.2.11 brings it along")
    synth = tinysoundfont.Synth(samplerate=sample_rate)
    font = synth.sfload(str(path))
    for channel, (program, pan) in enumerate(seats):
        bank, preset = (128, 0) if program == DRUMS else (0, program)
        synth.program_select(channel, font, bank, preset)
        synth.control_change(channel, _PAN, pan)
    times = np.concatenate([samples[1], samples[0]])
    order = np.argsort(times, kind="stable")  # at the same sample, notes end before others begin
    velocities = np.concatenate([np.zeros_like(notes["velocity"]), notes["velocity"]])
    columns = [np.tile(channels, 2), np.tile(notes["pitch"], 2), velocities, times]
    events = np.stack(columns, axis=1)[order]
    until = np.append(events[1:, 3], len(audio))
    for (channel, pitch, velocity, now), then in zip(events.tolist(), until.tolist(), strict=True):
        if velocity:
            synth.noteon(channel, pitch, velocity)
        else:
            synth.noteoff(channel, pitch)
        for begin in range(now, then, sample_rate):  # a second at a time: long rests stay cheap
            end = min(begin + sample_rate, then)
            stereo = np.frombuffer(synth.generate(end - begin), dtype=np.float32)
            audio[begin:end] += stereo.reshape(-1, 2)
