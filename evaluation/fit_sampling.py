"""Finds how boldly a model samples by default: what makes its pieces most like the corpus.

It is found at the end of training, and kept with the model. A temperature that suits one corpus
ruins another: what keeps a chorale in its key leaves a piano piece nearly empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from data.score import Score
from data.tokens.tokenizer import encode
from evaluation.comparison import distance, statistics_of
from evaluation.samples import without_repeats
from generation.length import Length
from generation.model import Model
from generation.request import Request
from generation.writing import Writing
from model.config import SamplingOptions

OPENING_BARS = 16  # of each piece are compared; in fewer bars, loops do not show
PIECES, FEWEST_PIECES = 24, 8  # pieces that are written with each candidate: at most, and at least
CANDIDATES = [
    SamplingOptions(temperature, top_p=top_p, rhythm_temperature=1.0)
    for temperature in (0.6, 0.8, 1.0)
    for top_p in (0.95, 1.0)
]
CALMER = 0.85  # a temperature of rhythm that is tried with the best of these
# What people hear first: whether there is music at all, and not a wall of it.
NINE_IN_TEN = 0.9  # share of the pieces with a usual density and polyphony, as real ones have
RUNAWAY = 3  # times the tokens of a long real piece: then the candidate is given up


def fit_sampling(model: Model, real: Sequence[Score], budget: int) -> Model | None:
    """Find the temperatures and top-p with which a model's pieces are most like real ones.

    Each candidate writes pieces of 16 bars from nothing, which are compared with the beginnings of
    real pieces (`distance`). If too few of its pieces have a usual density, or a usual polyphony,
    the missing shares are added to its distance. The temperature of rhythm is 1; a calmer one is
    also tried with the best candidate. Last, the best is tried without drawing a rhythm for each
    piece: that keeps a model that knows little on the beat, and limits one that knows enough.

    Args:
        model: has come to the end of its training.
        real: pieces that it was trained on.
        budget: the most tokens that may be written in all.

    Returns:
        The model, as it samples best; None if the budget is too small, or no candidate finishes
        its pieces.
    """
    openings = [score.excerpt(0, OPENING_BARS) for score in real if len(score.notes)]
    if not openings:
        return None
    tokens = [len(encode(score, model.vocabulary)) for score in openings]
    pieces = min(PIECES, budget // ((len(CANDIDATES) + 2) * int(np.median(tokens))))
    if pieces < FEWEST_PIECES:
        return None
    most_tokens = RUNAWAY * int(np.quantile(tokens, 0.95))
    beginnings = statistics_of(openings)
    usual = model.style.usual

    def farness(model: Model, sampling: SamplingOptions) -> float:
        written = _written(without_repeats(model), sampling, pieces, most_tokens)
        if written is None:
            return math.inf
        few = 0.0
        if usual is not None:
            shares = np.mean([usual.has(score) for score in written], axis=0)  # (2,)
            few = float(np.maximum(0.0, NINE_IN_TEN - shares).sum())
        return distance(beginnings, statistics_of(written)) + few

    found = {sampling: farness(model, sampling) for sampling in CANDIDATES}
    best = min(found, key=lambda sampling: found[sampling])
    if math.isinf(found[best]):
        return None
    calmer = replace(best, rhythm_temperature=CALMER)
    found[calmer] = farness(model, calmer)
    best = min(best, calmer, key=lambda sampling: found[sampling])
    if model.style.rhythms:
        free = replace(model, style=replace(model.style, rhythms=()))
        model = free if farness(free, best) < found[best] else model
    return model.sampled(best)


def _written(
    model: Model, sampling: SamplingOptions, pieces: int, most_tokens: int
) -> list[Score] | None:
    """Return pieces that were written from nothing; None: they do not come to an end."""
    request = Request(length=Length(bars=OPENING_BARS), sampling=sampling, samples=pieces)
    writing = Writing(model, request)
    for tokens, _ in enumerate(writing, start=1):
        if tokens == most_tokens:
            return None
    return [piece.score for piece in writing.pieces]
