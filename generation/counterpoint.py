"""Rules of parts: a note at a time, no rests, no parallels, smooth seams, triads at cadences.

Where a piece is in parts, each of which plays a note at a time, two that move together, a fifth or
an octave apart before and after, sound like one (Fux 1725, Gradus ad Parnassum). Where a part meets
given notes of its own, it comes near them. Pieces end on triads in root position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.keys import pitched_notes
from data.score import DRUMS, Score
from data.tokens.bag import NO_PITCH
from data.tokens.cursor import Ints
from data.tokens.grammar import Mask
from data.tokens.vocabulary import NEVER, Kind
from generation.given import GivenTokens
from generation.length import Asked
from generation.place import Place, any_of, forbid
from generation.rows import END, END_BEFORE, ONSET, PITCH, PITCH_BEFORE, Parts

LEAP = 7  # semitones; a part goes farther at a seam by octaves only
FIFTH = 7


def parts_of(
    given: GivenTokens, is_playable: NDArray[np.bool_], ranges: Mapping[int, tuple[int, int]]
) -> Parts:
    """Return what rules must know of the programs of a vocabulary.

    Args:
        given: what is given.
        is_playable: (N,) the notes that the model may play.
        ranges: the lowest and highest pitch of each program, which its given notes widen; a program
            that is not in it has none.
    """
    vocabulary, notes = given.vocabulary, given.notes
    programs = np.array(vocabulary.programs)
    size = int(notes.onset.max(initial=-1)) + 2
    begins = np.full((size, len(programs)), NO_PITCH)
    order = np.argsort(-notes.note, kind="stable")
    number, given_pitch = np.divmod(notes.note[order], vocabulary.pitch_count)
    begins[notes.onset[order], number] = given_pitch
    begins[:, programs == DRUMS] = NO_PITCH
    steps = np.arange(size)[:, None]
    after = np.minimum.accumulate(np.where(begins != NO_PITCH, steps, NEVER)[::-1])[::-1]
    pitch = np.arange(vocabulary.pitch_count)
    is_within = np.ones((len(programs), len(pitch)), dtype=bool)
    for program, (low, high) in ranges.items():
        which = np.flatnonzero(programs == program)
        own = given_pitch[np.isin(number, which)]
        lowest, highest = np.array([low, high]) - vocabulary.lowest_pitch
        is_within[which] = (pitch >= min([lowest, *own])) & (pitch <= max([highest, *own]))
    return Parts(
        plays=np.asarray(is_playable.reshape(is_within.shape).any(axis=1)),
        is_pitched=programs != DRUMS,
        is_within=is_within.ravel(),
        may_play=is_within.ravel() & is_playable,
        given=begins,
        before=np.maximum.accumulate(np.where(begins != NO_PITCH, steps, -1)),
        after=np.vstack([after[1:], np.full((1, len(programs)), NEVER)]),
    )


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
    is_kept = np.isin(apart, (0, FIFTH)) & (np.abs(after[:, None] - after) % OCTAVE == apart)
    return bool(np.triu(is_kept & (way[:, None] == way) & (way != 0), 1).any())


@compiled_inside
def play_one_note(first: Ints, parts: Parts, latest: Ints, here: Place, mask: Mask) -> None:
    """Mask notes of instruments of which another sounds, and positions where none is free.

    Drums are no part.
    """
    programs, soonest = len(parts.plays), NEVER  # when one is free
    pitch_count = len(parts.may_play) // programs
    for program in range(programs):
        end = latest[END, program] if parts.is_pitched[program] else -1
        if parts.plays[program]:
            soonest = min(soonest, end)
        is_busy = end > here.now or latest[ONSET, program] == here.now
        if parts.is_pitched[program] and is_busy:
            begin = first[Kind.NOTE] + program * pitch_count
            forbid(mask, begin, begin + pitch_count)
    stop = first[Kind.POSITION] + soonest - here.bar_start
    forbid(mask, first[Kind.POSITION], min(stop, first[Kind.NOTE]))


@compiled_inside
def never_rest(
    first: Ints,
    parts: Parts,
    is_open: NDArray[np.bool_],
    latest: Ints,
    here: Place,
    mask: Mask,
) -> None:
    """Mask what would leave an instrument silent where it may begin a note.

    Where its note ends another has to begin, and before those of instruments that come later.
    """
    programs, last = len(parts.plays), len(is_open) - 1
    pitch_count = len(parts.may_play) // programs
    kind, soonest = here.kind, NEVER  # when one has to begin another note
    is_in_chord = kind == Kind.POSITION or kind == Kind.DURATION or kind == Kind.VELOCITY
    resting = programs  # the first that would rest from now on
    for program in range(programs - 1, -1, -1):
        end, begin = latest[END, program], first[Kind.NOTE] + program * pitch_count
        may_follow = parts.plays[program] and is_open[min(max(end, 0), last), program]
        if may_follow and end >= here.now + is_in_chord:
            soonest = min(soonest, end)
        is_silent = end <= here.now and latest[ONSET, program] < here.now
        may_begin = is_open[min(here.now, last), program]
        if is_silent and may_begin and any_of(mask, begin, begin + pitch_count):
            resting = program
    if resting < programs:
        forbid(mask, 0, first[Kind.NOTE])
        forbid(mask, first[Kind.NOTE] + (resting + 1) * pitch_count, len(mask))
    begin = first[Kind.POSITION] + max(soonest - here.bar_start + 1, 0)
    forbid(mask, begin, first[Kind.NOTE])
    if soonest < here.bar_start + here.bar_length:
        forbid(mask, first[Kind.END], first[Kind.LENGTH])


@compiled_inside
def sign(number: int) -> int:
    """Return -1, 0 or 1."""
    return int(number > 0) - int(number < 0)


@compiled_inside
def is_leap(interval: int) -> bool:
    """Return whether an interval, in semitones, is too wide for a seam."""
    return abs(interval) > LEAP and abs(interval) != OCTAVE


@compiled_inside
def is_parallel(old: int, new: int, old_other: int, new_other: int) -> bool:
    """Return whether two parts move the same way, in unisons, octaves or fifths."""
    apart = abs(old - old_other) % OCTAVE
    is_kept = abs(new - new_other) % OCTAVE == apart
    way = sign(new - old)
    return (
        (apart == 0 or apart == FIFTH)
        and is_kept
        and way != 0
        and way == sign(new_other - old_other)
    )


@compiled_inside
def moves_in_parallel(
    parts: Parts, latest: Ints, due: Ints, program: int, pitch: int, now: int
) -> bool:
    """Return whether a note that begins now would move in parallel with another program.

    Args:
        parts, latest: the programs, and what they played last.
        due: (P,) which pitches those that have not begun a note now will begin; or NO_PITCH.
        program, pitch, now: of the note.
    """
    is_new = latest[ONSET, program] == now
    old = latest[PITCH_BEFORE, program] if is_new else latest[PITCH, program]
    end = latest[END_BEFORE, program] if is_new else latest[END, program]
    if end < now or not parts.is_pitched[program]:
        return False
    for other in range(len(parts.plays)):
        is_new = latest[ONSET, other] == now
        old_other = latest[PITCH_BEFORE, other] if is_new else latest[PITCH, other]
        end = latest[END_BEFORE, other] if is_new else latest[END, other]
        new = latest[PITCH, other] if is_new else due[other]
        is_voice = other != program and parts.is_pitched[other] and end >= now
        if is_voice and new != NO_PITCH and is_parallel(old, pitch, old_other, new):
            return True
    return False


@compiled_inside
def move_apart(first: Ints, parts: Parts, latest: Ints, due: Ints, now: int, mask: Mask) -> None:
    """Mask notes with which an instrument would move in parallel with another."""
    pitch_count = len(parts.may_play) // len(parts.plays)
    for note in range(len(parts.may_play)):
        program, pitch = note // pitch_count, note % pitch_count
        if mask[first[Kind.NOTE] + note]:
            is_bad = moves_in_parallel(parts, latest, due, program, pitch, now)
            mask[first[Kind.NOTE] + note] = not is_bad


@compiled_inside
def meet_given(first: Ints, parts: Parts, beat: int, latest: Ints, here: Place, mask: Mask) -> None:
    """Let what is written meet the given notes around it.

    Beside a given note of the same program stands no note more than LEAP semitones away, but an
    octave; and programs that go on to given notes at the same time do not get there in parallel.
    A note that may be the last before a given one is judged as it begins, within a beat, or as
    its duration is chosen.
    """
    step, programs = min(here.now, len(parts.given) - 1), len(parts.plays)
    pitch_count = len(parts.may_play) // programs
    if here.kind == Kind.NOTE:
        program, pitch = here.note // pitch_count, here.note % pitch_count
        left = parts.after[step, program] - here.now
        begin = first[Kind.DURATION] + left - 1  # of those with which the given note is next
        is_near = beat < left and begin < first[Kind.VELOCITY]
        if is_near and is_unfit(parts, latest, step, program, pitch):
            forbid(mask, begin, first[Kind.VELOCITY])
            mask[first[Kind.EXTEND]] = False
    for program in range(programs if here.kind != Kind.NOTE else 0):
        onset, pitch_before = latest[ONSET, program], latest[PITCH, program]
        is_given = onset >= 0 and onset == parts.before[step, program]
        is_next = is_given and latest[END, program] >= here.now and onset < here.now
        is_last = parts.after[step, program] - here.now <= beat
        for pitch in range(pitch_count if is_next or is_last else 0):
            note = first[Kind.NOTE] + program * pitch_count + pitch
            is_bad = is_next and is_leap(pitch - pitch_before)
            if mask[note] and not is_bad and is_last:
                is_bad = is_unfit(parts, latest, step, program, pitch)
            if is_bad:
                mask[note] = False


@compiled_inside
def is_unfit(parts: Parts, latest: Ints, step: int, program: int, pitch: int) -> bool:
    """Return whether a note at a step leads badly to the next given one of its program."""
    after = parts.after[step, program]
    goals = parts.given[min(after, len(parts.given) - 1)]
    if goals[program] == NO_PITCH:
        return False
    is_bad = is_leap(goals[program] - pitch)
    for other in range(len(goals)):
        is_beside = other != program and parts.after[step, other] == after
        if is_beside and latest[END, other] >= after:
            held = latest[PITCH, other]
            is_bad |= is_parallel(held, goals[other], pitch, goals[program])
    return is_bad


@compiled_inside
def end_bar(first: Ints, here: Place, final: int, mask: Mask) -> None:
    """Mask what would come after the final chord, where the last bar of a row may end.

    Args:
        first: the first id of each kind.
        here: where the row stands.
        final: steps from the bar line to where the chord begins.
        mask: (V,), of which onsets after it are taken away, and ends of notes between it and the
            end of the bar.
    """
    if any_of(mask, first[Kind.END], first[Kind.LENGTH]):
        forbid(mask, first[Kind.POSITION] + final + 1, first[Kind.NOTE])
    for token in range(first[Kind.DURATION], first[Kind.VELOCITY] - 1):  # the last may be extended
        end = here.position + 1 + token - first[Kind.DURATION]
        if final < end < here.bar_length:
            mask[token] = False


class Chord(NamedTuple):
    """What sounds of a final chord."""

    heard: int  # a bit a pitch class
    begun: int  # a bit a program
    lowest: int  # NEVER: nothing sounds
    bass: int  # the program that was lowest before


@compiled_inside
def chord_of(lowest_pitch: int, parts: Parts, latest: Ints, ends: Ints, now: int) -> Chord:
    """Return what sounds now, of notes that end at (N,); drums are no part."""
    programs = len(parts.plays)
    pitch_count = len(ends) // programs
    heard, begun, lowest, lowest_before, bass = 0, 0, NEVER, NEVER, 0
    for program in range(programs):
        is_new = latest[ONSET, program] == now
        before = latest[PITCH_BEFORE, program] if is_new else latest[PITCH, program]
        if 0 <= before < lowest_before:
            lowest_before, bass = before, program
        for pitch in range(pitch_count if parts.is_pitched[program] else 0):
            if ends[program * pitch_count + pitch] > now:
                heard |= 1 << (pitch + lowest_pitch) % OCTAVE
                begun |= 1 << program
                lowest = min(lowest, pitch)
    return Chord(heard, begun, lowest, bass)


@compiled_inside
def can_be(chord: Chord, lowest_pitch: int, tonic: int, root: int, third: int) -> bool:
    """Return whether a chord can become a triad; its root is the tonic, but where that is -1."""
    triad = 1 << root | 1 << (root + third) % OCTAVE | 1 << (root + FIFTH) % OCTAVE
    is_asked = chord.heard & ~triad == 0 and (tonic < 0 or root == tonic)
    has_bass = chord.begun >> chord.bass & 1
    return is_asked and (not has_bass or (chord.lowest + lowest_pitch) % OCTAVE == root)


@compiled_inside
def bass_roots(
    asked: Asked, parts: Parts, chord: Chord, latest: Ints, due: Ints, tonic: int, now: int
) -> Mask:
    """Return which roots of triads, (K,) pitches, the bass may yet begin without parallels."""
    low, pitch_count, bass = asked.lowest_pitch, asked.pitch_count, chord.bass
    has_bass = chord.begun >> bass & 1 == 1
    roots = np.zeros(pitch_count, np.bool_)
    for pitch in range(0 if has_bass else min(chord.lowest + 1, pitch_count)):
        root = (pitch + low) % OCTAVE
        is_root = False
        for third in (3, 4):
            is_root |= can_be(chord, low, tonic, root, third)
        if is_root and parts.may_play[bass * pitch_count + pitch]:
            roots[pitch] = not moves_in_parallel(parts, latest, due, bass, pitch, now)
    return roots


@compiled_inside
def keep_triad(
    asked: Asked,
    parts: Parts,
    open_now: NDArray[np.bool_],
    chord: Chord,
    latest: Ints,
    due: Ints,
    tonic: int,
    now: int,
    notes: Mask,
) -> None:
    """Mask notes, (N,), with which a chord would become no triad in root position; drums fit.

    A single voice ends on the root. Upper voices leave the bass a root to which no two move in
    parallel, if there is one.

    Args:
        asked, parts: what is asked.
        open_now: (P,) of which programs notes may begin now.
        chord: what sounds.
        latest, due: as in `moves_in_parallel`.
        tonic: the root of the triad; -1: any.
        now: when the chord begins.
        notes: which may come next.
    """
    low, pitch_count, programs = asked.lowest_pitch, asked.pitch_count, len(parts.plays)
    bass, has_bass = chord.bass, chord.begun >> chord.bass & 1 == 1
    roots = bass_roots(asked, parts, chord, latest, due, tonic, now)
    has_roots = any_of(roots, 0, pitch_count)
    due = due.copy()
    voices = 0
    for program in range(programs):
        voices += parts.plays[program] and parts.is_pitched[program]
    is_last = True  # no other program but the bass will begin a note after it
    for program in range(programs - 1, -1, -1):
        is_bass = program == bass and not has_bass
        for pitch in range(pitch_count if parts.is_pitched[program] else 0):
            note, fits = program * pitch_count + pitch, False
            is_low = pitch <= chord.lowest if is_bass else has_bass and pitch < chord.lowest
            for triad in range(2 * OCTAVE if notes[note] and is_low == is_bass else 0):
                root, third = triad // 2, 4 - triad % 2
                above = (pitch + low - root) % OCTAVE
                has_third = chord.heard >> (root + third) % OCTAVE & 1 == 1
                may_lack_third = has_third or above == third or not is_last or voices == 1
                is_in = above == 0 or (not is_bass and above in (third, FIFTH))
                is_in = is_in and may_lack_third
                if not is_in or not can_be(chord, low, tonic, root, third):
                    continue
                fits = fits or is_bass or not has_roots
                for under in range(0 if fits else pitch + 1):
                    if roots[under] and (under + low) % OCTAVE == root:
                        due[bass] = under
                        if not moves_in_parallel(parts, latest, due, program, pitch, now):
                            fits = True
            notes[note] = fits if parts.is_pitched[program] else notes[note]
        may_begin = open_now[program] and parts.plays[program] and parts.is_pitched[program]
        if may_begin and program != bass and not chord.begun >> program & 1:
            is_last = False


@compiled_inside
def end_on_triad(
    asked: Asked,
    parts: Parts,
    open_now: NDArray[np.bool_],
    latest: Ints,
    due: Ints,
    ends: Ints,
    tonic: int,
    now: int,
    notes: Mask,
) -> None:
    """Narrow notes, (N,), as `keep_triad` does: on any root, where the key's cannot be."""
    chord, fits = chord_of(asked.lowest_pitch, parts, latest, ends, now), notes.copy()
    is_done = False
    for _ in range(2):
        if not is_done:
            fits[:] = notes
            keep_triad(asked, parts, open_now, chord, latest, due, tonic, now, fits)
            is_done = tonic < 0 or any_of(fits, 0, len(fits))
            tonic = -1
    notes[:] = fits
