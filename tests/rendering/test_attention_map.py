"""Pictures of attention: each weight at its place, each token by its name."""

import numpy as np

from data.score import SECONDS
from data.tokens.tokenizer import encode
from rendering.attention_map import draw_attention, token_labels
from tests.music import piece, vocabulary_for
from tests.rendering.test_piano_roll import pixels, texts


def test_attention_has_a_panel_a_layer_a_row_a_head_and_the_tokens_at_its_edges():
    maps = np.zeros((2, 3, 4, 4))
    maps[1, 2, 3, 0] = 1.0  # the last layer's last head: the last token looks at the first
    maps[0, 0, 1, 0] = 0.25
    tokens = ["Bar 16", "@0", "C4", "1/4"]
    svg = draw_attention(maps, tokens, ["layer 1", "layer 2"])
    canvas = pixels(svg)
    side, gap, left, top = 60, 14, 66, 36  # pixels: of a token, between panels, and before them

    def shade(layer, head, query, key):
        """How dark the middle of a cell is, 0 to 1."""
        x = left + layer * (4 * side + gap) + (key + 0.5) * side
        y = top + head * (4 * side + gap) + (query + 0.5) * side
        return 1 - canvas[int(y), int(x)].mean() / 255

    assert shade(1, 2, 3, 0) > 0.6
    assert 0.2 < shade(0, 0, 1, 0) < shade(1, 2, 3, 0)
    assert shade(1, 2, 0, 3) < 0.1
    said = texts(svg)
    assert [text for text, _ in said if text.startswith("layer")] == ["layer 1", "layer 2"]
    # at the left of the first layer's heads, and below the last head of each layer
    beside, below = (
        [text for text, style in said if text in tokens and ("transform" in style) == is_turned]
        for is_turned in (False, True)
    )
    assert (beside, below) == (3 * tokens, 2 * tokens)


def test_lines_are_drawn_where_bars_and_seconds_begin_and_nowhere_else():
    lines = [
        draw_attention(np.zeros((1, 1, 2, 2)), [label, "End"], ["layer 1"]).count('opacity="0.6"')
        for label in ("@0", "C4 soprano", "Bar 2", "7 s", "0.25s")
    ]
    assert lines == [lines[0], lines[0], lines[2], lines[2], lines[0]]
    assert lines[0] < lines[2]


def test_tokens_are_labeled_with_what_they_say_and_bars_with_their_numbers():
    score = piece([(0, 12, 60, 80, 0), (48, 24, 64, 80, 0)], bars=((4, 4, 48), (4, 4, 48)))
    vocabulary = vocabulary_for(score)
    ids = encode(score, vocabulary)
    labels = token_labels(ids, vocabulary)
    assert labels == [
        *("Start", "Bar 1", "Tempo 120", "@0", "C4", "1/4"),
        *("Bar 2", "@0", "E4", "1/2", "End"),
    ]


def test_an_upbeat_is_bar_0_and_seconds_are_counted_from_0():
    upbeat = piece([(0, 12, 60, 80, 0), (12, 12, 60, 80, 0)], bars=((4, 4, 12), (4, 4, 48)))
    performance = piece([(0, 50, 60, 80, 0), (150, 50, 60, 80, 0)], grid=SECONDS)
    for score, labels in ((upbeat, ["Bar 0", "Bar 1"]), (performance, ["0 s", "1 s"])):
        vocabulary = vocabulary_for(score)
        told = token_labels(encode(score, vocabulary), vocabulary)
        assert [label for label in told if label in labels] == labels
