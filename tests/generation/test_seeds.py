"""Seeds and notes to keep: what is taken from a file, and which changes are reported."""

from dataclasses import replace

import numpy as np
import pretty_midi
import pytest

from data.ensembles import Ensemble
from data.midi.io import write_midi
from data.midi.quantize import MidiError
from data.score import DRUMS, UNNAMED
from data.style import Style
from generation.compose import compose
from generation.constraints import Constraints
from generation.length import Length
from generation.model import load
from generation.note_text import SeedError
from generation.request import Request
from generation.seeds import (
    given_from_midi,
    rewrite_from_midi,
    seed_from_midi,
    seed_from_notes,
    voices_of,
)
from tests.models import BAND, POP, QUARTET, four_parts, of_one_program, tune
from tests.music import line, piece


def test_typed_notes_are_in_a_meter_that_the_model_has():
    waltzes = replace(QUARTET, meters=((3, 4),))
    seed = seed_from_notes("C4 E4 G4 C5 E5 G5", waltzes)
    assert seed.score.bars.tolist() == [(3, 4, 36)] * 2
    assert seed.changes == ()


@pytest.mark.parametrize("upbeat", [False, True])
def test_bars_are_counted_without_the_upbeat(tmp_path, upbeat):
    score = tune(tmp_path / "tune.mid", upbeat)
    seed = seed_from_midi(tmp_path / "tune.mid", QUARTET, bars=2)
    assert seed.changes == ()
    assert len(seed.score.bars) == 2 + upbeat
    assert seed.end_step == seed.score.bar_starts[-1]
    later = seed_from_midi(tmp_path / "tune.mid", QUARTET, bars=2, from_bar=2)
    begin = int(score.bar_starts[1 + upbeat])
    assert later.score == score.excerpt(1 + upbeat, 3 + upbeat)
    here = (score.notes["onset"] >= begin) & (score.notes["onset"] < begin + 96)
    assert later.score.notes["pitch"].tolist() == score.notes["pitch"][here].tolist()
    assert later.score.notes["onset"][0] == 0
    assert len(seed_from_midi(tmp_path / "tune.mid", QUARTET).score.bars) == len(score.bars)
    # the first bar by number comes with its upbeat
    again = seed_from_midi(tmp_path / "tune.mid", QUARTET, bars=2, from_bar=1)
    assert again.score == seed.score
    assert np.array_equal(again.is_open, seed.is_open)


def test_tracks_of_a_program_that_is_unknown_are_voices_apart():
    score = four_parts(4)
    pianos, violins = (of_one_program(score, program) for program in (0, 40))
    apart = "4 tracks of Acoustic Grand Piano became Violin, Viola, Cello, Contrabass"
    seed = seed_from_midi(pianos, QUARTET)
    assert seed.changes == (apart,)
    assert seed.score == score
    again = rewrite_from_midi(pianos, QUARTET, bars=(2, 2), voices=(3,))
    assert again.changes == (apart,)
    assert len(again.score.notes) == len(score.notes) - 4
    tune = given_from_midi(pianos, QUARTET)
    assert tune.changes[0] == apart
    assert (
        tune.score.notes["pitch"].tolist()
        == score.notes["pitch"][score.notes["program"] == 40].tolist()
    )
    assert {*seed_from_midi(violins, QUARTET).score.notes["program"].tolist()} == {40}
    alone = replace(QUARTET, programs=(40,))
    assert seed_from_midi(pianos, alone).changes == ("Acoustic Grand Piano became Violin",)


# A note in the first bar and one in the fifth.
RESTS = piece([(0, 12, 60, 80, 40), (192, 12, 62, 80, 40)], [(4, 4, 48)] * 5, 80)


def test_a_seed_has_the_tempo_of_its_own_bars(tmp_path):
    score = tune(tmp_path / "tune.mid")
    tempo_bpm = np.repeat([80, 140], [2, len(score.bars) - 2])
    write_midi(replace(score, tempo_bpm=tempo_bpm), tmp_path / "faster.mid")
    for from_bar in (1, 3):
        seed = seed_from_midi(tmp_path / "faster.mid", QUARTET, bars=2, from_bar=from_bar)
        assert set(seed.score.tempo_bpm.tolist()) == {tempo_bpm[from_bar - 1]}
        assert seed.changes == ()


