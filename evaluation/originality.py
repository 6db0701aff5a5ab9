"""How much of some pieces stands in the training set: shared runs of notes, in any key.

A run is some notes of a piece one after another, in either of two readings:

- `line`: what one instrument sings. Of each program's notes those above which it has no other, so
  a voice that plays one note at a time is read whole, and of chords and accompaniment the top
  (the skyline of Uitdenbogerd and Zobel 1998, "Manipulation of music for melody matching").
- `texture`: all instruments together, onset by onset and from the lowest note up. What sounds in
  unison there is one note.

Two runs are the same where from note to note both go the same number of semitones up or down and
wait the same number of grid steps from onset to onset. So key, instrument, tempo, loudness, the
place in the bar and how long the notes are held make no difference; a changed rhythm does, and
notes put in between. The drums have no key, and their patterns are everybody's: they are left out.

The comparison is of the notes themselves, through the sorted suffixes of both sides (Manber and
Myers 1993, "Suffix arrays"): there are no hashes, so nothing is found that is not there. It takes
the training set in pieces of CHUNK tokens, and no memory that grows with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from data.arrays import offsets, reduce_segments, segment_ids
from data.corpus.corpus import SPLITS, Corpus
from data.corpus.store import Split
from data.score import DRUMS, Score, ScoreBatch
from data.tokens.batch_tokenizer import decode_batch
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Vocabulary

READINGS = ("line", "texture")
LENGTHS = (4, 8, 16)  # notes: of the runs whose shares are told
CHUNK = 2**21  # training tokens that are compared at once
MOST_HELD_OUT = 500  # pieces that stand beside the ones asked about, drawn if there are more

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """N notes in the order in which they are read, line after line.

    Attributes:
        piece: (N,) which piece each is in.
        program: (N,) what plays it; -1 where instruments are read together.
        bar: (N,) the number of its bar as people count: an upbeat is bar 0; on a grid of seconds
            the second, from 0.
        pitch: (N,) of MIDI.
        step: (N,) one number for the way to the next note, semitones and grid steps; of the last
            note of a line a negative one that no other has.
        left: (N,) notes from it to the end of its line, itself among them.
    """

    piece: Whole
    program: Whole
    bar: Whole
    pitch: Whole
    step: Whole
    left: Whole


@dataclass(frozen=True)
class Found:
    """The longest run from each note on that training holds too, and one place where.

    Attributes:
        reading: N notes.
        length: (N,) notes of the run; 1 where training never goes on in this way.
        piece, bar: (N,) the training piece, and the bar in which the run begins there.
        semitones: (N,) how much higher it stands there.
    """

    reading: Reading
    length: Whole
    piece: Whole
    bar: Whole
    semitones: Whole


def originality(pieces: ScoreBatch, names: Sequence[str], corpus: Corpus) -> dict[str, Any]:
    """What a corpus's training set has of some pieces, and of held-out ones, as plain data.

    What it has of pieces that were never copied tells how much is everybody's: a figure means
    something beside theirs alone.

    Args:
        pieces: P of them, on the grid of the corpus.
        names: of the P pieces.
        corpus: whose train split is looked in, and whose other splits stand beside the pieces.

    Returns:
        What `figures` says by the names of READINGS: of each of the `pieces`, with its `runs`, of
        `all` of them together and of the `held_out` together; and the `training` set.
    """
    train = corpus.split("train")
    held_out, of = _held_out(corpus)
    every = [pieces[index] for index in range(len(pieces))] + held_out
    found = find(ScoreBatch.of(every), train, corpus.vocabulary)

    def told(first: int, count: int) -> dict[str, Any]:
        return {name: figures(each, range(first, first + count)) for name, each in found.items()}

    return {
        "training": {
            "corpus": corpus.folder.name,
            "pieces": len(train),
            "notes": int(train.note_counts.sum()),
        },
        "pieces": [
            {
                "name": name,
                **told(index, 1),
                "runs": {reading: runs(its, index, train.names) for reading, its in found.items()},
            }
            for index, name in enumerate(names)
        ],
        "all": {"pieces": len(pieces), **told(0, len(pieces))},
        "held_out": {"pieces": len(held_out), "of": of, **told(len(pieces), len(held_out))},
    }


def _held_out(corpus: Corpus) -> tuple[list[Score], int]:
    """Some of a corpus's held-out pieces, and how many there are."""
    splits = [corpus.split(name) for name in SPLITS[1:]]
    places = [(split, index) for split in splits for index in range(len(split))]
    drawn = np.random.default_rng(0).permutation(len(places))[:MOST_HELD_OUT]
    some = (places[number] for number in np.sort(drawn).tolist())
    return [decode(split.piece(index), corpus.vocabulary) for split, index in some], len(places)


