"""What a note was chosen among is the model's own distribution."""

import numpy as np
import pytest

from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.compose import compose
from generation.constraints import UNCONSTRAINED, Constraints
from generation.explain import ALTERNATIVES, explain_note
from generation.length import Length
from generation.request import Request
from tests.models import QUARTET


def explained(model, score, number, constraints=UNCONSTRAINED):
    model, grammar = Request(None, Length(), constraints).to(model)
    return explain_note(model, grammar, score, number)


def test_a_note_is_as_likely_as_the_definition_says(model):
    score = compose(model, Request(length=Length(bars=16)))[0].score  # longer than the context
    ids = encode(score, QUARTET)
    (nats,) = model.token_nats([ids])
    places = np.flatnonzero(QUARTET.kind_of[ids] == Kind.NOTE)
    assert len(ids) > model.network.config.context_length
    for number in (0, 1, 5):
        note = score.notes[number]
        its = [
            share
            for *which, share in explained(model, score, number).alternatives
            if which == [note["program"], note["pitch"]]
        ]
        assert its == [pytest.approx(np.exp(-nats[places[number] - 1]), rel=1e-4)]
    last = explained(model, score, len(score.notes) - 1)
    assert len(last.looked_at) == len(score.notes) - 1


def test_the_likeliest_come_first_and_all_adds_up(model):
    score = compose(model, Request(length=Length(bars=2)))[0].score
    for number in range(len(score.notes)):
        told = explained(model, score, number)
        shares = [share for *_, share in told.alternatives]
        assert shares[:ALTERNATIVES] == sorted(shares[:ALTERNATIVES], reverse=True)
        assert sum(shares) + told.nothing <= 1 + 1e-9
        assert told.looked_at.shape == (number,)
        assert number == 0 or told.looked_at.sum() == pytest.approx(1)


def test_a_constraint_leaves_only_what_it_allows(model):
    constraints = Constraints(programs=(40, 41), key="C major")
    score = compose(model, Request(length=Length(bars=2), constraints=constraints))[0].score
    for program, pitch, _ in explained(model, score, 3, constraints).alternatives:
        assert program in (40, 41)
        assert pitch % 12 in (0, 2, 4, 5, 7, 9, 11)
