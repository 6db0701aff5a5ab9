"""How likely a model finds sequences that are no music, beside n-grams."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from data.batches.id_sequences import IdSequences
from data.batches.windows import WholePieces
from evaluation.bootstrap import Estimate, estimate_ratios
from evaluation.likelihood import Baseline
from generation.sequences import SequenceModel
from model.scoring import token_nats


@dataclass(frozen=True)
class SequenceLikelihood:
    """How likely a model and n-grams find the sequences of a split; End counts, too."""

    name: str
    sequences: int
    ids: int
    nats_per_id: dict[str, Estimate]  # by the names of the n-grams, and "model"


def measure_sequences(
    model: SequenceModel, baselines: Mapping[str, Baseline], source: IdSequences, name: str
) -> SequenceLikelihood:
    """Score the sequences of a split, each whole (see model/scoring.py)."""
    split = source.split(name)
    nats: dict[str, list[float]] = {each: [] for each in (*baselines, "model")}
    for batch in WholePieces(split, source.vocabulary.masks):
        pieces, allowed = batch["pieces"], batch["allowed"]
        scored = token_nats(model.steps, pieces, allowed, rebase=model.rebase)
        nats["model"] += [each.sum() for each in scored]
        for each, score in baselines.items():
            nats[each] += [score(*both).sum() for both in zip(pieces, allowed, strict=True)]
    sums, ids = np.array([*nats.values()]).T, split.note_counts  # (P, K), (P,)
    estimates = dict(zip(nats, estimate_ratios(sums, ids.astype(np.float64)), strict=True))
    return SequenceLikelihood(name, len(split), int(ids.sum()), estimates)
