"""The rules: what each takes away from the ids that may come next in a row, and in what order.

They take ids away early enough that a way to the end that is asked for is always left: there are no
dead ends. A piece has a deadline, the last step that it can still reach. As long as its last bar
has no note, every note ends by the deadline, and some note that the model may play can still begin
before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from common.compiled import compiled, compiled_inside
from data.tokens import cursor
from data.tokens.cursor import Ints
from data.tokens.grammar import Mask, admit
from data.tokens.vocabulary import NEVER, Kind
from generation.counterpoint import (
    end_bar,
    end_on_triad,
    meet_given,
    move_apart,
    never_rest,
    play_one_note,
)
from generation.given import GivenTables, given_deadline, keep_given
from generation.length import (
    Asked,
    Count,
    count,
    count_of,
    expected_end,
    is_last_bar,
    latest_end,
)
from generation.place import Place, any_of, forbid, place_of
from generation.rows import END, END_BEFORE, ONSET, PITCH, PITCH_BEFORE, Rows, Rules

LONGEST_NOTE = 32  # in longest Durations: sampling that only takes the likeliest may Extend forever
EMPTY_BARS = 16  # and, where no end is asked for, begin empty bars forever


@compiled
def allow_rows(rules: Rules, rows: Rows, masks: NDArray[np.bool_]) -> None:
    """Set in masks (B, V) which ids may come next, by all the rules in their order.

    First comes the grammar, which nothing can add to, but for given notes that others would close
    off. Then what must hold: lengths, polyphony, the deadline. Then the given notes, of which bars
    are as they are whatever is asked for. Last come rules of style, of which each yields where it
    would leave nothing: the later one, the more it has to say.
    """
    before = np.empty(masks.shape[1], np.bool_)
    for row in range(len(masks)):
        mask, here, so_far = masks[row], place_of(rows.at, row), count_of(rows.counted, row)
        admit(rules.words.firsts, rules.followers[here.kind], rows.at, row, rows.free_at[row], mask)
        is_over = here.bar_count > rules.asked.last_bar or here.bar_start >= so_far.limit
        if is_over and here.kind == Kind.BAR:  # which stands for End
            forbid(mask, 0, len(mask))
            mask[Kind.PAD] = True
        elif here.kind != Kind.PAD and here.kind != Kind.END:
            keep_what_must_hold(rules, rows, row, here, so_far, mask, before)
            keep_style(rules, rows, row, here, so_far, mask, before)
            leave_end_alone(rules.asked, rules.words.firsts, here, so_far, mask)


@compiled_inside
def keep_what_must_hold(
    rules: Rules, rows: Rows, row: int, here: Place, so_far: Count, mask: Mask, before: Mask
) -> None:
    """Narrow a row's mask by lengths, polyphony, the deadline and the given notes."""
    asked, words, given, first = rules.asked, rules.words, rules.given, rules.words.firsts
    kind, free_at, ends = here.kind, rows.free_at[row], rows.note_ends[row]
    sounding, size = rows.sounding[row], len(mask)
    due = given.ids[rows.next_given[row]]
    is_in_note = kind == Kind.NOTE or kind == Kind.EXTEND
    is_between = not is_in_note and kind != Kind.POSITION  # notes or bars
    copy(mask, before, 0, size)
    if is_in_note:
        room = note_deadline(asked, here, so_far, free_at, ends, sounding, given)
        end_in_time(first, here.extends, words.longest_duration, room - here.now, mask)
    else:
        keep_time(asked, first, here, so_far.limit, mask)
        if asked.most_sounding < NEVER:
            keep_voices_free(asked.most_sounding, first, here, ends, sounding, mask)
    if is_between:
        if asked.last_bar < NEVER:
            earliest = earliest_end(asked, here, free_at, ends, given.last_ends)
            keep_room(asked, first, words.whole_bars, here, so_far, earliest, mask)
        keep_length(asked, first, here, so_far, due, mask)
        if asked.has_region and here.bar_start < asked.reach:
            keep_to_region(first, here.bar_start, given.is_open, free_at, mask)
    if due >= 0:
        copy(before, mask, first[Kind.END], first[Kind.POSITION])
    if due >= 0 or here.bar_start < asked.reach:
        keep_given(words, asked.given_end, given.is_open, due, here, mask)


