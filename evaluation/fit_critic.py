"""Learns, at the end of training, what separates a model's pieces from real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from common.arrays import Bools, Ints, Reals
from data.critic import Critic, deviations_from
from data.moves import FIRST_OF_PAIRS, IS_KEPT_BACK, moves_of
from data.score import Score
from data.statistics import IS_OF_ENDING, Music
from data.tokens.tokenizer import encode
from evaluation.classifier import regression
from evaluation.comparison import statistics_of
from evaluation.fit_sampling import OPENING_BARS
from evaluation.moves import counted
from evaluation.samples import sample_pieces, typical_lengths, without_repeats
from generation.model import Model

PIECES, FEWEST_PIECES = 1_500, 48  # the most that are written; the fewest of each kind
LONG_PIECE_BARS = 32  # of longer pieces, the openings are compared, without the ending
SHRINKAGE = 0.3  # of the covariance: there are many statistics and few pieces
PASSAGE_BARS, APART_BARS = 4, 2  # of the passages in which moves are counted; from one to the next
RARE = 20  # a move must be in at least this many passages
WEIGHT_PENALTY = 0.1  # C of the logistic regression on moves


def fit_critic(model: Model, real: Sequence[Score], budget: int) -> Critic | None:
    """Learn what separates a model's pieces from real ones.

    Args:
        model: has come to the end of its training, and knows how it samples.
        real: pieces that it was trained on.
        budget: the most tokens that may be written.

    Returns:
        None if there are too few pieces, or the budget is too small to write enough.
    """
    real = [score for score in real if len(score.notes) and score.grid.has_meter]
    if not real:
        return None
    is_long = np.median([len(score.bars) for score in real]) > LONG_PIECE_BARS
    if is_long:
        real = _openings(real)
    if len(real) < FEWEST_PIECES:
        return None
    tokens = np.median([len(encode(score, model.vocabulary)) for score in real])
    count = min(PIECES, int(budget // tokens))
    if count < FEWEST_PIECES:
        return None
    plain = without_critic(model)
    written = sample_pieces(plain, typical_lengths(real, count), 0, "Learning to judge")
    return critic_between(written, real, has_ends=not is_long)


def _openings(pieces: Sequence[Score]) -> list[Score]:
    """Return the first bars of pieces; if the pieces are few, as many bars from all over them."""
    is_few = len(pieces) < FEWEST_PIECES
    passages = [
        score.excerpt(first, first + OPENING_BARS)
        for score in pieces
        for first in range(0, max(len(score.bars) - OPENING_BARS, 0) + 1, OPENING_BARS)
        if is_few or first == 0
    ]
    return [passage for passage in passages if len(passage.notes)]


def without_critic(model: Model) -> Model:
    """Return a model whose pieces a critic can learn from: not chosen, and without repeats."""
    return without_repeats(replace(model, style=replace(model.style, critic=None)))


def critic_between(written: Sequence[Score], real: Sequence[Score], has_ends: bool) -> Critic:
    """Return a critic that separates written pieces from real ones, on one grid of beats.

    Args:
        written, real: the pieces.
        has_ends: whether pieces come to their ends; if not, it does not weigh how they end.
    """
    figures = statistics_of([*written, *real])
    if not has_ends:
        figures[:, IS_OF_ENDING] = np.nan
    is_real = np.arange(len(figures)) >= len(written)
    return _with_moves(_discriminant(figures, is_real), [*written, *real], is_real)


def _discriminant(figures: Reals, is_real: Bools) -> Critic:
    """Return the critic of statistics (N, F); `is_real` (N,) says which pieces are real.

    Its weights are those of the linear discriminant (Fisher 1936), with the covariance shrunk to
    the identity (Friedman 1989).
    """
    is_defined = ~np.isnan(figures).all(axis=0)
    means, deviations = np.zeros(figures.shape[1]), np.ones(figures.shape[1])
    means[is_defined] = np.nanmean(figures[:, is_defined], axis=0)
    deviations[is_defined] = np.nanstd(figures[:, is_defined], axis=0)
    deviations[deviations < 1e-5] = 1.0
    apart = deviations_from(means, deviations, figures)
    written, real = apart[~is_real], apart[is_real]
    within = np.concatenate([written - written.mean(axis=0), real - real.mean(axis=0)])
    covariance = (1 - SHRINKAGE) * np.cov(within.T) + SHRINKAGE * np.eye(len(means))
    weights = np.linalg.solve(covariance, real.mean(axis=0) - written.mean(axis=0))
    digits = 6  # significant, so that a deviation stays above 0
    numbers = [tuple(np.round(each, digits).tolist()) for each in (means, deviations, weights)]
    return Critic(means=numbers[0], deviations=numbers[1], weights=numbers[2])


def _with_moves(critic: Critic, pieces: Sequence[Score], is_real: Bools) -> Critic:
    """Return a critic that also weighs the moves of voices; `is_real` (N,) is as above.

    The weights are those of a logistic regression that separates passages by how often each move
    occurs in them. So a piece that is not finished can be judged by its latest bars.
    """
    passages = [_passages(score) for score in pieces]
    counts = counted([*chain.from_iterable(passages)])
    weighed = np.flatnonzero(np.diff(counts.indptr) >= RARE)
    if not (weighed >= FIRST_OF_PAIRS).any():  # of one voice, statistics alone choose better
        return critic
    of_real = np.repeat(is_real, [*map(len, passages)])
    weights = regression(WEIGHT_PENALTY).fit(counts[:, weighed].tocsr(), of_real).coef_[0]
    return replace(
        critic, moves=tuple(weighed.tolist()), move_weights=tuple(np.round(weights, 3).tolist())
    )


def _passages(score: Score) -> list[Ints]:
    """Return the moves in each passage of a piece, without those that are kept back."""
    (moves, times), lines, bars = moves_of(Music(score)), score.bar_starts, len(score.bars)
    moves, times = moves[~IS_KEPT_BACK[moves]], times[~IS_KEPT_BACK[moves]]
    return [
        moves[(times >= lines[first]) & (times < lines[min(first + PASSAGE_BARS, bars)])]
        for first in range(0, max(bars - PASSAGE_BARS, 0) + 1, APART_BARS)
    ]
