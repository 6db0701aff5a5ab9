"""Augmentation: pieces in other keys, silent instruments, and notes that are misread or given."""

from __future__ import annotations

import numpy as np

from common.arrays import Bools, Ints, Reals
from common.compiled import compiled
from data.tokens.bag import NO_PITCH
from data.tokens.given import GivenNotes
from data.tokens.vocabulary import Kind, Vocabulary, Words
from data.tokens.windows import read_windows


def transposition(vocabulary: Vocabulary, semitones: int) -> Ints:
    """Return (V,): what each id becomes when the music moves by `semitones`.

    Drums stay. -1 stands for a note that would leave the vocabulary. Since the ids of notes keep
    their order, a piece's ids become the encoding of the transposed piece.
    """
    table = np.arange(vocabulary.size)
    notes = vocabulary.ids(Kind.NOTE)
    pitch = np.tile(np.arange(vocabulary.pitch_count), len(vocabulary.programs)) + semitones
    is_inside = (pitch >= 0) & (pitch < vocabulary.pitch_count)
    moved = np.where(is_inside, table[notes] + semitones, -1)
    table[notes] = np.where(vocabulary.is_drum_note[notes], table[notes], moved)
    return table


def transpositions(vocabulary: Vocabulary, reach: int) -> Ints:
    """Return (2 * reach + 1, V): the tables of `transposition` from -reach to reach semitones."""
    return np.stack([transposition(vocabulary, shift) for shift in range(-reach, reach + 1)])


def transposition_ranges(ids: Ints, begins: Ints, vocabulary: Vocabulary) -> Ints:
    """Return (P, 2): the lowest and the highest number of semitones by which each piece can move.

    Args:
        ids: (N,) the ids of P pieces, end to end.
        begins: (P,) where each piece begins.
        vocabulary: what the ids mean.
    """
    is_pitched = (vocabulary.kind_of[ids] == Kind.NOTE) & ~vocabulary.is_drum_note[ids]
    pitch = (ids - vocabulary.first(Kind.NOTE)) % vocabulary.pitch_count
    highest = vocabulary.pitch_count - 1
    if not len(begins):
        return np.empty((0, 2), dtype=np.int64)
    lowest = np.minimum.reduceat(np.where(is_pitched, pitch, vocabulary.pitch_count), begins)
    ranges = np.stack(
        [-lowest, highest - np.maximum.reduceat(np.where(is_pitched, pitch, -1), begins)], axis=1
    )
    ranges[lowest > highest] = 0  # no note has a pitch
    return ranges


def silent_programs(present: Bools, share: Reals, order: Reals) -> Bools:
    """Return (B, P): which programs of each window fall silent, at least one and never all.

    Args:
        present: (B, P) which programs each window has.
        share: (B,) in [0, 1), how many may fall silent; below 0: none does.
        order: (B, P) numbers; programs with lower ones fall silent first.
    """
    count = present.sum(axis=1)
    falling = np.where(share < 0, 0, 1 + np.floor(share * (count - 1)))
    falling = np.where(count > 1, falling, 0)
    place = np.where(present, order, np.inf).argsort(axis=1).argsort(axis=1)  # (B, P) ranks
    return np.asarray(present & (place < falling[:, None]))


def ids_left(ids: Ints, silent: Bools, vocabulary: Vocabulary) -> Bools:
    """Return (B, T): which ids are left when programs fall silent.

    The notes of these programs go, and Positions that are left without a note. A Position at the
    very end goes too, since nobody knows what follows it.

    Args:
        ids: (B, T), Pad at the right end; Pad is never left.
        silent: (B, P) which programs are silent in each window.
        vocabulary: what the ids mean.
    """
    is_left = np.asarray(ids != Kind.PAD)
    _leave(vocabulary.words, vocabulary.pitch_count, ids, silent, is_left)
    return is_left


