"""Which instruments of a piece are kept: some programs or tracks, common ones, or only a piano."""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from data.midi.events import Events
from data.score import DRUMS
from data.stand_ins import stand_ins

MOST_COMMON = 15  # programs besides drums: as many as decoders hear apart (features.py)


@dataclass(frozen=True)
class Instruments:
    """Which of a file's instruments are kept, and as what.

    The mode `original` keeps programs as they are. With `common`, the programs that are common in a
    folder play for all others (data/stand_ins.py), and drums stay drums. With `piano`, the piano,
    0, plays for all others; drums are left out, since no piano plays them.
    """

    mode: Literal["original", "common", "piano"] = "original"
    programs: tuple[int, ...] | None = None  # programs in the file to keep, 128: drums; None: all
    # Tracks to keep, by name in upper or lower case, or by number from 1 among tracks with notes;
    # None: all.
    tracks: tuple[int | str, ...] | None = None
    common: tuple[int, ...] = ()  # the common programs; (): not known yet, so all programs stay


def fold(events: Events, instruments: Instruments) -> Events:
    """Return the notes of the instruments to keep, with the programs as which they are kept.

    This comes before the canonical form, which merges notes that become equal here.
    """
    if instruments == Instruments():
        return events
    notes, tracks = events.notes, events.tracks or (("", len(events.notes)),)
    names, counts = zip(*tracks, strict=True)
    track_of = np.repeat(np.arange(len(tracks)), counts)
    is_kept = np.ones(len(notes), dtype=bool)
    if instruments.programs is not None:
        is_kept &= np.isin(notes[:, 4], instruments.programs)
    if instruments.tracks is not None:
        wanted = {t.casefold() if isinstance(t, str) else t for t in instruments.tracks}
        wanted |= {int(t) for t in wanted if isinstance(t, str) and t.isdecimal()}
        chosen = [
            number in wanted or name.strip().casefold() in wanted
            for number, name in enumerate(names, start=1)
        ]
        is_kept &= np.array(chosen)[track_of]
    if instruments.mode == "piano":
        is_kept &= notes[:, 4] != DRUMS
    left = np.bincount(track_of[is_kept], minlength=len(tracks)).tolist()
    notes = notes[is_kept]
    if instruments.mode == "piano":
        notes[:, 4] = 0
    elif instruments.mode == "common" and instruments.common:
        old = notes[:, 4].copy()
        pitched = np.unique(old[old != DRUMS]).tolist()
        means = {program: float(notes[old == program, 2].mean()) for program in pitched}
        for program, other in stand_ins(means, instruments.common).items():
            notes[old == program, 4] = other
    kept_tracks = tuple((name, count) for name, count in zip(names, left, strict=True) if count)
    return dataclasses.replace(events, notes=notes, tracks=kept_tracks)


def common_programs(pieces: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """Return the MOST_COMMON programs that most pieces have, rising and without drums.

    Args:
        pieces: the programs of each piece.
    """
    counts = Counter(program for piece in pieces for program in {*piece} - {DRUMS})
    commonest = sorted(counts, key=lambda program: (-counts[program], program))
    return tuple(sorted(commonest[:MOST_COMMON]))
