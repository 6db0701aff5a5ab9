"""Random music for the tests: canonical Scores, and id sequences drawn through the grammar."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pretty_midi
from hypothesis import strategies as st

from data.batches.options import DataOptions
from data.batches.windows import TrainingWindows
from data.canonical import canonical
from data.corpus.survey import COMMON_METERS, Survey
from data.midi.events import Events
from data.midi.io import pretty_midi_events
from data.midi.quantize import score_from_events
from data.score import BAR, DRUMS, NOTE, SECONDS, UNNAMED, Grid, Part, Score
from data.tokens.augment import transposition_ranges
from data.tokens.features import SideFeatures
from data.tokens.grammar import Grammar
from data.tokens.labels import describe
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary, VocabularyError

GRID = Grid()
BOTH = (GRID, SECONDS)
PARTS = Grid(parts=(Part("MELODY", 0), Part("BRIDGE", 0), Part("Bass", 33)))
PROGRAMS = [0, 40, 41, DRUMS]

EMPTY = Score(np.empty(0, NOTE), np.empty(0, BAR), np.empty(0, np.int32), GRID)

# Small enough that notes collide, ring over bars and start again all the time.
SMALL = Vocabulary(
    meters=((2, 4), (3, 8), (4, 4), (7, 32)),
    tempos=(72, 80, 120),
    programs=(0, 40, 128),
    lowest_pitch=60,
    highest_pitch=63,
    velocities=(64, 80),
    grid=GRID,
)
# The grammar is tightest where there is only one note to play.
ONE_NOTE = Vocabulary(((3, 8), (4, 4)), (120,), (0,), 60, 60, (80,), GRID)
# Few steps a second, so that each is met.
SMALL_SECONDS = Vocabulary(((1, 4),), (60,), (0, 40, 128), 60, 63, (64, 80), Grid(10, "seconds"))
ONE_DRUM_SECONDS = Vocabulary(((1, 4),), (60,), (128,), 36, 36, (80,), SECONDS)
SMALL_PARTS = replace(SMALL, programs=(0, 2, DRUMS, UNNAMED), grid=PARTS)
VOCABULARIES = {
    "small, with parts": SMALL_PARTS,
    "small": SMALL,
    "one note": ONE_NOTE,
    "small, in seconds": SMALL_SECONDS,
    "one drum, in seconds": ONE_DRUM_SECONDS,
}


def random_score(rng: np.random.Generator, grid: Grid = GRID) -> Score:
    """A Score with several programs, meters, tempi, short bars, long notes and unisons."""
    bars, tempo = _random_bars(rng, grid)
    count = int(rng.integers(0, 60))
    # some begin after the last bar
    span = max(1, int(bars["length"].sum()) + int(rng.integers(0, 5 * grid.steps_per_beat)))
    notes = np.empty(count, dtype=NOTE)
    notes["onset"] = rng.integers(0, span, size=count)
    durations = rng.geometric(rng.uniform(0.12, 2.4) / grid.steps_per_beat, size=count)
    notes["duration"] = np.minimum(durations, 40 * grid.steps_per_beat)
    notes["pitch"] = rng.choice(rng.integers(0, 128, size=8), size=count)
    notes["velocity"] = rng.integers(1, 128, size=count)
    programs = [*range(len(grid.parts)), DRUMS, UNNAMED, UNNAMED + 40] if grid.parts else PROGRAMS
    notes["program"] = rng.choice(programs, size=count)
    return canonical(notes, bars, tempo, grid)[0]


def _random_bars(rng: np.random.Generator, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Some bars of three meters, and their tempi; none where there is no meter."""
    bar_count = int(rng.integers(1, 9)) if grid.has_meter else 0
    bars = np.empty(bar_count, dtype=BAR)
    meters = [*COMMON_METERS, (7, 32)]  # 7/32 is not a whole number of steps
    chosen = [meters[i] for i in np.repeat(rng.integers(len(meters), size=3), 3)[:bar_count]]
    bars["numerator"], bars["denominator"] = np.array(chosen, dtype=int).reshape(-1, 2).T
    whole = np.array([grid.bar_steps(*meter) for meter in chosen], dtype=int)
    is_short = rng.random(bar_count) < 0.3
    bars["length"] = np.where(is_short, rng.integers(1, whole + 1), whole)
    tempo = np.repeat(rng.uniform(20, 290, size=3), 3)[:bar_count]
    return bars, tempo


def scores(*grids: Grid) -> st.SearchStrategy[Score]:
    """Canonical Scores on the grids; hypothesis picks the random generator's seed."""
    seeds, grid = st.integers(0, 2**32 - 1), st.sampled_from(grids or (GRID,))
    return st.builds(lambda s, g: random_score(np.random.default_rng(s), g), seeds, grid)


def vocabulary_for(*pieces: Score, transpose: int = 0) -> Vocabulary:
    """A vocabulary that holds the pieces."""
    survey = Survey(pieces[0].grid)
    for piece in pieces:
        survey.add(encode(piece, survey.wide))
    try:
        return survey.vocabulary(transpose)
    except VocabularyError:  # without notes
        base = SMALL if pieces[0].grid.has_meter else SMALL_SECONDS
        return replace(base, grid=pieces[0].grid)


def windows_of(split, vocabulary, context_length, reach, **options) -> TrainingWindows:
    """Training windows that are moved by so many semitones at most."""
    features = SideFeatures(vocabulary, has_harmony=options.get("chords", 0) > 0)
    drawn = DataOptions(transpose=reach, **options)
    return TrainingWindows(split, features, context_length, drawn)


