"""Pieces by an untrained model, which are what was asked for all the same."""

import itertools
from dataclasses import replace

import numpy as np
import pretty_midi
import pytest

from data.ensembles import Ensemble
from data.extremes import Usual, note_density
from data.forms import Form
from data.loops import Loops, loops_of
from data.midi.io import to_pretty_midi
from data.repeats import Repeat
from data.rhythms import Rhythm
from data.score import DRUMS, UNNAMED
from data.style import Style
from data.texture import has_regular_bars, rests
from data.tokens.context import bar_head_size, bar_indices
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.compose import (
    accompany,
    candidates,
    compose,
    continue_midi,
    harmonize_midi,
    rewrite_midi,
    stream,
)
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import (
    FREE,
    NO_RESTS,
    STRICT,
    UNCONSTRAINED,
    ConstraintError,
    Constraints,
)
from generation.length import Length
from generation.model import load
from generation.request import Request
from generation.seeds import (
    continued,
    no_seed,
    rewrite_from_midi,
    rewritten,
    seed_from_midi,
    seed_from_notes,
    voices_of,
)
from generation.writing import Writing, rank
from tests import music
from tests.models import BAND, PIANIST, QUARTET, four_parts, liking, tune, untrained
from tests.music import GRID, score_in


def test_many_pieces_are_written_and_ranked_in_turns(model, monkeypatch):
    monkeypatch.setattr("generation.writing.SIDE_BY_SIDE", 3)
    first = compose(model, Request(length=Length(bars=1), samples=3))
    pieces = compose(model, Request(length=Length(bars=1), samples=7))
    assert [piece.ids.tolist() for piece in pieces[:3]] == [piece.ids.tolist() for piece in first]
    assert len({tuple(piece.ids.tolist()) for piece in pieces}) == 7
    ranked = [piece.likeness for piece in rank(model, pieces)]
    monkeypatch.undo()
    at_once = [piece.likeness for piece in rank(model, pieces)]
    assert ranked == pytest.approx(at_once)
    with pytest.raises(ValueError, match="samples"):
        Request(samples=0)


def test_what_goes_beyond_all_training_pieces_ranks_last(model, monkeypatch):
    pieces = compose(model, Request(None, Length(bars=2), samples=6, random_seed=4))
    ranked = rank(model, pieces)
    unlike = ranked[0].score
    monkeypatch.setattr(Style, "is_exceeded_by", lambda _, score: score is unlike)
    again = rank(model, pieces)
    assert [p.score for p in again] == [p.score for p in [*ranked[1:], ranked[0]]]


def test_seconds_may_end_in_the_bar_after_the_last_of_the_seed_but_not_in_it(model):
    seed = seed_from_notes("C4:2 E4:1", QUARTET)  # of the last bar 0.75 seconds are left, at 80 bpm
    with pytest.raises(ConstraintError, match=r"0\.75 seconds"):
        compose(model, Request(seed, Length(seconds=0.74)))
    (written,) = compose(model, Request(seed, Length(seconds=0.8)))
    assert len(written.score.bars) == 2


def held(bars, steps, pitches=(60,)):
    """Notes held for so many steps from the first bar on, and one in the last bar."""
    notes = [(0, steps, pitch, 80, 40) for pitch in pitches]
    return music.piece([*notes, (48 * (bars - 1), 1, 72, 80, 40)], [(4, 4, 48)] * bars, 80)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (held(1300, 12), r"lasts 1\.1 hours: keep at most one hour"),
        (held(2, 12 * 99_000), r"lasts 20\.6 hours"),
        (held(2, 12 * 4700, range(36, 71)), r"takes 4(1,[12]|2,3)\d\d tokens: keep 40,000 at most"),
    ],
)
def test_bars_and_notes_of_hours_are_refused_before_anything_is_written(
    model, monkeypatch, score, words
):
    monkeypatch.setattr("generation.request.MOST_GIVEN_TOKENS", 40_000)
    seeds = (voices_of(score, QUARTET), rewritten(score, QUARTET, range(1, 2)))
    for seed in (*seeds, continued(score, QUARTET)):
        with pytest.raises(ConstraintError, match=words):
            compose(model, Request(seed, None))


def test_a_model_that_knows_one_tempo_plays_at_any(model):
    seed = seed_from_notes("C4 E4", QUARTET, Constraints(tempo_bpm=160))
    (piece,) = compose(model, Request(seed, Length(seconds=6), Constraints(tempo_bpm=160)))
    assert set(piece.score.tempo_bpm.tolist()) == {160}
    assert piece.score.notes["onset"].max() < 24 + 6 * 32 <= piece.score.bar_starts[-1]
    (same,) = compose(model, Request(seed_from_notes("C4 E4", QUARTET), Length(bars=4)))
    (fast,) = compose(model, Request(seed, Length(bars=4), Constraints(tempo_bpm=160)))
    assert np.array_equal(same.score.notes, fast.score.notes)
    figures = [rank(model, [piece])[0].likeness for piece in (same, fast)]
    assert figures[0] == figures[1]
    with pytest.raises(ConstraintError, match="no tempo of 9"):
        compose(model, Request(constraints=Constraints(tempo_bpm=9)))


