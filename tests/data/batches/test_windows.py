"""Windows and prompts where there are no tempi to restate (test_datamodule.py has the others)."""

import numpy as np
import pytest

from common.interface import NOT_SCORED
from data.batches.windows import KNOWN_FINAL_SHARE, KNOWN_LENGTH_SHARE, MOST_SLIP
from data.corpus.store import Split
from data.followed_keys import key_followed
from data.score import SECONDS
from data.tokens.augment import programs_of
from data.tokens.context import rebase
from data.tokens.features import MOST_HALVES, SideFeatures
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from tests.models import QUARTET, four_parts
from tests.music import VOCABULARIES, piece, random_score, random_walks, vocabulary_for, windows_of
from tests.tensors import flat, told

CONTEXT = 48


def follow(side, vocabulary):
    """(B, T) the bars that the side input says follow, -1 where it says nothing."""
    features = SideFeatures(vocabulary)
    block = told(side, features).bits[..., features.blocks["follow"]]
    assert (block.sum(axis=2) <= 1).all()
    return np.where(block.any(axis=2), block.argmax(axis=2), -1)


def split_of(encoded, vocabulary):
    """The split that encoded pieces make."""
    return Split.of_pieces([*map(str, range(len(encoded)))], encoded, vocabulary)


def random_split(seed, transpose):
    """The split that random pieces make, and its vocabulary."""
    rng = np.random.default_rng(seed)
    pieces = [score for score in (random_score(rng) for _ in range(12)) if len(score.notes) > 8]
    vocabulary = vocabulary_for(*pieces, transpose=transpose)
    return split_of([encode(score, vocabulary) for score in pieces], vocabulary), vocabulary


@pytest.fixture(scope="module")
def performances():
    """Encoded pieces on a grid of seconds, their vocabulary, and the split that they make."""
    rng = np.random.default_rng(0)
    pieces = [random_score(rng, SECONDS) for _ in range(12)]
    pieces = [piece for piece in pieces if len(piece.notes)]
    vocabulary = vocabulary_for(*pieces, transpose=3)
    encoded = [encode(piece, vocabulary) for piece in pieces]
    return encoded, vocabulary, split_of(encoded, vocabulary)


def test_how_far_the_end_is_counted_by_hand(monkeypatch):
    """Two bars of a whole note and one of two halves: what stands beside each token."""
    notes = [(0, 48, 60, 80, 0), (48, 48, 62, 80, 0), (96, 24, 64, 80, 0), (120, 24, 65, 80, 0)]
    tune = piece(notes, bars=[(4, 4, 48)] * 3)
    vocabulary = vocabulary_for(tune)
    split = split_of([encode(tune, vocabulary)], vocabulary)
    monkeypatch.setattr("data.batches.windows.KNOWN_LENGTH_SHARE", 1)
    whole = windows_of(split, vocabulary, 24, 0).batch(0, 0, 1)[2]
    # Start; Bar Tempo Position Note Duration; Bar Position Note Duration; Bar ... End; Pad
    expected = [3, *[2] * 5, *[1] * 4, *[0] * 7, 0, *[-1] * 6]
    assert follow(whole, vocabulary).tolist() == [expected]
    rows = windows_of(split, vocabulary, 9, 0).batch(0, 0, 64)[2]
    assert {tuple(row) for row in follow(rows, vocabulary).tolist()} == {
        (3, 2, 2, 2, 2, 2, 1, 1, 1),
        (1, 1, 1, 1, 1, 0, 0, 0, 0),  # Bar, the tempo restated, Position Note Duration; Bar ...
        (0, 0, 0, 0, 0, 0, 0, 0, 0),  # the last bar: Bar, the tempo restated, two notes, End
    }


def final(side, vocabulary):
    """(B, T, 2) the half beats to the final chord, and its from the bar line; -1: not told."""
    features = SideFeatures(vocabulary)
    block = told(side, features).bits[..., features.blocks["final"]]
    halves = block.reshape(*block.shape[:2], 2, MOST_HALVES + 1)
    return np.where(halves.any(axis=3), halves.argmax(axis=3), -1)


