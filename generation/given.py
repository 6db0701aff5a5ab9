"""Given notes as tokens: forced through the grammar where they are due, in a region that is closed.

What is given is a Score whose notes are kept, and a table of where new ones may begin. Between the
ids of the given notes the model writes its own, where its region is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.interface import PAD
from data.keys import Key, melody_key, pitched_notes
from data.score import Score
from data.tokens.cursor import Cursor, latest_notes, read_windows
from data.tokens.features import SideFeatures
from data.tokens.given import GivenNotes
from data.tokens.spans import NEVER, Ints, SideArrays
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constraints import ConstraintError, Constraints

# What the given notes alone decide: lengths and tempi of bars, and how their notes go on.
_GIVEN_ALONE = (Kind.LENGTH, Kind.TEMPO, Kind.EXTEND, Kind.DURATION, Kind.VELOCITY)


class GivenTokens:
    """The tokens of given notes, and the region in which the model may write others.

    Args:
        score: the given notes, in bars that are kept with their tempi, empty ones at the end too.
        is_open: bool (P, S), whether notes of each of the vocabulary's programs may begin at each
            step; later they may. Their notes end where the region does.
        vocabulary: of the model.
        constraints: of the piece; the tempo holds for the given notes too.

    Attributes:
        score: the notes, at that tempo.
        bars: how many bars it has.
        end: the step at which the last of them ends.
        ids: (T,) its tokens without End.
        prompt: the ids before the first place at which there is a choice.

    Raises:
        ConstraintError: notes that the constraints rule out.
        VocabularyError: the vocabulary has no token for something in the score.
    """

    def __init__(
        self,
        score: Score,
        is_open: NDArray[np.bool_],
        vocabulary: Vocabulary,
        constraints: Constraints,
    ) -> None:
        tempo = constraints.tempo_number(vocabulary)
        if tempo is not None:
            tempi = np.full_like(score.tempo_bpm, vocabulary.tempos[tempo])
            score = replace(score, tempo_bpm=tempi)
        self.score, self.vocabulary = score, vocabulary
        self.bars, self.end = len(score.bars), int(score.bar_starts[-1])
        self.ids = encode(score, vocabulary)[:-1]
        self.notes = GivenNotes.of(score, is_open, vocabulary)
        self.prompt = self.ids[: self._choice_at()]
        self._note_ends = self.notes.onset + score.notes["duration"]
        self._run_ends = _run_ends(is_open)
        self._program_of = np.arange(vocabulary.counts[Kind.NOTE]) // vocabulary.pitch_count
        kinds = np.arange(len(Kind))
        inside_note = [Kind.NOTE, Kind.EXTEND]  # after which the same note goes on
        if len(vocabulary.velocities) > 1:
            inside_note.append(Kind.DURATION)
        self._takes_note = ~np.isin(kinds, inside_note)  # (kind,)
        self._takes_position = self._takes_note & (kinds != Kind.POSITION)

    def _choice_at(self) -> int:
        """Return the place of the first id before which the model may write."""
        is_open = self.notes.is_open
        first = int(is_open.any(axis=0).argmax()) if is_open.any() else is_open.shape[1]
        cursor = Cursor.at_start(self.vocabulary, 1)
        for place, token in enumerate(self.ids[1:].tolist(), start=1):
            cursor.advance(np.array([token]))
            is_head = cursor.kind[0] in (Kind.BAR, Kind.LENGTH, Kind.TEMPO)
            if cursor.now[0] >= first + is_head:
                return place
        return len(self.ids)

    @property
    def last_bar_start(self) -> int:
        """The step at which the last of its bars begins; 0 without bars."""
        return int(self.score.bar_starts[-2]) if self.bars else 0

    @property
    def whole_bar(self) -> int:
        """Steps of a whole bar of its last meter; 0 without bars."""
        if not self.bars:
            return 0
        meter = self.score.bars[["numerator", "denominator"]][-1].tolist()
        return int(self.score.grid.bar_steps(*meter))

    @cached_property
    def reach(self) -> int:
        """The first step from which nothing of it matters to new notes."""
        return int(max(self.end, self.notes.is_open.shape[1], len(self.sounding)))

    @cached_property
    def is_told(self) -> bool:
        """Whether the model has to know the notes in advance: some come after its first choice."""
        return len(self.prompt) < len(self.ids)

    @cached_property
    def key(self) -> Key | None:
        """The key of the given notes; None of very few pitch classes, or of all."""
        return melody_key(pitched_notes(self.score))

    @cached_property
    def last_ends(self) -> Ints:
        """(N,) when the last given note of each number ends; 0: there is none."""
        ends = np.zeros(self.vocabulary.counts[Kind.NOTE], dtype=np.int64)
        np.maximum.at(ends, self.notes.note, self._note_ends)
        return ends

    @cached_property
    def sounding(self) -> NDArray[np.int16]:
        """(S,) how many given notes sound in each step; after these steps none does."""
        steps = np.arange(int(self.last_ends.max(initial=0)))
        begun = np.searchsorted(np.sort(self.notes.onset), steps, side="right")
        ended = np.searchsorted(np.sort(self._note_ends), steps, side="right")
        return (begun - ended).astype(np.int16)

    @cached_property
    def has_note_in_last_bar(self) -> bool:
        """Whether a given note begins in the last of its bars."""
        return bool(np.any(self.notes.onset >= self.last_bar_start))

    def is_done(self, next_given: Ints) -> NDArray[np.bool_]:
        """Return whether rows have read all ids; (B,) `next_given` is the place of the next."""
        return next_given >= len(self.ids)

    def may_begin(self, step: Ints) -> NDArray[np.bool_]:
        """Return (..., P), whether new notes of a program may begin at steps (...)."""
        return ~self.notes.is_closed(step)

    def narrow(
        self,
        mask: NDArray[np.bool_],
        latest: Ints,
        now: Ints,
        bar_start: Ints,
        next_given: Ints,
    ) -> None:
        """Mask new notes outside the region, and what would pass over the next given id.

        Where that id is due, it is allowed whatever the mask was.

        Args:
            mask: (B, V), what may come next.
            latest: (B,) the Kind of the latest id.
            now: (B,) time of the latest Position or Bar.
            bar_start: (B,) time of the latest Bar.
            next_given: (B,) place of the next given id.
        """
        vocabulary = self.vocabulary
        first_position = vocabulary.first(Kind.POSITION)
        is_soon = bar_start < self.notes.is_open.shape[1]
        if is_soon.any():
            step = bar_start[:, None] + np.arange(vocabulary.longest_bar)
            positions = mask[:, first_position : first_position + vocabulary.longest_bar]
            positions &= self.may_begin(step).any(axis=-1)
            notes = mask[:, vocabulary.ids(Kind.NOTE)]
            notes &= self.may_begin(now)[:, self._program_of]
        for head in (Kind.LENGTH, Kind.TEMPO):  # given bars are as they are
            mask[:, vocabulary.ids(head)] &= (bar_start >= self.end)[:, None]
        rows = np.flatnonzero(next_given < len(self.ids))
        if not len(rows):
            return
        token, latest = self.ids[next_given[rows]], latest[rows]
        kind, ids, due = vocabulary.kind_of[token], np.arange(vocabulary.size), mask[rows]
        for rising in (Kind.POSITION, Kind.NOTE):
            among = vocabulary.ids(rising)
            due[:, among] &= (ids[among] <= token[:, None]) | (kind != rising)[:, None]
        bars = vocabulary.ids(Kind.BAR)
        due[:, bars] &= ids[bars] == token[:, None]
        due[:, vocabulary.first(Kind.END)] = False
        is_note = kind == Kind.NOTE
        due[is_note, vocabulary.ids(Kind.POSITION)] = False
        is_due = is_note & self._takes_note[latest]
        is_due |= (kind == Kind.POSITION) & self._takes_position[latest]
        due[is_due, token[is_due]] = True
        is_forced = np.isin(kind, _GIVEN_ALONE)
        due[is_forced] = ids == token[is_forced, None]
        mask[rows] = due

    def advance(self, next_given: Ints, ids: Ints) -> None:
        """Take each row's next id, (B,), which may be the next given one, in place."""
        rows = np.flatnonzero(next_given < len(self.ids))
        next_given[rows] += ids[rows] == self.ids[next_given[rows]]

    def note_deadline(self, note: Ints, now: Ints) -> Ints:
        """Return the step (B,) by which new notes that begin now have to end.

        There their region ends, or a given note of the same program and pitch begins.
        """
        last = self._run_ends.shape[1] - 1
        ends = self._run_ends[self._program_of[note], np.minimum(now, last)]
        for row in np.flatnonzero(now < self.end):
            again = self.notes.onset[(self.notes.note == note[row]) & (self.notes.onset > now[row])]
            ends[row] = min(ends[row], again.min(initial=NEVER))
        return np.asarray(ends)


