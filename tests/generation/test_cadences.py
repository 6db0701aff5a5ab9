"""Pieces at random end on triads, on the tonic's where a key is known."""

from dataclasses import replace

import numpy as np
import pytest

from data.forms import Form
from data.harmony import final_chord, root_of_triad
from data.keys import Key
from data.score import DRUMS
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Kind
from generation.compose import compose
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import FREE, NO_RESTS, STRICT, Constraints
from generation.length import Length
from generation.model import load
from generation.request import Request
from generation.seeds import accompanied, continued, voices_of
from tests import music
from tests.models import QUARTET, untrained

PIECES = 12


CLOSING = {"strict": (STRICT, None), "as its music closes": (FREE, True)}


def written(how, final=24, keys=(), seed=None, bars=2, programs=None, closes=None, rests=NO_RESTS):
    """Pieces of quarter notes that are drawn at random, one of each program on each beat."""
    constraints = Constraints(counterpoint=how, rests=rests, programs=programs, closes=closes)
    constrained = ConstrainedGrammar(QUARTET, Length(bars=bars), constraints, seed)
    most = 3 if rests == FREE else 0  # that rest on a beat
    return [
        piece_of(constrained, np.random.default_rng(number), final, keys[number : number + 1], most)
        for number in range(PIECES)
    ]


def piece_of(constrained, rng, final, keys, most_rest=0, players=range(4)):
    """Take the first of what may come: a note of the next program, a quarter, a beat, a bar."""
    state = constrained.start(1, np.array([final]), keys)
    first = {kind: QUARTET.first(kind) for kind in Kind}
    quarter, whole = first[Kind.DURATION] + np.array([11, 47])
    others = [[quarter], [whole], [first[Kind.TEMPO]]]
    others += [[first[Kind.POSITION] + 12 * beat] for beat in range(4)]
    others += [[first[Kind.BAR] + 1], range(QUARTET.size)]
    ids, begun = constrained.given.prompt.tolist(), set()
    while not (mask := constrained.allowed(state)[0])[0]:
        notes = {n: first[Kind.NOTE] + np.arange(49) + 49 * n for n in players if n not in begun}
        for number, group in [*notes.items(), *enumerate(others, start=4)]:  # noqa: B007
            choices = np.flatnonzero(mask[group])
            if len(choices):
                break
        begun |= {number}
        ids.append(int(np.asarray(group)[rng.choice(choices)]))
        if QUARTET.kind_of[ids[-1]] == Kind.POSITION:
            begun = {*rng.permutation(4)[: rng.integers(most_rest + 1)].tolist()}
        constrained.advance(state, np.array(ids[-1:]))
    return decode(constrained.whole(np.array(ids)), QUARTET)


def tune_to_be_joined(program=40, down=0):
    """A bar of melody whose last note is an E, or a C far below, with room for others."""
    pitches = [each - down for each in (67, 72, 71, 64)]
    tune = music.piece(music.line(pitches, program=program), tempo=80)
    return accompanied(continued(tune, QUARTET), QUARTET)


def roots(pieces):
    return [root_of_triad(final_chord(piece)) for piece in pieces]


@pytest.mark.parametrize(("how", "closes"), CLOSING.values(), ids=CLOSING)
@pytest.mark.parametrize("final", [0, 24])
def test_random_notes_end_on_a_triad_in_root_position_that_fills_the_bar(final, how, closes):
    pieces = written(how, final, closes=closes)
    assert roots(pieces).count(None) <= 1
    assert roots(written(FREE, final)).count(None) > PIECES / 2
    for piece in pieces:
        position = min(final, max(piece.bars["length"][-1] - 12, 0))
        assert piece.notes["onset"].max() - piece.bar_starts[-2] <= position
        last = final_chord(piece)
        begun = last[last["onset"] == last["onset"].max()]
        assert (begun["onset"] + begun["duration"] >= piece.bar_starts[-1]).all()


def test_who_rests_begins_again_for_the_triad_at_the_end():
    closing = written(FREE, bars=4, closes=True, rests=FREE)
    assert roots(closing).count(None) <= 1
    assert roots(written(FREE, rests=FREE)).count(None) > PIECES / 2