def find(pieces: ScoreBatch, train: Split, vocabulary: Vocabulary) -> dict[str, Found]:
    """What training has of some pieces, by the names of READINGS.

    Args:
        pieces: on the vocabulary's grid.
        train: the split to look in.
        vocabulary: of its tokens.
    """
    asked = {name: read(pieces, name) for name in READINGS}
    best = {name: np.zeros((4, len(asked[name].step)), dtype=np.int64) for name in READINGS}
    for first, batch_of_scores in _chunks(train, vocabulary):
        for name in READINGS:
            there = read(batch_of_scores, name)
            if not len(there.step):  # drums alone
                continue
            length, at = _longest(asked[name].step, there.step)
            higher = there.pitch[at] - asked[name].pitch
            new = np.stack([length, first + there.piece[at], there.bar[at], higher])
            best[name] = np.where(length > best[name][0], new, best[name])
    return {
        name: Found(asked[name], length + 1, piece, bar, semitones)
        for name, (length, piece, bar, semitones) in best.items()
    }


def _chunks(split: Split, vocabulary: Vocabulary) -> Iterator[tuple[int, ScoreBatch]]:
    """All pieces of a split, so many tokens at a time, and the number of the first."""
    number = split.piece_offsets[:-1] // CHUNK
    for members in np.split(np.arange(len(split)), np.flatnonzero(np.diff(number)) + 1):
        first, last = members[[0, -1]].tolist()
        ends = split.piece_offsets[first : last + 2]
        ids = split.tokens[ends[0] : ends[-1]].astype(np.int64)
        yield first, decode_batch(ids, np.diff(ends), vocabulary)


def read(batch_of_scores: ScoreBatch, reading: str) -> Reading:
    """The notes of some pieces in one of READINGS."""
    is_pitched = batch_of_scores.notes["program"] != DRUMS
    notes = batch_of_scores.notes[is_pitched]
    piece, bar = (
        segment_ids(batch_of_scores.note_offsets)[is_pitched],
        _bar_numbers(batch_of_scores)[is_pitched],
    )
    onset, pitch, program = (notes[name].astype(np.int64) for name in ("onset", "pitch", "program"))
    program = program if reading == "line" else np.full(len(notes), -1)
    line = piece * DRUMS + program
    order = np.lexsort((pitch, onset, line))
    place = np.stack([line, onset, pitch])[:, order]
    if reading == "line":
        release = batch_of_scores.grid.steps_per_beat // 8  # of a note that is held into the next
        duration = notes["duration"][order].astype(np.int64)
        order = order[_is_on_top(place[0], place[1], place[2], duration, release)]
    else:
        order = order[np.append(True, np.any(np.diff(place), axis=0))[: len(order)]]
    line, onset, pitch = line[order], onset[order], pitch[order]
    is_last = np.append(line[1:] != line[:-1], True)[: len(line)]
    step = np.append(np.diff(onset) * 256 + np.diff(pitch) + 128, 0)[: len(line)]
    ends = np.flatnonzero(is_last)
    left = np.repeat(ends, np.diff(ends, prepend=-1)) - np.arange(len(line)) + 1
    step = np.where(is_last, -1 - np.arange(len(line)), step)
    return Reading(piece[order], program[order], bar[order], pitch, step, left)


def _bar_numbers(batch_of_scores: ScoreBatch) -> Whole:
    """(N,) the number of the bar that each note begins in."""
    line, first = offsets(batch_of_scores.bars["length"]), batch_of_scores.bar_offsets[:-1]
    begin = np.repeat(line[first], np.diff(batch_of_scores.note_offsets))
    bar = np.searchsorted(line, begin + batch_of_scores.notes["onset"], side="right") - 1
    number = bar - np.repeat(first, np.diff(batch_of_scores.note_offsets))
    if not batch_of_scores.grid.has_meter:
        return np.asarray(number)
    numerator, denominator = (
        batch_of_scores.bars[n].astype(np.int64) for n in ("numerator", "denominator")
    )
    is_short = batch_of_scores.bars["length"] < batch_of_scores.grid.bar_steps(
        numerator, denominator
    )
    # a piece without notes has no bars either
    has_upbeat = np.append(is_short, False)[first]
    return np.asarray(number + 1 - np.repeat(has_upbeat, np.diff(batch_of_scores.note_offsets)))


def _is_on_top(
    line: Whole, onset: Whole, pitch: Whole, duration: Whole, release: int
) -> NDArray[np.bool_]:
    """(N,) bool, whether no higher note of its line begins with a note, or sounds where it begins.

    Args:
        line, onset, pitch, duration: (N,), sorted by line, onset and pitch.
        release: steps at the end of a note in which the next may begin already.
    """
    # one time line for all, line after line, on which no two touch
    begin = onset + line * int((onset + duration).max(initial=0) + 1)
    end = np.maximum(begin + 1, begin + duration - release)
    latest = np.searchsorted(begin, begin, side="right") - 1  # of the notes that begin with each
    reach = np.full(len(begin), np.iinfo(np.int64).min)  # the ends of all higher notes
    is_on_top = np.ones(len(begin), dtype=bool)
    for height in np.unique(pitch)[::-1].tolist():
        here = np.flatnonzero(pitch == height)
        is_on_top[here] = np.maximum.accumulate(reach)[latest[here]] <= begin[here]
        reach[here] = end[here]
    return is_on_top


