"""SideFeatures: what the ids so far say about each place, as features that stand beside its id.

A decoder could work all of this out from the ids: the time, what sounds, what has just ended, when
each voice will be free. A small decoder that is told needs far fewer pieces to learn from. Nothing
here looks ahead, except to what is given, so the likelihood stays exact.

A single loop reads an id of a row (`hear`) and then tells what stands beside it (`tell`). Training
windows, sampling, scoring and "why" all call this loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Bools, Ints
from common.compiled import compiled, compiled_inside
from common.interface import ENDS, OCTAVE, SHARED_REFERENCES, SideArrays, SideInput
from data.followed_keys import follow_key
from data.keys import KEY_PROFILES
from data.tokens import echo
from data.tokens.bag import NO_PITCH, Bag, put, put_above
from data.tokens.chords import CHORDS_WIDTH, ToldChords, tell_chords, told_chords
from data.tokens.cursor import Cursor, Cursors, advance, at_start, records
from data.tokens.echo import ECHO_WIDTH, Lines
from data.tokens.given import VOICE_WIDTH, Given, GivenNotes, first_to_come, gathered, tell_given
from data.tokens.vocabulary import NEVER, Kind, Vocabulary, Words

MAX_BARS_TO_FOLLOW = 16  # the most bars to follow that are told apart
MOST_HALVES = 16  # the most half beats (or half seconds) before an ending that are told apart
HORIZON_BEATS = 3  # how many beats, or seconds, before it is due a given note is told
FEW = 16  # with more programs than this, notes have no features of their own


class Context(NamedTuple):
    """What only the caller can know about B windows; it is complete before they are read.

    Times are in grid steps from a window's first bar. -1 stands for what is not known.
    """

    bars: Ints  # (B,) how many bars there are from the window's first to the piece's last
    final: Ints  # (B,) when the final chord begins
    final_position: Ints  # (B,) how many steps after its bar line it begins
    key: Ints  # (B,) the key of the whole piece: its tonic, C = 0; 12 more in minor
    moved: Ints  # (B,) by how many semitones the window was moved
    silent: Bools  # (B, P) which programs are silent in the window, or in the whole piece
    piece: Ints  # (B,) the number of the window's piece in `given`
    begin: Ints  # (B,) steps from the beginning of that piece to the window's first bar
    given: Given
    harmony: Ints  # (B,) the number of the window's piece in `chords`
    chords: ToldChords

    def of_rows(self, rows: Ints) -> Context:
        """Return the context of some of the rows, (B',)."""
        tables = ("given", "chords")
        of_rows = {name: own[rows] for name, own in self._asdict().items() if name not in tables}
        return self._replace(**of_rows)


class Layout(NamedTuple):
    """What the loops need to know about a vocabulary with N notes."""

    at: Any  # the first feature of each block, by its name; 0 if there is no such block
    size: int  # the number of features plus 1, since 0 is no feature
    words: Words
    programs: int  # programs with references: P, or 0 if there are more than FEW
    pitch_count: int
    lowest_pitch: int
    steps_per_beat: int
    longest_left: int
    own_width: int  # how many features `own` has
    own: Ints  # (N,) which feature each note has in blocks of notes, from 0
    program_of: Ints  # (N,)
    pitch_of: Ints  # (N,) counted from the vocabulary's lowest; NO_PITCH for drums
    profiles: Ints  # (24, 12)


class Listener(Cursor):
    """Where a row stands in its window, and what it has heard there; changed in place."""

    onset: int  # the time of the latest Position; -1 before the first
    onset_before: int  # the time of the latest Position before the latest Bar or Position
    first: int  # the first note that sounds, or ended after `onset_before`; others are gone
    notes: int  # how many notes have been heard
    tonic: int  # the tonic of the key that they follow, as a pitch; NO_PITCH: none
    mode: int  # the mode of that key


class Heard(NamedTuple):
    """What B rows have heard in their windows, at most C notes in each; changed in place."""

    at: Cursors  # (B,) of Listener
    number: Ints  # (B, C) the number of each note
    end: Ints  # (B, C) when each note ends; NEVER: not yet known
    lines: Lines
    classes: Ints  # (B, 12) how many notes of each pitch class


@compiled_inside
def hear(layout: Layout, heard: Heard, row: int, token: int) -> None:
    """Read the next id of a row."""
    here = heard.at[row]
    advance(layout.words, here, token)
    kind, now, number = here.kind, here.now, here.note
    if kind == Kind.BAR or kind == Kind.POSITION:
        here.onset_before = here.onset
        if kind == Kind.POSITION:
            here.onset = now
        while here.first < here.notes:
            if heard.end[row, here.first] > here.onset_before:
                break
            here.first += 1
    elif kind == Kind.NOTE:
        note = here.notes
        here.notes += 1
        heard.number[row, note], heard.end[row, note] = number, NEVER
        heard.lines.pitch[row, note] = number % layout.pitch_count
        heard.lines.onset[row, note] = now
        if layout.programs:
            echo.add(heard.lines, row, layout.program_of[number], note)
        pitch = layout.pitch_of[number]
        if pitch != NO_PITCH:
            heard.classes[row, (pitch + layout.lowest_pitch) % OCTAVE] += 1
            tonic, mode = follow_key(layout.profiles, heard.classes[row])
            tonic = (tonic - layout.lowest_pitch) % OCTAVE if tonic >= 0 else NO_PITCH
            here.tonic, here.mode = tonic, mode
    elif kind == Kind.DURATION and number >= 0:
        heard.end[row, here.notes - 1] = here.note_end


class Roots(NamedTuple):
    """Pitches from which others are counted, beside one id; NO_PITCH: there is none."""

    tonic: int  # the tonic of the key that the notes follow
    latest: int  # the latest note that begins here
    lowest: int  # the lowest note that sounds
    lowest_before: int  # the lowest note that is over
    own_lowest: int  # the lowest note that is over, of the latest note's program


@compiled_inside
def tell(
    layout: Layout,
    heard: Heard,
    context: Context,
    row: int,
    bag: Bag,
    references: Ints,
    moves: Ints,
    sounding: Ints,
    ends: Ints,
) -> None:
    """Tell what stands beside the latest id of a row.

    Args:
        layout, heard, context: of all rows.
        row: the number of the row.
        bag: takes the features.
        references: (2 P + SHARED_REFERENCES,), or (0,) if there are many programs. It comes in as
            zeros, and is set.
        moves, sounding, ends: (P,), (OCTAVE,) and (ENDS,), likewise.
    """
    at, here, key = layout.at, heard.at[row], context.key[row]
    now, number, step = here.now, here.note, here.now + context.begin[row]
    to_come, begin = find_given(layout, heard, context, row, step)
    roots = find_roots(layout, heard, row, begin, references, moves)
    tell_context(layout, heard, context, row, bag)
    put(bag, at.position + now - here.bar_start)
    if number >= 0:
        put(bag, at.program + layout.program_of[number])
    if here.kind == Kind.NOTE and roots.latest != NO_PITCH:
        put(bag, at.pitch + roots.latest)
        put_class(
            layout, bag, at.pitch + layout.pitch_count, at.key + 2 + OCTAVE, roots.latest, key
        )
    if roots.tonic != NO_PITCH:
        put(bag, at.mode + here.mode)
    find_ends(layout, heard, row, ends)
    for note in range(here.first, here.notes):
        end = heard.end[row, note]
        if end > now:
            left = 0 if end == NEVER else min(end - now, layout.longest_left)
            tell_sounding(layout, heard.number[row, note], left, key, roots, bag, sounding)
        elif end > here.onset_before:
            tell_over(layout, heard, row, note, key, roots, bag)
    for number in begin:
        tell_sounding(layout, number, 0, key, roots, bag, sounding)

    tonic = roots.tonic if key < 0 else (key - layout.lowest_pitch) % OCTAVE
    if layout.programs:
        for program in range(layout.programs):
            tell_echo(layout, heard, row, program, bag, references)
        shared = references[2 * layout.programs :]
        shared[0], shared[1] = roots.latest + 1, roots.lowest + 1
        shared[2], shared[3] = roots.lowest_before + 1, tonic + 1
    of = tonic, roots.latest, roots.lowest
    tell_to_come(layout, context, row, bag, step, to_come, of)


@compiled_inside
def find_given(
    layout: Layout, heard: Heard, context: Context, row: int, step: int
) -> tuple[int, Ints]:
    """Return the number of the first given note to come, and those that begin here.

    The number is -1 if none is told. Given notes that begin here are told as if they sounded, since
    all else that begins here should fit them.
    """
    k, given, here = context.piece[row], context.given, heard.at[row]
    if k < 0:
        return -1, given.note[:0, 0]
    horizon = HORIZON_BEATS * layout.steps_per_beat
    first = stop = first_to_come(given, k, step, here.note, horizon)
    while first >= 0 and here.onset == here.now and given.onset[k, stop] == step:
        stop += 1
    return first, given.note[k, first:stop]


@compiled_inside
def find_roots(
    layout: Layout, heard: Heard, row: int, begin: Ints, references: Ints, moves: Ints
) -> Roots:
    """Return the pitches from which others are counted; set `moves` and some references.

    These references are the pitches that are over. `begin` has the given notes that begin here and
    have not been read.
    """
    here = heard.at[row]
    now, number = here.now, here.note
    latest = layout.pitch_of[number] if number >= 0 else NO_PITCH
    own = layout.program_of[number] if number >= 0 else NO_PITCH
    lowest = lowest_before = own_lowest = NO_PITCH
    for note in range(here.first, here.notes):
        pitch = layout.pitch_of[heard.number[row, note]]
        if pitch == NO_PITCH:
            continue
        program = layout.program_of[heard.number[row, note]]
        if heard.end[row, note] > now:
            lowest = lower(lowest, pitch)
            if layout.programs and heard.lines.onset[row, note] == now:
                moves[program] = lower(moves[program] - 1, pitch) + 1
        elif heard.end[row, note] > here.onset_before:
            lowest_before = lower(lowest_before, pitch)
            if program == own:
                own_lowest = lower(own_lowest, pitch)
            if layout.programs:
                references[program] = lower(references[program] - 1, pitch) + 1
    for other in begin:
        pitch = layout.pitch_of[other]
        if pitch != NO_PITCH:
            lowest = lower(lowest, pitch)
            if layout.programs:
                program = layout.program_of[other]
                moves[program] = lower(moves[program] - 1, pitch) + 1
    for program in range(layout.programs):
        move = moves[program] - references[program]
        has_moved = moves[program] and references[program] and move
        moves[program] = move + layout.pitch_count if has_moved else 0
    return Roots(here.tonic, latest, lowest, lowest_before, own_lowest)


@compiled_inside
def find_ends(layout: Layout, heard: Heard, row: int, ends: Ints) -> None:
    """Set how long a note whose Duration is to come would last to end with others (`SideInput`)."""
    here, most = heard.at[row], 0
    if here.kind != Kind.NOTE and here.kind != Kind.EXTEND:
        return
    latest, told = here.notes - 1, here.now + here.extends * layout.words.longest_duration
    for note in range(here.first, latest):
        end, together = heard.end[row, note], 0
        if end <= told:
            continue
        for other in range(here.first, latest):
            together += heard.end[row, other] == end
        if together >= most:
            most, ends[0] = together, end - told
        if note == latest - 1:
            ends[1] = end - told


@compiled_inside
def lower(pitch: int, other: int) -> int:
    """Return the lower of two pitches; the first may be NO_PITCH."""
    return other if pitch == NO_PITCH else min(pitch, other)


@compiled_inside
def tell_context(layout: Layout, heard: Heard, context: Context, row: int, bag: Bag) -> None:
    """Tell what only the caller knows, except given notes and chords."""
    at, follow = layout.at, context.bars[row] - heard.at[row].bar_count
    if context.bars[row] >= 0 and follow >= 0:
        put(bag, at.follow + min(follow, MAX_BARS_TO_FOLLOW))
    due = context.final[row] - heard.at[row].now
    if due >= 0:
        put(bag, at.final + halves(layout, due))
        position = context.final_position[row]
        put(bag, at.final + MOST_HALVES + 1 + halves(layout, position))
    for program in range(context.silent.shape[1]):
        if context.silent[row, program]:
            put(bag, at.silent + program)
    moved = min(abs(context.moved[row]), OCTAVE)
    if moved:
        put(bag, at.moved + moved - 1 + OCTAVE * (context.moved[row] < 0))
    if context.key[row] >= 0:
        put(bag, at.key + context.key[row] // OCTAVE)
        put(bag, at.key + 2 + context.key[row] % OCTAVE)


@compiled_inside
def tell_to_come(
    layout: Layout,
    context: Context,
    row: int,
    bag: Bag,
    step: int,
    to_come: int,
    roots: tuple[int, int, int],
) -> None:
    """Tell the given notes and the chords at a step of their piece.

    `to_come` and `roots` are those of `tell_given`.
    """
    at = layout.at
    if to_come >= 0:
        tell_given(
            bag,
            at.given,
            context.given,
            context.piece[row],
            to_come,
            step,
            HORIZON_BEATS * layout.steps_per_beat,
            roots if layout.programs else (NO_PITCH, NO_PITCH, NO_PITCH),
            layout.lowest_pitch,
        )
    if at.harmony and context.harmony[row] >= 0:
        chords, which = context.chords, context.harmony[row]
        tell_chords(bag, at.harmony, chords, which, step, roots, layout.lowest_pitch)


@compiled_inside
def halves(layout: Layout, steps: int) -> int:
    """Count half beats, rounded up, to at most MOST_HALVES."""
    return min(-(-2 * steps // layout.steps_per_beat), MOST_HALVES)


@compiled_inside
def tell_sounding(
    layout: Layout, number: int, left: int, key: int, roots: Roots, bag: Bag, sounding: Ints
) -> None:
    """Tell a note that sounds, and for how many more steps; 0: nobody knows."""
    at = layout.at
    voice = layout.program_of[number] if layout.programs else 0
    put(bag, at.left + voice * (layout.longest_left + 1) + left)
    put_note(layout, bag, at.sounding, at.key + 2 + 2 * OCTAVE, number, key)
    pitch = layout.pitch_of[number]
    if pitch != NO_PITCH:
        sounding[pitch % OCTAVE] = 1
        put_above(bag, at.chord, pitch, roots.lowest)
        put_above(bag, at.against, pitch, roots.latest)
        put_above(bag, at.degrees, pitch, roots.tonic)


@compiled_inside
def tell_over(
    layout: Layout, heard: Heard, row: int, note: int, key: int, roots: Roots, bag: Bag
) -> None:
    """Tell a note that sounded when notes last began, and has ended since."""
    at, number, latest = layout.at, heard.number[row, note], heard.at[row].note
    put_note(layout, bag, at.over, at.key + 2 + 3 * OCTAVE, number, key)
    pitch = layout.pitch_of[number]
    if pitch == NO_PITCH:
        return
    put_above(bag, at.against_over, pitch, roots.latest)
    put_above(bag, at.before, pitch, roots.lowest_before)
    put_above(bag, at.motion, pitch, roots.lowest)
    if roots.latest != NO_PITCH:
        program = layout.program_of[number]
        if program == layout.program_of[latest]:
            put(bag, at.step + OCTAVE + min(max(roots.latest - pitch, -OCTAVE), OCTAVE))
        if layout.programs:
            put_above(bag, at.between + OCTAVE * program, pitch, roots.own_lowest)


@compiled_inside
def put_note(layout: Layout, bag: Bag, block: int, degrees: int, number: int, key: int) -> None:
    """Put in a note's own feature; and, unless it is a drum, its pitch and its pitch class."""
    put(bag, block + layout.own[number])
    pitch = layout.pitch_of[number]
    if pitch != NO_PITCH:
        put(bag, block + layout.own_width + pitch)
        put_class(layout, bag, block + layout.own_width + layout.pitch_count, degrees, pitch, key)


@compiled_inside
def put_class(layout: Layout, bag: Bag, block: int, degrees: int, pitch: int, key: int) -> None:
    """Put in a pitch class, and how far it lies above the tonic if the key is known.

    Args:
        layout, bag: of the features.
        block: the first feature of the block of pitch classes.
        degrees: the first feature of the block of places above the tonic.
        pitch, key: the pitch, and `Context.key`.
    """
    pitch_class = (pitch + layout.lowest_pitch) % OCTAVE
    put(bag, block + pitch_class)
    if key >= 0:
        put_above(bag, degrees, pitch_class, key % OCTAVE)


@compiled_inside
def tell_echo(
    layout: Layout, heard: Heard, row: int, program: int, bag: Bag, references: Ints
) -> None:
    """Tell how a program goes on by its echo, as long as that is still due."""
    lines, now = heard.lines, heard.at[row].now
    line = lines.of_programs[row, program]
    if not line.length or line.due < now:
        return
    for column in echo.columns(line, now):
        put(bag, layout.at.echo + ECHO_WIDTH * program + column)
    pitch = lines.pitch[row, line.latest] + line.move
    if 0 <= pitch < layout.pitch_count:
        references[layout.programs + program] = pitch + 1


@compiled
def read(
    layout: Layout,
    heard: Heard,
    context: Context,
    ids: Ints,
    references: Ints,
    moves: Ints,
    sounding: Ints,
    ends: Ints,
    time: Ints,
) -> NDArray[np.int32]:
    """Read the next ids (B, T) of each row, and tell what stands beside each.

    Returns:
        The bag of `SideInput`. Its other arrays come in as zeros, and are set.
    """
    B, T = ids.shape
    capacity, size = heard.number.shape[1], layout.size
    notes = capacity + context.given.note.shape[1]  # given notes are told as if they sounded, too
    scratch = 16 * notes + VOICE_WIDTH * (context.silent.shape[1] + 1) + 128
    bag = Bag(np.empty(scratch, np.int64), np.zeros(1, np.int64))
    told_at = np.full(size, -1)  # the latest cell beside which each feature was told
    numbers = np.empty(64 * ids.size + size, np.int32)  # those of all cells, one after the other
    stops = np.zeros(ids.size + 1, np.int64)
    most = n = 0
    for cell in range(ids.size):
        row, t = cell // T, cell % T
        if ids[row, t] != Kind.PAD:
            hear(layout, heard, row, ids[row, t])
            time[row, t] = heard.at[row].now
            bag.size[0] = 0
            beside = references[row, t], moves[row, t], sounding[row, t], ends[row, t]
            tell(layout, heard, context, row, bag, *beside)
            if n + size > len(numbers):
                more = np.empty(2 * len(numbers), np.int32)
                for i in range(n):
                    more[i] = numbers[i]
                numbers = more
            for feature in bag.numbers[: bag.size[0]]:
                if told_at[feature] != cell:
                    told_at[feature] = cell
                    numbers[n] = feature
                    n += 1
        stops[cell + 1] = n
        most = max(most, n - stops[cell])
    bags = np.zeros((B, T, max(most, 1)), np.int32)
    for cell in range(ids.size):
        begin, stop = stops[cell], stops[cell + 1]
        for i in range(begin, stop):
            bags[cell // T, cell % T, i - begin] = numbers[i]
    return bags


def has_harmony(side_blocks: Sequence[int]) -> bool:
    """Return whether a decoder with these blocks of side input can be told chords."""
    return side_blocks[-1:] == (CHORDS_WIDTH,)  # always the last block


class SideFeatures:
    """The side input beside ids (`SideInput`): features in blocks, and numbers.

    Blocks with what comes from outside, where it is known (`Context`):

        follow      how many bars follow the id's own
        final       how many half beats (half seconds on a grid of seconds) remain until the final
                    chord begins, and how many lie between it and its bar line
        silent      programs that are silent in this window, or in the whole piece
        moved       by how many semitones the window was moved up, then down, to an octave

    Blocks that follow from the ids in the window, up to and including the id itself:

        position    steps from the bar line
        program     the program of the latest note that begins here
        pitch       the pitch and the pitch class of the id itself, if it is a note
        sounding    the notes that sound (with more than FEW programs: the programs that sound, and
                    the drums); their pitches; their pitch classes
        over        the notes that sounded when notes last began, and have ended since: the same
        left        for how many more steps each note sounds: not known, 1, 2 ..; told by program,
                    or with more than FEW programs for all together

    Blocks that are the same in every key: distances in semitones, within the octave:

        chord       what sounds, above the lowest note that sounds
        against     what sounds, above the latest note that begins here
        against_over  what is over, above that note
        before      what is over, above the lowest note that is over
        motion      what is over, above the lowest note that sounds
        step        to the latest note from the notes of its program that are over, up to an octave
        between     by program: what is over, above the lowest note of the latest note's program
                    that is over; not with more than FEW programs
        degrees     what sounds, above the tonic of the key that the notes so far follow best
        mode        of that key: major, minor
        echo        by program: how it goes on if it repeats itself (`data.tokens.echo`); not with
                    more than FEW programs

    From outside again:

        given       the given notes that are still to come, by program, or with more than FEW
                    programs all together (`data.tokens.given`)
        key         of the whole piece: the mode; the tonic; and, in semitones above the tonic, the
                    id itself if it is a note, what sounds, and what is over
        harmony     the chord that holds, and the next one (`data.tokens.chords`); only in models
                    that have learned it

    And beside the bag, as numbers:

        references  pitches to count from. By program, the lowest that is over; by program, the one
                    that comes next if the program repeats itself; then, for all programs, the
                    latest note that begins here, the lowest that sounds, the lowest that is over,
                    and the tonic. With more than FEW programs there are none
        moves       by program, not with more than FEW: the semitones by which its lowest note has
                    moved since notes last began, plus the number of pitches; 0: it has not
        sounding    by pitch class, from that of the vocabulary's lowest pitch: whether it sounds
        ends        beside a note whose Duration is to come: how many steps it must last to end with
                    as much of what sounds as possible, and with the note before it
        time        steps from the first bar of the window

    Drums have no pitch.

    Args:
        vocabulary: what the ids mean.
        has_harmony: whether chords can be told.

    Attributes:
        blocks: the features of each block, by its name.
        size: the number of features plus 1, since 0 is no feature.
        shape: what a decoder must know about it, by the names in its config.
        layout: what the loops must know about it.
    """

    def __init__(self, vocabulary: Vocabulary, has_harmony: bool = False) -> None:
        self.vocabulary = vocabulary
        programs = len(vocabulary.programs)
        few = programs if programs <= FEW else 0
        longest_left = vocabulary.longest_duration + 1  # this many steps or more
        number = np.arange(vocabulary.counts[Kind.NOTE])
        program_of, pitch = np.divmod(number, vocabulary.pitch_count)
        is_drum = vocabulary.is_drum_note[vocabulary.ids(Kind.NOTE)]
        own_width = len(number) if few else programs + vocabulary.pitch_count
        widths = self._block_widths(few, own_width, longest_left)
        if has_harmony:  # the last block: others have the same numbers without it
            widths["harmony"] = CHORDS_WIDTH
        starts = dict(zip(widths, itertools.accumulate(widths.values(), initial=1), strict=False))
        self.blocks = {
            name: slice(starts[name], starts[name] + width) for name, width in widths.items()
        }
        self.size = 1 + sum(widths.values())
        self.shape: dict[str, Any] = {"side_blocks": tuple(widths.values())}
        if few:
            first = vocabulary.first(Kind.NOTE)
            pitches = {"n_pitches": vocabulary.pitch_count, "first_note": first}
            self.shape |= {"n_programs": programs, **pitches, "n_classes": OCTAVE}
        self.shape["n_durations"] = vocabulary.longest_duration
        self.shape["first_duration"] = vocabulary.first(Kind.DURATION)
        firsts = {"harmony": 0, **starts}
        self.layout = Layout(
            at=np.array([tuple(firsts.values())], records(firsts))[0],
            size=self.size,
            words=vocabulary.words,
            programs=few,
            pitch_count=vocabulary.pitch_count,
            lowest_pitch=vocabulary.lowest_pitch,
            steps_per_beat=vocabulary.grid.steps_per_beat,
            longest_left=longest_left,
            own_width=own_width,
            own=number if few else np.where(is_drum, programs + pitch, program_of),
            program_of=program_of,
            pitch_of=np.where(is_drum, NO_PITCH, pitch),
            profiles=KEY_PROFILES,
        )
        self._no_given, self._no_chords = self.gathered([]), told_chords([])

    def _block_widths(self, few: int, own_width: int, longest_left: int) -> dict[str, int]:
        """Return the number of features in each block, in the order of the blocks."""
        pitches, programs = self.vocabulary.pitch_count, len(self.vocabulary.programs)
        notes = own_width + pitches + OCTAVE
        return {
            "follow": MAX_BARS_TO_FOLLOW + 1,
            "final": 2 * (MOST_HALVES + 1),
            "silent": programs,
            "moved": 2 * OCTAVE,
            "position": self.vocabulary.longest_bar,
            "program": programs,
            "pitch": pitches + OCTAVE,
            "sounding": notes,
            "over": notes,
            "left": (few or 1) * (longest_left + 1),
            **dict.fromkeys(("chord", "against", "against_over", "before", "motion"), OCTAVE),
            "step": 2 * OCTAVE + 1,
            "between": OCTAVE * few,
            "degrees": OCTAVE,
            "mode": 2,
            "echo": ECHO_WIDTH * few,
            "given": (few or 1) * VOICE_WIDTH,
            "key": 2 + 4 * OCTAVE,
        }

    def start(self, batch: int, notes: int) -> Heard:
        """Return the state of rows that have read nothing, with room for `notes` notes in each."""
        at = at_start(self.vocabulary, batch, Listener)
        at["onset"] = at["onset_before"] = -1
        at["tonic"] = at["mode"] = NO_PITCH
        return Heard(
            at=at,
            number=np.zeros((batch, notes), np.int64),
            end=np.zeros((batch, notes), np.int64),
            lines=Lines.of_none(batch, notes, self.layout.programs),
            classes=np.zeros((batch, OCTAVE), np.int64),
        )

    def with_room(self, heard: Heard, notes: int) -> Heard:
        """Return a state with room for `notes` more notes: the same one, or one twice as large."""
        capacity = heard.number.shape[1]
        if heard.at["notes"].max() + notes <= capacity:
            return heard

        def larger(array: Ints) -> Ints:
            return np.pad(array, ((0, 0), (0, capacity + notes)))

        of_notes = {
            name: larger(getattr(heard.lines, name))
            for name in ("pitch", "onset", "before", "matched")
        }
        lines = heard.lines._replace(**of_notes)
        return heard._replace(number=larger(heard.number), end=larger(heard.end), lines=lines)

    def nothing(self, batch: int) -> Context:
        """Return the context of windows about which nothing is known."""
        unknown, zero = np.full(batch, -1), np.zeros(batch, dtype=np.int64)
        silent = np.zeros((batch, len(self.vocabulary.programs)), dtype=bool)
        return Context(
            bars=unknown,
            final=unknown,
            final_position=unknown,
            key=unknown,
            moved=zero,
            silent=silent,
            piece=unknown,
            begin=zero,
            given=self._no_given,
            harmony=unknown,
            chords=self._no_chords,
        )

    def gathered(self, pieces: list[GivenNotes]) -> Given:
        """Return the given notes of pieces, as `Context` has them."""
        program_of, pitch_of = self.layout.program_of, self.layout.pitch_of
        voice_of = program_of if self.layout.programs else np.zeros_like(program_of)
        return gathered(pieces, voice_of, pitch_of)

    def read(self, ids: ArrayLike, context: Context, heard: Heard) -> SideArrays:
        """Read the next ids (B, T) of rows, and return what stands beside them.

        Args:
            ids: the ids, with Pad at either end.
            context: what else is known about their windows.
            heard: what the rows have heard before in these windows; it changes in place, and must
                have room for T more notes.
        """
        ids = np.ascontiguousarray(ids, dtype=np.int64)
        programs = self.layout.programs
        width = 2 * programs + SHARED_REFERENCES if programs else 0
        references = np.zeros((*ids.shape, width), dtype=np.int64)
        moves = np.zeros((*ids.shape, programs), dtype=np.int64)
        sounding = np.zeros((*ids.shape, OCTAVE), dtype=np.int64)
        ends = np.zeros((*ids.shape, ENDS), dtype=np.int64)
        time = np.zeros(ids.shape, dtype=np.int64)
        bag = read(self.layout, heard, context, ids, references, moves, sounding, ends, time)
        return SideInput(bag, references, moves, sounding, ends, time)

    def compute(self, ids: ArrayLike, context: Context | None = None) -> SideArrays:
        """Return the side input of windows (B, T) that begin at Start or at a Bar.

        Args:
            ids: the windows, with Pad at either end.
            context: what else is known about them; None: nothing.
        """
        ids = np.asarray(ids, dtype=np.int64)
        B, T = ids.shape
        return self.read(ids, context or self.nothing(B), self.start(B, T))
