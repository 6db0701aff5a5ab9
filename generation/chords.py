"""The rules of chords: which ids a chord track forbids.

- Where a chord begins, every new note that sounds belongs to it, and the lowest is its bass.
- Its root and third sound there too, if enough notes can. Programs that play several notes at once
  may bring them up to half a beat later.
- New notes that begin on later beats of the chord belong to it.
- Given notes sound in addition to all this.
- A note is not held into the next chord if that would keep the chord from being complete.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.arrays import Ints
from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.tokens.bag import NO_PITCH
from data.tokens.chords import turned
from data.tokens.grammar import Mask
from data.tokens.vocabulary import NEVER, Kind
from generation.chord_plan import BASS, ROOT, THIRD, Chords
from generation.counterpoint import is_parallel, moves_in_parallel, waits_for
from generation.given import sounding_at
from generation.length import Row
from generation.masks import forbid
from generation.rows import (
    AS_BASS,
    AS_ROOT,
    AS_THIRD,
    END,
    END_BEFORE,
    ONSET,
    PITCH,
    PITCH_BEFORE,
    One,
    Rules,
    begin_note,
)

# Arguments for compiled functions: a literal -1, False or True in a call would be compiled again.
NONE: Any = np.int64(-1)
NO: Any = np.bool_(False)
YES: Any = np.bool_(True)


class Heard(NamedTuple):
    """What sounds of a chord at a step. Pitches count from the vocabulary's lowest."""

    lowest: int  # the lowest new note; NEVER: there is none
    classes: int  # a bit for each pitch class that sounds, given notes included
    room: int  # how many more notes may begin
    low: int  # the only program that can still play the bass and has not yet; -1: there is none


class Due(NamedTuple):
    """What a chord requires of the notes that begin at a step."""

    place: int  # the number of the chord; -1: there is none
    is_free: bool  # notes need not belong to it
    wanted: int  # bits of what should sound
    best: int  # the most of these that is still possible
    heard: Heard


@compiled_inside
def at_step(chords: Chords, step: int) -> int:
    """Return the index of a step in the tables of `Chords`, which repeat at the end."""
    size = len(chords.place) - 1
    return min(turned(step, size, chords.cycle), size)


@compiled_inside
def is_of(rules: Rules, place: int, note: int) -> bool:
    """Return whether a note belongs to a chord; drums belong to every chord."""
    parts, (program, pitch) = rules.parts, divmod(note, rules.asked.pitch_count)
    is_in = rules.chords.classes[place] >> (pitch + parts.lowest_pitch) % OCTAVE & 1
    return bool(is_in) or not parts.is_pitched[program]


@compiled_inside
def lowest_program(rules: Rules, step: int) -> int:
    """Return the program that plays the bass: the last that may begin notes at a step; -1: none."""
    low, is_open = -1, rules.given.is_open[min(step, len(rules.given.is_open) - 1)]
    for program in range(len(rules.parts.plays)):
        if rules.parts.plays[program] and rules.parts.is_pitched[program] and is_open[program]:
            low = program
    return low