def _longest(asked: Whole, there: Whole) -> tuple[Whole, Whole]:
    """The longest run of steps from each place in `asked` that `there` holds, and where.

    Args:
        asked: (N,) steps; `there`: (M,), one at least. Negative ones are equal to nothing.

    Returns:
        (N,) how many steps, and (N,) at which place in `there` they begin.
    """
    n, count = len(asked), len(asked) + len(there)
    steps = np.concatenate([np.where(asked < 0, asked - len(there), asked), there])
    # ranks[k][i] is how the 2^k steps from i on stand among all such in alphabetical order
    ranks = [np.unique(steps, return_inverse=True)[1]]
    while np.isin(ranks[-1][:n], ranks[-1][n:]).any():
        width = 2 ** (len(ranks) - 1)
        second = np.append(ranks[-1][width:] + 1, np.zeros(min(width, count), dtype=np.int64))
        ranks.append(np.unique(ranks[-1] * (count + 1) + second, return_inverse=True)[1])
    # what is most like a place stands next to it in that order, on the one side or the other
    order = np.argsort(ranks[-1], kind="stable")
    number = np.arange(count)
    is_there = order >= n
    before = np.maximum.accumulate(np.where(is_there, number, -1))
    after = np.minimum.accumulate(np.where(is_there, number, count)[::-1])[::-1]
    rows = np.flatnonzero(~is_there)
    length, at = np.zeros(n, dtype=np.int64), np.full(n, n)
    place = order[rows]
    for beside, is_any in ((before, before[rows] >= 0), (after, after[rows] < count)):
        mine, other = place[is_any], order[beside[rows[is_any]]]
        shared = np.zeros(len(mine), dtype=np.int64)
        for level in range(len(ranks) - 2, -1, -1):
            rank = ranks[level]
            shared += (rank[mine + shared] == rank[other + shared]) << level
        is_longer = shared > length[mine]
        length[mine[is_longer]], at[mine[is_longer]] = shared[is_longer], other[is_longer]
    return length, at - n


def figures(found: Found, members: range) -> dict[str, Any]:
    """What was found of some pieces together, as plain data.

    Args:
        found: by `find`, in one reading.
        members: the numbers of the pieces.

    Returns:
        `notes`; `shares`, by the number of notes, of the runs of that length that training holds
        (NaN where the pieces have none so long); and `longest`, the notes of each piece's longest
        run, 0 where it has none.
    """
    ends = np.searchsorted(found.reading.piece, np.arange(members.start, members.stop + 1))
    begin, end = ends[[0, -1]].tolist()
    length, left = found.length[begin:end], found.reading.left[begin:end]
    shares = {}
    for notes in LENGTHS:
        possible, held = int((left >= notes).sum()), int((length >= notes).sum())
        shares[str(notes)] = held / possible if possible else float("nan")
    most = reduce_segments(np.maximum, length, ends - begin, empty=0)
    return {
        "notes": end - begin,
        "shares": shares,
        "longest": np.where(most > 1, most, 0).tolist(),
    }


def runs(found: Found, piece: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """All runs of LENGTHS[0] notes or more of a piece that are no part of another, as plain data.

    Args:
        found: by `find`, in one reading.
        piece: its number.
        names: of the training pieces.

    Returns:
        The longest first, of each its `notes`, its `program` (None for all together) with the name
        of the `instrument`, its `bar`, and where it stands in training: `file`, `file_bar`, and
        how many `semitones` higher.
    """
    begin, end = np.searchsorted(found.reading.piece, (piece, piece + 1)).tolist()
    length = found.length[begin:end]
    # a run that begins a note later and ends with this one's end is a part of it
    is_part = np.append(False, length[:-1] == length[1:] + 1)[: len(length)]
    rows = np.flatnonzero(~is_part & (length >= LENGTHS[0]))
    rows = rows[np.argsort(-length[rows], kind="stable")] + begin
    return [_run(found, row, names) for row in rows.tolist()]


def _run(found: Found, row: int, names: Sequence[str]) -> dict[str, Any]:
    """One run, as plain data."""
    program = int(found.reading.program[row])
    return {
        "notes": int(found.length[row]),
        "program": None if program < 0 else program,
        "instrument": None if program < 0 else pretty_midi.program_to_instrument_name(program),
        "bar": int(found.reading.bar[row]),
        "file": names[found.piece[row]],
        "file_bar": int(found.bar[row]),
        "semitones": int(found.semitones[row]),
    }
