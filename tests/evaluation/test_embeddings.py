"""Embeddings read as music: golden figures on small tables, and the labels of the projector."""

import math

import numpy as np
import pytest

from data.score import DRUMS, SECONDS
from data.tokens.vocabulary import Kind, Vocabulary
from evaluation.embeddings import COLUMNS, interval_nearness, labels
from tests.models import PIANIST, QUARTET
from tests.music import GRID


def table(vocabulary, notes):
    """Embeddings (V, D) that are random but for the notes', program after program."""
    embeddings = np.random.default_rng(0).normal(size=(vocabulary.size, notes.shape[-1]))
    embeddings[vocabulary.ids(Kind.NOTE)] = notes.reshape(-1, notes.shape[-1])
    return embeddings


def on_a_circle(pitches, semitones):
    """(N, 2): pitches on a circle once round which so many semitones go."""
    angle = 2 * np.pi * np.arange(pitches) / semitones
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize(
    ("around", "interval", "expected"),
    [
        (12, 12, 1 - math.cos(math.pi / 6)),  # pitch classes: an octave is the same place
        (12, 7, 0.0 + math.cos(7 * math.pi / 6) * (1 - math.cos(math.pi / 6))),
        (7, 7, 1 - math.cos(2 * math.pi / 7)),
    ],
)
def test_an_interval_is_near_as_far_as_the_circle_says(around, interval, expected):
    notes = np.stack([on_a_circle(QUARTET.pitch_count, around)] * 4)
    sizes = np.array([1.0, 3.0, 0.5, 2.0])[:, None, None]  # which a cosine does not see
    found = interval_nearness(table(QUARTET, notes * sizes), QUARTET, interval)
    assert found == pytest.approx(expected)


def test_three_notes_by_hand():
    small = Vocabulary(((4, 4),), (80,), (0,), 60, 63, (80,), GRID)
    notes = np.array([[1, 0], [0, 1], [1, 0], [0, -2]], dtype=float)
    # 2 apart: 1, -1; 1 apart: 0, 0, 0; 3 apart: 0
    assert interval_nearness(table(small, notes), small, 2) == 0
    notes = np.array([[1, 0], [1, 1], [1, 0], [0, 1]], dtype=float)
    # 2 apart: 1, 0.7071; 1 apart: 0.7071, 0.7071, 0; 3 apart: 0
    expected = (1 + 0.5**0.5) / 2 - (2 * 0.5**0.5 / 3 + 0) / 2
    assert interval_nearness(table(small, notes), small, 2) == pytest.approx(expected)


def test_without_such_an_interval_there_is_no_figure():
    for programs, highest in (((0,), 66), ((DRUMS,), 99)):
        vocabulary = Vocabulary(((1, 4),), (60,), programs, 60, highest, (80,), SECONDS)
        notes = np.ones((1, vocabulary.pitch_count, 2))
        assert math.isnan(interval_nearness(table(vocabulary, notes), vocabulary, 7))


def test_drums_do_not_count():
    pitched, both = (
        Vocabulary(((4, 4),), (80,), programs, 36, 84, (80,), GRID)
        for programs in ((0,), (0, DRUMS))
    )
    circle = on_a_circle(49, 12)
    noise = np.random.default_rng(1).normal(size=(49, 2))
    alone = interval_nearness(table(pitched, circle[None]), pitched, 12)
    assert interval_nearness(table(both, np.stack([circle, noise])), both, 12) == alone


@pytest.mark.parametrize("vocabulary", [QUARTET, PIANIST])
def test_every_id_has_a_label_in_one_line(vocabulary):
    rows = labels(vocabulary)
    assert len(rows) == vocabulary.size
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert not any("\t" in cell or "\n" in cell or not cell for row in rows for cell in row)
    middle_c = vocabulary.first(Kind.NOTE) + 60 - vocabulary.lowest_pitch
    assert rows[middle_c][1:4] == ("note", "C", "4")
    assert rows[0] == ("Pad", "pad", "-", "-", "-")
