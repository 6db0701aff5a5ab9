"""The guide: whatever is asked for, in any combination, and whoever chooses the tokens."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from data.guide import Guide
from data.horizon import BARS_TOLD, Length
from data.keys import WishError, key_pitch_classes
from data.score import BAR, DRUMS, NOTE, Grid, Score, canonical
from data.tokenizer import decode, encode
from data.vocabulary import Kind, Vocabulary
from data.wishes import Wishes
from tests.music import EMPTY

COARSE = Grid(3)
VOCABULARIES = (
    Vocabulary(
        ((2, 4), (3, 8), (4, 4), (7, 32)), (72, 80, 120), (0, 40, 128), 60, 63, (64, 80), COARSE
    ),
    Vocabulary(((3, 8), (4, 4)), (120,), (0, 40), 60, 61, (80,), COARSE),
    Vocabulary(((3, 8), (4, 4)), (90, 120), (0,), 60, 60, (80,), COARSE),
    Vocabulary(((1, 4),), (60,), (0, 40, 128), 60, 63, (64, 80), Grid(5, "seconds")),
    Vocabulary(((1, 4),), (60,), (128,), 36, 36, (80,), Grid(4, "seconds")),
)
MOST_TOKENS = 20_000


def by_kind(vocabulary, seed):
    """Draws a kind and then one of its ids, so that rare kinds are seen."""
    rng = np.random.default_rng(seed)

    def choose(mask):
        ids = np.flatnonzero(mask)
        kinds = vocabulary.kind_of[ids]
        return int(rng.choice(ids[kinds == rng.choice(np.unique(kinds))]))

    return choose


def by_rank(vocabulary, seed):
    """Always the one of highest rank, as greedy sampling: ends nothing that it need not end."""
    rank = np.random.default_rng(seed).permutation(vocabulary.size)
    return lambda mask: int(np.argmax(np.where(mask, rank, -1)))


CHOOSERS = {
    "by kind": by_kind,
    "by rank": by_rank,
    "lowest": lambda vocabulary, seed: lambda mask: int(np.flatnonzero(mask)[0]),
    "highest": lambda vocabulary, seed: lambda mask: int(np.flatnonzero(mask)[-1]),
}


def walk(guide, state, choosers, most=MOST_TOKENS):
    """(B, T) ids that the choosers take, a chooser a row, until every row has ended."""
    pad = guide.vocabulary.first(Kind.PAD)
    columns = []
    while len(columns) < most:
        mask = guide.allowed(state)
        assert mask.any(axis=1).all(), "a state without a way on"
        if mask[:, pad].all():
            assert mask.sum() == len(mask)
            break
        ids = np.array([c(row) if not row[pad] else pad for c, row in zip(choosers, mask, strict=True)])
        assert mask[np.arange(len(ids)), ids].all()
        guide.advance(state, ids)
        columns.append(ids)
    return np.array(columns).T.reshape(len(choosers), -1)


def a_score(rng, vocabulary, bars, programs=None, sparse=0.5):
    """A Score that the vocabulary spells, of at most so many bars."""
    grid = vocabulary.grid
    rows, tempi = [], []
    for _ in range(bars if grid.has_meter else 0):
        meter = vocabulary.meters[rng.integers(len(vocabulary.meters))]
        whole = grid.bar_steps(*meter)
        rows.append((*meter, rng.integers(1, whole + 1) if rng.random() < 0.3 else whole))
        tempi.append(rng.choice(vocabulary.tempos))
    spans = np.array(rows, BAR)
    span = int(spans["length"].sum()) if rows else bars * grid.steps_per_beat
    count = int(rng.integers(1, max(2, int(span * sparse) + 1)))
    notes = np.empty(count, NOTE)
    notes["onset"] = rng.integers(0, span, count)
    notes["duration"] = np.minimum(rng.geometric(rng.uniform(0.1, 0.9), count), 4 * span)
    notes["pitch"] = rng.integers(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1, count)
    notes["velocity"] = rng.choice(vocabulary.velocities, count)
    notes["program"] = rng.choice(programs or vocabulary.programs, count)
    return canonical(notes, spans, tempi, grid)[0]


@dataclass
class Case:
    """One thing asked for."""

    vocabulary: Vocabulary
    length: Length
    wishes: Wishes
    tune: Score | None
    seed: Score
    end_step: int

    def guide(self):
        return Guide(self.vocabulary, self.length, self.wishes, self.tune)

    @property
    def prompt(self):
        return encode(self.seed, self.vocabulary)[:-1]


def some(rng, value, chance=0.35):
    return value if rng.random() < chance else None


def a_case(seed):
    rng = np.random.default_rng(seed)
    vocabulary = VOCABULARIES[rng.integers(len(VOCABULARIES))]
    grid = vocabulary.grid
    low, high = sorted(rng.integers(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1, 2))
    wishes = Wishes(
        key=some(rng, rng.choice(["C", "d minor", "F#", "Bbm"]), 0.3),
        pitch_range=some(rng, (int(low), str(high))),
        programs=some(
            rng,
            tuple(p for p in vocabulary.programs if rng.random() < 0.7) or vocabulary.programs,
        ),
        max_polyphony=some(rng, int(rng.integers(1, 5)), 0.5),
        tempo_bpm=some(rng, int(rng.choice(vocabulary.tempos))) if grid.has_meter else None,
        time_signature=some(rng, vocabulary.meters[rng.integers(len(vocabulary.meters))])
        if grid.has_meter
        else None,
    )
    has_seed = rng.random() < 0.5
    length = [
        Length(bars=int(rng.integers(1, 8))),
        Length(bars=int(rng.integers(1, 4))),
        Length(seconds=float(rng.uniform(0.1, 6))),
        Length(notes=int(rng.integers(1, 12))),
    ][rng.integers(4)]
    tune, score = None, replace(EMPTY, grid=grid)
    if rng.random() < 0.3:
        length = Length()
        program = int(rng.choice(vocabulary.programs))
        tune = a_score(rng, vocabulary, int(rng.integers(1, 5)), [program], rng.uniform(0.1, 1))
    elif has_seed:
        score = a_score(rng, vocabulary, int(rng.integers(1, 4)))
    ends = score.notes["onset"] + score.notes["duration"]
    end_step = min(int(ends.max(initial=0)), int(score.bar_starts[-1]))
    return Case(vocabulary, length, wishes, tune, score, end_step)


def polyphony(notes, steps):
    """How many of the notes sound in each of the steps."""
    ends = notes["onset"] + notes["duration"]
    return [int(((notes["onset"] <= step) & (ends > step)).sum()) for step in steps]


def seconds_limit(case, score):
    """The step that the seconds asked for are, by the tempi of the piece itself."""
    end = score.end_step + 10_000
    seconds = score.step_seconds(np.arange(end))
    return max(1, int(np.argmin(np.abs(seconds - case.length.seconds))))


def check(case, ids):
    """That a finished piece is what was asked for."""
    vocabulary, wishes, length = case.vocabulary, case.wishes, case.length
    score = decode(ids, vocabulary)  # raises where the ids are not encode(score)
    assert len(score.notes)
    old = len(case.seed.notes)
    before = score.notes[:old]
    assert np.array_equal(before, case.seed.notes)
    new = score.notes[old:]
    assert (new["onset"] >= case.end_step).all()
    kept = np.zeros(len(new), bool)
    if case.tune is not None:
        kept = new["program"] == case.tune.notes["program"][0]
        assert np.array_equal(new[kept], case.tune.notes)
        assert np.array_equal(score.bars, case.tune.bars)
        if wishes.tempo_bpm is None:
            assert np.array_equal(score.tempo_bpm, case.tune.tempo_bpm)
    free = new[~kept]
    pitched = free[free["program"] != DRUMS]
    if wishes.key:
        assert key_pitch_classes(wishes.key)[pitched["pitch"] % 12].all()
    if wishes.pitch_range:
        low, high = map(int, wishes.pitch_range)
        assert ((low <= pitched["pitch"]) & (pitched["pitch"] <= high)).all()
    if wishes.programs:
        assert np.isin(free["program"], wishes.programs).all()
    if wishes.max_polyphony:
        steps = range(score.end_step) if not old else np.unique(free["onset"])
        assert max(polyphony(score.notes, steps), default=0) <= wishes.max_polyphony
    new_bars = slice(len(case.seed.bars), None)
    if wishes.tempo_bpm:
        assert (score.tempo_bpm[new_bars] == wishes.tempo_bpm).all()
    if wishes.time_signature and case.tune is None:
        whole = vocabulary.grid.bar_steps(*wishes.time_signature)
        assert all(bar == (*wishes.time_signature, whole) for bar in score.bars[new_bars].tolist())
    ends = free["onset"] + free["duration"]
    if case.tune is not None or length.bars or length.seconds:
        assert (ends <= score.bar_starts[-1]).all()
        assert (score.notes[:old]["onset"] + score.notes[:old]["duration"] <= score.bar_starts[-1]).all()
    if length.bars:
        assert len(score.bars) == length.bars
    if length.seconds:
        limit = seconds_limit(case, score)
        assert (free["onset"] < limit).all()
        assert score.bar_starts[-2] < limit <= score.bar_starts[-1]
        assert len(np.unique(score.tempo_bpm[max(len(case.seed.bars), 1) - (not wishes.tempo_bpm) :])) <= 1
    if length.notes:
        assert len(new) == length.notes
    return score


def begun(case):
    """The guide and its state after the prompt, or None where the case is refused."""
    try:
        guide = case.guide()
        return guide, guide.begin(case.prompt, len(CHOOSERS), case.end_step)
    except WishError as error:
        assert len(str(error).splitlines()) == 1
        return None


def choosers(vocabulary, seed):
    return [make(vocabulary, seed) for make in CHOOSERS.values()]


def run_case(seed):
    case = a_case(seed)
    ready = begun(case)
    if ready is None:
        return None
    guide, state = ready
    rows = walk(guide, state, choosers(case.vocabulary, seed))
    assert rows.shape[1] < MOST_TOKENS, "no end"
    for row in rows:
        check(case, np.concatenate([case.prompt, guide.ending(row)]))
    return rows
