"""Strict counterpoint: no parallel fifths, unisons or octaves, smooth seams, triads at cadences.

Where a piece is in parts, each of which plays a note at a time, two that move together, a fifth or
an octave apart before and after, sound like one (Fux 1725, Gradus ad Parnassum). Where a part meets
given notes of its own, it comes near them. Pieces end on triads in root position.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from common.interface import OCTAVE
from data.keys import pitched_notes
from data.score import DRUMS, Score
from data.tokens.bag import NO_PITCH
from data.tokens.cursor import Ints
from data.tokens.vocabulary import NEVER, Kind
from generation.constrained_state import ConstrainedState, bar_ends
from generation.given import GivenTokens
from generation.length import LengthPlan

LEAP = 7  # semitones; a part goes farther at a seam by octaves only
_PERFECT = np.isin(np.arange(OCTAVE), (0, 7))  # unisons, octaves and fifths, by semitones
_ROOTS = np.repeat(np.arange(OCTAVE), 2)  # (T,) of all major and minor triads
_THIRDS = (_ROOTS + np.tile([4, 3], OCTAVE)) % OCTAVE
_CLASS = np.arange(OCTAVE)
_IS_ROOT = _ROOTS[:, None] == _CLASS  # (T, 12)
_IS_THIRD = _THIRDS[:, None] == _CLASS
_IS_IN_TRIAD = _IS_ROOT | _IS_THIRD | ((_ROOTS[:, None] + 7) % OCTAVE == _CLASS)


def _given_pitches(given: GivenTokens) -> Ints:
    """Return (S, P), of each program the lowest given note that begins at a step; in the last none.

    Pitches count from the vocabulary's lowest; NO_PITCH where none begins.
    """
    size = int(given.notes.onset.max(initial=-1)) + 2
    begins = np.full((size, len(given.vocabulary.programs)), NO_PITCH)
    order = np.argsort(-given.notes.note, kind="stable")
    program, pitch = np.divmod(given.notes.note[order], given.vocabulary.pitch_count)
    begins[given.notes.onset[order], program] = pitch
    begins[:, np.array(given.vocabulary.programs) == DRUMS] = NO_PITCH
    return begins


def has_parallels_at(score: Score, step: int) -> bool:
    """Return whether two of a piece's programs move in parallel to notes that begin at a step."""
    notes = pitched_notes(score)
    is_before = (notes["onset"] < step) & (notes["onset"] + notes["duration"] >= step)
    old, new = (  # of each program the lowest
        dict(sorted(notes[which][["program", "pitch"]].tolist(), reverse=True))
        for which in (is_before, notes["onset"] == step)
    )
    both = old.keys() & new.keys()
    before, after = (np.array([its[p] for p in both], dtype=np.int64) for its in (old, new))
    apart, way = (np.abs(before[:, None] - before) % OCTAVE), np.sign(after - before)
    is_kept = np.take(_PERFECT, apart) & (np.abs(after[:, None] - after) % OCTAVE == apart)
    return bool(np.triu(is_kept & (way[:, None] == way) & (way != 0), 1).any())


def narrow_or_yield(
    mask: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    rows: Ints,
    given: GivenTokens,
    state: ConstrainedState,
) -> None:
    """Narrow rows (R,) of a mask (B, V) to what a rule has kept (R, V), where something is left.

    Given ids that are due stay as they are.
    """
    due, token = given.next_ids(state.next_given[rows])
    kept[due, token] = mask[rows[due], token]
    is_left = kept.any(axis=1)
    mask[rows[is_left]] = kept[is_left]


