"""NoteStream: the notes that come id by id are those of the whole piece."""

import numpy as np
import pytest
from hypothesis import given

from data.tokens.cursor import advance_rows, at_start
from data.tokens.tokenizer import decode, encode
from generation.note_stream import NoteStream, notes_of
from tests.music import BOTH, SMALL, random_walks, scores, vocabulary_for


def heard(ids, vocabulary):
    at, notes = at_start(vocabulary, 1), []
    stream = NoteStream(vocabulary, at)
    for token in ids[1:, None]:
        advance_rows(vocabulary.words, at, token)
        notes += [note for _, note in stream.read(at, token)]
    return notes


@given(scores(*BOTH))
def test_each_note_is_heard_once_and_begins_where_the_tempi_say(score):
    vocabulary = vocabulary_for(score)
    notes = heard(encode(score, vocabulary), vocabulary)
    assert [live.program for live in notes] == score.notes["program"].tolist()
    assert [live.note.pitch for live in notes] == score.notes["pitch"].tolist()
    assert [live.note.velocity for live in notes] == score.notes["velocity"].tolist()
    starts = score.step_seconds(score.notes["onset"])
    np.testing.assert_allclose([live.note.start for live in notes], starts)
    if len(set(score.tempo_bpm.tolist())) == 1:
        ends = score.step_seconds(score.notes["onset"].astype(int) + score.notes["duration"])
        np.testing.assert_allclose([live.note.end for live in notes], ends)
        assert [live[2:] for live in notes] == [live[2:] for live in notes_of(score)]


def test_a_note_ends_by_the_tempo_in_which_it_begins():
    for ids in random_walks(SMALL, np.random.default_rng(0), 20, 200):
        score = decode(ids, SMALL)
        bar = np.searchsorted(score.bar_starts, score.notes["onset"], side="right") - 1
        step_seconds = 60 / (score.tempo_bpm[bar] * SMALL.grid.steps_per_beat)
        lengths = [live.note.end - live.note.start for live in heard(ids, SMALL)]
        assert lengths == pytest.approx((score.notes["duration"] * step_seconds).tolist())
