"""Chords that hold: what a chord track takes away from the ids that may come next.

Where a chord begins, all new notes that sound are of it, and the lowest of them is its bass. There,
or of programs that play several notes at once up to half a beat later, its root and its third
sound, if there are notes enough. New notes that begin on its later beats are of it. To all this
what is given is added, and no note is held where the next chord could not be had then.
"""

from __future__ import annotations

from typing import NamedTuple

from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.tokens.chords import turned
from data.tokens.cursor import Ints
from data.tokens.grammar import Mask
from data.tokens.vocabulary import NEVER, Kind
from generation.chord_plan import BASS, ROOT, THIRD, Chords
from generation.counterpoint import moves_in_parallel
from generation.length import Row
from generation.masks import forbid, sounding_at
from generation.rows import END, END_BEFORE, ONSET, PITCH, PITCH_BEFORE, Rows, Rules

# Of notes with which programs can yet make a chord: the lowest as its bass, or NEVER; the highest
# as its root and as its third, or -1.
REACH = 3
AS_BASS, AS_ROOT, AS_THIRD = range(REACH)


class Heard(NamedTuple):
    """What sounds of a chord where notes may begin. Pitches count from the vocabulary's lowest."""

    lowest: int  # new note; NEVER: there is none
    classes: int  # a bit for each pitch class, of given notes too
    room: int  # notes that may begin


@compiled_inside
def at_step(chords: Chords, step: int) -> int:
    """Return where in the tables of steps a step stands."""
    size = len(chords.place) - 1
    return min(turned(step, size, chords.cycle), size)


@compiled_inside
def has_class(chords: Chords, classes: int, pitch: int) -> bool:
    """Return whether a pitch is of one of some pitch classes, a bit each."""
    return bool(classes >> (pitch + chords.lowest_pitch) % OCTAVE & 1)


