"""Rules for parts: one note at a time, no rests, no parallels, smooth seams, triads at cadences.

Two parts that move in the same direction and stay a fifth or an octave apart sound like a single
part (Fux 1725, Gradus ad Parnassum): these are parallels. Where a part meets given notes of its
own, a seam, it must not leap. Pieces end on triads in root position.
"""

from __future__ import annotations

import numpy as np

from common.arrays import Bools, Ints
from common.compiled import compiled_inside
from common.interface import OCTAVE
from data.keys import pitched_notes
from data.score import DRUMS, Score
from data.tokens.bag import NO_PITCH
from data.tokens.grammar import Mask
from data.tokens.vocabulary import NEVER, Kind, Words
from generation.constraints import STRICT, Constraints
from generation.given import GivenTokens
from generation.length import Row
from generation.masks import forbid
from generation.rows import DUE, END, END_BEFORE, ONSET, PITCH, PITCH_BEFORE, One, Parts, Rules

LEAP = 7  # semitones: at a seam, a part moves no farther, except by an octave
FIFTH = 7
ANY_TRIAD = (1 << 2 * OCTAVE) - 1  # a bit for each triad: major and minor on each of 12 roots


def parts_of(given: GivenTokens, is_playable: Bools, constraints: Constraints) -> Parts:
    """Return what the rules must know about the programs of a vocabulary.

    Args:
        given: what is given.
        is_playable: (N,) the notes that the model may play.
        constraints: the kind of counterpoint, the monophonic programs, and the ranges of programs,
            which given notes widen.
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
    for program, (low, high) in (constraints.ranges or {}).items():
        which = np.flatnonzero(programs == program)
        own = given_pitch[np.isin(number, which)]
        lowest, highest = np.array([low, high]) - vocabulary.lowest_pitch
        is_within[which] = (pitch >= min([lowest, *own])) & (pitch <= max([highest, *own]))
    is_pitched = programs != DRUMS
    is_strict, monophonic = constraints.counterpoint == STRICT, constraints.monophonic or ()
    return Parts(
        lowest_pitch=vocabulary.lowest_pitch,
        plays=np.asarray(is_playable.reshape(is_within.shape).any(axis=1)),
        is_pitched=is_pitched,
        is_monophonic=is_pitched & (is_strict | np.isin(programs, monophonic)),
        is_within=is_within.ravel(),
        given=begins,
        before=np.maximum.accumulate(np.where(begins != NO_PITCH, steps, -1)),
        after=np.vstack([after[1:], np.full((1, len(programs)), NEVER)]),
    )


def has_parallels_at(score: Score, step: int) -> bool:
    """Return whether two programs move in parallel into the notes that begin at a step."""
    notes = pitched_notes(score)
    is_before = (notes["onset"] < step) & (notes["onset"] + notes["duration"] >= step)
    old, new = (  # the lowest note of each program
        dict(sorted(notes[which][["program", "pitch"]].tolist(), reverse=True))
        for which in (is_before, notes["onset"] == step)
    )
    both = old.keys() & new.keys()
    before, after = (np.array([its[p] for p in both], dtype=np.int64) for its in (old, new))
    apart, way = (np.abs(before[:, None] - before) % OCTAVE), np.sign(after - before)
    is_kept = np.isin(apart, (0, FIFTH)) & (np.abs(after[:, None] - after) % OCTAVE == apart)
    return bool(np.triu(is_kept & (way[:, None] == way) & (way != 0), 1).any())


@compiled_inside
def waits_for(rules: Rules, note: int, other: int) -> bool:
    """Return whether a note cannot begin while another sounds: it is the same, or in its part."""
    program = note // rules.asked.pitch_count
    is_of_part = rules.parts.is_monophonic[program] and other // rules.asked.pitch_count == program
    return is_of_part or note == other


@compiled_inside
def play_one_note(rules: Rules, one: One, mask: Mask) -> None:
    """Mask notes of monophonic programs that sound, and positions where no program is free."""
    here, latest, first = one.here, one.latest, rules.words.firsts
    is_monophonic, is_open = rules.parts.is_monophonic, rules.given.is_open
    pitch_count, soonest = rules.asked.pitch_count, NEVER
    for program in range(len(is_monophonic)):
        end = latest[END, program] if is_monophonic[program] else -1
        may_begin = is_open[min(max(end, here.now), len(is_open) - 1), program]
        for note in range(program * pitch_count, (program + 1) * pitch_count):
            if one.free_at[note] < NEVER and may_begin:
                soonest = min(soonest, end)  # when a program is free
        if end > here.now:
            begin = first[Kind.NOTE] + program * pitch_count
            forbid(mask, begin, begin + pitch_count)
    stop = first[Kind.POSITION] + soonest - here.bar_start
    forbid(mask, first[Kind.POSITION], min(stop, first[Kind.NOTE]))


@compiled_inside
def last_end(ends: Ints) -> int:
    """Return when the last of some notes ends."""
    last = 0
    for end in ends:
        last = max(last, end)
    return last


@compiled_inside
def own_end(rules: Rules, one: One, program: int) -> int:
    """Return when the last of the notes of a program ends."""
    first = program * rules.asked.pitch_count
    return last_end(one.note_ends[first : first + rules.asked.pitch_count])


@compiled_inside
def never_rest(rules: Rules, one: One, mask: Mask) -> None:
    """Mask ids that would leave a program silent where it may begin a note.

    When its note ends, a program must begin another at once, before any later program does. If
    programs may rest together, none has to at a step where all notes end (`may_all_rest`).
    """
    here, latest, first = one.here, one.latest, rules.words.firsts
    plays, is_open = rules.parts.plays, rules.given.is_open
    pitch_count, last = rules.asked.pitch_count, len(is_open) - 1
    kind, soonest = here.kind, NEVER  # when the next program has to begin another note
    is_in_chord = kind == Kind.POSITION or kind == Kind.DURATION or kind == Kind.VELOCITY
    resting = len(plays)  # the first program that would rest from now on
    for program in range(len(plays) - 1, -1, -1):
        end, begin = -1, first[Kind.NOTE] + program * pitch_count
        if latest[ONSET, program] >= 0:
            end = own_end(rules, one, program)
        may_follow = plays[program] and is_open[min(max(end, 0), last), program]
        if may_follow and end >= here.now + is_in_chord:
            soonest = min(soonest, end)
        may_begin = is_open[min(here.now, last), program]
        if end <= here.now and may_begin and mask[begin : begin + pitch_count].any():
            resting = program
    if resting < len(plays):
        forbid(mask, 0, first[Kind.NOTE])
        forbid(mask, first[Kind.NOTE] + (resting + 1) * pitch_count, len(mask))
    elif may_all_rest(rules, one, soonest):
        return
    forbid(mask, first[Kind.POSITION] + max(soonest - here.bar_start + 1, 0), first[Kind.NOTE])
    if soonest < here.bar_start + here.bar_length:
        forbid(mask, first[Kind.END], first[Kind.LENGTH])


@compiled_inside
def may_all_rest(rules: Rules, one: One, step: int) -> bool:
    """Return whether all programs may rest at the first step where one would have to begin a note.

    They may if all notes end by then, unless these were given and nothing could be written beside
    them: new music begins at once.
    """
    is_open = rules.given.is_open
    if not (rules.asked.rests_together and 0 < last_end(one.note_ends) <= step):
        return False
    return step >= len(is_open) or is_open[step - 1].any()


@compiled_inside
def is_leap(interval: int) -> bool:
    """Return whether an interval, in semitones, is too wide for a seam."""
    return abs(interval) > LEAP and abs(interval) != OCTAVE


@compiled_inside
def is_parallel(old: int, new: int, old_other: int, new_other: int) -> bool:
    """Return whether two parts move in the same direction in unisons, octaves or fifths."""
    apart = abs(old - old_other) % OCTAVE
    is_kept = abs(new - new_other) % OCTAVE == apart and (apart == 0 or apart == FIFTH)
    is_up, is_down = new > old and new_other > old_other, new < old and new_other < old_other
    return is_kept and (is_up or is_down)


@compiled_inside
def moves_in_parallel(rules: Rules, one: One, program: int, pitch: int, now: int) -> bool:
    """Return whether a note that begins now would move in parallel with another program.

    Args:
        rules, one: the rules, and the state of one row.
        program, pitch, now: the program and pitch of the note, and its onset.
    """
    is_pitched, latest = rules.parts.is_pitched, one.latest
    is_new = latest[ONSET, program] == now
    old = latest[PITCH_BEFORE, program] if is_new else latest[PITCH, program]
    end = latest[END_BEFORE, program] if is_new else latest[END, program]
    is_voice = end >= now and is_pitched[program]
    for other in range(len(is_pitched) if is_voice else 0):
        is_new = latest[ONSET, other] == now
        old_other = latest[PITCH_BEFORE, other] if is_new else latest[PITCH, other]
        end = latest[END_BEFORE, other] if is_new else latest[END, other]
        new = latest[PITCH if is_new else DUE, other]
        is_voice = other != program and is_pitched[other] and end >= now
        if is_voice and new != NO_PITCH and is_parallel(old, pitch, old_other, new):
            return True
    return False


@compiled_inside
def move_apart(rules: Rules, one: One, notes: Mask) -> None:
    """Mask notes (N,) with which a program would move in parallel with another."""
    for note in range(len(notes)):
        program, pitch = divmod(note, rules.asked.pitch_count)
        if notes[note] and moves_in_parallel(rules, one, program, pitch, one.here.now):
            notes[note] = False


@compiled_inside
def meet_given(rules: Rules, one: One, mask: Mask) -> None:
    """Mask notes that would make a rough seam with the given notes around them.

    Next to a given note of the same program, no note is more than LEAP semitones away, except an
    octave. Programs that reach given notes at the same time do not move there in parallel. A note
    that may be the last before a given one is judged when it begins, if the given note comes within
    a beat, or else when its duration is chosen.
    """
    here, latest, parts, first = one.here, one.latest, rules.parts, rules.words.firsts
    beat, pitch_count, programs = rules.asked.beat, rules.asked.pitch_count, len(parts.plays)
    given, step = parts.given, min(here.now, len(parts.given) - 1)
    before, after = parts.before[step], parts.after[step]
    if here.kind == Kind.NOTE:
        program, pitch = divmod(here.note, pitch_count)
        left = after[program] - here.now
        begin = first[Kind.DURATION] + left - 1  # the shortest that reaches the given note
        is_near = beat < left and begin < first[Kind.VELOCITY]
        if is_near and is_unfit(given, after, latest, program, pitch):
            forbid(mask, begin, first[Kind.VELOCITY])
            mask[first[Kind.EXTEND]] = False
    for program in range(programs if here.kind != Kind.NOTE else 0):
        onset, pitch_before = latest[ONSET, program], latest[PITCH, program]
        is_given = onset >= 0 and onset == before[program]
        is_next = is_given and latest[END, program] >= here.now and onset < here.now
        is_last = after[program] - here.now <= beat
        for pitch in range(pitch_count if is_next or is_last else 0):
            token = first[Kind.NOTE] + program * pitch_count + pitch
            is_bad = is_next and is_leap(pitch - pitch_before)
            if mask[token] and not is_bad and is_last:
                is_bad = is_unfit(given, after, latest, program, pitch)
            if is_bad:
                mask[token] = False


@compiled_inside
def is_unfit(given: Ints, after: Ints, latest: Ints, program: int, pitch: int) -> bool:
    """Return whether a note leads to the next given note of its program by a leap or in parallel.

    Args:
        given, latest: as in `Parts`, and what the programs played last.
        after: (P,) when the next given note of each program begins.
        program, pitch: the program and pitch of the note.
    """
    soon = after[program]
    goals = given[min(soon, len(given) - 1)]
    if goals[program] == NO_PITCH:
        return False
    is_bad = is_leap(goals[program] - pitch)
    for other in range(len(goals)):
        if other != program and after[other] == soon and latest[END, other] >= soon:
            held = latest[PITCH, other]
            is_bad |= is_parallel(held, goals[other], pitch, goals[program])
    return is_bad


@compiled_inside
def end_bar(first: Ints, final: int, mask: Mask) -> None:
    """Mask positions after the final chord, if the row may begin that chord or end the piece.

    Args:
        first: the first id of each kind.
        final: steps from the bar line to where the chord begins.
        mask: (V,), what may come next.
    """
    may_begin = mask[first[Kind.POSITION] + final]
    if may_begin or mask[first[Kind.END] : first[Kind.LENGTH]].any():
        forbid(mask, first[Kind.POSITION] + final + 1, first[Kind.NOTE])


@compiled_inside
def hold_final_chord(words: Words, here: Row, mask: Mask) -> None:
    """Mask durations that would end a note within the final chord, before the piece ends."""
    first, at = words.firsts, here.now + here.extends * words.longest_duration
    for token in range(first[Kind.DURATION], first[Kind.VELOCITY]):
        end = at + 1 + token - first[Kind.DURATION]
        if here.final_onset < end < here.expected_end:
            mask[token] = False


@compiled_inside
def triads_with(heard: int, own_root: int) -> int:
    """Return which triads a chord can still become: a bit each, major and minor for each root.

    Args:
        heard: a bit for each pitch class that sounds.
        own_root: the root, if the bass decides it; -1: any.
    """
    can_be = 0
    for triad in range(2 * OCTAVE):
        root, third = triad // 2, 4 - triad % 2
        classes = 1 << root | 1 << (root + third) % OCTAVE | 1 << (root + FIFTH) % OCTAVE
        can_be |= int(own_root in (-1, root) and heard & ~classes == 0) << triad
    return can_be


@compiled_inside
def closing_triads(key: int) -> tuple[int, int]:
    """Return the bits of a key's dominant triad, which is major, and of its tonic triad.

    In minor, the tonic may be a minor or a major triad.
    """
    either = 3 if key >= OCTAVE else 1
    return 1 << 2 * ((key + FIFTH) % OCTAVE), either << 2 * (key % OCTAVE)


@compiled_inside
def what_sounds(rules: Rules, one: One) -> tuple[int, int, int, int]:
    """Return what sounds now, including given notes that are due, and which program is the bass.

    The bass is the program that was lowest before; a program's due note counts instead, if any.

    Returns:
        A bit for each pitch class that sounds; the lowest pitch; the program of the bass; and the
        number of programs that can play in a chord.
    """
    parts, latest, ends, now = rules.parts, one.latest, one.note_ends, one.here.now
    programs, pitch_count = len(parts.plays), rules.asked.pitch_count
    heard, lowest, lowest_before, bass, voices = 0, NEVER, NEVER, programs, 0
    for program in range(programs - 1, -1, -1):
        voices += parts.plays[program] and parts.is_pitched[program]
        is_new = latest[ONSET, program] == now
        before = latest[PITCH_BEFORE if is_new else PITCH, program]
        before = latest[DUE, program] if latest[DUE, program] >= 0 else before
        before = before if before >= 0 else NEVER
        if before <= lowest_before:
            lowest_before, bass = before, program
        for pitch in range(pitch_count if parts.is_pitched[program] else 0):
            if ends[program * pitch_count + pitch] > now or pitch == latest[DUE, program]:
                heard |= 1 << (pitch + parts.lowest_pitch) % OCTAVE
                lowest = min(lowest, pitch)
    return heard, lowest, bass, voices


@compiled_inside
def is_triad(heard: int, bass: int) -> bool:
    """Return whether the pitch classes of a triad, a bit each, include the third above the bass."""
    return heard >> (bass + 3) % OCTAVE & 1 == 1 or heard >> (bass + 4) % OCTAVE & 1 == 1


@compiled_inside
def find_roots(
    rules: Rules, one: One, can_be: int, bass: int, has_bass: bool, lowest: int, roots: Bools
) -> None:
    """Set in `roots` which pitches the bass may begin as the root of a triad in `can_be`."""
    parts, now = rules.parts, one.here.now
    for pitch in range(len(roots)):
        is_root = can_be >> 2 * ((pitch + parts.lowest_pitch) % OCTAVE) & 3 > 0
        note = bass * len(roots) + pitch
        may_play = parts.is_within[note] and rules.is_playable[note]
        may_be = is_root and not has_bass and pitch <= lowest and may_play
        roots[pitch] = may_be and not moves_in_parallel(rules, one, bass, pitch, now)


@compiled_inside
def leads_to_root(
    rules: Rules, one: One, roots: Bools, bass: int, program: int, pitch: int, root: int
) -> bool:
    """Return whether the bass can still begin this root without parallels to a note above it."""
    parts, latest, now = rules.parts, one.latest, one.here.now
    due, found = latest[DUE, bass], False
    for under in range(pitch + 1):
        if roots[under] and (under + parts.lowest_pitch) % OCTAVE == root:
            latest[DUE, bass] = under
            found |= not moves_in_parallel(rules, one, program, pitch, now)
    latest[DUE, bass] = due
    return found


@compiled_inside
def find_triad(rules: Rules, one: One, triads: int, scratch: Bools, notes: Mask) -> bool:
    """Mask notes with which a chord could not become a triad in root position; drums always fit.

    A single voice ends on the root. The bass is the program that was lowest before; if possible,
    upper voices leave it a root that it can reach without parallels.

    Args:
        rules, one: the rules, and the state of one row, which stands where the chord begins.
        triads: the triads that are allowed, as bits of `triads_with`.
        scratch: (2, V), overwritten.
        notes: (N,), the notes that may come next. They are masked only if some are left, or if any
            triad will do.

    Returns:
        Whether some are left.
    """
    parts, latest, now = rules.parts, one.latest, one.here.now
    fits, roots, is_open = scratch[0], scratch[1], rules.given.is_open
    lowest_pitch, pitch_count = parts.lowest_pitch, rules.asked.pitch_count
    is_pitched, programs = parts.is_pitched, len(parts.plays)
    heard, lowest, bass, voices = what_sounds(rules, one)
    has_bass = bass < programs and is_pitched[bass]
    has_bass = has_bass and (latest[DUE, bass] >= 0 or own_end(rules, one, bass) > now)
    begins_bass = not has_bass and notes[bass * pitch_count : (bass + 1) * pitch_count].any()
    own_root = (lowest + lowest_pitch) % OCTAVE if has_bass else -1
    can_be = triads_with(heard, own_root) & triads
    find_roots(rules, one, can_be, bass, has_bass, lowest, roots[:pitch_count])
    has_roots, is_any, is_last = roots[:pitch_count].any(), False, True
    for program in range(programs - 1, -1, -1):
        is_bass = program == bass and not has_bass
        is_one_note = parts.is_monophonic[program]
        for pitch in range(pitch_count):
            note = program * pitch_count + pitch
            is_low = pitch <= lowest if is_bass else has_bass and pitch < lowest
            is_left = is_pitched[program] and notes[note] and is_low == is_bass
            is_left &= program <= bass or not begins_bass  # a later program would skip the bass
            fit = notes[note] and not is_pitched[program]
            for triad in range(2 * OCTAVE if is_left else 0):
                root, third = triad // 2, 4 - triad % 2
                above = (pitch + lowest_pitch - root) % OCTAVE
                has_third = heard >> (root + third) % OCTAVE & 1 == 1
                is_whole = has_third or above == third or (voices == 1 and is_one_note)
                other = pitch + (third - above) % OCTAVE  # the third, if the same program plays it
                is_joined = not is_one_note and other < pitch_count
                is_joined = is_joined and notes[program * pitch_count + other]
                is_in = above == 0 or (not is_bass and above in (third, FIFTH))
                may_be = is_whole or not is_last or is_joined
                if is_in and may_be and can_be >> triad & 1 and not fit:
                    fit = is_bass or not has_roots
                    fit |= leads_to_root(rules, one, roots, bass, program, pitch, root)
            fits[note] = fit
            is_any |= fit
        may_begin = is_open[min(now, len(is_open) - 1), program] and is_pitched[program]
        may_begin &= parts.plays[program] and own_end(rules, one, program) <= now
        may_begin &= rules.asked.has_no_rests or latest[ONSET, program] >= 0  # it has played before
        is_last &= program == bass or not may_begin  # only the bass may still begin a note after it
    for note in range(len(notes) if is_any or triads == ANY_TRIAD else 0):
        notes[note] = fits[note]
    return is_any
