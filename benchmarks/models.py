"""The model that a benchmark is about, and the corpus that it learned from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from common.arrays import Bools, Ids, Reals
from common.cli import fail
from common.interface import PAD
from data.corpus.corpus import Corpus, CorpusError
from data.midi.quantize import MidiError
from data.tokens.features import SideArrays
from data.tokens.windows import read_windows
from generation.model import Model, corpus_of, load
from model.scoring import Row, token_nats
from model.serialization import ModelFileError


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a model's corpus lies."""
    parser.add_argument("--path", help="the corpus, if it is elsewhere than when it was learned")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")


@contextmanager
def refused_in_a_line() -> Iterator[None]:
    """End the command by a line where a file is not what it should be."""
    try:
        yield
    except (ModelFileError, CorpusError, MidiError, OSError) as error:
        fail(str(error))


def model_and_corpus(options: argparse.Namespace) -> tuple[Model, Corpus]:
    """Return the model of --checkpoint, by default the one that ships, and what it learned."""
    with refused_in_a_line():
        model = load(options.checkpoint)
        return model, corpus_of(model, options.path, options.datasets)


def told_nats(
    model: Model, pieces: Sequence[Ids], allowed: Sequence[Bools], number: str, **tables: Any
) -> list[Reals]:
    """Return the nats of each token of whole pieces (`token_nats`) that are told something.

    Args:
        model, pieces, allowed: as of `Model.token_nats`.
        number: the field of `Context` that has the number of the piece.
        tables: of what is told, by the names in `Context`.
    """
    now = [read_windows(piece[None], model.vocabulary)[0][0] for piece in pieces]

    def side(ids: Ids, rows: Sequence[Row]) -> SideArrays:
        last = np.count_nonzero(ids != PAD, axis=1) - 1
        own = read_windows(ids, model.vocabulary)[0][np.arange(len(ids)), last]
        begin = np.array([now[row.piece][row.end - 1] for row in rows]) - own
        which = np.array([row.piece for row in rows])
        nothing = model.features.nothing(len(ids))
        context = nothing._replace(**{number: which, "begin": begin, **tables})
        return model.features.compute(ids, context)

    return token_nats(model.steps, pieces, allowed, rebase=model.rebase, side=side)