@compiled_inside
def keep_style(
    rules: Rules, rows: Rows, row: int, here: Place, so_far: Count, mask: Mask, before: Mask
) -> None:
    """Narrow a row's mask by the rules that yield where they would leave nothing."""
    asked, given, parts, first = rules.asked, rules.given, rules.parts, rules.words.firsts
    kind, now, size, latest = here.kind, here.now, len(mask), rows.latest[row]
    due, is_between = given.ids[rows.next_given[row]], not (Kind.POSITION <= kind <= Kind.EXTEND)
    is_in_note = kind == Kind.NOTE or kind == Kind.EXTEND
    takes_note = not is_in_note and kind >= Kind.POSITION
    if asked.is_regular and is_between:
        copy(mask, before, 0, size)
        keep_bars_regular(asked, first, rules.words.whole_bars, here, so_far, mask)
        keep_or_yield(mask, before, due)
    if asked.is_strict and not is_in_note:
        copy(mask, before, 0, size)
        play_one_note(first, parts, latest, here, mask)
        keep_or_yield(mask, before, due)
    if asked.has_no_rests and not is_in_note:
        copy(mask, before, 0, size)
        never_rest(first, parts, given.is_open, latest, here, mask)
        keep_or_yield(mask, before, given.ids[-1])  # none: the one that is due may wait
    if not asked.is_strict:
        return
    due_now = parts.given[min(now, len(parts.given) - 1)]
    if takes_note:
        copy(mask, before, 0, size)
        move_apart(first, parts, latest, due_now, now, mask)
        if due >= 0:
            mask[due] = before[due]
        if not any_of(mask, first[Kind.NOTE], first[Kind.EXTEND]):
            copy(before, mask, 0, size)
    final = rows.counted.final_onset[row] - here.bar_start
    if final >= 0 and is_last_bar(asked, here, so_far):
        copy(mask, before, 0, size)
        end_bar(first, here, final, mask)
        if here.position == final and takes_note:
            notes = mask[first[Kind.NOTE] : first[Kind.EXTEND]]
            open_now = given.is_open[min(now, len(given.is_open) - 1)]
            end_on_triad(
                asked,
                parts,
                open_now,
                latest,
                due_now,
                rows.note_ends[row],
                rows.tonic[row],
                now,
                notes,
            )
        keep_or_yield(mask, before, due)
    if (asked.given_bars and not is_between) or (takes_note and asked.given_bars):
        copy(mask, before, 0, size)
        meet_given(first, parts, asked.beat, latest, here, mask)
        keep_or_yield(mask, before, due)
    if takes_note:
        copy(mask, before, 0, size)
        for note in range(len(parts.is_within)):
            if not parts.is_within[note]:
                mask[first[Kind.NOTE] + note] = False
        keep_or_yield(mask, before, due)


@compiled
def leave_ends_alone(rules: Rules, rows: Rows, masks: NDArray[np.bool_]) -> None:
    """Narrow masks (B, V) by the last rule once more, where others have narrowed them since."""
    for row in range(len(masks)):
        here, so_far = place_of(rows.at, row), count_of(rows.counted, row)
        leave_end_alone(rules.asked, rules.words.firsts, here, so_far, masks[row])


@compiled
def advance_rows(rules: Rules, rows: Rows, ids: Ints) -> None:
    """Take the next id of each row, (B,)."""
    at, given, pitch_count = rows.at, rules.given, rules.asked.pitch_count
    for row in range(len(ids)):
        is_given = given.ids[rows.next_given[row]] == ids[row]
        rows.next_given[row] += is_given
        cursor.advance(rules.words, at, row, ids[row])
        here = place_of(at, row)
        count(rules.asked, rules.limits, rows.counted, here, row)
        if here.kind != Kind.DURATION:
            continue
        now, note, end = here.now, here.note, here.note_end
        rows.note_ends[row, note] = end
        rows.free_at[row, note] = end if rules.is_playable[note] else NEVER
        latest, program = rows.latest[row], note // pitch_count
        if latest[ONSET, program] != now:  # of a chord the lowest counts
            latest[PITCH_BEFORE, program] = latest[PITCH, program]
            latest[END_BEFORE, program] = latest[END, program]
            latest[PITCH, program] = note % pitch_count
            latest[ONSET, program] = now
            latest[END, program] = end
        if not is_given:  # what is given sounds already
            for step in range(now, min(end, rows.sounding.shape[1])):
                rows.sounding[row, step] += 1


@compiled_inside
def copy(of: Mask, to: Mask, begin: int, stop: int) -> None:
    """Copy what may come next, of ids from one to before another."""
    for token in range(begin, stop):
        to[token] = of[token]


@compiled_inside
def keep_or_yield(mask: Mask, before: Mask, due: int) -> None:
    """Let a rule yield where it leaves nothing, and the given id that is due stay as it was."""
    if due >= 0:
        mask[due] = before[due]
    if not any_of(mask, 0, len(mask)):
        copy(before, mask, 0, len(mask))


