"""Chords that are known in advance, and the features that tell them beside each id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from common.arrays import Ints
from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.chords import KINDS, Span
from data.tokens.bag import NO_PITCH, Bag, put, put_above
from data.tokens.given import DUE_WIDTH, put_due
from data.tokens.vocabulary import NEVER

# The widths of what is told. Of the chord that holds now: its kind; its root and its bass, as pitch
# classes, above the tonic, and above the lowest note that sounds; and its notes, as pitch classes,
# above the tonic, and above the latest note. Of the chord after it: its kind, its root and its
# bass, these two above the tonic, its root above the present root, and how soon it is due. The last
# feature of each says whether the chord holds. The very first says that chords are known.
_NOW_WIDTH = len(KINDS) + 9 * OCTAVE + 1
_NEXT_WIDTH = len(KINDS) + 5 * OCTAVE + DUE_WIDTH + 1
CHORDS_WIDTH = 1 + _NOW_WIDTH + _NEXT_WIDTH


class ToldChords(NamedTuple):
    """The chords of K pieces, at most C in each, as loops read them. Times are in grid steps.

    After the end of a piece, its last `cycle` steps come again and again, unless `cycle` is 0.
    """

    begin: Ints  # (K, C + 1) when it begins; NEVER after the last
    end: Ints  # (K, C + 1)
    root: Ints  # (K, C + 1) the pitch class of its root
    bass: Ints  # (K, C + 1)
    kind: Ints  # (K, C + 1) the number of its kind among KINDS
    classes: Ints  # (K, C + 1) a bit for each of its pitch classes
    holds: Ints  # (K, C + 1) whether it holds as requested chords do
    size: Ints  # (K,) how many steps each piece has
    cycle: Ints  # (K,)


def told_chords(
    pieces: Sequence[Sequence[Span]],
    sizes: Sequence[int] = (),
    cycles: Sequence[int] = (),
    holds: Sequence[Sequence[bool]] = (),
) -> ToldChords:
    """Return the chords of pieces; each piece gets the number of its place in the list.

    Args:
        pieces: the chords of each piece, in order.
        sizes, cycles: how many steps each piece has, and how many of them come again at its end;
            (): none do.
        holds: whether each chord holds as requested chords do; (): all do.
    """
    most = 1 + max(map(len, pieces), default=0)
    rows = np.zeros((7, len(pieces), most), dtype=np.int64)
    rows[0] = NEVER
    for k, spans in enumerate(pieces):
        for n, (begin, end, chord) in enumerate(spans):
            classes = sum(1 << each for each in chord.classes)
            kind = KINDS.index(chord.kind)
            own = not holds or holds[k][n]
            rows[:, k, n] = begin, end, chord.root, chord.bass, kind, classes, own
    of_none = [0] * len(pieces)
    turns = (np.array(each or of_none, dtype=np.int64) for each in (list(sizes), list(cycles)))
    return ToldChords(*rows, *turns)


@compiled_inside
def turned(step: int, size: int, cycle: int) -> int:
    """Return the step of a piece that stands for `step`: at the end, the last ones come again."""
    return step if step < size or cycle == 0 else size - cycle + (step - size) % cycle


@compiled_inside
def tell_chords(
    bag: Bag,
    first: int,
    chords: ToldChords,
    k: int,
    now: int,
    roots: tuple[int, int, int],
    lowest_pitch: int,
) -> None:
    """Tell, beside an id, the chord that holds now in a piece, and the one that comes next.

    Args:
        bag: of the features beside the id.
        first: the first feature of the block.
        chords, k: the chords, and the number of the piece.
        now: the time of the id in the piece.
        roots: the tonic, the latest and the lowest pitch, to count from; NO_PITCH: there is none.
        lowest_pitch: of the vocabulary.
    """
    put(bag, first)
    size, cycle, begin = chords.size[k], chords.cycle[k], chords.begin[k]
    step, after = turned(now, size, cycle), 0
    while begin[after] <= step:
        after += 1
    n, root = after - 1, NO_PITCH
    if n >= 0 and step < chords.end[k, n]:
        root = chords.root[k, n]
        _tell_now(bag, first + 1, chords, k, n, roots, lowest_pitch)
    due = begin[after] - step
    if begin[after] == NEVER and cycle:
        after = 0
        while begin[after] < size - cycle:
            after += 1
        due = begin[after] - step + cycle
    if begin[after] < NEVER:
        at = first + 1 + _NOW_WIDTH
        _tell_next(bag, at, chords, k, after, due, root, roots[0], lowest_pitch)


@compiled_inside
def _tell_now(
    bag: Bag,
    at: int,
    chords: ToldChords,
    k: int,
    n: int,
    roots: tuple[int, int, int],
    lowest_pitch: int,
) -> None:
    """Tell the chord that holds now, which has number n."""
    tonic, latest, lowest = roots
    put(bag, at + chords.kind[k, n])
    at += len(KINDS)
    for number, each in enumerate((chords.root[k, n], chords.bass[k, n])):
        pitch = each - lowest_pitch  # the pitch class, counted like the pitches
        put(bag, at + number * OCTAVE + each)
        put_above(bag, at + (2 + number) * OCTAVE, pitch, tonic)
        put_above(bag, at + (4 + number) * OCTAVE, pitch, lowest)
    for each in range(OCTAVE):
        if chords.classes[k, n] >> each & 1:
            put(bag, at + 6 * OCTAVE + each)
            put_above(bag, at + 7 * OCTAVE, each - lowest_pitch, tonic)
            put_above(bag, at + 8 * OCTAVE, each - lowest_pitch, latest)
    if chords.holds[k, n]:
        put(bag, at + 9 * OCTAVE)


@compiled_inside
def _tell_next(
    bag: Bag,
    at: int,
    chords: ToldChords,
    k: int,
    n: int,
    due: int,
    root: int,
    tonic: int,
    lowest_pitch: int,
) -> None:
    """Tell the next chord, which has number n; `root` is that of the present chord."""
    next_root, bass = chords.root[k, n], chords.bass[k, n]
    put(bag, at + chords.kind[k, n])
    at += len(KINDS)
    put(bag, at + next_root)
    put(bag, at + OCTAVE + bass)
    put_above(bag, at + 2 * OCTAVE, next_root - lowest_pitch, tonic)
    put_above(bag, at + 3 * OCTAVE, bass - lowest_pitch, tonic)
    put_above(bag, at + 4 * OCTAVE, next_root, root)
    put_due(bag, at + 5 * OCTAVE, due)
    if chords.holds[k, n]:
        put(bag, at + 5 * OCTAVE + DUE_WIDTH)