def random_walks(
    vocabulary: Vocabulary, rng: np.random.Generator, batch: int, steps: int
) -> list[np.ndarray]:
    """Id sequences drawn through the grammar, from Start to End; rows that do not end go.

    A kind is drawn first and then one of its ids, so that rare kinds are seen.
    """
    grammar = Grammar(vocabulary)
    state = grammar.start(batch)
    rows = np.full((batch, steps + 1), vocabulary.first(Kind.PAD))
    rows[:, 0] = vocabulary.first(Kind.START)
    firsts = np.array(vocabulary.firsts[:-1])
    counts = np.array(vocabulary.counts)
    starts = firsts[counts > 0]
    for step in range(1, steps + 1):
        allowed = grammar.allowed(state)
        assert allowed.any(axis=1).all(), "a state without a way on"
        kinds = np.logical_or.reduceat(allowed, starts, axis=1)
        kind = np.argmax(kinds * rng.random(kinds.shape), axis=1)
        is_kind = vocabulary.kind_of[None] == np.flatnonzero(counts > 0)[kind][:, None]
        rows[:, step] = np.argmax((allowed & is_kind) * rng.random(allowed.shape), axis=1)
        grammar.advance(state, rows[:, step])
    end = vocabulary.first(Kind.END)
    return [row[: int(np.argmax(row == end)) + 1] for row in rows if (row == end).any()]


def piece(notes, bars=((4, 4, 48),), tempo=120.0, grid=GRID):
    """A Score from rows of onset, duration, pitch, velocity, program."""
    bars = np.array([*bars] if grid.has_meter else [], dtype=BAR)
    return canonical(np.array(notes, dtype=NOTE), bars, [tempo] * len(bars), grid)[0]


def scale(count):
    """Rows for `piece`: quarter notes up the chromatic scale."""
    return [(12 * i, 12, 60 + i % 12, 80, 0) for i in range(count)]


def transposition_range(ids, vocabulary):
    """By how many semitones a piece may move, down (as a negative number) and up."""
    ((low, high),) = transposition_ranges(ids, np.zeros(1, dtype=np.int64), vocabulary).tolist()
    return low, high


def line(pitches, start=0, duration=12, program=0):
    """Rows for `piece`: one note after another."""
    return [
        (start + duration * number, duration, pitch, 80, program)
        for number, pitch in enumerate(pitches)
    ]


def chord(*pitches, start=0, duration=48):
    return [(start, duration, pitch, 80, 0) for pitch in pitches]


def in_parts(*chords):
    """A chord a beat, each of four pitches, soprano first; None: the voice rests."""
    return piece(
        [
            (12 * beat, 12, pitch, 80, 40 + voice)
            for beat, pitches in enumerate(chords)
            for voice, pitch in enumerate(pitches)
            if pitch is not None
        ]
    )


def masks_one_by_one(grammar, ids):
    """(T - 1, V), what a grammar allows in the place of each id after Start, asked id by id."""
    ids = np.asarray(ids, dtype=np.int64)
    if not len(ids) or ids[0] != grammar.vocabulary.first(Kind.START):
        raise VocabularyError("a piece must begin with Start")
    state, masks = grammar.start(1), []
    for index, token in enumerate(ids[1:]):
        masks.append(grammar.allowed(state)[0])
        if not masks[-1][token]:
            raise VocabularyError(f"{describe(grammar.vocabulary, int(token))} at {index + 1}")
        grammar.advance(state, ids[index + 1 : index + 2])
    return np.array(masks)


def parallels_in(score: Score) -> list[tuple[int, int, int]]:
    """The (step, program, program) at which two instruments, a note at a time, move in parallel.

    To another note in the same direction, a unison, an octave or a fifth apart before and after.
    """
    lines: dict[int, dict[int, tuple[int, int]]] = {}  # by program and onset: pitch and end
    for onset, duration, pitch, _, program in score.notes.tolist():
        lines.setdefault(program, {})[onset] = pitch, onset + duration
    moves: dict[int, dict[int, tuple[int, int]]] = {
        p: {} for p in lines
    }  # by onset: from which pitch to which
    for program, line in lines.items():
        for before, onset in pairwise(sorted(line)):
            if line[before][1] >= onset:
                moves[program][onset] = line[before][0], line[onset][0]
    return [
        (onset, *pair)
        for pair in combinations(sorted(moves), 2)
        for onset in sorted(moves[pair[0]].keys() & moves[pair[1]].keys())
        if _are_parallel(*moves[pair[0]][onset], *moves[pair[1]][onset])
    ]


def _are_parallel(old: int, new: int, its_old: int, its_new: int) -> bool:
    interval = abs(old - its_old) % 12
    is_same_way = (new - old) * (its_new - its_old) > 0
    return interval in (0, 7) and is_same_way and abs(new - its_new) % 12 == interval


def events_of(rows, meters=((0, 4, 4),), tempi=((0, 120.0),), ticks_per_beat=480, tracks=()):
    """What a MIDI file says: notes (start, end, pitch, velocity, program), meters and tempi."""
    notes, meters = (np.array(each, dtype=np.int64) for each in (rows, meters))
    tempi = np.array(tempi, dtype=np.float64).reshape(-1, 2)
    return Events(ticks_per_beat, notes.reshape(-1, 5), meters.reshape(-1, 3), tempi, tracks)


def score_in(midi: pretty_midi.PrettyMIDI, grid: Grid) -> Score:
    """Return what a pretty_midi object says, on a grid."""
    return score_from_events(pretty_midi_events(midi), grid)[0]
