"""Forms of pieces, and the same as JSON."""

import json

import pytest
from hypothesis import given

from data.forms import Form, form_of
from data.repeats import Repeat
from tests.data.test_repeats import TUNE, quarters
from tests.music import GRID, line, piece, scores


def test_a_form_tells_its_bars_and_repeats():
    upbeat = quarters([67, *TUNE, *TUNE, 67], upbeat=True)
    bars, again = len(upbeat.bars), Repeat(108, 204, 96, True)
    assert form_of(upbeat) == Form((4, 4), 12, bars, final_position=0, repeats=(again,))
    assert form_of(piece(line([60, 62]))) == Form((4, 4), 48, 1, final_position=12)


@given(scores(GRID))
def test_json_and_back(score):
    if len(score.notes):
        form = form_of(score)
        assert Form.from_json(json.loads(json.dumps(form.to_json()))) == form


@pytest.mark.parametrize(
    "data",
    [
        *(None, 3, {}, "4/4", [], [[4, 4, 48, 2]], [[4, 4, 48, 2, 0], None]),
        *([[4, 4, 48, 2, 0.5]], [[4, 4, 48, -2, 0]], [[4, 4, 2**31, 2, 0]], [[4, 4, 48, 2, -1]]),
        *([[4, 4, 48, 2, 0], 3], [[4, 4, 48, 2, 0], []], [[4, 4, 48, 2, 0], [0, 1, 2]]),
        *([[4, 4, 48, 2, 0], [9, 9, 1, 1]], [[4, 4, 48, 2, 0], [9, 20, 10, 1]]),
    ],
)
def test_other_json_is_refused(data):
    with pytest.raises(ValueError, match="not a form"):
        Form.from_json(data)
