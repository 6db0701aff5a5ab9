"""Store a trained model as one that ships with Etude: in half precision, with its figures.

    python -m benchmarks.ship runs/bach/model.safetensors models/bach.safetensors
    python -m benchmarks.ship models/bach.safetensors models/bach.safetensors --critic

The figures are of the weights as they are stored, on the held-out splits of the corpus that the
model was trained on. They go into the file, where tests hold models/README.md to them, and are
printed as lines for its table. With --critic it learns anew to judge, as at the end of a training
(evaluation/fit_critic.py).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.models import add_corpus, model_and_corpus, refused_in_a_line
from benchmarks.tables import parser_of
from common.cli import fail
from common.typed_json import to_json
from data.corpus.corpus import SPLITS
from evaluation.fit_critic import TOKENS, fit_critic
from evaluation.likelihood import EvaluationSet, measure_likelihood
from evaluation.samples import MAX_PIECES, split_scores
from model.serialization import load_model_file, save_model_file


def card_line(name: str, split: str, its: dict[str, float]) -> str:
    """Return a split's line of the table in models/README.md."""
    return (
        f"| `{name}` | {split} | {its['pieces']} | {its['notes']:,} | {its['nats_per_note']:.3f} |"
    )


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("checkpoint", metavar="FILE", help="the model.safetensors of a run")
    parser.add_argument("shipped", metavar="NEW", type=Path, help="the file to write, in models/")
    parser.add_argument("--critic", action="store_true", help="learn what tells its pieces")
    add_corpus(parser)
    options = parser.parse_args()
    with refused_in_a_line():
        content = load_model_file(options.checkpoint)
        save_model_file(options.shipped, content, np.float16)
    options.checkpoint = options.shipped
    model, corpus = model_and_corpus(options)
    if options.critic:
        critic = fit_critic(model, split_scores(corpus, "train", MAX_PIECES), TOKENS)
        if critic is None:
            fail(f"{options.shipped}: too few pieces to learn from")
        content = replace(content, style_json=to_json(replace(model.style, critic=critic)))
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
        print(card_line(options.shipped.name, split, figures[split]))
    content = replace(content, record=replace(content.record, figures=figures))
    save_model_file(options.shipped, content, np.float16)


if __name__ == "__main__":
    main()
