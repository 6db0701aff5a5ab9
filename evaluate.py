"""Judge a model on music that it has not seen.

    python evaluate.py likelihood --checkpoint runs/bach/model.safetensors

prints nats per note on the held-out splits of the corpus that the model was trained on, beside
unigram and bigram baselines on the same tokens, and by kind of token.

    python evaluate.py music --count 50

lets the model write pieces and measures them beside held-out ones; or any MIDI files in their
place.

    python evaluate.py attention --midi piece.mid --out maps.png

draws which tokens of a piece each head looks at.
"""

from __future__ import annotations

import argparse
import operator
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from data.compare import compare, table
from data.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.files import write_json
from data.fit import fit_score
from data.midi import read_midi
from data.ngrams import NAMES, nats_per_note, train
from data.pieces import pieces_at
from data.quantise import MidiError
from data.reading import printable
from data.render import token_labels, write_attention
from data.score import Score
from data.tokenizer import bar_head_size, bar_indices, decode, encode, window_head
from data.windows import WholePieces, rebase
from generate import (
    DEFAULT_CHECKPOINT,
    Length,
    Model,
    Parser,
    at_least_one,
    compose,
    fail,
    load,
    random_seed,
)
from model.bundle import BundleError
from model.likelihood import Tally, tally_pieces

MOST_TOKENS = 128  # in a picture of attention
MOST_ROWS = 32  # sampled side by side
MOST_LENGTHS = 10  # of the pieces a model writes: those of one length are written side by side
MOST_PIECES = 500  # of a split that are measured; more say nothing new


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


def pieces_of(corpus: Corpus, name: str, most: int | None = None, seed: int = 0) -> list[Score]:
    """The pieces of a split; where there are more than `most`, so many drawn at random."""
    split = corpus.split(name)
    numbers = np.arange(len(split))
    if most is not None and len(split) > most:
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, most, replace=False))
    return [decode(split.piece(number), corpus.vocabulary) for number in numbers.tolist()]


def sampled(model: Model, bars: Sequence[int], seed: int, label: str) -> list[Score]:
    """A piece of each of these lengths; those of one length are sampled side by side."""
    batches = []
    for length, count in sorted(Counter(bars).items()):
        batches += [(length, min(MOST_ROWS, left)) for left in range(count, 0, -MOST_ROWS)]
    pieces = []
    for number, (length, count) in enumerate(tqdm(batches, label, unit="batch", disable=None)):
        new = compose(model, length=Length(bars=length), samples=count, random_seed=seed + number)
        pieces += [piece.score for piece in new]
    return pieces


def lengths_like(pieces: Sequence[Score], count: int) -> list[int]:
    """So many lengths in bars, spread as those of the pieces are, most of them the same few."""
    places = (np.arange(count) % MOST_LENGTHS + 0.5) / min(count, MOST_LENGTHS)
    lengths = [len(score.bars) for score in pieces]
    return [int(length) for length in np.quantile(lengths, places, method="nearest")]


def measured(
    model: Model, corpus: Corpus, midi: Sequence[str], count: int, seed: int
) -> dict[str, Any]:
    """Musical statistics of pieces beside those of held-out ones: what `compare` gives.

    Args:
        model: which writes the pieces, as long as training pieces are.
        corpus: that it was trained on.
        midi: files and folders whose pieces are measured in place of the model's.
        count: how many the model writes.
        seed: of what is drawn.

    Raises:
        CorpusError: no pieces are held out.
        FileNotFoundError, MidiError: no piece in a file or folder.
    """
    held_out = "test" if len(corpus.split("test")) else "valid"
    real = {name: pieces_of(corpus, name, MOST_PIECES, seed) for name in (held_out, "train")}
    if not real[held_out]:
        raise CorpusError(f"{corpus.folder}: no pieces are held out, so there is no measure")
    if midi:
        options = CorpusOptions.from_settings(model.summary.get("data", {}))
        pieces, left_out = pieces_at(midi, model.vocabulary.grid, options.kept)
        for name, reason in left_out:
            print(f"left out: {printable(name)}: {reason}", file=sys.stderr)
    else:
        pieces = sampled(model, lengths_like(real["train"], count), seed, "Writing pieces")
    result = compare(pieces, real[held_out], real["train"], seed)
    return {"midi": list(midi), "held_out": held_out, "seed": seed, **result}


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
    maps = model.decoder.attention_maps(torch.from_numpy(ids)[None])[:, 0]  # (L, H, T, T)
    labels = token_labels(ids, model.vocabulary, first_bar)
    write_attention(maps.numpy(), labels, model.decoder.attention_names, out)


def _file(text: str, ending: str) -> str:
    if Path(text).suffix.lower() != ending or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"the name of a {ending} file is needed, not {text!r}")
    return text


def _tokens_shown(text: str) -> int:
    number = at_least_one(text)
    if number > MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"at most {MOST_TOKENS} can be read in a picture")
    return number


def command_line() -> argparse.ArgumentParser:
    """The options, in the order in which --help tells them."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(
        dest="what", required=True, metavar="likelihood | music | attention"
    )
    likelihood = what.add_parser("likelihood", help="nats per note on held-out pieces")
    music = what.add_parser("music", help="musical statistics beside those of held-out pieces")
    music.add_argument(
        *("midi",),
        nargs="*",
        metavar="MIDI",
        help="files and folders to measure in place of pieces that the model writes",
    )
    music.add_argument(
        *("--count", "-n"),
        type=at_least_one,
        default=50,
        help="how many pieces it writes (default: %(default)s)",
    )
    music.add_argument(
        "--seed", type=random_seed, default=0, help="the same number, the same figures (default: 0)"
    )
    music.add_argument(
        "--json",
        type=partial(_file, ending=".json"),
        metavar="FILE.json",
        help="write all figures to this file too",
    )
    for command in (likelihood, music):
        command.add_argument("--path", help="another corpus than the one it was trained on")
        command.add_argument("--datasets", default="datasets", help="where corpora lie")
    attention = what.add_parser("attention", help="a picture of which tokens look at which")
    attention.add_argument("--midi", required=True, metavar="FILE", help="what the model reads")
    attention.add_argument(
        "--out",
        required=True,
        type=partial(_file, ending=".png"),
        metavar="FILE.png",
        help="the picture to write",
    )
    attention.add_argument(
        "--from-bar", type=at_least_one, default=1, help="where it begins (default: %(default)s)"
    )
    attention.add_argument(
        "--tokens", type=_tokens_shown, default=64, help="how many it reads (default: %(default)s)"
    )
    for command in (likelihood, music, attention):
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
        elif arguments.what == "music":
            corpus = corpus_of(model, arguments.path, arguments.datasets)
            result = measured(model, corpus, arguments.midi, arguments.count, arguments.seed)
            print(table(result))
            if arguments.json:
                write_json({"music": result}, arguments.json)
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
