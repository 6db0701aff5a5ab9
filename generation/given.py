"""Given notes as tokens: forced through the grammar where they are due, in a region that is closed.

What is given is a Score whose notes are kept, and a table of where new ones may begin. Between the
ids of the given notes the model writes its own, where its region is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.interface import PAD
from data.keys import Key, key_number, melody_key, pitched_notes
from data.tokens.cursor import Ints
from data.tokens.features import SideArrays, SideFeatures
from data.tokens.given import GivenNotes
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import NEVER, Kind, Vocabulary
from data.tokens.windows import read_windows
from generation.seeds import Seed

# What the given notes alone decide: lengths and tempi of bars, and how their notes go on.
_GIVEN_ALONE = (Kind.LENGTH, Kind.TEMPO, Kind.EXTEND, Kind.DURATION, Kind.VELOCITY)


class GivenTokens:
    """The tokens of given notes, and the region in which the model may write others.

    Args:
        seed: the given notes, in bars that are kept with their tempi, empty ones at the end too;
            and the region. New notes end where it does.
        vocabulary: of the model.

    Attributes:
        seed: what is given.
        notes: its notes and the region.
        bars: how many bars it has.
        end: the step at which the last of them ends.
        ids: (T,) its tokens without End.
        prompt: the ids before the first place at which there is a choice.

    Raises:
        VocabularyError: the vocabulary has no token for something in the score.
    """

    def __init__(self, seed: Seed, vocabulary: Vocabulary) -> None:
        self.seed, self.vocabulary = seed, vocabulary
        score, is_open = seed.score, seed.is_open
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
        read = read_windows(self.ids[None], self.vocabulary)
        is_head = np.isin(read.kind[0], (Kind.BAR, Kind.LENGTH, Kind.TEMPO))
        is_later = read.now[0] >= self.seed.first_open_step + is_head
        is_later[0] = False  # Start
        return int(is_later.argmax()) if is_later.any() else len(self.ids)

    @property
    def last_bar_start(self) -> int:
        """The step at which the last of its bars begins; 0 without bars."""
        return int(self.seed.score.bar_starts[-2]) if self.bars else 0

    @property
    def whole_bar(self) -> int:
        """Steps of a whole bar of its last meter; 0 without bars."""
        if not self.bars:
            return 0
        meter = self.seed.score.bars[["numerator", "denominator"]][-1].tolist()
        return int(self.seed.score.grid.bar_steps(*meter))

    @cached_property
    def reach(self) -> int:
        """The first step from which nothing of it matters to new notes."""
        return int(max(self.end, self.seed.end_step, len(self.sounding)))

    @cached_property
    def is_told(self) -> bool:
        """Whether the model has to know the notes in advance: some come after its first choice."""
        return len(self.prompt) < len(self.ids)

    @cached_property
    def key(self) -> Key | None:
        """The key of the given notes; None of very few pitch classes, or of all."""
        return melody_key(pitched_notes(self.seed.score))

    @cached_property
    def last_ends(self) -> Ints:
        """(N,) when the last given note of each number ends; 0: there is none."""
        ends = np.zeros(self.vocabulary.counts[Kind.NOTE], dtype=np.int64)
        np.maximum.at(ends, self.notes.note, self._note_ends)
        return ends

    def leaves_free(self, is_playable: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether a playable note of each program is free at each step given, (S, P).

        Args:
            is_playable: (N,) the notes that may be played.
        """
        counted = np.flatnonzero(is_playable[self.notes.note])
        program = self._program_of[self.notes.note[counted]]
        playable = is_playable.reshape(-1, self.vocabulary.pitch_count).sum(axis=1)  # (P,)
        sounding = np.zeros((self.end + 1, len(playable)), dtype=np.int64)
        np.add.at(sounding, (np.minimum(self.notes.onset[counted], self.end), program), 1)
        np.add.at(sounding, (np.minimum(self._note_ends[counted], self.end), program), -1)
        return np.asarray(sounding.cumsum(axis=0)[:-1] < playable)

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

    def next_ids(self, next_given: Ints) -> tuple[Ints, Ints]:
        """Return which rows have a given id to come, and that id; (B,) `next_given` its place."""
        rows = np.flatnonzero(~self.is_done(next_given))
        return rows, self.ids[next_given[rows]]

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
        is_soon = bar_start < self.seed.end_step
        if is_soon.any():
            step = bar_start[:, None] + np.arange(vocabulary.longest_bar)
            positions = mask[:, first_position : first_position + vocabulary.longest_bar]
            positions &= self.notes.may_begin(step).any(axis=-1)
            notes = mask[:, vocabulary.ids(Kind.NOTE)]
            notes &= self.notes.may_begin(now)[:, self._program_of]
        for head in (Kind.LENGTH, Kind.TEMPO):  # given bars are as they are
            mask[:, vocabulary.ids(head)] &= (bar_start >= self.end)[:, None]
        rows, token = self.next_ids(next_given)
        if not len(rows):
            return
        latest = latest[rows]
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
        rows, token = self.next_ids(next_given)
        next_given[rows] += ids[rows] == token

    def places_after(self, ids: NDArray[np.integer[Any]]) -> Ints:
        """Return the place of the next given id after each of the ids (T,) of a piece."""
        its, places = [*self.ids.tolist(), None], [0]
        for token in ids.tolist():
            places.append(places[-1] + (token == its[places[-1]]))
        return np.array(places[1:])

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
        self._notes = features.gathered([each.notes for each in given])
        self._keys = np.array([key_number(each.key) for each in given])
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
            next_given = given.places_after(ids[:-1])
            kind, now = windows.kind[0, :-1], windows.now[0, :-1]
            narrowed.append(mask.copy())
            given.narrow(narrowed[-1], kind, now, now - windows.position[0, :-1], next_given)
        return narrowed

    def side(self, ids: NDArray[np.integer[Any]], rows: Sequence[tuple[int, int]]) -> SideArrays:
        """Return the side input of windows (B, T), with what is given.

        Args:
            ids: the latest ids of pieces, Pad at their right end.
            rows: of each the piece, and the place in it after the last id.
        """
        piece = np.array([row[0] for row in rows])
        lengths = np.count_nonzero(ids != PAD, axis=1)
        read = read_windows(ids, self._vocabulary)
        last = read.now[np.arange(len(ids)), lengths - 1]
        now = np.array([self._windows[piece].now[0, end - 1] for piece, end in rows])
        context = self._features.nothing(len(ids))._replace(
            key=self._keys[piece], piece=piece, begin=now - last, given=self._notes
        )
        return self._features.compute(ids, context)
