"""Strict counterpoint: no parallels, whatever else is asked for, and masks by hand."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.given import seam
from data.keys import Key
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import FREE, NO_RESTS, STRICT, Constraints
from generation.counterpoint import has_parallels_at
from generation.length import Length
from generation.seeds import accompanied, continued, no_seed, rewritten, voices_of
from tests.generation import test_constrained_grammar as cases
from tests.generation.test_cadences import piece_of
from tests.models import QUARTET
from tests.music import line, parallels_in, piece


def tune_of(pitches):
    """A bar or less of quarter notes of the highest voice."""
    return piece(line(pitches, program=40), tempo=80)


def test_what_is_masked_by_hand():
    """Above C3 the soprano had G4 and goes to A4: the bass at D3 would be a fifth below again."""
    before = [(0, 12, 67, 80, 40), (0, 12, 48, 80, 41), (12, 12, 69, 80, 40)]
    score = piece(before, tempo=80)
    ids = encode(score, QUARTET)[:-1]
    masks = []
    for how in (STRICT, FREE):
        constrained = ConstrainedGrammar(QUARTET, Length(bars=2), Constraints(counterpoint=how))
        state = constrained.start(1)
        for token in ids[1:]:
            constrained.advance(state, [token])
        masks.append(constrained.allowed(state)[0])
    notes = np.flatnonzero(masks[0] != masks[1]) - QUARTET.first(Kind.NOTE)
    program, pitch = np.divmod(notes, QUARTET.pitch_count)
    assert set(program.tolist()) == {0, 1}  # the soprano sings one note at a time
    # a fifth below A4, octaves aside, or above it, and upwards from C3
    assert (pitch[program == 1] + QUARTET.lowest_pitch).tolist() == [50, 62, 76]


@pytest.mark.parametrize("how", [{"counterpoint": STRICT}, {"monophonic": (40,)}])
def test_no_voice_begins_a_note_while_a_given_one_of_it_sounds(how):
    """A note of the first bar sounds on into the second, which is rewritten."""
    notes = [(0, 72, 74, 80, 40), *line([50, 52, 53, 55] * 3, program=43)]
    seed = rewritten(piece(notes, [(4, 4, 48)] * 3, 80), QUARTET, range(1, 2), [40])
    for score in cases.pieces(Constraints(**how), Length(bars=3), seed, QUARTET, 8):
        onsets = score.notes["onset"][score.notes["program"] == 40]
        assert onsets[1:].min(initial=72) >= 72


def given_quarters(kind, rng):
    """What is given of two bars of random quarters in four voices; new ones are to follow."""
    lowest = {40: 64, 41: 57, 42: 52, 43: 43}
    notes = [
        (12 * n, 12, low + int(rng.integers(10)), 80, program)
        for n in range(8)
        for program, low in lowest.items()
    ]
    whole = piece(notes, [(4, 4, 48)] * 2, 80)
    soprano = replace(whole, notes=whole.notes[whole.notes["program"] == 40])
    return {
        "nothing": no_seed(QUARTET),
        "a voice": voices_of(whole, QUARTET, [int(rng.integers(1, 5))]),
        "the other bar": rewritten(whole, QUARTET, range(1)),
        "a beginning": continued(whole.excerpt(0, 1), QUARTET),
        "a melody": accompanied(continued(soprano, QUARTET), QUARTET),
    }[kind]


@pytest.mark.parametrize("kind", ["nothing", "a voice", "the other bar", "a beginning", "a melody"])
def test_no_new_note_moves_in_parallel_with_another_whatever_is_asked_for(kind):
    for number in range(24):
        rng = np.random.default_rng(number)
        constraints = Constraints(
            counterpoint=STRICT,
            rests=NO_RESTS,
            key=[None, "A minor", "Eb major"][number % 3],
            pitch_range=(52, 72) if number % 2 else None,
            ranges=RANGES,
        )
        seed = given_quarters(kind, rng)
        constrained = ConstrainedGrammar(QUARTET, Length(bars=2), constraints, seed)
        keys = [Key(int(rng.integers(12)), "minor")]
        piece = piece_of(constrained, rng, int(rng.choice([0, 24])), keys)
        assert {*parallels_in(piece)} <= {*parallels_in(seed.score)}


def test_the_bass_ends_on_the_root_and_upper_voices_leave_it_one():
    """The soprano goes down to E flat, from a fifth above a bass that shall end on A flat."""
    before = [(0, 12, 65, 80, 40), (0, 12, 61, 80, 41), (0, 12, 58, 80, 42), (0, 12, 46, 80, 43)]
    score = piece(before, tempo=80)
    constraints = Constraints(counterpoint=STRICT, rests=NO_RESTS, key="Ab major", ranges=RANGES)
    constrained = ConstrainedGrammar(QUARTET, Length(bars=1), constraints)
    state = constrained.start(1, np.array([12]))
    first, count = QUARTET.first(Kind.NOTE) - QUARTET.lowest_pitch, QUARTET.pitch_count
    quarter = QUARTET.first(Kind.DURATION) + 11
    above = [first + 63, quarter, first + count + 60, quarter]  # and the alto C
    for token in [*encode(score, QUARTET)[1:-1], QUARTET.first(Kind.POSITION) + 12, *above]:
        constrained.advance(state, [token])
    tenor = np.flatnonzero(constrained.allowed(state)[0]) - first - 2 * count
    assert tenor.tolist() == [60, 63, 72, 75, 84]  # below C3 and E flat 3 there is A flat 2 alone


@pytest.mark.parametrize("goes_to", [(67, 48), (67, 43), (69, 50), (69, 53), (67, 55)])
def test_where_two_go_in_parallel_no_repeat_begins(goes_to):
    pairs = [(65, 46), goes_to]
    notes = [
        (12 * n, 12, p, 80, 40 + v) for n, both in enumerate(pairs) for v, p in enumerate(both)
    ]
    score = piece(notes, tempo=80)
    assert has_parallels_at(score, 12) == bool(parallels_in(score))
    assert not has_parallels_at(score, 0)


RANGES = {40: (60, 79), 41: (55, 74), 43: (40, 60)}


def in_range(number, pitch, ranges):
    """Whether a program's pitches are within its range; one without a range has all."""
    low, high = ranges.get(QUARTET.programs[number], (0, 127))
    return low <= pitch <= high