@pytest.mark.parametrize("rests", [FREE, NO_RESTS])
def test_the_busier_music_shall_be_the_more_notes_it_has(model, rests):
    constraints, seed = Constraints(rests=rests), voices_of(four_parts(8), QUARTET)
    for given, length in ((None, Length(bars=8)), (seed, None)):
        notes = []
        for busy in (2, 10, 30):
            asked = replace(constraints, busy=busy)
            pieces = compose(model, Request(given, length, asked, samples=4))
            notes.append(sum(np.count_nonzero(~piece.is_given) for piece in pieces))
        assert notes == sorted(notes)
        assert notes[2] > 2 * notes[0]


def test_chords_stand_above_what_is_new_where_they_hold(model, tmp_path):
    tune(tmp_path / "tune.mid")
    seed = seed_from_midi(tmp_path / "tune.mid", QUARTET, bars=2)
    (piece,) = compose(model, Request(seed, Length(bars=2), Constraints(chords="D | G A")))
    assert [(span.begin, span.end) for span in piece.chords] == [(96, 144), (144, 168), (168, 192)]
    alone = piece.without_given(QUARTET)
    assert alone.score == piece.new_notes()
    assert [(span.begin, span.end) for span in alone.chords] == [(0, 48), (48, 72), (72, 96)]
    assert [span.chord for span in alone.chords] == [span.chord for span in piece.chords]
    assert not alone.is_given.any()


@pytest.mark.parametrize(
    ("bars", "voices", "expected"),
    [
        ((3, 4), (), range(96, 192)),
        ((2, 2), (2, 3), range(48, 96)),
        ((5, None), (), range(192, 288)),
    ],
)
def test_some_bars_are_rewritten_and_the_rest_is_kept(model, bars, voices, expected):
    score = four_parts(6)
    programs = [39 + voice for voice in voices] or [40, 41, 42, 43]
    notes = score.notes
    is_open = np.isin(notes["onset"], expected) & np.isin(notes["program"], programs)
    seed = rewrite_from_midi(to_pretty_midi(score), QUARTET, bars=bars, voices=voices)
    for piece in compose(model, Request(seed, None, samples=3)):
        assert np.array_equal(piece.score.notes[piece.is_given], notes[~is_open])
        assert np.array_equal(piece.score.bars, score.bars)
        new = piece.score.notes[~piece.is_given]
        assert len(new)
        assert np.isin(new["onset"], expected).all()
        assert (new["onset"] + new["duration"] <= expected.stop).all()
        assert np.isin(new["program"], programs).all()
    written = rewrite_midi(model, to_pretty_midi(score), bars, voices=voices, best_of=2)
    assert len(score_in(written, GRID).bars) == 6


def test_chords_of_one_instrument_are_joined_by_nobody(model):
    chords = music.piece([(12 * k, 12, 48 + 7 * n, 80, 40) for k in range(4) for n in range(4)])
    seed = continued(chords, QUARTET)
    assert accompany(model, seed) is seed  # and nothing is said of it, as nobody asked
    thin = continued(music.piece([(12 * k, 12, 60 + k, 80, 40) for k in range(4)]), QUARTET)
    assert accompany(model, thin).is_open.any(axis=1).tolist() == [False, True, True, True]


def test_a_thin_seed_is_joined_by_the_other_voices_from_its_first_note_on(model):
    seed = seed_from_notes("R C4 E4 G4 C5", QUARTET)
    for piece in compose(model, Request(accompany(model, seed), Length(bars=2), samples=3)):
        new = piece.score.notes[~piece.is_given]
        early = new[new["onset"] < seed.end_step]
        assert early["onset"].min() >= 12
        assert len(early)
        assert 40 not in early["program"]
        assert piece.score.notes[piece.is_given]["pitch"].tolist() == [60, 64, 67, 72]
    whole = seed_from_notes("Am F", QUARTET)
    assert accompany(model, whole) is whole
    assert accompany(model, no_seed(QUARTET)).end_step == 0
    low = seed_from_notes("C4", QUARTET).played_by(4, QUARTET)
    assert low.score.notes["program"].tolist() == [43]


def test_named_parts_count_by_name_and_rest_as_they_like(model):
    band = replace(model, vocabulary=BAND)  # four voices, as its programs were
    rows = [(12 * k, 12, 48 + 7 * n, 80, 2) for k in range(8) for n in range(4)]
    song = music.piece([(84, 12, 72, 80, 0), *rows], (), grid=BAND.grid)
    opens = accompany(band, continued(song, BAND)).is_open
    assert opens.any(axis=1).tolist() == [False, True, False, True, True]