class OneNoteAtATime:
    """A rule that lets no instrument begin a note while another of its own sounds.

    It yields where nothing else is left. Drums are no part.

    Args:
        given: what is given.
        plays: (P,) the programs of which the model may play notes.
    """

    def __init__(self, given: GivenTokens, plays: NDArray[np.bool_]) -> None:
        self._given, self._vocabulary = given, given.vocabulary
        self._is_part = np.array(given.vocabulary.programs) != DRUMS
        self._plays = plays
        self._steps = np.arange(given.vocabulary.longest_bar)

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take ids away from a mask (B, V); never all of a row."""
        vocabulary, latest = self._vocabulary, state.latest
        end = np.where(self._is_part, latest.end, -1)  # (B, P)
        now = state.at.now[:, None]
        is_busy = (end > now) | ((latest.onset == now) & self._is_part)
        kept = mask.copy()
        kept[:, vocabulary.ids(Kind.NOTE)] &= ~np.repeat(is_busy, vocabulary.pitch_count, axis=1)
        soonest = np.where(self._plays, end, NEVER).min(axis=1)  # when one is free
        steps = state.at.bar_start[:, None] + self._steps
        kept[:, vocabulary.ids(Kind.POSITION)] &= steps >= soonest[:, None]
        narrow_or_yield(mask, kept, np.arange(len(mask)), self._given, state)


class VoiceRanges:
    """A rule that keeps each instrument in its range, and in that of its given notes.

    It yields where no other note is left.

    Args:
        given: what is given.
        ranges: the lowest and highest pitch of each program; a program that is not in it has none.

    Attributes:
        is_within: (N,) whether each note is in the range of its program.
    """

    def __init__(self, given: GivenTokens, ranges: Mapping[int, tuple[int, int]]) -> None:
        vocabulary = given.vocabulary
        self._given, self._notes = given, vocabulary.ids(Kind.NOTE)
        pitch = np.arange(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
        given_number, given_pitch = np.divmod(given.notes.note, len(pitch))
        is_within = np.ones((len(vocabulary.programs), len(pitch)), dtype=bool)
        for number, program in enumerate(vocabulary.programs):
            if program in ranges:
                own = pitch[given_pitch[given_number == number]]
                low, high = ranges[program]
                is_within[number] = pitch >= min([low, *own])
                is_within[number] &= pitch <= max([high, *own])
        self.is_within = is_within.ravel()  # (N,)

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take notes away from a mask (B, V); never all of a row."""
        kept = mask.copy()
        kept[:, self._notes] &= self.is_within
        narrow_or_yield(mask, kept, np.arange(len(mask)), self._given, state)


