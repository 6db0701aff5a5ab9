"""Pictures: what is in the Score is seen, at its place."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.image import imread

from data.chords import Span, parse_chord
from data.keys import parse_key
from data.score import DRUMS, SECONDS
from rendering.piano_roll import MAX_NATS, draw_piano_roll, draw_surprise
from rendering.png import png_bytes
from tests.music import BOTH, piece, scale, scores

VERMILION, BLUE, SEED_GROUND = "#D55E00", "#0072B2", "#F5ECD3"


def pixels(svg):
    """The pixels of a picture, (H, W, 3), 0 to 255."""
    image = imread(io.BytesIO(png_bytes(svg)), format="png")
    return np.rint(255 * image[:, :, :3]).astype(int)


def share_of(color, roll):
    """Share of the picture's pixels that have the color."""
    distance = np.abs(pixels(roll.svg) - [*bytes.fromhex(color[1:])]).max(axis=2)
    return float((distance <= 2).mean())


def texts(svg):
    """What is written in a picture, each text with its attributes."""
    return [
        (element.text, element.attrib)
        for element in ElementTree.fromstring(svg).iter()
        if element.text and element.text.strip()
    ]


def words(roll):
    return [text for text, _ in texts(roll.svg)]


def bar_numbers(roll):
    below = {round(place.bottom * roll.height) + 15 for place in roll.systems}
    return [text for text, style in texts(roll.svg) if float(style.get("y", 0)) in below]


def test_both_programs_of_a_unison_are_seen():
    unison = draw_piano_roll(piece([(0, 48, 60, 80, 40), (0, 48, 60, 80, 41)]))
    violin, viola = share_of(VERMILION, unison), share_of(BLUE, unison)
    assert violin > 0.005
    assert violin == pytest.approx(viola, rel=0.3)


def test_a_soft_note_is_less_high_than_a_loud_one():
    even, played = (
        draw_piano_roll(piece([(0, 48, 60, 124, 40), (48, 48, 62, velocity, 41)]))
        for velocity in (124, 40)
    )
    assert share_of(BLUE, even) == pytest.approx(share_of(VERMILION, even), rel=0.1)
    assert share_of(BLUE, played) < 0.75 * share_of(VERMILION, played)


def test_chords_are_named_where_they_begin_in_the_spelling_of_their_key():
    score = piece(scale(32))
    spans = [Span(0, 48, parse_chord("Ebm")), Span(48, 384, parse_chord("B7/D#"))]
    roll = draw_piano_roll(score, chords=spans, key=parse_key("E"))
    place = {text: style.get("x") for text, style in texts(roll.svg)}
    assert place["D#m"] == place["vii"] == "54.0"
    assert float(place["B7/D#"]) == float(place["V65"]) > 54
    assert roll.height > draw_piano_roll(score).height
    no_room = draw_piano_roll(score, chords=[Span(0, 2, parse_chord("Ebm"))])
    assert "Ebm" not in words(no_room)


def test_seed_and_continuation_differ_at_a_glance():
    score = piece(scale(32))
    without, half, whole = (
        draw_piano_roll(score, np.ones(steps, dtype=bool)) for steps in (0, 192, 384)
    )
    assert share_of(SEED_GROUND, without) == 0
    assert share_of(SEED_GROUND, whole) > 1.7 * share_of(SEED_GROUND, half) > 0.2
    assert share_of(VERMILION, without) > 1.7 * share_of(VERMILION, half) > 0.005
    said = words(draw_piano_roll(score, np.ones(192, dtype=bool), title="A scale"))
    assert {"A scale", "kept", "Acoustic Grand Piano", "4/4", "the model goes on →"} <= set(said)
    assert "kept" not in words(draw_piano_roll(score))


SECOND_BY_SECOND = [(100 * i + 50, 40, 60 + i % 12, 80, 0) for i in range(20)]


