"""A trained model as programs use it: the decoder, its vocabulary, and what it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from common.arrays import Bools, Ids, Reals
from common.cli import say
from common.typed_json import from_json
from data.batches.id_sequences import is_of_ids
from data.corpus.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.score import Score
from data.style import Style
from data.tokens.context import LEAST_CONTEXT, rebase
from data.tokens.features import SideArrays, SideFeatures, has_harmony
from data.tokens.grammar import Grammar
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constraints import Constraints
from generation.defaults import DEFAULT_SAMPLING, default_model, model_path
from model.config import SamplingOptions
from model.engine import Engine
from model.network import Network
from model.record import TrainingRecord
from model.scoring import token_nats
from model.serialization import ModelFileError, load_model_file

FITTED = ("temperature", "rhythm_temperature", "top_p")  # of `Style`, as `fit_sampling` finds them


class OfIdsError(ModelFileError):
    """The model is of sequences that are no music (generation/sequences.py)."""


@dataclass(frozen=True)
class Model:
    """A trained decoder, its vocabulary, and what is known of its music and of its training."""

    network: Network
    vocabulary: Vocabulary
    style: Style = field(default_factory=Style)
    record: TrainingRecord = field(default_factory=TrainingRecord)
    path: Path | None = None  # of the file that it was loaded from

    @cached_property
    def steps(self) -> Engine:
        """The decoder, compiled."""
        return Engine(self.network)

    @property
    def sampling(self) -> SamplingOptions:
        """How it samples where nothing is said: as `fit_sampling` found at the end of training."""
        its = {name: getattr(self.style, name) for name in FITTED}
        return replace(DEFAULT_SAMPLING, **{n: v for n, v in its.items() if v is not None})

    def sampled(self, sampling: SamplingOptions) -> Model:
        """Return the model with how it samples where nothing is said."""
        its = {name: getattr(sampling, name) for name in FITTED}
        return replace(self, style=replace(self.style, **its))

    @cached_property
    def features(self) -> SideFeatures:
        """What computes the decoder's side input from ids."""
        blocks = self.network.config.side_blocks
        return SideFeatures(self.vocabulary, has_harmony(blocks))

    @cached_property
    def choices(self) -> Ids:
        """(V,) the number of each id's choice of rhythm: all pitches of a program are one.

        So it is chosen when notes begin and who plays them, how long they are, bars and so on.
        """
        notes = self.vocabulary.ids(Kind.NOTE)
        choice = np.arange(self.vocabulary.size)
        choice[notes] -= (choice[notes] - notes.start) % self.vocabulary.pitch_count
        return choice

    def side(self, ids: Ids, rows: object = ()) -> SideArrays:
        """Return the side input of windows of ids (B, T), the piece's end unknown."""
        return self.features.compute(ids)

    def rebase(self, history: Ids) -> Ids:
        """Return the shorter prompt with which a piece goes on when the context is full."""
        return rebase(history.astype(np.int64), self.network.config.context_length, self.vocabulary)

    def retimed(self, constraints: Constraints, given: Score | None) -> Model:
        """Return the model at the tempo asked for or given, if it has only one of its own."""
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
            pieces: ids (T,) each, from Start to End.
            allowed: the grammar's masks (T - 1, V), one a piece; None: computed here.

        Returns:
            (T - 1,) for each piece: of each token but Start (see model/scoring.py).
        """
        if allowed is None:
            allowed = [*map(Grammar(self.vocabulary).masks, pieces)]
        return token_nats(self.steps, pieces, allowed, rebase=self.rebase, side=self.side)


def load(path: str | Path | None = None) -> Model:
    """Return the model in a `model.safetensors` file, or of a name that ships; None: the best.

    Raises:
        FileNotFoundError: none was named, and there is none.
        ModelFileError: there is no such file, or no model that this program can use in it.
        OfIdsError: it is a model of sequences that are no music.
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
    if not config.n_durations:  # of before there was an end head
        shape |= {"n_durations": 0, "first_duration": 0}
    if not config.n_classes:  # of before it was told
        shape |= {"n_classes": 0}
    if any(getattr(config, name) != n for name, n in shape.items()):
        raise ModelFileError(f"{path}: its side input differs from this program's: train it again")
    return model


def corpus_of(model: Model, path: str | None = None, datasets: str = "datasets") -> Corpus:
    """Open the corpus a model was trained on, or the one at `path`; build it if need be.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: nothing in it, or its vocabulary is not the model's.
    """
    settings, learned = model.record.data, model.record.corpus
    folder = path or settings.get("path", "bach")
    corpus = open_corpus(folder, datasets, CorpusOptions.from_settings(settings))
    if corpus.vocabulary != model.vocabulary:
        raise CorpusError(f"{folder}: its vocabulary is not the model's, so it cannot be scored")
    if path is None and learned not in (None, corpus.content):
        say(f"{folder} has changed since training: the model may have learned what is held out now")
    return corpus
