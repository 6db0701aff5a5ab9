"""Sound: what is in the Score is heard, at its place."""

import io
import struct
import wave

import numpy as np
import pretty_midi
import pytest
from hypothesis import given, settings

from data.canonical import canonical
from data.score import BAR, DRUMS, NOTE
from generation.note_text import parse_seed_notes
from rendering.audio import mu_law_wav, render_audio, stems, wav_bytes
from tests.music import BOTH, EMPTY, GRID, piece, scale, scores

RATE = 22_050


def level(audio, seconds, window=0.05):
    """Root mean square of the sound from `seconds` on."""
    start = round(seconds * RATE)
    return float(np.sqrt(np.mean(audio[start : start + round(window * RATE)] ** 2)))


def test_four_parts_are_neither_silent_nor_clipped():
    audio = render_audio(parse_seed_notes("Am:2 F C G7", GRID, (40, 41, 42, 43)), RATE)
    assert audio.dtype == np.float32
    assert audio.ndim == 1
    assert np.abs(audio).max() == pytest.approx(10 ** (-1 / 20), rel=1e-3)
    assert min(level(audio, at, 0.5) for at in (0.2, 1.2, 2.2, 3.2)) > 0.02
    assert len(audio) / RATE == pytest.approx(4 + 1.5, abs=0.01)


def test_a_small_file_sounds_the_same():
    """Its samples are expanded as table 2 of G.711 says."""
    score = parse_seed_notes("Am:2 F C G7", GRID, (40, 41, 42, 43))
    file, audio = mu_law_wav(score), render_audio(score, RATE)
    riff, size, form, tag, fmt, law, channels, rate, speed, block, bits, _ = struct.unpack(
        "<4sI4s4sIHHIIHHH", file[:38]
    )
    assert (riff, form, tag, fmt, law) == (b"RIFF", b"WAVE", b"fmt ", 18, 7)
    assert (channels, rate, speed, block, bits) == (1, RATE, RATE, 1, 8)
    assert size == len(file) - 8
    assert struct.unpack("<4sII4sI", file[38:58]) == (b"fact", 4, len(audio), b"data", len(audio))
    codes = ~np.frombuffer(file[58 : 58 + len(audio)], np.uint8).astype(np.int32) & 255
    sizes = (((codes & 15) << 3) + 132 << (codes >> 4 & 7)) - 132
    heard = np.where(codes > 127, -sizes, sizes) / 32767
    noise = np.mean((heard - audio) ** 2) / np.mean(audio**2)
    assert -10 * np.log10(noise) > 35  # decibels
    assert np.abs(heard[np.abs(audio) < 1e-4]).max() < 4e-4  # silence stays silent


def samples_of(content):
    """The samples of a stereo WAV file, as numbers."""
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (2, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2) / 32767


def test_voices_sit_from_left_to_right_in_a_room_and_stems_are_the_whole():
    score = parse_seed_notes("Am:2 F C G7", GRID, (40, 41, 42, 43))
    whole, each = samples_of(wav_bytes(score)), dict(stems(score))
    assert len(whole) == len(render_audio(score))
    assert np.abs(whole).max() == pytest.approx(10 ** (-1 / 20), abs=1e-3)
    alone = [samples_of(each[program]) for program in (40, 41, 42, 43)]
    assert np.abs(sum(alone) - whole).max() < 1e-4
    left, right = np.mean([sound**2 for sound in alone], axis=1).T
    assert np.all(np.diff(right / left) > 0)
    (note,) = dict(stems(parse_seed_notes("C5:.1", GRID, (73,)))).values()
    rings = [level(samples_of(note)[:, channel], 1.2) for channel in (0, 1)]
    assert min(rings) > 1e-5  # after it has ended


@pytest.mark.parametrize(("name", "frequency"), [("A4", 440.0), ("C5", 523.25), ("[C7]", 2093.0)])
def test_pitch(name, frequency):
    audio = render_audio(parse_seed_notes(f"{name}:4", GRID, programs=(73,)), RATE)
    spectrum = np.abs(np.fft.rfft(audio[: 2 * RATE] * np.hanning(2 * RATE)))
    assert np.argmax(spectrum) / 2 == pytest.approx(frequency, rel=0.01)


def test_onsets_are_where_the_tempi_put_them():
    """A bar of four seconds, and one of two; the second note is a quarter of a beat late."""
    notes = np.array([(24, 3, 72, 80, 0), (99, 3, 79, 80, 0)], dtype=NOTE)
    bars = np.array([(4, 4, 48)] * 3, dtype=BAR)
    audio = render_audio(canonical(notes, bars, [60, 120, 240], GRID)[0], RATE)
    for at in (2, 6.0625):
        assert level(audio, at, 0.03) > 10 * level(audio, at - 0.03, 0.03)
    assert np.abs(audio[: 2 * RATE - 1]).max() == 0


def test_drums_and_more_than_sixteen_programs_are_heard():
    beats = [(12 * i, 12, 60, 80, program) for i, program in enumerate(range(0, 120, 6))]
    audio = render_audio(piece([*beats, (12 * 20, 12, 38, 100, DRUMS)]), RATE)
    assert min(level(audio, 0.5 * i, 0.3) for i in range(21)) > 0.003
    for drum in (38, 22, 26):  # electronic kits send the last two, which General MIDI has not
        alone = render_audio(piece([(0, 1, drum, 100, DRUMS)]), RATE)
        assert np.abs(alone).max() > 0.5


def test_silence_where_there_are_no_notes():
    audio = render_audio(EMPTY, RATE)
    assert 0.1 < len(audio) / RATE < 2
    assert not audio.any()


@settings(max_examples=10, deadline=None)
@given(scores(*BOTH))
def test_any_score_can_be_heard(score):
    audio = render_audio(score, 8_000)
    assert np.isfinite(audio).all()
    assert np.abs(audio).max() <= 1


def test_a_missing_sound_font_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(pretty_midi, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(FileNotFoundError, match="sound font") as caught:
        wav_bytes(piece(scale(1)))
    assert len(str(caught.value).splitlines()) == 1
