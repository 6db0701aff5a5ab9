"""Chords that are asked for: their language, that they hold, and that no piece gets stuck."""

import itertools
from dataclasses import replace

import numpy as np
import pretty_midi
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from data.chords import parse_chord
from data.harmony import final_chord
from data.midi.io import write_midi
from data.score import BAR
from generation.chord_plan import ChordPlan, place_chords
from generation.chord_track import CADENCES, parse_chord_track
from generation.compose import compose
from generation.constraints import ConstraintError, Constraints
from generation.given import GivenTokens
from generation.length import Length
from generation.model import load
from generation.request import Request
from generation.seeds import accompanied, continued, rewrite_from_midi, seed_from_notes, voices_of
from tests import music
from tests.chord_checker import QUALITIES, STEPS, what_is_broken
from tests.generation import test_constrained_grammar as cases
from tests.models import PIANIST, QUARTET
from tests.music import GRID

NAMES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
METERS = {(4, 4): (4, STEPS), (3, 4): (3, STEPS), (6, 8): (2, 18)}  # beats, and the steps of one
IN_KEY = ["0", "2m", "4m", "5", "7", "9m", "11dim", "77", "0maj7", "2m7", "5maj7", "9m7", "11m7b5"]
BORROWED = ["5m", "10", "8", "3", "27", "47", "07", "7sus4", "11dim7", "0aug", "5m6", "06", "79"]


def a_progression(rng, meter, bars):
    """Chords of a key and others, some over another bass, and where each stands."""
    beats, beat = METERS[meter]
    tonic, text, rows = int(rng.integers(12)), [], []
    for bar in range(bars):
        cuts = rng.choice(np.arange(1, beats), rng.integers(0, beats), replace=False)
        edges = [0, *sorted(cuts.tolist()), beats]
        words = []
        for begin, end in itertools.pairwise(edges):
            drawn = str(rng.choice(BORROWED if rng.random() < 0.25 else IN_KEY))
            degree = drawn[:2] if drawn[:2] in ("10", "11") else drawn[0]
            quality = drawn[len(degree) :]
            root = (tonic + int(degree)) % 12
            above = int(rng.choice(QUALITIES[quality].split())) if rng.random() < 0.3 else 0
            under = f"/{NAMES[(root + above) % 12]}" if above else ""
            symbol = NAMES[root] + quality + under
            words.append(f"{symbol}:{(end - begin) * beat / STEPS:g}")
            first = (bar * beats + begin) * beat
            rows.append((symbol, first, first + (end - begin) * beat))
        text.append(" ".join(words))
    return " | ".join(text), rows


def a_melody(rng, meter, bars):
    beats, beat = METERS[meter]
    steps = rng.integers(-2, 3, beats * bars)
    pitches = np.clip(67 + np.cumsum(steps), 60, 79).tolist()
    return " ".join(f"{pitch}:{beat / STEPS:g}" for pitch in pitches)


def written(model, number, with_melody, path, bars=None):
    """What is broken of a random progression, in a piece that a model writes to a file."""
    rng = np.random.default_rng(number)
    meter = [*METERS][number % len(METERS)]
    bars = bars or int(rng.integers(4, 17))
    text, rows = a_progression(rng, meter, bars)
    seed, length = None, Length()
    constraints = Constraints(chords=text, time_signature=None if with_melody else meter)
    if with_melody:
        timed = Constraints(time_signature=meter)
        notes = seed_from_notes(a_melody(rng, meter, bars), model.vocabulary, timed)
        seed, length = voices_of(notes.score, model.vocabulary), None
    piece = compose(model, Request(seed, length, constraints, random_seed=number))[0]
    write_midi(piece.score, path)
    given = set()
    if with_melody:
        melody = pretty_midi.PrettyMIDI(str(path)).instruments[0]
        names = seed.score.notes[["onset", "pitch"]].tolist()
        given = {(melody.name or melody.program, onset, pitch) for onset, pitch in names}
    return what_is_broken(path, rows, given)


@pytest.mark.parametrize("with_melody", [False, True])
def test_every_chord_holds_in_four_parts(with_melody, tmp_path):
    model = load("bach")
    for number in range(6):
        assert not written(model, number, with_melody, tmp_path / "piece.mid", bars=5), number


@pytest.mark.parametrize("with_melody", [False, True])
def test_every_chord_holds_in_songs(with_melody, tmp_path):
    model = load("pop")
    for number in (0, len(METERS)):  # it knows 4/4 alone
        assert not written(model, number, with_melody, tmp_path / "piece.mid", bars=2), number


def test_a_single_voice_plays_notes_of_the_chords_on_the_beats(tmp_path):
    constraints = Constraints(chords="D | A7 | Bm | G A", time_signature=(4, 4))
    piece = compose(load("folk"), Request(None, Length(bars=8), constraints))[0]
    write_midi(piece.score, tmp_path / "tune.mid")
    rows = [("D", 0, 48), ("A7", 48, 96), ("Bm", 96, 144), ("G", 144, 168), ("A", 168, 192)]
    rows += [(symbol, begin + 192, end + 192) for symbol, begin, end in rows]
    assert not what_is_broken(tmp_path / "tune.mid", rows, has_bass=False)