def test_only_those_join_that_play_together_and_with_pitches_that_they_have(band):
    """A model of a corpus in which one file in a hundred has drums, and a second bass."""
    style = Style(
        voices=2,
        ensembles=(Ensemble(99, (0, 1)), Ensemble(1, (0, 1, 2, DRUMS, UNNAMED + 33))),
        pitches={0: tuple(range(60, 72)), 1: (48, 49), DRUMS: (38, 42)},
    )
    band = replace(band, style=style)
    seed = accompany(band, seed_from_notes("C4 E4 G4 C5", BAND))
    assert seed.is_open.any(axis=1).tolist() == [False, True, False, False, False]
    pieces = compose(band, Request(seed, Length(bars=4), samples=16))
    new = np.concatenate([piece.score.notes[~piece.is_given] for piece in pieces])
    assert {*new["program"][new["onset"] < seed.end_step].tolist()} <= {1}
    assert {*new["program"].tolist()} == {0, 1}
    for program in (0, 1):
        assert {*new["pitch"][new["program"] == program].tolist()} <= {*style.pitches[program]}
    low = compose(
        band, Request(None, Length(bars=2), Constraints(pitch_range=(40, 45), programs=(1,)))
    )
    assert low[0].score.notes["pitch"].max() <= 45  # which is asked for


def test_of_many_programs_those_play_that_play_together_in_a_training_piece(band):
    ensembles = Ensemble(1, (0, 1)), Ensemble(2, (2, DRUMS))
    style = Style(ensembles=ensembles)
    band = replace(band, style=style)
    pieces = compose(band, Request(None, Length(bars=4), samples=24))
    playing = [frozenset(piece.score.notes["program"].tolist()) for piece in pieces]
    assert {*playing} == {frozenset(each.programs) for each in ensembles}
    assert sum(0 in programs for programs in playing) < 12
    asked = compose(band, Request(None, Length(bars=8), Constraints(programs=(0, 2)), samples=4))
    assert {*np.concatenate([p.score.notes["program"] for p in asked]).tolist()} == {0, 2}
    seed = seed_from_notes("C4 E4 / C3:2", BAND)
    (longer,) = compose(band, Request(seed, Length(bars=8)))
    assert {*longer.score.notes["program"].tolist()} == {0, 1}


def test_those_harmonize_a_tune_that_play_with_its_instrument_in_a_training_piece(band):
    solo, duo, trio = Ensemble(9, (0,)), Ensemble(1, (0, 1)), Ensemble(1, (0, 2, DRUMS))
    style = Style(ensembles=(solo, Ensemble(5, (1, DRUMS)), duo, trio))
    band = replace(band, style=style)

    def playing(tune, constraints=UNCONSTRAINED):
        request = Request(voices_of(tune, BAND, (1,)), None, constraints, samples=24)
        return {frozenset(p.score.notes["program"].tolist()) for p in compose(band, request)}

    tune = seed_from_notes("C5 D5 E5 F5 G5:4", BAND).score
    assert playing(tune) == {frozenset(each.programs) for each in (duo, trio)}
    assert playing(tune, Constraints(programs=(0, 1, 2))) == {frozenset((0, 1, 2))}
    alone = replace(band.style, ensembles=(solo, Ensemble(5, (1, DRUMS))))
    band = replace(band, style=alone)  # none plays with it: others join as they play
    assert playing(tune) == {frozenset((0, 1, DRUMS))}


def test_of_many_programs_each_keeps_to_the_register_that_it_has_in_a_training_piece(band):
    ensemble = Ensemble(1, (0, 2, DRUMS))
    low, high = {0: (60, 61), 2: (48,), DRUMS: (38,)}, {0: (70, 71), 2: (50,), DRUMS: (42,)}
    style = Style(ensembles=(ensemble,), registers=(low, high, {0: (65,), 1: (66,)}))
    band = replace(band, style=style)

    def in_registers(request):
        found = set()
        for piece in compose(band, request):
            new = piece.score.notes[~piece.is_given]
            played = {tuple(each) for each in new[["program", "pitch"]].tolist()}
            of = [{(p, k) for p, ks in each.items() for k in ks} for each in (low, high)]
            found |= {n for n in range(2) if played and played <= of[n]} or {None}
        return found

    free = Request(None, Length(bars=4), samples=12)
    assert in_registers(free) == {0, 1}
    tune = seed_from_notes("C5 D5 E5 F5 G5:4", BAND)
    harmonized = voices_of(tune.score, BAND, (1,))
    assert in_registers(Request(harmonized, None, samples=12)) == {0, 1}
    again = Form((4, 4), 48, 4, 0, (Repeat(96, 144, 96, True),))
    band = replace(band, style=replace(style, forms=(again,)))
    assert in_registers(free) == {0, 1}  # what follows a repeat, too
    asked = replace(free, constraints=Constraints(pitch_range=(60, 66)))
    pitches = [piece.score.notes["pitch"].tolist() for piece in compose(band, asked)]
    assert {*itertools.chain(*pitches)} - {38, 42} <= {
        *range(60, 67)
    }  # what is asked for goes first


def test_what_goes_on_keeps_each_of_many_programs_in_the_register_that_it_has(band):
    rows = [(12 * n, 12, pitch, 80, p) for n in range(4) for p, pitch in ((0, 72), (DRUMS, 38))]
    seed = continued(music.piece(rows, grid=BAND.grid), BAND)
    for piece in compose(band, Request(seed, Length(bars=4), samples=6)):
        new = piece.score.notes[~piece.is_given]
        assert {*new["pitch"][new["program"] == DRUMS].tolist()} <= {38}
        assert {*new["pitch"][new["program"] == 0].tolist()} <= {*range(67, 79)}


