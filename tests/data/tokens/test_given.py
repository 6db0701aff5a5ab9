"""Given notes: what is told of them, and how training chooses them."""

from dataclasses import replace

import numpy as np
import pytest

from data.tokens.augment import GAPS, OPENING, SCATTERED, VOICE, VOICES, choose_given
from data.tokens.features import SideFeatures
from data.tokens.given import SOON, VOICE_WIDTH, GivenNotes
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from data.tokens.windows import read_windows
from tests.models import PIANIST, QUARTET, four_parts
from tests.runs import python
from tests.tensors import told

IDS = encode(four_parts(4), QUARTET)


def told_of(ids, given, vocabulary=QUARTET):
    """(T, voices, columns) what the side input tells of given notes beside the ids of a piece."""
    features = SideFeatures(vocabulary)
    zero, notes = np.zeros(1, dtype=int), features.gathered([given])
    context = features.nothing(1)._replace(piece=zero, given=notes)
    side = told(features.compute(ids[None], context), features)
    return side.bits[0, :, features.blocks["given"]].reshape(len(ids), -1, VOICE_WIDTH)


def test_the_next_note_of_a_closed_voice_is_told_until_it_is_read():
    score = four_parts(4)
    is_open = np.ones((4, 192), bool)
    is_open[1] = False
    alto = score.notes[score.notes["program"] == 41]
    number = QUARTET.pitch_count + alto["pitch"] - QUARTET.lowest_pitch
    seen = told_of(IDS, GivenNotes(alto["onset"].astype(int), number.astype(int), is_open))
    (times,), (note_at,) = read_windows(IDS[None], QUARTET)
    latest = np.where(note_at >= 0, IDS[note_at] - QUARTET.first(Kind.NOTE), -1)
    for place, (now, note) in enumerate(zip(times, latest, strict=True)):
        is_read = note >= QUARTET.pitch_count  # the alto's, or one after it
        follow = alto[alto["onset"] >= now + is_read]
        assert seen[place, :, 0].tolist() == [0, 1, 0, 0]
        assert not seen[place, [0, 2, 3]].any()
        columns = seen[place, 1, 1:]
        if len(follow):
            assert np.flatnonzero(columns[:12]).tolist() == [follow["pitch"][0] % 12]
            soon = int((follow["onset"][0] - now >= SOON).sum())
            assert np.flatnonzero(columns[12 : 12 + len(SOON) + 1]).tolist() == [soon]
        else:
            assert not columns.any()


def test_nothing_is_told_where_nothing_may_be_written_or_long_before():
    score = four_parts(4)
    is_open = np.zeros((4, 192), bool)
    is_open[:, 48:144] = True  # bars 2 and 3
    kept = score.notes[(score.notes["onset"] < 48) | (score.notes["onset"] >= 144)]
    given = GivenNotes.of(replace(score, notes=kept), is_open, QUARTET)
    seen = told_of(IDS, given)
    now = read_windows(IDS[None], QUARTET)[0][0]
    is_told = seen.any(axis=(1, 2))
    assert is_told[(now >= 108) & (now < 144)].all()  # three beats before the next given note
    assert not is_told[(now < 108) | (now >= 144)].any()


MANY_AT_ONCE = """
import numpy as np
from data.tokens.features import SideFeatures
from data.tokens.given import GivenNotes
from data.tokens.vocabulary import Kind, Vocabulary
from tests.music import GRID

vocabulary = Vocabulary(((4, 4),), (80,), (0,), 21, 108, (80,), GRID)
features = SideFeatures(vocabulary)
numbers = np.arange(88)
given = GivenNotes(np.zeros(88, int), numbers, np.ones((1, 48), bool))
context = features.nothing(1)._replace(piece=np.zeros(1, int), given=features.gathered([given]))
ids = [vocabulary.first(kind) for kind in (Kind.START, Kind.BAR, Kind.TEMPO, Kind.POSITION)]
bag = features.compute(np.array([ids]), context).bag
assert {*(features.blocks["sounding"].start + numbers)} <= {*bag[0, -1].tolist()}
"""


def test_all_keys_given_at_once_are_told():
    """Without compiling, where to write past the end of an array is an error."""
    assert python(MANY_AT_ONCE, NUMBA_DISABLE_JIT="1") == ("", "", 0)


