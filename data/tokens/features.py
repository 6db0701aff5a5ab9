"""SideFeatures: what the ids so far say about where each id stands, spelled out beside it.

A decoder could work all of this out from the ids: when it is, what sounds, what has just ended,
when each voice will be free. Told, a small one learns from few pieces what it would need many
for. Nothing here looks ahead, so the likelihood stays exact.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.interface import OCTAVE, SHARED_REFERENCES, SideInput
from data.tokens.spans import NEVER, NO_PITCH, Ints, Sounds, first_reaching, latest, spread, take
from data.tokens.vocabulary import Kind, Vocabulary
from data.tonality import follows_key

MAX_BARS_TO_FOLLOW = 16  # bars that follow; more are told as so many
FEW = 16  # programs; a note of more has no column of its own

SideArrays = SideInput[NDArray[np.integer[Any]]]


class SideFeatures:
    """The side input beside ids (`SideInput`): bits in S columns, block by block.

    Told from outside, all 0 where it is not known:

        follow      so many bars follow the id's own
        silent      programs that were made silent in this window
        moved       semitones up, then semitones down, by which it was moved, to an octave

    After an id, that is with the knowledge of it and of all ids before it in the same window:

        position    steps from the bar line
        program     of the latest note that begins here
        pitch       of the id itself, if it is a note; and its pitch class
        sounding    the notes that sound, or of more than FEW programs, these programs and the
                    drums; their pitches; their pitch classes
        over        the notes that sounded at the onset before, and no more; the same three
        left        by program, or of them all, the steps for which notes go on: not told, 1, 2 ..

    and, the same in every key, by semitones within the octave:

        chord       what sounds, above the lowest of it
        against     what sounds, above the latest note that begins here
        against_over  what is over, above that note
        before      what is over, above the lowest of it
        motion      what is over, above the lowest that sounds
        step        to the latest note from those of its program that are over, up to an octave
        between     by program, what is over, above the lowest of them of the latest note's program;
                    not of more than FEW programs
        degrees     what sounds, above the tonic of the key that the notes so far follow best
        mode        of that key: major, minor

    and beside the bits, as numbers

        references  pitches to count from: by program the lowest that is over, then the latest note
                    that begins here, the lowest that sounds, the lowest that is over, the tonic;
                    there are none of more than FEW programs
        moves       by program, not of more than FEW: the lowest that begins here less the lowest
                    that is over
        time        steps from the first bar of the window

    Drums have no pitch.

    Args:
        vocabulary: of the ids.

    Attributes:
        blocks: the columns of each block of bits, by name.
        size: S.
        reference_programs: programs that have references: P, or 0 of more than FEW.
        shape: what a decoder must know of it, by the names in its config.
        columns: those that a note sets, (N, C) of the vocabulary's N notes, by what it does.
        program_of, pitch_of: (N,) number of each note's program, and its pitch from the lowest up.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        pitches, programs = vocabulary.pitch_count, len(vocabulary.programs)
        notes, is_few = vocabulary.counts[Kind.NOTE], programs <= FEW
        own = notes if is_few else programs + pitches
        self.most_left = vocabulary.longest_duration + 1  # so much or more
        widths = {
            "follow": MAX_BARS_TO_FOLLOW + 1,
            "silent": programs,
            "moved": 2 * OCTAVE,
            "position": vocabulary.longest_bar,
            "program": programs,
            "pitch": pitches + 12,
            "sounding": own + pitches + 12,
            "over": own + pitches + 12,
            "left": (programs if is_few else 1) * (self.most_left + 1),
            **dict.fromkeys(("chord", "against", "against_over", "before", "motion"), 12),
            "step": 2 * OCTAVE + 1,
            "between": OCTAVE * programs if is_few else 0,
            "degrees": 12,
            "mode": 2,
        }
        ends = itertools.accumulate(widths.values())
        self.blocks = {
            name: slice(end - width, end)
            for (name, width), end in zip(widths.items(), ends, strict=True)
        }
        self.size = sum(widths.values())
        self.reference_programs = programs if is_few else 0
        self.shape: dict[str, Any] = {"side_blocks": tuple(widths.values())}
        if is_few:
            first = vocabulary.first(Kind.NOTE)
            self.shape |= {"n_programs": programs, "n_pitches": pitches, "first_note": first}
        at = {name: block.start for name, block in self.blocks.items()}
        self.steps_at = self.blocks["step"].start + OCTAVE  # of no step
        self.firsts = np.array(vocabulary.firsts)

        # The columns of each note, (N, 1) or (N, 3). Drums, which have no pitch, have the first of
        # them three times.
        number = np.arange(notes)[:, None]
        program, pitch = np.divmod(number, pitches)
        pitch_class = (pitch + vocabulary.lowest_pitch) % 12
        pitched = np.hstack([pitch, pitches + pitch_class])  # (N, 2)
        is_drum = vocabulary.is_drum_note[vocabulary.ids(Kind.NOTE), None]
        self.program_of, self.pitch_of = program[:, 0], np.where(is_drum, NO_PITCH, pitch)[:, 0]
        if not is_few:
            number = np.where(is_drum, programs + pitch, program)

        def columns(own: Ints, pitches_at: int) -> Ints:
            return np.hstack([own, np.where(is_drum, own, pitches_at + pitched)])

        self.columns = {
            "program": at["program"] + program,
            "itself": columns(at["program"] + program, at["pitch"]),
            "sounding": columns(at["sounding"] + number, at["sounding"] + own),
            "over": columns(at["over"] + number, at["over"] + own),
            "left": at["left"] + program * is_few * (self.most_left + 1),
        }

    def empty(self, batch: int, length: int) -> SideArrays:
        """Return a side input of zeros, for B windows of T tokens."""
        programs = self.reference_programs
        references = programs + SHARED_REFERENCES if programs else 0
        return SideInput(
            bits=np.zeros((batch, length, self.size), dtype=np.int16),
            references=np.zeros((batch, length, references), dtype=np.int64),
            moves=np.zeros((batch, length, programs), dtype=np.int64),
            time=np.zeros((batch, length), dtype=np.int64),
        )

    def of(self, ids: ArrayLike) -> SideArrays:
        """Beside windows (B, T) that begin at Start or at a Bar, Pad at either end.

        Nothing is told from outside.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kind = self.vocabulary.kind_of[ids]
        value = ids - self.firsts[kind]
        length = ids.shape[1]
        out = self.empty(*ids.shape)
        flat = out.bits.reshape(-1)
        if not ids.size:
            return out

        def put(rows: Ints, places: Ints, columns: Ints) -> None:
            """Sets columns (N, C) beside N ids."""
            cells = rows * length + places
            flat[cells[:, None] * self.size + columns] = 1

        is_token = kind != Kind.PAD
        now, onset_before, position, note_at = self._times(kind, value)
        out.time[:] = now * is_token
        rows, places = np.nonzero(is_token)
        put(rows, places, self.blocks["position"].start + position[rows, places, None])
        rows, places = np.nonzero((note_at >= 0) & is_token)
        put(rows, places, self.columns["program"][value[rows, note_at[rows, places]]])
        rows, begin = np.nonzero(kind == Kind.NOTE)
        number = value[rows, begin]
        put(rows, begin, self.columns["itself"][number])

        # A note sounds from its own place to that of the first id at its end or later; from there
        # it is over, until the first id that has an onset between.
        told, end = (of_all[rows, begin] for of_all in self._ends(kind, value, now))
        last = length - is_token[:, ::-1].argmax(axis=1)[rows]  # Pad at the right end
        silent = np.minimum(first_reaching(now, rows, end), last)
        gone = np.minimum(first_reaching(onset_before, rows, end), last)
        sounding = spread(begin, silent)
        which, place = sounding
        put(rows[which], place, self.columns["sounding"][number[which]])
        is_told = place >= told[which]
        steps = np.minimum(end[which] - now[rows[which], place], self.most_left)
        left = self.columns["left"][number[which]] + (steps * is_told)[:, None]
        put(rows[which], place, left)
        over = spread(silent, gone)
        which, place = over
        put(rows[which], place, self.columns["over"][number[which]])

        newest = np.where(note_at >= 0, take(value, note_at), -1)  # (B, T) number of a Note
        which, place = sounding
        is_new = now[rows[which], place] == now[rows[which], begin[which]]
        sounds, is_over, begun = (
            Sounds(rows[which], place, number[which], self.pitch_of, ids.shape)
            for which, place in (sounding, over, (which[is_new], place[is_new]))
        )
        tonic, mode = self._keys(kind, value)
        rows, places = np.nonzero(tonic != NO_PITCH)
        put(rows, places, self.blocks["mode"].start + mode[rows, places, None])
        root = np.where(newest >= 0, self.pitch_of[newest], NO_PITCH)
        for name, notes, roots in (
            ("chord", sounds, sounds.lowest),
            ("against", sounds, root),
            ("against_over", is_over, root),
            ("before", is_over, is_over.lowest),
            ("motion", is_over, sounds.lowest),
            ("degrees", sounds, tonic),
        ):
            which, above = notes.above(roots)
            columns = self.blocks[name].start + above % OCTAVE
            put(notes.rows[which], notes.places[which], columns[:, None])
        which, above = is_over.above(root)
        rows, places = is_over.rows[which], is_over.places[which]
        is_own = self.program_of[is_over.number[which]] == self.program_of[newest[rows, places]]
        columns = self.steps_at + np.clip(-above, -OCTAVE, OCTAVE)
        put(rows[is_own], places[is_own], columns[is_own, None])
        if programs := self.reference_programs:
            own = is_over.lowest_by(self.program_of, programs)  # (B, T, P)
            new = begun.lowest_by(self.program_of, programs)  # (B, T, P)
            mine = np.take_along_axis(own, self.program_of[newest][..., None], axis=2)[..., 0]
            which, above = is_over.above(np.where(root == NO_PITCH, NO_PITCH, mine))
            program = self.program_of[is_over.number[which]]
            columns = self.blocks["between"].start + OCTAVE * program + above % OCTAVE
            put(is_over.rows[which], is_over.places[which], columns[:, None])
            lowest = (root, sounds.lowest, is_over.lowest, tonic)  # (B, T) each
            pitches = np.concatenate([own, np.stack(lowest, axis=-1)], axis=-1)  # (B, T, R)
            out.references[:] = (pitches + 1) * is_token[..., None]
            moves = (new - own) * ((own != NO_PITCH) & (new != NO_PITCH))
            apart = np.where(moves, moves + self.vocabulary.pitch_count, 0)
            out.moves[:] = apart * is_token[..., None]
        return out

    def _keys(self, kind: Ints, value: Ints) -> tuple[Ints, Ints]:
        """Of each id (B, T) the key that the notes so far follow; none beside Pad."""
        heard = np.zeros((*kind.shape, 12), dtype=np.int64)
        rows, places = np.nonzero(kind == Kind.NOTE)
        pitch = self.pitch_of[value[rows, places]]
        heard[rows, places, (pitch + self.vocabulary.lowest_pitch) % 12] = pitch != NO_PITCH
        tonic, mode = self.key_of(heard.cumsum(axis=1))
        return np.where(kind == Kind.PAD, NO_PITCH, tonic), mode

    def key_of(self, heard: Ints) -> tuple[Ints, Ints]:
        """Of the notes so far by pitch class (..., 12): the tonic, as a pitch, and the mode."""
        tonic, mode = follows_key(heard)
        return np.where(tonic < 0, NO_PITCH, (tonic - self.vocabulary.lowest_pitch) % 12), mode

    def _times(self, kind: Ints, value: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Of each id (B, T): its time, that of the onset before this time (-1: none), the steps
        from the bar line to it, and the place of the latest Note that begins at it (-1: none).
        """
        is_bar, is_position = kind == Kind.BAR, kind == Kind.POSITION
        length = np.where(is_bar, self.vocabulary.whole_bars[np.where(is_bar, value, 0)], 0)
        bar, event = latest(is_bar), latest(is_bar | is_position)
        rows, places = np.nonzero((kind == Kind.LENGTH) & (bar >= 0))
        length[rows, bar[rows, places]] = value[rows, places] + 1
        bar_end = length.cumsum(axis=1)
        at_bar = np.where(bar >= 0, take(length, bar), 0)
        position = np.where(take(is_position, event) & (event >= 0), take(value, event), 0)
        now = bar_end - at_bar + position
        onset = latest(is_position)
        earlier = np.concatenate([np.full((len(kind), 1), -1), onset[:, :-1]], axis=1)
        earlier = np.where(event >= 0, take(earlier, event), -1)
        onset_before = np.where(earlier >= 0, take(now, earlier), -1)
        note = latest(kind == Kind.NOTE)
        return now, onset_before, position, np.where(note > event, note, -1)

    def _ends(self, kind: Ints, value: Ints, now: Ints) -> tuple[Ints, Ints]:
        """(B, T), at the Notes: the place of the note's Duration (T: beyond), and when it ends."""
        told, end = np.full(kind.shape, kind.shape[1]), np.full(kind.shape, NEVER)
        note, extends = latest(kind == Kind.NOTE), (kind == Kind.EXTEND).cumsum(axis=1)
        rows, places = np.nonzero((kind == Kind.DURATION) & (note >= 0))
        notes = note[rows, places]
        more = extends[rows, places] - extends[rows, notes]
        steps = value[rows, places] + 1 + more * self.vocabulary.longest_duration
        told[rows, notes] = places
        end[rows, notes] = now[rows, notes] + steps
        return told, end

    def tell(self, side: SideArrays, follow: Ints) -> None:
        """Sets, beside ids (B, T), how many bars follow the id's own: (B, T), -1 where unknown."""
        rows, places = np.nonzero(follow >= 0)
        columns = self.blocks["follow"].start + np.minimum(follow[rows, places], MAX_BARS_TO_FOLLOW)
        side.bits[rows, places, columns] = 1

    def tell_augmentation(
        self,
        side: SideArrays,
        ids: Ints,
        silent: NDArray[np.bool_],
        moved: Ints,
    ) -> None:
        """Sets, beside ids (B, T), what augmentation did to windows.

        So a model learns from what no piece is like and yet does not write it (Jun et al. 2020,
        Distribution Augmentation for Generative Modeling).

        Args:
            silent: (B, P) the programs that were made silent.
            moved: (B,) the semitones by which it was moved.
        """
        is_token = (ids != 0)[..., None]
        columns = np.arange(1, OCTAVE + 1)
        columns = np.append(columns, -columns) == moved.clip(-OCTAVE, OCTAVE)[:, None]  # (B, 2 O)
        side.bits[..., self.blocks["silent"]] = silent[:, None] & is_token
        side.bits[..., self.blocks["moved"]] = columns[:, None] & is_token
