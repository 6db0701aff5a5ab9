"""The state of pieces that are written under constraints, and the tables of what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from common.arrays import Bools, Ints
from common.compiled import compiled_inside
from data.tokens.cursor import Cursors
from data.tokens.features import Context, Heard
from data.tokens.vocabulary import Words
from generation.chord_plan import Chords
from generation.given import GivenTables
from generation.length import Asked, Row

# Of the latest note of each of P programs, and the one before it; -1 before the first. Of a chord
# the lowest counts, and pitches count from the vocabulary's lowest. DUE is of the given note that
# begins now, or NO_PITCH.
LATEST = 6
ONSET, PITCH, END, PITCH_BEFORE, END_BEFORE, DUE = range(LATEST)


class Rows(NamedTuple):
    """Where B rows stand; changed in place. Times are in grid steps."""

    at: Cursors  # (B,) of Row
    latest: Ints  # (B, LATEST, P)
    free_at: Ints  # (B, N) when each note may start again; NEVER: the model may not play it
    note_ends: Ints  # (B, N) when each note ended or will end, whether it may play it or not
    new_ends: Ints  # (B, N) likewise of new notes alone
    steps: Bools  # (B, beat) on which steps of a beat notes begin; (B, 0): on all
    loops: Ints  # (B, bars, P) how many bars before a program played the same; 0: new; (B, 0, P)
    recent: Ints  # (B, R, 3) onset, note and duration of the latest new notes, in turn


RECENT = 1024  # notes that are kept, of eight bars or more

# Of notes with which programs can yet make a chord: the lowest as its bass, or NEVER; the highest
# as its root and as its third, or -1.
REACH = 3
AS_BASS, AS_ROOT, AS_THIRD = range(REACH)


class One(NamedTuple):
    """Where one of the rows stands, as in `Rows`."""

    here: Row
    latest: Ints  # (LATEST, P)
    free_at: Ints  # (N,)
    note_ends: Ints  # (N,)
    new_ends: Ints  # (N,)
    steps: Bools  # (beat,), or (0,)
    loops: Ints  # (bars, P), or (0, P)
    recent: Ints  # (R, 3)
    reach: Ints  # (REACH, P) of scratch


@compiled_inside
def begin_note(latest: Ints, program: int, pitch: int, now: int, end: int) -> None:
    """Set what a program played last."""
    latest[PITCH_BEFORE, program] = latest[PITCH, program]
    latest[END_BEFORE, program] = latest[END, program]
    latest[PITCH, program], latest[ONSET, program], latest[END, program] = pitch, now, end


class Parts(NamedTuple):
    """What rules of P programs, which play a part each, must know of them."""

    lowest_pitch: int  # from which pitches count
    plays: Bools  # (P,) whether the model may play notes of it
    is_pitched: Bools  # (P,)
    is_monophonic: Bools  # (P,) whether it plays a note at a time; drums never do
    is_within: Bools  # (N,) whether each note lies in the range of its program
    may_play: Bools  # (N,) and the model may play it
    given: Ints  # (S, P) the lowest given note that begins at a step, or NO_PITCH; at last none
    before: Ints  # (S, P) when the latest one began; -1: there is none
    after: Ints  # (S, P) when the next one begins; NEVER


class Rules(NamedTuple):
    """What is asked of pieces, as loops read it; N notes."""

    asked: Asked
    words: Words
    followers: Bools  # (K, V) of the grammar
    limits: Ints  # (tempi,) the step at which the seconds are over; NEVER without
    is_playable: Bools  # (N,) which notes the model may play
    given: GivenTables
    parts: Parts
    chords: Chords


@dataclass
class Window:
    """What the decoder has read of B rows since they began, or began anew.

    Attributes:
        heard: what side input has heard in it.
        context: what else is told beside it.
        bars_before: (B,) bars of the piece before it.
    """

    heard: Heard
    context: Context
    bars_before: Ints


@dataclass
class ConstrainedState:
    """Where each of B rows stands.

    Attributes:
        rows: for all compiled rules.
        plays: (B, P) the programs that may play.
        window: what the decoder has read; None before it reads.
    """

    rows: Rows
    plays: Bools
    window: Window | None = None

    @property
    def at(self) -> Cursors:
        """Where the rows stand in their pieces."""
        return self.rows.at

    def take(self, order: Ints) -> None:
        """Let each row be as one of them is, (B',); a decoder reads them anew."""
        self.rows = Rows._make(array[order] for array in self.rows)
        self.plays, self.window = self.plays[order], None
