"""How likely a model finds sequences that are no music, beside n-grams."""

from dataclasses import dataclass

import numpy as np

from data.batches.id_sequences import IdSequences, masks
from evaluation.bootstrap import Estimate, estimate_ratios
from evaluation.ngrams import BASELINES, NGram
from generation.sequences import SequenceModel


@dataclass(frozen=True)
class SequenceLikelihood:
    """How likely a model and n-grams find the sequences of a split; End counts, too."""

    name: str
    sequences: int
    ids: int
    nats_per_id: dict[str, Estimate]  # by the names of the n-grams, and "model"


def measure_sequences(
    model: SequenceModel, source: IdSequences, split: str, ngrams: dict[str, NGram]
) -> SequenceLikelihood:
    """Score the sequences of a split, each whole (see model/scoring.py)."""
    pieces = [source.sequence(number) for number in source.members[split]]
    allowed = [masks(source.vocabulary, len(piece)) for piece in pieces]
    ids = np.array([len(piece) - 2 for piece in pieces])  # but Start and End
    nats = {
        name: [ngram.token_nats(*both) for both in zip(pieces, allowed, strict=True)]
        for name, ngram in ngrams.items()
    }
    nats["model"] = model.token_nats(pieces)
    sums = np.array([[each.sum() for each in of_pieces] for of_pieces in nats.values()])  # (K, P)
    estimates = estimate_ratios(sums.T, ids)
    return SequenceLikelihood(
        split, len(pieces), int(ids.sum()), dict(zip(nats, estimates, strict=True))
    )


def fit_ngrams(source: IdSequences) -> dict[str, NGram]:
    """Fit n-grams to the training sequences; return them by name."""
    pieces = [source.sequence(number) for number in source.members["train"]]
    size = source.vocabulary.size
    return {name: NGram(pieces, order, size) for order, name in BASELINES.items()}
