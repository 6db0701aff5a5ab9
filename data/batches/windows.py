"""Batches of music: training windows, and whole pieces with the masks of their grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

import numpy as np

from common.arrays import Bools, Ints, Reals
from common.interface import NOT_SCORED, PAD, SideArrays
from data.batches.cutting import WindowCutter, ids_and_targets
from data.batches.options import DataOptions
from data.batches.stretched import with_stretched
from data.batches.written import read_written
from data.chords import Span
from data.corpus.corpus import Corpus
from data.corpus.store import Split
from data.followed_keys import key_followed
from data.harmony import Pulse, find_chords, hold
from data.keys import key_number
from data.score import DRUMS, Score
from data.style import Style
from data.tokens.augment import (
    WAYS,
    choose_given,
    ids_left,
    misread,
    programs_of,
    silent_programs,
    transpositions,
)
from data.tokens.bag import NO_PITCH
from data.tokens.chords import ToldChords, told_chords
from data.tokens.context import bar_lengths, rebase
from data.tokens.features import Context, SideFeatures
from data.tokens.given import GivenNotes
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import decode, decode_parts
from data.tokens.vocabulary import Kind, Vocabulary

LEAST_SLIP, MOST_SLIP = 1, 4  # semitones by which a misread note moves
KNOWN_LENGTH_SHARE = 0.5  # of the training windows: the model is told how far the end is
KNOWN_FINAL_SHARE = 0.7  # of these: it is also told when the final chord begins
KNOWN_KEY_SHARE = 0.3  # of all windows: it is told the key of the whole piece
KNOWN_ENSEMBLE_SHARE = 0.3  # of all windows: it is told which programs never play in the piece
PARTLY_TOLD_SHARE = 0.3  # of the windows with chords: it is told only some of the chords
COUNTED_PIECES = 200
EVALUATION_TOKENS = 2**14  # tokens in a batch of whole pieces, about
SAMPLE_TOKENS = 2**16  # tokens that are enough, in training, to tell how good a model is

MasksOf = Callable[[Ints], Bools]


class TrainingWindows:
    """The training windows of a split: W = context_length + 1 tokens that begin at a bar.

    `WindowCutter` says where they begin.

    Args:
        split: where the windows come from; at least one of its pieces must have a note.
        features: what computes the side input.
        context_length: T, how many tokens the model reads.
        options: how windows are drawn.
    """

    def __init__(
        self, split: Split, features: SideFeatures, context_length: int, options: DataOptions
    ) -> None:
        self._split, self.features, self._options = split, features, options
        self._vocabulary = vocabulary = features.vocabulary
        self._kind_of = vocabulary.kind_of
        self._length = context_length + 1
        self._tables = transpositions(vocabulary, options.transpose)
        self._slips = transpositions(vocabulary, MOST_SLIP)
        self._cutter = WindowCutter(
            *(split.tokens, split.piece_offsets, split.bar_offsets, split.bar_tempos),
            *(self._length, vocabulary),
        )

    def batch(self, seed: int, step: int, size: int) -> tuple[Ints, Ints, SideArrays]:
        """Draw the windows of a training step, which depend only on the arguments.

        Returns:
            The ids (size, T), Pad at the right end; the targets (size, T); and the side input. A
            target is the next id, or NOT_SCORED if there is none, if it restates the tempo, or if
            it is forced.
        """
        drawn = self._choose(seed, step, size)
        window, is_restated, is_beyond = self._whole(drawn)
        harmony, chords = self._harmony(drawn, window)
        ids, targets, silent = self._cut(drawn, window, is_restated, is_beyond)
        pieces, number, is_given = self._give(drawn, ids, targets)
        final, position = self._finals(drawn)
        bars_left = self._cutter.bar_after[drawn.piece] - drawn.bar
        context = Context(
            bars=np.where(drawn.has_known_length, bars_left, -1),
            final=final,
            final_position=position,
            key=self._keys(drawn),
            moved=drawn.shift,
            silent=silent | self._absent(drawn),
            piece=number,
            begin=np.zeros_like(number),
            given=self.features.gathered(pieces),
            harmony=harmony,
            chords=chords,
        )
        ids = misread(ids, np.where(is_given, 0, drawn.slip), self._slips)
        return ids, targets, self.features.compute(ids, context)

    def _choose(self, seed: int, step: int, size: int) -> _Drawn:
        rng, options = np.random.default_rng([seed, step]), self._options
        piece, bar = self._cutter.draw(rng, size)
        reach = options.transpose
        low, high = self._split.shifts[piece].clip(-reach, reach).T
        shift = rng.integers(low, high + 1)
        has_known_length = rng.random(size) < KNOWN_LENGTH_SHARE
        has_silence = rng.random(size) < options.silence
        silence = np.where(has_silence, rng.random(size), -1)
        order = rng.random((size, len(self._vocabulary.programs)))
        shape = (size, self._length - 1)
        has_slipped = rng.random(shape) < options.misreading
        slip = rng.integers(LEAST_SLIP, MOST_SLIP + 1, shape) * rng.choice((-1, 1), shape)
        is_giving = rng.random(size) < options.given
        giving = np.where(is_giving, rng.integers(2**32, size=size), -1)
        slip *= has_slipped
        has_known_key = rng.random(size) < KNOWN_KEY_SHARE
        has_known_final = has_known_length & (rng.random(size) < KNOWN_FINAL_SHARE)
        has_known_ensemble = rng.random(size) < KNOWN_ENSEMBLE_SHARE
        telling = np.where(rng.random(size) < options.chords, rng.integers(2**32, size=size), -1)
        return _Drawn(
            *(piece, bar, shift, has_known_length, has_known_final, silence, order, slip, giving),
            *(has_known_key, has_known_ensemble, telling),
        )

    def _whole(self, drawn: _Drawn) -> tuple[Ints, Bools, Bools]:
        """Return windows (B, W) as `WindowCutter.cut` does, transposed, and with Pad at the end."""
        window, is_restated, is_beyond = self._cutter.cut(drawn.piece, drawn.bar)
        window = self._tables[(drawn.shift + self._options.transpose)[:, None], window]
        return np.where(is_beyond, PAD, window), is_restated, is_beyond

    def _harmony(self, drawn: _Drawn, windows: Ints) -> tuple[Ints, ToldChords]:
        """Return which chords each window (B, W) is told, by number (-1: none), and the chords.

        These are the chords of all voices together, for the whole window or a part of it.
        """
        number, pieces = np.full(len(windows), -1), list[list[Span]]()
        holds = list[list[bool]]()
        for row in np.flatnonzero(drawn.telling >= 0):
            rng = np.random.default_rng(drawn.telling[row])
            spans, own = window_chords(windows[row], self._vocabulary)
            first, stop = 0, len(spans)
            if rng.random() < PARTLY_TOLD_SHARE:
                first, stop = np.sort(rng.integers(len(spans) + 1, size=2)).tolist()
            number[row] = len(pieces)
            pieces.append(spans[first:stop])
            holds.append(own[first:stop])
        return number, told_chords(pieces, holds=holds)

    def _cut(
        self, drawn: _Drawn, window: Ints, is_restated: Bools, is_beyond: Bools
    ) -> tuple[Ints, Ints, Bools]:
        """Return the ids (B, T), the targets (B, T), and which programs are silent (B, P).

        Args:
            drawn: the choices.
            window, is_restated, is_beyond: from `_whole`.
        """
        silent = np.zeros_like(drawn.order, dtype=bool)
        if self._options.silence:
            silent = self._silent(window, drawn)
            is_left = ids_left(window, silent, self._vocabulary)
            to_left = np.argsort(~is_left, axis=1, kind="stable")  # (B, W)
            window = np.take_along_axis(window, to_left, axis=1)
            is_restated = np.take_along_axis(is_restated, to_left, axis=1)
            is_beyond = ~np.take_along_axis(is_left, to_left, axis=1)
        return *ids_and_targets(window, is_beyond, is_restated), silent

    def _give(
        self, drawn: _Drawn, ids: Ints, targets: Ints
    ) -> tuple[list[GivenNotes], Ints, Bools]:
        """Give notes of some windows (B, T), and mark targets that are forced as NOT_SCORED.

        Returns:
            What is given in K windows; (B,) the number of each window among them, or -1; and (B, T)
            whether an id belongs to a given note.
        """
        pieces: list[GivenNotes] = []
        number, is_given = np.full(len(ids), -1), np.zeros(ids.shape, dtype=bool)
        for row, seed in enumerate(drawn.giving):
            if seed < 0 or not (self._kind_of[ids[row]] == Kind.NOTE).any():
                continue
            rng = np.random.default_rng(seed)
            way = rng.choice(WAYS)
            given, is_given[row], is_forced = choose_given(ids[row], way, rng, self._vocabulary)
            targets[row, :-1][is_forced[1:]] = NOT_SCORED
            number[row] = len(pieces)
            pieces.append(given)
        return pieces, number, is_given

    def _keys(self, drawn: _Drawn) -> Ints:
        """Return the key of the whole piece of each window, as `Context` has it."""
        keys = np.full(len(drawn.piece), -1)
        for row in np.flatnonzero(drawn.has_known_key):
            notes = self._notes_of(drawn.piece[row])
            pitch = self.features.layout.pitch_of[notes - self._vocabulary.first(Kind.NOTE)]
            pitch = pitch[pitch != NO_PITCH] + self._vocabulary.lowest_pitch + drawn.shift[row]
            keys[row] = key_number(key_followed(pitch))
        return keys

    def _absent(self, drawn: _Drawn) -> Bools:
        """Return (B, P): which programs never play in a window's piece, if the model is told."""
        absent = np.zeros_like(drawn.order, dtype=bool)
        for row in np.flatnonzero(drawn.has_known_ensemble):
            absent[row] = True
            notes = self._notes_of(drawn.piece[row])
            absent[row, programs_of(notes, self._vocabulary)] = False
        return absent

    def _notes_of(self, piece: int) -> Ints:
        """Return the ids of all notes in a piece."""
        ids = self._split.piece(piece)
        notes: Ints = ids[self._kind_of[ids] == Kind.NOTE].astype(np.int64)
        return notes

    def _silent(self, window: Ints, drawn: _Drawn) -> Bools:
        """Return (B, P): which programs of windows (B, W) fall silent."""
        present = np.zeros_like(drawn.order, dtype=bool)
        rows, places = np.nonzero(self._kind_of[window] == Kind.NOTE)
        present[rows, programs_of(window[rows, places], self._vocabulary)] = True
        return silent_programs(present, drawn.silence, drawn.order)

    def _finals(self, drawn: _Drawn) -> tuple[Ints, Ints]:
        """Return when the final chord of each window's piece begins, if the model is told.

        Returns:
            (B,) steps from the first bar of the window, or -1 if it is not told; and (B,) steps
            from the bar line.
        """
        final, position = np.full((2, len(drawn.piece)), -1)
        for row in np.flatnonzero(drawn.has_known_final):
            end = self._split.piece_offsets[drawn.piece[row] + 1]
            bars = self._split.bar_offsets[
                drawn.bar[row] : self._cutter.bar_after[drawn.piece[row]]
            ]
            if len(bars):
                last = self._split.tokens[bars[-1] : end]
                positions = last[self._kind_of[last] == Kind.POSITION].astype(np.int64)
                position[row] = positions[-1] - self._vocabulary.first(Kind.POSITION)
                lengths = bar_lengths(self._split.tokens, bars[:-1], self._vocabulary)
                final[row] = lengths.sum() + position[row]
        return final, position


