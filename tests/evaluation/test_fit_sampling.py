"""The sampling that is fitted to a model: what makes its pieces most like the corpus's."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from data.extremes import Usual
from data.rhythms import Rhythm
from data.tokens.tokenizer import encode
from evaluation import fit_sampling as fitting
from evaluation.fit_sampling import CANDIDATES, fit_sampling
from generation.compose import compose
from generation.length import Length
from generation.model import load
from generation.request import Request
from model.config import SamplingOptions
from tests.models import QUARTET, untrained
from tests.music import piece

ENOUGH = 10**9


def tune(rng, notes_a_bar, bars=16):
    """Notes of two voices at random, so many in each bar of both."""
    length = 48 // notes_a_bar
    onsets = np.arange(notes_a_bar * bars) * length
    notes = [
        (int(onset), length, int(rng.choice([60, 62, 64, 65, 67])) - 12 * voice, 80, 40 + voice)
        for onset in onsets
        for voice in range(2)
    ]
    return piece(notes, bars=[(4, 4, 48)] * bars, tempo=80)


@pytest.fixture
def tunes():
    rng = np.random.default_rng(0)
    return [tune(rng, int(rng.choice([2, 3, 4]))) for _ in range(60)]


def test_what_is_nearly_empty_or_too_full_is_not_taken_however_alike_it_is(
    model, tunes, monkeypatch
):
    """A sixth of the pieces of one candidate are thin; all of the other have two notes a bar."""
    rng = np.random.default_rng(3)
    others = [tune(rng, 2) for _ in range(24)]
    thin = [tune(rng, 1) for _ in range(4)]
    written = defaultdict(lambda: None) | {
        CANDIDATES[0]: tunes[30:50] + thin,
        CANDIDATES[1]: others,
    }
    monkeypatch.setattr(fitting, "_written", lambda _, sampling, *__: written[sampling])
    assert fit_sampling(model, tunes[:30], ENOUGH).sampling == CANDIDATES[1]
    nothing_unusual = replace(model, style=replace(model.style, usual=None))
    best = fit_sampling(nothing_unusual, tunes[:30], ENOUGH)
    assert best.sampling == CANDIDATES[0]  # the more alike


@pytest.fixture
def model(tmp_path, tunes):
    trained_on = load(untrained(tmp_path / "m.safetensors", QUARTET))
    return replace(trained_on, style=replace(trained_on.style, usual=Usual.of(tunes[:30])))


def test_the_candidate_that_writes_as_the_corpus_has_it_is_taken(model, tunes, monkeypatch):
    rng = np.random.default_rng(2)
    written = defaultdict(lambda: [tune(rng, 1) for _ in range(24)])
    written[CANDIDATES[5]] = tunes[30:54]
    monkeypatch.setattr(fitting, "_written", lambda _, sampling, *__: written[sampling])
    assert fit_sampling(model, tunes[:30], ENOUGH).sampling == CANDIDATES[5]
    written[CANDIDATES[5]] = None  # they do not come to their end
    assert fit_sampling(model, tunes[:30], ENOUGH).sampling != CANDIDATES[5]
    calmer = replace(CANDIDATES[5], rhythm_temperature=fitting.CALMER)
    mixed = tunes[30:42] + [tune(rng, 1) for _ in range(12)]
    written |= {CANDIDATES[5]: mixed, calmer: tunes[30:54]}
    assert fit_sampling(model, tunes[:30], ENOUGH).sampling == calmer
    monkeypatch.setattr(fitting, "_written", lambda *_: None)
    assert fit_sampling(model, tunes[:30], ENOUGH) is None


@pytest.mark.parametrize("is_free_better", [True, False])
def test_rhythms_are_drawn_only_where_that_is_more_alike(model, tunes, monkeypatch, is_free_better):
    model = replace(model, style=replace(model.style, rhythms=(Rhythm(1, (0,)),)))
    alike, other = tunes[30:54], [tune(np.random.default_rng(2), 1) for _ in range(24)]

    def written(model, *_):
        return alike if bool(model.style.rhythms) != is_free_better else other

    monkeypatch.setattr(fitting, "_written", written)
    best = fit_sampling(model, tunes[:30], ENOUGH)
    assert best.style.rhythms == (() if is_free_better else model.style.rhythms)


def test_a_small_budget_or_no_music_fits_nothing(model, tunes, monkeypatch):
    monkeypatch.setattr(fitting, "_written", lambda *_: pytest.fail("nothing shall be written"))
    least = (len(CANDIDATES) + 2) * fitting.FEWEST_PIECES
    tokens = int(np.median([len(encode(score, QUARTET)) for score in tunes]))
    assert fit_sampling(model, tunes, least * tokens - 1) is None
    assert fit_sampling(model, [], ENOUGH) is None


def test_pieces_that_do_not_end_are_given_up(model, monkeypatch):
    monkeypatch.setattr(fitting, "OPENING_BARS", 2)
    sampling = SamplingOptions()
    assert fitting._written(model, sampling, 8, most_tokens=20) is None
    found = fitting._written(model, sampling, 8, most_tokens=20_000)
    assert [len(score.bars) for score in found] == [2] * 8


def test_a_model_samples_as_was_fitted_where_nothing_is_said(tmp_path):
    fitted = {"temperature": 0.8, "rhythm_temperature": 0.7, "top_p": 0.9}
    path = untrained(tmp_path / "m.safetensors", QUARTET, **fitted)
    model, said = load(path), SamplingOptions(**fitted)
    assert model.sampling == said
    default, same, other = (
        compose(model, Request(None, Length(bars=2), sampling=sampling))[0].ids.tolist()
        for sampling in (None, said, SamplingOptions(0.1))
    )
    assert default == same != other
