"""Everything that a person asks of a model, in one object, and whether the model can do it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pretty_midi import note_number_to_name

from data.instrument_names import instrument_name
from data.score import BAR, Score
from data.tokens.vocabulary import Vocabulary
from generation.chord_plan import bars_with
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import STRICT, UNCONSTRAINED, ConstraintError, Constraints
from generation.defaults import DEFAULT_LENGTH
from generation.length import Length
from generation.model import Model
from generation.seeds import Seed, no_seed
from model.config import SamplingOptions

MOST_GIVEN_HOURS = 1
MOST_GIVEN_TOKENS = 100_000


@dataclass(frozen=True, eq=False)
class Request:
    """What a person asks of a model.

    Attributes:
        seed: notes that every piece keeps, and where new ones may begin (generation/seeds.py);
            None: the model begins.
        length: the length of what is written after the seed; None: the piece ends with the seed's
            bars. With `Length()`, it ends where the model ends it, or with the requested chords.
        constraints: key, pitch range, instruments and so on of what is written.
        sampling: temperature and filters; None: the model's own (`Model.sampling`).
        samples: how many pieces to write.
        candidates: how many versions of each piece are written side by side. The best one (`rank`)
            is kept: every few bars if the model has a critic, else at the end. Repeated passages
            are written afterwards.
        random_seed: the same number gives the same pieces.

    Raises:
        ValueError: fewer than one piece or candidate, or a negative random seed.
    """

    seed: Seed | None = None
    length: Length | None = DEFAULT_LENGTH
    constraints: Constraints = UNCONSTRAINED
    sampling: SamplingOptions | None = None
    samples: int = 1
    random_seed: int = 0
    candidates: int = 1

    def __post_init__(self) -> None:
        for name, least in (("samples", 1), ("candidates", 1), ("random_seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, not {getattr(self, name)}")

    def to(self, model: Model) -> tuple[Model, ConstrainedGrammar]:
        """Return the model at the requested or given tempo, and the grammar of the pieces.

        Raises:
            ConstraintError: too much is given, or the request can never be met.
        """
        seed = self.seed or no_seed(model.vocabulary)
        model = model.retimed(self.constraints, seed.score)
        vocabulary, constraints = model.vocabulary, self.constraints.in_style(model.style)
        tempo = constraints.tempo_number(vocabulary)
        if tempo is not None:
            seed = seed.at_tempo(vocabulary.tempos[tempo])
        _check_size(seed.score, vocabulary)
        length, features = self._whole(seed), model.features
        known = model.style.meters
        is_new = length.bars != len(seed.score.bars)
        if is_new and constraints.time_signature not in (None, *known) and len(known) == 1:
            raise ConstraintError(
                "the model has learned from pieces in {}/{} alone: ask for no other time "
                "signature, or another model".format(*known[0])
            )
        return model, ConstrainedGrammar(vocabulary, length, constraints, seed, features)

    def is_strict(self, model: Model) -> bool:
        """Return whether the rules of strict counterpoint hold, as asked or as the model's do."""
        return self.constraints.in_style(model.style).counterpoint == STRICT

    def in_ranges(self, model: Model) -> tuple[Request, dict[int, int]]:
        """Return the request with voices moved by octaves into the ranges of their instruments.

        With a requested range they stay, and where it matters which note is the lowest.

        Returns:
            The request, and by how many semitones each program has moved; all of its notes, given
            and new, are to be moved back.
        """
        asked, vocabulary = self.constraints, model.vocabulary
        ways, own = self._ways(model), asked.pitches or model.style.pitches
        if self.seed is None or not ways or asked.pitch_range or self._stays(model):
            return self, {}
        known = range(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
        pitches = {
            program: tuple(pitch for pitch in own.get(program, known) if pitch - way in known)
            for program, way in ways.items()
        }
        constraints = replace(asked, pitches={**own, **pitches})
        return replace(self, seed=self.seed.moved(ways), constraints=constraints), ways

    def _ways(self, model: Model) -> dict[int, int]:
        """Return how far the given voices lie from the ranges of their instruments, in octaves."""
        return self.seed.ways_into(model.style.ranges, model.vocabulary) if self.seed else {}

    def _stays(self, model: Model) -> bool:
        """Return whether all voices stay where they lie, as it matters which note is the lowest."""
        asked = self.constraints
        is_harmonic = self.is_strict(model) or asked.chords or asked.cadence
        return bool(is_harmonic) and len(model.vocabulary.programs) > 1

    def strange_heights(self, model: Model) -> list[str]:
        """Return a clause for messages for each voice that lies octaves off but is not moved."""
        if self.constraints.pitch_range or not self._stays(model):
            return []
        grid, ranges, name = model.vocabulary.grid, model.style.ranges, note_number_to_name
        return [
            f"most notes of {instrument_name(program, grid)} lie beyond "
            f"{' to '.join(map(name, ranges[program]))}, its range in training pieces, "
            "to which new ones keep (--voice names another instrument)"
            for program in self._ways(model)
        ]

    def strange_meters(self, model: Model) -> list[str]:
        """Return a clause for messages if time signatures occur that no training piece has."""
        bars = self.seed.score.bars if self.seed else np.empty(0, BAR)
        meters = {tuple(meter) for meter in bars[["numerator", "denominator"]].tolist()}
        if self.constraints.time_signature:
            meters.add(self.constraints.time_signature)
        known = model.style.meters
        if not known or meters <= {*known}:
            return []
        strange, learned = (
            ", ".join(f"{numerator}/{denominator}" for numerator, denominator in each)
            for each in (sorted(meters - {*known}), known)
        )
        return [
            f"the model has learned from no piece in {strange}, but in {learned}: "
            "another model may keep the beat better"
        ]

    def _whole(self, seed: Seed) -> Length:
        """Return the length of the piece including the seed; a number of notes counts new ones."""
        if self.length is None:
            return Length(bars=len(seed.score.bars))
        if self.constraints.chord_track and self.length == Length():
            return Length(bars=bars_with(self.constraints.chord_track, seed))
        if self.length.bars is not None:
            return Length(bars=len(seed.score.bars) + self.length.bars)
        if self.length.seconds is not None:
            return Length(seconds=_seconds_with_seed(self.length.seconds, seed))
        return self.length


def _check_size(given: Score, vocabulary: Vocabulary) -> None:
    """Refuse given music that lasts for hours or takes too many tokens: each one costs a step."""
    hours = float(given.step_seconds(given.end_step)) / 3600
    if hours > MOST_GIVEN_HOURS:
        raise ConstraintError(f"what is given lasts {hours:.1f} hours: keep at most one hour")
    extends = (given.notes["duration"] - 1) // vocabulary.longest_duration
    tokens = len(given.bars) + int((3 + extends).sum())
    if tokens > MOST_GIVEN_TOKENS:
        raise ConstraintError(
            f"what is given takes {tokens:,} tokens: keep {MOST_GIVEN_TOKENS:,} at most"
        )


def _seconds_with_seed(seconds: float, seed: Seed) -> float:
    """Return the length in seconds of a piece that goes on for so many seconds after a seed.

    Raises:
        ConstraintError: the piece would end within the seed's last bar.
    """
    score = seed.score
    begin = float(score.step_seconds(seed.end_step))
    if len(score.bars):
        left = float(score.step_seconds(score.bar_starts[-1])) - begin
        if seconds <= left:  # where End could come at once
            raise ConstraintError(
                f"the seed's last bar goes on for {left:.2f} seconds: ask for more than that"
            )
    return begin + seconds


ANY_PIECE = Request()  # a piece from nothing, with nothing asked for
