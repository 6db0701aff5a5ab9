"""Keys by name, and constraints that a model can or can never meet."""

from dataclasses import replace

import numpy as np
import pytest

from data.keys import key_pitch_classes, parse_key
from data.score import DRUMS
from data.tokens.vocabulary import Vocabulary
from generation.constraints import ConstraintError, Constraints
from tests.models import BAND
from tests.music import GRID, SMALL_SECONDS

QUARTET = Vocabulary(((3, 4), (4, 4)), (72, 80, 96), (40, 41, 128), 48, 72, (80,), GRID)


@pytest.mark.parametrize(
    ("names", "pitch_classes"),
    [
        (["C", "C major", "c MAJOR", "Cmaj", "CM", "B# major"], {0, 2, 4, 5, 7, 9, 11}),
        (["Am", "a", "A minor", "A min", "amin", "a-Minor"], {9, 11, 0, 2, 4, 5, 6, 7, 8}),
        (["D minor", "d", "Dm"], {2, 4, 5, 7, 9, 10, 11, 0, 1}),
        (["Bb", "B♭ major", "B-flat major", "b flat major", "bb major"], {10, 0, 2, 3, 5, 7, 9}),
        (["F#", "F♯ major", "Gb", "F sharp major", " F#  major "], {6, 8, 10, 11, 1, 3, 5}),
        (["bb", "Bbm", "A# minor"], {10, 0, 1, 3, 5, 6, 7, 8, 9}),
        (["b", "Bm", "B minor"], {11, 1, 2, 4, 6, 7, 8, 9, 10}),
    ],
)
def test_a_key_is_read_as_people_write_it(names, pitch_classes):
    for name in names:
        assert {*np.flatnonzero(key_pitch_classes(parse_key(name))).tolist()} == pitch_classes, name


@pytest.mark.parametrize("name", ["", "H", "D dorian", "minor", "C##", "D mm", "5", "Dm7", "C\nD"])
def test_what_is_no_key_is_refused_in_one_line(name):
    with pytest.raises(ConstraintError, match="no key") as refused:
        Constraints(key=name)
    assert len(str(refused.value).splitlines()) == 1


def notes(vocabulary, candidates):
    """(program, pitch) of the candidates."""
    program, pitch = np.divmod(np.flatnonzero(candidates), vocabulary.pitch_count)
    programs = np.array(vocabulary.programs)[program].tolist()
    return {*zip(programs, (pitch + vocabulary.lowest_pitch).tolist(), strict=True)}


@pytest.mark.parametrize(
    ("low", "high"), [("C4", "E4"), (60, 64), ("60", "64"), ("B#3", "F♭4"), ("c4", " E4 ")]
)
def test_a_range_takes_names_and_numbers_and_no_key_or_range_is_for_drums(low, high):
    constraints = Constraints(key="C", pitch_range=(low, high), programs=(41, 128))
    drums = {(128, pitch) for pitch in range(48, 73)}
    assert notes(QUARTET, constraints.candidates(QUARTET)) == drums | {
        (41, pitch) for pitch in (60, 62, 64)
    }


def test_a_tempo_goes_to_the_nearest_that_there_is():
    for asked, number in ((72, 0), (75, 0), (77, 1), (95.5, 2)):
        assert Constraints(tempo_bpm=asked).tempo_number(QUARTET) == number
    assert Constraints().tempo_number(QUARTET) is None


@pytest.mark.parametrize("asked", [95, 96, 97, 133, 20.4])
def test_a_model_of_one_tempo_plays_at_the_nearest_that_there_is(asked):
    one = replace(QUARTET, tempos=(96,))
    constraints = Constraints(tempo_bpm=asked)
    retimed = constraints.retimed(one)
    assert abs(retimed.tempos[0] / asked - 1) < 0.05
    assert constraints.tempo_number(retimed) == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"pitch_range": ("C5", "C4")}, ["C5 to C4", "lower note first"]),
        ({"pitch_range": ("H3", "C4")}, ["H3", "C3 C6"]),
        ({"pitch_range": ("C4", "C10")}, ["C10", "G9"]),
        ({"pitch_range": ("-1", "C4")}, ["'-1'"]),
        ({"max_polyphony": 0}, ["polyphony", "0", "1 note or more"]),
        ({"programs": ()}, ["name at least one"]),
        ({"counterpoint": "loose"}, ["strict or free, not 'loose'"]),
        ({"rests": "some"}, ["none, together or free, not 'some'"]),
    ],
)
def test_what_no_model_can_meet_is_refused_at_once(fields, words):
    with pytest.raises(ConstraintError) as refused:
        Constraints(**fields)
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize(
    ("fields", "resolve", "words"),
    [
        ({"programs": (0, 40)}, Constraints.candidates, ["no program 0", "40 (Violin), 41"]),
        ({"pitch_range": ("C6", "C7")}, Constraints.candidates, ["C6 to C7", "C3 to C5"]),
        ({"pitch_range": ("C#4", "C#4"), "key": "C"}, Constraints.candidates, ["C#4 to C#4 in C"]),
        ({"tempo_bpm": 200}, Constraints.tempo_number, ["200", "72 to 96"]),
        ({"tempo_bpm": float("nan")}, Constraints.tempo_number, ["nan", "72 to 96"]),
        ({"time_signature": (5, 4)}, Constraints.meter_number, ["5/4", "3/4, 4/4"]),
    ],
)
def test_what_this_model_can_never_meet_is_refused_in_words(fields, resolve, words):
    with pytest.raises(ConstraintError) as refused:
        resolve(Constraints(**fields), QUARTET)
    assert all(word in str(refused.value) for word in words)
    assert len(str(refused.value).splitlines()) == 1


def test_drums_alone_are_left_where_they_alone_are_asked_for():
    constraints = Constraints(programs=(128,), pitch_range=("C8", "C9"))
    assert len(notes(QUARTET, constraints.candidates(QUARTET))) == QUARTET.pitch_count


@pytest.mark.parametrize("asked", [{"key": "C"}, {"chords": "C"}, {"pitch_range": ("C3", "C4")}])
def test_a_model_of_drums_has_no_pitches_to_ask_for(asked):
    drummer = replace(QUARTET, programs=(DRUMS,))
    assert Constraints(programs=("drums",), tempo_bpm=72).candidates(drummer).all()
    with pytest.raises(ConstraintError, match="plays drums alone"):
        Constraints(**asked).candidates(drummer)


def test_a_model_of_seconds_has_neither_tempo_nor_meter():
    with pytest.raises(ConstraintError, match="seconds"):
        Constraints(tempo_bpm=60).tempo_number(SMALL_SECONDS)
    with pytest.raises(ConstraintError, match="seconds"):
        Constraints(time_signature=(1, 4)).meter_number(SMALL_SECONDS)


def test_who_plays_is_asked_for_by_name_or_number():
    assert Constraints(programs=("melody", "Piano")).playing(BAND) == [0, 2]
    assert Constraints(programs=(1, "Electric Bass (finger)")).playing(BAND) == [1, 162]
    assert Constraints(programs=("Violin", "drums")).playing(QUARTET) == [40, 128]
    with pytest.raises(ConstraintError, match=r"no program solo: it knows 0 \(MELODY\), 1 \(BRI"):
        Constraints(programs=("solo",)).playing(BAND)
