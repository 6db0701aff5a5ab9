"""ConstrainedGrammar: any combination of what is asked for, whoever chooses the tokens."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from data.canonical import canonical
from data.keys import key_number, key_pitch_classes
from data.score import BAR, DRUMS, NOTE, Grid
from data.texture import has_regular_bars
from data.tokens.features import SideFeatures
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import NO_RESTS, STRICT, ConstraintError, Constraints
from generation.length import Length
from generation.seeds import Seed, accompanied, continued, no_seed, rewritten
from tests.data.batches.test_windows import follow
from tests.music import piece
from tests.tensors import told

COARSE = Grid(3)
VOCABULARIES = (
    Vocabulary(
        ((2, 4), (3, 8), (4, 4), (7, 32)), (72, 80, 120), (0, 40, 128), 60, 63, (64, 80), COARSE
    ),
    Vocabulary(((3, 8), (4, 4)), (120,), (0, 40), 60, 61, (80,), COARSE),
    Vocabulary(((3, 8), (4, 4)), (90, 120), (0,), 60, 60, (80,), COARSE),
    Vocabulary(((1, 4),), (60,), (0, 40, 128), 60, 63, (64, 80), Grid(5, "seconds")),
    Vocabulary(((1, 4),), (60,), (128,), 36, 36, (80,), Grid(4, "seconds")),
)
MOST_TOKENS = 20_000


def by_kind(vocabulary, seed):
    """Draws a kind and then one of its ids, so that rare kinds are seen."""
    rng = np.random.default_rng(seed)

    def choose(mask):
        ids = np.flatnonzero(mask)
        kinds = vocabulary.kind_of[ids]
        return int(rng.choice(ids[kinds == rng.choice(np.unique(kinds))]))

    return choose


def by_rank(vocabulary, seed):
    """Always the one of highest rank, as greedy sampling: ends nothing that it need not end."""
    rank = np.random.default_rng(seed).permutation(vocabulary.size)
    return lambda mask: int(np.argmax(np.where(mask, rank, -1)))


CHOOSERS = {
    "by kind": by_kind,
    "by rank": by_rank,
    "lowest": lambda vocabulary, seed: lambda mask: int(np.flatnonzero(mask)[0]),
    "highest": lambda vocabulary, seed: lambda mask: int(np.flatnonzero(mask)[-1]),
}


def write(constrained, state, choosers, most=MOST_TOKENS):
    """(B, T) ids that the choosers take, a chooser a row, until every row has ended."""
    pad = constrained.vocabulary.first(Kind.PAD)
    columns = []
    while len(columns) < most:
        mask = constrained.allowed(state)
        assert mask.any(axis=1).all(), "a state without a way on"
        if mask[:, pad].all():
            assert mask.sum() == len(mask)
            break
        ids = np.array(
            [c(row) if not row[pad] else pad for c, row in zip(choosers, mask, strict=True)]
        )
        assert mask[np.arange(len(ids)), ids].all()
        constrained.advance(state, ids)
        columns.append(ids)
    return np.array(columns).T.reshape(len(choosers), -1)


def a_score(rng, vocabulary, bars, programs=None, sparse=0.5):
    """A Score that the vocabulary spells, of at most so many bars."""
    grid = vocabulary.grid
    rows, tempi = [], []
    for _ in range(bars if grid.has_meter else 0):
        meter = vocabulary.meters[rng.integers(len(vocabulary.meters))]
        whole = grid.bar_steps(*meter)
        rows.append((*meter, rng.integers(1, whole + 1) if rng.random() < 0.3 else whole))
        tempi.append(rng.choice(vocabulary.tempos))
    spans = np.array(rows, BAR)
    span = int(spans["length"].sum()) if rows else bars * grid.steps_per_beat
    count = int(rng.integers(1, max(2, int(span * sparse) + 1)))
    notes = np.empty(count, NOTE)
    notes["onset"] = rng.integers(0, span, count)
    notes["duration"] = np.minimum(rng.geometric(rng.uniform(0.1, 0.9), count), 4 * span)
    notes["pitch"] = rng.integers(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1, count)
    notes["velocity"] = rng.choice(vocabulary.velocities, count)
    notes["program"] = rng.choice(programs or vocabulary.programs, count)
    return canonical(notes, spans, tempi, grid)[0]


@dataclass
class Case:
    """One thing asked for."""

    vocabulary: Vocabulary
    length: Length
    constraints: Constraints
    seed: Seed

    def grammar(self):
        return ConstrainedGrammar(self.vocabulary, self.length, self.constraints, self.seed)


def some(rng, value, chance=0.35):
    return value if rng.random() < chance else None


def a_case(seed, vocabularies=VOCABULARIES):
    rng = np.random.default_rng(seed)
    vocabulary = vocabularies[rng.integers(len(vocabularies))]
    grid = vocabulary.grid
    low, high = sorted(rng.integers(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1, 2))
    constraints = Constraints(
        key=some(rng, rng.choice(["C", "d minor", "F#", "Bbm"]), 0.3),
        pitch_range=some(rng, (int(low), str(high))),
        programs=some(
            rng, tuple(p for p in vocabulary.programs if rng.random() < 0.7) or vocabulary.programs
        ),
        max_polyphony=some(rng, int(rng.integers(1, 5)), 0.5),
        counterpoint=some(rng, STRICT),
        closes=some(rng, True),
        monophonic=some(rng, tuple(p for p in vocabulary.programs if rng.random() < 0.5)),
        rests=some(rng, NO_RESTS),
        tempo_bpm=some(rng, int(rng.choice(vocabulary.tempos))) if grid.has_meter else None,
        time_signature=some(rng, vocabulary.meters[rng.integers(len(vocabulary.meters))])
        if grid.has_meter
        else None,
        regular_bars=some(rng, True),
    )
    length = [
        Length(bars=int(rng.integers(1, 8))),
        Length(bars=int(rng.integers(1, 4))),
        Length(seconds=float(rng.uniform(0.1, 6))),
        Length(notes=int(rng.integers(1, 12))),
    ][rng.integers(4)]
    seed = a_seed(rng, vocabulary)
    if len(seed.score.bars) and rng.random() < 0.5:
        length = Length(bars=len(seed.score.bars))
    return Case(vocabulary, length, constraints, seed)


def a_seed(rng, vocabulary):
    """Nothing, or notes as people give them: a beginning, a tune, a piece with a gap, anything."""
    way = rng.integers(6)
    if way == 0:
        return no_seed(vocabulary)
    programs = [p for p in vocabulary.programs if rng.random() < 0.5] if way < 4 else None
    score = a_score(rng, vocabulary, int(rng.integers(1, 5)), programs, rng.uniform(0.1, 1))
    ends = score.notes["onset"] + score.notes["duration"]
    size = min(int(ends.max(initial=0)), int(score.bar_starts[-1]))
    closed = Seed(score, np.zeros((len(vocabulary.programs), size), bool))
    if way == 1:
        return closed
    if way == 2:
        return accompanied(closed, vocabulary)
    if way == 3:
        return accompanied(continued(score, vocabulary), vocabulary)
    if way == 4:
        first, last = sorted(rng.integers(len(score.bars), size=2).tolist())
        whose = [p for p in vocabulary.programs if rng.random() < 0.7]
        return rewritten(score, vocabulary, range(first, last + 1), whose)
    runs = rng.random((len(vocabulary.programs), size // 5 + 1)) < rng.random()
    return replace(closed, is_open=np.repeat(runs, 5, axis=1)[:, :size])


def polyphony(notes, steps):
    """How many of the notes sound in each of the steps."""
    ends = notes["onset"] + notes["duration"]
    return [int(((notes["onset"] <= step) & (ends > step)).sum()) for step in steps]


def seconds_limit(case, score):
    """The step that the seconds asked for are, by the tempi of the piece itself."""
    end = score.end_step + 10_000
    seconds = score.step_seconds(np.arange(end))
    return max(1, int(np.argmin(np.abs(seconds - case.length.seconds))))


def names(notes):
    return [*map(tuple, notes[["onset", "program", "pitch"]].tolist())]


def check(case, ids):
    """That a finished piece is what was asked for."""
    vocabulary, constraints, length = case.vocabulary, case.constraints, case.length
    given, is_open = case.seed.score, case.seed.is_open
    score = decode(ids, vocabulary)  # raises where the ids are not encode(score)
    assert len(score.notes)
    is_given = np.array([name in set(names(given.notes)) for name in names(score.notes)])
    assert np.array_equal(score.notes[is_given], given.notes)
    free = score.notes[~is_given]
    size, kept = is_open.shape[1], len(given.bars)
    for onset, duration, _, _, program in free.tolist():
        where = is_open[vocabulary.programs.index(program), onset : onset + duration]
        assert where.all(), "a new note outside of its region"
    if len(score.bars) < kept:  # the last have no note
        assert length == Length()
    assert np.array_equal(score.bars[:kept], given.bars[: len(score.bars)])
    if constraints.tempo_bpm is None:
        assert np.array_equal(score.tempo_bpm[:kept], given.tempo_bpm[: len(score.bars)])
    else:
        assert (score.tempo_bpm == constraints.tempo_bpm).all()
    pitched = free[free["program"] != DRUMS]
    if constraints.key:
        assert key_pitch_classes(constraints.parsed_key)[pitched["pitch"] % 12].all()
    if constraints.pitch_range:
        low, high = map(int, constraints.pitch_range)
        assert ((low <= pitched["pitch"]) & (pitched["pitch"] <= high)).all()
    if constraints.programs:
        assert np.isin(free["program"], constraints.programs).all()
    ends = free["onset"] + free["duration"]
    if constraints.max_polyphony:
        steps = [*map(range, free["onset"].tolist(), ends.tolist())]
        steps = np.unique(np.concatenate([*map(np.array, steps), []])).tolist()
        assert max(polyphony(score.notes, steps), default=0) <= constraints.max_polyphony
    is_strict = constraints.counterpoint == STRICT
    for program in vocabulary.programs if is_strict else constraints.monophonic or ():
        own = free["program"] == program
        is_apart = ends[own][:-1] <= free["onset"][own][1:]
        assert is_apart.all() or program == DRUMS, "two new notes of one voice overlap"
    if constraints.time_signature:
        whole = vocabulary.grid.bar_steps(*constraints.time_signature)
        new_bars = score.bars[kept:].tolist()
        assert all(bar == (*constraints.time_signature, whole) for bar in new_bars)
    if length.bars or length.seconds:
        all_ends = score.notes["onset"] + score.notes["duration"]
        assert ((ends if length.bars == kept else all_ends) <= score.bar_starts[-1]).all()
    if length.bars:
        assert len(score.bars) == length.bars
    if length.seconds:
        limit = seconds_limit(case, score)
        assert (free["onset"] < limit).all()
        assert score.bar_starts[-2] < limit <= score.bar_starts[-1]
        from_tempo = max(kept, 1) - (constraints.tempo_bpm is None)
        assert len(np.unique(score.tempo_bpm[from_tempo:])) <= 1
    if length.notes:
        assert (free["onset"] >= size).sum() == length.notes
    return score


def begun(case):
    """The constrained grammar and its state after the prompt, or None where the case is refused."""
    try:
        constrained = case.grammar()
    except ConstraintError:
        return None
    return constrained, constrained.start(len(CHOOSERS))


def choosers(vocabulary, seed):
    return [make(vocabulary, seed) for make in CHOOSERS.values()]


def is_met(case, seed):
    """Whether a case is taken; if so it is written, by choosers of that number, and checked."""
    ready = begun(case)
    if ready is None:
        return False
    constrained, state = ready
    rows = write(constrained, state, choosers(case.vocabulary, seed))
    assert rows.shape[1] < MOST_TOKENS, "no end"
    for row in rows:
        check(case, constrained.whole(np.concatenate([constrained.given.prompt, row])))
    return True


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.integers(0, 2**32 - 1))
def test_whatever_is_asked_for_together_is_met(seed):
    assume(is_met(a_case(seed), seed))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.integers(0, 2**32 - 1))
def test_a_row_is_as_it_would_be_alone(seed):
    case = a_case(seed)
    ready = begun(case)
    assume(ready)
    constrained, state = ready
    together = write(constrained, state, choosers(case.vocabulary, seed))
    for row, choose in zip(together, choosers(case.vocabulary, seed), strict=True):
        alone = write(constrained, constrained.start(1), [choose])[0]
        assert np.array_equal(row[: len(alone)], alone)
        assert not row[len(alone) :].any(), "nothing but Pad after the end"


QUARTET = Vocabulary(((3, 4), (4, 4)), (72, 80, 96), (0, 40, 128), 48, 72, (80,), COARSE)
PIANIST = VOCABULARIES[3]


def pieces(constraints, length, seed, vocabulary=QUARTET, count=4):
    """What choosers make of it, as Scores."""
    constrained = ConstrainedGrammar(vocabulary, length, constraints, seed)
    state, prompt = constrained.begin(count), constrained.given.prompt
    constrained.read(state, prompt[1:])
    rows = write(constrained, state, [by_kind(vocabulary, number) for number in range(count)])
    wholes = [constrained.whole(np.concatenate([prompt, row])) for row in rows]
    return [decode(whole, vocabulary) for whole in wholes]


def harmonized(tune):
    """The tune as a seed under which all others may play, and its length."""
    return accompanied(continued(tune, QUARTET), QUARTET), Length(bars=len(tune.bars))


def tune_of(pitches, duration=3, program=40, bars=((4, 4, 12),), tempo=80):
    """Quarter notes, or as long as they are said to be, one after the other."""
    notes = [(3 * i, duration, p, 80, program) for i, p in enumerate(pitches)]
    return piece(notes, bars, tempo, COARSE)


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_without_end_there_is_always_more(vocabulary, name):
    """Also for who would Extend, or begin empty bars, as long as it may."""
    constrained = ConstrainedGrammar(vocabulary, Length(endless=True))
    rows = write(constrained, constrained.start(1), [CHOOSERS[name](vocabulary, 3)], most=3000)
    assert rows.shape == (1, 3000)
    start = vocabulary.first(Kind.START)
    score = decode(constrained.whole(np.append(start, rows[0])), vocabulary)
    assert len(score.notes) > 20


def test_where_nothing_is_asked_for_the_grammar_alone_decides():
    constrained = ConstrainedGrammar(QUARTET)
    state, choose = constrained.start(1), by_kind(QUARTET, 1)
    plain = constrained.grammar.start(1)
    ended = False
    while not ended:
        mask = constrained.allowed(state)
        assert np.array_equal(mask, constrained.grammar.allowed(plain))
        ids = np.array([choose(mask[0])])
        constrained.advance(state, ids)
        constrained.grammar.advance(plain, ids)
        ended = ids[0] == QUARTET.first(Kind.END)


def test_where_others_join_a_voice_and_go_on_the_same_rows_are_told_the_key_and_not():
    tune = tune_of([60, 64, 67, 72])
    seed, length = harmonized(tune)
    grammar = ConstrainedGrammar(QUARTET, Length(bars=2), None, seed)
    blocks = grammar.features.blocks
    for ids in (grammar.given.prompt[None], grammar.given.prompt[None, -1:]):
        side = grammar.side(grammar.start(1), ids)
        bits = told(side, grammar.features).bits
        with_key, without = bits[..., blocks["key"]]
        assert with_key.any(axis=-1).all()
        assert not without.any()
        assert bits[..., blocks["given"]].any(axis=(1, 2)).all()
    alone = ConstrainedGrammar(QUARTET, Length(bars=2), None, continued(tune, QUARTET))
    for other in (alone, ConstrainedGrammar(QUARTET, length, None, seed)):
        assert not other.guidance
        assert len(other.side(other.start(1), other.given.prompt[None]).bag) == 1
    in_minor = Constraints(key="A minor")
    asked = ConstrainedGrammar(QUARTET, Length(bars=2), in_minor, continued(tune, QUARTET))
    assert asked.guidance
    assert asked.start(1).at[0].key == key_number(in_minor.parsed_key)
    assert not ConstrainedGrammar(QUARTET, Length(bars=2), in_minor).guidance  # told from the start


@pytest.mark.parametrize("is_known", [False, True])
def test_a_model_that_knows_chords_is_led_to_those_that_are_asked_for(is_known):
    features, chords = SideFeatures(QUARTET, is_known), Constraints(chords="Am | E")
    grammar = ConstrainedGrammar(QUARTET, Length(bars=2), chords, features=features)
    side = grammar.side(grammar.start(1), grammar.given.prompt[None])
    assert bool(grammar.guidance) == is_known
    if is_known:
        with_chords, without = told(side, features).bits[..., features.blocks["harmony"]]
        assert with_chords.any()
        assert not without.any()


def test_the_last_given_notes_say_when_the_final_chord_begins():
    seed, length = harmonized(tune_of([60, 62, 64, 65]))
    grammar = ConstrainedGrammar(QUARTET, length, seed=seed)
    last = grammar.given.notes.onset.max() - grammar.given.last_bar_start
    assert grammar.start(2, np.array([7, 8])).at["final_position"].tolist() == [last] * 2
    longer = ConstrainedGrammar(QUARTET, Length(bars=len(seed.score.bars) + 1), seed=seed)
    assert longer.start(2, np.array([7, 8])).at["final_position"].tolist() == [7, 8]


@pytest.mark.parametrize(("program", "has_chord"), [(40, True), (DRUMS, False)])
def test_what_goes_on_after_notes_ends_on_a_chord_but_not_after_drums(program, has_chord):
    seed = continued(tune_of([60] * 4, program=program), QUARTET)
    assert ConstrainedGrammar(QUARTET, Length(bars=2), seed=seed).has_end == has_chord


def test_the_last_bar_and_an_upbeat_make_a_whole_bar():
    bar, length, seen = QUARTET.first(Kind.BAR), QUARTET.first(Kind.LENGTH), []
    for chooser in CHOOSERS.values():  # the highest would hold notes past the end
        for seed in range(12):
            grammar = ConstrainedGrammar(QUARTET, Length(bars=3))
            state, choose = grammar.start(1), chooser(QUARTET, seed)
            ids = [QUARTET.first(Kind.START), bar, length + 2]  # an upbeat of 3 steps to 3/4
            for token in ids[1:]:
                grammar.advance(state, np.array([token]))
            while not grammar.allowed(state)[0, 0]:
                ids.append(choose(grammar.allowed(state)[0]))
                grammar.advance(state, np.array(ids[-1:]))
            bars = decode(grammar.whole(ids), QUARTET).bars
            if len({*bars["numerator"].tolist()}) == 1:
                seen.append(3 * bars["numerator"][0] - bars["length"][-1])
    assert len(seen) > 4
    assert {*seen} == {3}


@pytest.mark.parametrize("is_regular", [False, True])
def test_no_bar_inside_is_shortened(is_regular):
    asked, regular = Constraints(regular_bars=is_regular), 0
    for seed in range(20):
        for chooser in (by_kind, by_rank):
            grammar = ConstrainedGrammar(QUARTET, Length(bars=9), asked)
            (row,) = write(grammar, grammar.start(1), [chooser(QUARTET, seed)])
            score = decode(grammar.whole(np.append(grammar.given.prompt, row)), QUARTET)
            is_whole = (score.bars["length"][1:-1] == score.bars["length"][1]).all()
            regular += has_regular_bars(score) and is_whole and len(score.bars) == 9
    assert regular > 35 if is_regular else regular < 20  # random notes may need longer bars


def test_after_a_shortened_bar_that_is_given_comes_the_rest_of_it():
    seed = continued(tune_of([60] * 7, bars=[(4, 4, 12), (4, 4, 9)]), QUARTET)
    for score in pieces(Constraints(regular_bars=True), Length(bars=5), seed, count=8):
        assert score.bars["length"][:4].tolist() == [12, 9, 3, 12]


def test_the_final_chord_is_due_when_the_bars_between_are_what_they_will_be():
    """Whole bars of 4/4, but the third, of 3 steps, and the fourth, of 9."""
    bar, length = QUARTET.first(Kind.BAR) + QUARTET.meters.index((4, 4)), QUARTET.first(Kind.LENGTH)
    grammar = ConstrainedGrammar(QUARTET, Length(bars=6), Constraints(regular_bars=True))
    state = grammar.start(1, np.array([6]))
    onsets = []
    for token in (bar, bar, bar, length + 2, bar, length + 8, bar, bar):
        grammar.advance(state, np.array([token]))
        onsets.append(int(state.at[0].final_onset))
    assert onsets == [66, 66, 66, 54, 54, 54, 54, 54]
    assert state.at[0].expected_end == 60


def test_the_bars_of_other_lengths_are_reckoned():
    bar, position, note, duration = (
        PIANIST.first(k) for k in (Kind.BAR, Kind.POSITION, Kind.NOTE, Kind.DURATION)
    )
    one_bar = [bar, position, note, duration, PIANIST.first(Kind.VELOCITY)]
    ids = np.array([[PIANIST.first(Kind.START), *one_bar, *one_bar]])
    for length, expected in (
        (Length(seconds=4), [4] + [3] * 5 + [2] * 5),  # of four seconds two follow the second
        (Length(notes=6), [6] + [5] * 5 + [4] * 5),  # of six notes, one a bar, four
        (Length(endless=True), [-1] * 11),
        (Length(), [-1] * 11),
    ):
        constrained = ConstrainedGrammar(PIANIST, length)
        state = constrained.start(1)
        for token in ids[0, 1:]:
            constrained.advance(state, np.array([token]))
        assert follow(constrained.side(state, ids), PIANIST)[0].tolist() == expected


def test_a_window_that_begins_inside_the_piece_is_told_the_same_of_its_end():
    grammar = ConstrainedGrammar(QUARTET, Length(bars=4))
    state, blocks = grammar.start(1, np.array([6])), grammar.features.blocks
    ids = encode(tune_of([60] * 12, bars=[(4, 4, 12)] * 3), QUARTET)[:-1]
    grammar.read(state, ids[1:])
    begin = np.flatnonzero(QUARTET.kind_of[ids] == Kind.BAR)[1]
    whole, later = (
        told(grammar.side(state, each[None]), grammar.features).bits[0]
        for each in (ids, ids[begin:])
    )
    for name in ("follow", "final"):
        assert np.array_equal(whole[begin:, blocks[name]], later[:, blocks[name]])
        assert len(np.unique(later[:, blocks[name]], axis=0)) > 1


def test_what_was_begun_when_sampling_stopped_is_left_out():
    constrained = ConstrainedGrammar(QUARTET, Length(endless=True))
    ids = encode(tune_of([60, 62, 64]), QUARTET)[:-1]
    for size in range(1, len(ids) + 1):
        whole = constrained.whole(ids[:size])
        assert whole[-1] == QUARTET.first(Kind.END)
        score = decode(whole, QUARTET)
        assert len(score.notes) == (QUARTET.kind_of[ids[:size]] == Kind.DURATION).sum()


EIGHT, DUET = continued(tune_of([60] * 8), QUARTET), harmonized(tune_of([60, 62]))[0]
LONG = continued(tune_of([60, 62], duration=30), QUARTET)  # notes that ring for over two bars


@pytest.mark.parametrize(
    ("seed", "length", "constraints", "words"),
    [
        (EIGHT, Length(bars=1), {}, "longer than the piece"),
        (EIGHT, Length(seconds=1), {}, "longer than the piece"),
        (LONG, Length(bars=2), {}, "sound on"),
        (LONG, Length(seconds=5), {}, "sound on"),
        (LONG, Length(bars=3), {"max_polyphony": 1, "time_signature": (3, 4)}, "sound on"),
        (continued(tune_of([60] * 4, duration=1), QUARTET), Length(bars=1), {}, "no room"),
        (DUET, Length(bars=1), {"programs": (40,)}, "no room"),
        (
            harmonized(tune_of([60, 62], 6))[0],
            Length(bars=1),
            {"max_polyphony": 1},
            "2 of the given notes sound",
        ),
        (harmonized(tune_of([60] * 4))[0], Length(bars=1), {"max_polyphony": 1}, "no room"),
        (DUET, Length(bars=1), {"time_signature": (3, 4)}, "bars of their own"),
    ],
)
def test_what_is_given_and_leaves_no_way_to_the_end_is_refused(seed, length, constraints, words):
    with pytest.raises(ConstraintError, match=words):
        ConstrainedGrammar(QUARTET, length, Constraints(**constraints), seed)


def test_a_region_in_which_the_only_note_to_play_sounds_already_is_refused():
    held = tune_of([60], duration=22, bars=((4, 4, 12),) * 2)
    is_open = np.zeros((len(QUARTET.programs), 24), dtype=bool)
    is_open[QUARTET.programs.index(40), 12:] = True

    def grammar(**constraints):
        asked = Constraints(programs=(40,), **constraints)
        return ConstrainedGrammar(QUARTET, Length(bars=2), asked, Seed(held, is_open))

    assert grammar(pitch_range=(60, 61)).start(1)
    assert grammar(pitch_range=(60, 60)).start(1)  # at its end it may begin anew
    held.notes["duration"] = 24
    with pytest.raises(ConstraintError, match="no room"):
        grammar(pitch_range=(60, 60))


@pytest.mark.parametrize(
    "given_lengths",
    [{"bars": 0}, {"seconds": 0.0}, {"notes": -1}, {"seconds": np.nan}, {"bars": 1, "notes": 2}],
)
def test_a_length_is_one_and_above_nothing(given_lengths):
    with pytest.raises(ConstraintError):
        Length(**given_lengths)


@pytest.mark.parametrize(("asked", "bar"), [(None, 12), ((3, 4), 9)])
def test_the_end_is_expected_in_bars_of_the_time_signature_that_is_asked_for(asked, bar):
    seed, _ = harmonized(tune_of([60, 62, 64, 65]))
    assert seed.score.bars.tolist() == [(4, 4, 12)]
    length = Length(bars=len(seed.score.bars) + 2)
    grammar = ConstrainedGrammar(QUARTET, length, Constraints(time_signature=asked), seed)
    state = grammar.start(1, np.array([2]))
    end = seed.score.bar_starts[-1]
    assert state.at["expected_end"].tolist() == [end + 2 * bar]
    assert state.at["final_onset"].tolist() == [end + bar + 2]
