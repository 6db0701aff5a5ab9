"""Write pieces with a trained model for a student model to learn from (`data.written`).

    python -m benchmarks.written runs/one/model.safetensors datasets/written/one --count 512
    python -m benchmarks.written models/bach.safetensors datasets/best --count 192 --candidates 8

Pieces are as long as training pieces, stay within their range, and copy no repeats. The temperature
is 0.8, because at 1 other models of the same music find that pieces stray from it. With several
candidates, each is sampled with the model's defaults and its critic keeps one: such pieces are for
the model itself to learn from.
"""

from pathlib import Path

import numpy as np

from benchmarks.models import add_corpus, model_and_corpus
from benchmarks.tables import parser_of
from common.cli import fail, positive_integer
from common.files import replace_folder
from data.corpus.corpus import Corpus
from data.midi.io import write_midi
from data.score import DRUMS
from evaluation.samples import sample_pieces, split_scores, without_repeats
from generation.constraints import Constraints
from generation.model import Model
from model.config import SamplingOptions

SAMPLING = SamplingOptions(temperature=0.8)


def write_pieces(model: Model, corpus: Corpus, folder: Path, count: int, candidates: int) -> None:
    """Let a model write `count` pieces into a new folder, as NUMBER.mid."""
    real = split_scores(corpus, "train")
    lengths = [len(score.bars) for score in real]
    notes = np.concatenate([score.notes for score in real])
    pitches = notes["pitch"][notes["program"] != DRUMS]
    constraints = Constraints(pitch_range=(int(pitches.min()), int(pitches.max())))
    bars = np.random.default_rng(0).choice(lengths, count).tolist()
    plain = without_repeats(model)
    sampling = SAMPLING if candidates == 1 else None
    pieces = sample_pieces(plain, bars, 0, "Writing pieces", constraints, sampling, candidates)
    with replace_folder(folder) as temporary:
        for number, score in enumerate(pieces):
            write_midi(score, temporary / f"{number:04}.mid")


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("checkpoint", metavar="FILE", help="the model.safetensors of a run")
    parser.add_argument("folder", metavar="NEW", type=Path, help="the folder to write")
    parser.add_argument("--count", type=positive_integer, default=512, help="how many pieces")
    parser.add_argument(
        "--candidates", type=positive_integer, default=1, help="of which each is the best"
    )
    add_corpus(parser)
    options = parser.parse_args()
    if options.folder.exists():
        fail(f"{options.folder}: it is there already; name another folder")
    model, corpus = model_and_corpus(options)
    write_pieces(model, corpus, options.folder, options.count, options.candidates)


if __name__ == "__main__":
    main()
