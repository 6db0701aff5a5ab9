"""Vocabulary, tokenizer, grammar and transposition: one piece, one spelling."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.canonical import canonical
from data.score import BAR, DRUMS, NOTE, SECONDS, Score
from data.tokens.augment import transposition
from data.tokens.grammar import Grammar
from data.tokens.labels import describe
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError
from tests.music import (
    BOTH,
    GRID,
    SMALL,
    SMALL_SECONDS,
    VOCABULARIES,
    masks_one_by_one,
    random_walks,
    scores,
    transposition_range,
    vocabulary_for,
)


def spelled(ids, vocabulary):
    return [describe(vocabulary, token) for token in ids]


def test_a_piece_is_spelled_as_the_specification_says():
    bars = np.array([(3, 4, 12), (3, 4, 36), (4, 4, 48)], dtype=BAR)
    notes = np.array(
        [(0, 12, 67, 80, 40), (12, 100, 60, 80, 40), (12, 100, 60, 64, 41), (60, 48, 72, 80, 40)],
        dtype=NOTE,
    )
    score, _ = canonical(notes, bars, [72, 72, 120], GRID)
    vocabulary = vocabulary_for(score)
    assert spelled(encode(score, vocabulary), vocabulary) == [
        *("Start", "Bar 3/4", "Length 1/4", "Tempo 72", "@0", "G4 p40", "1/4", "v80"),
        *("Bar 3/4", "@0", "C4 p40", "Extend", "Extend", "1/12", "v80"),
        *("C4 p41", "Extend", "Extend", "1/12", "v64"),
        *("Bar 4/4", "Tempo 120", "@1", "C5 p40", "1", "v80", "End"),
    ]


def test_a_piece_in_seconds_has_bars_without_meter_length_or_tempo():
    notes = np.array([(25, 50, 60, 80, 0), (350, 1025, 64, 60, 0)], dtype=NOTE)
    score, _ = canonical(notes, np.empty(0, BAR), [], SECONDS)
    vocabulary = vocabulary_for(score)
    assert spelled(encode(score, vocabulary), vocabulary) == [
        *("Start", "Bar", "@0.25s", "C4", "0.5s", "v80", "Bar", "Bar", "Bar", "@0.5s", "E4"),
        *(*["Extend"] * 10, "0.25s", "v60", "End"),
    ]
    assert vocabulary.counts[Kind.TEMPO] == vocabulary.counts[Kind.LENGTH] == 0
    assert vocabulary.size < 230  # ten seconds and more without tokens by the thousand


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
def test_an_empty_piece_is_start_and_end(vocabulary):
    empty = Score(np.empty(0, NOTE), np.empty(0, BAR), np.empty(0, np.int32), vocabulary.grid)
    ids = encode(empty, vocabulary)
    assert spelled(ids, vocabulary) == ["Start", "End"]
    assert decode(ids, vocabulary) == empty


@given(scores(*BOTH))
def test_scores_come_back_from_ids_and_the_grammar_admits_each_token(score):
    vocabulary = vocabulary_for(score, transpose=3)
    ids = encode(score, vocabulary)
    assert decode(ids, vocabulary) == score
    masks = masks_one_by_one(Grammar(vocabulary), ids)  # raises where a token is not admitted
    assert masks[np.arange(len(ids) - 1), ids[1:]].all()


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
def test_thousands_of_walks_through_the_grammar_are_spellings(vocabulary):
    reaches_all = vocabulary in (SMALL, SMALL_SECONDS)
    batch = 1500 if reaches_all else 500
    walks = random_walks(vocabulary, np.random.default_rng(0), batch, steps=120)
    assert len(walks) > batch / 3
    for ids in walks:
        score = decode(ids, vocabulary)  # raises where encode(score) is not ids
        canon, losses = canonical(score.notes, score.bars, score.tempo_bpm, score.grid)
        assert canon == score
        assert (losses.merged, losses.cut) == (0, 0)
    if reaches_all:
        seen = np.unique(np.concatenate(walks))
        assert len(seen) == vocabulary.size - 1, "every id but Pad is reached"


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
def test_the_grammar_admits_nothing_else(vocabulary):
    """One token of a spelling replaced by any other: a spelling exactly if the grammar says so."""
    rng = np.random.default_rng(5)
    grammar = Grammar(vocabulary)
    for ids in random_walks(vocabulary, rng, batch=100, steps=60)[:40]:
        for _ in range(20):
            changed = ids.copy()
            changed[rng.integers(len(ids))] = rng.integers(vocabulary.size)
            assert is_admitted(grammar, changed) == is_spelling(vocabulary, changed)


@pytest.mark.parametrize("vocabulary", [SMALL, SMALL_SECONDS], ids=["beats", "seconds"])
@given(data=st.data())
def test_any_ids_are_decoded_or_refused(vocabulary, data):
    ids = data.draw(st.lists(st.integers(0, vocabulary.size - 1), max_size=12))
    assert is_admitted(Grammar(vocabulary), np.array(ids)) == is_spelling(vocabulary, ids)


def is_admitted(grammar: Grammar, ids: np.ndarray) -> bool:
    try:
        masks_one_by_one(grammar, ids)
    except VocabularyError:
        return False
    return bool(len(ids)) and int(ids[-1]) == grammar.vocabulary.first(Kind.END)


def is_spelling(vocabulary: Vocabulary, ids) -> bool:
    try:
        decode(ids, vocabulary)
    except VocabularyError:
        return False
    return True


@given(scores(*BOTH), st.integers(-12, 12))
def test_transposing_ids_is_encoding_the_transposed_piece(score, semitones):
    vocabulary = vocabulary_for(score, transpose=6)
    ids = encode(score, vocabulary)
    low, high = transposition_range(ids, vocabulary)
    moved = transposition(vocabulary, semitones)[ids]
    notes = score.notes.copy()
    is_pitched = notes["program"] != DRUMS
    if low <= semitones <= high:
        notes["pitch"][is_pitched] += semitones
        transposed, _ = canonical(notes, score.bars, score.tempo_bpm, score.grid)
        assert np.array_equal(moved, encode(transposed, vocabulary))
    elif is_pitched.any():
        assert (moved == -1).any(), "a note that leaves the vocabulary is marked"


def test_a_vocabulary_from_before_there_were_grids_of_seconds_is_read():
    assert '"kind": "beats"' in SMALL.to_json()
    assert Vocabulary.from_json(SMALL.to_json().replace(', "kind": "beats"', "")) == SMALL


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[1]", '{"meters": 3}'),
        *(SMALL.to_json().replace(*change) for change in (("grid", "g"), ("beats", "ticks"))),
        "[" * 100_000,
        *(
            json.dumps(json.loads(SMALL.to_json()) | change)
            for change in (
                *({"meters": its} for its in ([], [[4, 0]], [[17, 4]])),
                *({"meters": its} for its in ([[4, 4], [4, 4]], [[4, 4], [3, 4]])),
                *({"tempos": its} for its in ([], [0, 80], [17])),
                *({"programs": its} for its in ([40, 0], [0, 0], [500], [-1], [float("inf")])),
                {"velocities": [200]},
                {"lowest_pitch": 120},
                {"highest_pitch": 128},
                {"grid": {"steps_per_beat": 10**9, "kind": "beats"}},
                {"grid": {"steps_per_beat": 10, "kind": "seconds"}},
            )
        ),
    ],
)
def test_what_is_not_a_vocabulary_is_refused(text):
    with pytest.raises(VocabularyError):
        Vocabulary.from_json(text)


@pytest.mark.parametrize(
    ("note", "bar", "tempo", "word"),
    [
        ((0, 1, 59, 80, 0), (4, 4, 48), 120, "pitch 59"),
        ((0, 1, 60, 80, 1), (4, 4, 48), 120, "program 1"),
        ((0, 1, 60, 100, 0), (4, 4, 48), 120, "velocity 100"),
        ((0, 1, 60, 80, 0), (3, 4, 36), 120, "meter 3/4"),
        ((0, 1, 60, 80, 0), (4, 4, 48), 100, "tempo 100"),
    ],
)
def test_what_the_vocabulary_lacks_is_named(note, bar, tempo, word):
    score, _ = canonical(np.array([note], NOTE), np.array([bar], BAR), [tempo], GRID)
    with pytest.raises(VocabularyError, match=word):
        encode(score, SMALL)
