"""The model that a benchmark measures, and the corpus that the model was trained on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from common.cli import fail
from data.corpus.corpus import Corpus, CorpusError
from data.midi.quantize import MidiError
from generation.model import Model, corpus_of, load
from model.serialization import ModelFileError


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a model's corpus lies."""
    parser.add_argument("--path", help="the corpus, if it is elsewhere than when it was learned")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")


@contextmanager
def refused_in_a_line() -> Iterator[None]:
    """End the command with a one-line message if a file cannot be used."""
    try:
        yield
    except (ModelFileError, CorpusError, MidiError, OSError) as error:
        fail(str(error))


def model_and_corpus(options: argparse.Namespace) -> tuple[Model, Corpus]:
    """Return the model of --checkpoint, by default the shipped one, and its training corpus."""
    with refused_in_a_line():
        model = load(options.checkpoint)
        return model, corpus_of(model, options.path, options.datasets)
