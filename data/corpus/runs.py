"""Runs of notes: the lines and the texture of pieces, and the runs that two sets of pieces share.

A run is some successive notes of a piece, in one of two representations:

- `line`: each instrument by itself. Of each program's notes, those with no higher note of that
  program above them: all notes of a voice that plays one at a time, and the top of chords and
  accompaniment (the skyline of Uitdenbogerd and Zobel 1998, "Manipulation of music for melody
  matching").
- `texture`: all instruments together, by onset and then from the lowest note up. A unison is one
  note.

Two runs are the same if both move by the same semitones from note to note, and by the same grid
steps from onset to onset. So key, instrument, tempo, velocity, the place in the bar and how long
notes are held make no difference; a changed rhythm does, and so do added notes. Drums are left out:
they have no key, and everyone uses the same patterns.

Notes are compared exactly, through the sorted suffixes of both sides (Manber and Myers 1993,
"Suffix arrays"). There are no hashes, so there are no false matches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Bools, Ints, offsets, segment_ids
from data.corpus.store import Split
from data.instrument_names import instrument_name
from data.score import DRUMS, MOST_PROGRAM, Grid, Score
from data.tokens.tokenizer import decode_parts
from data.tokens.vocabulary import Vocabulary

REPRESENTATIONS = ("line", "texture")
LEAST_NOTES = 4  # a listed run has at least this many notes
CHUNK = 2**21  # training tokens that are read at once, by default


@dataclass(frozen=True)
class NoteSequence:
    """N notes in the order of one representation, line by line; all arrays are (N,)."""

    piece: Ints  # the index of the note's piece
    program: Ints  # -1 if instruments are taken together
    bar: Ints  # the number of the note's bar (an upbeat is 0); on a grid of seconds, the second
    onset: Ints  # in grid steps
    pitch: Ints
    # a number for the semitones and grid steps to the next note; for the last note of a line, a
    # negative number that no other note has
    step: Ints
    left: Ints  # how many notes the line has from this one on


@dataclass(frozen=True)
class LongestMatches:
    """For each of N notes, the longest run from it that the training set has too, and one place."""

    notes: NoteSequence
    length: Ints  # (N,) how many notes the run has; 1: training never goes on like this
    piece: Ints  # (N,) the index of the training piece
    bar: Ints  # (N,) the bar in which the run begins there
    semitones: Ints  # (N,) by how many semitones it is higher there


@dataclass(frozen=True)
class SharedRun:
    """A run of notes, and where it occurs in the training set."""

    notes: int  # how many notes it has
    instrument: str  # or "texture", if instruments are taken together
    bar: int  # where it begins
    file: str  # the training piece in which it occurs
    file_bar: int
    semitones: int  # by how many semitones it is higher in training

    def __str__(self) -> str:
        """Say how long it is and where it occurs."""
        semitones = abs(self.semitones)
        moved = f", {semitones} semitone{'s' * (semitones > 1)} " if semitones else ""
        moved += ("higher" if self.semitones > 0 else "lower") * bool(semitones)
        return (
            f"{self.notes} notes from bar {self.bar} ({self.instrument}) stand in "
            f"{self.file} from bar {self.file_bar}{moved}"
        )


def note_sequence(scores: Sequence[Score], representation: str) -> NoteSequence:
    """Return the notes of at least one piece in one of REPRESENTATIONS."""
    notes = np.concatenate([score.notes for score in scores])
    piece = segment_ids(offsets([len(score.notes) for score in scores]))
    bar = np.concatenate([score.bar_positions[0] + score.first_number for score in scores])
    is_pitched = notes["program"] != DRUMS
    notes, piece, bar = notes[is_pitched], piece[is_pitched], bar[is_pitched]
    onset, pitch, program = (notes[name].astype(np.int64) for name in ("onset", "pitch", "program"))
    program = program if representation == "line" else np.full(len(notes), -1)
    line = piece * (MOST_PROGRAM + 1) + program
    order = np.lexsort((pitch, onset, line))
    place = np.stack([line, onset, pitch])[:, order]
    if representation == "line":
        release = scores[0].grid.steps_per_beat // 8  # how far a note may be held into the next
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
    return NoteSequence(piece[order], program[order], bar[order], onset, pitch, step, left)


def _is_on_top(line: Ints, onset: Ints, pitch: Ints, duration: Ints, release: int) -> Bools:
    """Return (N,): whether each note is the highest of its line that begins or sounds at its onset.

    The notes are sorted by line, onset and pitch. In the last `release` steps of a note, the next
    one may already begin.
    """
    # one time axis for all lines, one after the other without touching
    begin = onset + line * int((onset + duration).max(initial=0) + 1)
    end = np.maximum(begin + 1, begin + duration - release)
    latest = np.searchsorted(begin, begin, side="right") - 1  # the last that begins with each
    reach = np.full(len(begin), np.iinfo(np.int64).min)  # the ends of all higher notes
    is_on_top = np.ones(len(begin), dtype=bool)
    for height in np.unique(pitch)[::-1].tolist():
        here = np.flatnonzero(pitch == height)
        is_on_top[here] = np.maximum.accumulate(reach)[latest[here]] <= begin[here]
        reach[here] = end[here]
    return is_on_top


def find_matches(
    pieces: Sequence[Score],
    train: Split,
    vocabulary: Vocabulary,
    at_once: int = CHUNK,
    names: Sequence[str] = REPRESENTATIONS,
) -> Iterator[dict[str, LongestMatches]]:
    """Find the longest run from each note that `train` has, in representations of these names.

    This yields what was found so far after every `at_once` tokens of `train`. What it yields last
    holds for all of `train`.
    """
    notes = {name: note_sequence(pieces, name) for name in names}
    best = {name: np.zeros((4, len(notes[name].step)), dtype=np.int64) for name in names}
    for first, batch in _read_batches(train, vocabulary, at_once):
        for name in names:
            chunk = note_sequence(batch, name)
            if not len(chunk.step):  # there are only drums
                continue
            length, at = _longest_matches(notes[name].step, chunk.step)
            semitones = chunk.pitch[at] - notes[name].pitch
            new = np.stack([length, first + chunk.piece[at], chunk.bar[at], semitones])
            best[name] = np.where(length > best[name][0], new, best[name])
        yield {
            name: LongestMatches(notes[name], length + 1, piece, bar, semitones)
            for name, (length, piece, bar, semitones) in best.items()
        }


def shared_runs(
    matches: LongestMatches, piece: int, names: Sequence[str], grid: Grid
) -> list[SharedRun]:
    """Return the runs of a piece that are not part of another run, the longest first.

    They are those of the piece with this index that have at least LEAST_NOTES notes; `names` are
    those of the training pieces.
    """
    begin, end = np.searchsorted(matches.notes.piece, (piece, piece + 1)).tolist()
    length = matches.length[begin:end]
    # a run that begins one note later and ends with this one is a part of it
    is_part = np.append(False, length[:-1] == length[1:] + 1)[: len(length)]
    rows = np.flatnonzero(~is_part & (length >= LEAST_NOTES))
    rows = rows[np.argsort(-length[rows], kind="stable")] + begin
    runs = []
    for row in rows.tolist():
        program = int(matches.notes.program[row])
        runs.append(
            SharedRun(
                int(matches.length[row]),
                "texture" if program < 0 else instrument_name(program, grid),
                int(matches.notes.bar[row]),
                names[matches.piece[row]],
                int(matches.bar[row]),
                int(matches.semitones[row]),
            )
        )
    return runs


def _read_batches(
    train: Split, vocabulary: Vocabulary, at_once: int
) -> Iterator[tuple[int, list[Score]]]:
    """Yield the pieces of a training set in groups of some tokens, with the index of the first.

    So memory does not grow with the set.
    """
    chunk_of = train.piece_offsets[:-1] // at_once
    for members in np.split(np.arange(len(train)), np.flatnonzero(np.diff(chunk_of)) + 1):
        found = [decode_parts(train.piece(number), vocabulary) for number in members.tolist()]
        yield int(members[0]), [Score(*parts, vocabulary.grid) for parts in found]


def _longest_matches(asked: Ints, there: Ints) -> tuple[Ints, Ints]:
    """Find the longest run of steps from each place in `asked` that `there` has, and where.

    Negative steps equal nothing, and `there` has at least one step.

    Returns:
        (N,) how many steps match, and (N,) at which place in `there` they begin.
    """
    n, count = len(asked), len(asked) + len(there)
    steps = np.concatenate([np.where(asked < 0, asked - len(there), asked), there])
    # ranks[k][i]: the alphabetical rank of the 2^k steps from i on, among all such
    ranks = [np.unique(steps, return_inverse=True)[1]]
    while np.isin(ranks[-1][:n], ranks[-1][n:]).any():
        width = 2 ** (len(ranks) - 1)
        second = np.append(ranks[-1][width:] + 1, np.zeros(min(width, count), dtype=np.int64))
        ranks.append(np.unique(ranks[-1] * (count + 1) + second, return_inverse=True)[1])
    # the longest match of a place is next to it in that order, before or after it
    order = np.argsort(ranks[-1], kind="stable")
    is_there = order >= n
    mine, theirs = order[~is_there], order[is_there]
    after = np.cumsum(is_there)[~is_there]  # for each of ours, the first of theirs that follows
    length, at = np.zeros(n, dtype=np.int64), np.full(n, n)
    for neighbor in (after - 1, after):
        other = theirs[neighbor.clip(0, len(theirs) - 1)]
        shared = np.zeros(n, dtype=np.int64)
        for level in range(len(ranks) - 2, -1, -1):
            rank = ranks[level]
            shared += (rank[mine + shared] == rank[other + shared]) << level
        is_longer = shared > length[mine]
        length[mine[is_longer]], at[mine[is_longer]] = shared[is_longer], other[is_longer]
    return length, at - n