def test_chords_begin_with_the_first_bar_that_is_rewritten(tmp_path):
    model = load("bach")
    plain = compose(model, Request(None, Length(bars=6), Constraints(time_signature=(4, 4))))[0]
    write_midi(plain.score, tmp_path / "plain.mid")
    seed = rewrite_from_midi(tmp_path / "plain.mid", model.vocabulary, bars=(3, 4))
    new = compose(model, Request(seed, None, Constraints(chords="F#m | B7")))[0]
    write_midi(new.score, tmp_path / "new.mid")
    kept = seed.score.notes[["program", "onset", "pitch"]].tolist()
    names = {
        part.program: part.name or part.program
        for part in pretty_midi.PrettyMIDI(str(tmp_path / "new.mid")).instruments
    }
    given = {(names[program], onset, pitch) for program, onset, pitch in kept}
    rows = [("F#m", 96, 144), ("B7", 144, 192)]
    assert not what_is_broken(tmp_path / "new.mid", rows, given, begin=96)
    asked = [(span.begin, span.end, span.chord) for span in new.chords]  # none of what is kept
    assert asked == [(96, 144, parse_chord("F#m")), (144, 192, parse_chord("B7"))]


WIDE = tuple(
    replace(vocabulary, lowest_pitch=48, highest_pitch=72) for vocabulary in cases.VOCABULARIES[:3]
)


def some_chords(rng):
    """Bars of chords, or of none."""
    bars = []
    for _ in range(rng.integers(1, 4)):
        drawn = rng.choice([*QUALITIES], rng.integers(1, 4))
        symbols = [f"{rng.choice(NAMES)}{quality}" for quality in drawn]
        under = [f"/{rng.choice(NAMES)}" if rng.random() < 0.3 else "" for _ in symbols]
        pairs = zip(symbols, under, strict=True)
        words = [a + b if rng.random() < 0.85 else "N.C." for a, b in pairs]
        bars.append(" ".join(words))
    return "|" + "|".join(bars)


def a_case(seed):
    """Chords among all else that is asked for; None: they are refused."""
    rng = np.random.default_rng(seed)
    vocabularies = WIDE if rng.random() < 0.8 else cases.VOCABULARIES
    case = cases.a_case(seed, vocabularies)
    try:
        asked = {"cadence": str(rng.choice([*CADENCES]))} if rng.random() < 0.25 else {}
        case.constraints = replace(case.constraints, **(asked or {"chords": some_chords(rng)}))
    except ConstraintError:
        return None
    if rng.random() < 0.5 and case.length.bars:
        case.length = Length(bars=3 + len(case.seed.score.bars))
    return case


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.integers(0, 2**32 - 1))
def test_whatever_else_is_asked_for_there_is_a_way_to_the_end(seed):
    case = a_case(seed)
    assume(case and cases.is_met(case, seed))


@pytest.mark.parametrize(
    ("cadence", "last"),
    [
        ("authentic", ["G7", "C"]),
        ("half", ["G"]),
        ("deceptive", ["G7", "Am"]),
        ("plagal", ["F", "C"]),
    ],
)
def test_a_piece_ends_with_the_cadence_that_is_asked_for(cadence, last, tmp_path):
    model = load("bach")
    asked = Constraints(key="C", cadence=cadence, time_signature=(4, 4))
    piece = compose(model, Request(None, Length(bars=3), asked))[0]
    tune = seed_from_notes("C5 D5 E5 F5 G5:2 A5:1 G5 F5 E5 D5 D5", model.vocabulary, asked)
    seed = voices_of(tune.score, model.vocabulary)
    kept = compose(model, Request(seed, None, replace(asked, time_signature=None)))[0]
    given = {("Violin", *each) for each in seed.score.notes[["onset", "pitch"]].tolist()}
    inside = compose(model, Request(None, Length(bars=4), replace(asked, cadence_bar=2)))[0]
    assert [span.chord.root for span in inside.harmony[-2:]] == [7, 0]  # and the end is its own
    # with the last bar, with the last given note, with a bar that is named
    for each, final, end in ((piece, 96, 144), (kept, 132, 144), (inside, 48, 96)):
        rows = [(last[0], final - 24, final)] * (len(last) > 1) + [(last[-1], final, end)]
        assert [(span.chord.name, span.begin, span.end) for span in each.chords] == rows
        write_midi(each.score, tmp_path / "piece.mid")
        assert not what_is_broken(tmp_path / "piece.mid", rows, given if each is kept else ())


