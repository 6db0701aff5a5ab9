"""Given notes as tokens: forced through the grammar where they are due, in a region that is closed.

What is given is a Score whose notes are kept, and a table of where new ones may begin. Between the
ids of the given notes the model writes its own, where its region is open.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from common.arrays import Bools, Floats, Ints, Records
from common.compiled import compiled, compiled_inside
from data.keys import Key, melody_key, pitched_notes
from data.tokens.cursor import Cursor
from data.tokens.given import GivenNotes
from data.tokens.grammar import Mask
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary, Words
from data.tokens.windows import read_windows
from generation.masks import forbid
from generation.seeds import Seed


class GivenTables(NamedTuple):
    """What is given, as loops read it: G ids, notes of N numbers, a region of S steps."""

    ids: Ints  # (G + 1,) without End; -1 after the last
    onset: Ints  # of each note
    note: Ints  # its number
    last_ends: Ints  # (N,) when the last given note of each number ends; 0: there is none
    sounding: Ints  # (S,) how many sound in each step; after these none does
    is_open: Bools  # (S + 1, P) whether others may begin; the last for all later ones


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
        last_bar_start: the step at which that begins; 0 without bars.
        whole_bar: steps of a whole bar of its meter; 0 without bars.
        meter: the number of its meter; -1 without bars.
        are_cut: whether they are shortened, as those of a meter that is not known.
        has_note_in_last_bar: whether a given note begins in it.
        final_position: steps from its bar line to the last given note, 0 for one that sounds on
            over that line; -1: none sounds in it.
        key: of the given notes; None of very few pitch classes, or of all.
        last_ends: (N,) when the last given note of each number ends; 0: there is none.
        ids: (T,) its tokens without End.
        prompt: the ids before the first place at which there is a choice.
        is_told: whether the model has to know the notes in advance: some come after that place.

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
        self.is_told = len(self.prompt) < len(self.ids)
        self.last_bar_start, self.whole_bar, self.meter = 0, 0, -1
        self.are_cut = False
        if self.bars:
            *first, length = score.bars[0].tolist()
            self.are_cut = length < vocabulary.grid.bar_steps(*first) and not score.has_upbeat
            self.last_bar_start = int(score.bar_starts[-2])
            numerator, denominator, _ = score.bars[-1].tolist()
            self.whole_bar = int(vocabulary.grid.bar_steps(numerator, denominator))
            self.meter = vocabulary.meters.index((numerator, denominator))
        self.has_note_in_last_bar = bool(np.any(self.notes.onset >= self.last_bar_start))
        self.key: Key | None = melody_key(pitched_notes(score))
        self._note_ends = self.notes.onset + score.notes["duration"]
        self.final_position = -1
        if np.any(self._note_ends > self.last_bar_start):
            self.final_position = max(int(self.notes.onset.max()) - self.last_bar_start, 0)
        self._program_of = np.arange(vocabulary.counts[Kind.NOTE]) // vocabulary.pitch_count
        self.last_ends = np.zeros(vocabulary.counts[Kind.NOTE], dtype=np.int64)
        np.maximum.at(self.last_ends, self.notes.note, self._note_ends)

    def _choice_at(self) -> int:
        """Return the place of the first id before which the model may write."""
        (now,), _ = read_windows(self.ids[None], self.vocabulary)
        kinds = self.vocabulary.kind_of[self.ids]
        is_head = np.isin(kinds, (Kind.BAR, Kind.LENGTH, Kind.TEMPO))
        is_later = now >= self.seed.first_open_step + is_head
        is_later[0] = False  # Start
        return int(is_later.argmax()) if is_later.any() else len(self.ids)

    @property
    def reach(self) -> int:
        """The first step from which nothing of it matters to new notes."""
        return int(max(self.end, self.seed.end_step, len(self.sounding)))

    @cached_property
    def tables(self) -> GivenTables:
        """It all, as loops read it."""
        return GivenTables(
            ids=np.append(self.ids, -1),
            onset=self.notes.onset,
            note=self.notes.note,
            last_ends=self.last_ends,
            sounding=self.sounding,
            is_open=self.notes.is_open_at,
        )

    def leaves_free(self, is_playable: Bools) -> Bools:
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
    def sounding(self) -> Ints:
        """(S,) how many given notes sound in each step; after these steps none does."""
        steps = np.arange(int(self.last_ends.max(initial=0)))
        begun = np.searchsorted(np.sort(self.notes.onset), steps, side="right")
        ended = np.searchsorted(np.sort(self._note_ends), steps, side="right")
        return np.asarray(begun - ended)


@compiled_inside
def sounding_at(given: GivenTables, new_ends: Ints, step: int) -> int:
    """Count the notes that sound at a step, not before the latest, if no other begins."""
    number = given.sounding[step] if step < len(given.sounding) else 0
    for end in new_ends:
        number += end > step
    return number


@compiled_inside
def keep_given(words: Words, end: int, is_open: Bools, due: int, here: Cursor, mask: Mask) -> None:
    """Mask new notes outside the region, and what would pass over the next given id.

    Where that id is due, it is allowed whatever the mask was. Positions outside the region are
    masked before (`keep_to_region`).

    Args:
        words: of the vocabulary.
        end: the step at which the given bars end.
        is_open: (S + 1, P) the region.
        due: the next given id; -1: there is none.
        here: where the row stands.
        mask: (V,), what may come next.
    """
    first, latest, last = words.firsts, here.kind, len(is_open) - 1
    programs = is_open.shape[1]
    pitch_count = (first[Kind.EXTEND] - first[Kind.NOTE]) // programs
    if here.bar_start < last:
        for program in range(programs):
            if not is_open[min(here.now, last), program]:
                begin = first[Kind.NOTE] + program * pitch_count
                forbid(mask, begin, begin + pitch_count)
    if here.bar_start < end:  # given bars are as they are
        forbid(mask, first[Kind.LENGTH], first[Kind.POSITION])
    if due < 0:
        return
    kind, may_be_due = words.kind_of[due], mask[due]
    forbid(mask, first[Kind.END], first[Kind.LENGTH])
    whole = Kind.VELOCITY if first[Kind.VELOCITY] < len(mask) else Kind.DURATION
    is_in_note = Kind.NOTE <= latest < whole  # it goes on
    if kind == Kind.BAR:
        mask[due] = may_be_due
    elif kind == Kind.POSITION:
        forbid(mask, due + 1, first[Kind.NOTE])
        mask[due] = may_be_due or not (is_in_note or latest == Kind.POSITION)
    elif kind == Kind.NOTE:
        forbid(mask, due + 1, first[Kind.EXTEND])
        forbid(mask, first[Kind.POSITION], first[Kind.NOTE])
        mask[due] = may_be_due or not is_in_note
    else:  # how bars and notes go on is as it is given
        forbid(mask, 0, len(mask))
        mask[due] = True


@compiled
def come_to_given(words: Words, given: GivenTables, at: Records, logits: Floats) -> None:
    """Give the next given Position or Note, in each row's logits (B, V), the weight of what passes.

    To pass over it is forbidden (`keep_given`). Were that weight shared among all that is allowed,
    more notes would begin before a given one than the model expects: chords would pile up.
    """
    first, last, programs = words.firsts, len(given.is_open) - 1, given.is_open.shape[1]
    pitch_count = (first[Kind.EXTEND] - first[Kind.NOTE]) // programs
    for row in range(len(logits)):
        due, own = given.ids[at[row].next_given], logits[row]
        if due < first[Kind.POSITION] or due >= first[Kind.EXTEND]:
            continue
        is_open = given.is_open[min(at[row].now, last)]
        most, weight = own.max(), 0.0
        is_note = due >= first[Kind.NOTE]
        for token in range(first[Kind.END], first[Kind.EXTEND]):
            if token < first[Kind.POSITION]:
                passes = token < first[Kind.LENGTH]  # Length and Tempo take no time
            elif token < first[Kind.NOTE]:
                passes = is_note or token > due
            else:
                is_closed = not is_open[(token - first[Kind.NOTE]) // pitch_count]
                passes = is_note and (is_closed or token > due)
            if passes or token == due:
                weight += np.exp(own[token] - most)
        own[due] = most + np.log(weight)
