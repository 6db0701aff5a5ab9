"""Gives a run its first weights, from a model that has learned other music.

Most weights do not depend on the vocabulary, and are taken as they are. The row of an id or a
feature is that of whatever means the same to the trained model, or of what is nearest: the same
pitch of another instrument, or the nearest tempo. If both have the same vocabulary, each row stays
its own.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from common.arrays import Ints
from common.interface import OCTAVE
from data.score import DRUMS, Grid
from data.stand_ins import stand_ins
from data.tokens.echo import ECHO_WIDTH
from data.tokens.features import SideFeatures
from data.tokens.given import VOICE_WIDTH
from data.tokens.vocabulary import Kind, Vocabulary
from model.config import CLASSES, STEPS
from model.decoder import Decoder
from model.interval_head import REFERENCES

Axis = tuple[Ints, int]  # for each of our places, that of the trained model; and how many it has

MIDDLE_C = 60


class Meanings:
    """Which rows of a trained model mean the same, or nearly the same, as the rows of a new one.

    Args:
        ours, theirs: the vocabularies of the new model and of the trained one.
    """

    def __init__(self, ours: Vocabulary, theirs: Vocabulary) -> None:
        self.ours, self.theirs = ours, theirs
        programs = [_nearest_program(p, ours.grid, theirs) for p in ours.programs]
        self.programs: Axis = np.array(programs), len(theirs.programs)
        pitch = np.arange(ours.lowest_pitch, ours.highest_pitch + 1)
        pitch = np.clip(pitch, theirs.lowest_pitch, theirs.highest_pitch)
        self.pitches: Axis = pitch - theirs.lowest_pitch, theirs.pitch_count

    def steps(self, count: int, of_theirs: int, first: int = 0) -> Axis:
        """Return the trained model's step for `count` steps of our grid, from `first` on.

        The trained model has `of_theirs` steps.
        """
        scale = self.theirs.grid.steps_per_beat / self.ours.grid.steps_per_beat
        steps = np.rint((np.arange(count) + first) * scale).astype(np.int64)
        return np.clip(steps, first, max(first, first + of_theirs - 1)) - first, of_theirs

    @property
    def ids(self) -> Ints:
        """(V,) the trained model's id for each of ours; -1: there is none."""
        ours, theirs = self.ours, self.theirs
        meters = nearest([*map(_beats, ours.meters)], [*map(_beats, theirs.meters)])
        for number, meter in enumerate(ours.meters):
            if meter in theirs.meters:
                meters[number] = theirs.meters.index(meter)
        rows = np.full(ours.size, -1)
        for kind in Kind:
            count, of_theirs = ours.counts[kind], theirs.counts[kind]
            values, _ = {
                Kind.BAR: (meters, of_theirs),
                Kind.TEMPO: (nearest(ours.tempos, theirs.tempos), of_theirs),
                Kind.NOTE: joined(self.programs, self.pitches),
                Kind.VELOCITY: (nearest(ours.velocities, theirs.velocities), of_theirs),
                Kind.LENGTH: self.steps(count, of_theirs, 1),
                Kind.POSITION: self.steps(count, of_theirs),
                Kind.DURATION: self.steps(count, of_theirs, 1),
            }.get(kind, whole(count))
            if count and of_theirs:
                rows[ours.ids(kind)] = theirs.first(kind) + values
        return rows

    @property
    def features(self) -> Ints:
        """(S + 1,) the trained model's feature for each of ours; both have at most 16 instruments.

        The last features are those of chords, which not all models have learned.
        """
        ours, theirs = SideFeatures(self.ours, True), SideFeatures(self.theirs, True)
        programs, pitches, octave = self.programs, self.pitches, whole(OCTAVE)
        most = ours.layout.longest_left + 1, theirs.layout.longest_left + 1
        notes = [joined(programs, pitches), pitches, octave]
        parts = {
            "silent": [programs],
            "position": [self.steps(self.ours.longest_bar, self.theirs.longest_bar)],
            "program": [programs],
            "pitch": [pitches, octave],
            "sounding": notes,
            "over": notes,
            "left": [joined(programs, self.steps(*most))],
            "between": [joined(programs, octave)],
            "echo": [joined(programs, whole(ECHO_WIDTH))],
            "given": [joined(programs, whole(VOICE_WIDTH))],
        }
        rows = [np.zeros(1, dtype=np.int64)]
        for name, block in ours.blocks.items():
            begin = theirs.blocks[name].start
            for values, of_theirs in parts.get(name, [whole(block.stop - block.start)]):
                rows.append(begin + values)
                begin += of_theirs
        return np.concatenate(rows)

    @property
    def intervals(self) -> Ints:
        """(R,) the trained model's row of the interval head for each of ours."""
        parts = (
            joined(whole(REFERENCES), self.programs, whole(STEPS)),
            joined(whole(REFERENCES), self.programs, whole(CLASSES)),
            *[joined(self.programs, whole(OCTAVE))] * 2,  # parallels, and verticals
        )
        begins = np.cumsum([0, *(of_theirs for _, of_theirs in parts)])
        return np.concatenate(
            [begin + values for (values, _), begin in zip(parts, begins[:-1], strict=True)]
        )