def test_a_seed_that_rests_before_its_bars_are_over_says_so(tmp_path):
    write_midi(RESTS, tmp_path / "rests.mid")
    seed = seed_from_midi(tmp_path / "rests.mid", QUARTET, bars=3)
    assert seed.changes == ("it ends with bar 1, the last with a note",)
    later = seed_from_midi(tmp_path / "rests.mid", QUARTET, bars=2, from_bar=4)
    assert later.changes == ()
    assert later.score.notes["onset"].tolist() == [48]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"from_bar": 9}, "no bar 9, its last with a note is 5"),
        ({"from_bar": 2, "bars": 2}, "no notes in 2 bars from bar 2 on"),
    ],
)
def test_bars_that_hold_nothing_are_refused(tmp_path, arguments, words):
    write_midi(RESTS, tmp_path / "rests.mid")
    with pytest.raises(MidiError, match=words):
        seed_from_midi(tmp_path / "rests.mid", QUARTET, **arguments)
    with pytest.raises(MidiError, match="pretty_midi object: no notes in it"):
        seed_from_midi(pretty_midi.PrettyMIDI(), QUARTET)


def test_typed_notes_are_in_the_meter_and_at_the_tempo_of_most_training_bars():
    waltzes = [piece(line(range(60, 66), program=40), bars=[(3, 4, 36)] * 2, tempo=66)] * 2
    marches = [piece(line(range(60, 64), program=40), bars=[(4, 4, 48)], tempo=80)]
    style, vocabulary = Style.of([*marches, *waltzes]), replace(QUARTET, tempos=(66, 80, 100))
    score = seed_from_notes("C4 E4", vocabulary, style=style).score
    assert score.bars[["numerator", "denominator"]].tolist() == [(3, 4)]
    assert score.tempo_bpm.tolist() == [66]
    asked = Constraints(time_signature=(4, 4), tempo_bpm=100)
    score = seed_from_notes("C4 E4", vocabulary, asked, style=style).score
    assert (score.bars["numerator"].tolist(), score.tempo_bpm.tolist()) == ([4], [100])
    assert seed_from_notes("C4 E4", QUARTET, style=style).score.bars["numerator"].tolist() == [3]


def test_a_tune_is_played_by_who_plays_tunes(tmp_path):
    text, score = "C5:4 / E4:4", piece([(0, 48, 72, 80, 7), (0, 48, 48, 80, 0)])
    style = Style(ensembles=(Ensemble(1, (40, 42)),), ranges={40: (48, 60), 42: (60, 72)})
    typed = seed_from_notes(text, QUARTET, style=style).score.notes
    assert typed[["pitch", "program"]].tolist() == [(64, 40), (72, 42)]
    few = seed_from_notes(text, QUARTET, Constraints(programs=(40, 41)), style=style).score.notes
    assert few[["pitch", "program"]].tolist() == [(72, 40), (64, 41)]
    kept = voices_of(score, QUARTET, tune=42).score.notes
    assert kept[["pitch", "program"]].tolist() == [(72, 42)]
    tune(tmp_path / "tune.mid")  # of a violin, which songs for oboe and piano do not have
    songs = replace(QUARTET, programs=(0, 68))
    for read in (seed_from_midi, rewrite_from_midi):  # below an oboe's register
        fitted = read(tmp_path / "tune.mid", songs, tune=68)
        assert "Violin became Oboe" in fitted.changes[0]


def test_text_of_bare_letters_says_how_it_was_read():
    assert seed_from_notes("Am F C", QUARTET).changes == ()
    clause = "C E was read as 2 chords (for notes give octaves: C4 E4)"
    assert seed_from_notes("C E", QUARTET).changes == (clause,)
    low = seed_from_notes("C 0", QUARTET).changes  # and what changed comes after it
    assert "octaves: C4" in low[0]
    assert "moved by octaves" in low[1]


QUARTET_PIECE = [(0, 48, 72 - 5 * voice, 80, 40 + voice) for voice in range(4)]


