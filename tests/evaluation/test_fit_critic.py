"""The critic that is learned from a model's pieces and real ones."""

import numpy as np
import pytest

from common.typed_json import from_json, to_json
from data.critic import Critic
from data.statistics import IS_OF_ENDING, NAMES
from evaluation import fit_critic as fitting
from evaluation.fit_critic import fit_critic
from generation.compose import compose
from generation.length import Length
from generation.model import load
from generation.request import Request
from tests.models import QUARTET, four_parts, untrained
from tests.music import EMPTY

ENOUGH = 10**6


def test_real_pieces_are_more_like_real_ones_than_what_noise_is(tmp_path, monkeypatch):
    model = load(untrained(tmp_path / "m.safetensors", QUARTET))
    monkeypatch.setattr(fitting, "FEWEST_PIECES", 6)
    monkeypatch.setattr(fitting, "PIECES", 6)
    real = [four_parts(2 + n % 3) for n in range(8)]
    critic = fit_critic(model, real, ENOUGH)
    noise = compose(model, Request(length=Length(bars=3), samples=4, random_seed=9))
    likeness = [critic.likeness(piece.score) for piece in noise]
    assert max(likeness) < min(critic.likeness(score) for score in real)
    assert from_json(Critic, to_json(critic)) == critic
    assert fit_critic(model, real, budget=10) is None
    assert fit_critic(model, real[:5], ENOUGH) is None


def test_how_a_piece_ends_says_nothing_before_it_has_ended():
    zeros, ones, ending = (
        tuple(np.array(each, dtype=float).tolist())
        for each in (np.zeros(len(NAMES)), np.ones(len(NAMES)), IS_OF_ENDING)
    )
    critic, score = Critic(zeros, ones, ending), four_parts(3)
    assert critic.likeness(score) != 0
    assert critic.likeness(score, is_whole=False) == 0
    every = Critic(zeros, ones, ones)
    rest = every.likeness(score) - critic.likeness(score)
    assert every.likeness(score, is_whole=False) == pytest.approx(rest)


def test_what_is_not_defined_says_nothing_and_other_statistics_are_refused():
    zeros, ones = (tuple(np.full(len(NAMES), n).tolist()) for n in (0.0, 1.0))
    assert Critic(zeros, ones, ones).likeness(EMPTY) == 0
    with pytest.raises(ValueError, match="weighs"):
        Critic(zeros[1:], ones[1:], ones[1:])
    assert not Critic((), (), (), version=0).is_current