@compiled_inside
def hear_chord(
    rules: Rules,
    rows: Rows,
    row: int,
    place: int,
    begin: int,
    step: int,
    held: int,
    after: int,
    reach: Ints,
) -> Heard:
    """Return what sounds of a chord at a step, and set with which notes it can be made.

    Args:
        rules, rows, row: of all, and the number of the row.
        place: of the chord.
        begin, step: when the chord begins, and when notes shall begin.
        held: the number of a note that shall be held until then, too; -1: none.
        after: the number of the latest note that begins at the step; others come after it.
        reach: (REACH, P), which is set.
    """
    chords, pitch_count, is_strict = rules.chords, rules.asked.pitch_count, rules.asked.is_strict
    lowest, classes = NEVER, chords.given[place]
    for note in range(len(rules.is_playable)):
        is_pitched = rules.parts.is_pitched[note // pitch_count]
        if is_pitched and (rows.new_ends[row, note] > begin or note == held):
            pitch = note % pitch_count
            classes |= 1 << (pitch + chords.lowest_pitch) % OCTAVE
            lowest = min(lowest, pitch)
    sounds = sounding_at(step, rows.note_ends[row], rows.sounding[row]) + (held >= 0)
    is_open = rules.given.is_open[min(step, len(rules.given.is_open) - 1)]
    for program in range(reach.shape[1]):
        reach[AS_BASS, program], reach[AS_ROOT, program], reach[AS_THIRD, program] = NEVER, -1, -1
        is_busy = rows.latest[row, END, program] > step or rows.latest[row, ONSET, program] == step
        is_busy |= held >= 0 and held // pitch_count == program
        for pitch in range(pitch_count if is_open[program] and not (is_strict and is_busy) else 0):
            note = program * pitch_count + pitch
            is_free = chords.is_free[place, note] and rows.free_at[row, note] <= step
            if not is_free or note <= after or note == held:
                continue
            pitch_class = (pitch + chords.lowest_pitch) % OCTAVE
            if pitch_class == chords.bass[place]:
                reach[AS_BASS, program] = min(reach[AS_BASS, program], pitch)
            if pitch_class == chords.root[place]:
                reach[AS_ROOT, program] = pitch
            if pitch_class == chords.third[place]:
                reach[AS_THIRD, program] = pitch
    return Heard(lowest, classes, rules.asked.most_sounding - sounds)


@compiled_inside
def with_note(rules: Rules, heard: Heard, note: int, is_given: bool) -> Heard:
    """Return what sounds with one note more; what is given, and drums, is no part of the chord."""
    if is_given or not rules.parts.is_pitched[note // rules.asked.pitch_count]:
        return Heard(heard.lowest, heard.classes, heard.room - (not is_given))
    pitch = note % rules.asked.pitch_count
    pitch_class = (pitch + rules.chords.lowest_pitch) % OCTAVE
    return Heard(min(heard.lowest, pitch), heard.classes | 1 << pitch_class, heard.room - 1)


@compiled_inside
def what_is_had(rules: Rules, place: int, heard: Heard, wanted: int) -> int:
    """Return what of what is wanted of a chord sounds, a bit each."""
    chords, had = rules.chords, 0
    if heard.lowest < NEVER and has_class(chords, 1 << chords.bass[place], heard.lowest):
        had |= BASS
    had |= ROOT * (heard.classes >> chords.root[place] & 1)
    had |= THIRD * (heard.classes >> chords.third[place] & 1)
    return int(had & wanted)


@compiled_inside
def above_bass(
    rules: Rules, reach: Ints, lacks: int, room: int, floor: int, note: int, under: int
) -> int:
    """Return which of root and third notes above a bass can yet bring.

    Args:
        rules: of all rows.
        reach: as `hear_chord` sets it.
        lacks: bits of what is lacking.
        room: how many notes may begin.
        floor: pitch of the bass; -1: there is none.
        note: the latest note, after which they come; -1: there is none.
        under: the program that shall play the bass, after it; -1: it sounds, or there is none.
    """
    pitch_count, has_root, has_third, has_any = rules.asked.pitch_count, 0, 0, 0
    program = note // pitch_count if note >= 0 else -1
    for other in range(program, reach.shape[1]):
        is_same = other in (program, under)
        if other < 0 or (rules.asked.is_strict and is_same):
            continue
        least = max(floor, note % pitch_count) if other == program else floor
        is_root, is_third = reach[AS_ROOT, other] > least, reach[AS_THIRD, other] > least
        has_root, has_third = has_root + is_root, has_third + is_third
        has_any += is_root or is_third
    brings = THIRD * (has_third > 0 and room > 0) | ROOT * (has_root > 0 and room > 0)
    brings &= lacks
    if brings == ROOT | THIRD and (room < 2 or (rules.asked.is_strict and has_any < 2)):
        brings = THIRD
    return brings


@compiled_inside
def can_be_had(rules: Rules, place: int, heard: Heard, reach: Ints, wanted: int, note: int) -> int:
    """Return the most that can be had of what is wanted of a chord; the bass says most.

    Args:
        rules: of all rows.
        place: of the chord.
        heard, reach: what sounds, with the note, and with which notes others can be added.
        wanted: bits.
        note: the latest note, after which they come; -1: there is none.
    """
    chords, pitch_count = rules.chords, rules.asked.pitch_count
    had = what_is_had(rules, place, heard, wanted)
    lacks = wanted & ~had
    if lacks == 0:
        return had
    if not lacks & BASS:
        floor = heard.lowest if wanted & BASS else -1
        return had | above_bass(rules, reach, lacks, heard.room, floor, note, -1)
    best, most = 0, -1
    program = note // pitch_count if note >= 0 else -1
    if had & ROOT == 0 and chords.bass[place] == chords.root[place]:
        lacks &= ~ROOT
    if had & THIRD == 0 and chords.bass[place] == chords.third[place]:
        lacks &= ~THIRD
    for under in range(max(program, 0), reach.shape[1]):
        floor = reach[AS_BASS, under]
        comes_after = under > program or floor > note % pitch_count
        if comes_after and floor < heard.lowest and heard.room > 0:
            brings = above_bass(rules, reach, lacks, heard.room - 1, floor, note, under)
            brings |= wanted & ~lacks | BASS
            if rank(brings) > most:
                best, most = brings, rank(brings)
    if most < 0:
        lacks = wanted & ~had & ~BASS
        best = had | above_bass(rules, reach, lacks, heard.room, -1, note, -1)
    return best


@compiled_inside
def rank(had: int) -> int:
    """Return how good it is to have this of a chord: the bass, then the third, then the root."""
    return 4 * int(had & BASS > 0) + 2 * int(had & THIRD > 0) + int(had & ROOT > 0)


@compiled_inside
def hold_until(rules: Rules, rows: Rows, row: int, deadline: int, most: int, reach: Ints) -> int:
    """Return the step by which the latest note has to end for the chords to come.

    Args:
        rules, rows, row: of all, and the number of the row.
        deadline: by which it has to end anyhow.
        most: steps that it may last.
        reach: (REACH, P) of scratch.
    """
    chords, here, pitch_count = rules.chords, rows.at[row], rules.asked.pitch_count
    if not rules.parts.is_pitched[here.note // pitch_count]:
        return deadline
    for step in range(here.now + 1, min(deadline, here.now + most)):
        at = at_step(chords, step)
        place = chords.place[at]
        if place < 0 or chords.since[at] > 0 or step >= here.limit:
            continue
        if not has_class(chords, chords.classes[place], here.note % pitch_count):
            return step
        wanted = chords.wanted[place]
        heard = hear_chord(rules, rows, row, place, step, step, -1, -1, reach)
        without = can_be_had(rules, place, heard, reach, wanted, -1)
        heard = hear_chord(rules, rows, row, place, step, step, here.note, -1, reach)
        if rank(can_be_had(rules, place, heard, reach, wanted, -1)) < rank(without):
            return step
    return deadline


@compiled_inside
def wait_for_chord(
    rules: Rules,
    rows: Rows,
    row: int,
    place: int,
    begin: int,
    step: int,
    wanted: int,
    reach: Ints,
) -> bool:
    """Return whether notes have to begin at a step so that a chord is had that began."""
    here = rows.at[row]
    after = here.note if here.position >= 0 and here.now == step else -1
    heard = hear_chord(rules, rows, row, place, begin, step, -1, after, reach)
    had = what_is_had(rules, place, heard, wanted)
    return rank(can_be_had(rules, place, heard, reach, wanted, after)) > rank(had)


@compiled_inside
def keep_to_chords(rules: Rules, rows: Rows, row: int, due: int, mask: Mask, reach: Ints) -> None:
    """Mask notes with which a chord would not hold, and positions and bars that come too late.

    Args:
        rules, rows, row: of all, and the number of the row, which is not within a note.
        due: the next given id, which may wait, but not for good; -1: there is none.
        mask: (V,), what may come next.
        reach: (REACH, P) of scratch.
    """
    chords, here, first = rules.chords, rows.at[row], rules.words.firsts
    at = at_step(chords, here.now)
    place, since = chords.place[at], chords.since[at]
    has_position = here.position >= 0
    if here.kind != Kind.POSITION:
        last = latest_step(rules, rows, row, reach)
        forbid(mask, first[Kind.POSITION] + max(last - here.bar_start + 1, 0), first[Kind.NOTE])
        if last < here.bar_start + here.bar_length:
            forbid(mask, first[Kind.END], first[Kind.LENGTH])
        for token in range(first[Kind.POSITION], first[Kind.NOTE]):
            step = here.bar_start + token - first[Kind.POSITION]
            if mask[token] and token != due and not has_note_at(rules, rows, row, step, reach):
                mask[token] = False
    if not has_position or place < 0:
        return
    is_new = since == 0
    if not is_new and since != chords.patience[place] and not chords.is_beat[at]:
        return
    wanted = 0
    if is_new or since == chords.patience[place]:
        wanted = chords.wanted[place]
        if is_new and chords.patience[place] > 0:
            wanted &= BASS
        elif not is_new:
            wanted &= ~BASS
    heard = hear_chord(rules, rows, row, place, here.now - since, here.now, -1, here.note, reach)
    best = rank(can_be_had(rules, place, heard, reach, wanted, here.note))
    for note in range(len(rules.is_playable)):
        token = first[Kind.NOTE] + note
        if not mask[token]:
            continue
        is_given, pitch = token == due, note % rules.asked.pitch_count
        is_free = is_given or not rules.parts.is_pitched[note // rules.asked.pitch_count]
        is_bound = is_new or chords.is_beat[at]
        if is_bound and not is_free and not has_class(chords, chords.classes[place], pitch):
            mask[token] = False
        elif wanted:
            more = with_note(rules, heard, note, is_given)
            if rank(can_be_had(rules, place, more, reach, wanted, note)) < best:
                mask[token] = False


@compiled_inside
def latest_step(rules: Rules, rows: Rows, row: int, reach: Ints) -> int:
    """Return the latest step in its bar at which a row's next notes may begin; NEVER: any.

    There a chord begins of which something is wanted, or has to be complete.
    """
    chords, here = rules.chords, rows.at[row]
    at = at_step(chords, here.now)
    place, since, begin = chords.place[at], chords.since[at], here.now - chords.since[at]
    has_position = here.position >= 0
    if has_position and place >= 0 and since <= chords.patience[place]:
        patience, wanted = chords.patience[place], chords.wanted[place]
        now = wanted & BASS if patience else wanted
        if since == 0 and wait_for_chord(rules, rows, row, place, begin, begin, now, reach):
            return int(here.now)
        last = begin + patience
        if patience and wait_for_chord(rules, rows, row, place, begin, last, wanted & ~BASS, reach):
            return int(last)
    for step in range(here.now + has_position, here.bar_start + here.bar_length):
        at = at_step(chords, step)
        place = chords.place[at]
        if place >= 0 and chords.since[at] == 0 and step < here.limit:
            wanted = chords.wanted[place]
            if wanted and wait_for_chord(rules, rows, row, place, step, step, wanted, reach):
                return step
    return NEVER


@compiled_inside
def has_note_at(rules: Rules, rows: Rows, row: int, step: int, reach: Ints) -> bool:
    """Return whether some note may begin at a step, if it has to be of a chord, and leave it so."""
    chords, pitch_count = rules.chords, rules.asked.pitch_count
    at = at_step(chords, step)
    place, is_new = chords.place[at], chords.since[at] == 0
    if place < 0 or not (is_new or chords.is_beat[at]):
        return True
    wanted = chords.wanted[place] if is_new else 0
    heard = hear_chord(rules, rows, row, place, step, step, -1, -1, reach)
    best = rank(can_be_had(rules, place, heard, reach, wanted, -1))
    is_open = rules.given.is_open[min(step, len(rules.given.is_open) - 1)]
    for note in range(len(rules.is_playable)):
        program, pitch = note // pitch_count, note % pitch_count
        if not is_open[program] or rows.free_at[row, note] > step:
            continue
        is_pitched = rules.parts.is_pitched[program]
        fits = not is_pitched or has_class(chords, chords.classes[place], pitch)
        more = with_note(rules, heard, note, False)
        if fits and rank(can_be_had(rules, place, more, reach, wanted, note)) >= best:
            return True
    return False


@compiled_inside
def leave_bass_apart(rules: Rules, here: Row, latest: Ints, mask: Mask) -> None:
    """Mask notes after which the bass of a new chord could only be reached in parallel.

    It falls to the last program that has not begun, which can leap by an octave, but has no choice.

    Args:
        rules: of all rows.
        here, latest: where a row stands; `latest` is as it was in the end.
        mask: (V,), what may come next.
    """
    chords, parts, pitch_count = rules.chords, rules.parts, rules.asked.pitch_count
    now, at = here.now, at_step(chords, here.now)
    place, low = chords.place[at], -1
    if place < 0 or chords.since[at] > 0 or not chords.wanted[place] & BASS:
        return
    is_open = rules.given.is_open[min(now, len(rules.given.is_open) - 1)]
    for program in range(len(parts.plays)):
        may_begin = parts.plays[program] and parts.is_pitched[program] and is_open[program]
        if may_begin and latest[ONSET, program] < now and latest[END, program] <= now:
            low = program
    first = rules.words.firsts[Kind.NOTE]
    for note in range(low * pitch_count if low >= 0 else 0):
        program, pitch = divmod(note, pitch_count)
        if not mask[first + note] or latest[ONSET, program] == now:
            continue
        onset, old = latest[ONSET, program], latest[PITCH, program]
        old_before, end_before = latest[PITCH_BEFORE, program], latest[END_BEFORE, program]
        latest[ONSET, program], latest[PITCH, program] = now, pitch
        latest[PITCH_BEFORE, program], latest[END_BEFORE, program] = old, latest[END, program]
        can_follow = False
        for under in range(pitch + 1):
            bass = low * pitch_count + under
            is_bass = (under + chords.lowest_pitch) % OCTAVE == chords.bass[place]
            if is_bass and chords.is_free[place, bass] and parts.is_within[bass]:
                is_apart = not moves_in_parallel(parts.is_pitched, latest, low, under, now)
                can_follow |= is_apart
        latest[ONSET, program], latest[PITCH, program] = onset, old
        latest[PITCH_BEFORE, program], latest[END_BEFORE, program] = old_before, end_before
        mask[first + note] = can_follow
