"""Chords that are known beforehand are told alike wherever ids are read."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from data.batches.windows import window_chords
from data.chords import KINDS, Span, parse_chord
from data.harmony import Pulse, find_chords
from data.keys import pitched_notes
from data.tokens.chords import CHORDS_WIDTH, told_chords
from data.tokens.features import SideFeatures, has_harmony
from data.tokens.given import SOON
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import Constraints
from generation.length import Length
from tests.data.batches.test_windows import split_of
from tests.generation.test_constrained_grammar import QUARTET, by_kind
from tests.music import scores, vocabulary_for, windows_of
from tests.tensors import told

SPANS = [Span(0, 12, parse_chord("Am/C")), Span(12, 24, parse_chord("G7"))]
FEATURES = SideFeatures(QUARTET, has_harmony=True)
PIECE = [
    QUARTET.first(Kind.START),
    QUARTET.first(Kind.BAR) + 1,  # 4/4, of 12 steps
    QUARTET.first(Kind.TEMPO),
    QUARTET.first(Kind.POSITION) + 3,
    QUARTET.first(Kind.NOTE) + 1,
    QUARTET.first(Kind.DURATION) + 2,
]


def harmony(ids, spans=SPANS, begin=0, key=-1, **turns):
    """(T, CHORDS_WIDTH) what is told of chords beside ids."""
    context = FEATURES.nothing(1)._replace(
        harmony=np.zeros(1, int),
        chords=told_chords([spans], **turns),
        begin=np.array([begin]),
        key=np.array([key]),
    )
    side = told(FEATURES.compute(np.array([ids]), context), FEATURES)
    return side.bits[0, :, FEATURES.blocks["harmony"]]


def words_of(row):
    """What a row tells, by name."""
    names = ["known", *(f"kind {kind}" for kind in KINDS)]
    parts = ("root", "bass", "root/tonic", "bass/tonic", "root/lowest", "bass/lowest")
    parts += ("note", "note/tonic", "note/latest")
    names += [f"{part} {n}" for part in parts for n in range(12)] + ["holds"]
    names += [f"next {kind}" for kind in KINDS]
    parts = ("next root", "next bass", "next root/tonic", "next bass/tonic", "next root/root")
    names += [f"{part} {n}" for part in parts for n in range(12)]
    names += [*(f"due {n}" for n in range(len(SOON) + 1)), "next holds"]
    return {name for name, is_told in zip(names, row, strict=True) if is_told}


def test_the_chord_in_force_and_the_next_are_told():
    said = words_of(harmony(PIECE)[-1])  # a C sharp on the second beat of Am/C
    low = (QUARTET.lowest_pitch + 1) % 12
    above = {f"root/lowest {(9 - low) % 12}", f"bass/lowest {-low % 12}"}
    above |= {f"note/latest {(n - low) % 12}" for n in (9, 0, 4)}
    now = {"known", "holds", "kind m", "root 9", "bass 0", "note 9", "note 0", "note 4"}
    due = f"due {sum(least <= 9 for least in SOON)}"
    to_come = {"next holds", "next 7", "next root 7", "next bass 7", "next root/root 10", due}
    assert said == now | above | to_come


def test_chords_come_again_where_they_do():
    later = words_of(harmony(PIECE, begin=24, sizes=[24], cycles=[24])[-1])
    assert later == words_of(harmony(PIECE)[-1])
    assert words_of(harmony(PIECE, begin=24)[-1]) == {"known"}
    last = words_of(harmony(PIECE, begin=12, sizes=[24], cycles=[24])[-1])
    assert {"root 7", "next root 9", f"due {sum(n <= 9 for n in SOON)}"} <= last
    assert "next m" in last
    assert not any(name.startswith("next") for name in words_of(harmony(PIECE, begin=12)[-1]))


def test_a_model_without_chords_has_the_numbers_it_had():
    without = SideFeatures(QUARTET)
    assert [*without.shape["side_blocks"], CHORDS_WIDTH] == [*FEATURES.shape["side_blocks"]]
    assert has_harmony(FEATURES.shape["side_blocks"])
    assert not has_harmony(without.shape["side_blocks"])
    context = without.nothing(1)._replace(harmony=np.zeros(1, int), chords=told_chords([SPANS]))
    ids = np.array([PIECE])
    untold = without.compute(ids)
    for side in (without.compute(ids, context), FEATURES.compute(ids)):
        np.testing.assert_array_equal(side.bag, untold.bag)


@given(scores(), st.integers(0, 99))
def test_windows_are_told_the_chords_that_they_have(score, seed):
    assume(len(score.notes) > 0)
    vocabulary = vocabulary_for(score)
    whole = encode(score, vocabulary)
    ends = score.notes["onset"] + score.notes["duration"]
    is_inside = ends.max() <= score.bar_starts[-1]
    if is_inside:
        notes = pitched_notes(score)
        onset, duration, pitch = (notes[n].astype(int) for n in ("onset", "duration", "pitch"))
        its = find_chords(onset, onset + duration, pitch, Pulse.of(score.bars, score.grid))
        assert window_chords(whole, vocabulary)[0] == its
    split = split_of([whole], vocabulary)
    plain, telling = (
        windows_of(split, vocabulary, len(whole) - 1, 0, silence=0.5, chords=share)
        for share in (0, 1)
    )
    (ids, targets, _), (same, likewise, side) = (w.batch(seed, 0, 2) for w in (plain, telling))
    np.testing.assert_array_equal(ids, same)
    np.testing.assert_array_equal(targets, likewise)
    block = telling.features.blocks["harmony"]
    said = told(side, telling.features).bits[..., block]
    assert (said[..., 0] == (same != 0)).all()


@pytest.mark.parametrize("bars", [4, None])
def test_who_writes_is_told_what_is_asked_for(bars):
    constraints = Constraints(chords="Am/C | G7 | N.C. | F C", time_signature=(4, 4))
    length = Length(bars=bars) if bars else Length(endless=True)
    grammar = ConstrainedGrammar(QUARTET, length, constraints, None, FEATURES)
    state = grammar.start(1)
    sides, prompt = [grammar.side(state, grammar.given.prompt[None])], grammar.given.prompt
    chosen, choose = [], by_kind(QUARTET, 0)
    for _ in range(150):
        mask = grammar.allowed(state)[0]
        if mask[0]:
            break
        chosen.append(choose(mask))
        grammar.advance(state, np.array(chosen[-1:]))
        sides.append(grammar.side(state, np.array([chosen[-1:]])))
    spans = [Span(0, 12, parse_chord("Am/C")), Span(12, 24, parse_chord("G7"))]
    spans += [Span(36, 42, parse_chord("F")), Span(42, 48, parse_chord("C"))]
    turns = {} if bars else {"sizes": [48], "cycles": [48]}
    expected = harmony([*prompt, *chosen], spans, key=state.at["key"][0], **turns)
    block = FEATURES.blocks["harmony"]
    said = np.concatenate([told(side, FEATURES).bits[0, :, block] for side in sides])
    np.testing.assert_array_equal(said[1:], expected[1:])
