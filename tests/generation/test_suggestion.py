"""Chords that a model would have in a bar."""

from data.chords import parse_chord
from generation.constraints import Constraints
from generation.length import Length
from generation.model import load
from generation.request import Request
from generation.seeds import seed_from_notes, voices_of
from generation.suggestion import suggest_chords


def test_before_the_tonic_the_dominant_is_suggested():
    chords = Constraints(chords="C | F | N.C. | C", key="C", time_signature=(4, 4))
    request = Request(None, Length(bars=4), chords)
    *turns, suggested = suggest_chords(load("bach"), request, 2)
    assert not any(turns)
    assert len({*suggested}) == 3
    assert {parse_chord(each).root for each in suggested} & {7}
    assert [*suggest_chords(load("bach"), request, 2)][-1] == suggested


def test_under_a_melody_chords_of_its_notes_are_suggested():
    model = load("bach")
    notes = seed_from_notes("E4:4 A4:4 G4:2 F4:2 E4:4", model.vocabulary)
    request = Request(voices_of(notes.score, model.vocabulary), None, Constraints(key="C"))
    for bar, pitch_class in ((0, 4), (1, 9)):
        *_, (first, *_) = suggest_chords(model, request, bar)
        assert pitch_class in parse_chord(first).classes


def test_in_a_given_bar_its_own_chord_is_suggested():
    model = load("bach")
    seed = seed_from_notes("[C3 E4 G4]:4 [G3 B3 D4]:4", model.vocabulary)
    *_, suggested = suggest_chords(model, Request(seed, Length(bars=3)), 1)
    assert suggested == ["G"]
