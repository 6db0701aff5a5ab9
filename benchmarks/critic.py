"""Give a finished model a critic: what tells its pieces from those that it learned from.

    python -m benchmarks.critic models/bach.safetensors

Weights are untouched; train.py does the same at the end of a training.
"""

import argparse
from dataclasses import replace

import numpy as np

from common.cli import Parser, check_file, fail
from common.typed_json import to_json
from data.corpus.corpus import CorpusError
from evaluation.fit_critic import TOKENS, fit_critic
from evaluation.samples import MAX_PIECES, split_scores
from generation.model import corpus_of, load
from model.serialization import ModelFileError, load_model_file, save_model_file


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FILE", help="a model.safetensors, which is changed")
    parser.add_argument("--path", help="another corpus than the one it was trained on")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    options = parser.parse_args()
    check_file(options.model)
    try:
        model, content = load(options.model), load_model_file(options.model)
        corpus = corpus_of(model, options.path, options.datasets)
        critic = fit_critic(model, split_scores(corpus, "train", MAX_PIECES), TOKENS)
        if critic is None:
            fail(f"{options.model}: too few pieces to learn from")
        style = to_json(replace(model.style, critic=critic))
        weights = content.network.weights.values()
        is_half = all(np.array_equal(each, each.astype(np.float16)) for each in weights)
        dtype = np.float16 if is_half else np.float32  # as they were stored
        save_model_file(options.model, replace(content, style_json=style), dtype)
    except (ModelFileError, CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