def test_the_model_is_told_which_of_many_programs_play(model):
    grammar = ConstrainedGrammar(BAND, Length(bars=4))
    state = grammar.begin(2, ensembles=[(0, 1), (2, DRUMS)])
    start = BAND.first(Kind.START)
    bag = grammar.side(state, np.full((2, 1), start)).bag[:, 0]
    silent = grammar.features.blocks["silent"]
    told = [sorted(n - silent.start for n in row if silent.start <= n < silent.stop) for row in bag]
    assert told == [[2, 3, 4], [0, 1, 4]]
    few = ConstrainedGrammar(QUARTET, Length(bars=4))
    state = few.begin(1, ensembles=[(40, 41)])
    (row,) = few.side(state, np.full((1, 1), start)).bag[:, 0]
    silent = few.features.blocks["silent"]
    assert not any(silent.start <= n < silent.stop for n in row)


def test_a_voice_that_mostly_rests_is_joined_where_it_rests(model):
    seed = accompany(model, seed_from_notes("C5 D5 E5 F5 / R G3 R:2", QUARTET))
    first, second, *_ = seed.is_open
    assert not first.any()
    assert second.tolist() == [True] * 12 + [False] * 12 + [True] * 24


def with_critic(model, name, weight):
    """A model whose critic likes pieces with more of a statistic."""
    return replace(model, style=replace(model.style, critic=liking(name, weight)))


def test_of_candidates_the_best_is_kept_and_a_critic_judges_where_there_is_one(model):
    request = Request(length=Length(bars=2), samples=2, random_seed=3, candidates=3)
    rows = compose(model, replace(request, samples=6, candidates=1))
    best = [rank(model, rows[n : n + 3])[0].ids.tolist() for n in (0, 3)]
    assert [piece.ids.tolist() for piece in compose(model, request)] == best
    judge = with_critic(model, "pace: notes a second", 1.0)
    slow = [rank(judge, rows[n : n + 3])[0] for n in (0, 3)]
    assert [p.ids.tolist() for p in compose(judge, request)] == [p.ids.tolist() for p in slow]
    likeness = [piece.likeness for piece in rank(judge, rows)]
    assert likeness == sorted(likeness, reverse=True)
    assert candidates(model) == 1 < candidates(judge)
    old = replace(judge.style.critic, version=0)
    style = replace(model.style, critic=old)  # of other statistics: not asked
    assert candidates(replace(model, style=style)) == 1


def onsets(score):
    """Steps at which notes begin, a bar."""
    return len(np.unique(score.notes["onset"])) / len(score.bars)


@pytest.mark.parametrize(
    ("sign", "repeat", "first_bar", "deviations"),
    [(-1, Repeat(96, 192, 48, True), 0, 1), (1, Repeat(48, 96, 48, True), 2, 0.5)],
)
def test_of_every_few_bars_a_critic_takes_what_it_likes(model, sign, repeat, first_bar, deviations):
    """Also of those that follow a repeat."""
    formed = replace(model, style=Style(forms=(Form((4, 4), 48, 6, 36, (repeat,)),)))
    judge = with_critic(formed, "pace: onsets a bar", float(sign))
    asked = Constraints(time_signature=(4, 4))
    request = Request(None, Length(bars=6), asked, samples=8, random_seed=7)
    writing = Writing(judge, replace(request, candidates=6))
    assert not any(writing)  # none is told: it could be left out yet
    assert {len(piece.score.bars) for piece in writing.pieces} == {6}
    plain, chosen = (
        [onsets(piece.score.excerpt(first_bar, 6)) for piece in pieces]
        for pieces in (compose(judge, request), writing.pieces)
    )
    assert sign * np.mean(chosen) > sign * np.mean(plain) + deviations * np.std(plain)


@pytest.mark.parametrize(("asked", "moves"), [({}, True), ({"counterpoint": STRICT}, False)])
def test_a_tune_octaves_off_is_read_where_its_instrument_plays_and_put_back(model, asked, moves):
    ranged = replace(model, style=Style(ranges={40: (60, 79), 41: (55, 74)}))
    high, low = (
        voices_of(seed_from_notes(text, QUARTET).score, QUARTET)
        for text in ("C4 D4 E4 F4 C4:4", "C3 D3 E3 F3 C3:4")
    )
    pieces = [compose(ranged, Request(seed, None, Constraints(**asked)))[0] for seed in (high, low)]
    for piece, seed in zip(pieces, (high, low), strict=True):
        assert np.array_equal(piece.score.notes[piece.is_given], seed.score.notes)
        assert np.array_equal(piece.ids, encode(piece.score, QUARTET))
    new, lower = (piece.score.notes[~piece.is_given] for piece in pieces)
    assert len(new)
    assert np.array_equal(new, lower) == moves


