"""A model file that lies is refused with one line."""

from collections import Counter

import numpy as np
import pytest
import torch

from common.typed_json import to_json
from data.forms import Form
from data.keys import Key
from data.repeats import Repeat
from data.style import Style
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Kind
from generation.model import load
from model.config import DecoderConfig
from model.decoder import Decoder
from model.serialization import ModelFile, ModelFileError, save_model_file
from tests.music import SMALL

TRUE = SMALL.to_json()


def saved(path, style_json=None, vocabulary=TRUE, context=64, **style):
    """Write a model file that says this."""
    torch.manual_seed(0)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 16, "context_length": context}
    decoder = Decoder(DecoderConfig(SMALL.size, **sizes, **SideFeatures(SMALL).shape))
    style_json = style_json or to_json(Style(**style))
    save_model_file(path, ModelFile(decoder, vocabulary, style_json))
    return path


def test_a_context_in_which_no_music_fits_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="shorter than 8 tokens"):
        load(saved(tmp_path / "m.safetensors", context=7))


def test_a_style_that_lies_is_refused_in_one_line(tmp_path):
    path = saved(tmp_path / "m.safetensors", style_json='{"version": 1, "voices": "many"}')
    with pytest.raises(ModelFileError, match=r"m\.safetensors: style\.voices must not be 'many'$"):
        load(path)


def test_all_pitches_of_a_program_are_one_choice_of_rhythm(tmp_path):
    model = load(saved(tmp_path / "m.safetensors"))
    pitches = SMALL.pitch_count
    of_notes = model.choices[SMALL.ids(Kind.NOTE)].reshape(-1, pitches)
    assert (of_notes == of_notes[:, :1]).all()
    assert len(np.unique(model.choices)) == SMALL.size - len(of_notes) * (pitches - 1)


def form(final_position, *repeats, meter=(4, 4), first_bar=48, bars=8):
    """A form of eight bars of 4/4."""
    return Form(meter, first_bar, bars, final_position, repeats)


def positions(drawn):
    """(B,) where the final chords of drawn forms begin."""
    assert all(len({form.final_position for form in of.values()}) == 1 for of in drawn)
    return np.array([next(iter(of.values())).final_position for of in drawn])


def test_endings_and_keys_are_drawn_as_often_as_they_are_in_the_training_set(tmp_path):
    forms = [form(24)] * 3 + [form(0)] + [form(12, meter=(3, 8))] * 4
    keys = {"major": (*[0] * 7, 3, *[0] * 4), "minor": (*[0] * 9, 1, 0, 0)}
    model = load(saved(tmp_path / "m.safetensors", forms=tuple(forms), keys=keys))
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
    model = load(saved(tmp_path / "m.safetensors", forms=tuple(forms)))
    short, long, other, _ = model.style.forms
    generator = torch.Generator().manual_seed(0)

    def drawn(bars):
        return {of[48] for of in model.draw_forms(200, generator, (4, 4), bars)}

    assert drawn(None) == {long, short, other}
    assert drawn(9) == {short, other}
    assert drawn(12) == {long, short, other}
    assert drawn(99) == {long, other}


def test_a_piece_has_the_form_that_was_drawn_if_it_begins_so(tmp_path):
    again = Repeat(96, 144, 48, True)
    forms = [form(24, again), form(0, first_bar=12), form(36, bars=9), form(0, bars=16)]
    model = load(saved(tmp_path / "m.safetensors", forms=tuple(forms)))
    whole, upbeat, nine, long = model.style.forms
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


def test_a_model_that_says_nothing_of_endings_and_keys_draws_none(tmp_path):
    generator = torch.Generator().manual_seed(0)
    no_keys = {"major": (0,) * 12, "minor": (0,) * 12}  # no piece follows one
    for keys in ({}, no_keys):
        model = load(saved(tmp_path / "m.safetensors", keys=keys))
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
