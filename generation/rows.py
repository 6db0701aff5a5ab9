"""The state of pieces that are written under constraints, and the tables of the request."""

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

# Rows of a table about the latest note of each of P programs and the one before it; -1 before the
# first. In a chord, the lowest note counts. Pitches count from the vocabulary's lowest. DUE is the
# pitch of the given note that begins now, or NO_PITCH.
LATEST = 6
ONSET, PITCH, END, PITCH_BEFORE, END_BEFORE, DUE = range(LATEST)


class Rows(NamedTuple):
    """Where B rows stand; changed in place. Times are in grid steps."""

    at: Cursors  # (B,) of Row
    latest: Ints  # (B, LATEST, P)
    free_at: Ints  # (B, N) when each note may start again; NEVER: the model may not play it
    note_ends: Ints  # (B, N) when each note ended or will end, playable or not
    new_ends: Ints  # (B, N) the same for new notes only
    steps: Bools  # (B, beat) on which steps of a beat notes may begin; (B, 0): on all
    loops: Ints  # (B, bars, P) how many bars earlier a program played the same; 0: new; (B, 0, P)
    recent: Ints  # (B, R, 3) onset, note and duration of the latest notes, a ring buffer


RECENT = 1024  # R: enough for eight bars or more

# Rows of a table about the notes with which each program can still complete a chord: the lowest one
# that is its bass, or NEVER; the highest ones that are its root and its third, or -1.
REACH = 3
AS_BASS, AS_ROOT, AS_THIRD = range(REACH)


class One(NamedTuple):
    """Where one row stands; the fields are those of `Rows`."""

    here: Row
    latest: Ints  # (LATEST, P)
    free_at: Ints  # (N,)
    note_ends: Ints  # (N,)
    new_ends: Ints  # (N,)
    steps: Bools  # (beat,), or (0,)
    loops: Ints  # (bars, P), or (0, P)
    recent: Ints  # (R, 3)
    reach: Ints  # (REACH, P) scratch space


@compiled_inside
def begin_note(latest: Ints, program: int, pitch: int, now: int, end: int) -> None:
    """Record a new note as the latest of its program."""
    latest[PITCH_BEFORE, program] = latest[PITCH, program]
    latest[END_BEFORE, program] = latest[END, program]
    latest[PITCH, program], latest[ONSET, program], latest[END, program] = pitch, now, end


class Parts(NamedTuple):
    """What the rules must know about the P programs, each of which plays a part."""

    lowest_pitch: int  # the vocabulary's lowest; pitches count from it
    plays: Bools  # (P,) whether the model may play any note of it
    is_pitched: Bools  # (P,) all but drums
    is_monophonic: Bools  # (P,) whether it plays one note at a time; never true for drums
    is_within: Bools  # (N,) whether each note lies in the range of its program
    given: Ints  # (S, P) the lowest given note that begins at a step, or NO_PITCH; at last none
    before: Ints  # (S, P) when the latest given note began; -1: there is none
    after: Ints  # (S, P) when the next given note begins; NEVER: there is none


class Rules(NamedTuple):
    """The whole request, as tables for compiled loops; N notes."""

    asked: Asked
    words: Words
    followers: Bools  # (K, V) which ids the grammar allows after each kind
    limits: Ints  # (tempi,) the step at which a length in seconds is over; NEVER: there is none
    is_playable: Bools  # (N,) which notes the model may play
    given: GivenTables
    parts: Parts
    chords: Chords


@dataclass
class Window:
    """What the decoder has read of B rows since it began, or began again with a shorter prompt.

    Attributes:
        heard: what the side input has gathered from the ids of the window.
        context: everything else that the side input tells.
        bars_before: (B,) how many bars of the piece come before the window.
    """

    heard: Heard
    context: Context
    bars_before: Ints


@dataclass
class ConstrainedState:
    """Where each of B rows stands.

    Attributes:
        rows: the state that the compiled rules read and change.
        plays: (B, P) which programs may play.
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
        """Copy the rows in `order`, (B',), over the state; the decoder must read them again."""
        self.rows = Rows._make(array[order] for array in self.rows)
        self.plays, self.window = self.plays[order], None
