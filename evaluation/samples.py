"""Pieces that a model writes, to be measured beside real pieces."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from data.corpus.corpus import SPLITS, Corpus, CorpusError
from data.score import Score
from data.tokens.tokenizer import decode
from evaluation.comparison import PieceSet, RealPieces
from generation.compose import compose
from generation.constraints import UNCONSTRAINED, Constraints
from generation.length import Length
from generation.model import Model
from generation.request import Request
from model.config import SamplingOptions

MAX_BATCH = 32  # pieces that are sampled side by side
MAX_LENGTHS = 10  # different lengths of the pieces; those of one length are one batch
MAX_PIECES = 500  # of a split that are measured; more would change no figure


def split_scores(corpus: Corpus, name: str, limit: int | None = None, seed: int = 0) -> list[Score]:
    """Return the pieces of a split; if there are more than `limit`, that many drawn at random."""
    split = corpus.split(name)
    indices = np.arange(len(split))
    if limit is not None and len(split) > limit:
        indices = np.sort(np.random.default_rng(seed).choice(indices, limit, replace=False))
    return [decode(split.piece(index), corpus.vocabulary) for index in indices.tolist()]


def sample_pieces(
    model: Model,
    bars: Sequence[int],
    seed: int,
    label: str,
    constraints: Constraints = UNCONSTRAINED,
    sampling: SamplingOptions | None = None,
    candidates: int = 1,
) -> list[Score]:
    """Sample a piece of each length in `bars`, each the best of `candidates`, side by side."""
    batches = []
    for length, count in sorted(Counter(bars).items()):
        batches += [(length, min(MAX_BATCH, left)) for left in range(count, 0, -MAX_BATCH)]
    pieces = []
    for number, (length, count) in enumerate(tqdm(batches, label, unit="batch", disable=None)):
        new = compose(
            model,
            Request(
                None,
                Length(bars=length),
                constraints,
                sampling=sampling,
                samples=count,
                random_seed=seed + number,
                candidates=candidates,
            ),
        )
        pieces += [piece.score for piece in new]
    return pieces


def without_repeats(model: Model) -> Model:
    """Return a model that takes no repeats from training pieces; those are written one by one."""
    forms = tuple(replace(form, repeats=()) for form in model.style.forms)
    return replace(model, style=replace(model.style, forms=forms))


def typical_lengths(pieces: Sequence[Score], count: int) -> list[int]:
    """Return `count` lengths in bars, spread like the pieces', at most MAX_LENGTHS different."""
    places = (np.arange(count) % MAX_LENGTHS + 0.5) / min(count, MAX_LENGTHS)
    lengths = [len(score.bars) for score in pieces]
    return [int(length) for length in np.quantile(lengths, places, method="nearest")]


def sample_like_corpus(
    model: Model, corpus: Corpus, count: int, seed: int, candidates: int = 1
) -> list[Score]:
    """Sample `count` pieces that are about as long as those of the corpus's train split."""
    lengths = typical_lengths(split_scores(corpus, "train", MAX_PIECES, seed), count)
    return sample_pieces(model, lengths, seed, "Writing pieces", candidates=candidates)


def real_pieces(corpus: Corpus, seed: int) -> RealPieces:
    """Return the held-out pieces of a corpus (valid and test), and its training pieces."""
    train, valid, test = (split_scores(corpus, name, MAX_PIECES, seed) for name in SPLITS)
    held_out = valid + test
    if not held_out:
        raise CorpusError(f"{corpus.folder}: no pieces are held out, so nothing to compare with")
    return RealPieces(PieceSet.of(held_out), PieceSet.of(train))
