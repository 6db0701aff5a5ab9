"""Store a trained model as one that ships with Etude: in half precision, with its figures.

    python -m benchmarks.ship runs/bach/model.safetensors models/bach.safetensors

The figures are of the weights as they are stored, on the held-out splits of the corpus that the
model was trained on. They go into the file, where tests hold models/README.md to them, and are
printed as lines for its table.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.cli import Parser, check_file, fail
from data.corpus.corpus import SPLITS, CorpusError
from evaluation.likelihood import EvaluationSet, measure_likelihood
from generation.model import corpus_of, load
from model.serialization import ModelFileError, load_model_file, save_model_file


def ship(trained: str, shipped: str, datasets: str) -> None:
    """Store a model in half precision, measure what was stored, and store its figures beside it."""
    content = load_model_file(trained)
    save_model_file(shipped, content, np.float16)
    model = load(shipped)
    corpus = corpus_of(model, None, datasets)
    figures = {}
    for split in SPLITS[1:]:
        result = measure_likelihood(model, {}, EvaluationSet.of_split(corpus, split))
        nats = result.nats_per_note["model"]
        figures[split] = {
            "pieces": result.pieces,
            "notes": result.notes,
            "nats_per_note": round(nats.value, 4),
            "interval": [round(nats.low, 4), round(nats.high, 4)],
        }
        print(card_line(Path(shipped).name, split, figures[split]))
    content = replace(content, record=replace(content.record, figures=figures))
    save_model_file(shipped, content, np.float16)


def card_line(name: str, split: str, its: dict[str, float]) -> str:
    """Return a split's line of the table in models/README.md."""
    return (
        f"| `{name}` | {split} | {its['pieces']} | {its['notes']:,} | {its['nats_per_note']:.3f} |"
    )


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trained", metavar="FILE", help="the model.safetensors of a run")
    parser.add_argument("shipped", metavar="NEW", help="the file to write, in models/")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    options = parser.parse_args()
    check_file(options.trained)
    try:
        ship(options.trained, options.shipped, options.datasets)
    except (ModelFileError, CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
