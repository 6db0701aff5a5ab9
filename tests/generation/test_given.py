"""Given notes among those that a model writes."""

import numpy as np
import pytest

from data.tokens.vocabulary import Kind
from generation.constrained_grammar import ConstrainedGrammar
from generation.length import Length
from generation.seeds import voices_of
from tests.models import QUARTET, four_parts


def test_who_would_pass_over_what_is_given_comes_to_it():
    seed = voices_of(four_parts(2), QUARTET, (4,))  # the bass, which is written after the others
    constrained = ConstrainedGrammar(QUARTET, Length(), seed=seed)
    state, rng = constrained.start(1), np.random.default_rng(0)
    notes, kind_of = QUARTET.ids(Kind.NOTE), QUARTET.kind_of
    lowest_voice = np.arange(QUARTET.size) >= notes.stop - QUARTET.pitch_count
    at_once = np.isin(kind_of, [Kind.END, Kind.BAR, Kind.POSITION])
    at_once |= (kind_of == Kind.NOTE) & lowest_voice
    second_beat = QUARTET.first(Kind.POSITION) + 12
    later = np.isin(kind_of, [Kind.END, Kind.BAR])
    later[second_beat : notes.start] = True
    bass = notes.stop - QUARTET.pitch_count + 48 - QUARTET.lowest_pitch
    for place, due, passes in ((0, bass, at_once), (-1, second_beat, later)):
        for kind in (Kind.POSITION, Kind.NOTE, Kind.DURATION):
            ids = np.flatnonzero(constrained.allowed(state)[0])
            if (kind_of[ids] == kind).any():  # first the highest voice begins, then the bass
                constrained.advance(state, ids[kind_of[ids] == kind][[place]])
        logits = rng.normal(size=(1, QUARTET.size)).astype(np.float32)
        before, after = np.exp(logits[0]), np.exp(constrained.tilt(state, logits)[0])
        assert after[due] == pytest.approx(before[passes].sum(), rel=1e-5)
        assert (np.delete(after, due) == np.delete(before, due)).all()
