"""Runs evaluate.py after its options are checked: each command prints what it measures."""

import argparse
import shlex
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from common.cli import fail, say
from common.files import write_file, write_json
from common.text import counted, printable
from data.batches.id_sequences import open_id_sequences
from data.corpus.corpus import CorpusError
from data.files.read import read_score
from data.midi.quantize import MidiError
from data.tokens.adapt import adapt_score
from data.tokens.tokenizer import encode
from evaluation import tables
from evaluation.comparison import compare
from evaluation.html_report import write_report
from evaluation.likelihood import (
    Baseline,
    EvaluationSet,
    measure_likelihood,
    measure_sequences,
    measure_surprise,
    most_surprising,
    read_files,
)
from evaluation.ngrams import fit_baselines
from evaluation.originality import measure_originality
from evaluation.samples import real_pieces, sample_like_corpus
from evaluation.summary import summarize_model
from generation import sequences
from generation.compose import candidates
from generation.model import Model, OfIdsError, corpus_of, load
from model.serialization import ModelFileError
from rendering.attention_map import draw_attention, token_labels
from rendering.piano_roll import draw_surprise
from rendering.png import png_bytes

ATTENTION_TOKENS = 64  # in a picture
MAX_NOTES = 10  # listed as the most surprising


def run_likelihood(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Print how likely the model finds splits, files, or the notes of one piece."""
    if options.piece:
        return _run_piece(model, options)
    files = EvaluationSet.of_files(model, read_files(model, options.midi)) if options.midi else None
    baselines = _beside(model, options)
    try:
        corpus = corpus_of(model, options.path, options.datasets)
    except (CorpusError, OSError) as error:
        if options.path or not files:
            raise
        say(f"no baselines: {error}", sys.stderr)  # the model can be judged without baselines
        sets = [files]
    else:
        baselines = {**fit_baselines(corpus), **baselines}
        splits = [name for name in options.splits if corpus.split(name)]
        sets = [files] if files else [EvaluationSet.of_split(corpus, name) for name in splits]
        if not sets:
            raise CorpusError(f"{corpus.folder}: no piece in {' or '.join(options.splits)}")
    results = [measure_likelihood(model, baselines, pieces) for pieces in sets]
    lines = [message for pieces in sets for message in pieces.messages]
    lines += [*tables.likelihood_lines(results), *(tables.file_lines(results[0]) if files else ())]
    _print(lines)
    return {"likelihood": results}


def _beside(model: Model, options: argparse.Namespace) -> dict[str, Baseline]:
    """Return the model to compare with, if any, by a short name."""
    if options.beside is None:
        return {}
    other = load(options.beside)
    if other.vocabulary != model.vocabulary:
        raise ModelFileError(f"{options.beside}: its vocabulary differs from the model's")
    name = "/".join(Path(options.beside).absolute().with_suffix("").parts[-2:])
    return {name: lambda ids, allowed: other.token_nats([ids], [allowed])[0]}


def _run_piece(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Draw how surprising each note of a file is, and print the most surprising notes."""
    score, nats, messages = measure_surprise(model, options.piece)
    notes, total = most_surprising(score, nats, MAX_NOTES), nats.sum(axis=1)
    title = printable(Path(options.piece).name)
    labels = [(note.note, note.label) for note in notes]
    write_file(png_bytes(draw_surprise(score, total, labels, title).svg), options.out)
    _print(messages)
    _print(tables.surprise_table(notes).lines())
    surprise = {"file": options.piece, "messages": messages, "nats": total.tolist(), "most": notes}
    return {"surprise": surprise}


def run_originality(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Print how much of some files is in the training set."""
    files = read_files(model, options.midi)  # before a corpus is built for them
    corpus = corpus_of(model, options.path, options.datasets)
    result = measure_originality(files.scores, files.names, corpus)
    _print([*files.messages, *tables.originality_lines(result)])
    return {"originality": result}


def run_music(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Print the statistics of pieces that the model writes, or of files, beside real ones."""
    files = read_files(model, options.midi) if options.midi else None
    corpus = corpus_of(model, options.path, options.datasets)
    if files:
        scores = files.scores
        _print(files.messages, file=sys.stderr)
    else:
        scores = sample_like_corpus(model, corpus, options.count, options.seed)
    real = real_pieces(corpus, options.seed)
    result = compare(scores, real, options.seed)
    _print(tables.statistics_lines(result))
    measured: dict[str, Any] = {"music": {"midi": options.midi, **vars(result)}}
    if not files and (many := candidates(model)) > 1:
        best = sample_like_corpus(model, corpus, options.count, options.seed, many)
        kept = compare(best, real, options.seed)
        _print(textwrap.wrap(tables.kept_note(kept, many), tables.LINE_WIDTH))
        measured["kept"] = {"candidates": many, **vars(kept)}
    return measured


def run_all(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Print the most important results of all measurements, and write the report."""
    files = read_files(model, options.midi) if options.midi else None
    beside = _beside(model, options)
    corpus = corpus_of(model, options.path, options.datasets)
    summary, examples = summarize_model(model, corpus, files, options.count, options.seed, beside)
    _print(textwrap.wrap(tables.verdict(summary), tables.LINE_WIDTH))
    _print([*tables.likelihood_lines(summary.likelihood), *tables.statistics_lines(summary.music)])
    if options.html:
        command = shlex.join(["python", "evaluate.py", *options.command])
        write_report(summary, examples, options.checkpoint, command, options.html)
    return vars(summary)


def run_attention(model: Model, options: argparse.Namespace) -> dict[str, Any]:
    """Draw the attention maps of all layers and heads over the first tokens of a file."""
    score, messages = adapt_score(
        read_score(options.midi, model.vocabulary.grid)[0], model.vocabulary
    )
    if not len(score.notes):
        raise MidiError(f"{options.midi}: no notes that the model has an instrument for")
    if messages:
        say(f"the piece was fitted to the model: {'; '.join(messages)}")
    longest = min(ATTENTION_TOKENS, model.network.config.context_length)
    ids = encode(score, model.vocabulary)[:longest]
    maps = model.steps.attention_maps(ids, model.side(ids[None]))
    labels = token_labels(ids, model.vocabulary)
    picture = draw_attention(np.stack([*maps.values()]), labels, [*maps])
    write_file(png_bytes(picture), options.out)
    say(f"{options.out}: which of the first {counted(len(ids), 'token')} look at which")
    return {}


def run_sequences(options: argparse.Namespace) -> dict[str, Any]:
    """Print how likely a model finds sequences that are not music."""
    if options.midi or options.piece or options.beside:
        fail("MIDI files, --piece and --beside are about music: this is a model of ids")
    model = sequences.load(options.checkpoint)
    path = options.path or model.record.data.get("path", "")
    source = open_id_sequences(path, model.vocabulary.ids)
    if source.vocabulary != model.vocabulary:
        raise CorpusError(f"{path}: its ids are not the model's, so it cannot be scored")
    baselines, splits = fit_baselines(source), [s for s in options.splits if source.split(s)]
    if not splits:
        raise CorpusError(f"{path}: no sequence in {' or '.join(options.splits)}")
    results = [measure_sequences(model, baselines, source, split) for split in splits]
    _print(tables.sequence_table(results).lines())
    return {"likelihood": results}


def _print(lines: Iterable[str], file: TextIO | None = None) -> None:
    for line in lines:
        say(line, file)


def run(options: argparse.Namespace) -> None:
    """Run one of the commands, or fail with one line."""
    try:
        try:
            model = load(options.checkpoint)
        except OfIdsError:
            if options.what != "likelihood":
                raise
            results = run_sequences(options)
        else:
            command = globals()[f"run_{options.what}"]  # one of evaluate.py's COMMANDS
            results = command(model, options)
        if options.json:
            write_json({"checkpoint": str(options.checkpoint), **results}, options.json)
    except (ModelFileError, CorpusError, MidiError, OSError) as error:
        fail(str(error))
