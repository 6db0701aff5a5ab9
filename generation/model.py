"""A trained model as programs use it: the decoder, its vocabulary, and what it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from common.interface import OCTAVE
from common.typed_json import from_json
from data.batches.windows import masks_of_pieces, unpacked
from data.corpus.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.corpus.runs import RunIndex, index_runs
from data.forms import Form
from data.keys import PROFILES, Key
from data.style import Style
from data.tokens.context import LEAST_CONTEXT, rebase
from data.tokens.features import SideFeatures
from data.tokens.spans import SideArrays
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constraints import ConstraintError, Constraints
from generation.defaults import DEFAULT_SAMPLING, default_model, model_path
from generation.given import GivenPieces, GivenTokens
from model.config import SamplingOptions
from model.decoder import Decoder
from model.decoding import Ids, engine_of
from model.engine import Engine
from model.record import TrainingRecord
from model.scoring import MakeSide, token_nats
from model.serialization import ModelFileError, load_model_file

MORE_OR_FEWER_BARS = 1  # that a piece may have than the one whose form it takes


@dataclass(frozen=True)
class Model:
    """A trained decoder, its vocabulary, and what is known of its music and of its training."""

    decoder: Decoder
    vocabulary: Vocabulary
    style: Style = field(default_factory=Style)
    record: TrainingRecord = field(default_factory=TrainingRecord)
    path: Path | None = None  # of the file that it was loaded from

    @cached_property
    def steps(self) -> Engine:
        """The decoder as it is sampled from: on a CPU, with the weights that it has now."""
        return engine_of(self.decoder)

    @property
    def voices(self) -> int:
        """How many instruments its music has, as a rule."""
        return self.style.voices or len(self.vocabulary.programs)

    @property
    def sampling(self) -> SamplingOptions:
        """How it samples where nothing is said: as `fit_sampling` found at the end of training."""
        temperature, top_p = self.style.temperature, self.style.top_p
        if temperature is None or top_p is None:
            return DEFAULT_SAMPLING
        return replace(DEFAULT_SAMPLING, temperature=temperature, top_p=top_p)

    @cached_property
    def features(self) -> SideFeatures:
        """What computes the decoder's side input from ids."""
        return SideFeatures(self.vocabulary)

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
        return rebase(history.astype(np.int64), self.decoder.config.context_length, self.vocabulary)

    def draw_forms(
        self,
        count: int,
        generator: torch.Generator,
        meter: tuple[int, int] | None = None,
        bars: int | None = None,
    ) -> list[dict[int, Form]]:
        """Draw forms of training pieces for pieces whose meter and upbeat are yet to be written.

        Args:
            count: how many pieces, B.
            generator: of the random choice.
            meter: the time signature; None: any.
            bars: the length; forms are those of training pieces of about as many.

        Returns:
            For each piece, forms by the steps of a whole bar. In all of them the final chord has
            the same position, that of a training piece drawn at random; {}: there is none.
        """
        of_meter = [form for form in self.style.forms if meter in (None, form.meter)]
        if not of_meter:
            return [{} for _ in range(count)]
        alike: dict[tuple[int, int], list[Form]] = {}
        for form in self.style.forms:
            whole = self.vocabulary.grid.bar_steps(*form.meter)
            alike.setdefault((form.final_position, whole), []).append(form)
        nearest = {key: _nearest(forms, bars) for key, forms in alike.items()}
        drawn = []
        for first in torch.randint(len(of_meter), (count,), generator=generator).tolist():
            position = of_meter[first].final_position
            drawn.append(
                {
                    whole: forms[int(torch.randint(len(forms), (), generator=generator))]
                    for (final, whole), forms in nearest.items()
                    if final == position
                }
            )
        return drawn

    def form_for(
        self,
        drawn: dict[int, Form],
        meter: tuple[int, int],
        first_bar_steps: int,
        bars: int,
        rng: np.random.Generator,
    ) -> Form | None:
        """Return the form of a piece whose first bar is written.

        Args:
            drawn: what `draw_forms` gave it; taken where it has this beginning and length.
            meter, first_bar_steps, bars: of the piece.
            rng: of the random choice of another training piece's.

        Returns:
            None where no training piece begins so.
        """
        begin = meter, first_bar_steps
        alike = [form for form in self.style.forms if (form.meter, form.first_bar_steps) == begin]
        nearest = _nearest(alike, bars)
        own = drawn.get(self.vocabulary.grid.bar_steps(*meter))
        if own in nearest:
            return own
        return nearest[rng.integers(len(nearest))] if nearest else None

    def draw_keys(self, count: int, generator: torch.Generator) -> list[Key | None]:
        """Draw keys of pieces, as often as the training set has them; None: it has said nothing."""
        counts = self.style.keys
        if not any(map(any, counts.values())):
            return [None] * count
        shares = torch.tensor([counts[mode] for mode in PROFILES], dtype=torch.float64)
        drawn = torch.multinomial(shares.flatten(), count, replacement=True, generator=generator)
        return [Key(number % OCTAVE, [*PROFILES][number // OCTAVE]) for number in drawn.tolist()]

    def retimed(self, constraints: Constraints) -> Model:
        """Return the model at the tempo asked for, if it has only one tempo of its own."""
        vocabulary = constraints.retimed(self.vocabulary)
        if vocabulary == self.vocabulary:
            return self
        other = replace(self, vocabulary=vocabulary)
        object.__setattr__(other, "steps", self.steps)  # the same weights
        return other

    def token_nats(
        self,
        pieces: Sequence[Ids],
        allowed: Sequence[NDArray[np.bool_]] | None = None,
        given: Sequence[GivenTokens] | None = None,
        is_told: bool = True,
    ) -> list[NDArray[np.float64]]:
        """Return the negative log-likelihood of each token of whole pieces, in nats.

        Args:
            pieces: ids (T,) each, from Start to End.
            allowed: the grammar's masks (T - 1, V), one a piece; None: computed here.
            given: what each piece is given, which then has probability 1; None: nothing.
            is_told: whether the model is told of given notes in advance.

        Returns:
            (T - 1,) for each piece: of each token but Start (see model/scoring.py).
        """
        if allowed is None:
            masks = masks_of_pieces(pieces, self.vocabulary)
            allowed = [unpacked(mask, self.vocabulary) for mask in masks]
        side: MakeSide = self.side
        if given is not None:
            of_pieces = GivenPieces(pieces, given, self.features)
            allowed = of_pieces.narrow(allowed)
            side = of_pieces.side if is_told else side
        return token_nats(self.decoder, pieces, allowed, rebase=self.rebase, side=side)


def load(path: str | Path | None = None) -> Model:
    """Return the model in a `model.safetensors` file, or of a name that ships; None: the best.

    Raises:
        FileNotFoundError: none was named, and there is none.
        ModelFileError: there is no such file, or no model that this program can use in it.
    """
    path = default_model()[0] if path is None else model_path(path)
    content = load_model_file(path)
    decoder = content.decoder
    try:
        vocabulary = Vocabulary.from_json(content.vocabulary_json)
        style = from_json(Style, content.style_json)
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from None
    if vocabulary.size != decoder.config.vocabulary_size:
        raise ModelFileError(f"{path}: the vocabulary does not fit the model beside it")
    if decoder.config.context_length < LEAST_CONTEXT:
        raise ModelFileError(f"{path}: its context is shorter than {LEAST_CONTEXT} tokens")
    model = Model(decoder, vocabulary, style, content.record, Path(path))
    if any(getattr(decoder.config, name) != n for name, n in model.features.shape.items()):
        raise ModelFileError(f"{path}: its side input is not the one that this program gives")
    return model


def _nearest(forms: Sequence[Form], bars: int | None) -> list[Form]:
    """Return the forms of about so many bars; None: all."""
    if bars is None:
        return [*forms]
    least = min((abs(form.bars - bars) for form in forms), default=0)
    return [f for f in forms if abs(f.bars - bars) <= max(least, MORE_OR_FEWER_BARS)]


def corpus_of(model: Model, path: str | None = None, datasets: str = "datasets") -> Corpus:
    """Open the corpus a model was trained on, or the one at `path`; build it if need be.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: nothing in it, or its vocabulary is not the model's.
    """
    settings = model.record.data
    path = path or settings.get("path", "bach")
    corpus = open_corpus(path, datasets, CorpusOptions.from_settings(settings))
    if corpus.vocabulary != model.vocabulary:
        raise CorpusError(f"{path}: its vocabulary is not the model's, so it cannot be scored")
    return corpus


def training_runs(
    model: Model, size: int, path: str | None = None, datasets: str = "datasets"
) -> dict[str, RunIndex]:
    """Return the runs of `size` notes in the training set of a model, for `Constraints`.

    Raises:
        ConstraintError: fewer than two notes, which are no run.
        FileNotFoundError, CorpusError: the corpus is not there (see `corpus_of`).
    """
    if size < 2:
        raise ConstraintError(f"a run has 2 notes or more, not {size}")
    corpus = corpus_of(model, path, datasets)
    return index_runs(corpus.split("train"), corpus.vocabulary, size)
