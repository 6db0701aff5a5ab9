"""Judge a model on music that it has not seen.

    python evaluate.py likelihood --checkpoint runs/bach/model.safetensors

prints nats per note and bits per second on the held-out splits of the corpus that the model was
trained on, beside n-gram baselines on the same tokens, and by kind of token; with names of MIDI
files or folders, on these.

    python evaluate.py likelihood --piece piece.mid --out surprise.png

draws how surprising each note of a piece is, and lists the most surprising.

    python evaluate.py originality piece.mid

says which runs of notes the training pieces hold too, in any key, and where.

    python evaluate.py music --count 50

lets the model write pieces and measures them beside held-out ones; or any MIDI files in their
place.

    python evaluate.py attention --midi piece.mid --out maps.png

draws which tokens of a piece each head looks at.

    python evaluate.py all --html report.html --json report.json

judges it by all of these, and writes one page to read and to hear.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from common.cli import Parser, fail, positive_integer, random_seed
from common.files import check_writable, write_json
from common.text import printable
from data.corpus.corpus import SPLITS, Corpus, CorpusError, CorpusOptions, open_corpus
from data.midi.io import read_midi
from data.midi.quantize import MidiError
from data.tokens.adapt import adapt_score
from data.tokens.context import bar_head_size, window_head
from data.tokens.tokenizer import bar_indices, encode
from evaluation.comparison import table
from evaluation.html_report import write_report
from evaluation.likelihood import Music, likelihood, music_of_files, read_files, surprises
from evaluation.ngrams import NAMES, train
from evaluation.originality import originality
from evaluation.samples import measured, written_like
from evaluation.summary import MOST_NOTES, overall
from evaluation.surprise import most_surprising
from evaluation.tables import (
    file_lines,
    headlines,
    likelihood_lines,
    originality_lines,
    surprise_label,
    surprise_line,
)
from generation.model import DEFAULT_CHECKPOINT, Model, load
from model.decoding import side_tensors
from model.serialization import ModelFileError
from rendering.attention_map import draw_attention, token_labels
from rendering.piano_roll import draw_surprise
from rendering.png import write_png

PIECES = 30  # that `all` lets the model write: a minute has to do for everything
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


def judge_likelihood(model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Prints how likely the model finds splits, or files; gives the figures."""
    try:
        corpus = corpus_of(model, given.path, given.datasets)
    except (CorpusError, OSError) as error:
        if given.path or not given.midi:
            raise
        print(f"no baselines: {error}", file=sys.stderr)  # the model can be judged without
        baselines, musics = {}, [music_of_files(model, given.midi)]
    else:
        baselines = {name: train(corpus, order) for order, name in NAMES.items()}
        if given.midi:
            musics = [music_of_files(model, given.midi)]
        else:
            musics = [Music.of(corpus, name) for name in given.splits if corpus.split(name)]
    if not musics:
        raise CorpusError(f"{corpus.folder}: no piece in {' or '.join(given.splits)}")
    sets = [likelihood(model, baselines, music) for music in musics]
    for line in (line for music in musics for line in music.told):
        print(printable(line))
    lines = [*likelihood_lines(sets), *(file_lines(sets[0]) if given.midi else ())]
    print("\n".join(map(printable, lines)))
    return {"likelihood": sets}