@dataclass(frozen=True)
class _Drawn:
    """The random choices behind the windows of a batch."""

    piece: Ints  # (B,)
    bar: Ints  # (B,) the bar at which each window begins
    shift: Ints  # (B,) semitones by which it is transposed
    has_known_length: Bools  # (B,) whether the model is told how far the end is
    has_known_final: Bools  # (B,) whether it is told when the final chord begins
    silence: Reals  # (B,) `share` of `silent_programs`
    order: Reals  # (B, P) its `order`
    slip: Ints  # (B, T) semitones by which a note there is misread
    giving: Ints  # (B,) the random seed of what is given; -1: nothing
    has_known_key: Bools  # (B,) whether the model is told the key of the piece
    has_known_ensemble: Bools  # (B,) whether it is told which programs never play in the piece
    telling: Ints  # (B,) the random seed of which chords it is told; -1: none


def window_chords(ids: Ints, vocabulary: Vocabulary) -> tuple[list[Span], list[bool]]:
    """Return the chords of a window (T,), Pad at its right end, and whether each chord holds.

    Times count from the first bar of the window.
    """
    notes, bars, _ = decode_parts(ids[ids != PAD], vocabulary)
    notes = notes[notes["program"] != DRUMS]
    onset, length, pitch = (notes[n].astype(np.int64) for n in ("onset", "duration", "pitch"))
    stop = int(bars["length"].sum())
    end = np.where(length > 0, np.minimum(onset + length, stop), stop)  # 0: its Duration is missing
    music = onset, end, pitch, Pulse.of(bars, vocabulary.grid)
    spans = find_chords(*music)
    return spans, hold(spans, *music)


