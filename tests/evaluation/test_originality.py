"""What of a piece stands in the training set: by hand, against brute force, and whole pieces."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.corpus.runs import REPRESENTATIONS, find_matches, note_sequence, shared_runs
from data.score import DRUMS, SECONDS, Grid
from data.tokens.tokenizer import encode
from evaluation.originality import run_shares
from tests import music
from tests.data.batches.test_windows import split_of
from tests.folders import transposed, tune
from tests.music import piece, scores, vocabulary_for

line = partial(music.line, program=40)
TUNE = [60, 62, 64, 65, 67, 69, 71, 72, 74, 72, 69, 65]


def training_of(*pieces):
    """The split that pieces make, and its vocabulary."""
    vocabulary = vocabulary_for(*pieces)
    return split_of([encode(score, vocabulary) for score in pieces], vocabulary), vocabulary


def found_in(asked, *training):
    """The figures of one piece and its runs, by representation."""
    train, vocabulary = training_of(*training)
    *_, found = find_matches([asked], train, vocabulary)
    return {
        name: vars(run_shares(found[name], range(1)))
        | {"runs": shared_runs(found[name], 0, train.names, Grid())}
        for name in REPRESENTATIONS
    }


def test_a_tune_in_another_key_instrument_and_place_is_found_whole_with_where():
    there = piece(line([50, 50, 55]) + line(TUNE, start=48))
    asked = piece(line([p + 5 for p in TUNE], program=73), bars=[(4, 4, 12)], tempo=90)
    for reading in found_in(asked, piece(line([40, 41])), there).values():
        assert reading["notes"] == 12
        assert reading["longest"] == [12]
        assert reading["shares"] == {4: 1.0, 8: 1.0} | {16: pytest.approx(np.nan, nan_ok=True)}
        (run,) = reading["runs"]
        assert (run.notes, run.bar, run.semitones) == (12, 0, -5)  # an upbeat is bar 0
        assert (run.file, run.file_bar) == ("1", 2)
    assert found_in(asked, there)["line"]["runs"][0].instrument == "Flute"


def test_the_line_is_the_top_of_chords_and_hears_nothing_under_a_held_note():
    chords = [(24 * i, 24, pitch, 80, 40) for i in range(6) for pitch in (40, 43, 47)]
    # chords that begin under the held last note, and a melody held a little into the next note
    held = [(onset, 13, *rest) for onset, _, *rest in line(TUNE[:-1])]
    held.append((132, 48, TUNE[-1], 80, 40))
    beneath = [(144, 12, pitch, 80, 40) for pitch in (40, 43, 47)]
    asked = piece(chords + held + beneath)
    found = found_in(asked, piece(line(TUNE)))
    assert found["line"] == found["line"] | {"notes": 12, "longest": [12]}
    assert found["texture"]["longest"][0] < 4


def test_instruments_have_lines_of_their_own_and_one_texture():
    bass = [p - 24 for p in TUNE[::-1]]
    both = piece(line(TUNE) + line(bass, program=43))
    found = found_in(both, piece(line(TUNE)), piece(line(bass)))
    assert found["line"]["longest"] == [12]
    assert found["line"]["shares"][8] == 1
    assert {run.file for run in found["line"]["runs"]} == {"0", "1"}
    assert found["texture"]["notes"] == 24
    assert found["texture"]["shares"][4] == 0
    assert found_in(both, both)["texture"]["shares"][16] == 1
    # a unison is one note of the texture
    doubled = piece(line(TUNE) + line(TUNE, program=43))
    assert found_in(doubled, piece(line(TUNE)))["texture"]["shares"][8] == 1


def test_drums_are_no_tune():
    beat = [(12 * i, 12, 36, 80, DRUMS) for i in range(20)]
    with_tune = piece(line(TUNE) + beat)
    for reading in found_in(with_tune, piece(beat), with_tune).values():
        assert reading["notes"] == 12
        assert reading["longest"] == [12]
    for reading in found_in(piece(beat), with_tune).values():
        assert reading["longest"] == [0]
        assert np.isnan(reading["shares"][4])


def test_no_run_reaches_from_one_piece_or_line_into_the_next():
    halves = [piece(line(TUNE[:6])), piece(line(TUNE[6:]))]
    assert found_in(piece(line(TUNE)), *halves)["texture"]["longest"] == [6]
    train, vocabulary = training_of(piece(line(TUNE)))
    *_, found = find_matches(halves, train, vocabulary)
    assert run_shares(found["line"], range(2)).longest == [6, 6]


def test_bars_are_seconds_where_the_grid_has_no_meter():
    notes = [(100 * i, 50, pitch, 80, 0) for i, pitch in enumerate(TUNE)]
    score = piece(notes, grid=SECONDS)
    assert note_sequence([score], "line").bar.tolist() == list(range(12))


def brute(asked, there):
    """The notes of the longest run from each place, step by step."""
    best = []
    for i in range(len(asked)):
        longest = 0
        for j in range(len(there)):
            k = 0
            while i + k < len(asked) and asked[i + k] >= 0 and asked[i + k] == there[j + k]:
                k += 1
            longest = max(longest, k)
        best.append(longest + 1)
    return best


@settings(max_examples=15, deadline=None)
@given(asked=st.lists(scores(), min_size=1, max_size=2), training=st.lists(scores(), min_size=1))
def test_as_long_as_found_note_by_note(asked, training):
    training = [*training[:2], asked[0], training[0]]
    train, vocabulary = training_of(*training)
    *_, found = find_matches(asked, train, vocabulary)
    for name in REPRESENTATIONS:
        mine, there = note_sequence(asked, name), note_sequence(training, name)
        length = found[name].length
        assert length.tolist() == brute(mine.step.tolist(), there.step.tolist())
        assert found[name].notes.left[length > 1].tolist() >= length[length > 1].tolist()
        whole = mine.piece == 0  # it is in training, so each note begins a run to its line's end
        assert (length[whole] == mine.left[whole]).all()


def test_training_in_chunks_gives_the_same():
    train, vocabulary = training_of(*[tune(seed) for seed in range(6)])
    asked = [transposed(tune(4), 3), tune(2), tune(99)]
    (whole,) = find_matches(asked, train, vocabulary)
    *parts, last = find_matches(asked, train, vocabulary, at_once=200)
    assert parts
    for name, in_parts in last.items():
        assert in_parts.length.tolist() == whole[name].length.tolist()
        most = whole[name].length > 8
        assert set(in_parts.piece[most].tolist()) == {2, 4}
        assert in_parts.bar[most].tolist() == whole[name].bar[most].tolist()
