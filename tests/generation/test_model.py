"""A model file that lies is refused with one line."""

from collections import Counter

import numpy as np
import pytest
import torch

from data.keys import Key
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Kind
from generation.model import load
from model.config import DecoderConfig
from model.decoder import Decoder
from model.serialization import ModelFileError, save_model_file
from tests.music import SMALL

TRUE = SMALL.to_json()


def saved(path, summary=None, vocabulary=TRUE, context=64):
    """Write a model file that says this."""
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 16, "context_length": context}
    decoder = Decoder(DecoderConfig(SMALL.size, **sizes, **SideFeatures(SMALL).shape))
    save_model_file(path, decoder, vocabulary, summary or {})
    return path


def test_a_context_in_which_no_music_fits_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="shorter than 8 tokens"):
        load(saved(tmp_path / "m.safetensors", context=7))


def test_what_a_summary_says_is_read(tmp_path):
    model = load(saved(tmp_path / "m.safetensors", {"voices": 2, "step": None, "data": {}}))
    assert model.voices == 2


@pytest.mark.parametrize(
    "summary",
    [
        *({"voices": "many"}, {"voices": [4]}, {"voices": -1}, {"step": {}}),
        *({"regular_bars": "all"}, {"regular_bars": -1}),
        *({"parallels_per_100_bars": "none"}, {"data": "bach"}, {"data": [1]}),
        *({"forms": [24]}, {"forms": {"4/4": 24}}, {"forms": [[[4, 4, 48, 8, -1]]]}),
        *({"forms": [[[4, 4, 48, 8, 24], 48]]}, {"forms": [[[4, 4, 48, 8, 24], ["many"] * 4]]}),
        *({"keys": {"major": [1] * 12}}, {"keys": {"major": [0] * 12, "minor": [0] * 11}}),
        *({"keys": {"major": [1] * 12, "minor": [-1] * 12}}, {"keys": {"major": 1, "minor": 1}}),
        *({"ranges": {"40": [60, 128]}}, {"ranges": {"40": 60}}, {"ranges": {"violin": [60, 79]}}),
        *({"ranges": {"40": [79, 60]}}, {"ranges": [60, 79]}),
        *({"sampling": {"temperature": -1}}, {"sampling": {"boldness": 1}}, {"polyphony": "one"}),
        *({"sampling": {"top_k": "all"}}, {"extremes": {"most": 1}}, {"extremes": [1, 2, 3]}),
        *({"ensembles": [[3]]}, {"ensembles": [3, 40]}, {"ensembles": [[3, "violin"]]}),
        *({"pitches": {"40": [128]}}, {"pitches": {"40": 60}}, {"pitches": {"violin": [60]}}),
    ],
)
def test_a_summary_that_lies_is_refused(tmp_path, summary):
    path = saved(tmp_path / "m.safetensors", summary)
    with pytest.raises(ModelFileError, match=next(iter(summary))) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_all_pitches_of_a_program_are_one_choice_of_rhythm(tmp_path):
    model = load(saved(tmp_path / "m.safetensors"))
    pitches = SMALL.pitch_count
    of_notes = model.choices[SMALL.ids(Kind.NOTE)].reshape(-1, pitches)
    assert (of_notes == of_notes[:, :1]).all()
    assert len(np.unique(model.choices)) == SMALL.size - len(of_notes) * (pitches - 1)


def form(final_position, *repeats, meter=(4, 4), first_bar=48, bars=8):
    """A form as a summary has it."""
    return [[*meter, first_bar, bars, final_position], *repeats]


def positions(drawn):
    """(B,) where the final chords of drawn forms begin."""
    assert all(len({form.final_position for form in of.values()}) == 1 for of in drawn)
    return np.array([next(iter(of.values())).final_position for of in drawn])


def test_endings_and_keys_are_drawn_as_often_as_they_are_in_the_training_set(tmp_path):
    forms = [form(24)] * 3 + [form(0)] + [form(12, meter=(3, 8))] * 4
    keys = {"major": [0] * 7 + [3] + [0] * 4, "minor": [0] * 9 + [1] + [0] * 2}
    model = load(saved(tmp_path / "m.safetensors", {"forms": forms, "keys": keys}))
    generator = torch.Generator().manual_seed(0)
    drawn = positions(model.draw_forms(2000, generator))
    assert {*drawn.tolist()} == {0, 12, 24}
    assert abs((drawn == 12).mean() - 0.5) < 0.05
    of_meter = positions(model.draw_forms(2000, generator, (4, 4)))
    assert {*of_meter.tolist()} == {0, 24}
    assert abs((of_meter == 24).mean() - 0.75) < 0.05
    assert model.draw_forms(2, generator, (2, 4)) == [{}, {}]
    drawn_keys = Counter(model.draw_keys(2000, generator))
    assert {*drawn_keys} == {Key(7, "major"), Key(9, "minor")}
    assert abs(drawn_keys[Key(7, "major")] / 2000 - 0.75) < 0.05


