"""Pictures of attention: each weight at its place, each token by its name."""

import numpy as np

from data.corpus.survey import Survey
from data.score import BAR, NOTE, SECONDS, canonical
from data.tokens.tokenizer import encode
from rendering.attention_map import draw_attention, draw_heads, token_labels
from tests.music import GRID, piece
from tests.rendering.test_piano_roll import pixels


def test_attention_has_a_panel_a_layer_a_row_a_head_and_the_tokens_at_its_edges():
    maps = np.zeros((2, 3, 4, 4))
    maps[1, 2, 3, 0] = 1.0  # the last layer's last head: the last token looks at the first
    maps[0, 0, 1, 0] = 0.25
    figure = draw_attention(maps, ["Bar 16", "@0", "C4", "1/4"], ["layer 1", "layer 2"])
    canvas = pixels(figure)
    panels = np.array(figure.axes, dtype=object).reshape(2, 3)  # by layer, then head

    def shade(layer, head, query, key):
        """How dark the middle of a cell is, 0 to 1."""
        x, y = panels[layer, head].transData.transform((key, query))
        return 1 - canvas[canvas.shape[0] - 1 - int(y), int(x)].mean() / 255

    assert shade(1, 2, 3, 0) > 0.6
    assert 0.2 < shade(0, 0, 1, 0) < shade(1, 2, 3, 0)
    assert shade(1, 2, 0, 3) < 0.1
    assert [axes.get_title() for axes in panels[:, 0]] == ["layer 1", "layer 2"]
    tokens = ["Bar 16", "@0", "C4", "1/4"]
    for (layer, head), panel in np.ndenumerate(panels):  # at the left edge, and at the floor
        texts = [text for text in panel.texts if text.get_text() in tokens]
        down, across = ([t for t in texts if t.get_rotation() == angle] for angle in (0, 90))
        assert [text.get_text() for text in down] == tokens * (layer == 0)
        assert [text.get_position()[1] for text in down] == list(range(4)) * (layer == 0)
        assert [text.get_text() for text in across] == tokens * (head == 2)
        assert [text.get_position()[0] for text in across] == list(range(4)) * (head == 2)
    # queries go down: the first row is on top
    assert panels[0, 0].transData.transform((0, 0))[1] > panels[0, 0].transData.transform((0, 3))[1]


def test_the_heads_of_a_layer_stand_two_a_row_and_are_as_wide_as_a_card():
    maps = np.zeros((3, 4, 4))
    maps[2, 3, 0] = 1.0
    figure = draw_heads(maps, ["Bar 16", "@0", "C4", "1/4"], "layer 2")
    canvas = pixels(figure)
    assert canvas.shape[1] <= 360
    x, y = figure.axes[2].transData.transform((0, 3))
    assert canvas[canvas.shape[0] - 1 - int(y), int(x)].mean() < 0.4 * 255
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert [text for text in said if text.startswith("head")] == ["head 1", "head 2", "head 3"]
    assert said.count("Bar 16") == 3  # at the left of both rows, and below the last


def test_tokens_are_labeled_with_what_they_say_and_bars_with_their_numbers():
    score = piece([(0, 12, 60, 80, 0), (48, 24, 64, 80, 0)], bars=((4, 4, 48), (4, 4, 48)))
    survey = Survey()
    survey.add(score)
    vocabulary = survey.vocabulary(GRID)
    ids = encode(score, vocabulary)
    labels = token_labels(ids, vocabulary, first_bar=15)
    assert labels == [
        *("Start", "Bar 15", "Tempo 120", "@0", "C4", "1/4"),
        *("Bar 16", "@0", "E4", "1/2", "End"),
    ]


def test_an_upbeat_is_bar_0_and_seconds_are_counted_from_0():
    upbeat = piece([(0, 12, 60, 80, 0), (12, 12, 60, 80, 0)], bars=((4, 4, 12), (4, 4, 48)))
    notes = np.array([(0, 50, 60, 80, 0), (150, 50, 60, 80, 0)], dtype=NOTE)
    performance = canonical(notes, np.empty(0, BAR), [], SECONDS)[0]
    for score, labels in ((upbeat, ["Bar 0", "Bar 1"]), (performance, ["0 s", "1 s"])):
        survey = Survey()
        survey.add(score)
        vocabulary = survey.vocabulary(score.grid)
        told = token_labels(encode(score, vocabulary), vocabulary)
        assert [label for label in told if label in labels] == labels