def sampled(lengths: Ints) -> Ints:
    """Return the places, rising, of a sample of pieces with these lengths in tokens.

    The sample is drawn at random, but always the same, until it has SAMPLE_TOKENS.
    """
    order = np.random.default_rng(0).permutation(len(lengths))
    before = lengths[order].cumsum() - lengths[order]
    return np.sort(order[before < SAMPLE_TOKENS])


def batches_of(lengths: Ints, is_sample: bool) -> list[Ints]:
    """Group pieces with these lengths in tokens, all of them or a sample, into batches."""
    chosen = sampled(lengths) if is_sample else np.arange(len(lengths))
    number = np.cumsum(lengths[chosen]) // EVALUATION_TOKENS
    return np.split(chosen, np.flatnonzero(np.diff(number)) + 1)


class PieceBatch(TypedDict):
    """Whole pieces as they are, to be scored exactly."""

    pieces: list[Ints]  # (T,), from Start to End
    allowed: list[Bools]  # (T - 1, V), what the grammar admits after Start
    notes: list[int]  # how many notes each piece has


class WholePieces:
    """A split in batches of whole pieces.

    Args:
        split: the pieces.
        masks_of: returns which ids may stand in each place of a piece (T,) after Start, (T - 1, V).
        is_sample: whether a sample stands for the split (see `sampled`).

    Attributes:
        total: how many pieces the split has.
        count: how many of them are in the batches.
    """

    def __init__(self, split: Split, masks_of: MasksOf, is_sample: bool = False) -> None:
        self.split, self.masks_of = split, masks_of
        self.total = len(split)
        self.batches = batches_of(np.diff(split.piece_offsets), is_sample)
        self.count = sum(map(len, self.batches))

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[PieceBatch]:
        for members in self.batches:
            pieces = [self.split.piece(index) for index in members]
            yield {
                "pieces": pieces,
                "allowed": [self.masks_of(piece) for piece in pieces],
                "notes": self.split.note_counts[members].tolist(),
            }