def first_notes(constraints, seed):
    """The (program's number, pitch) that may begin on the first beat after the seed's bars."""
    constrained = ConstrainedGrammar(QUARTET, Length(bars=3), constraints, seed)
    state = constrained.start(1)
    for kind, number in ((Kind.BAR, 1), (Kind.POSITION, 0)):
        constrained.advance(state, [QUARTET.first(kind) + number])
    notes = np.flatnonzero(constrained.allowed(state)[0, QUARTET.ids(Kind.NOTE)])
    number, pitch = np.divmod(notes, QUARTET.pitch_count)
    return set(zip(number.tolist(), (pitch + QUARTET.lowest_pitch).tolist(), strict=True))


def test_instruments_stay_in_their_ranges_and_in_those_of_their_given_notes():
    seed = continued(tune_of([52, 54, 81, 60]), QUARTET)  # E3 to A5
    strict, without = (
        first_notes(Constraints(counterpoint=STRICT, ranges=ranges), seed)
        for ranges in (RANGES, {})
    )
    wider = RANGES | {40: (52, 81)}
    assert strict == {note for note in without if in_range(*note, wider)}
    assert strict < without
    free = first_notes(Constraints(counterpoint=FREE, ranges=RANGES), seed)
    assert free >= without


def test_out_of_range_is_played_where_nothing_else_is_left():
    high = Constraints(counterpoint=STRICT, pitch_range=(80, 84), programs=(43,), ranges=RANGES)
    notes = first_notes(high, continued(tune_of([60]), QUARTET))
    assert notes == {(3, pitch) for pitch in range(80, 85)}


def test_a_gap_meets_the_given_notes_around_it_without_leaps_or_parallels():
    rng = np.random.default_rng(1)
    lowest = dict(zip(QUARTET.programs, (72, 65, 60, 53), strict=True))  # fifths and octaves
    notes = [
        (12 * n, 12, low + (0 if n == 12 else rng.integers(6)), 80, program)
        for n in range(16)
        for program, low in lowest.items()
    ]
    whole = piece(notes, [(4, 4, 48)] * 4, 80)
    seed = rewritten(whole, QUARTET, range(1, 3))
    bad = {}
    for how in (STRICT, FREE):
        constraints = Constraints(counterpoint=how, rests=NO_RESTS, pitch_range=(54, 72))
        constrained = ConstrainedGrammar(QUARTET, Length(bars=4), constraints, seed)
        pieces = [piece_of(constrained, np.random.default_rng(n), 24, ()) for n in range(16)]
        bad[how] = sum(np.array(seam(piece, step)) for piece in pieces for step in (48, 144))
        assert all(len(piece.notes) == len(whole.notes) for piece in pieces)
    assert bad[STRICT].tolist() == [0, 0]
    assert bad[FREE].min() >= 4
