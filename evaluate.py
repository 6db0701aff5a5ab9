"""Judge a model on music that it has not seen.

    python evaluate.py likelihood --checkpoint runs/bach/model.safetensors

prints nats per note on the held-out splits of the corpus that the model was trained on, beside
unigram and bigram baselines on the same tokens, and by kind of token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from data.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.ngrams import NAMES, NGram, nats_per_note, train
from data.windows import masks_of_pieces, rebase, unpacked
from generate import DEFAULT_CHECKPOINT, Model, Parser, fail, load
from model.bundle import BundleError
from model.likelihood import Tally, summarise, token_nats


def corpus_of(model: Model, path: str | None, datasets: str) -> Corpus:
    """The corpus a model was trained on, or the one at `path`, built if need be.

    Raises:
        CorpusError: its vocabulary is not the model's.
    """
    settings = model.summary.get("data", {})
    path = path or settings.get("path", "bach")
    options = CorpusOptions(transpose=settings.get("transpose", CorpusOptions().transpose))
    corpus = open_corpus(path, datasets, options)
    if corpus.vocabulary != model.vocabulary:
        raise CorpusError(f"{path}: its vocabulary is not the model's, so it cannot be scored")
    return corpus


def score_split(model: Model, corpus: Corpus, name: str) -> Tally:
    """The exact nats of every piece of a split (see model/likelihood.py)."""
    split, vocabulary = corpus.split(name), model.vocabulary
    pieces = [split.piece(index) for index in range(len(split))]
    allowed = [unpacked(mask, vocabulary) for mask in masks_of_pieces(pieces, vocabulary)]
    context_length = model.decoder.config.context_length
    shorten = partial(rebase, context_length=context_length, vocabulary=vocabulary)
    nats = token_nats(model.decoder, pieces, allowed, rebase=shorten)
    kinds = np.concatenate([vocabulary.kind_of[piece[1:]] for piece in pieces])
    notes = int(split.note_counts.sum())
    return summarise(np.concatenate(nats), kinds, notes, len(vocabulary.kind_names))


def print_likelihood(model: Model, corpus: Corpus) -> None:
    """A table: nats per note of baselines and model, and the model's by kind of token."""
    splits = [name for name in ("valid", "test") if len(corpus.split(name))]
    baselines: dict[str, NGram] = {name: train(corpus, order) for order, name in NAMES.items()}
    tallies = {split: score_split(model, corpus, split) for split in splits}

    def line(label: str, values: list[float]) -> None:
        print(f"{label:12}" + "".join(f"{value:10.4f}" for value in values))

    print(f"{'':12}" + "".join(f"{name:>10}" for name in splits) + "   nats per note")
    for name, baseline in baselines.items():
        values = []
        for split_name in splits:
            split = corpus.split(split_name)
            pieces = [split.piece(index) for index in range(len(split))]
            allowed = masks_of_pieces(pieces, corpus.vocabulary)
            values.append(nats_per_note(baseline, split, corpus.vocabulary, allowed)[0])
        line(name, values)
    line("model", [tallies[name].per_note for name in splits])
    for number, kind in enumerate(model.vocabulary.kind_names):
        if any(tallies[name].counts[number] for name in splits):
            line(f"  {kind}", [tallies[name].by_kind[number] for name in splits])
    line("per token", [tallies[name].per_token for name in splits])
    print(f"{'notes':12}" + "".join(f"{tallies[name].notes:>10}" for name in splits))


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True, metavar="likelihood")
    likelihood = what.add_parser("likelihood", help="nats per note on held-out pieces")
    likelihood.add_argument(
        *("--checkpoint", "-c"),
        default=DEFAULT_CHECKPOINT,
        help="the model.safetensors of a run (default: %(default)s)",
    )
    likelihood.add_argument("--path", help="another corpus than the one it was trained on")
    likelihood.add_argument("--datasets", default="datasets", help="where corpora lie")
    arguments = parser.parse_args(argv)
    try:
        model = load(arguments.checkpoint)
        print_likelihood(model, corpus_of(model, arguments.path, arguments.datasets))
    except (BundleError, CorpusError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