class StrictCounterpoint:
    """A rule that masks notes with which an instrument would move in parallel with another.

    It yields where no other note is left, as where a range has none but those of given notes.

    Args:
        given: what is given.
    """

    def __init__(self, given: GivenTokens) -> None:
        self._vocabulary = given.vocabulary
        programs = np.array(given.vocabulary.programs)
        self._is_pitched = programs != DRUMS
        self._given = given
        self._begins = _given_pitches(given)

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take notes away from a mask (B, V), after all other rules; never all of a row."""
        among = self._vocabulary.ids(Kind.NOTE)
        notes: NDArray[np.bool_] = mask[:, among]
        kept = np.asarray(notes & ~self.is_parallel(state, self.due(state)))
        rows, token = self._given.next_ids(state.next_given)
        is_note = self._vocabulary.kind_of[token] == Kind.NOTE
        rows, note = rows[is_note], token[is_note] - among.start
        kept[rows, note] = notes[rows, note]
        is_left = np.asarray(kept.any(axis=1) | ~notes.any(axis=1))
        mask[:, among] = np.where(is_left[:, None], kept, notes)

    def due(self, state: ConstrainedState) -> Ints:
        """Return (B, P), of each program the lowest given note that begins now, or NO_PITCH."""
        return np.asarray(self._begins[np.minimum(state.at.now, len(self._begins) - 1)])

    def is_parallel(self, state: ConstrainedState, due: Ints) -> NDArray[np.bool_]:
        """Return (B, N) whether a note that begins now would move in parallel with another.

        Args:
            state: where rows stand.
            due: (B, P) what programs that have not begun a note now will begin; or NO_PITCH.
        """
        latest, now = state.latest, state.at.now[:, None]
        is_new = latest.onset == now
        old = np.where(is_new, latest.pitch_before, latest.pitch)  # (B, P)
        end = np.where(is_new, latest.end_before, latest.end)
        is_old = (end >= now) & self._is_pitched
        new = np.where(is_new, latest.pitch, due)
        way = np.where(is_old & (new != NO_PITCH), np.sign(new - old), 0)  # where each has gone

        apart = np.abs(old[:, :, None] - old[:, None]) % OCTAVE  # (B, P, P)
        may_be: NDArray[np.bool_] = (
            np.take(_PERFECT, apart) & is_old[:, :, None] & (way != 0)[:, None]
        )
        may_be[:, np.arange(len(way[0])), np.arange(len(way[0]))] = False
        pitch = np.arange(self._vocabulary.pitch_count)
        after = np.abs(pitch - new[..., None]) % OCTAVE  # (B, P, K)
        is_parallel = may_be[..., None] & (after[:, None] == apart[..., None])
        goes = np.sign(pitch - old[..., None])  # (B, P, K)
        is_parallel &= goes[:, :, None] == way[:, None, :, None]
        return np.asarray(is_parallel.any(axis=2)).reshape(len(way), -1)


class Seams:
    """A rule that lets what is written meet the given notes around it.

    Beside a given note of the same program stands no note more than LEAP semitones away, but an
    octave; and programs that go on to given notes at the same time do not get there in parallel.
    A note that may be the last before a given one is judged as it begins, within a beat, or as
    its duration is chosen. The rule yields where nothing else is left.

    Args:
        given: what is given.
    """

    def __init__(self, given: GivenTokens) -> None:
        self._given, self._vocabulary = given, given.vocabulary
        self._beat = given.vocabulary.grid.steps_per_beat
        self._begins = _given_pitches(given)
        steps = np.arange(len(self._begins))[:, None]
        begun = np.where(self._begins != NO_PITCH, steps, -1)
        self._before = np.maximum.accumulate(begun)  # (S, P) onset of the latest given note; -1
        later = np.where(self._begins != NO_PITCH, steps, NEVER)[::-1]
        after = np.minimum.accumulate(later)[::-1]
        self._after = np.vstack([after[1:], np.full((1, after.shape[1]), NEVER)])  # of the next
        self._pitch = np.arange(given.vocabulary.pitch_count)
        self._durations = 1 + np.arange(given.vocabulary.longest_duration)

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take ids away from a mask (B, V), after all other rules; never all of a row."""
        step = np.minimum(state.at.now, len(self._begins) - 1)
        latest, after = state.latest, self._after[step]  # (B, P)
        is_given = (latest.onset >= 0) & (latest.onset == self._before[step])
        rows = np.flatnonzero((is_given | (after < NEVER)).any(axis=1))
        if not len(rows):
            return
        kept = mask[rows]
        now, after = state.at.now[rows, None], after[rows]
        is_next = is_given[rows] & (latest.end[rows] >= now) & (latest.onset[rows] < now)
        come = np.where(is_next, latest.pitch[rows], -1)
        is_bad = _is_leap(self._pitch - come[..., None]) & (come >= 0)[..., None]  # (R, P, K)
        unfit = self._is_unfit(state, rows, after)
        is_bad |= unfit & (after - now <= self._beat)[..., None]
        kept[:, self._vocabulary.ids(Kind.NOTE)] &= ~is_bad.reshape(len(rows), -1)

        begun = np.flatnonzero(state.at.kind[rows] == Kind.NOTE)
        program, pitch = np.divmod(state.at.note[rows[begun]], len(self._pitch))
        left = (after - now)[begun, program, None]
        is_too_long = (self._durations >= left) & (left > self._beat)
        is_too_long &= unfit[begun, program, pitch, None]
        kept[begun, self._vocabulary.ids(Kind.DURATION)] &= ~is_too_long
        kept[begun, self._vocabulary.first(Kind.EXTEND)] &= ~is_too_long[:, -1]
        narrow_or_yield(mask, kept, rows, self._given, state)

    def _is_unfit(self, state: ConstrainedState, rows: Ints, after: Ints) -> NDArray[np.bool_]:
        """Return (R, P, K) whether a note leads badly to the next given one of its program.

        Args:
            state: where rows stand.
            rows: (R,) which of them.
            after: (R, P) when that given note begins; NEVER: there is none.
        """
        programs = np.arange(after.shape[1])
        goal = self._begins[np.minimum(after, len(self._begins) - 1), programs]  # (R, P)
        has_goal = goal != NO_PITCH
        way = goal[..., None] - self._pitch  # (R, P, K)
        unfit = _is_leap(way) & has_goal[..., None]

        held = state.latest.pitch[rows]
        its_way = np.where((state.latest.end[rows] >= after) & has_goal, np.sign(goal - held), 0)
        together = (after[:, :, None] == after[:, None]) & (programs[:, None] != programs)
        apart = np.abs(goal[:, :, None] - goal[:, None]) % OCTAVE  # (R, P, P)
        together &= np.take(_PERFECT, apart) & has_goal[:, :, None] & (its_way != 0)[:, None]
        now_apart = np.abs(self._pitch - held[..., None]) % OCTAVE  # (R, P, K)
        is_parallel = together[..., None] & (now_apart[:, None] == apart[..., None])
        is_parallel &= np.sign(way)[:, :, None] == its_way[:, None, :, None]
        return np.asarray(unfit | is_parallel.any(axis=2))