LOW, HIGH = ("C3 D3 E3 F3 C3:4", "C4 D4 E4 F4 C4:4")
RANGED = Style(ranges={40: (60, 79)}, pitches={40: tuple(range(60, 80))})


def test_a_low_tune_goes_on_where_it_lies(model):
    ranged = replace(model, style=RANGED)
    low, high = (Request(seed_from_notes(text, QUARTET), Length(bars=4)) for text in (LOW, HIGH))
    (one,), (other,) = (compose(ranged, request) for request in (low, high))
    expected = other.score.notes.copy()
    expected["pitch"][expected["program"] == 40] -= 12
    assert np.array_equal(one.score.notes, expected)
    assert np.array_equal(one.ids, encode(one.score, QUARTET))
    heard = [(n.onset_steps, n.program, n.note.pitch) for n in stream(ranged, low)]
    new = one.score.notes[~one.is_given]
    assert heard == new[["onset", "program", "pitch"]].tolist()
    assert 40 in new["program"]


@pytest.mark.parametrize(("text", "lowest"), [("R C3 E3 C3 C3:4", 48), ("R C2 E2 C2 C2:4", 36)])
def test_a_bar_of_a_low_tune_is_rewritten_where_it_lies(model, text, lowest):
    seed = rewritten(seed_from_notes(text, QUARTET).score, QUARTET, range(1), [40])
    pieces = compose(replace(model, style=RANGED), Request(seed, None, samples=16))
    pitch = np.concatenate([piece.score.notes["pitch"] for piece in pieces])
    assert lowest <= pitch.min() < pitch.max() < lowest + 20
    ranged = replace(model, style=replace(RANGED, pitches={}))  # any note that can be moved back
    pieces = compose(ranged, Request(seed, None, samples=16))
    assert min(piece.score.notes["pitch"].min() for piece in pieces) >= QUARTET.lowest_pitch


@pytest.mark.parametrize(
    "asked", [{"counterpoint": STRICT}, {"chords": "C | F | C | G"}, {"pitch_range": (60, 79)}]
)
def test_a_tune_stays_where_others_depend_on_its_height_and_that_is_said(model, asked):
    ranged, constraints = replace(model, style=RANGED), Constraints(**asked)
    request = Request(seed_from_notes(LOW, QUARTET), Length(bars=2), constraints)
    assert request.in_ranges(ranged) == (request, {})
    said = ["most notes of Violin lie beyond C4 to G5"] * ("pitch_range" not in asked)
    assert [clause.split(",")[0] for clause in request.strange_heights(ranged)] == said
    alone = replace(ranged, vocabulary=replace(QUARTET, programs=(40,)))
    moves = replace(request, seed=seed_from_notes(LOW, alone.vocabulary)).in_ranges(alone)[1]
    assert moves == ({} if "pitch_range" in asked else {40: 12})


def test_the_likeliest_comes_first_and_each_has_its_figure(model):
    seed = seed_from_notes("C4 E4 G4 C5", QUARTET)
    pieces = compose(model, Request(seed, Length(bars=2), samples=4))
    judged = rank(model, pieces)
    assert sorted(map(id, (p.score for p in judged))) == sorted(map(id, (p.score for p in pieces)))
    figures = [-piece.likeness for piece in judged]
    assert figures == sorted(figures)
    assert len(set(figures)) == 4

    for piece in judged:  # each by itself
        (nats,) = model.token_nats([piece.ids])
        new = nats[len(encode(seed.score, QUARTET)) - 2 :]
        notes = len(piece.score.notes) - 4
        assert -piece.likeness == pytest.approx(new.sum() / notes, rel=1e-5)


def test_what_is_kept_after_the_first_choice_counts_as_well(model):
    """The notes after a gap have to follow from those in it."""
    seed = rewritten(four_parts(4), QUARTET, range(1, 3), [40, 42])
    (piece,) = compose(model, Request(seed, None))
    (judged,) = rank(model, [piece])
    (nats,) = model.token_nats([piece.ids])
    second_bar = int(bar_indices(piece.ids, QUARTET)[1])
    first = second_bar + bar_head_size(piece.ids, second_bar, QUARTET)
    notes = (piece.score.notes["onset"] >= seed.first_open_step).sum()
    assert -judged.likeness == pytest.approx(nats[first - 1 :].sum() / notes)


def test_the_rules_of_its_own_music_hold_where_nothing_else_is_asked(model):
    """Untrained, it keeps them only because its training set is said to."""
    strict = replace(model, style=Style(parallels_per_100_bars=0.5, rests=0.01))
    (rested,) = compose(model, Request(None, Length(bars=4)))
    (full,) = compose(strict, Request(None, Length(bars=4)))
    (asked,) = compose(
        model, Request(None, Length(bars=4), Constraints(counterpoint=STRICT, rests=NO_RESTS))
    )
    (freed,) = compose(
        strict, Request(None, Length(bars=4), Constraints(counterpoint=FREE, rests=FREE))
    )
    assert np.array_equal(full.ids, asked.ids)
    assert np.array_equal(freed.ids, rested.ids)
    regular = replace(model, style=Style(regular_bars=0.96))
    kept, left = (
        sum(
            has_regular_bars(piece.score)
            for piece in compose(regular, Request(None, Length(bars=9), asked, samples=8))
        )
        for asked in (Constraints(), Constraints(regular_bars=False))
    )
    assert left < kept  # long notes may need other bars
    half = replace(model, style=Style(regular_bars=0.5))
    pieces = compose(half, Request(None, Length(bars=9), samples=8))
    assert left < sum(has_regular_bars(piece.score) for piece in pieces) < 8  # drawn
    assert rests(full.score) < rests(rested.score)


