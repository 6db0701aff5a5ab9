"""Pictures: what is in the Score is seen, at its place."""

import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from data.score import BAR, DRUMS, NOTE, SECONDS, canonical
from rendering.piano_roll import MAX_NATS, draw_piano_roll, draw_surprise
from tests.music import BOTH, piece, scale, scores

VERMILION, BLUE, SEED_GROUND = "#D55E00", "#0072B2", "#F5ECD3"


def pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].astype(int)


def share_of(color, image):
    """Share of the picture's pixels that have the color."""
    distance = np.abs(image - np.rint(np.array(to_rgb(color)) * 255)).max(axis=2)
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
    without, half, whole = (
        pixels(draw_piano_roll(score, np.ones(steps, dtype=bool))) for steps in (0, 192, 384)
    )
    assert share_of(SEED_GROUND, without) == 0
    assert share_of(SEED_GROUND, whole) > 1.7 * share_of(SEED_GROUND, half) > 0.2
    assert share_of(VERMILION, without) > 1.7 * share_of(VERMILION, half) > 0.005
    said = words(draw_piano_roll(score, np.ones(192, dtype=bool), title="A scale"))
    assert {"A scale", "seed", "Acoustic Grand Piano", "4/4", "the model goes on →"} <= set(said)
    assert "seed" not in words(draw_piano_roll(score))


def test_a_gap_that_was_rewritten_is_seen():
    score = piece(scale(32))  # eight bars
    is_closed, is_given = np.ones(384, dtype=bool), np.ones(32, dtype=bool)
    is_closed[192:288], is_given[16:24] = False, False
    figure = draw_piano_roll(score, is_closed, is_given)
    image = pixels(figure)
    whole = pixels(draw_piano_roll(score, np.ones(384, dtype=bool)))
    share = share_of(SEED_GROUND, image) / share_of(SEED_GROUND, whole)
    assert share == pytest.approx(3 / 4, rel=0.1)
    assert {"kept", "the model goes on →"} <= set(words(figure))
    no_ground = draw_piano_roll(score, np.zeros(384, dtype=bool), is_given)
    assert share_of(SEED_GROUND, pixels(no_ground)) == 0
    assert share_of(VERMILION, pixels(no_ground)) == pytest.approx(
        share_of(VERMILION, image), rel=0.1
    )


@pytest.mark.parametrize("count", [1, 4, 12, 64])
def test_every_bar_is_numbered_once(count):
    figure = draw_piano_roll(piece(scale(4 * count)))
    assert bar_numbers(figure) == list(range(1, count + 1))


def test_an_anacrusis_is_bar_0():
    figure = draw_piano_roll(piece(scale(10), bars=[(4, 4, 12), (4, 4, 48)]))
    assert bar_numbers(figure) == [0, 1, 2, 3]


def test_a_performance_is_drawn_by_the_second():
    notes = np.array([(100 * i + 50, 40, 60 + i % 12, 80, 0) for i in range(20)], dtype=NOTE)
    figure = draw_piano_roll(canonical(notes, np.empty(0, BAR), [], SECONDS)[0])
    labels = [text.get_text() for axes in figure.axes for text in axes.get_xticklabels()]
    assert labels == [f"{second} s" for second in range(20)]
    assert not any("/" in word for word in words(figure))


def test_meters_are_marked_where_they_change():
    bars = [(4, 4, 48), (4, 4, 48), (3, 4, 36), (3, 4, 36), (6, 8, 36)]
    said = words(draw_piano_roll(piece(scale(16), bars)))
    assert [word for word in said if "/" in word] == ["4/4", "3/4", "6/8"]


def test_drums_have_rows_by_name():
    said = words(draw_piano_roll(piece([(0, 3, 38, 80, DRUMS), (0, 48, 38, 80, 0)])))
    assert {"Acoustic Snare", "Drums", "C2"} <= set(said)


@settings(max_examples=10, deadline=None)
@given(scores(*BOTH))
def test_any_score_can_be_drawn(score):
    pixels(draw_piano_roll(score, np.ones(50, dtype=bool), title=r"Any $\way$"))
    assert pyplot.get_fignums() == []


def test_a_note_held_for_an_hour_does_not_squeeze_the_others():
    image = pixels(draw_piano_roll(piece([*scale(8), (90, 10**6, 72, 80, 41)])))
    assert share_of(VERMILION, image) > 0.01


def test_surprising_notes_are_dark_and_bear_their_numbers():
    score = piece(scale(16), bars=[(4, 4, 48)] * 4)
    nats = np.zeros(16)
    calm = pixels(draw_surprise(score, nats, []))
    nats[[3, 9]] = MAX_NATS, 3 * MAX_NATS  # from there on they are all as dark
    figure = draw_surprise(score, nats, [(9, "bar 3: A4"), (3, "bar 1: $x$")], title="A $scale$")
    darkest = "#3D0026"
    assert share_of(darkest, pixels(figure)) > 2 * share_of(darkest, calm)
    assert {"1", "2", "bar 3: A4", "bar 1: $x$", "A $scale$"} <= set(words(figure))
    roll = figure.axes[0]
    assert [text.get_position()[0] for text in roll.texts if text.get_text() in "12"] == [114, 42]


def test_notes_that_were_not_scored_are_told():
    nats = np.array([1.0, np.nan, 2.0, 3.0])
    assert any("not scored" in word for word in words(draw_surprise(piece(scale(4)), nats, [])))
    without = words(draw_surprise(piece(scale(4)), np.ones(4), []))
    assert not any("not scored" in word for word in without)