@pytest.mark.parametrize(("cadence", "triad"), [("half", (7, 11, 2)), ("deceptive", (9, 0, 4))])
def test_a_cadence_away_from_the_tonic_is_on_its_own_triad(cadence, triad):
    asked = Constraints(key="C", cadence=cadence, time_signature=(4, 4))
    on_root = complete = 0
    for piece in compose(load("bach"), Request(None, Length(bars=2), asked, samples=12)):
        final = final_chord(piece.score)["pitch"].tolist()
        on_root += min(final) % 12 == triad[0]
        complete += {pitch % 12 for pitch in final} == {*triad}
    assert on_root >= 9
    assert complete >= 7


def places(text, *bars):
    rows = np.array([(*meter, steps) for meter, steps in bars], BAR)
    placed = place_chords(parse_chord_track(text), rows, 0, GRID)
    return [(each.begin, each.end, each.chord and each.chord.name) for each in placed]


def test_the_chords_of_an_upbeat_do_not_come_again():
    upbeat = music.piece([(0, 12, 67, 80, 40)], [(4, 4, 12)], 80)
    seed = accompanied(continued(upbeat, QUARTET), QUARTET)
    given = GivenTokens(seed, QUARTET)
    plan = ChordPlan.of(parse_chord_track("G:1 | C | F"), given, None, (4, 4))
    assert plan.cycle == 2 * 48


FOUR, SHORT = ((4, 4), 48), ((4, 4), 12)


@pytest.mark.parametrize(
    ("text", "bars", "expected"),
    [
        ("Am F", [FOUR] * 2, [(0, 48, "Am"), (48, 96, "F")]),
        ("Am F | C/E", [FOUR] * 2, [(0, 24, "Am"), (24, 48, "F"), (48, 96, "C/E")]),
        ("| Am |", [FOUR] * 2, [(0, 48, "Am"), (48, 96, "Am")]),
        ("Dm7 E7:1 |", [FOUR], [(0, 36, "Dm7"), (36, 48, "E7")]),
        ("C6 C9 G |", [FOUR], [(0, 24, "C6"), (24, 36, "C9"), (36, 48, "G")]),
        ("C G |", [((3, 4), 36)], [(0, 24, "C"), (24, 36, "G")]),
        ("C G |", [((6, 8), 36)], [(0, 18, "C"), (18, 36, "G")]),
        ("A♭maj7 N.C.:2. |", [FOUR], [(0, 12, "Abmaj7"), (12, 48, None)]),
        ("Am | F", [SHORT, FOUR, FOUR], [(12, 60, "Am"), (60, 108, "F")]),
        ("E7:1 | Am", [SHORT, FOUR, FOUR], [(0, 12, "E7"), (12, 60, "Am"), (60, 108, "Am")]),
    ],
)
def test_chords_stand_where_they_are_written(text, bars, expected):
    assert places(text, *bars) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Am | H", "there is no chord 'H': write chords as Am"),
        ("Am | | F", "a bar of the chords is empty"),
        ("", "a bar of the chords is empty"),
        ("Am:x", "cannot read the length of 'Am:x'"),
        ("Am:0", "'Am:0' has no length"),
    ],
)
def test_what_is_no_chord_is_refused_in_one_line(text, words):
    with pytest.raises(ConstraintError, match=words.replace("|", r"\|")) as error:
        Constraints(chords=text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("asked", ["cadence", "chords"])
def test_music_that_is_counted_in_seconds_has_no_place_for_chords(asked):
    constraints = Constraints(**{asked: "half" if asked == "cadence" else "C"})
    with pytest.raises(ConstraintError, match=f"seconds, not bars: ask for no {asked}"):
        cases.ConstrainedGrammar(PIANIST, Length(bars=2), constraints)


@pytest.mark.parametrize(
    ("constraints", "length", "words"),
    [
        (Constraints(chords="C:3 | F"), Length(), "bar 1 of the chords is 3 quarter notes long"),
        (Constraints(chords="C | F | G"), Length(bars=1), "3 bars of chords, and 1 bar to write"),
        (Constraints(chords="C"), Length(notes=9), "ask for --bars"),
        (Constraints(cadence="half"), Length(bars=2), "in a key: ask for --key"),
        (Constraints(cadence="half", key="C"), Length(), "at the end: ask for --bars"),
        (Constraints(cadence="half", key="C", cadence_bar=3), Length(bars=2), "has no bar 3"),
        (Constraints(cadence="half", key="C", cadence_bar=1), Length(bars=4), "bar 1 is given"),
        (Constraints(chords="C | Fm", key="C"), Length(), "in bar 2 of the chords Fm cannot be"),
    ],
)
def test_chords_that_cannot_be_are_refused_before_anything_is_written(constraints, length, words):
    constraints = replace(constraints, time_signature=(4, 4))
    seed = seed_from_notes("C4 E4 G4 C5", WIDE[0]) if length.bars == 4 else None
    with pytest.raises(ConstraintError, match=words):
        cases.ConstrainedGrammar(WIDE[0], length, constraints, seed)
