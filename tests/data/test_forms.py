"""Forms of pieces."""

from data.forms import Form, form_of
from data.repeats import Repeat
from data.score import SECONDS
from tests.data.test_repeats import TUNE, quarters
from tests.music import line, piece


def test_a_form_tells_its_bars_and_repeats():
    upbeat = quarters([67, *TUNE, *TUNE, 67], upbeat=True)
    bars, again = len(upbeat.bars), Repeat(108, 204, 96, True)
    assert form_of(upbeat) == Form((4, 4), 12, bars, final_position=0, repeats=(again,))
    assert form_of(piece(line([60, 62]))) == Form((4, 4), 48, 1, final_position=12)
    rows = [(25 * n, 20, pitch, 80, 0) for n, pitch in enumerate([*TUNE, *TUNE])]
    assert form_of(piece(rows, grid=SECONDS)).repeats == ()  # there are no bars
