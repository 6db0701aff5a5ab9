"""How many notes and instruments sound in pieces, and how phrases and pieces end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from data.cadences import final_chord, root_of_triad
from data.keys import estimate_key, pitched_notes
from data.score import Score


@dataclass(frozen=True)
class VoicesAndEndings:
    """What a musician asks of a set of pieces first; shares are from 0 to 1, NaN of no pieces."""

    pieces: int
    voices: float  # notes that sound at once, on average from the first note on
    all_instruments: float  # share of that time in which as many sound as the music has
    triad: float  # share of the pieces that end on a triad in root position
    tonic: float  # share of those that end on that of their key

    @classmethod
    def of(cls, scores: Sequence[Score], instruments: int) -> Self:
        """Measure pieces of music that has so many instruments, without drums."""
        scores = [score for score in scores if len(pitched_notes(score))]
        rows = []
        for score in scores:
            sounding = sounding_notes(score)
            together = float((np.count_nonzero(sounding, axis=0) >= instruments).mean())
            rows.append((float(sounding.sum(axis=0).mean()), together, *ending_figures(score)[:2]))
        means = np.mean(rows, axis=0).tolist() if rows else [float("nan")] * 4
        return cls(len(scores), *means)


def sounding_notes(score: Score) -> NDArray[np.int64]:
    """Return how many notes of each instrument but drums, (I, S), sound at each step.

    The first step is that of the first note.
    """
    notes = pitched_notes(score)
    onset = notes["onset"].astype(np.int64)
    end = onset + notes["duration"]
    programs, row = np.unique(notes["program"], return_inverse=True)
    change = np.zeros((len(programs), int(end.max()) + 1), dtype=np.int64)
    np.add.at(change, (row, onset), 1)
    np.add.at(change, (row, end), -1)
    return np.cumsum(change, axis=1)[:, int(onset.min()) : -1]


def ending_figures(score: Score) -> tuple[float, float, float]:
    """Return whether a piece ends on a triad, on that of its tonic, and the last chord's beats."""
    chord = final_chord(score)
    if not len(chord):
        return (float("nan"),) * 3
    sounds = int((chord["onset"] + chord["duration"]).min() - chord["onset"].max())
    is_triad = root_of_triad(chord) is not None
    return float(is_triad), float(ends_on_tonic(score)), sounds / score.grid.steps_per_beat


def ends_on_tonic(score: Score) -> bool:
    """Return whether a piece ends on the tonic's triad in root position, major or minor.

    So a Picardy third counts. The key is that of the music before the last bar, so that an ending
    cannot speak for itself; where that has no key, as in a piece of one bar, it does not.
    """
    try:
        key = estimate_key(score.excerpt(0, len(score.bars) - 1))
    except ValueError:
        return False
    return root_of_triad(final_chord(score)) == key.tonic
