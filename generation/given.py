"""Given notes as tokens, which are forced where they are due, and the region open to the model.

What is given is a Score whose notes are kept, and a table that says where new notes may begin: the
region. Between the ids of the given notes, the model writes its own where the region is open.
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
    """What is given, as tables for compiled loops: G ids, N note numbers, a region of S steps."""

    ids: Ints  # (G + 1,) the given ids without End; -1 after the last
    onset: Ints  # the onset of each given note
    note: Ints  # the number of each given note: its program and pitch
    last_ends: Ints  # (N,) when the last given note of each number ends; 0: there is none
    sounding: Ints  # how many given notes sound in each step; none after the last of these steps
    is_open: Bools  # (S + 1, P) whether new notes may begin; the last row is for all later steps


class GivenTokens:
    """The tokens of given notes, and the region in which the model may write others.

    Args:
        seed: the given notes, and the region. Its bars are kept with their tempi, including empty
            bars at the end. New notes end where the region does.
        vocabulary: the vocabulary of the model.

    Attributes:
        seed: what is given.
        notes: the given notes and the region.
        bars: the number of given bars.
        end: the step at which the last given bar ends.
        last_bar_start: the step at which the last given bar begins; 0 without bars.
        whole_bar: steps of a whole bar in the meter of the last given bar; 0 without bars.
        meter: the number of that meter; -1 without bars.
        are_cut: whether the given bars are shorter than their meter, because the vocabulary lacks
            their true one.
        has_note_in_last_bar: whether a given note begins in the last given bar.
        final_position: steps from the last given bar line to the last given note, 0 for one held
            over that line; -1: no given note sounds in that bar.
        key: the key of the given notes; None if they have very few pitch classes, or all.
        last_ends: (N,) when the last given note of each number ends; 0: there is none.
        ids: (T,) the tokens of what is given, without End.
        prompt: the ids before the first place at which the model has a choice.
        is_told: whether given notes come after that place, so that the model must be told of them.

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
        self.last_ends = np.zeros(vocabulary.counts[Kind.NOTE], dtype=np.int64)
        np.maximum.at(self.last_ends, self.notes.note, self._note_ends)

    def _choice_at(self) -> int:
        """Return the index of the first id before which the model may write."""
        (now,), _ = read_windows(self.ids[None], self.vocabulary)
        kinds = self.vocabulary.kind_of[self.ids]
        is_head = np.isin(kinds, (Kind.BAR, Kind.LENGTH, Kind.TEMPO))
        is_later = now >= self.seed.first_open_step + is_head
        is_later[0] = False  # Start
        return int(is_later.argmax()) if is_later.any() else len(self.ids)

    @property
    def reach(self) -> int:
        """The first step from which nothing that is given matters to new notes."""
        return int(max(self.end, self.seed.end_step, len(self.sounding)))

    @cached_property
    def tables(self) -> GivenTables:
        """What is given, as tables for compiled loops."""
        return GivenTables(
            ids=np.append(self.ids, -1),
            onset=self.notes.onset,
            note=self.notes.note,
            last_ends=self.last_ends,
            sounding=self.sounding,
            is_open=self.notes.is_open_at,
        )

    def leaves_free(self, is_playable: Bools) -> Bools:
        """Return bool (S, P): at each given step, whether each program has a playable note free.

        Args:
            is_playable: (N,) the notes that may be played.
        """
        counted = np.flatnonzero(is_playable[self.notes.note])
        program = self.notes.note[counted] // self.vocabulary.pitch_count
        playable = is_playable.reshape(-1, self.vocabulary.pitch_count).sum(axis=1)  # (P,)
        sounding = np.zeros((self.end + 1, len(playable)), dtype=np.int64)
        np.add.at(sounding, (np.minimum(self.notes.onset[counted], self.end), program), 1)
        np.add.at(sounding, (np.minimum(self._note_ends[counted], self.end), program), -1)
        return np.asarray(sounding.cumsum(axis=0)[:-1] < playable)

    @cached_property
    def sounding(self) -> Ints:
        """How many given notes sound in each step; none does after the last of these steps."""
        steps = np.arange(int(self.last_ends.max(initial=0)))
        begun = np.searchsorted(np.sort(self.notes.onset), steps, side="right")
        ended = np.searchsorted(np.sort(self._note_ends), steps, side="right")
        return np.asarray(begun - ended)


@compiled_inside
def sounding_at(given: GivenTables, new_ends: Ints, step: int) -> int:
    """Count the notes that will sound at a step from now on, if no other note begins."""
    number = given.sounding[step] if step < len(given.sounding) else 0
    for end in new_ends:
        number += end > step
    return number


@compiled_inside
def keep_given(words: Words, end: int, is_open: Bools, due: int, here: Cursor, mask: Mask) -> None:
    """Mask new notes outside the region, and ids that would pass over the next given id.

    If the next given id is due now, it is allowed whatever the mask was. `keep_to_region` has
    already masked positions outside the region.

    Args:
        words: the vocabulary as tables.
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
    if here.bar_start < end:  # the length and tempo of given bars are given, too
        forbid(mask, first[Kind.LENGTH], first[Kind.POSITION])
    if due < 0:
        return
    kind, may_be_due = words.kind_of[due], mask[due]
    forbid(mask, first[Kind.END], first[Kind.LENGTH])
    whole = Kind.VELOCITY if first[Kind.VELOCITY] < len(mask) else Kind.DURATION
    is_in_note = Kind.NOTE <= latest < whole  # the latest note is not complete
    if kind == Kind.BAR:
        mask[due] = may_be_due
    elif kind == Kind.POSITION:
        forbid(mask, due + 1, first[Kind.NOTE])
        mask[due] = may_be_due or not (is_in_note or latest == Kind.POSITION)
    elif kind == Kind.NOTE:
        forbid(mask, due + 1, first[Kind.EXTEND])
        forbid(mask, first[Kind.POSITION], first[Kind.NOTE])
        mask[due] = may_be_due or not is_in_note
    else:  # the rest of a given bar or note follows at once
        forbid(mask, 0, len(mask))
        mask[due] = True


@compiled
def come_to_given(words: Words, given: GivenTables, at: Records, logits: Floats) -> None:
    """Add to the next given Position or Note the weight of the ids that would pass over it.

    `logits` (B, V) are changed in place. Passing over the given id is forbidden (`keep_given`). If
    the weight of those ids were shared among all that is allowed, more notes would begin before a
    given one than the model expects, and chords would pile up.
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
