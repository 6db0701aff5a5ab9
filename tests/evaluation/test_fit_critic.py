"""The critic that is learned from a model's pieces and real ones."""

import numpy as np
import pytest

from common.typed_json import from_json, to_json
from data.critic import Critic
from data.moves import IS_KEPT_BACK, MOVES, moves_of
from data.statistics import IS_OF_ENDING, Music
from evaluation import fit_critic as fitting
from evaluation.fit_critic import fit_critic
from generation.compose import compose
from generation.length import Length
from generation.model import load
from generation.request import Request
from tests.models import ONES, QUARTET, ZEROS, four_parts, liking, untrained
from tests.music import EMPTY, line, piece

ENOUGH = 10**6


def duet(third, keys):
    """Eight bars of two voices that go up and down together, a third or a fifth apart."""
    upper = np.resize([60, 62, 64, 62], 32) + keys
    lower = upper - (4 if third else 7)
    notes = [*line(upper.tolist(), program=40), *line(lower.tolist(), program=42)]
    return piece(notes, bars=[(4, 4, 48)] * 8)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model, from which a critic learns by six pieces."""
    monkeypatch.setattr(fitting, "FEWEST_PIECES", 6)
    monkeypatch.setattr(fitting, "PIECES", 6)
    return load(untrained(tmp_path / "m.safetensors", QUARTET))


def test_real_pieces_are_more_like_real_ones_than_what_noise_is(model, monkeypatch):
    monkeypatch.setattr(fitting, "RARE", 2)
    real = [four_parts(2 + n % 3) for n in range(8)]
    critic = fit_critic(model, real, ENOUGH)
    noise = compose(model, Request(length=Length(bars=3), samples=4, random_seed=9))
    likeness = [critic.likeness(piece.score) for piece in noise]
    assert max(likeness) < min(critic.likeness(score) for score in real)
    assert from_json(Critic, to_json(critic)) == critic
    assert critic.moves
    assert not IS_KEPT_BACK[list(critic.moves)].any()
    assert fit_critic(model, real, budget=10) is None
    assert fit_critic(model, real[:5], ENOUGH) is None
    assert fit_critic(model, [EMPTY], ENOUGH) is None


def test_long_pieces_are_known_by_their_openings_and_a_few_by_all_their_passages(
    model, monkeypatch
):
    compared = []
    monkeypatch.setattr(fitting, "sample_pieces", lambda *_: [])
    monkeypatch.setattr(fitting, "critic_between", lambda *sets, **_: compared.append(sets))
    many, few = [four_parts(40)] * 6, [four_parts(50), four_parts(49)]
    fit_critic(model, many, ENOUGH)
    fit_critic(model, few, ENOUGH)
    assert fit_critic(model, few[:1], ENOUGH) is None  # three passages
    openings, passages = (real for _, real in compared)
    assert openings == [four_parts(16)] * 6
    assert passages == [score.excerpt(at, at + 16) for score in few for at in (0, 16, 32)]


def test_how_a_piece_ends_says_nothing_before_it_has_ended():
    critic, score = Critic(ZEROS, ONES, tuple(map(float, IS_OF_ENDING))), four_parts(3)
    assert critic.likeness(score) != 0
    assert critic.likeness(score, is_whole=False) == 0
    every = Critic(ZEROS, ONES, ONES)
    rest = every.likeness(score) - critic.likeness(score)
    assert every.likeness(score, is_whole=False) == pytest.approx(rest)


def test_what_is_not_defined_says_nothing_and_other_statistics_are_refused():
    assert Critic(ZEROS, ONES, ONES).likeness(EMPTY) == 0
    with pytest.raises(ValueError, match="weighs"):
        Critic(ZEROS[1:], ONES[1:], ONES[1:])
    assert not Critic((), (), (), version=0).is_current


def test_the_statistics_of_a_passage_say_less_than_those_of_a_piece():
    critic, bars = liking("degree"), (2, 4, 8, 12, 24)
    said = [critic.likeness(piece(line([60] * 4 * n), bars=[(4, 4, 48)] * n)) for n in bars]
    assert np.all(np.diff(said[:4]) > 0)
    assert said[4] == pytest.approx(said[3])


def test_each_move_of_two_voices_counts_once_and_others_than_there_are_are_refused():
    score = four_parts(3)
    moves, counts = np.unique(moves_of(Music(score))[0], return_counts=True)
    critic = Critic(ZEROS, ONES, ZEROS, moves=(int(moves[0]),), move_weights=(0.5,))
    assert counts[0] > 1
    assert critic.likeness(score) == counts[0] / 2
    for moves, weights in (((MOVES,), (1.0,)), ((1, 2), (1.0,))):
        with pytest.raises(ValueError, match="moves"):
            Critic(ZEROS, ONES, ONES, moves=moves, move_weights=weights)


def test_what_two_voices_do_is_learned_passage_by_passage(monkeypatch):
    monkeypatch.setattr(fitting, "IS_KEPT_BACK", np.zeros(MOVES, dtype=bool))
    in_thirds = [duet(third=True, keys=n) for n in range(12)]
    in_fifths = [duet(third=False, keys=n) for n in range(12)]
    is_real = np.arange(24) < 12
    blank = Critic(ZEROS, ONES, ZEROS)
    critic = fitting._with_moves(blank, [*in_thirds, *in_fifths], is_real)
    new = critic.likeness(duet(True, 13).excerpt(0, 3), is_whole=False)
    assert new > 0 > critic.likeness(duet(False, 13).excerpt(0, 3), is_whole=False)
    assert fitting._with_moves(blank, in_thirds[:2], is_real[[0, -1]]) == blank
    alone = [piece(line([60, 62, 64, 62] * 8), bars=[(4, 4, 48)] * 8)] * 24
    assert fitting._with_moves(blank, alone, is_real) == blank