def _run_ends(is_open: NDArray[np.bool_]) -> Ints:
    """Return (P, S + 1), the step at which the open run ends that each step belongs to."""
    programs, size = is_open.shape
    padded = np.hstack([is_open, np.ones((programs, 1), dtype=bool)])
    closed = np.where(padded, NEVER, np.arange(size + 1))
    return np.asarray(np.minimum.accumulate(closed[:, ::-1], axis=1)[:, ::-1])


class GivenPieces:
    """Pieces of which some notes are given, as they are scored: what is given is certain.

    Args:
        pieces: ids (T,) each, from Start to End.
        given: what each of them is given, all of which is in it.
        features: what computes the side input.
    """

    def __init__(
        self,
        pieces: Sequence[NDArray[np.integer[Any]]],
        given: Sequence[GivenTokens],
        features: SideFeatures,
    ) -> None:
        self._given, self._features = given, features
        self._vocabulary = features.vocabulary
        self._of_given = [features.of_given(each.notes) for each in given]
        self._keys = [each.key for each in given]
        self._windows = [
            read_windows(np.asarray(piece)[None], self._vocabulary) for piece in pieces
        ]
        self._pieces = pieces

    def narrow(self, allowed: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Return what may stand in the place of each id after Start, (T - 1, V) for each piece.

        Args:
            allowed: what the grammar admits there.
        """
        narrowed = []
        for ids, given, windows, mask in zip(
            self._pieces, self._given, self._windows, allowed, strict=True
        ):
            next_given = np.zeros(len(ids), dtype=np.int64)
            for place, token in enumerate(ids.tolist()):
                next_given[place] = next_given[place - 1]
                given.advance(next_given[place : place + 1], np.array([token]))
            kind, now = windows.kind[0, :-1], windows.now[0, :-1]
            narrowed.append(mask.copy())
            given.narrow(narrowed[-1], kind, now, now - windows.position[0, :-1], next_given[:-1])
        return narrowed

    def side(self, ids: NDArray[np.integer[Any]], rows: Sequence[tuple[int, int]]) -> SideArrays:
        """Return the side input of windows (B, T), with what is given.

        Args:
            ids: the latest ids of pieces, Pad at their right end.
            rows: of each the piece, and the place in it after the last id.
        """
        side = self._features.compute(ids)
        self._features.set_key(side, ids != PAD, [self._keys[piece] for piece, _ in rows])
        note = latest_notes(ids, self._vocabulary)
        for row, (piece, end) in enumerate(rows):
            part, is_token = side.window(row), ids[row : row + 1] != PAD
            begin = self._windows[piece].now[0, end - 1] - part.time[0, is_token.sum() - 1]
            self._of_given[piece].set(part, part.time + begin, note[row : row + 1], is_token)
        return side


def check_given(given: GivenTokens, constraints: Constraints) -> None:
    """Refuse constraints that the given notes break.

    Raises:
        ConstraintError: more of them sound at once than may.
    """
    limit, most = constraints.max_polyphony, int(given.sounding.max(initial=0))
    if given.is_told and limit and most > limit:
        raise ConstraintError(
            f"of the given notes {most} sound at once: a polyphony of {limit} is too few"
        )
