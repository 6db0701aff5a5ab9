"""A run that begins with a model of other music: rows of what means the same, or is nearest."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.score import DRUMS, Grid, Part
from data.tokens.features import SideFeatures
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary
from model.config import DecoderConfig
from model.decoder import Decoder
from tests.music import GRID, random_score, vocabulary_for
from training.warm_start import Meanings, take_weights


def widened(vocabulary: Vocabulary) -> Vocabulary:
    """One that has more of everything."""
    return replace(
        vocabulary,
        meters=tuple(sorted({*vocabulary.meters, (2, 4), (12, 8)})),
        tempos=tuple(sorted({*vocabulary.tempos, 60, 200})),
        programs=tuple(sorted({*vocabulary.programs, 5, 33, 127, DRUMS})),
        lowest_pitch=max(0, vocabulary.lowest_pitch - 5),
        highest_pitch=min(127, vocabulary.highest_pitch + 7),
        velocities=tuple(sorted({*vocabulary.velocities, 4, 127})),
    )


def decoder(vocabulary: Vocabulary, seed: int, **older: int) -> Decoder:
    torch.manual_seed(seed)
    shape = {"n_embd": 16, "n_head": 2, "n_layer": 1, "context_length": 4096}
    config = DecoderConfig(vocabulary.size, **shape, **SideFeatures(vocabulary).shape | older)
    made = Decoder(config).eval()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return made


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_a_piece_means_the_same_in_a_wider_vocabulary(seed):
    """Its ids, what stands beside them, and the logits of what may follow."""
    score = random_score(np.random.default_rng(seed))
    score = replace(score, notes=score.notes.copy())
    score.notes["velocity"][::2] = 64
    score.notes["velocity"][1::2] = 80
    ours = replace(vocabulary_for(score), velocities=(64, 80))
    theirs = widened(ours)
    meanings = Meanings(ours, theirs)
    ids = encode(score, ours)
    assert np.array_equal(meanings.ids[ids], encode(score, theirs))
    sides = [SideFeatures(v).compute(encode(score, v)[None]) for v in (ours, theirs)]
    for mine, other in zip(*(side.bag[0].tolist() for side in sides), strict=True):
        assert {*meanings.features[mine].tolist()} == {*other}

    trained, new = decoder(theirs, 0), decoder(ours, 1)
    take_weights(new, trained, ours, theirs)
    with torch.no_grad():
        ends = [
            model(torch.from_numpy(encode(score, v))[None], side=side.map(torch.from_numpy))[0]
            for model, v, side in zip((new, trained), (ours, theirs), sides, strict=True)
        ]
    of_theirs = ends[1][:, torch.from_numpy(meanings.ids)]
    torch.testing.assert_close(ends[0], of_theirs, atol=1e-4, rtol=1e-4)


def test_what_is_not_there_is_taken_from_what_is_nearest():
    theirs = Vocabulary(((4, 4),), (60, 120), (0, 40, DRUMS), 40, 80, (80,), GRID)
    finer = Grid(24, parts=(Part("Lead", 41), Part("Keys", 3)))
    ours = Vocabulary(((3, 4), (4, 4)), (70,), (0, 1, DRUMS), 30, 90, (64, 80), finer)
    meanings = Meanings(ours, theirs)

    def mapped(kind, value):
        return int(meanings.ids[ours.first(kind) + value])

    def note(vocabulary, program, pitch):
        number = vocabulary.programs.index(program) * vocabulary.pitch_count
        return number + pitch - vocabulary.lowest_pitch

    first = theirs.first
    assert [mapped(Kind.BAR, meter) for meter in range(2)] == [first(Kind.BAR)] * 2
    assert mapped(Kind.TEMPO, 0) == first(Kind.TEMPO)
    assert mapped(Kind.POSITION, 48) == first(Kind.POSITION) + 24
    for kind in (Kind.LENGTH, Kind.DURATION):  # of 24 finer steps, which are twelve
        assert mapped(kind, 23) == first(kind) + 11
    for program, other in ((0, 40), (1, 0), (DRUMS, DRUMS)):
        for pitch, nearest in ((30, 40), (60, 60), (90, 80)):
            value = note(ours, program, pitch)
            assert mapped(Kind.NOTE, value) == first(Kind.NOTE) + note(theirs, other, nearest)
    assert mapped(Kind.VELOCITY, 0) == -1


def test_what_an_older_one_was_not_told_changes_nothing_at_first():
    score = random_score(np.random.default_rng(0))
    vocabulary = vocabulary_for(score)
    trained, new = decoder(vocabulary, 0, n_classes=0), decoder(vocabulary, 1)
    torch.nn.init.zeros_(new.interval_head.table.weight)  # as it begins
    take_weights(new, trained, vocabulary, vocabulary)
    ids = encode(score, vocabulary)[None]
    side = SideFeatures(vocabulary).compute(ids).map(torch.from_numpy)
    with torch.no_grad():
        old, now = (model(torch.from_numpy(ids), side=side) for model in (trained, new))
    torch.testing.assert_close(now, old)


def test_rows_that_mean_nothing_to_the_trained_one_stay():
    theirs = Vocabulary(((4, 4),), (120,), (0,), 60, 72, (80,), GRID)
    ours = replace(theirs, velocities=(64, 80))
    new = decoder(ours, 1)
    before = new.embedding.weight[ours.ids(Kind.VELOCITY)].clone()
    take_weights(new, decoder(theirs, 0), ours, theirs)
    assert torch.equal(new.embedding.weight[ours.ids(Kind.VELOCITY)], before)
