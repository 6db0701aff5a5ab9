"""What a model writes, measured beside real pieces; evaluate.py is its command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from data.corpus.corpus import Corpus, CorpusError
from data.score import Score
from data.tokens.tokenizer import decode
from evaluation.comparison import compare
from generation.compose import DEFAULT_SAMPLING, compose
from generation.constraints import UNCONSTRAINED, Constraints
from generation.length import Length
from generation.model import Model
from model.sampling import SamplingOptions

MOST_ROWS = 32  # sampled side by side
MOST_LENGTHS = 10  # of the pieces a model writes: those of one length are written side by side
MOST_PIECES = 500  # of a split that are measured; more say nothing new


def pieces_of(corpus: Corpus, name: str, most: int | None = None, seed: int = 0) -> list[Score]:
    """The pieces of a split; where there are more than `most`, so many drawn at random."""
    split = corpus.split(name)
    numbers = np.arange(len(split))
    if most is not None and len(split) > most:
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, most, replace=False))
    return [decode(split.piece(number), corpus.vocabulary) for number in numbers.tolist()]


def sampled(
    model: Model,
    bars: Sequence[int],
    seed: int,
    label: str,
    constraints: Constraints = UNCONSTRAINED,
    sampling: SamplingOptions = DEFAULT_SAMPLING,
) -> list[Score]:
    """A piece of each of these lengths; those of one length are sampled side by side."""
    batches = []
    for length, count in sorted(Counter(bars).items()):
        batches += [(length, min(MOST_ROWS, left)) for left in range(count, 0, -MOST_ROWS)]
    pieces = []
    for number, (length, count) in enumerate(tqdm(batches, label, unit="batch", disable=None)):
        new = compose(
            model,
            None,
            Length(bars=length),
            constraints,
            sampling=sampling,
            samples=count,
            random_seed=seed + number,
        )
        pieces += [piece.score for piece in new]
    return pieces


def lengths_like(pieces: Sequence[Score], count: int) -> list[int]:
    """So many lengths in bars, spread as those of the pieces are, most of them the same few."""
    places = (np.arange(count) % MOST_LENGTHS + 0.5) / min(count, MOST_LENGTHS)
    lengths = [len(score.bars) for score in pieces]
    return [int(length) for length in np.quantile(lengths, places, method="nearest")]


def written_like(model: Model, corpus: Corpus, count: int, seed: int) -> list[Score]:
    """So many pieces that the model writes, about as long as those it was trained on."""
    lengths = lengths_like(pieces_of(corpus, "train", MOST_PIECES, seed), count)
    return sampled(model, lengths, seed, "Writing pieces")


def measured(pieces: Sequence[Score], corpus: Corpus, seed: int) -> dict[str, Any]:
    """Musical statistics of pieces beside those of held-out ones: what `compare` gives.

    Args:
        pieces: by a model, or others.
        corpus: that it was trained on.
        seed: of what is drawn.

    Raises:
        CorpusError: no pieces are held out.
    """
    held_out = "test" if len(corpus.split("test")) else "valid"
    real = {name: pieces_of(corpus, name, MOST_PIECES, seed) for name in (held_out, "train")}
    if not real[held_out]:
        raise CorpusError(f"{corpus.folder}: no pieces are held out, so there is no measure")
    result = compare(pieces, real[held_out], real["train"], seed)
    return {"held_out": held_out, "seed": seed, **result}