@pytest.mark.parametrize(("how", "closes"), CLOSING.values(), ids=CLOSING)
def test_where_the_key_is_known_the_triad_is_that_of_its_tonic(how, closes):
    keys = [Key(number % 12, "minor") for number in range(PIECES)]
    found = roots(written(how, keys=keys, closes=closes))
    assert sum(root == key.tonic for root, key in zip(found, keys, strict=True)) >= PIECES - 2


def test_where_the_key_is_known_its_dominant_comes_a_beat_before():
    keys = [Key(number % 12, "minor") for number in range(PIECES)]
    found = []
    for piece, key in zip(written(STRICT, keys=keys), keys, strict=True):
        notes, step = piece.notes, piece.notes["onset"].max() - 12
        heard = notes[(notes["onset"] <= step) & (notes["onset"] + notes["duration"] > step)]
        found.append(root_of_triad(heard) == (key.tonic + 7) % 12)
    assert sum(found) >= PIECES - 2


def test_a_single_voice_ends_on_the_tonic_and_holds_it_to_the_end_of_the_bar():
    keys = [Key(number % 12, "major") for number in range(PIECES)]
    for piece, key in zip(written(STRICT, keys=keys, programs=(40,)), keys, strict=True):
        last = piece.notes[-1]
        assert last["pitch"] % 12 == key.tonic
        assert last["onset"] == piece.bar_starts[-2] + 24
        assert last["onset"] + last["duration"] == piece.bar_starts[-1]


def test_the_chord_is_built_on_what_is_given():
    """The last of a given tune is an E, of which no chord of C is asked, but one that has it."""
    seed = tune_to_be_joined()
    for piece in written(STRICT, seed=seed, bars=1):
        chord = final_chord(piece)
        assert 64 in chord["pitch"][chord["program"] == 40]
        assert (root_of_triad(chord) or 0) in (0, 1, 4, 9)


@pytest.mark.parametrize(("how", "rests"), [(STRICT, NO_RESTS), (FREE, FREE)])
@pytest.mark.parametrize(("program", "down"), [(40, 0), (42, 0), (43, 28), (43, 0)])
def test_who_joins_a_tune_to_its_end_closes_with_it(how, rests, program, down):
    """Whoever is given, above the others, among or below them; nothing asks that it closes."""
    seed = tune_to_be_joined(program, down)
    found = roots(written(how, seed=seed, bars=1, rests=rests))
    assert found.count(None) <= 1
    assert set(found) - {None} <= ({0} if down else {0, 1, 4, 9})


def test_under_a_tune_that_sounds_on_over_the_last_bar_line_the_last_chord_begins_there(tmp_path):
    """By a model, too, whose own pieces all end on the third beat."""
    tune = [*music.line([67, 72, 71], program=40), (36, 60, 64, 80, 40)]
    seed = voices_of(music.piece(tune, tempo=80), QUARTET)
    forms = (Form((4, 4), 48, 2, final_position=24),)
    model = load(untrained(tmp_path / "model.safetensors", QUARTET, forms=forms))
    asked = Constraints(counterpoint=FREE, rests=NO_RESTS)
    pieces = [each.score for each in compose(model, Request(seed, None, asked, samples=PIECES))]
    assert roots(pieces).count(None) <= 1
    assert {int(piece.notes["onset"].max()) for piece in pieces} == {48}


def test_who_was_silent_for_four_beats_does_not_strike_the_final_chord():
    """Only the second of those who join plays along with the tune; the others are silent."""
    tune = music.piece(music.line([67, 72, 71, 69, 67, 65, 67, 64], program=40), tempo=80)
    seed = accompanied(continued(tune, QUARTET), QUARTET)
    asked = Constraints(counterpoint=FREE, rests=FREE)
    constrained = ConstrainedGrammar(QUARTET, Length(bars=2), asked, seed)
    for number in range(PIECES):
        notes = piece_of(constrained, np.random.default_rng(number), 24, [], players=(2,)).notes
        assert {*notes["program"][notes["onset"] < 72].tolist()} == {40, 42}
        assert {*notes["program"][notes["onset"] >= 72].tolist()} == {40, 42}


def test_nothing_is_asked_of_a_piece_whose_end_is_unknown():
    assert roots(written(STRICT, final=-1)).count(None) > PIECES / 2


def test_no_position_is_left_out_of_bars_before_the_last():
    pieces = written(STRICT, final=0, bars=4)
    inner = [s.notes["onset"][s.notes["onset"] < s.bar_starts[-2]] for s in pieces]
    starts = [np.isin(onsets, s.bar_starts) for onsets, s in zip(inner, pieces, strict=True)]
    assert not all(at_bar.all() for at_bar in starts)


