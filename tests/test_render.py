"""Pictures and sound: what is in the Score is seen and heard, at its place."""

import wave

import numpy as np
import pretty_midi
import pytest
from hypothesis import given, settings
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from data.render import draw_piano_roll, render_audio, write_piano_roll, write_wav
from data.score import BAR, DRUMS, NOTE, Score, canonical
from data.seed_notes import parse_seed_notes
from tests.music import GRID, scores

RATE = 22_050
VERMILION, BLUE, SEED_GROUND = "#D55E00", "#0072B2", "#F5ECD3"
EMPTY = Score(np.empty(0, NOTE), np.empty(0, BAR), np.empty(0, np.int32), GRID)


def piece(notes, bars=((4, 4, 48),), tempo=120.0):
    """A Score from rows of onset, duration, pitch, velocity, program."""
    bars = np.array(list(bars), dtype=BAR)
    return canonical(np.array(notes, dtype=NOTE), bars, [tempo] * len(bars), GRID)[0]


def scale(count):
    return [(12 * i, 12, 60 + i % 12, 80, 0) for i in range(count)]


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int)


def share_of(colour, image):
    """Share of the picture's pixels that have the colour."""
    distance = np.abs(image - np.rint(np.array(to_rgb(colour)) * 255)).max(axis=2)
    return float((distance <= 2).mean())


def bar_numbers(figure):
    return [int(label.get_text()) for axes in figure.axes for label in axes.get_xticklabels()]


def words(figure):
    texts = [text for axes in figure.axes for text in axes.texts] + list(figure.texts)
    labels = [label for axes in figure.axes for label in axes.get_yticklabels()]
    legend = [text for legend in figure.legends for text in legend.get_texts()]
    return [text.get_text() for text in (*texts, *labels, *legend)]


def test_both_programs_of_a_unison_are_seen():
    unison = pixels(draw_piano_roll(piece([(0, 48, 60, 80, 40), (0, 48, 60, 80, 41)])))
    violin, viola = share_of(VERMILION, unison), share_of(BLUE, unison)
    assert violin > 0.005
    assert violin == pytest.approx(viola, rel=0.3)


def test_seed_and_continuation_differ_at_a_glance():
    score = piece(scale(32))
    without, half, whole = (pixels(draw_piano_roll(score, steps)) for steps in (0, 192, 384))
    assert share_of(SEED_GROUND, without) == 0
    assert share_of(SEED_GROUND, whole) > 1.7 * share_of(SEED_GROUND, half) > 0.2
    assert share_of(VERMILION, without) > 1.7 * share_of(VERMILION, half) > 0.005
    said = words(draw_piano_roll(score, 192, title="A scale"))
    assert {"A scale", "seed", "Acoustic Grand Piano", "4/4", "the model goes on →"} <= set(said)
    assert "seed" not in words(draw_piano_roll(score))


@pytest.mark.parametrize("count", [1, 4, 12, 64])
def test_every_bar_is_numbered_once(count):
    figure = draw_piano_roll(piece(scale(4 * count)))
    assert bar_numbers(figure) == list(range(1, count + 1))


def test_an_anacrusis_is_bar_0():
    figure = draw_piano_roll(piece(scale(10), bars=[(4, 4, 12), (4, 4, 48)]))
    assert bar_numbers(figure) == [0, 1, 2, 3]


def test_meters_are_marked_where_they_change():
    bars = [(4, 4, 48), (4, 4, 48), (3, 4, 36), (3, 4, 36), (6, 8, 36)]
    said = words(draw_piano_roll(piece(scale(16), bars)))
    assert [word for word in said if "/" in word] == ["4/4", "3/4", "6/8"]


def test_drums_have_rows_by_name():
    said = words(draw_piano_roll(piece([(0, 3, 38, 80, DRUMS), (0, 48, 38, 80, 0)])))
    assert {"Acoustic Snare", "Drums", "C2"} <= set(said)