@pytest.mark.parametrize("numerator", [3, 4])
def test_a_given_piece_of_one_meter_goes_on_in_it(tmp_path, numerator):
    """Half of the training pieces change it; 6/8 is as long as 3/4, and 2/2 as 4/4."""
    six = {3: (6, 8), 4: (2, 2)}[numerator]
    vocabulary = replace(QUARTET, meters=((2, 2), (3, 4), (4, 4), (6, 8)))
    free = load(untrained(tmp_path / "free.safetensors", vocabulary, regular_bars=0.5))
    tune = music.line(range(60, 66), program=40)
    seed = continued(music.piece(tune, [(*six, 12 * numerator)] * 2, 80), vocabulary)
    kept, left = (
        {
            tuple(bar)
            for piece in compose(free, Request(seed, Length(bars=4), asked, samples=4))
            for bar in piece.score.bars[["numerator", "denominator"]].tolist()
        }
        for asked in (Constraints(), Constraints(regular_bars=False))
    )
    assert kept == {six}
    assert len(left) > 1


def test_chords_from_nothing_are_in_the_meter_of_most_training_bars(model):
    waltzes = replace(model, style=Style(meter=(3, 4)))
    asked = Constraints(chords="C | G7 | C")
    for its, meter in ((waltzes, (3, 4)), (model, (4, 4))):
        (piece,) = compose(its, Request(None, Length(), asked))
        bars = piece.score.bars[["numerator", "denominator"]].tolist()
        assert bars == [meter] * 3


def test_a_stream_gives_the_notes_that_the_piece_has(model, tmp_path):
    pianist = load(untrained(tmp_path / "model.safetensors", PIANIST))
    for one, seed in (
        (model, seed_from_notes("C4 E4 G4", QUARTET)),
        (pianist, seed_from_notes("C4 E4 G4", PIANIST)),
        (model, None),
    ):
        (piece,) = compose(one, Request(seed, Length(bars=4), random_seed=3))
        given = 0 if seed is None else 3
        request = Request(seed, Length(bars=4), random_seed=3, candidates=3)  # none is chosen
        heard = list(stream(one, request))
        notes = piece.score.notes[given:]
        assert [live.program for live in heard] == notes["program"].tolist()
        assert [live.note.pitch for live in heard] == notes["pitch"].tolist()
        assert [live.note.velocity for live in heard] == notes["velocity"].tolist()
        onset = notes["onset"].astype(int)
        for name, steps in (("start", onset), ("end", onset + notes["duration"])):
            seconds = [getattr(live.note, name) for live in heard]
            np.testing.assert_allclose(seconds, piece.score.step_seconds(steps))


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_piece_from_nothing_takes_the_repeats_of_a_training_piece(model, is_whole):
    formed, plain = (
        replace(model, style=Style(forms=(Form((4, 4), 48, 4, 36, repeats),)))
        for repeats in ((Repeat(48, 96, 48, is_whole),), ())
    )
    how = {"samples": 8, "random_seed": 5, "constraints": Constraints(time_signature=(4, 4))}
    pieces = compose(formed, Request(None, Length(bars=4), **how))
    before = compose(plain, Request(None, Length(bars=4), **how))
    repeated = 0
    for piece, first in zip(pieces, before, strict=True):
        assert not piece.is_given.any()
        takes_form = first.score.bars["length"][0] == 48 and first.score.bar_starts[-2] >= 96
        if not np.array_equal(piece.ids, first.ids):  # else the melody was silent in bar 1
            assert takes_form
            assert len(piece.score.bars) == 4
            assert passages(piece.score, 0, is_whole) & passages(piece.score, 48, is_whole)
            assert passages(piece.score, 0, True) == passages(first.score, 0, True)
            repeated += 1
    assert repeated
    writing = Writing(formed, Request(None, Length(bars=4), **how))
    told = [note for notes in writing for note in notes]
    for number, (piece, other) in enumerate(zip(pieces, writing.pieces, strict=True)):
        assert np.array_equal(piece.ids, other.ids)
        its = sorted((n.onset_steps, n.program, n.note.pitch) for row, n in told if row == number)
        assert its == sorted(piece.score.notes[["onset", "program", "pitch"]].tolist())


def test_in_strict_counterpoint_no_repeat_begins_with_parallels(model, monkeypatch):
    form = Form((4, 4), 48, 3, 36, (Repeat(48, 96, 48, True),))
    formed = replace(model, style=Style(forms=(form,)))
    monkeypatch.setattr("generation.writing.has_parallels_at", lambda _, step: step == 48)
    for how in (STRICT, FREE):
        asked = Constraints(time_signature=(4, 4), counterpoint=how, rests=NO_RESTS)
        pieces = compose(formed, Request(None, Length(bars=3), asked, samples=3))
        repeats = [passages(p.score, 0, True) == passages(p.score, 48, True) for p in pieces]
        assert any(repeats) == (how == FREE)


