"""A user's piece is brought into a model's vocabulary by the least change."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.score import DRUMS, SECONDS, Grid
from data.tokens.adapt import adapt_score
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import VocabularyError
from tests import music
from tests.models import QUARTET
from tests.music import BOTH, ONE_NOTE, SMALL, VOCABULARIES, scores, vocabulary_for


def piece(note=(0, 12, 60, 80, 0), bar=(4, 4, 48), tempo=120):
    return music.piece([note], [bar], tempo)


@given(scores(*BOTH))
def test_what_fits_stays_as_it_is(score):
    assert adapt_score(score, vocabulary_for(score)) == (score, [])


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
@given(data=st.data())
def test_whatever_is_brought_in_can_be_spelled(vocabulary, data):
    score = data.draw(scores(vocabulary.grid))
    fitted, told = adapt_score(score, vocabulary)
    assert decode(encode(fitted, vocabulary), vocabulary) == fitted
    assert bool(told) == (fitted != score) or not len(fitted.notes)
    assert all("\n" not in clause for clause in told)


@pytest.mark.parametrize(
    ("score", "field", "value", "word"),
    [
        (piece(note=(0, 12, 73, 80, 0)), "pitch", 61, "octave"),
        (piece(note=(0, 12, 50, 80, 0)), "pitch", 62, "octave"),
        (piece(note=(0, 12, 60, 80, 35)), "program", 0, "Fretless Bass became Acoustic"),
        (piece(note=(0, 12, 60, 127, 0)), "velocity", 80, "loud"),
    ],
)
def test_a_note_goes_to_the_nearest_known(score, field, value, word):
    fitted, told = adapt_score(score, SMALL)
    assert fitted.notes[field].tolist() == [value]
    assert any(word in clause for clause in told)


@pytest.mark.parametrize(
    ("pitches", "fitted"),
    [
        ((35, 40, 43), (47, 52, 55)),
        ((80, 85, 89), (68, 73, 77)),
        ((22, 40), (46, 64)),
        ((30, 80), (42, 80)),  # too wide to move as one
    ],
)
def test_a_tune_moves_as_a_whole(pitches, fitted):
    rows = [(12 * n, 12, pitch, 80, 40) for n, pitch in enumerate(pitches)]
    adapted, told = adapt_score(music.piece(rows, tempo=80), QUARTET)
    assert adapted.notes["pitch"].tolist() == [*fitted]
    count = sum(a != b for a, b in zip(pitches, fitted, strict=True))
    assert told[0].startswith(f"{count} note")
    bass = (0, 12, 60, 80, 43)  # beside another voice, only what is out of reach moves
    adapted, _ = adapt_score(music.piece([*rows, bass], tempo=80), QUARTET)
    its = adapted.notes[adapted.notes["program"] == 40]
    assert all(a == b or not 36 <= b <= 84 for a, b in zip(its["pitch"], pitches, strict=True))


def test_an_instrument_of_the_same_family_is_nearer_than_any_other():
    # timpani, 47, stand with the strings in General MIDI
    fitted, _ = adapt_score(piece(note=(0, 12, 60, 80, 47)), replace(SMALL, programs=(40, 48)))
    assert fitted.notes["program"].tolist() == [40]


def test_a_model_of_one_tempo_takes_no_changes_of_it():
    score = replace(
        music.piece([(0, 12, 60, 80, 40), (48, 12, 60, 80, 40)], [(4, 4, 48)] * 2, 80),
        tempo_bpm=np.array([80, 60], dtype=np.int32),
    )
    one = replace(QUARTET, tempos=(80,))
    assert adapt_score(score, one)[1] == ["its changes of tempo were left out"]
    told = adapt_score(music.piece([(0, 12, 60, 80, 40)], tempo=60), one)[1]
    assert told == ["the tempo went to the nearest the model knows"]


def became(*voices, vocabulary=QUARTET, tune=None):
    """The program that each voice becomes, in order: voices are (program, pitch)."""
    rows = [(12 * n, 12, pitch, 80, program) for n, (program, pitch) in enumerate(voices)]
    fitted = adapt_score(music.piece(rows, tempo=80), vocabulary, tune)[0].notes
    return [int(fitted["program"][fitted["onset"] == 12 * n][0]) for n in range(len(voices))]


def test_a_melody_goes_to_the_highest_instrument_and_a_bass_to_the_lowest():
    assert became((0, 72)) == became((0, 50)) == became((44, 72)) == became((81, 60)) == [40]
    assert became((33, 40)) == became((33, 60)) == became((58, 50)) == became((0, 47)) == [43]


def test_the_highest_foreign_voice_goes_to_who_plays_tunes_however_low_it_is():
    songs = {"vocabulary": replace(QUARTET, programs=(0, 68)), "tune": 68}
    assert became((40, 62), **songs | {"tune": None}) == [0]  # below an oboe's register
    assert became((40, 62), **songs) == [68]
    assert became((40, 73), (41, 62), (42, 55), **songs) == [68, 0, 0]
    assert became((40, 62), (0, 50), **songs) == [68, 0]
    assert became((40, 62), (0, 72), **songs) == [0, 0]  # it is no tune
    assert became((40, 62), (68, 60), **songs) == [0, 68]  # which has its player
    assert became((33, 40), **songs) == [0]  # a bass
    assert became((42, 50), vocabulary=QUARTET, tune=40) == [42]  # is there itself


def test_foreign_voices_go_to_the_instruments_from_high_to_low():
    assert became((0, 76), (33, 40)) == [40, 43]
    assert became((33, 40), (73, 76)) == [43, 40]  # as they sound, not as they are numbered
    assert became((1, 76), (6, 69)) == [40, 41]  # neither is a bass
    assert became((6, 69), (1, 76)) == [41, 40]
    assert became((1, 76), (6, 52)) == [40, 43]  # below middle C, beside a higher voice
    assert became((33, 40), (6, 69), (1, 76)) == [43, 41, 40]
    assert became((60, 57), (56, 74), (58, 40), (1, 65)) == [42, 40, 43, 41]
    five = [(1, 80), (6, 70), (16, 65), (24, 60), (33, 40)]
    assert became(*five) == [40, 41, 42, 42, 43]


def test_foreign_voices_take_instruments_that_are_free():
    assert became((40, 72), (33, 40)) == [40, 43]
    assert became((40, 60), (1, 76)) == [40, 41]
    everyone = [(40, 72), (41, 65), (42, 60), (43, 45)]
    assert became(*everyone, (1, 76), (33, 40)) == [40, 41, 42, 43, 40, 43]


def test_high_and_low_are_of_the_instruments_not_of_their_numbers():
    band = replace(QUARTET, programs=(0, 33, 73))
    assert became((80, 72), vocabulary=band) == [73]
    assert became((43, 40), vocabulary=band) == [33]
    assert became((6, 60), (33, 40), vocabulary=band) == [0, 33]  # the family comes first
    assert became((16, 76), (48, 65), (58, 40), vocabulary=band) == [73, 0, 33]


def test_in_a_band_a_voice_of_no_family_goes_to_who_plays_in_its_register():
    band = replace(QUARTET, programs=(0, 11, 24, 33, 73))
    assert became((66, 58), vocabulary=band) == [0]  # no flute plays so low, nor a bass so high
    assert became((16, 53), (66, 58), vocabulary=band) == [24, 0]
    assert became((56, 74), (66, 58), (57, 44), vocabulary=band) == [73, 0, 33]
    assert became((61, 69), (60, 66), vocabulary=band) == [0, 24]  # bells do not hold a note
    assert became((12, 50), (79, 50), vocabulary=band) == [11, 73]  # the family comes first


@given(st.lists(st.tuples(st.integers(0, 127), st.integers(36, 84)), min_size=1, max_size=9))
def test_no_lower_foreign_voice_gets_a_higher_instrument(voices):
    foreign = {program: pitch for program, pitch in voices if program not in QUARTET.programs}
    programs = became(*foreign.items()) if foreign else []
    by_pitch = sorted(zip(foreign.values(), programs, strict=True))
    for (low, low_program), (high, high_program) in itertools.pairwise(by_pitch):
        assert low == high or low_program >= high_program
    assert len(set(programs)) == min(len(foreign), 4)


def test_drums_go_where_the_model_has_none():
    score = music.piece([(0, 12, 36, 80, DRUMS), (0, 12, 60, 80, 0)])
    fitted, told = adapt_score(score, ONE_NOTE)
    assert fitted.notes["program"].tolist() == [0]
    assert told == ["1 note of Drums left out"]
    fitted, told = adapt_score(score, SMALL)  # an octave up it would be another drum
    assert fitted.notes["program"].tolist() == [0]
    assert told == ["1 note of drums out of range left out"]


def test_what_is_lost_where_voices_meet_is_told():
    said = [
        adapt_score(music.piece([(0, 12, 60, 80, 0), (onset, 12, 60, 80, 1)]), ONE_NOTE)[1][1:]
        for onset in (0, 6, 12)
    ]
    assert said == [["1 note fell together"], ["1 note cut short"], []]


def test_a_bar_of_an_unknown_meter_keeps_its_length():
    fitted, told = adapt_score(piece(bar=(3, 4, 36)), SMALL)
    assert fitted.bars.tolist() == [(4, 4, 36)]
    assert len(told) == 1


def test_a_bar_longer_than_any_known_becomes_several():
    fitted, _ = adapt_score(piece(note=(60, 12, 60, 80, 0), bar=(6, 4, 72)), SMALL)
    assert fitted.bars.tolist() == [(4, 4, 48), (2, 4, 24)]
    choral = replace(SMALL, meters=((2, 4), (4, 4), (3, 2)))
    fitted, _ = adapt_score(piece(note=(60, 12, 60, 80, 0), bar=(4, 2, 96)), choral)
    assert fitted.bars.tolist() == [(4, 4, 48), (4, 4, 48)]  # rather than 3/2 and 2/4


@pytest.mark.parametrize("grid", [Grid(4), SECONDS])
def test_another_grid_is_refused(grid):
    with pytest.raises(VocabularyError, match="Grid"):
        adapt_score(music.piece([], (), grid=grid), SMALL)
