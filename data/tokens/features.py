"""SideFeatures: what the ids so far say about where each id stands, as numbers beside it.

A decoder could work all of this out from the ids: when it is, what sounds, what has just ended,
when each voice will be free. A small one that gets it ready-made learns from few pieces what it
would need many for. Nothing here looks ahead but to what is given, so the likelihood stays exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.interface import OCTAVE, SHARED_REFERENCES, SideInput
from data.keys import Key, follows_key
from data.tokens.cursor import Windows, read_windows
from data.tokens.echo import ECHO_WIDTH, read_echoes
from data.tokens.given import VOICE_WIDTH, GivenFeatures, GivenNotes
from data.tokens.spans import (
    NO_PITCH,
    Ints,
    SideArrays,
    Sounds,
    first_reaching,
    row_ends,
    set_bits,
    spread,
    take,
)
from data.tokens.vocabulary import Kind, Vocabulary

MAX_BARS_TO_FOLLOW = 16  # bars that follow; more count as so many
MOST_HALVES = 16  # half beats, or half seconds, in which endings are told; more count as so many
HORIZON_BEATS = 3  # beats, or seconds, for which a given note is told before it is due
FEW = 16  # programs; a note of more has no column of its own
# Blocks of intervals, within the octave: which notes, above which root.
INTERVALS = {
    "chord": ("sounding", "lowest"),
    "against": ("sounding", "latest"),
    "against_over": ("over", "latest"),
    "before": ("over", "lowest before"),
    "motion": ("over", "lowest"),
    "degrees": ("sounding", "tonic"),
}


class SideFeatures:
    """The side input beside ids (`SideInput`): bits in S columns, block by block.

    From outside, all 0 where it is not known:

        follow      so many bars follow the id's own
        final       in how many half beats (of a grid of seconds: half seconds) the final chord
                    begins, and as how many from its bar line
        silent      programs that were made silent in this window
        moved       semitones up, then semitones down, by which it was moved, to an octave

    After an id, that is with the knowledge of it and of all ids before it in the same window:

        position    steps from the bar line
        program     of the latest note that begins here
        pitch       of the id itself, if it is a note; and its pitch class
        sounding    the notes that sound, or of more than FEW programs, these programs and the
                    drums; their pitches; their pitch classes
        over        the notes that sounded at the onset before, and no more; the same three
        left        by program, or of them all, the steps for which notes go on: not known, 1, 2 ..

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
        echo        by program, how it goes on if it does as it did before (`Echo`); not of more
                    than FEW programs

    From outside again, all 0 where nothing is given or known:

        key         of the whole piece: the mode, the tonic; and by semitones above that tonic, the
                    id itself, if it is a note, what sounds, what is over
        given       the given notes that are still to come, by program, or of more than FEW all
                    together (`GivenFeatures`)

    and beside the bits, as numbers

        references  pitches to count from: by program the lowest that is over; by program the next
                    by its echo; then the latest note that begins here, the lowest that sounds, the
                    lowest that is over, the tonic; there are none of more than FEW programs
        moves       by program, not of more than FEW: the lowest that begins here less the lowest
                    that is over
        time        steps from the first bar of the window

    Drums have no pitch.

    Args:
        vocabulary: of the ids.

    Attributes:
        blocks: the columns of each block of bits, by name.
        size: S.
        longest_left: the most steps for which a note is said to go on.
        no_step: the column of block `step` that says 0.
        reference_programs: programs that have references: P, or 0 of more than FEW.
        shape: what a decoder must know of it, by the names in its config.
        columns: those that a note sets, (N, C) of the vocabulary's N notes, by what it does.
        program_of, pitch_of: (N,) number of each note's program, and its pitch from the lowest up.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        programs = len(vocabulary.programs)
        self.reference_programs = programs if programs <= FEW else 0
        self.longest_left = vocabulary.longest_duration + 1  # so much or more
        widths = self._block_widths()
        ends = itertools.accumulate(widths.values())
        self.blocks = {
            name: slice(end - width, end)
            for (name, width), end in zip(widths.items(), ends, strict=True)
        }
        self.size = sum(widths.values())
        self.shape: dict[str, Any] = {"side_blocks": tuple(widths.values())}
        if self.reference_programs:
            first = vocabulary.first(Kind.NOTE)
            pitches = {"n_pitches": vocabulary.pitch_count, "first_note": first}
            self.shape |= {"n_programs": programs, **pitches}
        self.no_step = self.blocks["step"].start + OCTAVE  # the column of a step of 0

        number = np.arange(vocabulary.counts[Kind.NOTE])
        self.program_of, pitch = np.divmod(number, vocabulary.pitch_count)
        is_drum = vocabulary.is_drum_note[vocabulary.ids(Kind.NOTE)]
        self.pitch_of = np.where(is_drum, NO_PITCH, pitch)
        self.columns = self._note_columns(number, pitch, is_drum)

    def _own_width(self) -> int:
        """Count the columns for single notes; of more than FEW programs, for programs and drums."""
        vocabulary = self.vocabulary
        if self.reference_programs:
            return vocabulary.counts[Kind.NOTE]
        return len(vocabulary.programs) + vocabulary.pitch_count

    def _block_widths(self) -> dict[str, int]:
        """Return the number of columns of each block, in their order."""
        vocabulary, few = self.vocabulary, self.reference_programs
        pitches, programs = vocabulary.pitch_count, len(vocabulary.programs)
        notes = self._own_width() + pitches + OCTAVE
        return {
            "follow": MAX_BARS_TO_FOLLOW + 1,
            "final": 2 * (MOST_HALVES + 1),
            "silent": programs,
            "moved": 2 * OCTAVE,
            "position": vocabulary.longest_bar,
            "program": programs,
            "pitch": pitches + OCTAVE,
            "sounding": notes,
            "over": notes,
            "left": (few or 1) * (self.longest_left + 1),
            **dict.fromkeys(("chord", "against", "against_over", "before", "motion"), OCTAVE),
            "step": 2 * OCTAVE + 1,
            "between": OCTAVE * few,
            "degrees": OCTAVE,
            "mode": 2,
            "echo": ECHO_WIDTH * few,
            "given": (few or 1) * VOICE_WIDTH,
            "key": 2 + 4 * OCTAVE,
        }

    def _note_columns(
        self, number: Ints, pitch: Ints, is_drum: NDArray[np.bool_]
    ) -> dict[str, Ints]:
        """Return the columns that each note sets, (N, 1) or (N, 3), in each of some blocks.

        Drums, which have no pitch, have the first column three times.
        """
        vocabulary, few = self.vocabulary, self.reference_programs
        at = {name: block.start for name, block in self.blocks.items()}
        pitches, width = vocabulary.pitch_count, self._own_width()
        pitch_class = (pitch + vocabulary.lowest_pitch) % OCTAVE
        pitched = np.stack([pitch, pitches + pitch_class], axis=1)  # (N, 2)
        if not few:
            number = np.where(is_drum, len(vocabulary.programs) + pitch, self.program_of)

        def columns(own: Ints, pitches_at: int) -> Ints:
            drum_or_pitch = np.where(is_drum[:, None], own[:, None], pitches_at + pitched)
            return np.hstack([own[:, None], drum_or_pitch])

        return {
            "program": (at["program"] + self.program_of)[:, None],
            "itself": columns(at["program"] + self.program_of, at["pitch"]),
            "sounding": columns(at["sounding"] + number, at["sounding"] + width),
            "over": columns(at["over"] + number, at["over"] + width),
            "left": (at["left"] + self.program_of * bool(few) * (self.longest_left + 1))[:, None],
        }

    def empty(self, batch: int, length: int) -> SideArrays:
        """Return a side input of zeros, for B windows of T tokens."""
        programs = self.reference_programs
        references = 2 * programs + SHARED_REFERENCES if programs else 0
        return SideInput(
            bits=np.zeros((batch, length, self.size), dtype=np.int16),
            references=np.zeros((batch, length, references), dtype=np.int64),
            moves=np.zeros((batch, length, programs), dtype=np.int64),
            time=np.zeros((batch, length), dtype=np.int64),
        )

    def compute(self, ids: ArrayLike) -> SideArrays:
        """Return the side input of windows (B, T) that begin at Start or a Bar, Pad at either end.

        What only the caller can know (the first five blocks) is left 0.
        """
        ids = np.asarray(ids, dtype=np.int64)
        side = self.empty(*ids.shape)
        if not ids.size:
            return side
        windows = read_windows(ids, self.vocabulary)
        is_token = windows.kind != Kind.PAD
        side.time[:] = windows.now * is_token
        self._set_place(side.bits, windows, is_token)
        sounding, over, begun = self._set_notes(side.bits, windows, is_token)
        latest_note = np.where(windows.note_at >= 0, take(windows.value, windows.note_at), -1)
        tonic, mode = self._keys(windows)
        rows, places = np.nonzero(tonic != NO_PITCH)
        set_bits(side.bits, rows, places, self.blocks["mode"].start + mode[rows, places, None])
        roots = {
            "latest": np.where(latest_note >= 0, self.pitch_of[latest_note], NO_PITCH),
            "lowest": sounding.lowest,
            "lowest before": over.lowest,
            "tonic": tonic,
        }
        notes = {"sounding": sounding, "over": over}
        for name, (which, root) in INTERVALS.items():
            chosen, above = notes[which].above(roots[root])
            columns = self.blocks[name].start + above % OCTAVE
            rows, places = notes[which].rows[chosen], notes[which].places[chosen]
            set_bits(side.bits, rows, places, columns[:, None])
        self._set_steps(side.bits, over, latest_note, roots["latest"])
        if self.reference_programs:
            self._set_references(side, over, begun, latest_note, roots, is_token)
            self._set_echoes(side, windows, is_token)
        return side

    def _set_place(self, bits: NDArray[Any], windows: Windows, is_token: NDArray[np.bool_]) -> None:
        """Set where in its bar each id stands, and what the id itself is or belongs to."""
        rows, places = np.nonzero(is_token)
        position = windows.position[rows, places, None]
        set_bits(bits, rows, places, self.blocks["position"].start + position)
        rows, places = np.nonzero((windows.note_at >= 0) & is_token)
        number = windows.value[rows, windows.note_at[rows, places]]
        set_bits(bits, rows, places, self.columns["program"][number])
        rows, places = np.nonzero(windows.kind == Kind.NOTE)
        set_bits(bits, rows, places, self.columns["itself"][windows.value[rows, places]])

    def _set_notes(
        self, bits: NDArray[Any], windows: Windows, is_token: NDArray[np.bool_]
    ) -> tuple[Sounds, Sounds, Sounds]:
        """Set what sounds beside each id, for how long, and what is over.

        A note sounds from its own place to that of the first id at its end or later; from there
        it is over, until the first id that has an onset between.

        Returns:
            What sounds, what is over, and of what sounds that which begins at the id's time.
        """
        rows, begin = np.nonzero(windows.kind == Kind.NOTE)
        number, now = windows.value[rows, begin], windows.now
        duration_at, end = windows.duration_at[rows, begin], windows.note_end[rows, begin]
        last = row_ends(is_token)[rows]
        silent = np.minimum(first_reaching(now, rows, end), last)
        gone = np.minimum(first_reaching(windows.onset_before, rows, end), last)

        def sounds(which: Ints, place: Ints) -> Sounds:
            return Sounds(rows[which], place, number[which], self.pitch_of, now.shape)

        which, place = spread(begin, silent)
        set_bits(bits, rows[which], place, self.columns["sounding"][number[which]])
        steps = np.minimum(end[which] - now[rows[which], place], self.longest_left)
        steps *= place >= duration_at[which]
        set_bits(bits, rows[which], place, self.columns["left"][number[which]] + steps[:, None])
        is_new = now[rows[which], place] == now[rows[which], begin[which]]
        sounding, begun = sounds(which, place), sounds(which[is_new], place[is_new])
        which, place = spread(silent, gone)
        set_bits(bits, rows[which], place, self.columns["over"][number[which]])
        return sounding, sounds(which, place), begun

    def _set_steps(
        self, bits: NDArray[Any], over: Sounds, latest_note: Ints, latest_pitch: Ints
    ) -> None:
        """Set the steps to the latest note from those of its program that are over."""
        chosen, above = over.above(latest_pitch)
        rows, places = over.rows[chosen], over.places[chosen]
        is_own = self.program_of[over.number[chosen]] == self.program_of[latest_note[rows, places]]
        columns = self.no_step + np.clip(-above, -OCTAVE, OCTAVE)
        set_bits(bits, rows[is_own], places[is_own], columns[is_own, None])

    def _set_references(
        self,
        side: SideArrays,
        over: Sounds,
        begun: Sounds,
        latest_note: Ints,
        roots: dict[str, Ints],
        is_token: NDArray[np.bool_],
    ) -> None:
        """Set what there is for each program: intervals between them, references and moves."""
        own, new = (
            notes.lowest_by(self.program_of, self.reference_programs) for notes in (over, begun)
        )
        its_own = np.take_along_axis(own, self.program_of[latest_note][..., None], axis=2)[..., 0]
        has_latest = roots["latest"] != NO_PITCH
        chosen, above = over.above(np.where(has_latest, its_own, NO_PITCH))
        columns = OCTAVE * self.program_of[over.number[chosen]] + above % OCTAVE
        columns += self.blocks["between"].start
        set_bits(side.bits, over.rows[chosen], over.places[chosen], columns[:, None])
        shared = np.stack([*roots.values()], axis=-1)  # (B, T, SHARED_REFERENCES)
        no_echo = np.full_like(own, NO_PITCH)
        pitches = np.concatenate([own, no_echo, shared], axis=-1)
        side.references[:] = (pitches + 1) * is_token[..., None]
        moves = (new - own) * ((own != NO_PITCH) & (new != NO_PITCH))
        apart = np.where(moves, moves + self.vocabulary.pitch_count, 0)
        side.moves[:] = apart * is_token[..., None]

    def _set_echoes(self, side: SideArrays, windows: Windows, is_token: NDArray[np.bool_]) -> None:
        """Set the echo of each program, until it is past or the program has another note."""
        rows, begin = np.nonzero(windows.kind == Kind.NOTE)
        program, pitch = np.divmod(windows.value[rows, begin], self.vocabulary.pitch_count)
        echoes, after = read_echoes(rows, program, pitch, windows.now[rows, begin])
        last = row_ends(is_token)[rows]
        which, places = spread(begin, np.where(after, begin[after], last))
        now = windows.now[rows[which], places]
        is_due = now <= echoes.due[which]  # -1 of none
        which, places, now = which[is_due], places[is_due], now[is_due]
        rows, program = rows[which], program[which]
        columns = self.blocks["echo"].start + ECHO_WIDTH * program[:, None]
        set_bits(side.bits, rows, places, columns + echoes.take(which).columns(now))
        expected = echoes.pitch[which]
        is_known = (expected >= 0) & (expected < self.vocabulary.pitch_count)
        place = self.reference_programs + program
        side.references[rows, places, place] = (expected + 1) * is_known

    def _keys(self, windows: Windows) -> tuple[Ints, Ints]:
        """Return of each id (B, T) the key that the notes so far follow; none beside Pad."""
        heard = np.zeros((*windows.kind.shape, OCTAVE), dtype=np.int64)
        rows, places = np.nonzero(windows.kind == Kind.NOTE)
        pitch = self.pitch_of[windows.value[rows, places]]
        pitch_class = (pitch + self.vocabulary.lowest_pitch) % OCTAVE
        heard[rows, places, pitch_class] = pitch != NO_PITCH
        tonic, mode = self.key_of(heard.cumsum(axis=1))
        return np.where(windows.kind == Kind.PAD, NO_PITCH, tonic), mode

    def key_of(self, heard: Ints) -> tuple[Ints, Ints]:
        """Return tonic, as a pitch, and mode by the notes so far of each pitch class (..., 12)."""
        tonic, mode = follows_key(heard)
        return np.where(tonic < 0, NO_PITCH, (tonic - self.vocabulary.lowest_pitch) % OCTAVE), mode

    def set_bars_to_follow(self, side: SideArrays, follow: Ints) -> None:
        """Set how many bars follow each id's own: (B, T), -1 where that is not known."""
        rows, places = np.nonzero(follow >= 0)
        columns = self.blocks["follow"].start + np.minimum(follow[rows, places], MAX_BARS_TO_FOLLOW)
        side.bits[rows, places, columns] = 1

    def set_final(self, side: SideArrays, due: Ints, position: Ints) -> None:
        """Set when the final chord, the last notes that begin together, is to begin.

        Args:
            side: of ids (B, T).
            due: (B, T) steps until then; below 0 where that is not known.
            position: (B,) its steps from the bar line.
        """
        first = self.blocks["final"].start
        self._set_halves(side, first, due)
        position = np.where(due >= 0, position[:, None], -1)
        self._set_halves(side, first + MOST_HALVES + 1, position)

    def _set_halves(self, side: SideArrays, first: int, steps: Ints) -> None:
        """Set the column, from the first on, of steps (B, T) in half beats; none below 0."""
        rows, places = np.nonzero(steps >= 0)
        half = self.vocabulary.grid.steps_per_beat / 2
        halves = np.ceil(steps[rows, places] / half).astype(np.int64)
        side.bits[rows, places, first + np.minimum(halves, MOST_HALVES)] = 1

    def set_key(
        self, side: SideArrays, is_token: NDArray[np.bool_], keys: Sequence[Key | None]
    ) -> None:
        """Set the key of whole pieces beside ids (B, T), before any given notes are set.

        Notes, given ones too, then count from its tonic, not from that of the notes so far.

        Args:
            side: of these ids, from `compute`.
            is_token: (B, T) whether it is none of Pad.
            keys: of each row; None: it is not known.
        """
        block = self.blocks["key"].start
        ends = [self.blocks[name].stop for name in ("pitch", "sounding", "over")]
        classes = np.array(ends)[:, None] - OCTAVE  # of each block pitch classes are last
        for row, key in enumerate(keys):
            if key is None:
                continue
            bits = side.bits[row]  # (T, S), of Pad all 0
            bits[:, [block + (key.mode == "minor"), block + 2 + key.tonic]] = is_token[row, :, None]
            above = (classes + (key.tonic + np.arange(OCTAVE)) % OCTAVE).ravel()
            bits[:, block + 2 + OCTAVE : self.blocks["key"].stop] = bits[:, above]
            if self.reference_programs:
                tonic = (key.tonic - self.vocabulary.lowest_pitch) % OCTAVE
                side.references[row, is_token[row], -1] = tonic + 1

    def of_given(self, given: GivenNotes) -> GivenFeatures:
        """Return what sets the block `given` beside ids of a piece with these given notes."""
        few, at = self.reference_programs, self.blocks["given"].start
        voice_of = self.program_of if few else np.zeros_like(self.program_of)
        pitches = self.pitch_of, self.vocabulary.lowest_pitch
        horizon = HORIZON_BEATS * self.vocabulary.grid.steps_per_beat
        return GivenFeatures(given, voice_of, *pitches, horizon, at, has_references=few > 0)

    def set_augmentation(
        self,
        side: SideArrays,
        ids: Ints,
        silent: NDArray[np.bool_],
        moved: Ints,
    ) -> None:
        """Set what augmentation did to windows of ids (B, T).

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