@dataclass(frozen=True)
class MusicBatches:
    """The batches of a corpus of music."""

    corpus: Corpus
    context_length: int
    options: DataOptions

    @cached_property
    def features(self) -> SideFeatures:
        """What computes the side input."""
        return SideFeatures(self.corpus.vocabulary, has_harmony=self.options.chords > 0)

    @cached_property
    def some_pieces(self) -> list[Score]:
        """Training pieces from all over the split, which stand for all of them."""
        split = self.corpus.split("train")
        places = np.linspace(0, len(split), min(len(split), COUNTED_PIECES), endpoint=False)
        pieces = map(split.piece, places.astype(int).tolist())
        return [decode(ids, self.corpus.vocabulary) for ids in pieces]

    @cached_property
    def style(self) -> Style:
        """The style of these pieces."""
        return Style.of(self.some_pieces)

    @cached_property
    def learned(self) -> Split:
        """The pieces that training windows come from."""
        options, vocabulary = self.options, self.corpus.vocabulary
        split = self.corpus.split("train")
        if options.written is not None:
            kept = options.kept_instruments
            split = split.followed_by(read_written(options.written, vocabulary, kept))
        if options.stretch and not vocabulary.grid.has_meter:
            split = with_stretched(split, options.stretch, vocabulary)
        return split

    def training(self) -> TrainingWindows:
        """Return the training windows."""
        return TrainingWindows(self.learned, self.features, self.context_length, self.options)

    @property
    def masks_of(self) -> MasksOf:
        """A function that returns which ids the grammar admits in each place of a piece."""
        return Grammar(self.corpus.vocabulary).masks

    def rebase(self, history: Ints) -> Ints:
        """Return the prompt with which a piece goes on after a full context (`context.rebase`)."""
        return rebase(history, self.context_length, self.corpus.vocabulary)
