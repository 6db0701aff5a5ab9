"""How many pieces that a model writes by default are as dense as training pieces usually are.

    python -m benchmarks.usual --checkpoint runs/mine/model.safetensors --data my_midi_files

Pieces of 16 bars are written from nothing, as `generate.py` does where nothing is said. Density
(notes a second) and polyphony (pitches at once) shall lie between the 5th and the 95th percentile
of whole pieces of the corpus, of all splits. `--first-draw` writes no piece anew.
"""

import argparse

import numpy as np

from common.cli import Parser, fail, positive_integer
from data.corpus.corpus import SPLITS, CorpusError
from data.extremes import Usual, measures
from evaluation.samples import MAX_PIECES, split_scores
from generation.compose import compose
from generation.length import Length
from generation.model import corpus_of, load
from generation.request import Request
from generation.writing import Writing
from model.serialization import ModelFileError


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True, metavar="FILE")
    parser.add_argument("--data", metavar="FOLDER", help="default: what it was trained on")
    parser.add_argument("--count", type=positive_integer, default=12, help="pieces (default: 12)")
    parser.add_argument("--bars", type=positive_integer, default=16, help="of each (default: 16)")
    parser.add_argument("--seed", type=int, default=0, help="of chance")
    parser.add_argument("--first-draw", action="store_true")
    options = parser.parse_args()
    try:
        model = load(options.checkpoint)
        corpus = corpus_of(model, options.data)
    except (ModelFileError, CorpusError, OSError) as error:
        fail(str(error))
    usual = Usual.of([s for split in SPLITS for s in split_scores(corpus, split, MAX_PIECES)])
    if usual is None:
        fail("the corpus has no notes with a pitch")
    length = Length(bars=options.bars)
    request = Request(None, length, samples=options.count, random_seed=options.seed)
    writing = Writing(model, request)
    if options.first_draw:
        for _ in writing:
            pass
    written = [p.score for p in (writing.pieces if options.first_draw else compose(model, request))]
    density, polyphony = np.mean([usual.has(score) for score in written], axis=0)
    print(f"{options.checkpoint}: {len(written)} pieces of {options.bars} bars, {model.sampling}")
    print(f"density {usual.density[0]:.2f} to {usual.density[1]:.2f}: {density:.2f} of them")
    print(f"polyphony {usual.polyphony[0]:.2f} to {usual.polyphony[1]:.2f}: {polyphony:.2f}")
    print("density, polyphony:", *("{:.1f},{:.1f}".format(*measures(s)) for s in written))


if __name__ == "__main__":
    main()
