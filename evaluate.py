"""Judge a model on music that it has not seen.

    python evaluate.py likelihood --checkpoint runs/bach/model.safetensors

prints nats per note on the held-out splits of the corpus that the model was trained on, beside
unigram and bigram baselines on the same tokens, and by kind of token.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import partial, reduce

from data.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.ngrams import NAMES, nats_per_note, train
from data.windows import WholePieces, rebase
from generate import DEFAULT_CHECKPOINT, Model, Parser, fail, load
from model.bundle import BundleError
from model.likelihood import Tally, tally_pieces


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


def score_pieces(model: Model, pieces: WholePieces) -> Tally:
    """The exact nats of whole pieces (see model/likelihood.py)."""
    vocabulary = model.vocabulary
    context_length = model.decoder.config.context_length
    tallies = (
        tally_pieces(
            model.decoder,
            **batch,
            kind_of=vocabulary.kind_of,
            n_kinds=len(vocabulary.kind_names),
            rebase=partial(rebase, context_length=context_length, vocabulary=vocabulary),
        )
        for batch in pieces
    )
    return reduce(operator.add, tallies)


def print_likelihood(model: Model, corpus: Corpus) -> None:
    """A table: nats per note of baselines and model, and the model's by kind of token."""
    splits = {name: corpus.split(name) for name in ("valid", "test")}
    held_out = {
        name: WholePieces(split, corpus.vocabulary) for name, split in splits.items() if len(split)
    }
    tallies = [score_pieces(model, pieces) for pieces in held_out.values()]

    def line(label: str, values: Iterable[float]) -> None:
        print(f"{label:12}" + "".join(f"{value:10.4f}" for value in values))

    print(f"{'':12}" + "".join(f"{name:>10}" for name in held_out) + "   nats per note")
    for order, name in NAMES.items():
        baseline = train(corpus, order)
        line(name, [nats_per_note(baseline, pieces) for pieces in held_out.values()])
    line("model", [tally.per_note for tally in tallies])
    for number, kind in enumerate(model.vocabulary.kind_names):
        if any(tally.counts[number] for tally in tallies):
            line(f"  {kind}", [tally.by_kind[number] for tally in tallies])
    line("per token", [tally.per_token for tally in tallies])
    print(f"{'notes':12}" + "".join(f"{tally.notes:>10}" for tally in tallies))


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