def test_the_candidates_go_on_as_they_are_where_a_later_repeat_is_left_out(model, monkeypatch):
    repeats = (Repeat(48, 96, 48, True), Repeat(192, 240, 48, True))
    formed = replace(model, style=Style(forms=(Form((4, 4), 48, 8, 36, repeats),)))
    judge = with_critic(formed, "pace: onsets a bar", 1.0)
    asked = Constraints(time_signature=(4, 4), counterpoint=STRICT, rests=NO_RESTS)
    request = Request(None, Length(bars=8), asked, samples=3, candidates=4, random_seed=3)
    monkeypatch.setattr("generation.writing.has_parallels_at", lambda _, step: step == 192)
    left_out = [piece.ids for piece in compose(judge, request)]
    one = replace(judge, style=replace(judge.style, forms=(Form((4, 4), 48, 8, 36, repeats[:1]),)))
    for ids, other in zip(left_out, compose(one, request), strict=True):
        assert np.array_equal(ids, other.ids)


def passages(score, begin, is_whole):
    """Onsets and pitches of what begins in 48 steps: of all programs, or of each by itself."""
    notes = score.notes[(score.notes["onset"] >= begin) & (score.notes["onset"] < begin + 48)]
    found = [(int(n["onset"]) - begin, int(n["program"]), int(n["pitch"])) for n in notes]
    if is_whole:
        return {tuple(found)}
    return {tuple(n for n in found if n[1] == program) for _, program, _ in found}


def test_what_is_unusual_is_written_anew_where_nothing_is_given_or_asked_for(model):
    request = Request(None, Length(bars=8), samples=4, random_seed=2)
    plain = compose(model, request)
    densities = sorted(note_density(piece.score) for piece in plain)
    usual = Usual((densities[1], densities[2]), (0.0, 99.0))
    styled = replace(model, style=Style(usual=usual))
    pieces = compose(styled, request)
    was_usual = [all(usual.has(piece.score)) for piece in plain]
    assert sum(was_usual) == 2
    for old, new, kept in zip(plain, pieces, was_usual, strict=True):
        assert np.array_equal(old.ids, new.ids) == kept
    assert [p.ids.tolist() for p in pieces] == [p.ids.tolist() for p in compose(styled, request)]
    asked = replace(request, constraints=Constraints(key="C major"))
    same = zip(compose(model, asked), compose(styled, asked), strict=True)
    assert all(np.array_equal(old.ids, new.ids) for old, new in same)
    empty = replace(request, seed=no_seed(model.vocabulary))  # as commands have it
    for old, new in zip(pieces, compose(styled, empty), strict=True):
        assert np.array_equal(old.ids, new.ids)
    shorter = replace(request, length=Length(bars=7))
    same = zip(compose(model, shorter), compose(styled, shorter), strict=True)
    assert all(np.array_equal(old.ids, new.ids) for old, new in same)


@pytest.mark.parametrize(
    ("steps", "chords"),
    [((0, 6), None), ((3,), None), ((1, 4, 7), None), ((0, 6), "C | F G"), ((3,), "C | F G")],
)
def test_notes_begin_on_the_steps_of_a_beat_that_are_drawn(model, steps, chords):
    styled = replace(model, style=Style(rhythms=(Rhythm(3, steps),)))
    request = Request(None, Length(bars=4), Constraints(chords=chords), samples=3, random_seed=1)
    whole = Constraints(chords=chords, rests=NO_RESTS, time_signature=(4, 4))
    unbroken = replace(request, constraints=whole)
    for piece in [*compose(styled, request), *compose(styled, unbroken)]:
        is_drawn = np.isin(piece.score.bar_positions[1] % 12, steps)
        assert is_drawn.all() or chords  # which have the last word
        assert len(piece.score.bars) == 4
    has_rests = [rests(piece.score) > 0 for piece in compose(styled, unbroken)]
    assert not any(has_rests) or chords or 0 not in steps  # what ends with a bar is off these


