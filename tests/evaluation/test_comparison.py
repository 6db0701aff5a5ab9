"""Sets of pieces beside each other: what stands in the result, and how it is told."""

import json
import math

import numpy as np
import pytest

from common.files import write_json
from data.statistics import NAMES, Music, statistics
from evaluation.comparison import PieceSet, RealPieces, area_alone, compare, distance, statistics_of
from evaluation.tables import LINE_WIDTH, statistics_lines
from tests.folders import tune
from tests.music import EMPTY, piece

TUNES = [tune(seed, bars=3 + seed % 7) for seed in range(24)]
DRUMS = piece([(0, 12, 36, 80, 128), (12, 12, 38, 80, 128), (24, 12, 36, 80, 128)])


def compared(generated, held_out):
    """Pieces beside others, and beside the training pieces."""
    return compare(generated, RealPieces(PieceSet.of(held_out), PieceSet.of(TUNES[12:])), seed=3)


@pytest.fixture(scope="module")
def result():
    """Eight tunes beside six, with what has no pitch and what has nothing among the eight."""
    return compared([*TUNES[:6], DRUMS, EMPTY], TUNES[6:12])


def test_every_statistic_stands_there_and_those_that_tell_most_come_first(result):
    assert result.pieces == {"generated": 8, "held_out": 6, "train": 12}
    known = ~np.isnan(statistics_of(TUNES[6:12])).all(axis=0)
    assert {row.name for row in result.rows} <= {n for n, k in zip(NAMES, known, strict=True) if k}
    areas = [row.area for row in result.rows if not math.isnan(row.area)]
    assert areas == sorted(areas, reverse=True)
    (row,) = (row for row in result.rows if row.name == "pace: notes a second")
    values = [statistics(Music(score))[NAMES.index(row.name)] for score in TUNES[6:12]]
    assert row.held_out.mean == pytest.approx(np.mean(values))
    assert row.held_out.sd == pytest.approx(np.std(values, ddof=1))


def test_what_is_not_defined_is_in_no_mean(result):
    (row,) = (row for row in result.rows if row.name == "keys: clearness")
    own = statistics_of(TUNES[:6])[:, NAMES.index(row.name)]
    assert row.generated.undefined == 2
    assert row.generated.mean == pytest.approx(own.mean())


def test_what_most_held_out_pieces_have_not_is_left_out():
    result = compared(TUNES[:6], [TUNES[6], DRUMS, DRUMS])
    groups = {row.name.split(":")[0] for row in result.rows}
    assert groups == {"repetition", "pace"}


@pytest.mark.parametrize(
    ("ours", "area"),
    [([1, 2, 3], 0.5), ([4, 5], 1), ([0], 1), ([1, 1, 2], 13 / 18), ([np.nan], None)],
)
def test_the_area_of_one_statistic_by_hand(ours, area):
    found = area_alone(np.array(ours, dtype=float), np.array([1.0, 2.0, 3.0, np.nan]))
    assert math.isnan(found) if area is None else found == pytest.approx(area)


def test_pieces_are_the_farther_from_real_ones_the_more_of_them_are_unlike(result):
    real, others = statistics_of(TUNES[:12]), statistics_of(TUNES[12:])
    far = statistics_of([piece([(0, 48, 60, 80, 0)])] * 12)
    mixed = np.concatenate([others[:6], far[:6]])
    assert distance(real, others) < distance(real, mixed) < distance(real, far)
    assert math.isnan(distance(real * np.nan, real))


def test_lines_fit_and_json_has_null_for_nan(result, tmp_path):
    lines = list(statistics_lines(result))
    assert max(map(len, lines)) <= LINE_WIDTH
    assert "with an area under the ROC curve of " in " ".join(lines)
    write_json({"music": result}, tmp_path / "music.json")
    text = (tmp_path / "music.json").read_text()
    found = json.loads(text, parse_constant=pytest.fail)["music"]
    assert [row["name"] for row in found["rows"]] == [row.name for row in result.rows]


def test_few_pieces_have_no_areas_by_all_statistics_and_that_is_said():
    lines = " ".join(statistics_lines(compared(TUNES[:4], TUNES[6:12])))
    assert "no areas by all statistics: a set has fewer than 5 pieces" in lines