def test_forms_are_those_of_a_training_piece_with_such_an_end_and_as_many_bars(tmp_path):
    forms = [form(24), form(24, bars=16), form(0, bars=16), form(24, meter=(3, 8))]
    model = load(saved(tmp_path / "m.safetensors", {"forms": forms}))
    short, long, other, _ = model.forms
    generator = torch.Generator().manual_seed(0)

    def drawn(bars):
        return {of[48] for of in model.draw_forms(200, generator, (4, 4), bars)}

    assert drawn(None) == {long, short, other}
    assert drawn(9) == {short, other}
    assert drawn(12) == {long, short, other}
    assert drawn(99) == {long, other}


def test_a_piece_has_the_form_that_was_drawn_if_it_begins_so(tmp_path):
    again = [96, 144, 48, 1]
    forms = [form(24, again), form(0, first_bar=12), form(36, bars=9), form(0, bars=16)]
    model = load(saved(tmp_path / "m.safetensors", {"forms": forms}))
    whole, upbeat, nine, long = model.forms
    rng = np.random.default_rng(0)

    def chosen(drawn, first_bar, bars, meter=(4, 4)):
        found = (model.form_for({48: drawn}, meter, first_bar, bars, rng) for _ in range(20))
        return {*found}

    assert chosen(nine, 48, 8) == {nine}
    assert chosen(upbeat, 12, 8) == {upbeat}
    assert chosen(upbeat, 48, 8) == {whole, nine}  # the upbeat was not written
    assert chosen(long, 48, 8) == {whole, nine}
    assert chosen(whole, 48, 30) == {long}
    assert chosen(whole, 12, 30) == {upbeat}
    assert chosen(whole, 36, 8) == chosen(whole, 48, 8, (3, 8)) == {None}


def test_in_one_voice_only_long_passages_come_again(tmp_path):
    repeats = [48, 96, 48, 1], [192, 384, 192, 1], [384, 552, 192, 0]  # 1, 4 and 3.5 bars
    forms = [form(24, *repeats), form(6, [12, 60, 12, 1], meter=(3, 8))]
    for voices, counts in ((1, [2, 0]), (2, [3, 1])):
        summary = {"forms": forms, "voices": voices}
        model = load(saved(tmp_path / f"{voices}.safetensors", summary))
        assert [len(each.repeats) for each in model.forms] == counts


def test_a_model_that_says_nothing_of_endings_and_keys_draws_none(tmp_path):
    generator = torch.Generator().manual_seed(0)
    no_keys = {"keys": {"major": [0] * 12, "minor": [0] * 12}}  # no piece follows one
    for summary in ({}, no_keys):
        model = load(saved(tmp_path / "m.safetensors", summary))
        assert model.draw_forms(2, generator) == [{}, {}]
        assert model.draw_keys(2, generator) == [None, None]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[[2, 4]", "[[2, 0]", "there is no meter 2/0"),
        ("[[2, 4]", "[2, [2, 4]", "'meters' is missing or wrong"),
        ("[72,", "[17,", "there is no tempo 17"),
        ("[72,", "[NaN,", "'tempos' is missing or wrong"),
        ("[0, 40", "[40, 0", "programs must rise"),
        ("63", "130", "there are no pitches from"),
        ("highest_pitch", "highest", "'highest_pitch' is missing or wrong"),
        ('"grid": {', '"grid": [], "x": {', "'grid' is missing or wrong"),
        ("{", "[" * 10**5, "no JSON object"),
        ("{", "[", "no JSON object"),
    ],
)
def test_a_vocabulary_that_lies_is_refused_in_plain_words(tmp_path, old, new, reason):
    path = saved(tmp_path / "m.safetensors", vocabulary=TRUE.replace(old, new, 1))
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert f"not a vocabulary: {reason}" in str(error.value)
    assert "\n" not in str(error.value)


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
    tmp_path, programs, voices, joining
):
    ensembles = [[80, 0, 2, 4], [30, 0, 1, 2, 3, 4], [2, 5]]
    summary = {"voices": 3, "ensembles": ensembles}
    model = load(saved(tmp_path / "m.safetensors", summary))
    assert model.joining(programs, voices) == joining


def test_a_seed_of_as_many_voices_as_some_training_pieces_is_joined_by_nobody(tmp_path):
    counts = {"voices": 4, "ensembles": [[90, 0, 40, 41, 128], [10, 40]]}
    model = load(saved(tmp_path / "m.safetensors", counts))
    assert model.joining([40], 1) == []
    assert model.joining([40, 41], 2) == [0, 128]
    unknown = load(saved(tmp_path / "n.safetensors", {"voices": 3}))  # as models were before
    assert unknown.joining([40], 1) == [program for program in SMALL.programs if program != 40]
