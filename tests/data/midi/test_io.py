"""Through a MIDI file and back; both readers agree; what is not MIDI is said in a line."""

import io

import numpy as np
import pretty_midi
import pytest

from data.files.read import read_score
from data.midi import io as midi_io
from data.midi.io import write_midi
from data.midi.quantize import MidiError, score_from_events
from data.score import DRUMS
from tests.music import GRID, events_of, random_score, score_in


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        ((3, 5), "cannot be written .denominator must be a power of 2"),
        ((300, 128), "cannot be written .attribute must be in range 0..255"),
        ((4, 256), "a time signature that no MIDI file can say"),
    ],
)
def test_a_meter_that_no_midi_file_can_say_is_refused(meter, words):
    midi = pretty_midi.PrettyMIDI()
    midi.instruments.append(pretty_midi.Instrument(0))
    midi.instruments[0].notes.append(pretty_midi.Note(80, 60, 0, 1))
    midi.time_signature_changes.append(pretty_midi.TimeSignature(*meter, 0))
    with pytest.raises(MidiError, match=words):
        score_in(midi, GRID)


def test_onsets_go_to_the_nearest_step_half_way_up():
    score, losses = score_from_events(
        events_of(
            [(0, 480, 60, 80, 0), (59, 480, 62, 80, 0), (60, 480, 64, 80, 0), (61, 62, 65, 80, 0)]
        ),
        GRID,
    )
    assert score.notes[["onset", "duration"]].tolist() == [(0, 12), (1, 11), (2, 10), (2, 1)]
    assert losses.moved == 3
    assert losses.worst_error_steps == pytest.approx(0.5)


def test_of_two_signatures_at_one_tick_the_last_holds():
    score, _ = score_from_events(events_of([(0, 480, 60, 80, 0)], [(0, 4, 4), (0, 3, 4)]), GRID)
    assert score.bars.tolist() == [(3, 4, 36)]


def test_bars_that_fall_between_steps_do_not_drift():
    score, _ = score_from_events(
        events_of([(0, 9, 60, 80, 0), (4200, 4209, 60, 80, 0)], [(0, 7, 32)]), GRID
    )
    assert score.bars["length"].tolist() == [11, 10] * 5 + [11]
    assert score.notes["onset"].tolist() == [0, 105]


def test_the_pedal_holds_notes_until_it_comes_up():
    midi = pretty_midi.PrettyMIDI(resolution=480)
    piano = pretty_midi.Instrument(0)
    piano.notes = [pretty_midi.Note(80, 60, 0, 0.5), pretty_midi.Note(80, 62, 2.5, 3)]
    piano.control_changes = [
        pretty_midi.ControlChange(64, v, t) for v, t in ((127, 0.25), (0, 1.5))
    ]
    midi.instruments = [piano]
    drums = pretty_midi.Instrument(0, is_drum=True)
    drums.notes = [pretty_midi.Note(80, 36, 0, 0.5)]
    drums.control_changes = list(piano.control_changes)
    midi.instruments.append(drums)
    written = io.BytesIO()
    midi.write(written)
    score = score_in(midi, GRID)
    assert score.notes.tolist() == [(0, 36, 60, 80, 0), (0, 12, 36, 80, DRUMS), (60, 12, 62, 80, 0)]


@pytest.mark.parametrize(
    ("track", "words"),
    [
        ("00903c40 6080", "cut short"),
        ("00903cff 6080", "value out of range"),
        ("00fd 00ff2f00", "begins no event"),
        ("0040 00ff2f00", "begins no event"),
    ],
)
def test_a_broken_file_is_told_in_words_for_people(tmp_path, track, words):
    content = bytes.fromhex(track)
    head = b"MThd\x00\x00\x00\x06\x00\x00\x00\x01\x00\x60MTrk"
    (tmp_path / "odd.mid").write_bytes(head + len(content).to_bytes(4, "big") + content)
    with pytest.raises(MidiError, match=rf"odd\.mid: broken MIDI file \(.*{words}.*\)$"):
        read_score(tmp_path / "odd.mid", GRID)


def test_what_would_take_too_long_to_read_is_refused(tmp_path, monkeypatch):
    score = random_score(np.random.default_rng(3))
    write_midi(score, tmp_path / "many.mid")
    monkeypatch.setattr(midi_io, "MAX_NOTES", len(score.notes))
    assert len(read_score(tmp_path / "many.mid", GRID)[0].notes) == len(score.notes)
    monkeypatch.setattr(midi_io, "MAX_NOTES", len(score.notes) - 1)
    with pytest.raises(MidiError, match=r"many\.mid: .* notes are too many"):
        read_score(tmp_path / "many.mid", GRID)


@pytest.mark.parametrize(
    "broken",
    [
        events_of([(480, 0, 60, 80, 0)]),
        events_of([(0, 480, 60, 80, 0)], meters=[(-1, 4, 4)]),
        events_of([(0, 480, 60, 80, 0)], tempi=[(-1, 120)]),
        events_of([(0, 480, 60, 80, 0)], tempi=[(0, 1e-9)]),
        events_of([(0, 480, 60, 80, 129)]),
        events_of([(-1, 480, 60, 80, 0)]),
        events_of([(0, 480, -68, 80, 0)]),
    ],
)
def test_values_that_no_music_has_are_refused(broken):
    with pytest.raises(MidiError):
        score_from_events(broken, GRID)
