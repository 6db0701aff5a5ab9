"""Pictures as files."""

import pytest

from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes, write_png
from tests.music import piece, scale


def test_a_picture_is_written_whole_or_not_at_all(tmp_path):
    write_png(draw_piano_roll(piece(scale(8))).svg, tmp_path / "new" / "roll.png")
    assert (tmp_path / "new" / "roll.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_png(draw_piano_roll(piece(scale(8))).svg, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "taken"]


def test_bytes_are_those_of_a_png_file():
    assert png_bytes(draw_piano_roll(piece(scale(8))).svg).startswith(b"\x89PNG\r\n\x1a\n")