@compiled_inside
def keep_time(asked: Asked, first: Ints, here: Place, limit: int, mask: Mask) -> None:
    """Mask other tempi, time signatures and positions than those that are asked for."""
    is_head = here.kind == Kind.BAR or here.kind == Kind.LENGTH
    if is_head and asked.tempo >= 0:
        forbid(mask, first[Kind.TEMPO], first[Kind.TEMPO] + asked.tempo)
        forbid(mask, first[Kind.TEMPO] + asked.tempo + 1, first[Kind.POSITION])
        if here.tempo != asked.tempo:
            forbid(mask, first[Kind.POSITION], first[Kind.NOTE])
            forbid(mask, first[Kind.BAR], first[Kind.LENGTH])
    elif is_head and asked.is_timed and here.tempo >= 0:
        forbid(mask, first[Kind.TEMPO], first[Kind.POSITION])
    if asked.meter >= 0:
        forbid(mask, first[Kind.LENGTH], first[Kind.TEMPO])
        forbid(mask, first[Kind.BAR], first[Kind.BAR] + asked.meter)
        forbid(mask, first[Kind.BAR] + asked.meter + 1, first[Kind.LENGTH])
    over = max(limit - here.bar_start, 0)
    forbid(mask, first[Kind.POSITION] + over, first[Kind.NOTE])


@compiled_inside
def sounding_at(step: int, ends: Ints, sounding: Ints) -> int:
    """Count the notes that sound at a step, not before the latest."""
    if step < len(sounding):
        return int(sounding[step])
    number = 0
    for end in ends:
        number += end > step
    return number


@compiled_inside
def keep_voices_free(
    most: int, first: Ints, here: Place, ends: Ints, sounding: Ints, mask: Mask
) -> None:
    """Mask notes, and positions, where as many notes sound as may."""
    for token in range(first[Kind.POSITION], first[Kind.EXTEND]):
        is_position = token < first[Kind.NOTE]
        step = here.bar_start + token - first[Kind.POSITION] if is_position else here.now
        if mask[token] and sounding_at(step, ends, sounding) >= most:
            mask[token] = False


@compiled_inside
def earliest_end(asked: Asked, here: Place, free_at: Ints, ends: Ints, given_ends: Ints) -> int:
    """Return the first step at which the piece could end with one more note, all given ones over.

    It is after the latest step, and after all notes.
    """
    free, last_end = NEVER, 0
    for note in range(len(ends)):
        free = min(free, max(free_at[note], given_ends[note]))
        last_end = max(last_end, max(ends[note], given_ends[note]))
    free = max(free, here.now)
    is_full = asked.most_sounding < NEVER
    while is_full:
        number, soonest = 0, NEVER
        for note in range(len(ends)):
            end = max(ends[note], given_ends[note])
            if end > free:
                number += 1
                soonest = min(soonest, end)
        is_full = number >= asked.most_sounding
        free = soonest if is_full else free
    return max(last_end, free + 1)


