"""A trained model as programs use it: the decoder, its vocabulary, and what it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from common.interface import OCTAVE
from data.batches.windows import masks_of_pieces, unpacked
from data.corpus.corpus import Corpus, CorpusError, CorpusOptions, open_corpus
from data.corpus.runs import RunIndex, index_runs
from data.extremes import Extremes
from data.forms import Form
from data.keys import PROFILES, Key
from data.score import Score
from data.tokens.context import LEAST_CONTEXT, rebase
from data.tokens.features import SideFeatures
from data.tokens.spans import SideArrays
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError
from generation.constraints import FREE, NO_RESTS, STRICT, ConstraintError, Constraints
from generation.defaults import DEFAULT_SAMPLING, default_model, model_path
from generation.given import GivenPieces, GivenTokens
from model.config import SamplingOptions
from model.decoder import Decoder
from model.decoding import Ids, engine_of
from model.engine import Engine
from model.scoring import MakeSide, token_nats
from model.serialization import ModelFileError, load_model_file

MORE_OR_FEWER_BARS = 1  # that a piece may have than the one whose form it takes
LONG_REPEAT_BARS = 3.5  # about four, which is a line of a tune
FEW_RESTS = 0.03  # a share of the time of all instruments; Bach's chorales have 0.01
MOSTLY = 0.95  # a share of pieces whose bars are regular; Bach's chorales have 0.98
ONE_NOTE = 1.02  # pitches that sound at once, on average; folk tunes have 1
SOME = 0.02  # a share of pieces: fewer are exceptions
FEW_PARALLELS = 2  # in 100 bars; Bach's chorales have fewer than one


@dataclass(frozen=True)
class Model:
    """A trained decoder, the vocabulary it was trained on, and a summary of its training."""

    decoder: Decoder
    vocabulary: Vocabulary
    summary: dict[str, Any]
    path: Path | None = None  # of the file that it was loaded from

    @cached_property
    def steps(self) -> Engine:
        """The decoder as it is sampled from: on a CPU, with the weights that it has now."""
        return engine_of(self.decoder)

    @property
    def voices(self) -> int:
        """How many instruments its music has, as a rule."""
        return int(self.summary.get("voices") or len(self.vocabulary.programs))

    @property
    def sampling(self) -> SamplingOptions:
        """How it samples where nothing is said: as `fit_sampling` found at the end of training."""
        return replace(DEFAULT_SAMPLING, **(self.summary.get("sampling") or {}))

    @property
    def counterpoint(self) -> str:
        """STRICT where its music is in four parts with hardly any parallels, or in one; or FREE."""
        parallels = self.summary.get("parallels_per_100_bars")
        has_few = parallels is not None and parallels < FEW_PARALLELS
        return STRICT if has_few or self.is_of_one_voice else FREE

    @property
    def is_of_one_voice(self) -> bool:
        """Whether its music has one instrument, that plays a note at a time."""
        polyphony = self.summary.get("polyphony")
        return self.voices == 1 and polyphony is not None and polyphony <= ONE_NOTE

    @property
    def rests(self) -> str:
        """Whether the instruments of its music hardly ever rest: NO_RESTS or FREE."""
        share = self.summary.get("rests")
        return NO_RESTS if share is not None and share < FEW_RESTS else FREE

    @property
    def has_regular_bars(self) -> bool:
        """Whether nearly all pieces of its music have regular bars (evaluation/metrics.py)."""
        return (self.summary.get("regular_bars") or 0) >= MOSTLY

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The lowest and highest pitch of programs in its music, as a rule; none: not known."""
        ranges = self.summary.get("ranges") or {}
        return {int(program): (low, high) for program, (low, high) in ranges.items()}

    def is_unlike_training(self, score: Score) -> bool:
        """Return whether a piece goes beyond all training pieces; not where they are not known."""
        extremes = self.summary.get("extremes")
        return Extremes(**extremes).are_exceeded_by(score) if extremes else False

    @property
    def pitches(self) -> dict[int, list[int]]:
        """The pitches of programs in its music (data/ensembles.py); none: not known."""
        return {int(n): pitches for n, pitches in (self.summary.get("pitches") or {}).items()}

    def joining(self, programs: Sequence[int], voices: int) -> list[int]:
        """Return the programs that join a seed of others, as they play together in its music.

        None join one that has as many voices as some training pieces have, or as the median. Else
        those of the most frequent ensemble that has the seed's programs; all others where the
        model does not know how its music is played.

        Args:
            programs: of the seed.
            voices: how many they play.
        """
        ensembles: list[list[int]] = self.summary.get("ensembles") or []
        pieces = sum(count for count, *_ in ensembles)
        alike = sum(count for count, *its in ensembles if len(its) == voices)
        if voices >= self.voices or alike > SOME * pieces:
            return []
        with_them = [its for _, *its in ensembles if {*programs} < {*its}]
        its = with_them[0] if with_them else [] if ensembles else self.vocabulary.programs
        return sorted({*its} - {*programs})

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
        of_meter = [form for form in self.forms if meter in (None, form.meter)]
        if not of_meter:
            return [{} for _ in range(count)]
        alike: dict[tuple[int, int], list[Form]] = {}
        for form in self.forms:
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
        alike = [f for f in self.forms if f.meter == meter and f.first_bar_steps == first_bar_steps]
        nearest = _nearest(alike, bars)
        own = drawn.get(self.vocabulary.grid.bar_steps(*meter))
        if own in nearest:
            return own
        return nearest[rng.integers(len(nearest))] if nearest else None

    def draw_keys(self, count: int, generator: torch.Generator) -> list[Key | None]:
        """Draw keys of pieces, as often as the training set has them; None: it has said nothing."""
        counts = self.summary.get("keys")
        if not counts or not any(map(any, counts.values())):
            return [None] * count
        shares = torch.tensor([counts[mode] for mode in PROFILES], dtype=torch.float64)
        drawn = torch.multinomial(shares.flatten(), count, replacement=True, generator=generator)
        return [Key(number % OCTAVE, [*PROFILES][number // OCTAVE]) for number in drawn.tolist()]

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The forms of pieces of the training set; none where it has said nothing.

        In music of one voice with long repeats alone, for it comes to the others by itself.
        """
        forms = map(Form.from_json, self.summary.get("forms") or ())
        return tuple(form if self.voices > 1 else self._with_long_repeats(form) for form in forms)

    def _with_long_repeats(self, form: Form) -> Form:
        least = LONG_REPEAT_BARS * self.vocabulary.grid.bar_steps(*form.meter)
        return replace(
            form, repeats=tuple(r for r in form.repeats if r.end_step - r.begin_step >= least)
        )

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
    decoder, vocabulary_json, summary = load_model_file(path)
    try:
        vocabulary = Vocabulary.from_json(vocabulary_json)
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from None
    if vocabulary.size != decoder.config.vocabulary_size:
        raise ModelFileError(f"{path}: the vocabulary does not fit the model beside it")
    if decoder.config.context_length < LEAST_CONTEXT:
        raise ModelFileError(f"{path}: its context is shorter than {LEAST_CONTEXT} tokens")
    for name, (kinds, holds, what) in _SUMMARY.items():
        value = summary.get(name)
        if value is not None and not (isinstance(value, kinds) and holds(value)):
            raise ModelFileError(f"{path}: {name} in its summary is no {what}: {str(value)[:40]!r}")
    model = Model(decoder, vocabulary, summary, Path(path))
    if any(getattr(decoder.config, name) != n for name, n in model.features.shape.items()):
        raise ModelFileError(f"{path}: its side input is not the one that this program gives")
    return model


def _nearest(forms: Sequence[Form], bars: int | None) -> list[Form]:
    """Return the forms of about so many bars; None: all."""
    if bars is None:
        return [*forms]
    least = min((abs(form.bars - bars) for form in forms), default=0)
    return [f for f in forms if abs(f.bars - bars) <= max(least, MORE_OR_FEWER_BARS)]


def _are_keys(keys: dict[str, Any]) -> bool:
    """Return whether a summary's `keys` are what `count_keys` counts, or empty."""
    return not keys or (
        keys.keys() == PROFILES.keys()
        and all(_are_integers(counts, OCTAVE, 2**31 - 1) for counts in keys.values())
    )


def _are_ensembles(ensembles: list[Any]) -> bool:
    """Return whether a summary's `ensembles` are what `count_ensembles` counts."""
    return all(
        isinstance(row, list) and len(row) > 1 and _are_integers(row, len(row), 2**31 - 1)
        for row in ensembles
    )


def _are_pitches(pitches: dict[str, Any]) -> bool:
    """Return whether a summary's `pitches` are what `pitches_played` gives."""
    return all(
        _is_number(program) and isinstance(its, list) and _are_integers(its, len(its), 127)
        for program, its in pitches.items()
    )


def _are_ranges(ranges: dict[str, Any]) -> bool:
    """Return whether a summary's `ranges` are what `pitch_ranges` gives."""
    return all(
        _is_number(program) and _are_integers(ends, 2, 127) and ends[0] <= ends[1]
        for program, ends in ranges.items()
    )


def _are_read_by(read: Callable[[Any], object], values: list[Any]) -> bool:
    """Return whether a function reads each of a summary's values."""
    try:
        for value in values:
            read(value)
    except ValueError:
        return False
    return True


def _are_fields_of(kind: Callable[..., object], values: dict[str, Any]) -> bool:
    """Return whether a dataclass takes what a summary holds: numbers by the names of its fields."""
    try:
        kind(**values)
    except (TypeError, ValueError):
        return False
    return all(isinstance(value, int | float) for value in values.values())


def _are_integers(values: Any, count: int, most: int) -> bool:
    """Return whether a value of JSON is a list of so many whole numbers from 0 to `most`."""
    return (
        isinstance(values, list)
        and len(values) == count
        and all(isinstance(value, int) and 0 <= value <= most for value in values)
    )


def _is_number(text: str) -> bool:
    """Return whether a key of JSON is a whole number that is not too long to read."""
    return text.isdecimal() and len(text) < 9


def _is_not_negative(value: float) -> bool:
    return value >= 0


# What is read of a summary: as what, what has to hold of it, and what it is.
_SUMMARY: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
    "voices": (int, _is_not_negative, "number of instruments"),
    "step": (int, _is_not_negative, "number of steps"),
    "parallels_per_100_bars": (int | float, _is_not_negative, "number of parallels"),
    "rests": (int | float, _is_not_negative, "share of the time"),
    "polyphony": (int | float, _is_not_negative, "number of pitches"),
    "extremes": (dict, partial(_are_fields_of, Extremes), "extremes of pieces"),
    "sampling": (dict, partial(_are_fields_of, SamplingOptions), "sampling options"),
    "regular_bars": (int | float, _is_not_negative, "share of pieces"),
    "data": (dict, lambda _: True, "settings"),
    "keys": (dict, _are_keys, "counts of keys"),
    "forms": (list, partial(_are_read_by, Form.from_json), "forms of pieces"),
    "ranges": (dict, _are_ranges, "ranges of pitches"),
    "ensembles": (list, _are_ensembles, "counts of ensembles"),
    "pitches": (dict, _are_pitches, "pitches of programs"),
}


def corpus_of(model: Model, path: str | None = None, datasets: str = "datasets") -> Corpus:
    """Open the corpus a model was trained on, or the one at `path`; build it if need be.

    Raises:
        FileNotFoundError: no such folder.
        CorpusError: nothing in it, or its vocabulary is not the model's.
    """
    settings = model.summary.get("data") or {}
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
