"""How surprising each note of a piece was, and which were the most so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from data.score import DRUMS, Score
from data.tokens.vocabulary import Kind, Vocabulary

# What is said of a note, and the kinds of token that say it.
PARTS = {
    "when": (Kind.BAR, Kind.LENGTH, Kind.TEMPO, Kind.POSITION),
    "what": (Kind.NOTE,),
    "how long": (Kind.EXTEND, Kind.DURATION),
    "how loud": (Kind.VELOCITY,),
}


def note_nats(
    ids: NDArray[np.int64], nats: NDArray[np.float64], vocabulary: Vocabulary
) -> NDArray[np.float64]:
    """(N, 4) the nats of each of a piece's notes, by what was said: a column for each of PARTS.

    The notes are in the order of the Score. To each belong its own tokens, and before them those
    since the note before it: the bar and the position are the surprise of the first note there.
    So all but End is counted once.

    Args:
        ids: (T,) from Start to End.
        nats: (T - 1,) of each id after Start.
        vocabulary: theirs.
    """
    kinds = vocabulary.kind_of[ids[1:-1]]
    owner = np.cumsum(kinds == Kind.NOTE) - 1 + np.isin(kinds, PARTS["when"])
    part_of = np.zeros(len(Kind), dtype=np.int64)
    for part, members in enumerate(PARTS.values()):
        part_of[list(members)] = part
    cells = np.zeros((int((kinds == Kind.NOTE).sum()), len(PARTS)))
    np.add.at(cells, (owner, part_of[kinds]), nats[:-1])
    return cells


def most_surprising(score: Score, nats: NDArray[np.float64], most: int) -> list[dict[str, Any]]:
    """Some notes of a piece, the most surprising first, as plain data.

    Args:
        score: of N notes.
        nats: (N, 4) as `note_nats` gives them; NaN for notes that were not scored.
        most: how many at most.

    Returns:
        Of each its number in the Score as `note`, `bar` (an upbeat is bar 0; on a grid of seconds
        the second) and `beat` (from 1, in the meter's unit; None on a grid of seconds),
        `start_seconds`, `program`, `instrument`, `name`, `nats`, and `parts`, which add up to them.
    """
    total = nats.sum(axis=1)
    rows = np.argsort(-total, kind="stable")[: min(most, int(np.isfinite(total).sum()))]
    starts = score.bar_starts
    listed = []
    for row in rows.tolist():
        onset, _, pitch, _, program = score.notes[row].tolist()
        bar = int(np.searchsorted(starts, onset, side="right")) - 1
        unit = 4 * score.grid.steps_per_beat / int(score.bars["denominator"][bar])
        has_meter, is_drum = score.grid.has_meter, program == DRUMS
        listed.append(
            {
                "note": row,
                "bar": bar + (has_meter and not score.has_upbeat),
                "beat": round(1 + (onset - int(starts[bar])) / unit, 3) if has_meter else None,
                "start_seconds": float(score.step_seconds(onset)),
                "program": program,
                "instrument": "Drums"
                if is_drum
                else pretty_midi.program_to_instrument_name(program),
                "name": pretty_midi.note_number_to_drum_name(pitch) or str(pitch)
                if is_drum
                else pretty_midi.note_number_to_name(pitch),
                "nats": float(total[row]),
                "parts": dict(zip(PARTS, nats[row].tolist(), strict=True)),
            }
        )
    return listed
