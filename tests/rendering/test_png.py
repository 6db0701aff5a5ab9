"""Pictures as files."""

from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes
from tests.music import piece, scale


def test_bytes_are_those_of_a_png_file():
    assert png_bytes(draw_piano_roll(piece(scale(8))).svg).startswith(b"\x89PNG\r\n\x1a\n")
