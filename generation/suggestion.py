"""Suggest chords for a bar, by letting the model write it many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from data.chords import Chord
from data.harmony import chords_of, symbol
from data.keys import notated_key
from generation.model import Model
from generation.request import Request
from generation.writing import Piece, Writing
from model.config import SamplingOptions

SAMPLES = 24
SUGGESTED = 3  # chords, at most


def suggest_chords(model: Model, request: Request, bar: int) -> Iterator[list[str]]:
    """Yield the symbols of the chords that a model plays most often in a bar, the likeliest first.

    The model writes the request SAMPLES times, up to that bar. In each version the chords are found
    (data/harmony.py), and the one that lasts longest in the bar counts. While the model writes, the
    function yields empty lists, so a caller can stop it by no longer asking.

    Args:
        model: from `load`.
        request: the piece; in `constraints.chords`, the bar has "N.C.", or nothing is asked for it.
        bar: the index of the bar in the piece.

    Raises:
        ConstraintError: the request can never be met.
    """
    sampling = SamplingOptions()
    request = replace(request, samples=SAMPLES, candidates=1, sampling=sampling)
    writing = Writing(model, request)
    for _ in writing:
        yield []
        if writing.bars_written > bar:
            break
    pieces = writing.drafts
    found = [chord for piece in pieces if (chord := _chord_of_bar(piece, bar))]
    often = Counter((chord.root, chord.kind) for chord in found)
    over = Counter(found)
    key = request.constraints.parsed_key or notated_key(pieces[0].score)
    likeliest = [
        max((chord for chord in over if chord[:2] == name), key=over.__getitem__)
        for name, _ in often.most_common(SUGGESTED)
    ]
    yield [symbol(chord, key) for chord in likeliest]


def _chord_of_bar(piece: Piece, bar: int) -> Chord | None:
    """Return the chord that lasts longest in a bar of a piece; None: there is none."""
    starts = piece.score.bar_starts.tolist()
    if bar + 1 >= len(starts):
        return None
    begin, end = starts[bar : bar + 2]
    spans = [span for span in chords_of(piece.score) if span.begin < end and span.end > begin]
    longest = max(spans, key=lambda span: min(span.end, end) - max(span.begin, begin), default=None)
    return longest and longest.chord