def _is_leap(interval: Ints) -> NDArray[np.bool_]:
    """Return whether intervals, in semitones, are too wide for a seam."""
    size = np.abs(interval)
    return np.asarray((size > LEAP) & (size != OCTAVE))


class FinalTriad:
    """A rule that lets a piece end on a triad in root position, where its final chord is told.

    In the last bar it masks onsets after that of the final chord, where the bar may end; ends of
    notes between that and the bar's; and of that chord the notes with which it would be no triad.
    Where the key is known, the triad is that of its tonic, if it can be; a single voice ends on the
    root. Upper voices leave the bass a root to which no two move in parallel. The rule yields where
    nothing else is left.

    Args:
        given: what is given.
        plan: where the piece may end.
        plays: (P,) the programs of which the model may play notes.
        playable: (N,) the notes that it may play, each in the range of its program.
        counterpoint: the rule that comes before.
    """

    def __init__(
        self,
        given: GivenTokens,
        plan: LengthPlan,
        plays: NDArray[np.bool_],
        playable: NDArray[np.bool_],
        counterpoint: StrictCounterpoint,
    ) -> None:
        vocabulary = given.vocabulary
        self._given, self._plan, self._vocabulary = given, plan, vocabulary
        self._plays, self._is_pitched = plays, np.array(vocabulary.programs) != DRUMS
        self._playable, self._counterpoint = playable.reshape(len(plays), -1), counterpoint
        self._steps = np.arange(vocabulary.longest_bar)
        self._durations = np.arange(vocabulary.longest_duration)  # less one
        self._class_of = (np.arange(vocabulary.pitch_count) + vocabulary.lowest_pitch) % OCTAVE

    def narrow(self, mask: NDArray[np.bool_], state: ConstrainedState) -> None:
        """Take ids away from a mask (B, V); never all of a row."""
        is_last = self._plan.is_last_bar(state)
        if not is_last.any():
            return
        onset = self._plan.final_onset(state)
        rows = np.flatnonzero(is_last & (onset >= 0))
        kept = mask[rows]
        final = (onset - state.at.bar_start)[rows]
        can_end = kept[:, bar_ends(self._vocabulary)].max(axis=1)[:, None]
        kept[:, self._vocabulary.ids(Kind.POSITION)] &= (self._steps <= final[:, None]) | ~can_end
        position, bar = state.at.position[rows], state.at.bar_length[rows]
        end = position[:, None] + 1 + self._durations  # of a note that begins now
        is_between = (end > final[:, None]) & (end < bar[:, None])
        is_between &= self._durations < self._durations[-1]  # which others may make longer
        kept[:, self._vocabulary.ids(Kind.DURATION)] &= ~is_between
        at = np.flatnonzero(position == final)
        if len(at):
            notes = kept[at, self._vocabulary.ids(Kind.NOTE)]
            on_tonic = notes & self._fits(state, rows[at], self._roots_of_keys(state, rows[at]))
            on_any = notes & self._fits(state, rows[at], np.ones(len(_ROOTS), dtype=bool))
            is_possible = on_tonic.any(axis=1, keepdims=True)
            kept[at, self._vocabulary.ids(Kind.NOTE)] = np.where(is_possible, on_tonic, on_any)
        narrow_or_yield(mask, kept, rows, self._given, state)

    def _roots_of_keys(self, state: ConstrainedState, rows: Ints) -> NDArray[np.bool_]:
        """Return (R, T) which triads end the pieces: on the tonic, or any where no key is known."""
        keys = [state.keys[row] for row in rows.tolist()]
        return np.array([key.tonic == _ROOTS if key else _ROOTS >= 0 for key in keys])

    def _fits(
        self, state: ConstrainedState, rows: Ints, may_end: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return (R, N), with which notes chords can become triads that may end, (R, T)."""
        now, number = state.at.now[rows], np.arange(len(self._plays))
        sounds = state.note_ends[rows] > now[:, None]
        sounds = sounds.reshape(len(rows), len(number), -1) & self._is_pitched[:, None]  # (R, P, K)
        is_heard = (sounds.any(axis=1)[..., None] & (self._class_of[:, None] == _CLASS)).any(axis=1)
        is_known = sounds.any(axis=2)  # (R, P)
        is_new = state.latest.onset[rows] == now[:, None]
        before = np.where(is_new, state.latest.pitch_before[rows], state.latest.pitch[rows])
        is_bass = number == np.where(before >= 0, before, NEVER).argmin(axis=1)[:, None]
        may_begin = self._given.notes.may_begin(now) & self._plays & self._is_pitched & ~is_known
        to_come = np.cumsum((may_begin & ~is_bass)[:, ::-1], axis=1)[:, ::-1]
        to_come = np.pad(to_come, ((0, 0), (0, 1)))[:, 1:]  # (R, P) programs after each

        k = np.arange(self._vocabulary.pitch_count)
        lowest = np.where(sounds.any(axis=1), k, NEVER).min(axis=1)
        has_bass = (is_bass & is_known).any(axis=1)
        root = np.where(has_bass, self._class_of[np.minimum(lowest, k[-1])], -1)[:, None]
        fits = (_IS_IN_TRIAD | ~is_heard[:, None]).all(axis=2) & may_end  # (R, T)
        fits &= (root < 0) | (root == _ROOTS)
        has_third = (_IS_THIRD & is_heard[:, None]).any(axis=2)
        is_alone = (self._plays & self._is_pitched).sum() == 1  # it can end on the root alone
        may_lack_third = has_third[:, None] | (to_come > 0)[..., None] | is_alone  # (R, P, T)
        classes = _IS_IN_TRIAD & (may_lack_third[..., None] | _IS_THIRD)  # (R, P, T, 12)
        is_new_bass = (is_bass & ~is_known)[..., None]
        classes &= (_IS_ROOT | ~is_new_bass[..., None]) & fits[:, None, :, None]
        is_good = classes.any(axis=2)[..., self._class_of]  # (R, P, K)
        bounds = lowest[:, None, None]
        is_good &= np.where(is_new_bass, k <= bounds, (k >= bounds) | ~has_bass[:, None, None])
        roots = (fits[..., None] & _IS_ROOT).any(axis=1)[:, None, self._class_of]  # (R, 1, K)
        roots = roots & is_new_bass & (k <= bounds)
        is_good &= is_new_bass | self._leaves_root(state, rows, roots, classes)
        return np.asarray(is_good | ~self._is_pitched[:, None]).reshape(len(rows), -1)

    def _leaves_root(
        self,
        state: ConstrainedState,
        rows: Ints,
        may_begin: NDArray[np.bool_],
        classes: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Return (R, P, K) whether a note leaves the bass a root of its triad, without parallels.

        Args:
            state: where rows stand.
            rows: (R,) which of them.
            may_begin: (R, P, K) the roots that the bass may begin, if it has not begun a note.
            classes: (R, P, T, 12) the pitch classes that others may begin, by triad.
        """
        counterpoint, due = self._counterpoint, self._counterpoint.due(state)
        is_parallel = counterpoint.is_parallel(state, due)[rows].reshape(may_begin.shape)
        roots: NDArray[np.bool_] = may_begin & self._playable & ~is_parallel
        is_left = np.asarray(roots.any(axis=1))  # (R, K)
        leaves = np.repeat(~is_left.any(axis=1), roots[0].size).reshape(roots.shape)
        for pitch in np.flatnonzero(is_left.any(axis=0)).tolist():
            of_root = classes[:, :, self._class_of[pitch] == _ROOTS]
            its = np.asarray(of_root.any(axis=2))[..., self._class_of]
            its[..., :pitch] = False
            with_it = due.copy()
            with_it[rows] = np.where(roots[..., pitch], pitch, due[rows])
            is_parallel = counterpoint.is_parallel(state, with_it)[rows].reshape(roots.shape)
            leaves |= is_left[:, pitch, None, None] & its & ~is_parallel
        return leaves
