"""How pieces end: chorales that a model samples, compared with real ones.

    python -m benchmarks.endings
    python -m benchmarks.endings -c runs/bach/model.safetensors --pieces 400

Pieces are sampled from nothing, with generate.py's default sampling options. Each has as many bars
as a training piece drawn at random. The side input says how many bars follow and when the final
chord begins (blocks `follow` and `final` in data/tokens/features.py). Each model is sampled in
three ways: by default, which for chorales means strict counterpoint and a triad at the end
(`find_triad` in generation/counterpoint.py); with free counterpoint; and with free counterpoint
and no knowledge of the end, so that the piece only stops where the last bar is full.

    tonic      ends on a major or minor triad on the tonic in root position; the key is estimated
               from the music before the last bar (`estimate_key`), which sometimes errs
    triad      ends on any major or minor triad in root position
    quarter    the whole final chord sounds for a quarter note or longer

These are shares in percent, each followed by its standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.cadences import ends_on_tonic
from benchmarks.models import add_corpus, model_and_corpus
from benchmarks.tables import head, parser_of, row
from common.cli import positive_integer, random_seed
from data.harmony import ends_on_triad, final_chord
from data.score import Score
from evaluation.samples import sample_pieces, split_scores
from generation.constraints import FREE, Constraints
from generation.model import Model

NAMES = ("tonic", "triad", "quarter")


def figures(score: Score) -> list[float]:
    """Return the figures of one piece, in the order of NAMES: 0 or 100."""
    chord = final_chord(score)
    sounds = int((chord["onset"] + chord["duration"]).min() - chord["onset"].max())
    shares = ends_on_tonic(score), ends_on_triad(score), sounds >= score.grid.steps_per_beat
    return [100.0 * share for share in shares]


def with_unknown_end(model: Model) -> Model:
    """Return the model without knowledge of where a piece ends."""
    side = model.network.weights["side.weight"].copy()
    for block in ("follow", "final"):
        side[model.features.blocks[block]] = 0
    weights = {**model.network.weights, "side.weight": side}
    return replace(model, network=replace(model.network, weights=weights))


def print_row(label: str, scores: Sequence[Score]) -> None:
    """Print a row of means and their standard errors."""
    each = np.array([figures(score) for score in scores])
    means, errors = each.mean(axis=0), each.std(axis=0) / np.sqrt(len(each))
    cells = (f"{mean:.1f} ± {error:.1f}" for mean, error in zip(means, errors, strict=True))
    row(label, len(scores), *cells)


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--checkpoint", "-c")
    parser.add_argument("--pieces", type=positive_integer, default=200, help="sampled in each row")
    parser.add_argument("--seed", type=random_seed, default=0)
    add_corpus(parser)
    options = parser.parse_args()
    model, corpus = model_and_corpus(options)
    head("", "pieces", *NAMES)
    training = split_scores(corpus, "train")
    print_row("corpus, train", training)
    for split in ("valid", "test"):
        print_row(f"corpus, {split}", split_scores(corpus, split))
    lengths = [len(score.bars) for score in training]
    bars = np.random.default_rng(options.seed).choice(lengths, options.pieces).tolist()
    print_row("default", sample_pieces(model, bars, options.seed, "default"))
    for label, its in (("free", model), ("free, end unknown", with_unknown_end(model))):
        free = Constraints(counterpoint=FREE)
        print_row(label, sample_pieces(its, bars, options.seed, label, free))


if __name__ == "__main__":
    main()