def test_when_the_final_chord_begins_is_counted_by_hand(monkeypatch):
    """An upbeat, and two bars, the last of three beats, with a chord on the second of them."""
    notes = [(0, 12, 60, 80, 0), (12, 30, 62, 80, 0), (60, 6, 64, 80, 0), (72, 24, 65, 80, 0)]
    tune = piece(notes, bars=[(4, 4, 12), (4, 4, 48), (4, 4, 36)])
    vocabulary = vocabulary_for(tune)
    split = split_of([encode(tune, vocabulary)], vocabulary)
    for share in ("KNOWN_LENGTH_SHARE", "KNOWN_FINAL_SHARE"):
        monkeypatch.setattr(f"data.batches.windows.{share}", 1)
    whole = windows_of(split, vocabulary, 24, 0).batch(0, 0, 1)[2]
    # Start; Bar Length Tempo Position Note Duration; Bar Position Note Duration; Bar Length
    # Position Note Duration Position Note Duration; End; Pad
    due = [12] * 7 + [10] * 4 + [2] * 5 + [0] * 4
    assert final(whole, vocabulary)[0, :, 0].tolist() == due + [-1] * (24 - len(due))
    assert final(whole, vocabulary)[0, :, 1].tolist() == [2] * 20 + [-1] * 4
    rows = windows_of(split, vocabulary, 9, 0).batch(0, 0, 64)[2]
    assert {tuple(row) for row in final(rows, vocabulary)[..., 0].tolist()} == {
        (12, 12, 12, 12, 12, 12, 12, 10, 10),
        (10, 10, 10, 10, 10, 2, 2, 2, 2),  # Bar, the tempo restated, a note; Bar ...
        (2, 2, 2, 2, 2, 2, 0, 0, 0),  # the last bar, in which End is left out
    }


