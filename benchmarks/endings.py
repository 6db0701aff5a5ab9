"""How often pieces and phrases end as they do: chorales that a model samples, beside real ones.

    python -m benchmarks.endings
    python -m benchmarks.endings -c runs/bach/model.safetensors --pieces 400

Pieces are sampled from nothing, with the sampling options that are generate.py's defaults, each as
many bars long as a training piece drawn at random. The side input says how many bars follow, when
the final chord begins (blocks `follow` and `final` in
data/tokens/features.py). Each model is sampled three times: as by default, which for chorales is
strict counterpoint, with a triad at the end (`find_triad` in generation/counterpoint.py); with
free counterpoint; and so without being told of any end. Then it only stops where bars are full.

    tonic      ends on the triad of the tonic in root position, major or minor; the key is that
               of the music before the last bar (data/keys.py), and the key finder errs
    triad      ends on any major or minor triad in root position
    quarter    the whole final chord sounds for a quarter note or longer
    phrases    spans of two bars that end with a triad that all hold for a quarter or longer, and
               leave together (`phrase_regularity`)
    anywhere   the same with each of these chords in either bar of its span, at random: how
               regular they are by chance
    quarters   how long it sounds, in quarter notes
    onsets     points in time, in the last bar, at which notes begin

Shares are in percent; after each figure its standard error.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from common.cli import Parser, fail, positive_integer, random_seed
from data.cadences import final_chord, root_of_triad
from data.corpus.corpus import CorpusError
from data.keys import pitched_notes
from data.score import Score
from evaluation.cadences import ends_on_tonic
from evaluation.samples import sample_pieces, split_scores
from generation.constraints import FREE, Constraints
from generation.defaults import default_model
from generation.model import Model, corpus_of, load
from model.serialization import ModelFileError

DIGITS = dict.fromkeys(("tonic", "triad", "quarter", "phrases", "anywhere"), 1)  # after the point
DIGITS |= {"quarters": 2, "onsets": 2}


def phrase_ends(score: Score) -> NDArray[np.int64]:
    """Return the steps (N,) at which chords end as those at the end of Bach's phrases do.

    All instruments but drums sound, each for a quarter note or longer, in a triad in root position,
    and all stop at once. So end 97% of the phrases that have a fermata in 136 chorales, and so do
    as many chords inside of phrases.
    """
    notes = pitched_notes(score)
    onset = notes["onset"].astype(np.int64)
    end = onset + notes["duration"]
    instruments = len(np.unique(notes["program"]))
    steps, stopping = np.unique(end, return_counts=True)
    begun_before = np.searchsorted(np.sort(onset), steps)
    over_before = np.searchsorted(np.sort(end), steps)
    found = []
    for step in steps[begun_before - over_before == stopping]:
        chord = notes[end == step]
        is_whole = len(np.unique(chord["program"])) == instruments
        is_long = chord["duration"].min() >= score.grid.steps_per_beat
        if is_whole and is_long and root_of_triad(chord) is not None:
            found.append(step)
    return np.array(found, dtype=np.int64)


def phrase_regularity(ends: NDArray[np.int64], score: Score) -> float:
    """Return the share of a piece's spans of two bars that end where a phrase does.

    Args:
        ends: (N,) steps at which phrases end, as `phrase_ends` finds them.
        score: the piece, with one bar or more. Its spans begin where most phrases end in them, and
            all are as long as two of its bars, which are the median of all.
    """
    span = two_bars(score)
    counts = Counter((ends % span).tolist())
    spans = max(1, round(int(score.bar_starts[-1]) / span))
    return max(counts.values(), default=0) / spans


def two_bars(score: Score) -> int:
    """Return how many steps two bars of a piece have, which are the median of all."""
    return 2 * int(np.median(score.bars["length"]))


def features(score: Score) -> dict[str, float]:
    """Return the figures of one piece, by name; shares are 0 or 100."""
    chord, onsets = final_chord(score), score.notes["onset"]
    sounds = int((chord["onset"] + chord["duration"]).min() - chord["onset"].max())
    quarters = sounds / score.grid.steps_per_beat
    ends, span = phrase_ends(score), two_bars(score)
    apart = np.random.default_rng(0).integers(0, 2, len(ends)) * (span // 2)
    return {
        "tonic": 100 * ends_on_tonic(score),
        "triad": 100 * (root_of_triad(chord) is not None),
        "quarter": 100 * (quarters >= 1),
        "quarters": quarters,
        "onsets": len(np.unique(onsets[onsets >= score.bar_starts[-2]])),
        "phrases": 100 * phrase_regularity(ends, score),
        "anywhere": 100 * phrase_regularity(ends + apart, score),
    }


def with_unknown_end(model: Model) -> Model:
    """Return the model, with the end of a piece unknown to it."""
    side = model.network.weights["side.weight"].copy()
    for block in ("follow", "final"):
        side[model.features.blocks[block]] = 0
    weights = {**model.network.weights, "side.weight": side}
    return replace(model, network=replace(model.network, weights=weights))


def print_row(label: str, scores: Sequence[Score]) -> None:
    """Print means and their standard errors."""
    rows = [features(score) for score in scores]
    print(f"{label:24}{len(rows):>7}", end="")
    for name, digits in DIGITS.items():
        values = np.array([row[name] for row in rows], dtype=np.float64)
        error = values.std() / np.sqrt(len(values))
        print(f"{values.mean():>7.{digits}f} ±{error:<4.{digits}f}", end="")
    print(flush=True)


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        *("--checkpoint", "-c"), default=[default_model()[0]], nargs="+", help="one or more"
    )
    parser.add_argument("--pieces", type=positive_integer, default=200, help="sampled in each row")
    parser.add_argument("--seed", type=random_seed, default=0)
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)

    try:
        models = {path: load(path) for path in arguments.checkpoint}
        corpus = corpus_of(next(iter(models.values())), None, arguments.datasets)
    except (ModelFileError, CorpusError, OSError) as error:
        fail(str(error))
    print(f"{'':24}{'pieces':>7}" + "".join(f"{name:>13}" for name in DIGITS))
    training = split_scores(corpus, "train")
    print_row("corpus, train", training)
    for split in ("valid", "test"):
        print_row(f"corpus, {split}", split_scores(corpus, split))
    lengths = [len(score.bars) for score in training]
    bars = np.random.default_rng(arguments.seed).choice(lengths, arguments.pieces).tolist()
    for path, model in models.items():
        print(path)
        print_row("  default", sample_pieces(model, bars, arguments.seed, "default"))
        for label, its in (("free", model), ("free, end unknown", with_unknown_end(model))):
            free = sample_pieces(its, bars, arguments.seed, label, Constraints(counterpoint=FREE))
            print_row(f"  {label}", free)


if __name__ == "__main__":
    main()