def test_a_voice_is_found_by_its_instrument_then_by_its_place():
    score = piece([*QUARTET_PIECE, (0, 12, 38, 80, DRUMS)])
    assert voices_of(score, QUARTET, (4,)).score.notes["pitch"].tolist() == [57]
    strange = piece([(0, 48, 72, 80, 0), (0, 48, 60, 80, 7), (0, 12, 38, 80, DRUMS)])
    tune = voices_of(strange, QUARTET, (2,)).score.notes
    assert tune[["pitch", "program"]].tolist() == [(60, 41)]
    alone = piece([(0, 48, 72, 80, 7), (0, 12, 38, 80, DRUMS)])
    tune = voices_of(alone, QUARTET, (3,)).score.notes
    assert tune[["pitch", "program"]].tolist() == [(72, 42)]


@pytest.mark.parametrize(("holds", "last"), [(36, 36), (40, 48), (90, 48)])
def test_the_bar_that_a_tune_sounds_on_through_makes_the_upbeat_a_whole_one(holds, last):
    notes = [(0, 12, 67, 80, 40), (12, 48 + holds, 72, 80, 40)]
    tune = piece(notes, bars=[(4, 4, 12), (4, 4, 48)])
    assert voices_of(tune, QUARTET).score.bars["length"][-1] == last


def test_as_many_voices_as_are_asked_for_are_taken_from_the_highest_down():
    duet = piece([(0, 48, 48, 80, 0), (0, 48, 72, 80, 33)])
    seed = voices_of(duet, QUARTET, (4, 1))
    assert seed.score.notes[["pitch", "program"]].tolist() == [(72, 40), (48, 43)]
    assert seed.changes[:2] == (
        "Electric Bass (finger) became Violin",
        "Acoustic Grand Piano became Contrabass",
    )
    assert seed.is_open.any(axis=1).tolist() == [False, True, True, False]
    mixed = voices_of(piece([(0, 48, 48, 80, 40), (0, 48, 72, 80, 0)]), QUARTET, (1, 2))
    assert mixed.score.notes[["pitch", "program"]].tolist() == [(48, 40), (72, 41)]
    one = voices_of(duet, QUARTET)
    assert one.score.notes["pitch"].tolist() == [72]
    assert "1 other voice left out" in one.changes[1]


def test_notes_that_double_others_are_told_of_where_the_whole_file_is_kept():
    midi = pretty_midi.PrettyMIDI()
    for name in ("Violin", "Fiddle"):
        midi.instruments.append(pretty_midi.Instrument(40, name=name))
        midi.instruments[-1].notes.append(pretty_midi.Note(80, 60, 0.0, 0.5))
    assert rewrite_from_midi(midi, QUARTET).changes == ("left out, as doubling another: 1 note",)
    assert seed_from_midi(midi, QUARTET).changes == ()


def test_by_default_the_voices_of_the_piece_are_rewritten(tmp_path):
    tune(tmp_path / "tune.mid", program=41)
    seed = rewrite_from_midi(tmp_path / "tune.mid", QUARTET, bars=(2, 3))
    assert np.flatnonzero(seed.is_open.any(axis=1)).tolist() == [1]
    assert np.flatnonzero(~seed.is_closed).tolist() == list(range(48, 144))
    notes = [(21 * n, 21, 60 + n, 80, 41) for n in range(4)]
    write_midi(piece(notes, bars=[(7, 16, 21)] * 4), tmp_path / "odd.mid")
    odd = rewrite_from_midi(tmp_path / "odd.mid", QUARTET, bars=(2, 2))  # a meter it has not
    assert np.flatnonzero(~odd.is_closed).tolist() == list(range(21, 42))
    seed = rewrite_from_midi(tmp_path / "tune.mid", QUARTET, bars=(2, 3), voices=(1, 4))
    assert np.flatnonzero(seed.is_open.any(axis=1)).tolist() == [0, 3]
    assert seed.changes == ("it has no notes of Violin or Contrabass to rewrite",)


def test_bars_that_cannot_be_rewritten_are_refused(tmp_path):
    tune(tmp_path / "tune.mid", upbeat=True)
    with pytest.raises(MidiError, match="no bar 9, it has bars 0 to 4"):
        rewrite_from_midi(tmp_path / "tune.mid", QUARTET, bars=(9, 9))
    with pytest.raises(MidiError, match="no bars 3-9, it has bars 0 to 4"):
        rewrite_from_midi(tmp_path / "tune.mid", QUARTET, bars=(3, 9))
    write_midi(piece([(0, 12, 38, 80, DRUMS)]), tmp_path / "drums.mid")
    with pytest.raises(MidiError, match="no notes that the model has an instrument for"):
        rewrite_from_midi(tmp_path / "drums.mid", QUARTET)


