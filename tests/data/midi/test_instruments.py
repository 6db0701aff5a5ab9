"""Instruments: what is kept, and as what; drums are never anything else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.midi.instruments import MOST_COMMON, Instruments, common_programs, fold
from data.score import DRUMS
from tests.music import events_of

PROGRAMS = (0, 7, 24, 47, 48, DRUMS)


def events(programs=PROGRAMS, tracks=()):
    """A note of each program, one after another; the pitch is the number of the note."""
    rows = [(480 * i, 480 * i + 240, i, 80, program) for i, program in enumerate(programs)]
    return events_of(rows, tracks=tracks)


def test_common_programs_play_for_their_families_and_drums_stay():
    common = Instruments("common", common=(1, 27, 40))
    assert fold(events(), common).notes[:, 4].tolist() == [1, 1, 27, 40, 27, DRUMS]
    every = fold(events(range(129)), common).notes[:, 4]
    assert np.unique(every).tolist() == [1, 27, 40, DRUMS]


def test_the_common_programs_are_those_of_most_pieces():
    pieces = [(0, 40, DRUMS), (0, 41), (0, 40)]
    assert common_programs(pieces) == (0, 40, 41)
    many = [tuple(range(100)), tuple(range(50, 90))]
    assert common_programs(many) == tuple(range(50, 50 + MOST_COMMON))


def test_piano_leaves_the_drums_out():
    folded = fold(events(), Instruments("piano")).notes
    assert folded[:, 4].tolist() == [0] * 5
    assert folded[:, 2].tolist() == [0, 1, 2, 3, 4]


def test_programs_are_chosen_by_what_the_file_calls_them():
    folded = fold(events(), Instruments("common", programs=(47, DRUMS), common=(40,)))
    assert folded.notes[:, 4].tolist() == [40, DRUMS]


TRACKS = (("Melody", 2), ("", 1), ("left hand ", 2), ("Drums", 1))


@pytest.mark.parametrize(
    ("chosen", "kept", "left"),
    [
        (("melody",), [0, 1], (("Melody", 2),)),
        (("LEFT HAND", 2), [2, 3, 4], (("", 1), ("left hand ", 2))),
        ((4,), [5], (("Drums", 1),)),
        (("4",), [5], (("Drums", 1),)),  # as a command line has it
        (("flute", 9), [], ()),
    ],
)
def test_tracks_are_chosen_by_name_or_number(chosen, kept, left):
    folded = fold(events(tracks=TRACKS), Instruments(tracks=chosen))
    assert folded.notes[:, 2].tolist() == kept
    assert folded.tracks == left


def test_events_that_do_not_know_their_tracks_are_one():
    assert len(fold(events(), Instruments(tracks=(1,))).notes) == len(PROGRAMS)
    assert not len(fold(events(), Instruments(tracks=(2,))).notes)


@given(
    st.lists(st.integers(0, DRUMS), max_size=12), st.sampled_from(["original", "common", "piano"])
)
def test_folding_again_changes_nothing_and_no_drum_turns_to_pitch(programs, mode):
    instruments = Instruments(mode, common=(0, 33, 40, 48))
    once = fold(events(programs), instruments)
    again = fold(once, instruments)
    assert np.array_equal(again.notes, once.notes)
    assert again.tracks == once.tracks
    was_drum = np.array([programs[number] == DRUMS for number in once.notes[:, 2]], dtype=bool)
    assert np.array_equal(once.notes[:, 4] == DRUMS, was_drum)
    assert sum(count for _, count in once.tracks) in (len(once.notes), 0)  # 0: not known
