"""The rules: which ids each removes from those that may come next in a row, and in what order.

Rules remove ids early enough that a way to the requested end always remains: there are no dead
ends. A piece has a deadline, the last step that it can still reach. As long as its last bar has no
note, every note ends by the deadline, and some playable note can still begin before it.
"""

from __future__ import annotations

import numpy as np

from common.arrays import Bools, Ints
from common.compiled import compiled, compiled_inside
from common.interface import OCTAVE, PAD
from data.loops import LAGS
from data.tokens.cursor import advance
from data.tokens.grammar import Mask, admit
from data.tokens.vocabulary import NEVER, Kind, Words
from generation.chords import NONE, hold_until, keep_to_chords, leave_chord_apart, prepare_bass
from generation.counterpoint import (
    ANY_TRIAD,
    closing_triads,
    end_bar,
    find_triad,
    hold_final_chord,
    is_triad,
    meet_given,
    move_apart,
    never_rest,
    own_end,
    play_one_note,
    triads_with,
    waits_for,
    what_sounds,
)
from generation.given import keep_given, sounding_at
from generation.length import Asked, Row, count
from generation.masks import forbid, keep_only, keep_or_yield
from generation.rows import DUE, END, ONSET, REACH, One, Parts, Rows, Rules, begin_note

LONGEST_NOTE = 32  # in longest Durations: with greedy sampling, a note could grow forever
RESTED_BEATS = 4  # who was silent for so long does not strike the final chord
EMPTY_BARS = 16  # with greedy sampling and no requested end, empty bars could follow forever
LEAST_FULL = 3  # twelfths of a bar: of what loops; one or two short notes are less


@compiled_inside
def has_final_chord(here: Row) -> bool:
    """Return whether the final chord has begun, in the bar that is now written."""
    return here.is_last > 0 and here.final_onset >= here.bar_start


@compiled_inside
def keep_style(rules: Rules, one: One, scratch: Bools, mask: Mask) -> None:
    """Apply the rules of style; a rule that would leave nothing is skipped.

    Args:
        rules, one: the rules, and the state of one row.
        scratch, mask: (3, V), overwritten, and (V,), what may come next.
    """
    here, latest = one.here, one.latest
    asked, given, parts, first = rules.asked, rules.given, rules.parts, rules.words.firsts
    kind, now, due = here.kind, here.now, given.ids[here.next_given]
    is_in_note = kind == Kind.NOTE or kind == Kind.EXTEND
    is_between = not is_in_note and kind != Kind.POSITION  # between notes or bars
    takes_note = not is_in_note and kind >= Kind.POSITION
    has_chords = len(rules.chords.place) > 0
    before, notes = scratch[2], mask[first[Kind.NOTE] : first[Kind.EXTEND]]
    for token in range(len(mask)):
        before[token] = mask[token]
    if len(one.steps) > 0 and (is_between or (is_in_note and asked.has_no_rests)):
        keep_rhythm(rules, one, mask)
        keep_or_yield(mask, before, due, mask)
    ends = asked.has_end and has_final_chord(here)
    if len(one.loops) > 0 and not ends:  # what comes again would begin during the final chord
        keep_loops(rules, one, mask)
        keep_or_yield(mask, before, due, mask)
    if here.is_regular > 0 and is_between:
        keep_bars_regular(asked, first, rules.words.whole_bars, here, mask)
        keep_or_yield(mask, before, due, mask)
    if not is_in_note and parts.is_monophonic.any():
        play_one_note(rules, one, mask)
        keep_or_yield(mask, before, due, mask)
    if asked.has_no_rests and not is_in_note:
        never_rest(rules, one, mask)
        keep_or_yield(mask, before, given.ids[-1], mask)  # -1: even a due given id may wait
    if asked.has_end:
        for program in range(len(parts.plays)):
            latest[DUE, program] = parts.given[min(now, len(parts.given) - 1), program]
    if asked.is_strict:
        if takes_note:
            move_apart(rules, one, notes)
            keep_or_yield(mask, before, due, notes)
            if has_chords:
                leave_chord_apart(rules, one, mask)
                keep_or_yield(mask, before, due, notes)
        if has_chords and (takes_note or is_in_note):
            prepare_bass(rules, here, mask)
            keep_or_yield(mask, before, due, notes if takes_note else mask)
    if asked.has_end and here.final_onset >= 0:
        keep_ending(rules, one, scratch, due, mask)
    if asked.is_strict:
        if asked.given_bars and (takes_note or is_in_note):
            meet_given(rules, one, mask)
            keep_or_yield(mask, before, due, mask)
        if takes_note:
            for note in range(len(notes)):
                notes[note] &= parts.is_within[note]
            keep_or_yield(mask, before, due, mask)


