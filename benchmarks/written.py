"""Pieces that a trained model writes, for a student to learn from (`data.written`).

    python -m benchmarks.written runs/one/model.safetensors datasets/written/one --count 512

They are as long as training pieces, within their range, and take no repeats from them. A model at
temperature 1 strays, to others that learned the same, from what they learned: so 0.8.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from common.cli import Parser, check_file, fail, positive_integer
from common.files import replace_folder
from data.corpus.corpus import CorpusError
from data.midi.io import write_midi
from data.score import DRUMS
from evaluation.samples import sample_pieces, split_scores
from generation.constraints import Constraints
from generation.model import corpus_of, load
from model.config import SamplingOptions
from model.serialization import ModelFileError

SAMPLING = SamplingOptions(temperature=0.8)


@torch.no_grad()
def write_pieces(path: str, folder: Path, count: int, datasets: str = "datasets") -> None:
    """Have the model at `path` write so many pieces into a new folder, as NUMBER.mid."""
    model = load(path)
    real = split_scores(corpus_of(model, None, datasets), "train")
    lengths = [len(score.bars) for score in real]
    notes = np.concatenate([score.notes for score in real])
    pitches = notes["pitch"][notes["program"] != DRUMS]
    constraints = Constraints(pitch_range=(int(pitches.min()), int(pitches.max())))
    bars = np.random.default_rng(0).choice(lengths, count).tolist()
    forms = tuple(replace(form, repeats=()) for form in model.style.forms)
    plain = replace(model, style=replace(model.style, forms=forms))
    pieces = sample_pieces(plain, bars, 0, "Writing pieces", constraints, SAMPLING)
    with replace_folder(folder) as temporary:
        for number, score in enumerate(pieces):
            write_midi(score, temporary / f"{number:04}.mid")


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FILE", help="the model.safetensors of a run")
    parser.add_argument("folder", metavar="NEW", type=Path, help="the folder to write")
    parser.add_argument("--count", type=positive_integer, default=512, help="how many pieces")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    options = parser.parse_args()
    check_file(options.model)
    if options.folder.exists():
        fail(f"{options.folder}: it is there already; name another folder")
    try:
        write_pieces(options.model, options.folder, options.count, options.datasets)
    except (ModelFileError, CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