@compiled_inside
def hear_chord(
    rules: Rules, one: One, place: int, begin: int, step: int, held: int, after: int, is_apart: bool
) -> Heard:
    """Return what sounds of a chord at a step, and set in `one.reach` which notes can complete it.

    Args:
        rules, one: the rules, and the state of one row.
        place: the number of the chord.
        begin, step: when the chord begins, and the step in question.
        held: the number of a note that is assumed to be held until then; -1: none.
        after: the number of the latest note that begins at the step; only higher ones can follow.
        is_apart: count only notes that avoid parallels and lie in the ranges of their programs.
    """
    chords, pitch_count = rules.chords, rules.asked.pitch_count
    lowest, classes = NEVER, chords.given[place]
    for note in range(len(rules.is_playable)):
        is_pitched = rules.parts.is_pitched[note // pitch_count]
        if is_pitched and (one.new_ends[note] > begin or note == held):
            pitch = note % pitch_count
            classes |= 1 << (pitch + rules.parts.lowest_pitch) % OCTAVE
            lowest = min(lowest, pitch)
    sounds = sounding_at(rules.given, one.new_ends, step) + (held >= 0)
    low, reach = find_reach(rules, one, place, step, held, after, is_apart), one.reach
    is_new = rules.asked.is_strict and step == begin and chords.wanted[place] & BASS > 0
    if not is_new or low < 0 or not (is_apart or reach[AS_BASS, low] < lowest):
        return Heard(lowest, classes, rules.asked.most_sounding - sounds, -1)
    reach[AS_ROOT, low] = reach[AS_THIRD, low] = -1  # this program plays the bass and nothing else
    for program in range(low):
        reach[AS_BASS, program] = NEVER
    return Heard(lowest, classes, rules.asked.most_sounding - sounds, low)


@compiled_inside
def find_reach(
    rules: Rules, one: One, place: int, step: int, held: int, after: int, is_apart: bool
) -> int:
    """Set in `one.reach` which notes can complete a chord.

    Args:
        rules, one, place, step, held, after, is_apart: as in `hear_chord`.

    Returns:
        The program that plays the bass, if it is free to begin a note, else -1.
    """
    chords, parts, pitch_count = rules.chords, rules.parts, rules.asked.pitch_count
    latest, reach, low = one.latest, one.reach, lowest_program(rules, step)
    is_open = rules.given.is_open[min(step, len(rules.given.is_open) - 1)]
    for program in range(reach.shape[1]):
        reach[AS_BASS, program], reach[AS_ROOT, program], reach[AS_THIRD, program] = NEVER, -1, -1
        is_busy = latest[END, program] > step or (held >= 0 and held // pitch_count == program)
        if is_busy and program == low:
            low = -1
        is_shut = not is_open[program] or (parts.is_monophonic[program] and is_busy)
        for pitch in range(0 if is_shut else pitch_count):
            note = program * pitch_count + pitch
            is_free = chords.is_free[place, note] and one.free_at[note] <= step
            is_free &= note > after and note != held
            if is_free and is_apart:
                is_free = parts.is_within[note]
                is_free &= not moves_in_parallel(rules, one, program, pitch, step)
            pitch_class = (pitch + parts.lowest_pitch) % OCTAVE
            if is_free and pitch_class == chords.bass[place]:
                reach[AS_BASS, program] = min(reach[AS_BASS, program], pitch)
            if is_free and pitch_class == chords.root[place]:
                reach[AS_ROOT, program] = pitch
            if is_free and pitch_class == chords.third[place]:
                reach[AS_THIRD, program] = pitch
    return low


@compiled_inside
def with_note(rules: Rules, heard: Heard, note: int, is_given: bool) -> Heard:
    """Return what sounds after one more note; given notes and drums add nothing to the chord."""
    program, pitch = divmod(note, rules.asked.pitch_count)
    if is_given or not rules.parts.is_pitched[program]:
        return Heard(heard.lowest, heard.classes, heard.room - (not is_given), heard.low)
    classes = heard.classes | 1 << (pitch + rules.parts.lowest_pitch) % OCTAVE
    low = -1 if program == heard.low else heard.low
    return Heard(min(heard.lowest, pitch), classes, heard.room - 1, low)


@compiled_inside
def what_is_had(rules: Rules, place: int, heard: Heard, wanted: int) -> int:
    """Return which of the wanted parts of a chord already sound, a bit each."""
    chords, had = rules.chords, 0
    if heard.low < 0 and heard.lowest < NEVER:
        is_bass = (heard.lowest + rules.parts.lowest_pitch) % OCTAVE == chords.bass[place]
        had |= BASS * is_bass
    had |= ROOT * (heard.classes >> chords.root[place] & 1)
    had |= THIRD * (heard.classes >> chords.third[place] & 1)
    return int(had & wanted)


@compiled_inside
def above_bass(
    rules: Rules, reach: Ints, lacks: int, room: int, floor: int, note: int, under: int
) -> int:
    """Return whether notes above a bass can still bring the root, the third, or both, as bits.

    Args:
        rules, reach: the rules, and the table that `hear_chord` sets.
        lacks: bits of what is still missing.
        room: how many more notes may begin.
        floor: the pitch of the bass; -1: there is none.
        note: the latest note; only higher numbers can follow it. -1: there is none.
        under: the program that will play the bass; -1: the bass sounds already, or there is none.
    """
    pitch_count, has_root, has_third, has_any = rules.asked.pitch_count, 0, 0, 0
    program = note // pitch_count if note >= 0 else -1
    for other in range(program, reach.shape[1]):
        is_same = other in (program, under)
        if other < 0 or (rules.parts.is_monophonic[other] and is_same):
            continue
        least = max(floor, note % pitch_count) if other == program else floor
        is_root, is_third = reach[AS_ROOT, other] > least, reach[AS_THIRD, other] > least
        has_root, has_third = has_root + is_root, has_third + is_third
        both = 1 if rules.parts.is_monophonic[other] else 2  # how many notes it can bring
        has_any += both * (is_root or is_third)
    brings = THIRD * (has_third > 0 and room > 0) | ROOT * (has_root > 0 and room > 0)
    brings &= lacks
    if brings == ROOT | THIRD and (room < 2 or has_any < 2):
        brings = THIRD
    return brings


@compiled_inside
def can_be_had(rules: Rules, one: One, place: int, heard: Heard, wanted: int, note: int) -> int:
    """Return the most that can still sound of the wanted parts of a chord; the bass comes first.

    Args:
        rules, one: the rules, and the state of one row.
        place: the number of the chord.
        heard: what sounds, the latest note included.
        wanted: bits of what should sound.
        note: the latest note; only higher numbers can follow it. -1: there is none.
    """
    chords, pitch_count = rules.chords, rules.asked.pitch_count
    had = what_is_had(rules, place, heard, wanted)
    lacks = wanted & ~had
    if lacks == 0:
        return had
    if not lacks & BASS:
        floor = heard.lowest if wanted & BASS else -1
        return had | above_bass(rules, one.reach, lacks, heard.room, floor, note, NONE)
    best = 0
    program = note // pitch_count if note >= 0 else -1
    if had & ROOT == 0 and chords.bass[place] == chords.root[place]:
        lacks &= ~ROOT
    if had & THIRD == 0 and chords.bass[place] == chords.third[place]:
        lacks &= ~THIRD
    for under in range(max(program, 0), one.reach.shape[1]):
        floor = one.reach[AS_BASS, under]
        comes_after = under > program or floor > note % pitch_count
        if comes_after and floor < heard.lowest and heard.room > 0:
            brings = above_bass(rules, one.reach, lacks, heard.room - 1, floor, note, under)
            best = max(best, brings | wanted & ~lacks | BASS)
    if not best & BASS:
        lacks = wanted & ~had & ~BASS
        best = had | above_bass(rules, one.reach, lacks, heard.room, NONE, note, NONE)
    return best


@compiled_inside
def hold_until(rules: Rules, one: One, deadline: int, most: int) -> int:
    """Return the step by which the latest note has to end, so that later chords stay possible.

    Args:
        rules, one: the rules, and the state of one row.
        deadline: the step by which it has to end in any case.
        most: how many steps it may last at most.
    """
    chords, here, pitch_count = rules.chords, one.here, rules.asked.pitch_count
    if not rules.parts.is_pitched[here.note // pitch_count]:
        return deadline
    for step in range(here.now + 1, min(deadline, here.now + most)):
        at = at_step(chords, step)
        place = chords.place[at]
        if place < 0 or chords.since[at] > 0 or step >= here.limit:
            continue
        if not is_of(rules, place, here.note):
            return step
        wanted = chords.wanted[place]
        heard = hear_chord(rules, one, place, step, step, NONE, NONE, NO)
        without = can_be_had(rules, one, place, heard, wanted, NONE)
        heard = hear_chord(rules, one, place, step, step, here.note, NONE, NO)
        if can_be_had(rules, one, place, heard, wanted, NONE) < without:
            return step
        is_last = place == len(chords.wanted) - 1 or rules.asked.is_timed  # a note must begin here
        if is_last and not has_note_at(rules, one, step, here.note):
            return step
    return deadline


@compiled_inside
def due_at(rules: Rules, one: One, step: int, held: int, after: int) -> Due:
    """Return what a chord requires at a step; the arguments are those of `hear_chord`."""
    chords, at = rules.chords, at_step(rules.chords, step)
    place, since = chords.place[at], chords.since[at]
    is_free = since > 0 and not chords.is_beat[at]
    if place < 0 or (is_free and since != chords.patience[place]):
        return Due(-1, True, 0, 0, Heard(NEVER, 0, 0, -1))
    wanted = chords.wanted[place]
    if since > 0:
        wanted &= ~BASS if since == chords.patience[place] else 0
    elif chords.patience[place] > 0:
        wanted &= BASS
    if not wanted:
        return Due(place, is_free, 0, 0, Heard(NEVER, 0, 0, -1))
    heard = hear_chord(rules, one, place, step - since, step, held, after, NO)
    best = can_be_had(rules, one, place, heard, wanted, after)
    return Due(place, is_free, wanted, best, heard)


@compiled_inside
def fits(rules: Rules, one: One, due: Due, note: int, is_given: bool) -> bool:
    """Return whether a note may begin, as far as the chord is concerned."""
    is_in = due.is_free or is_given or is_of(rules, due.place, note)
    if not is_in or not due.wanted:
        return is_in
    more = with_note(rules, due.heard, note, is_given)
    return can_be_had(rules, one, due.place, more, due.wanted, note) >= due.best


@compiled_inside
def has_note_at(rules: Rules, one: One, step: int, held: int) -> bool:
    """Return whether any note may begin at a step, as far as the chord is concerned.

    Args:
        rules, one: as in `keep_to_chords`.
        step: the step in question.
        held: the number of a note that is held until then; -1: none.
    """
    due = due_at(rules, one, step, held, NONE)
    is_open = rules.given.is_open[min(step, len(rules.given.is_open) - 1)]
    for note in range(0 if due.is_free else len(rules.is_playable)):
        is_free = one.free_at[note] <= step and not waits_for(rules, note, held)
        is_free &= is_open[note // rules.asked.pitch_count]
        if is_free and fits(rules, one, due, note, NO):
            return True
    return due.is_free


@compiled_inside
def keep_to_chords(rules: Rules, one: One, due: int, mask: Mask) -> None:
    """Mask notes that break a chord, and positions and bars that come too late to complete it.

    Args:
        rules, one: the rules, and the state of one row, which is not within a note.
        due: the next given id, which may wait for new notes but is never lost; -1: there is none.
        mask: (V,), what may come next.
    """
    here, first = one.here, rules.words.firsts
    if here.kind != Kind.POSITION:
        last = latest_step(rules, one)
        forbid(mask, first[Kind.POSITION] + max(last - here.bar_start + 1, 0), first[Kind.NOTE])
        if last < here.bar_start + here.bar_length:
            forbid(mask, first[Kind.END], first[Kind.LENGTH])
        for token in range(first[Kind.POSITION], first[Kind.NOTE]):
            step = here.bar_start + token - first[Kind.POSITION]
            if mask[token] and token != due and not has_note_at(rules, one, step, NONE):
                mask[token] = False
    if here.position >= 0:
        now = due_at(rules, one, here.now, NONE, here.note)
        for note in range(len(rules.is_playable)):
            token = first[Kind.NOTE] + note
            mask[token] = mask[token] and fits(rules, one, now, note, token == due)


@compiled_inside
def latest_step(rules: Rules, one: One) -> int:
    """Return the latest step in the current bar at which the next notes may begin; NEVER: any.

    It is the first step at which a chord lacks something that new notes can bring.
    """
    here = one.here
    for step in range(here.now, min(here.bar_start + here.bar_length, here.limit)):
        after = here.note if here.position >= 0 and here.now == step else NONE
        due = due_at(rules, one, step, NONE, after)
        if due.wanted and due.best > what_is_had(rules, due.place, due.heard, due.wanted):
            return step
    return NEVER


@compiled_inside
def leave_chord_apart(rules: Rules, one: One, mask: Mask) -> None:
    """Mask notes after which a new chord could be less complete without parallels.

    The bass of the chord belongs to the lowest program, which begins last.

    Args:
        rules, one: the rules, and the state of one row; in strict counterpoint.
        mask: (V,), what may come next.
    """
    chords, parts, pitch_count = rules.chords, rules.parts, rules.asked.pitch_count
    latest, now = one.latest, one.here.now
    place, low = chords.place[at_step(chords, now)], lowest_program(rules, now)
    if place < 0 or chords.since[at_step(chords, now)] > 0:
        return
    wanted, first, most = chords.wanted[place], rules.words.firsts[Kind.NOTE], 0
    for note in range(len(parts.is_within)):
        if not mask[first + note]:
            continue
        program, pitch = divmod(note, pitch_count)
        onset, old, end = latest[ONSET, program], latest[PITCH, program], latest[END, program]
        old_before, end_before = latest[PITCH_BEFORE, program], latest[END_BEFORE, program]
        begin_note(latest, program, pitch, now, NEVER)
        heard = hear_chord(rules, one, place, now, now, NONE, note, YES)
        heard = with_note(rules, heard, note, False)
        had = can_be_had(rules, one, place, heard, wanted, note)
        if program == low and wanted & BASS and heard.lowest < pitch:
            had = 0
        begin_note(latest, program, old, onset, end)
        latest[PITCH_BEFORE, program], latest[END_BEFORE, program] = old_before, end_before
        if had > most:
            forbid(mask, first, first + note)
        mask[first + note] = had >= most
        most = max(most, had)


@compiled_inside
def prepare_bass(rules: Rules, here: Row, mask: Mask) -> None:
    """Mask notes that can reach the bass of the next chord only in parallel with given notes.

    A note of the lowest program is judged when it begins, if the chord comes within a beat, or else
    when its duration is chosen.

    Args:
        rules: the rules.
        here: where the row stands.
        mask: (V,), what may come next.
    """
    chords, pitch_count, first = rules.chords, rules.asked.pitch_count, rules.words.firsts
    step = here.now + 1
    while chords.place[at_step(chords, step)] < 0 or chords.since[at_step(chords, step)] > 0:
        step += 1
        if step > here.now + rules.words.longest_duration:
            return
    place, low = chords.place[at_step(chords, step)], lowest_program(rules, step)
    if low < 0 or not chords.wanted[place] & BASS:
        return
    if here.kind == Kind.NOTE or here.kind == Kind.EXTEND:
        left = step - here.now - here.extends * rules.words.longest_duration
        pitch = here.note - low * pitch_count
        if 0 <= pitch < pitch_count and left > 0:
            token = first[Kind.DURATION] + left - 1
            mask[token] &= has_way(rules, place, low, pitch, step)
    elif step - here.now <= rules.asked.beat:
        for pitch in range(pitch_count):
            token = first[Kind.NOTE] + low * pitch_count + pitch
            mask[token] = mask[token] and has_way(rules, place, low, pitch, step)


@compiled_inside
def has_way(rules: Rules, place: int, low: int, pitch: int, step: int) -> bool:
    """Return whether a program can reach the bass of a chord without parallels to given notes.

    Args:
        rules: the rules.
        place, step: the number of the chord, and when it begins.
        low, pitch: the program, and the pitch that it plays before the chord.
    """
    chords, parts, pitch_count = rules.chords, rules.parts, rules.asked.pitch_count
    if step >= len(parts.given):
        return True
    for under in range(pitch_count):
        note = low * pitch_count + under
        is_bass = (under + parts.lowest_pitch) % OCTAVE == chords.bass[place]
        if is_bass and chords.is_free[place, note] and parts.is_within[note]:
            is_apart = True
            for other in range(len(parts.plays)):
                new, begun = parts.given[step, other], parts.before[step - 1, other]
                if other != low and new != NO_PITCH and begun >= 0:
                    is_apart &= not is_parallel(pitch, under, parts.given[begun, other], new)
            if is_apart:
                return True
    return False