def test_a_note_before_the_final_chord_ends_with_it_or_holds_through_it():
    """Of who may play chords none holds through it, for it would be the bass of the last one."""
    allowed, drummer = {}, replace(QUARTET, programs=(DRUMS,))
    cases = ("free", FREE, None), ("voice", STRICT, None), ("chord", FREE, True)
    for name, how, closes in (*cases, ("drums", FREE, True)):
        constraints = Constraints(counterpoint=how, closes=closes)
        vocabulary = drummer if name == "drums" else QUARTET
        constrained = ConstrainedGrammar(vocabulary, Length(bars=1), constraints)
        state = constrained.start(1, np.array([24]), [Key(0, "major")])
        first = {kind: vocabulary.first(kind) for kind in Kind}
        note = first[Kind.NOTE] + 24
        for token in (first[Kind.BAR] + 1, first[Kind.TEMPO], first[Kind.POSITION] + 12, note):
            assert constrained.allowed(state)[0, token]
            constrained.advance(state, np.array([token]))
        mask = constrained.allowed(state)[0, vocabulary.ids(Kind.DURATION)]
        allowed[name] = (1 + np.flatnonzero(mask)).tolist()
    assert allowed == {
        "free": [*range(1, 37)],
        "voice": [*range(1, 13), 36],
        "chord": [*range(1, 13)],
        "drums": [*range(1, 37)],
    }


@pytest.mark.parametrize(
    "how",
    [{}, {"chords": "F | C"}, {"cadence": "authentic", "key": "C major"}],
    ids=["nothing", "chords", "a cadence"],
)
def test_what_goes_on_after_a_persons_notes_ends_on_a_chord_that_fills_the_last_bar(tmp_path, how):
    """Even where training pieces fade out, with their last notes anywhere in the bar."""
    seed = continued(music.piece(music.line([60, 64, 67, 72], program=40), tempo=80), QUARTET)
    forms = (Form((4, 4), 48, 2, final_position=31),)
    model = load(untrained(tmp_path / "model.safetensors", QUARTET, forms=forms, closing=0.2))

    def last_bars(**more):
        constraints = Constraints(counterpoint=FREE, rests=FREE, **how, **more)
        request = Request(seed, Length(bars=2), constraints, samples=PIECES)
        for piece in compose(model, request):
            score = piece.score
            last = score.notes[score.notes["onset"] >= score.bar_starts[-2]]
            late = np.unique(last["onset"] - score.bar_starts[-2])
            yield late.max(), (last["onset"] + last["duration"] - score.bar_starts[-1]).max()

    half_beat = 6  # by which the third of a chord may be late
    assert all(late <= half_beat and end == 0 for late, end in last_bars())
    assert any(late > half_beat for late, _ in last_bars(closes=False))


@pytest.mark.parametrize("meter", [(3, 4), (5, 4)])
def test_in_a_meter_that_no_training_piece_ends_in_the_final_chord_is_the_last_bar(tmp_path, meter):
    """All of it, even where a bar is longer than the longest Duration."""
    vocabulary = replace(QUARTET, meters=((3, 4), (4, 4), (5, 4)))
    forms = (Form((4, 4), 48, 2, final_position=24), Form((2, 2), 48, 2, final_position=24))
    path = untrained(tmp_path / "model.safetensors", vocabulary, forms=forms)
    asked = Constraints(counterpoint=STRICT, rests=NO_RESTS, time_signature=meter)
    for piece in compose(load(path), Request(None, Length(bars=2), asked, samples=PIECES)):
        last, score = final_chord(piece.score), piece.score
        assert {*last["onset"].tolist()} <= {*range(score.bar_starts[-2] + 1)}
        assert {*(last["onset"] + last["duration"]).tolist()} == {score.bar_starts[-1]}


def test_a_tune_that_ends_on_no_note_of_the_tonics_triad_ends_on_the_dominants():
    tune = music.piece(music.line([60, 64, 67, 60, 65, 64, 60, 62], program=40), tempo=80)
    seed = accompanied(continued(tune, QUARTET), QUARTET)
    found = roots(written(FREE, seed=seed, keys=[Key(0, "major")] * PIECES, rests=FREE))
    assert found.count(7) >= PIECES - 2