def test_bars_are_played_again_as_training_pieces_have_it(band):
    digits = {program: "0102400211"[shift:] for shift, program in enumerate(BAND.programs)}
    styled = replace(band, style=Style(loops=(Loops(digits),)))
    request = Request(None, Length(bars=9), Constraints(time_signature=(4, 4)), samples=4)
    again = missed = other = 0
    for piece in compose(styled, request):
        for program, lags in digits.items():
            own = piece.score.notes[piece.score.notes["program"] == program]
            onset, ends, pitch = own["onset"], own["onset"] + own["duration"], own["pitch"]
            for bar in range(1, 8):  # the last one closes
                lag = 48 * int(lags[bar % len(lags)])
                now = {*zip(onset, pitch, strict=True)}
                now = {each for each in now if each[0] // 48 == bar}
                due = {(at + lag, high) for at, high in zip(onset, pitch, strict=True)}
                due = {each for each in due if each[0] // 48 == bar}
                if not lag or not due:
                    continue
                sounds = {(a, h) for a, h in due if ((onset < a) & (ends > a) & (pitch == h)).any()}
                again += len(now & due)
                missed += len(due - sounds - now)
                other += len(now - due)
    assert again > 100
    assert missed == other == 0


def test_what_follows_a_seed_plays_its_bars_again_as_it_began(band):
    figures = {0: (60, 64, 60, 64), 1: (48, 48, 48, 48), DRUMS: (36, 38, 40, 42)}
    rows = [
        row
        for program, firsts in figures.items()
        for bar, first in enumerate(firsts)
        for row in music.line([first, first + 1, first], 48 * bar, 16, program)
    ]
    seed = continued(music.piece(rows, [(4, 4, 48)] * 4, grid=BAND.grid), BAND)
    known = Loops({0: "00222222222", 2: "01111111111", DRUMS: "00004444444"})
    styled = replace(band, style=Style(loops=(known, Loops({0: "0000"}))))
    lags = {0: (2,) * 6, 1: (1,) * 6, DRUMS: (4,) * 6}

    def again(model, constraints=UNCONSTRAINED):
        """How often the six bars after the seed repeat one as they should, and how often not."""
        request = Request(seed, Length(bars=7), constraints, samples=3)
        found = []
        for notes in (piece.score.notes for piece in compose(model, request)):
            last = {*notes["onset"][notes["onset"] >= 48 * 10].tolist()}
            assert last == {48 * 10} or constraints.chords  # nothing after the final chord
            for program, its in lags.items():
                own = notes[notes["program"] == program][["onset", "pitch", "duration"]]
                bars = [
                    {(on % 48, *rest) for on, *rest in own.tolist() if on // 48 == bar}
                    for bar in range(10)
                ]
                found += [bars[4 + n] == bars[4 + n - lag] for n, lag in enumerate(its)]
        return found.count(True), found.count(False)

    assert again(styled) == (54, 0)
    assert again(band)[0] < 5
    assert again(styled, Constraints(chords="C | F | G | C | C | F | C"))[0] < 5


def test_one_or_two_short_notes_are_not_played_again(band):
    bars = {0: [(0, 12)], 1: [(0, 11)], 2: [(0, 7), (24, 7)], DRUMS: [(0, 2), (12, 2), (24, 2)]}
    rows = [
        (48 * bar + at, duration, 60, 80, program)
        for program, notes in bars.items()
        for bar in range(2)
        for at, duration in notes
    ]
    seed = continued(music.piece(rows, [(4, 4, 48)] * 2, grid=BAND.grid), BAND)
    styled = replace(band, style=Style(loops=(Loops(dict.fromkeys((0, DRUMS), "01111111")),)))
    for piece in compose(styled, Request(seed, Length(bars=5), samples=3)):
        again = {p: lags[2:6] for p, lags in loops_of(piece.score).of.items()}
        assert again[0] == again[DRUMS] == "1111"
        assert again[1] != "1111" != again[2]


def test_what_loops_beyond_all_training_pieces_is_written_anew():
    folk = load("folk")
    untold = replace(folk, style=replace(folk.style, usual=None))
    request = Request(None, Length(bars=16), samples=8, random_seed=5)
    plain, kept = (
        [folk.style.is_exceeded_by(piece.score) for piece in compose(each, request)]
        for each in (untold, folk)
    )
    assert any(plain)
    assert not any(kept)


def test_a_stream_without_a_length_never_ends(model):
    heard = list(itertools.islice(stream(model, Request(length=Length(endless=True))), 300))
    assert len(heard) == 300
    starts = [live.note.start for live in heard]
    assert starts == sorted(starts)


def test_pretty_midi_in_and_out(model, tmp_path):
    score = tune(tmp_path / "tune.mid")
    given = to_pretty_midi(score)
    longer = continue_midi(model, given, Length(bars=2), best_of=2, alone=True)
    assert isinstance(longer, pretty_midi.PrettyMIDI)
    read = score_in(longer, GRID)
    assert len(read.bars) == 6
    assert np.array_equal(read.notes[: len(score.notes)], score.notes)
    from_text = score_in(continue_midi(model, "C4 E4", Length(notes=5), alone=True), GRID)
    assert from_text.notes["pitch"][:2].tolist() == [60, 64]
    assert len(from_text.notes) == 7
    assert len(score_in(continue_midi(model), GRID).bars) == 8
    around = score_in(harmonize_midi(model, given, voices=(2,)), GRID)
    assert np.array_equal(
        around.notes[around.notes["program"] == 41][["onset", "pitch"]],
        score.notes[["onset", "pitch"]],
    )


def test_a_seed_is_retimed_whole(model):
    seed = replace(no_seed(QUARTET), changes=("x",)).at_tempo(100)
    assert seed.changes == ("x",)
    longer = seed_from_notes("C4:8", QUARTET).at_tempo(100)
    assert set(longer.score.tempo_bpm.tolist()) == {100}