@settings(max_examples=10, deadline=None)
@given(scores())
def test_any_score_can_be_drawn(score):
    pixels(draw_piano_roll(score, seed_steps=50, title=r"Any $\way$"))
    assert pyplot.get_fignums() == []


def test_a_note_held_for_an_hour_does_not_squeeze_the_others():
    image = pixels(draw_piano_roll(piece([*scale(8), (90, 10**6, 72, 80, 41)])))
    assert share_of(VERMILION, image) > 0.01


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    write_piano_roll(piece(scale(8)), tmp_path / "new" / "roll.png")
    assert (tmp_path / "new" / "roll.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_piano_roll(piece(scale(8)), tmp_path / "taken")
    with pytest.raises(OSError, match="taken"):
        write_wav(piece(scale(1)), tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "taken"]


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


@pytest.mark.parametrize(("name", "frequency"), [("A4", 440.0), ("C5", 523.25), ("[C7]", 2093.0)])
def test_pitch(name, frequency):
    audio = render_audio(parse_seed_notes(f"{name}:4", GRID, programs=(73,)), RATE)
    spectrum = np.abs(np.fft.rfft(audio[: 2 * RATE] * np.hanning(2 * RATE)))
    assert np.argmax(spectrum) / 2 == pytest.approx(frequency, rel=0.01)


@pytest.mark.parametrize("tempo", [60, 120])
def test_onsets_are_where_the_tempo_puts_them(tempo):
    audio = render_audio(parse_seed_notes("R:2 C5:.25 R:3 G5:.25", GRID, tempo_bpm=tempo), RATE)
    for quarters in (2, 5.25):
        at = quarters * 60 / tempo
        assert level(audio, at, 0.03) > 10 * level(audio, at - 0.03, 0.03)
    assert np.abs(audio[: round(2 * 60 / tempo * RATE) - 1]).max() == 0


def test_a_tempo_change_moves_the_onsets_after_it():
    notes = np.array([(0, 3, 72, 80, 0), (96, 3, 72, 80, 0)], dtype=NOTE)
    bars = np.array([(4, 4, 48)] * 3, dtype=BAR)
    audio = render_audio(canonical(notes, bars, [120, 240, 240], GRID)[0], RATE)
    assert level(audio, 3.0, 0.03) > 10 * level(audio, 2.97, 0.03)


def test_the_last_note_rings_out_and_fades():
    audio = render_audio(parse_seed_notes("C4:1", GRID, programs=(48,)), RATE)
    assert level(audio, 0.55) > 0.01
    assert abs(float(audio[-1])) < 1e-4


def test_drums_and_more_than_sixteen_programs_are_heard():
    beats = [(12 * i, 12, 60, 80, program) for i, program in enumerate(range(0, 120, 6))]
    audio = render_audio(piece([*beats, (12 * 20, 12, 38, 100, DRUMS)]), RATE)
    assert min(level(audio, 0.5 * i, 0.3) for i in range(21)) > 0.003
    alone = render_audio(piece([(0, 1, 38, 100, DRUMS)]), RATE)
    assert np.abs(alone).max() > 0.5


def test_silence_where_there_are_no_notes():
    audio = render_audio(EMPTY, RATE)
    assert 0.1 < len(audio) / RATE < 2
    assert not audio.any()


@settings(max_examples=10, deadline=None)
@given(scores())
def test_any_score_can_be_heard(score):
    audio = render_audio(score, 8_000)
    assert np.isfinite(audio).all()
    assert np.abs(audio).max() <= 1


def test_the_wav_file_holds_the_sound(tmp_path):
    score = parse_seed_notes("C4:.25 E4 G4", GRID)
    write_wav(score, tmp_path / "a.wav")
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 44_100)
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
    np.testing.assert_allclose(samples / 32767, render_audio(score), atol=2e-5)


def test_a_missing_sound_font_is_one_clear_line(monkeypatch, tmp_path):
    monkeypatch.setattr(pretty_midi, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(FileNotFoundError, match="sound font") as caught:
        write_wav(piece(scale(1)), tmp_path / "a.wav")
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "a.wav").exists()
