"""Token embeddings as music: labels, and how near notes of an interval are to each other."""

import numpy as np
from numpy.typing import NDArray

from data.instrument_names import instrument_name
from data.score import DRUMS
from data.tokens.vocabulary import Kind, Vocabulary

COLUMNS = ("token", "kind", "pitch class", "octave", "instrument")
FIFTH, OCTAVE = 7, 12  # semitones
_PITCH_CLASSES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


def labels(vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """Return a label for each id, in COLUMNS; "-" in the last three where it is no note."""
    rows: list[tuple[str, ...]] = []
    for token, kind in enumerate(vocabulary.kind_of.tolist()):
        of_note = ("-", "-", "-")
        if kind == Kind.NOTE:
            number, place = divmod(token - vocabulary.first(Kind.NOTE), vocabulary.pitch_count)
            pitch, program = place + vocabulary.lowest_pitch, vocabulary.programs[number]
            names = (_PITCH_CLASSES[pitch % 12], str(pitch // 12 - 1))
            names = ("-", "-") if program == DRUMS else names
            of_note = (*names, instrument_name(program, vocabulary.grid))
        rows.append((vocabulary.describe(token), vocabulary.kind_names[kind], *of_note))
    return rows


def interval_nearness(
    embeddings: NDArray[np.floating], vocabulary: Vocabulary, semitones: int
) -> float:
    """Measure how much nearer notes of an interval are than those a semitone less or more apart.

    Nearness is the cosine of embeddings, averaged over all pairs of notes of one program that are
    so far apart. The mean of both neighboring intervals is subtracted, because notes are nearer the
    smaller their interval. Drums are left out. The embeddings, (V, D), are of all ids. The result
    is from -2 to 2, above 0 if the interval is near; NaN if no program has notes so far apart.
    """
    notes = embeddings[vocabulary.ids(Kind.NOTE)].astype(np.float64)
    by_program = notes.reshape(len(vocabulary.programs), vocabulary.pitch_count, -1)
    pitched = by_program[np.array(vocabulary.programs) != DRUMS]  # (P, N, D)
    pitched = pitched / np.maximum(np.linalg.norm(pitched, axis=-1, keepdims=True), 1e-12)
    if not len(pitched) or vocabulary.pitch_count <= semitones + 1:
        return float("nan")
    less, near, more = (
        float((pitched[:, :-apart] * pitched[:, apart:]).sum(axis=-1).mean())
        for apart in (semitones - 1, semitones, semitones + 1)
    )
    return near - (less + more) / 2