def test_some_windows_are_told_all_of_it_and_the_others_nothing(performances, monkeypatch):
    _, vocabulary, split = performances
    windows, count = windows_of(split, vocabulary, CONTEXT, reach=3), 300
    ids, targets, side = windows.batch(0, 0, count)
    side = told(side, windows.features)
    block = side.bits[..., windows.features.blocks["follow"]]
    is_known = block.any(axis=(1, 2))
    np.testing.assert_array_equal(block.any(axis=2), (ids > 0) & is_known[:, None])
    error = np.sqrt(KNOWN_LENGTH_SHARE * (1 - KNOWN_LENGTH_SHARE) / count)
    assert abs(is_known.mean() - KNOWN_LENGTH_SHARE) < 4 * error
    finals = side.bits[..., windows.features.blocks["final"]]
    knows_final = finals.any(axis=(1, 2))
    assert not knows_final[~is_known].any()
    assert abs(knows_final[is_known].mean() - KNOWN_FINAL_SHARE) < 4 * error
    monkeypatch.setattr("data.batches.windows.KNOWN_LENGTH_SHARE", 0)
    *plain, untold = windows.batch(0, 0, count)
    block[:] = finals[:] = False
    plain += told(untold, windows.features)
    for array, expected in zip(plain, (ids, targets, *side), strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("context", [12, 17, 40])
def test_what_was_forgotten_changes_no_later_prompt(vocabulary, context):
    for ids in random_walks(vocabulary, np.random.default_rng(1), batch=20, steps=200):
        history = ids[:0]
        for end, token in enumerate(ids, start=1):
            history = np.append(history, token)
            if len(history) > context:
                history = rebase(history, context, vocabulary)
                np.testing.assert_array_equal(history, rebase(ids[:end], context, vocabulary))


def test_some_notes_are_read_a_few_semitones_off_and_none_is_so_predicted(monkeypatch):
    monkeypatch.setattr("data.batches.windows.KNOWN_KEY_SHARE", 0)
    split, vocabulary = random_split(seed=5, transpose=1)
    assert vocabulary.is_drum_note.any()
    plain = windows_of(split, vocabulary, CONTEXT, reach=1)
    off = windows_of(split, vocabulary, CONTEXT, reach=1, misreading=0.3)
    slips, pitched = [], 0
    for step in range(20):
        (truly, target, _), (read, wanted, side) = (w.batch(0, step, 8) for w in (plain, off))
        np.testing.assert_array_equal(wanted, target)
        after = off.features.blocks["moved"].stop
        expected = flat(off.features.compute(read), off.features)
        said = flat(side, off.features)
        np.testing.assert_array_equal(said[..., after:], expected[..., after:])
        has_pitch = (vocabulary.kind_of[truly] == Kind.NOTE) & ~vocabulary.is_drum_note[truly]
        np.testing.assert_array_equal(read[~has_pitch], truly[~has_pitch])
        programs = (programs_of(ids[has_pitch], vocabulary) for ids in (truly, read))
        np.testing.assert_array_equal(*programs)
        slips += (read - truly)[has_pitch & (read != truly)].tolist()
        pitched += int(has_pitch.sum())
    assert set(slips) == {*range(-MOST_SLIP, 0), *range(1, MOST_SLIP + 1)}
    assert 0.2 < len(slips) / pitched < 0.33  # at the edges of the vocabulary notes stay


def test_the_key_of_the_piece_is_known_in_some_windows_and_moves_with_them():
    vocabulary = QUARTET
    split = split_of([encode(four_parts(40), vocabulary)], vocabulary)
    windows = windows_of(split, vocabulary, 512, reach=2)
    block = windows.features.blocks["key"]
    own = key_followed(four_parts(40).notes["pitch"])
    known = 0
    for step in range(10):
        ids, _, side = windows.batch(0, step, 8)
        side = told(side, windows.features)
        moved = side.bits[..., windows.features.blocks["moved"]]
        shift = moved[:, 0, :12] @ np.arange(1, 13) - moved[:, 0, 12:] @ np.arange(1, 13)
        key = side.bits[..., block]
        assert not key[ids == 0].any()
        for row in np.flatnonzero(key[:, 0].any(axis=1)):
            known += 1
            tonic = key[row, 0, 2:14].argmax()
            assert tonic == (own.tonic + shift[row]) % 12
            assert key[row, 0, :2].tolist() == [own.mode == "major", own.mode == "minor"]
            is_note = vocabulary.kind_of[ids[row]] == Kind.NOTE
            pitch = (ids[row, is_note] - vocabulary.first(Kind.NOTE)) % vocabulary.pitch_count
            above = (pitch + vocabulary.lowest_pitch - tonic) % 12
            assert key[row, is_note, 14:26].argmax(axis=1).tolist() == above.tolist()
    assert 20 < known < 60  # of 80


def test_given_notes_are_told_before_they_are_due_and_not_scored():
    vocabulary = QUARTET
    split = split_of([encode(four_parts(40), vocabulary)], vocabulary)
    plain, giving = (windows_of(split, vocabulary, 256, 0, given=share) for share in (0, 1))
    block = giving.features.blocks["given"]
    unscored = 0
    for step in range(20):
        (ids, target, before), (same, scored, side) = (w.batch(0, step, 4) for w in (plain, giving))
        np.testing.assert_array_equal(ids, same)
        before, side = told(before, giving.features), told(side, giving.features)
        assert not before.bits[..., block].any()
        is_off = (scored == NOT_SCORED) & (target != NOT_SCORED)
        kinds = set(vocabulary.kind_of[target[is_off]].tolist())
        assert kinds <= {Kind.NOTE, Kind.DURATION}  # of which all others are still to be learned
        np.testing.assert_array_equal(scored[~is_off], target[~is_off])
        is_told = side.bits[..., block].any(axis=2)
        assert is_told[is_off & (vocabulary.kind_of[target] == Kind.NOTE)].all()
        unscored += is_off.sum()
    assert unscored > 1000
