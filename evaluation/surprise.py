"""How much each note of a piece surprised a model, and which notes did so most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from data.score import DRUMS, Score
from data.tokens.vocabulary import Kind, Vocabulary

# The aspects of a note, and the kinds of token that encode each.
ASPECTS = {
    "when": (Kind.BAR, Kind.LENGTH, Kind.TEMPO, Kind.POSITION),
    "what": (Kind.NOTE,),
    "how long": (Kind.EXTEND, Kind.DURATION),
    "how loud": (Kind.VELOCITY,),
}


@dataclass(frozen=True)
class NoteSurprise:
    """The surprise of one note."""

    note: int  # its index in the Score
    bar: int  # its number (an upbeat is bar 0); on a grid of seconds the second
    beat: float | None  # from 1, in the meter's unit; None on a grid of seconds
    start_seconds: float
    program: int
    instrument: str
    name: str
    nats: float  # its surprise, the sum of `parts`
    parts: dict[str, float]  # by aspect

    @property
    def place(self) -> str:
        """Where the note begins, in words."""
        if self.beat is None:
            return f"at {self.start_seconds:.2f} s"
        return f"bar {self.bar}, beat {self.beat:g}"

    @property
    def label(self) -> str:
        """The note in words: where, what, who and how surprising."""
        return (
            f"{self.place}: {self.name}, {self.instrument} ({self.program}), {self.nats:.1f} nats"
        )


def note_nats(
    ids: NDArray[np.int64], nats: NDArray[np.float64], vocabulary: Vocabulary
) -> NDArray[np.float64]:
    """Return (N, 4) the nats of each note of a piece, in Score order: one column per aspect.

    To each note belong its own tokens, and those between the note before it and itself: a bar and
    a position count for the first note there. So every token but End is counted once.
    The ids, (T,), go from Start to End; the nats, (T - 1,), are those of each id after Start.
    """
    kinds = vocabulary.kind_of[ids[1:-1]]
    owner = np.cumsum(kinds == Kind.NOTE) - 1 + np.isin(kinds, ASPECTS["when"])
    aspect_of = np.zeros(len(Kind), dtype=np.int64)
    for aspect, members in enumerate(ASPECTS.values()):
        aspect_of[list(members)] = aspect
    cells = np.zeros((int((kinds == Kind.NOTE).sum()), len(ASPECTS)))
    np.add.at(cells, (owner, aspect_of[kinds]), nats[:-1])
    return cells


def most_surprising(score: Score, nats: NDArray[np.float64], limit: int) -> list[NoteSurprise]:
    """Return at most `limit` notes of a piece, the most surprising first.

    The nats are (N, 4), from `note_nats`; NaN for notes that were not scored.
    """
    total = nats.sum(axis=1)
    rows = np.argsort(-total, kind="stable")[: min(limit, int(np.isfinite(total).sum()))]
    return [_note_surprise(score, row, nats[row]) for row in rows.tolist()]


def _note_surprise(score: Score, row: int, nats: NDArray[np.float64]) -> NoteSurprise:
    """Describe one note of a Score, whose aspects have these nats, (4,)."""
    onset, _, pitch, _, program = score.notes[row].tolist()
    if program == DRUMS:
        instrument, name = "Drums", pretty_midi.note_number_to_drum_name(pitch) or str(pitch)
    else:
        instrument = pretty_midi.program_to_instrument_name(program)
        name = pretty_midi.note_number_to_name(pitch)
    starts, has_meter = score.bar_starts, score.grid.has_meter
    bar = int(np.searchsorted(starts, onset, side="right")) - 1
    unit = 4 * score.grid.steps_per_beat / int(score.bars["denominator"][bar])
    return NoteSurprise(
        row,
        bar + (has_meter and not score.has_upbeat),
        round(1 + (onset - int(starts[bar])) / unit, 3) if has_meter else None,
        float(score.step_seconds(onset)),
        program,
        instrument,
        name,
        float(nats.sum()),
        dict(zip(ASPECTS, nats.tolist(), strict=True)),
    )