@compiled
def _leave(words: Words, pitch_count: int, ids: Ints, silent: Bools, is_left: Bools) -> None:
    """Set `is_left` (B, T), which comes in as True for all but Pad."""
    for row in range(len(ids)):
        position, is_silent = -1, False
        for t in range(ids.shape[1] if silent[row].any() else 0):
            kind = words.kind_of[ids[row, t]]
            if kind == Kind.POSITION:
                position, is_left[row, t] = t, False  # unless a note follows
            elif kind == Kind.NOTE:
                is_silent = silent[row, (ids[row, t] - words.firsts[Kind.NOTE]) // pitch_count]
                is_left[row, position] |= not is_silent
            if kind >= Kind.NOTE:
                is_left[row, t] = not is_silent


def misread(ids: Ints, semitones: Ints, tables: Ints) -> Ints:
    """Move each note among ids (B, T) by its own number of semitones, if the vocabulary allows.

    Args:
        ids: (B, T).
        semitones: (B, T), from -k to k.
        tables: (2 k + 1, V), from `transpositions`.
    """
    moved = tables[semitones + len(tables) // 2, ids]
    return np.where(moved < 0, ids, moved)


def programs_of(ids: Ints, vocabulary: Vocabulary) -> Ints:
    """Return the number of each Note's program in the vocabulary; other ids give nonsense."""
    number = (ids - vocabulary.first(Kind.NOTE)) // vocabulary.pitch_count
    return number.clip(0, len(vocabulary.programs) - 1)


# The ways in which notes of a training window are given, and in how many of 20 windows.
VOICE, VOICES, GAPS, OPENING, SCATTERED = range(5)
WAYS = np.repeat(np.arange(5), (4, 9, 5, 1, 1))
LONGEST_GAP = 3  # the most bars in a gap, and between two gaps


def choose_given(
    ids: Ints, way: int, rng: np.random.Generator, vocabulary: Vocabulary
) -> tuple[GivenNotes, Bools, Bools]:
    """Choose which notes of a training window are given, much as people would give them.

    Args:
        ids: (T,) a window with at least one note, Pad at the right end.
        way: VOICE gives one instrument, the highest in half of the cases; VOICES gives several but
            not all, or one of two; GAPS gives all but some bars, of all instruments or of some;
            OPENING gives the first bars of one instrument; SCATTERED gives notes at random. If
            there is only one instrument, its highest notes count as a voice.
        rng: what chooses.
        vocabulary: what the ids mean.

    Returns:
        The notes, with times from the window's first bar; (T,) whether an id belongs to one of
        them; and (T,) whether an id is forced. Forced ids are not scored: the given note would
        stand there whatever the model chose. A given Note is scored only if a new note could have
        come before it, since choosing it says that none does.
    """
    (now,), (note_at,) = read_windows(ids[None], vocabulary)
    kind = vocabulary.kind_of[ids]
    places = np.flatnonzero(kind == Kind.NOTE)
    number, onset = ids[places] - vocabulary.first(Kind.NOTE), now[places]
    program, pitch = np.divmod(number, vocabulary.pitch_count)
    present = np.unique(program)
    end = int(now.max()) + 1
    bars = np.append(now[kind == Kind.BAR], end)  # where the bars begin, and the end
    is_open = np.ones((len(vocabulary.programs), end), dtype=bool)
    is_given = np.zeros(len(places), dtype=bool)
    if way == SCATTERED:
        is_given = rng.random(len(places)) < rng.random()
    elif way == GAPS:
        sizes = rng.integers(1, LONGEST_GAP + 1, len(bars))
        in_gap = np.repeat(np.arange(len(bars)) % 2 == rng.integers(2), sizes)[: len(bars) - 1]
        whose = present if rng.random() < 0.5 else _some(present, 1, len(present), rng)
        is_open[:] = False
        is_open[whose] = np.repeat(in_gap, np.diff(bars))
        is_given = ~is_open[program, onset]
    else:
        stop = rng.choice(bars[1:]) if way == OPENING else end
        if len(present) == 1:
            highest = np.full(end, NO_PITCH)
            np.maximum.at(highest, onset, pitch)
            is_given = (pitch == highest[onset]) & (onset < stop)
        else:
            means = [pitch[program == its].mean() for its in present]
            one = present[np.argmax(means)] if rng.random() < 0.5 else rng.choice(present)
            several = way == VOICES and len(present) > 2
            whose = _some(present, 2, len(present) - 1, rng) if several else np.array([one])
            is_open[whose, :stop] = False
            is_given = ~is_open[program, onset]
    is_of_given = np.zeros(len(kind), dtype=bool)
    is_of_given[places] = is_given
    is_of_given = is_of_given[note_at] & (note_at >= 0) & (kind >= Kind.NOTE)
    is_forced = is_of_given & is_open[:, now].any(axis=0)
    is_forced[places] &= ~np.logical_or.accumulate(is_open)[program, onset]
    return GivenNotes(onset[is_given], number[is_given], is_open), is_of_given, is_forced


def _some(programs: Ints, least: int, most: int, rng: np.random.Generator) -> Ints:
    """Choose some programs, at least `least` and at most `most` of them."""
    return rng.permutation(programs)[: rng.integers(least, most + 1)]