def test_voices_that_there_are_not_are_refused(tmp_path):
    with pytest.raises(SeedError, match="all voices of the model are kept"):
        voices_of(piece(QUARTET_PIECE), QUARTET, (1, 2, 3, 4))
    with pytest.raises(SeedError, match="the model plays one voice, so it has none to add"):
        voices_of(piece(QUARTET_PIECE), replace(QUARTET, programs=(40,)))
    with pytest.raises(SeedError, match="there is 1 voice in it, no voice 2"):
        voices_of(piece([(0, 48, 72, 80, 0)]), QUARTET, (1, 2))
    with pytest.raises(SeedError, match="the model has 4 voices, there is no voice 5"):
        voices_of(piece(QUARTET_PIECE), QUARTET, (5,))
    with pytest.raises(SeedError, match="there are 2 voices in it, no voice 3"):
        voices_of(piece([(0, 48, 72, 80, 0), (0, 48, 60, 80, 7)]), QUARTET, (3,))
    with pytest.raises(SeedError, match="no voice in it that has pitches"):
        voices_of(piece([(0, 12, 38, 80, DRUMS)]), QUARTET)
    write_midi(piece([(0, 12, 38, 80, DRUMS)]), tmp_path / "drums.mid")
    with pytest.raises(MidiError, match=r"drums\.mid: there is no voice"):
        given_from_midi(tmp_path / "drums.mid", QUARTET)


def test_a_melody_is_kept_by_its_name_and_the_other_parts_are_open(tmp_path):
    rows = [(12 * n, 12, 60 + n, 80, program) for n in range(8) for program in (0, 2)]
    song = piece(rows, [(4, 4, 48)] * 2, 80, POP)
    write_midi(song, tmp_path / "song.mid")
    seed = given_from_midi(tmp_path / "song.mid", BAND)
    left_out = "kept MELODY; 1 other voice left out (--voices says which are kept)"
    assert seed.changes == (left_out,)
    assert np.array_equal(seed.score.notes, song.notes[song.notes["program"] == 0])
    assert seed.is_open.any(axis=1).tolist() == [False, True, True, True, True]
    assert seed_from_notes("C4 E4", BAND).score.notes["program"].tolist() == [0, 0]
    flute = UNNAMED + 73  # plays tunes, and has no name
    band = replace(BAND, programs=tuple(sorted({*BAND.programs, flute})))
    both = song.notes.copy()
    both["program"][both["program"] == 2] = flute
    tunes = voices_of(replace(song, notes=both), band, tune=flute).score.notes
    assert {*tunes["program"].tolist()} == {flute}
    # the file names its parts in any case, and one that is alone stays what it is
    write_midi(piece(rows[1::2], [(4, 4, 48)] * 2, 80, POP), tmp_path / "piano.mid")
    seed = given_from_midi(tmp_path / "piano.mid", BAND)
    assert (seed.changes, set(seed.score.notes["program"].tolist())) == ((), {2})
    assert given_from_midi(tmp_path / "song.mid", BAND, voices=["piano"]).is_open[0].all()
    rewritten = rewrite_from_midi(tmp_path / "song.mid", BAND, voices=["Bridge"])
    assert rewritten.is_open.any(axis=1).tolist() == [False, True, False, False, False]
    drummed = rewrite_from_midi(tmp_path / "song.mid", BAND, voices=["drums"])
    assert drummed.is_open.any(axis=1).tolist() == [False, False, False, True, False]
    # a stranger is the first part, or the one that is named
    write_midi(piece([(0, 12, 72, 80, 73)]), tmp_path / "flute.mid")
    seed = given_from_midi(tmp_path / "flute.mid", BAND)
    assert seed.changes[:1] == ("Flute became MELODY (--voice names another)",)
    seed = given_from_midi(tmp_path / "flute.mid", BAND, voices=["PIANO"])
    assert seed.score.notes["program"].tolist() == [2]
    with pytest.raises(SeedError, match="no voice flute: it has MELODY, BRIDGE, PIANO, Electric"):
        seed.played_by("flute", BAND)
    # a stranger plays the first part, a bass the bass that has no name
    write_midi(piece([(0, 12, 72, 80, 73), (0, 12, 40, 80, 32)]), tmp_path / "strangers.mid")
    seed = seed_from_midi(tmp_path / "strangers.mid", BAND)
    assert seed.score.notes["program"].tolist() == [0, UNNAMED + 33]
    assert "Flute became MELODY" in seed.changes


