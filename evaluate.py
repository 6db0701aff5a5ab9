"""Judge a model on music that it has not seen.

    python evaluate.py likelihood --checkpoint runs/bach/model.safetensors

prints nats per note on the held-out splits of the corpus that the model was trained on, beside
unigram and bigram baselines on the same tokens, and by kind of token.

    python evaluate.py attention --midi piece.mid --out maps.png

draws which tokens of a piece each head looks at.
"""

from __future__ import annotations

import argparse
import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.fit import fit_score
from data.midi import read_midi
from data.ngrams import NAMES, nats_per_note, train
from data.quantise import MidiError
from data.render import token_labels, write_attention
from data.tokenizer import bar_head_size, bar_indices, encode, window_head
from data.windows import WholePieces
from generate import DEFAULT_CHECKPOINT, Model, Parser, at_least_one, fail, load
from model.bundle import BundleError
from model.likelihood import Tally, tally_pieces

MOST_TOKENS = 128  # in a picture of attention


def corpus_of(model: Model, path: str | None, datasets: str) -> Corpus:
    """The corpus a model was trained on, or the one at `path`, built if need be.

    Raises:
        CorpusError: its vocabulary is not the model's.
    """
    settings = model.summary.get("data", {})
    path = path or settings.get("path", "bach")
    options = CorpusOptions.from_settings(settings)
    corpus = open_corpus(path, datasets, options)
    if corpus.vocabulary != model.vocabulary:
        raise CorpusError(f"{path}: its vocabulary is not the model's, so it cannot be scored")
    return corpus


def score_pieces(model: Model, pieces: WholePieces) -> Tally:
    """The exact nats of whole pieces (see model/likelihood.py)."""
    vocabulary = model.vocabulary
    tallies = (
        tally_pieces(
            model.decoder,
            **batch,
            kind_of=vocabulary.kind_of,
            n_kinds=len(vocabulary.kind_names),
            rebase=model.rebase,
            beside=model.beside,
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


def opening_ids(
    model: Model, midi: str, from_bar: int, most: int
) -> tuple[NDArray[np.int64], list[str]]:
    """The first ids of a MIDI file, or those from a later bar on as a training window has them.

    Args:
        model: whose tokens they are.
        midi: path of the file.
        from_bar: the first bar; an upbeat is bar 0 and comes with bar 1.
        most: how many ids at most.

    Returns:
        The ids, and what was changed to fit the vocabulary.

    Raises:
        FileNotFoundError, MidiError: there is no such file, or no such bar in it.
    """
    score, told = fit_score(read_midi(midi, model.vocabulary.grid)[0], model.vocabulary)
    ids, last = encode(score, model.vocabulary), len(score.bars) - score.has_upbeat
    if not len(score.notes):
        raise MidiError(f"{midi}: no notes that the model has an instrument for")
    if from_bar > last:
        raise MidiError(f"{midi}: no bar {from_bar}, its last with a note is {last}")
    if from_bar == 1:
        return ids[:most], told
    start = int(bar_indices(ids, model.vocabulary)[from_bar - 1 + score.has_upbeat])
    head = window_head(ids, start, model.vocabulary)
    rest = ids[start + bar_head_size(ids, start, model.vocabulary) :]
    return np.concatenate([head, rest])[:most], told


def draw(model: Model, ids: NDArray[np.int64], first_bar: int, out: str) -> None:
    """The attention maps of all layers and heads over `ids`, as a picture."""
    beside = torch.from_numpy(model.beside(ids[None]))
    maps = model.decoder.attention_maps(torch.from_numpy(ids)[None], beside=beside)[:, 0]
    labels = token_labels(ids, model.vocabulary, first_bar)
    write_attention(maps.numpy(), labels, model.decoder.attention_names, out)


def _png(text: str) -> str:
    if Path(text).suffix.lower() != ".png" or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"the name of a .png file is needed, not {text!r}")
    return text


def _tokens_shown(text: str) -> int:
    number = at_least_one(text)
    if number > MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"at most {MOST_TOKENS} can be read in a picture")
    return number


def command_line() -> argparse.ArgumentParser:
    """The options, in the order in which --help tells them."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True, metavar="likelihood | attention")
    likelihood = what.add_parser("likelihood", help="nats per note on held-out pieces")
    likelihood.add_argument("--path", help="another corpus than the one it was trained on")
    likelihood.add_argument("--datasets", default="datasets", help="where corpora lie")
    attention = what.add_parser("attention", help="a picture of which tokens look at which")
    attention.add_argument("--midi", required=True, metavar="FILE", help="what the model reads")
    attention.add_argument(
        "--out", required=True, type=_png, metavar="FILE.png", help="the picture to write"
    )
    attention.add_argument(
        "--from-bar", type=at_least_one, default=1, help="where it begins (default: %(default)s)"
    )
    attention.add_argument(
        "--tokens", type=_tokens_shown, default=64, help="how many it reads (default: %(default)s)"
    )
    for command in (likelihood, attention):
        command.add_argument(
            *("--checkpoint", "-c"),
            default=DEFAULT_CHECKPOINT,
            help="the model.safetensors of a run (default: %(default)s)",
        )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    arguments = command_line().parse_args(argv)
    try:
        model = load(arguments.checkpoint)
        if arguments.what == "likelihood":
            print_likelihood(model, corpus_of(model, arguments.path, arguments.datasets))
        else:
            most = min(arguments.tokens, model.decoder.config.context_length)
            ids, told = opening_ids(model, arguments.midi, arguments.from_bar, most)
            if told:
                print(f"the piece was fitted to the model: {'; '.join(told)}")
            draw(model, ids, arguments.from_bar, arguments.out)
    except (BundleError, CorpusError, MidiError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