@compiled_inside
def note_deadline(
    asked: Asked,
    here: Place,
    so_far: Count,
    free_at: Ints,
    ends: Ints,
    sounding: Ints,
    given: GivenTables,
) -> int:
    """Return the step by which the latest note, which begins now, has to end.

    It is the piece's end in bars of this meter, or in the longest bars where that is too soon. At
    the last chance for a note of the last bar another must be free to begin. Given notes need their
    place in the polyphony from where they begin.
    """
    deadline, most = expected_end(asked, here, so_far), asked.most_sounding
    earliest = earliest_end(asked, here, free_at, ends, given.last_ends)
    if asked.last_bar < NEVER and deadline < earliest:
        deadline = latest_end(asked, here, so_far)
    if asked.needs_last_note and not is_last_bar(asked, here, so_far):
        chance = max(min(deadline - 1, asked.last_chance), 0)
        is_open = given.is_open[min(chance, len(given.is_open) - 1)]
        is_free = False
        for note in range(len(ends)):
            if max(free_at[note], given.last_ends[note]) <= chance and note != here.note:
                is_free |= is_open[note // asked.pitch_count]
        if not is_free or sounding_at(chance, ends, sounding) >= most - 1:
            deadline = chance
    for step in range(here.now + 1, len(sounding)):
        if sounding[step] >= most:
            deadline = min(deadline, step)
    program = here.note // asked.pitch_count
    return min(deadline, given_deadline(given, program, here.note, here.now))


@compiled_inside
def end_in_time(first: Ints, extends: int, longest: int, room: int, mask: Mask) -> None:
    """Mask durations, and Extends, with which a note would be longer than it may: its room."""
    left = room - extends * longest
    forbid(mask, first[Kind.DURATION] + max(left, 0), first[Kind.VELOCITY])
    if left <= longest or extends >= LONGEST_NOTE:
        mask[first[Kind.EXTEND]] = False


@compiled_inside
def keep_length(
    asked: Asked, first: Ints, here: Place, so_far: Count, due: int, mask: Mask
) -> None:
    """Mask what would make the piece shorter or longer than it shall be.

    These are ends before the last bar or note, and there, while it has no note, End and another
    bar; and many empty bars where no end is in sight.
    """
    end = first[Kind.END]
    is_last, has_note = is_last_bar(asked, here, so_far), here.note_bar == here.bar_count
    if asked.last_bar < NEVER or asked.is_timed:
        if not (is_last and has_note):
            mask[end] = False
        if is_last and not has_note:
            forbid(mask, first[Kind.BAR], first[Kind.LENGTH])
        return
    if asked.notes:
        # the grammar offers End only after a whole note
        is_done = mask[end] and so_far.new_notes >= asked.notes and due < 0
        if is_done:
            forbid(mask, 0, len(mask))
        mask[end] = is_done
    elif asked.is_endless:
        mask[end] = False
    has_position = any_of(mask, first[Kind.POSITION], first[Kind.NOTE])
    if has_position and here.bar_count - here.note_bar > EMPTY_BARS:
        forbid(mask, first[Kind.BAR], first[Kind.LENGTH])


@compiled_inside
def keep_room(
    asked: Asked,
    first: Ints,
    whole_bars: Ints,
    here: Place,
    so_far: Count,
    earliest: int,
    mask: Mask,
) -> None:
    """Mask bars so short that the notes could not end in the last one.

    The last bar and an upbeat make a whole bar, but where they are given.
    """
    latest = latest_end(asked, here, so_far)
    for number in range(len(whole_bars)):
        is_short = latest - asked.longest_bar + whole_bars[number] < earliest
        if is_short and here.bar_count < asked.last_bar:
            mask[first[Kind.BAR] + number] = False
    least = earliest - (latest - here.bar_length)  # steps of this bar
    forbid(mask, first[Kind.LENGTH], min(first[Kind.LENGTH] + least - 1, first[Kind.TEMPO]))
    rest = here.bar_length - so_far.upbeat
    is_last = here.kind == Kind.BAR and here.bar_count == asked.last_bar
    if is_last and so_far.upbeat > 0 and rest > 0 and here.bar_count > asked.given_bars:
        token = first[Kind.LENGTH] + rest - 1
        if mask[token]:
            forbid(mask, 0, len(mask))
            mask[token] = True


@compiled_inside
def keep_to_region(
    first: Ints, bar_start: int, is_open: NDArray[np.bool_], free_at: Ints, mask: Mask
) -> None:
    """Mask positions at which no note that may begin is free."""
    pitch_count = len(free_at) // is_open.shape[1]
    for token in range(first[Kind.POSITION], first[Kind.NOTE]):
        step, is_free = bar_start + token - first[Kind.POSITION], False
        open_then = is_open[min(step, len(is_open) - 1)]
        for note in range(len(free_at) if mask[token] else 0):
            is_free |= free_at[note] <= step and open_then[note // pitch_count]
        mask[token] = is_free


@compiled_inside
def keep_bars_regular(
    asked: Asked, first: Ints, whole_bars: Ints, here: Place, so_far: Count, mask: Mask
) -> None:
    """Mask bars of another length than the one before, and shortened ones inside of the piece.

    After a shortened bar that is given there comes the rest of it.
    """
    for number in range(len(whole_bars)):
        is_other = whole_bars[number] != so_far.whole_bar
        if is_other and here.bar_count > 0 and asked.meter < 0:
            mask[first[Kind.BAR] + number] = False
    is_inside = max(asked.given_bars, 1) < here.bar_count < asked.last_bar
    if here.kind == Kind.BAR and is_inside:
        rest = first[Kind.LENGTH] + so_far.owed - 1
        is_due = so_far.owed > 0 and mask[rest]
        forbid(mask, first[Kind.LENGTH], first[Kind.TEMPO])
        if so_far.owed > 0:
            forbid(mask, 0, len(mask))
            mask[rest] = is_due


@compiled_inside
def leave_end_alone(asked: Asked, first: Ints, here: Place, so_far: Count, mask: Mask) -> None:
    """Mask the bars that stand for End where nothing else is left: it is no choice."""
    is_alone = not any_of(mask, first[Kind.POSITION], len(mask))
    if is_alone and mask[first[Kind.END]] and is_last_bar(asked, here, so_far):
        forbid(mask, first[Kind.BAR], len(mask))
