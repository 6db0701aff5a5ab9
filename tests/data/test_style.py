"""What a model knows of its training set: taken from pieces, kept as JSON, and what it decides."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.typed_json import from_json, to_json
from data.ensembles import Ensemble
from data.forms import Form
from data.keys import Key
from data.repeats import Repeat
from data.rhythms import Rhythm
from data.score import DRUMS
from data.style import VERSION, Style
from tests.data.test_repeats import OTHER, TUNE, quarters
from tests.models import four_parts
from tests.music import EMPTY, line, piece, scores


@given(st.lists(scores(), max_size=4))
def test_the_style_of_any_pieces_comes_back_from_json(pieces):
    style = replace(Style.of(pieces), temperature=0.8, top_p=0.95)
    assert from_json(Style, to_json(style)) == style


def test_what_decides_how_new_music_is_where_nobody_says():
    tune, chorale = piece(line(range(60, 92))), four_parts(8)
    of_tune, of_chorale = Style.of([tune]), Style.of([chorale])
    assert (of_tune.voices, of_chorale.voices) == (1, 4)
    assert of_tune.is_of_one_voice
    assert of_tune.is_strict
    assert not of_chorale.is_of_one_voice
    assert not of_chorale.is_strict  # it is full of parallels
    assert of_chorale.hardly_rests
    assert of_chorale.has_regular_bars
    assert not of_tune.mostly_closes
    chords = piece([(0, 48, pitch, 80, 0) for pitch in (60, 64, 67)])
    assert not Style.of([chords]).is_of_one_voice
    assert Style.of([chords]).mostly_closes
    assert Style.of([chords, chords, tune, tune]).closing == 0.5
    unknown = Style.of([EMPTY])
    assert unknown == Style.of([]) == Style()
    assert not any((unknown.is_strict, unknown.hardly_rests, unknown.has_regular_bars))
    assert not unknown.is_exceeded_by(tune)
    assert of_tune.is_exceeded_by(piece(line([60] * 32)))  # all its bars are one


def test_a_piece_uses_the_steps_of_a_beat_on_which_more_than_a_note_in_a_hundred_begins():
    eighths = [(step, 6, 60, 80, 0) for step in range(0, 150 * 6, 6)]
    triplets = [(step, 4, 60, 80, 0) for step in range(0, 400, 4)]
    in_six = [(6, 6, 60, 80, 0), (18, 6, 62, 80, 0), (36 + 6, 6, 60, 80, 0)]  # from the bar line
    bars = [(4, 4, 48)] * 19
    of_six = piece(in_six, bars=[(6, 8, 36)] * 2)
    style = Style.of([piece(eighths, bars), piece([*eighths, (7, 3, 61, 80, 0)], bars), EMPTY])
    assert style.rhythms == (Rhythm(2, (0, 6)),)
    assert Style.of([piece(triplets, bars), of_six]).rhythms == (
        Rhythm(1, (0, 4, 8)),
        Rhythm(1, (6,)),
    )
    rng = np.random.default_rng(0)
    drawn = style.draw_rhythms(3, rng, 12)
    assert [np.flatnonzero(row).tolist() for row in drawn] == [[0, 6]] * 3
    both = replace(style, rhythms=(Rhythm(9, (0, 6)), Rhythm(1, (0, 4, 8))))
    for known, there, steps in (
        (both, {0, 4}, [0, 4, 8]),  # the one that has them
        (both, {6}, [0, 6]),
        (style, {3}, [0, 3, 6]),  # none has them
    ):
        (row,) = known.draw_rhythms(1, rng, 12, there)
        assert np.flatnonzero(row).tolist() == steps
    assert Style().draw_rhythms(2, rng, 12).all()


def test_of_one_voice_only_long_passages_come_again():
    line_of_a_tune = [*TUNE, *OTHER]  # four bars
    long, short = (quarters(each * 2) for each in (line_of_a_tune, TUNE))
    (form,) = Style.of([long]).forms
    assert len(form.repeats) == 1
    assert Style.of([short]).forms[0].repeats == ()
    two = quarters(TUNE * 2, [pitch - 24 for pitch in TUNE] * 2)
    assert len(Style.of([two]).forms[0].repeats) == 1


@pytest.mark.parametrize(
    ("programs", "voices", "joining"),
    [
        ([0], 1, [2, 4]),  # the most frequent with it, not that of five
        ([0, 2], 2, [4]),
        ([1], 1, [0, 2, 3, 4]),
        ([5], 1, []),  # which plays with nobody
        ([0], 3, []),  # chords of as many notes as there are voices
        ([0, 2, 3], 3, []),
    ],
)
def test_those_join_a_seed_that_play_with_its_instruments_in_training_pieces(
    programs, voices, joining
):
    ensembles = Ensemble(80, (0, 2, 4)), Ensemble(30, (0, 1, 2, 3, 4)), Ensemble(2, (5,))
    assert Style(voices=3, ensembles=ensembles).joining(programs, voices, range(9)) == joining


def test_a_voice_that_some_sing_alone_is_told_from_a_piano_that_some_play_alone():
    style = Style(voices=2, ensembles=(Ensemble(90, (0, 68)), Ensemble(10, (0,))))
    assert style.joining([68], 1, [0, 68]) == [0]
    assert style.joining([0], 1, [0, 68]) == []


def test_tunes_are_played_by_the_highest_that_plays_in_most_pieces():
    piano, flute = [(0, 12, pitch, 80, 0) for pitch in range(40, 81, 4)], (0, 12, 96, 80, 73)
    song = piece([(0, 48, 70, 80, 68), *piano, (0, 12, 38, 80, DRUMS)])
    assert Style.of([song, song, piece([*piano, flute])]).tune == 68
    drums = piece([(0, 12, 38, 80, DRUMS)])
    assert Style.of([drums, drums, song]).tune == 68
    assert Style.of([drums]).tune is Style().tune is None


def test_a_seed_of_as_many_voices_as_some_training_pieces_is_joined_by_nobody():
    ensembles = Ensemble(90, (0, 40, 41, DRUMS)), Ensemble(10, (40,))
    style = Style(voices=4, ensembles=ensembles)
    assert style.joining([40], 1, [0, 40, 41, DRUMS]) == []
    assert style.joining([40, 41], 2, [0, 40, 41, DRUMS]) == [0, DRUMS]
    assert Style().joining([40], 1, [0, 40, 41]) == [0, 41]  # nothing is known


def test_a_seed_of_as_many_instruments_as_small_bands_is_a_band_and_joined_by_nobody():
    bands = [Ensemble(1, tuple(range(first, first + size))) for first, size in enumerate((4, 7, 8))]
    style = Style(voices=7, ensembles=tuple(bands), registers=({0: (60,)},))
    assert style.joining([0, 1, 2, 40], 4, range(50)) == []
    assert style.joining([1, 2, 3], 3, range(50)) == [0]
    assert style.joining([4], 4, range(50)) == [1, 2, 3, 5, 6, 7]  # which plays chords
    assert replace(style, registers=()).joining([1, 2, 3, 4], 4, range(50)) == [5, 6, 7]
    solos = replace(style, ensembles=(Ensemble(9, (49,)), *bands))
    assert solos.joining([0], 1, range(50)) == [1, 2, 3]


def form(final_position, *repeats, meter=(4, 4), first_bar=48, bars=8):
    return Form(meter, first_bar, bars, final_position, repeats)


def test_endings_and_keys_are_drawn_as_often_as_they_are_in_the_training_set():
    forms = [form(24)] * 3 + [form(0)] + [form(12, meter=(3, 8))] * 4
    keys = {"major": (*[0] * 7, 3, *[0] * 4), "minor": (*[0] * 9, 1, 0, 0)}
    style, rng = Style(forms=tuple(forms), keys=keys), np.random.default_rng(0)
    drawn = style.draw_final_positions(2000, rng, None)
    assert {*drawn.tolist()} == {0, 12, 24}
    assert abs((drawn == 12).mean() - 0.5) < 0.05
    of_meter = style.draw_final_positions(2000, rng, (4, 4))
    assert {*of_meter.tolist()} == {0, 24}
    assert abs((of_meter == 24).mean() - 0.75) < 0.05
    assert style.draw_final_positions(2, rng, (2, 4)).tolist() == [-1, -1]
    drawn_keys = Counter(style.draw_keys(2000, rng))
    assert {*drawn_keys} == {Key(7, "major"), Key(9, "minor")}
    assert abs(drawn_keys[Key(7, "major")] / 2000 - 0.75) < 0.05
    no_keys = {"major": (0,) * 12, "minor": (0,) * 12}  # no piece follows one
    for unknown in (Style(), Style(keys=no_keys)):
        assert unknown.draw_keys(2, rng) == [None, None]


def test_a_piece_takes_the_form_of_a_training_piece_that_begins_so_and_is_about_as_long():
    whole, upbeat = form(24, Repeat(96, 144, 48, True)), form(0, first_bar=12)
    nine = form(36, bars=9)
    repeats = Repeat(96, 144, 48, True), Repeat(300, 348, 96, False)
    long = replace(form(0, *repeats), bars=16)
    style, rng = Style(forms=(whole, upbeat, nine, long)), np.random.default_rng(0)

    def drawn(first_bar, bars, final=24, meter=(4, 4)):
        last_bar = 48 * (bars - 1)
        return {style.draw_form(meter, first_bar, bars, final, last_bar, rng) for _ in range(20)}

    opening = replace(long, bars=8, final_position=24, repeats=repeats[:1])
    assert drawn(48, 8) == {whole, opening}  # those with such an end are preferred
    ends_later = replace(opening, final_position=36)
    assert drawn(48, 8, final=36) == {nine, ends_later}
    many = Style(forms=(*[whole] * 4, *[nine] * 4, long))
    assert {many.draw_form((4, 4), 48, 8, 0, 336, rng) for _ in range(40)} == {whole, nine}
    assert drawn(48, 30) == {long}
    assert drawn(12, 30) == drawn(12, 8, final=24) == {upbeat}
    assert drawn(36, 8) == drawn(48, 8, meter=(3, 8)) == {None}


FORM = {"meter": [4, 4], "first_bar_steps": 48, "bars": 8, "final_position": 24, "repeats": []}
REPEAT = {"begin_step": 48, "end_step": 96, "lag_steps": 48, "is_whole": True}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("voices", "many"), ("voices", [4]), ("voices", -1), ("voices", True), ("voices", 1e99)),
        *(("rests", "none"), ("rests", -1), ("rests", float("nan")), ("polyphony", "one")),
        *(("forms", 24), ("forms", [24]), ("forms", [FORM | {"bars": 0}]), ("forms", [{}])),
        *(("forms", [FORM | {"final_position": -1}]), ("forms", [FORM | {"repeats": [48]}])),
        *(("forms", [FORM | {"meter": [4]}]), ("forms", [FORM | {"meter": [4, 0]}])),
        ("forms", [FORM | {"repeats": [REPEAT | {"lag_steps": 49}]}]),
        ("forms", [FORM | {"repeats": [REPEAT | {"end_step": 48}]}]),
        *(("keys", {"major": [1] * 12}), ("keys", {"major": [0] * 12, "minor": [0] * 11})),
        *(("ranges", {"40": [60, 128]}), ("ranges", {"40": 60}), ("ranges", {"40": [79, 60]})),
        *(("ranges", {"violin": [60, 79]}), ("pitches", {"40": [128]}), ("pitches", {"9" * 9: []})),
        *(("temperature", -1), ("top_p", 0), ("top_p", 2), ("extremes", {"most": 1})),
        *(("extremes", [1, 2]), ("ensembles", [[3, 40]]), ("mood", "gay"), ("version", None)),
        ("version", VERSION + 1),
    ],
)
def test_json_that_no_pieces_give_is_refused_in_one_line(name, value):
    text = json.dumps({"version": VERSION, name: value})
    with pytest.raises(ValueError, match=name) as error:
        from_json(Style, text)
    assert "\n" not in str(error.value)