def whole(count: int) -> Axis:
    """Return an axis that is the same in both models."""
    return np.arange(count), count


def joined(*axes: Axis) -> Axis:
    """Return the axis of all combinations of places; the last axis runs fastest."""
    values, count = axes[0]
    for more, of_theirs in axes[1:]:
        values, count = (values[:, None] * of_theirs + more).ravel(), count * of_theirs
    return values, count


def nearest(ours: Sequence[float], theirs: Sequence[float]) -> Ints:
    """Return, for each of ours, the place of the nearest of theirs."""
    distances = np.abs(np.subtract.outer(np.asarray(ours), np.asarray(theirs)))
    return np.asarray(distances.argmin(axis=1), dtype=np.int64)


def _beats(meter: tuple[int, int]) -> float:
    """Return the length of a bar in whole notes."""
    return meter[0] / meter[1]


def _nearest_program(program: int, grid: Grid, theirs: Vocabulary) -> int:
    """Return the number, from 0, of the program in a vocabulary that is most like `program`.

    A part is most like the part with its name; else like the same instrument, one of its family, or
    any.
    """
    if program in theirs.programs and grid.parts == theirs.grid.parts:
        return theirs.programs.index(program)
    names = [part.name.casefold() for part in theirs.grid.parts]
    if program < len(grid.parts) and grid.parts[program].name.casefold() in names:
        return names.index(grid.parts[program].name.casefold())
    sound, sounds = grid.general_midi(program), [*map(theirs.grid.general_midi, theirs.programs)]
    pitched = [each for each in sounds if each != DRUMS]
    if sound not in sounds and sound != DRUMS and pitched:
        sound = stand_ins({sound: MIDDLE_C}, pitched)[sound]
    return sounds.index(sound) if sound in sounds else len(sounds) - 1


@torch.no_grad()
def take_weights(decoder: Decoder, trained: Decoder, ours: Vocabulary, theirs: Vocabulary) -> None:
    """Give a decoder the weights of a trained one of the same shape, row by row.

    Rows of ids that mean nothing to the trained decoder stay as they are.

    Args:
        decoder, trained: both for at most 16 instruments.
        ours, theirs: their vocabularies.
    """
    meanings, learned = Meanings(ours, theirs), dict[str, Tensor](trained.state_dict())
    rows = {"embedding.weight": meanings.ids, "head.weight": meanings.ids}
    if decoder.side is not None:
        features = meanings.features[: decoder.config.n_features + 1]
        rows["side.weight"] = np.where(features <= trained.config.n_features, features, -1)
    if decoder.interval_head is not None:
        table = "interval_head.table.weight"
        is_learned = meanings.intervals < len(learned[table])  # False where it lacks verticals
        rows[table] = np.where(is_learned, meanings.intervals, -1)
    for name, weight in decoder.state_dict().items():
        if name in rows:
            known = torch.from_numpy(rows[name] >= 0)
            weight[known] = learned[name][torch.from_numpy(rows[name])[known]]
        elif name in learned:  # a head that it lacks begins without effect
            weight.copy_(learned[name])