@pytest.mark.parametrize(
    ("music", "numbers"),
    [
        *((piece(scale(4 * n)), [*map(str, range(1, n + 1))]) for n in (1, 4, 12, 64)),
        (piece(scale(10), bars=[(4, 4, 12), (4, 4, 48)]), ["0", "1", "2", "3"]),  # an upbeat
        (piece(SECOND_BY_SECOND, grid=SECONDS), [f"{second} s" for second in range(20)]),
    ],
)
def test_every_bar_or_second_is_numbered_once(music, numbers):
    roll = draw_piano_roll(music)
    assert bar_numbers(roll) == numbers
    assert any("/" in word for word in words(roll)) == music.grid.has_meter


def test_meters_are_marked_where_they_change():
    bars = [(4, 4, 48), (4, 4, 48), (3, 4, 36), (3, 4, 36), (6, 8, 36)]
    said = words(draw_piano_roll(piece(scale(16), bars)))
    assert [word for word in said if "/" in word] == ["4/4", "3/4", "6/8"]


def test_drums_have_rows_by_name():
    rows = [(0, 3, 38, 80, DRUMS), (0, 48, 38, 80, 0), (12, 3, 22, 80, DRUMS)]
    said = words(draw_piano_roll(piece(rows)))
    assert {"Acoustic Snare", "Closed Hi Hat (edge)", "Drums", "C2"} <= set(said)


@settings(max_examples=10, deadline=None)
@given(scores(*BOTH))
def test_any_score_can_be_drawn(score):
    roll = draw_piano_roll(score, np.ones(50, dtype=bool), title=r"Any <&> $\way$")
    assert pixels(roll.svg).shape == (roll.height, roll.width, 3)
    assert r"Any <&> $\way$" in words(roll)


def test_a_note_held_for_an_hour_does_not_squeeze_the_others():
    roll = draw_piano_roll(piece([*scale(8), (90, 10**6, 72, 80, 41)]))
    assert share_of(VERMILION, roll) > 0.01


def test_surprising_notes_are_dark_and_bear_their_numbers():
    score = piece(scale(16), bars=[(4, 4, 48)] * 4)
    nats = np.zeros(16)
    calm = draw_surprise(score, nats, [])
    nats[[3, 9]] = MAX_NATS, 3 * MAX_NATS  # from there on they are all as dark
    roll = draw_surprise(score, nats, [(9, "bar 3: A4"), (3, "bar 1: $x$")], title="A $scale$")
    darkest = "#3D0026"
    assert share_of(darkest, roll) > 2 * share_of(darkest, calm)
    assert {"1", "2", "bar 3: A4", "bar 1: $x$", "A $scale$"} <= set(words(roll))
    marks = [float(style["x"]) for text, style in texts(roll.svg) if "stroke" in style]
    first, second = (beat * (1560 - 54 - 18) / 16 + 54 for beat in (9.5, 3.5))
    assert marks == pytest.approx([first, second], abs=0.1)


def test_text_is_drawn_where_the_machine_has_no_fonts():
    with_title = draw_piano_roll(piece(scale(4)), title="MMMM")
    without = draw_piano_roll(piece(scale(4)), title="    ")
    assert share_of("#1d2329", with_title) > 1.2 * share_of("#1d2329", without) > 0


def test_notes_that_were_not_scored_are_told():
    nats = np.array([1.0, np.nan, 2.0, 3.0])
    assert any("not scored" in word for word in words(draw_surprise(piece(scale(4)), nats, [])))
    without = words(draw_surprise(piece(scale(4)), np.ones(4), []))
    assert not any("not scored" in word for word in without)


def test_a_gap_that_was_rewritten_is_seen():
    score = piece(scale(32))  # eight bars
    is_closed, is_given = np.ones(384, dtype=bool), np.ones(32, dtype=bool)
    is_closed[192:288], is_given[16:24] = False, False
    roll = draw_piano_roll(score, is_closed, is_given)
    whole = draw_piano_roll(score, np.ones(384, dtype=bool))
    share = share_of(SEED_GROUND, roll) / share_of(SEED_GROUND, whole)
    assert share == pytest.approx(3 / 4, rel=0.1)
    assert {"kept", "the model goes on →"} <= set(words(roll))
    no_ground = draw_piano_roll(score, np.zeros(384, dtype=bool), is_given)
    assert share_of(SEED_GROUND, no_ground) == 0
    assert share_of(VERMILION, no_ground) == pytest.approx(share_of(VERMILION, roll), rel=0.1)
