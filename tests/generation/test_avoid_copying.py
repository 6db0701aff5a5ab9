"""No run of the training set is in a new piece, whoever chooses the notes, but of given ones."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from data.canonical import ScoreBatch
from data.corpus.corpus import CorpusError
from data.corpus.runs import REPRESENTATIONS, RunIndex, index_runs, note_sequence
from data.corpus.store import Split
from data.score import Grid
from data.tokens.batch_tokenizer import encode_batch
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import ConstraintError, Constraints
from generation.length import Length
from generation.model import load, training_runs
from generation.seeds import Seed, accompanied, continued, no_seed, rewritten, voices_of
from tests.folders import write_tunes
from tests.generation.test_constrained_grammar import a_case, a_score, begun, choosers, write
from tests.models import untrained_on
from tests.music import line, piece, vocabulary_for

TUNE = [60, 62, 64, 65, 67, 69, 71, 72, 74, 72, 69, 65]
ROOMY = (
    Vocabulary(((3, 8), (2, 4)), (120,), (0, 40), 50, 73, (80,), Grid(3)),
    Vocabulary(((3, 8), (2, 4)), (80, 120), (0, 40, 128), 50, 73, (64, 80), Grid(16)),
    Vocabulary(((1, 4),), (60,), (0, 40), 50, 73, (80,), Grid(5, "seconds")),
)


def runs_of(training, size, vocabulary):
    ids, lengths = encode_batch(ScoreBatch.from_scores(training), vocabulary)
    names = [str(number) for number in range(len(training))]
    return index_runs(Split.of_ids(names, ids, lengths, vocabulary), vocabulary, size)


def windows(score, name, size):
    """The notes and the steps of each run of so many notes."""
    notes = note_sequence(ScoreBatch.from_scores([score]), name)
    places = zip(*(a.tolist() for a in (notes.program, notes.onset, notes.pitch)), strict=True)
    places, steps = [*places], notes.step.tolist()
    for first in np.flatnonzero(notes.left >= size).tolist():
        yield places[first : first + size], tuple(steps[first : first + size - 1])


def is_given(place, score):
    program, onset, pitch = place
    notes = score.notes[(score.notes["onset"] == onset) & (score.notes["pitch"] == pitch)]
    return len(notes) > 0 and (program < 0 or program in notes["program"])


def check_nothing_is_copied(score, seed, training, size):
    for name in REPRESENTATIONS:
        there = {steps for each in training for _, steps in windows(each, name, size)}
        for places, steps in windows(score, name, size):
            if steps in there:
                assert all(is_given(place, seed.score) for place in places), (name, places)


def a_seed(rng, vocabulary, score):
    """What the commands give: nothing, a beginning, a voice, a piece with a gap; of this piece."""
    programs = np.unique(score.notes["program"]).tolist()
    bars = range(*sorted(rng.choice(len(score.bars) + 1, 2, replace=False).tolist()))
    whose = [p for p in programs if rng.random() < 0.5]
    return [
        lambda: no_seed(vocabulary),
        lambda: continued(score.excerpt(0, 1), vocabulary),
        lambda: accompanied(continued(score, vocabulary), vocabulary),
        lambda: rewritten(score, vocabulary, bars, whose),
        lambda: voices_of(score, vocabulary),
    ][rng.integers(5)]()


@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
@given(number=st.integers(0, 2**32 - 1))
def test_no_run_with_a_new_note_is_in_the_training_set(number):
    rng = np.random.default_rng(number)
    vocabulary = ROOMY[rng.integers(len(ROOMY))]
    size = int(rng.integers(2, 6))
    training = [a_score(rng, vocabulary, 2, [0, 40], 0.15) for _ in range(2)]
    assume(all(len(each.bars) for each in training))
    seed = a_seed(rng, vocabulary, training[0])
    bars = len(seed.score.bars)
    length = Length(bars=bars + int(rng.integers(0 if seed.is_open.any() else 1, 4)))
    runs = runs_of(training, size, vocabulary)
    try:
        grammar = ConstrainedGrammar(vocabulary, length, Constraints(avoided_runs=runs), seed)
    except ConstraintError:
        assume(False)
    several = choosers(vocabulary, number)
    for row in write(grammar, grammar.start(len(several)), several):
        score = decode(grammar.whole(np.append(grammar.given.prompt, row)), vocabulary)
        check_nothing_is_copied(score, seed, training, size)


@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
@given(number=st.integers(0, 2**32 - 1))
def test_there_is_always_a_way_on(number):
    """Where few notes, or but one, may be played, every piece still comes to its end."""
    rng = np.random.default_rng(number)
    case = a_case(number)
    training = [a_score(rng, case.vocabulary, 4, None, 1.0) for _ in range(3)]
    runs = runs_of(training, int(rng.integers(2, 5)), case.vocabulary)
    constraints = replace(case.constraints, avoided_runs=runs)
    there = begun(replace(case, constraints=constraints))
    if there is not None:
        several = choosers(case.vocabulary, number)
        rows = write(*there, several, most=2000)
        assert rows.shape[1] < 2000


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 2**32 - 1))
def test_the_index_is_as_brute_force(number):
    rng = np.random.default_rng(number)
    vocabulary, size = ROOMY[0], int(rng.integers(2, 6))
    training = [a_score(rng, vocabulary, 4, [0], 1.0) for _ in range(3)]
    index = runs_of(training, size, vocabulary)["texture"]
    there = {steps for each in training for _, steps in windows(each, "texture", size)}
    asked = [a_score(rng, vocabulary, 4, [0], 1.0), training[0]][rng.integers(2)]
    notes = note_sequence(ScoreBatch.from_scores([asked]), "texture")
    places = [*zip(notes.onset.tolist(), notes.pitch.tolist(), strict=True)]
    for at, (onset, _) in enumerate(places):
        found = index.is_completed(places[:at], onset, np.arange(128), places[at + 1 :])
        for pitch in range(128):
            line_of = [*places[:at], (onset, pitch), *places[at + 1 :]]
            steps = [(b[0] - a[0]) * 256 + b[1] - a[1] + 128 for a, b in pairwise(line_of)]
            around = range(max(0, at - size + 1), min(at, len(line_of) - size) + 1)
            assert found[pitch] == any(tuple(steps[k : k + size - 1]) in there for k in around)


def test_the_note_that_would_complete_a_tune_is_masked_in_any_key():
    training = [piece(line(TUNE))]
    vocabulary = vocabulary_for(*training, transpose=6)
    runs = runs_of(training, 8, vocabulary)
    score = piece(line([p + 3 for p in TUNE[:7]]))
    seed = Seed(score, np.zeros((1, 84), dtype=bool))
    constraints = Constraints(avoided_runs=runs)
    grammar = ConstrainedGrammar(vocabulary, Length(bars=3), constraints, seed)
    state = grammar.start(2)
    position = vocabulary.first(Kind.POSITION)
    assert grammar.allowed(state)[:, position + 36 : position + 38].all()
    grammar.advance(state, [position + 36, position + 37])
    allowed = grammar.allowed(state)[:, vocabulary.ids(Kind.NOTE)]
    of_tune = TUNE[7] + 3 - vocabulary.lowest_pitch
    assert allowed[:, of_tune].tolist() == [False, True]  # another rhythm is another run
    assert np.delete(allowed, of_tune, axis=1).all()


def test_the_runs_are_those_of_the_models_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tunes = write_tunes(tmp_path / "tunes", 8)
    model = load(untrained_on(tunes, tmp_path / "model.safetensors"))
    runs = training_runs(model, 3)
    assert {name: type(each) for name, each in runs.items()} == dict.fromkeys(
        REPRESENTATIONS, RunIndex
    )
    with pytest.raises(ConstraintError, match="2 notes or more"):
        training_runs(model, 1)
    tunes.rename(tmp_path / "elsewhere")
    with pytest.raises((CorpusError, FileNotFoundError)):
        training_runs(model, 3)
