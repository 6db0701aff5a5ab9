"""Performances of scores: the notes are the score's, and a piano can play them."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.performed import PEDAL, perform
from tests.models import four_parts


@pytest.mark.parametrize("seed", range(4))
def test_a_performance_has_the_notes_of_the_score_and_strikes_no_key_that_is_down(seed):
    score = four_parts(16)
    (piano,) = perform(score, np.random.default_rng(seed)).instruments
    assert Counter(note.pitch for note in piano.notes) == Counter(score.notes["pitch"].tolist())
    assert all(0 <= note.start < note.end and 10 <= note.velocity <= 120 for note in piano.notes)
    for pitch in {note.pitch for note in piano.notes}:
        own = sorted((n for n in piano.notes if n.pitch == pitch), key=lambda note: note.start)
        assert all(first.end <= second.start for first, second in pairwise(own))
    times = [change.time for change in piano.control_changes if change.number == PEDAL]
    assert times == sorted(times)


def test_the_beat_is_kept_on_the_whole():
    score = four_parts(16)
    (piano,) = perform(score, np.random.default_rng(0)).instruments
    onsets = np.sort([note.start for note in piano.notes])
    written = score.notes["onset"] / score.grid.steps_per_beat
    assert np.corrcoef(onsets, written)[0, 1] > 0.999
    assert len(np.unique(onsets)) > len(np.unique(written))  # but not to the millisecond
