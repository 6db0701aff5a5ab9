"""Sets of pieces beside each other: what stands in the result, and how it is told."""

import json
import math

import numpy as np
import pytest

from common.files import write_json
from evaluation.comparison import DRAWS, HISTOGRAMS, MEASURES, compare
from evaluation.distances import overlap_of_histograms, overlap_of_values
from tests.evaluation.test_metrics import BEAT, bars
from tests.folders import tune
from tests.music import EMPTY, piece

TUNES = [tune(seed, bars=3 + seed % 7) for seed in range(24)]


@pytest.fixture(scope="module")
def result():
    """Eight tunes beside six, with what has no pitch and what has nothing among the eight."""
    generated = [*TUNES[:6], piece(BEAT, bars(7)), EMPTY]
    return compare(generated, TUNES[6:12], TUNES[12:], seed=3)


def test_every_measure_stands_there_with_each_pieces_value(result):
    assert result.pieces == {"generated": 8, "held_out": 6, "train": 12}
    of_four = ["parallel_fifths", "parallel_octaves", "voice_crossing", "out_of_range"]
    names = [name for name in (*MEASURES, *HISTOGRAMS) if name not in of_four]
    assert list(result.rows) == names  # no tune has four parts
    row = result.rows["note_density"]
    values = [MEASURES["note_density"].of(score) for score in TUNES[6:12]]
    assert row.held_out.values == values
    assert row.held_out.mean == pytest.approx(np.mean(values))
    assert row.held_out.sd == pytest.approx(np.std(values, ddof=1))


def test_what_is_not_defined_is_nan_and_in_no_mean(result):
    row = result.rows["pitch_class_entropy"].generated
    defined = [MEASURES["pitch_class_entropy"].of(score) for score in TUNES[:6]]
    assert row.undefined == 2
    assert np.isnan(row.values[6:]).all()
    assert row.mean == pytest.approx(np.mean(defined))


def test_what_most_held_out_pieces_have_not_is_left_out():
    drums = [piece(BEAT, bars(7)), EMPTY]
    result = compare(TUNES[:6], [TUNES[6], *drums], TUNES[12:])
    assert {*HISTOGRAMS} < {*result.rows}
    assert "pitch_class_entropy" not in result.rows
    result = compare(TUNES[:6], drums, TUNES[12:])
    assert not {*HISTOGRAMS} & {*result.rows}
    result = compare(drums, TUNES[6:12], TUNES[12:])  # there it would mean something
    row = result.rows["pitch_class_entropy"]
    assert row.generated.undefined == 2
    assert math.isnan(row.generated.mean)
    assert math.isnan(row.overlap)
    assert not math.isnan(row.real_overlap.mean)


def test_overlaps_are_of_what_is_defined(result):
    row = result.rows["pitch_class_entropy"]
    values = [np.array(getattr(row, name).values) for name in ("generated", "held_out")]
    assert row.overlap == overlap_of_values(values[0][:6], values[1])
    row = result.rows["durations"]
    assert row.bins == [0.5, 1.0, 1.5]  # beats
    assert sum(row.generated.values) == pytest.approx(1)
    shares = [np.array(getattr(row, name).values) for name in ("generated", "held_out")]
    assert row.overlap == pytest.approx(overlap_of_histograms(*shares))
    assert row.held_out.mean == pytest.approx(np.dot(row.bins, shares[1]))


def test_real_pieces_stand_beside_by_draws_of_as_many(result):
    again = compare(TUNES[:8], TUNES[6:12], TUNES[12:], seed=3)
    other = compare(TUNES[:8], TUNES[6:12], TUNES[12:], seed=4)
    real = [r.rows["pitch_range"].real_overlap for r in (result, again, other)]
    assert real[0] == real[1]  # whatever was generated
    assert real[0] != real[2]
    train = np.array([MEASURES["pitch_range"].of(score) for score in TUNES[12:]])
    held_out = np.array([MEASURES["pitch_range"].of(score) for score in TUNES[6:12]])
    draws = np.random.default_rng(3).integers(12, size=(DRAWS, 8))
    overlaps = [overlap_of_values(train[draw], held_out) for draw in draws]
    assert real[0].mean == pytest.approx(np.mean(overlaps))
    assert real[0].least == pytest.approx(min(overlaps))


def test_as_json_it_has_null_for_nan(result, tmp_path):
    path = tmp_path / "music.json"
    write_json({"music": result}, path)
    found = json.loads(path.read_text(), parse_constant=pytest.fail)["music"]
    assert found["rows"]["pitch_class_entropy"]["generated"]["values"][6:] == [None, None]
    whole, read = result.rows["note_density"], found["rows"]["note_density"]
    assert read["held_out"] == vars(whole.held_out)
    assert [each.name for each in tmp_path.iterdir()] == ["music.json"]