def test_a_given_note_is_told_as_if_it_sounded_from_its_position_on():
    score, features = four_parts(4), SideFeatures(QUARTET)
    is_open = np.ones((4, 192), bool)
    is_open[3] = False
    bass = score.notes[score.notes["program"] == 43]
    given = features.gathered([GivenNotes.of(replace(score, notes=bass), is_open, QUARTET)])
    context = features.nothing(1)._replace(piece=np.zeros(1, dtype=int), given=given)
    plain, knowing = features.compute(IDS[None]), features.compute(IDS[None], context)
    sounds = features.blocks["sounding"]
    sounding = [told(side, features).bits[0, :, sounds] for side in (plain, knowing)]
    kind, now = QUARTET.kind_of[IDS], read_windows(IDS[None], QUARTET)[0][0]
    number = IDS - QUARTET.first(Kind.NOTE)
    is_bass = (kind == Kind.NOTE) & (number >= 3 * QUARTET.pitch_count)
    positions, lowest = np.flatnonzero(kind == Kind.POSITION), 2 * 4 + 1
    for position in positions:
        after = position + np.flatnonzero(is_bass[position:])[0]
        assert now[after] == now[position]
        assert sounding[1][position, number[after]]
        assert not sounding[0][position, number[after]]
        for place in range(position, after):
            assert knowing.references[0, place, lowest] == plain.references[0, after, lowest]
            assert knowing.moves[0, place, 3] == plain.moves[0, after, 3]
    before = positions - 1  # all that began was read, and of what begins later nothing sounds
    np.testing.assert_array_equal(sounding[1][before], sounding[0][before])


@pytest.mark.parametrize("way", [VOICE, VOICES, GAPS, OPENING, SCATTERED])
def test_notes_are_chosen_as_people_give_them(way):
    counts = []
    for seed in range(30):
        given, is_given, is_forced = choose_given(IDS, way, np.random.default_rng(seed), QUARTET)
        program, onset = given.note // QUARTET.pitch_count, given.onset
        assert (np.diff(given.onset * 1000 + given.note) > 0).all()
        closed = ~given.may_begin(onset)[np.arange(len(onset)), program]
        whose = np.unique(program)
        counts.append(len(onset))
        if way == SCATTERED:
            assert given.is_open.all()
            continue
        assert closed.all()  # who is given something is not asked to play there
        if way in (VOICE, VOICES):
            assert len(onset) == 16 * len(whose)
            assert len(whose) in ((1,) if way == VOICE else (2, 3))
        if way == OPENING:
            assert len(whose) == 1
            assert onset.tolist() == [*range(0, 12 * len(onset), 12)]
        kinds = QUARTET.kind_of[IDS[is_forced]]
        assert not (is_forced & ~is_given).any()
        assert (QUARTET.kind_of[IDS[is_given]] == Kind.NOTE).sum() == len(onset)
        assert set(kinds.tolist()) <= {Kind.NOTE, Kind.DURATION}
        is_open = given.is_open[:, onset]
        # where others may stand before a note, that it comes now is to be learned: no more do
        is_alone = [not now[: its + 1].any() for now, its in zip(is_open.T, program, strict=True)]
        assert (kinds == Kind.NOTE).sum() == (is_open.any(axis=0) & is_alone).sum()
        assert (kinds == Kind.DURATION).sum() == is_open.any(axis=0).sum()
    assert len(set(counts)) > 1 or way == VOICE


def test_of_one_instrument_the_highest_notes_are_a_voice():
    score = four_parts(2)
    notes = score.notes.copy()
    notes["program"] = 0
    ids = [PIANIST.first(Kind.START), PIANIST.first(Kind.BAR)]
    note, duration = PIANIST.first(Kind.NOTE), PIANIST.first(Kind.DURATION)
    for position, chord in enumerate(([50, 60, 70], [52, 65])):
        ids.append(PIANIST.first(Kind.POSITION) + position)
        for pitch in chord:
            ids += [note + pitch - PIANIST.lowest_pitch, duration, PIANIST.first(Kind.VELOCITY)]
    given, _, _ = choose_given(np.array(ids), VOICE, np.random.default_rng(0), PIANIST)
    assert (given.note + PIANIST.lowest_pitch).tolist() == [70, 65]
    assert given.is_open.all()