def judge_piece(model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Draws how surprising each note of a file is, prints the most surprising; gives these."""
    score, nats, told = surprises(model, given.piece)
    listed = most_surprising(score, nats, MOST_NOTES)
    labels = [(note["note"], surprise_label(note)) for note in listed]
    total = nats.sum(axis=1)
    title = printable(Path(given.piece).name)
    write_png(draw_surprise(score, total, labels, title), given.out)
    print("\n".join(f"{given.piece}: {line}" for line in told), end="\n" * bool(told))
    for number, note in enumerate(listed):
        print(f"{number + 1:2}  {surprise_line(note)}")
    return {"surprise": {"file": given.piece, "told": told, "nats": total.tolist(), "most": listed}}


def judge_originality(model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Prints what of some files stands in the training set; gives it."""
    corpus = corpus_of(model, given.path, given.datasets)
    readings = read_files(model, given.midi)
    result = originality(readings.scores, readings.names, corpus)
    print("\n".join(map(printable, [*readings.messages, *originality_lines(result)])))
    return {"originality": result}


def judge_music(model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Prints the statistics of pieces that it writes, or of files, beside real ones; gives them."""
    corpus = corpus_of(model, given.path, given.datasets)
    if given.midi:
        readings = read_files(model, given.midi)
        pieces = [readings.scores[number] for number in range(len(readings.scores))]
        for line in readings.messages:
            print(printable(line), file=sys.stderr)
    else:
        pieces = written_like(model, corpus, given.count, given.seed)
    result = measured(pieces, corpus, given.seed)
    print(table(result))
    return {"music": {"midi": given.midi, **result}}


def judge_all(model: Model, given: argparse.Namespace) -> dict[str, Any]:
    """Prints what matters most of all that is known, writes the page; gives the figures."""
    for path in filter(None, (given.html, given.json)):
        check_writable(path)
    corpus = corpus_of(model, given.path, given.datasets)
    judged = overall(model, corpus, given.midi, given.count, given.seed)
    for figure, what in headlines(judged.figures):
        print(f"{figure:>9}  {what}")
    if given.html:
        command = shlex.join(["python", "evaluate.py", *given.command])
        write_report(judged, given.checkpoint, command, given.html)
    return judged.figures


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
    score, told = adapt_score(read_midi(midi, model.vocabulary.grid)[0], model.vocabulary)
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
    side = side_tensors(model.side(ids[None]), torch.device("cpu"))
    maps = model.decoder.attention_maps(torch.from_numpy(ids)[None], side=side)[:, 0]
    labels = token_labels(ids, model.vocabulary, first_bar)
    write_png(draw_attention(maps.numpy(), labels, model.decoder.attention_names), out)


def _file(text: str, ending: str) -> str:
    if Path(text).suffix.lower() != ending or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"the name of a {ending} file is needed, not {text!r}")
    return text


_png, _json, _html = (partial(_file, ending=ending) for ending in (".png", ".json", ".html"))


def _tokens_shown(text: str) -> int:
    number = positive_integer(text)
    if number > MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"at most {MOST_TOKENS} can be read in a picture")
    return number


def command_line() -> argparse.ArgumentParser:
    """The options, in the order in which --help tells them."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(
        dest="what", required=True, metavar="likelihood | music | originality | attention | all"
    )
    likelihood = what.add_parser("likelihood", help="how likely pieces are, and each note of one")
    likelihood.add_argument(
        "midi", nargs="*", metavar="FILE", help="MIDI files and folders to score, not the splits"
    )
    likelihood.add_argument(
        "--splits",
        nargs="+",
        choices=SPLITS,
        default=SPLITS[1:],
        help="which splits to score (default: %(default)s)",
    )
    likelihood.add_argument(
        "--piece", metavar="FILE", help="a MIDI file: draw and list how surprising its notes are"
    )
    likelihood.add_argument("--out", type=_png, metavar="FILE.png", help="the picture of --piece")
    music = what.add_parser("music", help="musical statistics beside those of held-out pieces")
    music.add_argument(
        "midi", nargs="*", metavar="FILE", help="MIDI files and folders, not pieces it writes"
    )
    originality = what.add_parser("originality", help="what of some pieces stands in training")
    originality.add_argument("midi", nargs="+", metavar="FILE", help="MIDI files, and folders")
    everything = what.add_parser("all", help="all of these but attention, on a page with sound")
    everything.add_argument(
        "midi", nargs="*", metavar="FILE", help="MIDI files to show too; pictures beside them count"
    )
    everything.add_argument(
        "--html", type=_html, metavar="FILE.html", help="write the page here; it needs nothing else"
    )
    for command, count in ((music, 50), (everything, PIECES)):
        command.add_argument(
            *("--count", "-n"),
            type=positive_integer,
            default=count,
            help="how many pieces it writes (default: %(default)s)",
        )
        command.add_argument(
            "--seed",
            type=random_seed,
            default=0,
            help="the same number, the same figures (default: 0)",
        )
    for command in (likelihood, music, originality, everything):
        command.add_argument("--path", help="another corpus than the one it was trained on")
        command.add_argument("--datasets", default="datasets", help="where corpora lie")
        command.add_argument(
            "--json", type=_json, metavar="FILE.json", help="write the figures here too"
        )
    attention = what.add_parser("attention", help="a picture of which tokens look at which")
    attention.add_argument("--midi", required=True, metavar="FILE", help="what the model reads")
    attention.add_argument(
        "--out",
        required=True,
        type=_png,
        metavar="FILE.png",
        help="the picture to write",
    )
    attention.add_argument(
        "--from-bar",
        type=positive_integer,
        default=1,
        help="where it begins (default: %(default)s)",
    )
    attention.add_argument(
        "--tokens", type=_tokens_shown, default=64, help="how many it reads (default: %(default)s)"
    )
    for command in (likelihood, music, originality, everything, attention):
        command.add_argument(
            *("--checkpoint", "-c"),
            default=DEFAULT_CHECKPOINT,
            help="the model.safetensors of a run (default: %(default)s)",
        )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    arguments = command_line().parse_args(argv)
    arguments.command = sys.argv[1:] if argv is None else argv
    if arguments.what == "likelihood":
        if bool(arguments.piece) != bool(arguments.out):
            fail("--piece FILE and --out FILE.png go together: what to read, what to draw")
        if arguments.piece and arguments.midi:
            fail("--piece is about one file: leave out the others")
    try:
        model = load(arguments.checkpoint)
        figures: dict[str, Any] = {}
        if arguments.what == "originality":
            figures = judge_originality(model, arguments)
        elif arguments.what == "music":
            figures = judge_music(model, arguments)
        elif arguments.what == "all":
            figures = judge_all(model, arguments)
        elif arguments.what == "likelihood":
            judge = judge_piece if arguments.piece else judge_likelihood
            figures = judge(model, arguments)
        else:
            most = min(arguments.tokens, model.decoder.config.context_length)
            ids, told = opening_ids(model, arguments.midi, arguments.from_bar, most)
            if told:
                print(f"the piece was fitted to the model: {'; '.join(told)}")
            draw(model, ids, arguments.from_bar, arguments.out)
        if figures and arguments.json:
            write_json({"checkpoint": arguments.checkpoint, **figures}, arguments.json)
    except (ModelFileError, CorpusError, MidiError, OSError) as error:
        fail(str(error))


if __name__ == "__main__":
    main()
