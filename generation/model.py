"""A trained model as programs use it: the decoder, its vocabulary, its style, and its training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from common.arrays import Bools, Ids, Reals
from common.cli import say
from common.compile_cache import compile_beside
from common.interface import SideArrays
from common.typed_json import from_json
from data.batches.id_sequences import is_of_ids
from data.corpus.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.score import Score
from data.style import Style
from data.tokens.context import LEAST_CONTEXT, rebase
from data.tokens.features import SideFeatures, has_harmony
from data.tokens.grammar import Grammar
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constraints import Constraints
from generation.defaults import DEFAULT_SAMPLING, default_model, model_path
from model.config import SamplingOptions
from model.engine import Engine, heads
from model.network import Network
from model.record import TrainingRecord
from model.scoring import token_nats
from model.serialization import ModelFileError, load_model_file

_READ = """
import sys
from generation.model import load
load(sys.argv[1]).read_start()
"""
FITTED = ("temperature", "rhythm_temperature", "top_p")  # fields of `Style` set by `fit_sampling`


class OfIdsError(ModelFileError):
    """The model writes sequences that are not music (generation/sequences.py)."""


@dataclass(frozen=True)
class Model:
    """A trained decoder, its vocabulary, the style of its music, and the record of its training."""

    network: Network
    vocabulary: Vocabulary
    style: Style = field(default_factory=Style)
    record: TrainingRecord = field(default_factory=TrainingRecord)
    path: Path | None = None  # the file that it was loaded from

    @cached_property
    def steps(self) -> Engine:
        """The decoder, compiled."""
        return Engine(self.network)

    @property
    def sampling(self) -> SamplingOptions:
        """The model's default sampling options, as `fit_sampling` found them after training."""
        its = {name: getattr(self.style, name) for name in FITTED}
        return replace(DEFAULT_SAMPLING, **{n: v for n, v in its.items() if v is not None})

    def sampled(self, sampling: SamplingOptions) -> Model:
        """Return the model with other default sampling options."""
        its = {name: getattr(sampling, name) for name in FITTED}
        return replace(self, style=replace(self.style, **its))

    @cached_property
    def features(self) -> SideFeatures:
        """The object that computes the decoder's side input from ids."""
        blocks = self.network.config.side_blocks
        return SideFeatures(self.vocabulary, has_harmony(blocks))

    @cached_property
    def choices(self) -> Ids:
        """(V,) the number of the rhythm choice that each id belongs to.

        All notes of a program are one choice, and any other id is its own. Sampling first chooses
        among these: onsets, programs, durations, bars and so on; pitches come second.
        """
        notes = self.vocabulary.ids(Kind.NOTE)
        choice = np.arange(self.vocabulary.size)
        choice[notes] -= (choice[notes] - notes.start) % self.vocabulary.pitch_count
        return choice

    def compile_reading(self) -> None:
        """Begin to compile what reads ids in another process, while this one compiles the rules."""
        if self.path is not None:
            compile_beside(heads, _READ, str(self.path))

    def read_start(self) -> None:
        """Read Start, which compiles what reads ids."""
        start = np.full((1, 1), Kind.START)
        self.steps.read(start, self.side(start))

    def side(self, ids: Ids, rows: object = ()) -> SideArrays:
        """Return the side input of windows of ids (B, T), without telling where the piece ends."""
        return self.features.compute(ids)

    def rebase(self, history: Ids) -> Ids:
        """Return the shorter prompt from which a piece goes on when the context is full."""
        return rebase(history.astype(np.int64), self.network.config.context_length, self.vocabulary)

    def retimed(self, constraints: Constraints, given: Score | None) -> Model:
        """Return the model; if it has a single tempo, it takes the requested or given one."""
        vocabulary = constraints.retimed(self.vocabulary, given)
        if vocabulary == self.vocabulary:
            return self
        other = replace(self, vocabulary=vocabulary)
        object.__setattr__(other, "steps", self.steps)  # the same weights
        return other

    def token_nats(
        self, pieces: Sequence[Ids], allowed: Sequence[Bools] | None = None
    ) -> list[Reals]:
        """Return the negative log-likelihood of each token of whole pieces, in nats.

        Args:
            pieces: the ids (T,) of each piece, from Start to End.
            allowed: the grammar's mask (T - 1, V) of each piece; None: they are computed here.

        Returns:
            (T - 1,) for each piece: the nats of every token but Start (see model/scoring.py).

        Raises:
            ValueError: an id is outside the vocabulary, or not allowed in its place.
        """
        last = self.vocabulary.size - 1
        for piece in pieces:
            if not 0 <= np.min(piece, initial=0) <= np.max(piece, initial=0) <= last:
                raise ValueError(f"an id outside the vocabulary, which has those from 0 to {last}")
        if allowed is None:
            allowed = [*map(Grammar(self.vocabulary).masks, pieces)]
        return token_nats(self.steps, pieces, allowed, rebase=self.rebase, side=self.side)


def load(path: str | Path | None = None) -> Model:
    """Load a model.

    Args:
        path: a `model.safetensors` file, the folder of a run, or the name of a shipped model; None:
            the best model there is (`default_model`).

    Raises:
        FileNotFoundError: `path` is None, and there is no model.
        ModelFileError: there is no such file, or this program cannot use the model in it.
        OfIdsError: the model writes sequences that are not music.
    """
    path = default_model()[0] if path is None else model_path(path)
    content = load_model_file(path)
    config = content.network.config
    try:
        vocabulary = Vocabulary.from_json(content.vocabulary_json)
        style = from_json(Style, content.style_json)
    except ValueError as error:
        if is_of_ids(content.vocabulary_json):
            raise OfIdsError(
                f"{path}: a model of ids, which are no music; generate.py --out new.jsonl writes "
                f"some"
            ) from None
        raise ModelFileError(f"{path}: {error}") from None
    if vocabulary.size != config.vocabulary_size:
        raise ModelFileError(f"{path}: the vocabulary does not fit the model beside it")
    if config.context_length < LEAST_CONTEXT:
        raise ModelFileError(f"{path}: its context is shorter than {LEAST_CONTEXT} tokens")
    model = Model(content.network, vocabulary, style, content.record, Path(path))
    shape = model.features.shape
    if not config.n_durations:  # an older model, without an end head
        shape |= {"n_durations": 0, "first_duration": 0}
    if not config.n_classes:  # an older model, which is not told pitch classes
        shape |= {"n_classes": 0}
    if any(getattr(config, name) != n for name, n in shape.items()):
        raise ModelFileError(f"{path}: its side input differs from this program's: train it again")
    return model


def corpus_of(model: Model, path: str | None = None, datasets: str = "datasets") -> Corpus:
    """Open the corpus that a model was trained on, or the one at `path`; build it if need be.

    Raises:
        FileNotFoundError: there is no such folder.
        CorpusError: the folder has no music, or its vocabulary differs from the model's.
    """
    settings, learned = model.record.data, model.record.corpus
    folder = path or settings.get("path", "bach")
    corpus = open_corpus(folder, datasets, CorpusOptions.from_settings(settings))
    if corpus.vocabulary != model.vocabulary:
        raise CorpusError(f"{folder}: its vocabulary is not the model's, so it cannot be scored")
    if path is None and learned not in (None, corpus.content):
        say(f"{folder} has changed since training: the model may have learned what is held out now")
    return corpus