@compiled_inside
def keep_ending(rules: Rules, one: One, scratch: Bools, due: int, mask: Mask) -> None:
    """Apply the rules of the ending: the final chord fills the last bar, and is a triad if asked.

    Args:
        rules, one, scratch, mask: as in `keep_style`.
        due: the given id that comes next; -1: there is none.
    """
    asked, here, before, first = rules.asked, one.here, scratch[2], rules.words.firsts
    is_in_note = here.kind == Kind.NOTE or here.kind == Kind.EXTEND
    takes_note = not is_in_note and here.kind >= Kind.POSITION
    if has_final_chord(here):
        end_bar(first, here.final_onset - here.bar_start, mask)
        keep_or_yield(mask, before, due, mask)
    if is_in_note and rules.parts.is_pitched[here.note // asked.pitch_count]:
        hold_final_chord(rules.words, here, mask)
        keep_or_yield(mask, before, due, mask)
    if is_in_note and asked.closes and here.key >= 0:
        end_before_cadence(rules, here, mask)
        keep_or_yield(mask, before, due, mask)
    if takes_note and asked.closes and here.final_onset <= here.now + asked.beat:
        close(rules, one, scratch, due, mask)
        keep_or_yield(mask, before, rules.given.ids[-1], mask)  # -1: even a due given id may wait


@compiled_inside
def keep_rhythm(rules: Rules, one: One, mask: Mask) -> None:
    """Mask onsets, and ends of notes, on steps of a beat that the piece's rhythm does not use.

    A note may end on any step while another note of its program sounds.
    """
    here, steps, beat, pitch_count = one.here, one.steps, len(one.steps), rules.asked.pitch_count
    first, longest = rules.words.firsts, rules.words.longest_duration
    for token in range(first[Kind.POSITION], first[Kind.NOTE]):
        mask[token] &= steps[(token - first[Kind.POSITION]) % beat]
    if here.kind != Kind.NOTE and here.kind != Kind.EXTEND:
        return
    last = own_end(rules, one, here.note // pitch_count)
    for token in range(first[Kind.DURATION], first[Kind.VELOCITY]):
        length = here.extends * longest + token - first[Kind.DURATION] + 1
        end = here.now - here.bar_start + length
        at = (end if end < here.bar_length else end - here.bar_length) % beat
        mask[token] &= steps[at] or here.now + length < last


@compiled_inside
def keep_loops(rules: Rules, one: One, mask: Mask) -> None:
    """Mask what differs from the earlier bar that a program repeats, or would skip its notes.

    A program is free whose earlier bar has no notes, or one or two short ones: bands hardly ever
    repeat these.
    """
    here, first, recent, full = one.here, rules.words.firsts, one.recent, one.reach[0]
    bar, size = max(here.bar_count - 1 - int(here.upbeat > 0), 0), len(one.loops)
    is_in_note = here.kind == Kind.NOTE or here.kind == Kind.EXTEND
    heard = here.past_notes + here.bar_notes - int(is_in_note)
    longest = rules.words.longest_duration
    if bar >= size:  # after the last bar of the table, its second half repeats
        bar = size // 2 + (bar - size // 2) % (size - size // 2)
    in_turn, later, held = NEVER, NEVER, 0
    oldest = find_repeated(rules, one, bar, heard)
    for number in range(heard - 1, oldest - 1, -1):
        onset, note, duration = recent[number % len(recent)]
        program = note // rules.asked.pitch_count
        due = due_again(here, one.loops[bar, program], onset)
        if due == NEVER or full[program] < LEAST_FULL:
            continue
        if due > here.now or here.kind < Kind.POSITION:
            later = min(later, due)
        elif due == here.now and note == here.note:
            held = duration
        elif due == here.now and note > here.note and mask[first[Kind.NOTE] + note]:
            in_turn = min(in_turn, note)
    if is_in_note:
        left = held - here.extends * longest
        if left > 0:  # the note lasts as long as the one that it repeats
            token = first[Kind.DURATION] + left - 1 if left <= longest else first[Kind.EXTEND]
            keep_only(mask, token, first[Kind.EXTEND], first[Kind.VELOCITY])
        return
    is_free = False
    for note in range(first[Kind.EXTEND] - first[Kind.NOTE]):
        is_again = full[note // rules.asked.pitch_count] >= LEAST_FULL
        mask[first[Kind.NOTE] + note] &= note == in_turn or (not is_again and note < in_turn)
        is_free |= not is_again and one.free_at[note] < NEVER
    if later < NEVER or in_turn < NEVER:
        mask[first[Kind.END]] = False
        forbid(mask, first[Kind.BAR], first[Kind.LENGTH])
    for token in range(first[Kind.POSITION], first[Kind.NOTE]):
        step = here.bar_start + token - first[Kind.POSITION]
        mask[token] &= in_turn == NEVER and step <= later and (is_free or step == later)


@compiled_inside
def due_again(here: Row, lag: int, onset: int) -> int:
    """Return when a note comes again in this bar, `lag` bars later; NEVER: it does not."""
    due = onset + lag * here.bar_length
    is_again = lag > 0 and here.bar_start <= due < here.bar_start + here.bar_length
    return due if is_again else NEVER


@compiled_inside
def find_repeated(rules: Rules, one: One, bar: int, heard: int) -> int:
    """Set in `one.reach[0]` how full the bar is that each program repeats, in twelfths of a bar.

    Each note counts for one at least.

    Args:
        rules, one: as in `keep_loops`.
        bar: its row in the table of loops.
        heard: how many notes are complete.

    Returns:
        The first of these notes that may be repeated.
    """
    here, recent, full = one.here, one.recent, one.reach[0]
    full[:] = 0
    for number in range(heard - 1, max(heard - len(recent), 0) - 1, -1):
        onset, note, duration = recent[number % len(recent)]
        if here.bar_start - onset > LAGS[-1] * here.bar_length:
            return number + 1
        program = note // rules.asked.pitch_count
        if due_again(here, one.loops[bar, program], onset) < NEVER:
            full[program] += max(12 * duration // here.bar_length, 1)
    return max(heard - len(recent), 0)


@compiled
def allow_rows(rules: Rules, rows: Rows, masks: Bools) -> None:
    """Set in `masks` (B, V) which ids may come next, by applying all rules in order.

    1. The grammar. No rule allows more, except given notes that other notes would shut out.
    2. Hard rules: length, polyphony, one new note at a time in a monophonic part, the deadline.
    3. Given notes. Given bars stay as they are, whatever is asked for.
    4. Chords; given notes sound in addition to them.
    5. Rules of style. A rule that would leave nothing is skipped, so earlier ones come first.
    """
    asked, given, words = rules.asked, rules.given, rules.words
    first, size, is_open = words.firsts, masks.shape[1], given.is_open
    scratch, reach = np.empty((3, size), np.bool_), np.empty((REACH, is_open.shape[1]), np.int64)
    has_chords = len(rules.chords.place) > 0
    for row in range(len(masks)):
        here, mask, free_at, ends = rows.at[row], masks[row], rows.free_at[row], rows.note_ends[row]
        new, steps, loops = rows.new_ends[row], rows.steps[row], rows.loops[row]
        recent = rows.recent[row]
        one = One(here, rows.latest[row], free_at, ends, new, steps, loops, recent, reach)
        kind, due = here.kind, given.ids[here.next_given]
        is_in_note = kind == Kind.NOTE or kind == Kind.EXTEND
        is_between = not is_in_note and kind != Kind.POSITION  # between notes or bars
        admit(first, rules.followers[kind], here, free_at, mask)
        if kind == Kind.END:
            continue
        is_over = here.bar_count > asked.last_bar or here.bar_start >= here.limit
        is_over |= here.bar_count > here.rest_after  # the row only waits for others
        if is_over and kind == Kind.BAR:  # this Bar stands for End, unless the row only waits
            forbid(mask, 0, size)
            mask[Kind.PAD] = True
            continue
        earliest = earliest_end(asked, here, free_at, ends, given.last_ends)
        if is_in_note:
            deadline = note_deadline(rules, one, earliest)
            if has_chords:
                most = (LONGEST_NOTE + 1) * words.longest_duration
                deadline = hold_until(rules, one, deadline, most)
            end_in_time(words, here, deadline, mask)
        elif asked.most_sounding < NEVER:
            keep_voices_free(rules, one, mask)
        if due < 0:  # the tempo and meter of given bars are given, too
            keep_time(asked, first, here, mask)
        forbid(mask, first[Kind.POSITION] + max(here.limit - here.bar_start, 0), first[Kind.NOTE])
        if is_between and due < 0:
            if asked.last_bar < NEVER:
                keep_room(asked, first, words.whole_bars, here, earliest, mask)
            keep_length(asked, first, here, mask)
        if is_between and here.bar_start < asked.reach:
            keep_to_region(first, here.bar_start, is_open, free_at, mask)
        if due >= 0 or here.bar_start < asked.reach:
            keep_given(words, asked.given_end, is_open, due, here, mask)
        if has_chords and not is_in_note:
            keep_to_chords(rules, one, due, mask)

        keep_style(rules, one, scratch, mask)
        leave_end_alone(first, here, mask)


@compiled
def advance_rows(rules: Rules, rows: Rows, ids: Ints) -> None:
    """Advance each row by its next ids, (B, T); Pad changes nothing."""
    pitch_count = rules.asked.pitch_count
    for row in range(len(ids)):
        here, latest = rows.at[row], rows.latest[row]
        for token in ids[row]:
            if token == PAD:
                continue
            is_given = rules.given.ids[here.next_given] == token
            here.next_given += is_given
            advance(rules.words, here, token)
            count(rules.asked, rules.limits, here)
            if here.kind != Kind.DURATION:
                continue
            now, note, end = here.now, here.note, here.note_end
            rows.note_ends[row, note] = end
            if rows.free_at[row, note] < NEVER:  # it may be written again
                rows.free_at[row, note] = max(rows.free_at[row, note], end)
            program, pitch = divmod(note, pitch_count)
            if latest[ONSET, program] != now:  # in a chord, the lowest note counts
                begin_note(latest, program, pitch, now, end)
            if rows.recent.shape[1] > 0:
                place = (here.past_notes + here.bar_notes - 1) % rows.recent.shape[1]
                rows.recent[row, place, 0], rows.recent[row, place, 1] = now, note
                rows.recent[row, place, 2] = end - now
            if not is_given:  # given notes are counted separately
                here.own_notes += 1
                rows.new_ends[row, note] = end
                is_alone = rules.parts.is_monophonic[program]  # all its notes wait for this one
                lowest = note - pitch
                for other in range(lowest, lowest + pitch_count if is_alone else lowest):
                    rows.free_at[row, other] = max(rows.free_at[row, other], end)


@compiled_inside
def keep_time(asked: Asked, first: Ints, here: Row, mask: Mask) -> None:
    """Mask tempi and time signatures that were not asked for."""
    is_head = here.kind == Kind.BAR or here.kind == Kind.LENGTH
    if is_head and asked.tempo >= 0:
        keep_only(mask, first[Kind.TEMPO] + asked.tempo, first[Kind.TEMPO], first[Kind.POSITION])
        if here.tempo != asked.tempo:
            forbid(mask, first[Kind.POSITION], first[Kind.NOTE])
            forbid(mask, first[Kind.BAR], first[Kind.LENGTH])
    elif is_head and asked.is_timed and here.tempo >= 0:
        forbid(mask, first[Kind.TEMPO], first[Kind.POSITION])
    if asked.meter >= 0:
        forbid(mask, first[Kind.LENGTH], first[Kind.TEMPO])
        keep_only(mask, first[Kind.BAR] + asked.meter, first[Kind.BAR], first[Kind.LENGTH])


@compiled_inside
def keep_voices_free(rules: Rules, one: One, mask: Mask) -> None:
    """Mask notes and positions where the largest allowed number of notes already sounds."""
    first, here, most = rules.words.firsts, one.here, rules.asked.most_sounding
    for token in range(first[Kind.POSITION], first[Kind.NOTE]):
        step = here.bar_start + token - first[Kind.POSITION]
        if mask[token] and sounding_at(rules.given, one.new_ends, step) >= most:
            mask[token] = False
    if sounding_at(rules.given, one.new_ends, here.now) >= most:
        forbid(mask, first[Kind.NOTE], first[Kind.EXTEND])


@compiled_inside
def earliest_end(asked: Asked, here: Row, free_at: Ints, ends: Ints, given_ends: Ints) -> int:
    """Return the first step at which the piece could end, if one more note begins.

    It is later than the current step, and all notes have ended by then, given ones too.
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
def note_deadline(rules: Rules, one: One, earliest: int) -> int:
    """Return the step by which the latest note, which begins now, has to end.

    It is the earliest of these:

    - the end of the piece, in bars of this meter, or in the longest bars if that would be too soon;
    - the last chance for a note of the last bar, if no other note could begin there;
    - the step at which given notes use up the polyphony;
    - the onset of a given note of the same program and pitch;
    - the end of the region that is open to the program.
    """
    asked, given, here = rules.asked, rules.given, one.here
    most, last = asked.most_sounding, len(given.is_open) - 1
    program = here.note // asked.pitch_count
    is_late = asked.last_bar < NEVER and here.expected_end < earliest
    deadline = here.latest_end if is_late else here.expected_end
    if asked.last_chance >= 0 and not here.is_last:
        chance = max(min(deadline - 1, asked.last_chance), 0)
        is_free = False
        for note in range(len(one.free_at)):
            its, end = note // asked.pitch_count, max(one.free_at[note], given.last_ends[note])
            if end <= chance and not waits_for(rules, note, here.note):
                is_free |= given.is_open[min(chance, last), its]
        if not is_free or sounding_at(given, one.new_ends, chance) >= most - 1:
            deadline = chance
    for step in range(here.now + 1, len(given.sounding) if most < NEVER else 0):
        if sounding_at(given, one.new_ends, step) >= most:
            deadline = min(deadline, step)
    for n in range(len(given.note)):
        if given.note[n] == here.note and given.onset[n] > here.now:
            deadline = min(deadline, given.onset[n])
    for step in range(here.now, last):
        if not given.is_open[step, program]:
            return min(deadline, step)
    return deadline


@compiled_inside
def end_in_time(words: Words, here: Row, deadline: int, mask: Mask) -> None:
    """Mask durations and Extends that would end the latest note after a deadline."""
    first, longest = words.firsts, words.longest_duration
    left = deadline - here.now - here.extends * longest
    forbid(mask, first[Kind.DURATION] + max(left, 0), first[Kind.VELOCITY])
    if left <= longest or here.extends >= LONGEST_NOTE:
        mask[first[Kind.EXTEND]] = False


@compiled_inside
def any_pitched(parts: Parts, notes: Mask, begin: int) -> bool:
    """Return whether any note (N,) with a pitch, from number `begin` on, may come next."""
    pitch_count = len(notes) // len(parts.plays)
    for note in range(max(begin, 0), len(notes)):
        if notes[note] and parts.is_pitched[note // pitch_count]:
            return True
    return False


@compiled_inside
def leave_out_who_rested(rules: Rules, one: One, due: int, notes: Mask) -> None:
    """Mask notes (N,) of programs that have just rested for long, while another may begin one.

    Else a second voice that was silent for bars may strike the whole final chord. The given note
    that is due, if any, is nobody's to begin.
    """
    parts, pitch_count = rules.parts, rules.asked.pitch_count
    heard_until = one.here.now - RESTED_BEATS * rules.asked.beat
    is_left = False
    for note in range(len(notes)):
        program = note // pitch_count
        has_played = one.latest[END, program] >= heard_until
        is_left |= notes[note] and note != due and has_played and parts.is_pitched[program]
    for program in range(len(parts.plays)):
        if is_left and parts.is_pitched[program] and one.latest[END, program] < heard_until:
            forbid(notes, program * pitch_count, (program + 1) * pitch_count)


@compiled_inside
def close(rules: Rules, one: One, scratch: Bools, due: int, mask: Mask) -> None:
    """Mask ids that would keep the piece from closing on a complete triad, after the dominant.

    A given note that is due waits for notes that the triad needs before it.
    """
    asked, here, now, has_key = rules.asked, one.here, one.here.now, one.here.key >= 0
    first, (dominant, tonic) = rules.words.firsts, closing_triads(here.key)
    notes, is_due = mask[first[Kind.NOTE] : first[Kind.EXTEND]], due >= 0 and mask[due]
    if here.is_last and now == here.final_onset:
        leave_out_who_rested(rules, one, due - first[Kind.NOTE], notes)
        for triads in (tonic, dominant, ANY_TRIAD):  # the first that is possible
            is_known = has_key or triads == ANY_TRIAD
            if is_known and find_triad(rules, one, triads, scratch, notes):
                break
        heard, lowest, _, _ = what_sounds(rules, one)
        is_whole = is_triad(heard, lowest + rules.parts.lowest_pitch)
        if not is_whole and any_pitched(rules.parts, notes, 0):
            forbid(mask, first[Kind.END], first[Kind.LENGTH])
            is_due &= any_pitched(rules.parts, notes, due + 1 - first[Kind.NOTE])
    elif asked.has_cadence and has_key and now == here.final_onset - asked.beat:
        find_triad(rules, one, dominant, scratch, notes)
    if due >= 0:
        mask[due] = is_due


@compiled_inside
def end_before_cadence(rules: Rules, here: Row, mask: Mask) -> None:
    """Mask durations that would hold a note into a closing chord to which it does not belong.

    Programs that play chords hold no note into the final one, where it could become the bass.
    """
    asked, parts = rules.asked, rules.parts
    program, pitch = divmod(here.note, asked.pitch_count)
    can_be = triads_with(1 << (pitch + parts.lowest_pitch) % OCTAVE, NONE)
    dominant, tonic = closing_triads(here.key)
    tonic = tonic if parts.is_monophonic[program] else 0
    for begin, triads in ((here.final_onset - asked.beat, dominant), (here.final_onset, tonic)):
        is_asked = triads == tonic or asked.has_cadence
        is_alien = is_asked and parts.is_pitched[program] and can_be & triads == 0
        if here.now < begin and is_alien:
            end_in_time(rules.words, here, begin, mask)


@compiled_inside
def keep_length(asked: Asked, first: Ints, here: Row, mask: Mask) -> None:
    """Mask ids that would make the piece shorter or longer than requested.

    These are End before the last bar or note, End and Bar in a last bar without a note, and another
    Bar after many empty ones if no end is requested.
    """
    end = first[Kind.END]
    is_last, has_note = here.is_last, here.note_bar == here.bar_count
    if asked.last_bar < NEVER or asked.is_timed:
        if not (is_last and has_note):
            mask[end] = False
        if is_last and not has_note:
            forbid(mask, first[Kind.BAR], first[Kind.LENGTH])
        return
    if asked.notes:
        # the grammar allows End only after a complete note
        is_done = mask[end] and here.new_notes >= asked.notes
        if is_done:
            forbid(mask, 0, len(mask))
        mask[end] = is_done
    has_position = mask[first[Kind.POSITION] : first[Kind.NOTE]].any()
    if has_position and here.bar_count - here.note_bar > EMPTY_BARS:
        forbid(mask, first[Kind.BAR], first[Kind.LENGTH])


@compiled_inside
def keep_room(
    asked: Asked, first: Ints, whole_bars: Ints, here: Row, earliest: int, mask: Mask
) -> None:
    """Mask bars so short that notes could not end by the end of the last bar.

    The last bar and an upbeat add up to a whole bar, unless the last bar is given.
    """
    latest = here.latest_end
    for number in range(len(whole_bars)):
        is_short = latest - asked.longest_bar + whole_bars[number] < earliest
        if is_short and here.bar_count < asked.last_bar:
            mask[first[Kind.BAR] + number] = False
    least = earliest - (latest - here.bar_length)  # the fewest steps of this bar
    forbid(mask, first[Kind.LENGTH], min(first[Kind.LENGTH] + least - 1, first[Kind.TEMPO]))
    rest = here.bar_length - here.upbeat
    is_last = here.kind == Kind.BAR and here.bar_count == asked.last_bar
    if is_last and here.upbeat > 0 and rest > 0 and here.bar_count > asked.given_bars:
        token = first[Kind.LENGTH] + rest - 1
        if mask[token]:
            keep_only(mask, token, 0, len(mask))


@compiled_inside
def keep_to_region(first: Ints, bar_start: int, is_open: Bools, free_at: Ints, mask: Mask) -> None:
    """Mask positions at which no free note may begin."""
    pitch_count = len(free_at) // is_open.shape[1]
    for token in range(first[Kind.POSITION], first[Kind.NOTE]):
        step, is_free = bar_start + token - first[Kind.POSITION], False
        open_then = is_open[min(step, len(is_open) - 1)]
        for note in range(len(free_at) if mask[token] else 0):
            is_free |= free_at[note] <= step and open_then[note // pitch_count]
        mask[token] = is_free


@compiled_inside
def keep_bars_regular(asked: Asked, first: Ints, whole_bars: Ints, here: Row, mask: Mask) -> None:
    """Mask bars whose length differs from the one before, and shortened bars inside the piece.

    After given bars, the meter must stay the same, too. The bar after a shortened one is the rest
    of it.
    """
    for number in range(len(whole_bars)):
        is_other = whole_bars[number] != here.whole_bar
        if asked.given_meter >= 0:
            is_other = number != asked.given_meter
        if is_other and here.bar_count > 0 and asked.meter < 0:
            mask[first[Kind.BAR] + number] = False
    is_inside = max(asked.given_bars, 1) < here.bar_count < asked.last_bar
    if here.kind == Kind.BAR and is_inside:
        if here.owed > 0:
            keep_only(mask, first[Kind.LENGTH] + here.owed - 1, 0, len(mask))
        else:
            forbid(mask, first[Kind.LENGTH], first[Kind.TEMPO])


@compiled_inside
def leave_end_alone(first: Ints, here: Row, mask: Mask) -> None:
    """Mask Bars that stand for End if otherwise only End is left, so that there is no choice."""
    is_alone = not mask[first[Kind.POSITION] :].any()
    if is_alone and mask[first[Kind.END]] and here.is_last:
        forbid(mask, first[Kind.BAR], len(mask))
