"""Meters that no training piece has are refused, or told of."""

import pytest

from data.forms import Form
from generation.compose import compose
from generation.constraints import ConstraintError, Constraints
from generation.length import Length
from generation.model import load
from generation.request import Request
from generation.seeds import continued
from tests import music
from tests.models import QUARTET, untrained

WALTZ = Constraints(time_signature=(3, 4))


def model_of(folder, *meters):
    forms = tuple(Form(meter, 12 * meter[0], 2, final_position=0) for meter in meters)
    return load(untrained(folder / "model.safetensors", QUARTET, forms=forms))


def seed_in(meter):
    steps = 12 * meter[0]
    rows = music.line([60, 64, 67], program=40)
    return continued(music.piece(rows, [(*meter, steps)], tempo=80), QUARTET)


def test_new_bars_are_refused_in_a_meter_that_a_model_of_another_has_never_had(tmp_path):
    model = model_of(tmp_path, (4, 4), (4, 4))
    with pytest.raises(ConstraintError, match="in 4/4 alone"):
        compose(model, Request(None, Length(bars=2), WALTZ))
    assert compose(model, Request(None, Length(bars=2), Constraints(time_signature=(4, 4))))


@pytest.mark.parametrize(
    ("meters", "seed", "constraints", "said"),
    [
        (((4, 4),), (3, 4), Constraints(), ["no piece in 3/4, but in 4/4:"]),
        (((4, 4), (2, 4)), None, WALTZ, ["no piece in 3/4, but in 4/4, 2/4:"]),
        (((4, 4), (3, 4)), (3, 4), Constraints(), []),
        (((4, 4),), (4, 4), Constraints(), []),
        (((4, 4),), None, Constraints(), []),
        ((), (3, 4), Constraints(), []),
    ],
)
def test_a_meter_that_no_training_piece_has_is_told_of(tmp_path, meters, seed, constraints, said):
    request = Request(seed and seed_in(seed), Length(bars=2), constraints)
    told = request.strange_meters(model_of(tmp_path, *meters))
    assert len(told) == len(said)
    assert all(part in clause for part, clause in zip(said, told, strict=True))


@pytest.mark.parametrize("first", [12, 36])
def test_a_new_piece_has_an_upbeat_only_if_training_pieces_have(tmp_path, first):
    forms = (Form((3, 4), first, 2, final_position=0),)
    model = load(untrained(tmp_path / "model.safetensors", QUARTET, forms=forms))
    asked = Constraints(regular_bars=True)
    pieces = compose(model, Request(None, Length(bars=2), asked, samples=24))
    assert any(piece.score.bars["length"][0] < 36 for piece in pieces) == (first < 36)


def test_a_new_piece_begins_in_a_meter_of_the_training_pieces(tmp_path):
    for meters, known in (((3, 4),), {(3, 4)}), (((5, 4),), {(3, 4), (4, 4)}):
        pieces = compose(model_of(tmp_path, *meters), Request(None, Length(bars=1), samples=12))
        first = {tuple(piece.score.bars[["numerator", "denominator"]][0]) for piece in pieces}
        assert first == known