def test_a_song_without_time_signatures_is_read_with_bars_as_the_model_has_them():
    midi = pretty_midi.PrettyMIDI(initial_tempo=80)
    midi.instruments.append(pretty_midi.Instrument(0, name="MELODY"))
    for beat in range(12):  # a quarter note is 0.75 s; longer notes begin bars, after an upbeat
        length = 0.7 if beat % 4 != 1 else 2
        note = pretty_midi.Note(80, 60 + beat, 0.3 + 0.75 * beat, 0.3 + 0.75 * beat + length)
        midi.instruments[0].notes.append(note)
    score = seed_from_midi(midi, BAND).score
    assert score.bars["length"].tolist() == [12, 48, 48, 48]
    assert score.notes["onset"].tolist() == [12 * beat for beat in range(12)]


def test_a_stuck_note_is_cut_where_the_seed_ends_and_a_tied_one_is_not(tmp_path):
    stuck, tied = (0, 30 * 48, 36, 80, 42), (36, 48, 60, 80, 41)
    notes = [stuck, tied, *line(range(72, 80), program=40)]
    write_midi(piece(notes, bars=[(4, 4, 48)] * 2), tmp_path / "stuck.mid")
    seed = seed_from_midi(tmp_path / "stuck.mid", QUARTET, bars=1)
    assert seed.score.notes["duration"].tolist() == [12, 48, 12, 12, 12, 48]
    assert seed.changes == ("cut at its end, as held for over a bar after it: 1 note",)


def test_bars_of_a_meter_that_the_model_has_not_are_no_upbeats(tmp_path):
    """What follows them is in whole bars."""
    notes = [(21 * n, 21, 60 + n, 80, 41) for n in range(2)]
    write_midi(piece(notes, bars=[(7, 16, 21)] * 2), tmp_path / "odd.mid")
    model = load("bach")
    seed = seed_from_midi(tmp_path / "odd.mid", model.vocabulary, bars=2)
    (written,) = compose(model, Request(seed, Length(bars=4)))
    assert written.score.bars["length"].tolist() == [21, 21, 24, 24, 24, 24]


def test_an_upbeat_in_a_meter_of_its_own_is_one(tmp_path):
    notes = [(0, 12, 60, 80, 41), *line([62, 64, 65, 67, 69, 71, 72, 60], 12, program=41)]
    write_midi(piece(notes, bars=[(1, 4, 12), (4, 4, 48), (4, 4, 48)]), tmp_path / "up.mid")
    seed = seed_from_midi(tmp_path / "up.mid", QUARTET, bars=1)
    assert seed.score.bars.tolist() == [(4, 4, 12), (4, 4, 48)]
    rewritten = rewrite_from_midi(tmp_path / "up.mid", QUARTET, bars=(0, 0))
    assert np.flatnonzero(~rewritten.is_closed).tolist() == list(range(12))


def test_others_play_until_the_last_note_of_a_tune_is_over():
    notes = [(0, 48, 60, 80, 40), (48, 120, 62, 80, 40), (0, 12, 36, 80, DRUMS)]
    tune = piece(notes, bars=[(4, 4, 48)] * 2, tempo=80)
    seed = voices_of(tune, QUARTET)
    assert seed.score.bars["length"].tolist() == [48] * 4
    assert seed.is_open[1:].all()
    assert seed.changes == ("1 note of Drums left out",)
    flute = piece(line([60, 62], program=73), tempo=80)
    assert voices_of(flute, QUARTET).changes == ("Flute became Violin",)


def test_who_plays_alone_plays_a_note_at_a_time_where_some_bars_are_rewritten(tmp_path):
    write_midi(piece(line([60, 62, 64, 65] * 4, program=40), [(4, 4, 48)] * 4), tmp_path / "a.mid")
    model = load("bach")
    seed = rewrite_from_midi(tmp_path / "a.mid", model.vocabulary, bars=(2, 3))
    for written in compose(model, Request(seed, None, samples=8)):
        notes = written.score.notes
        assert (notes["onset"][1:] >= (notes["onset"] + notes["duration"])[:-1]).all()
