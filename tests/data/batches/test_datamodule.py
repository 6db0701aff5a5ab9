"""Windows and whole pieces: what a model reads, and in which order."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.interface import NOT_SCORED
from data.batches.datamodule import MusicDataModule
from data.batches.options import DataOptions
from data.batches.windows import SAMPLE_TOKENS, sampled
from data.corpus.corpus import CorpusError
from data.corpus.store import Split, write_split
from data.tokens.augment import programs_of, transposition
from data.tokens.context import bar_head_size, bar_indices, rebase, window_head
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from tests import music
from tests.data.batches.test_windows import split_of
from tests.folders import write_tunes
from tests.music import (
    masks_one_by_one,
    random_score,
    transposition_range,
    vocabulary_for,
    windows_of,
)
from tests.tensors import told

REACH = 2
CONTEXT = 24


def pieces_and_vocabulary(count=8):
    rng = np.random.default_rng(5)
    scores = [score for score in (random_score(rng) for _ in range(40)) if len(score.notes) > 3]
    vocabulary = vocabulary_for(*scores[:count], transpose=REACH)
    return [encode(score, vocabulary) for score in scores[:count]], vocabulary


PIECES, VOCABULARY = pieces_and_vocabulary()


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split") / "train"
    parts = []
    for first in range(0, len(PIECES), 3):  # some at a time
        pieces = PIECES[first : first + 3]
        parts.append(split_of(pieces, VOCABULARY))
    _, names = write_split(folder, parts)
    return Split.load(folder, tuple(names), VOCABULARY)


def admissible(piece):
    """Start, every later bar whose rest fills a window, and the first whose rest is shorter."""
    if len(piece) <= CONTEXT + 1:
        return [0]
    later = bar_indices(piece, VOCABULARY)[1:].tolist()
    filling = [bar for bar in later if len(piece) - bar > CONTEXT + 1]
    return [0, *filling, *later[len(filling) : len(filling) + 1]]


def spelled_window(piece, start, shift):
    """(ids, targets) of one window, by the definition."""
    if start == 0:
        window, is_restated = piece, np.zeros(len(piece), dtype=bool)
    else:
        head = window_head(piece, start, VOCABULARY)
        own = bar_head_size(piece, start, VOCABULARY)
        window = np.concatenate([head, piece[start + own :]])
        is_restated = np.zeros(len(window), dtype=bool)
        is_restated[own : len(head)] = True
    ids = np.zeros(CONTEXT, dtype=np.int64)
    targets = np.full(CONTEXT, NOT_SCORED)
    moved = transposition(VOCABULARY, shift)[window]
    ids[: len(moved)] = moved[:CONTEXT]
    following = np.where(is_restated, NOT_SCORED, moved)[1 : CONTEXT + 1]
    targets[: len(following)] = following
    return ids, targets


def all_windows():
    windows = {}
    for number, piece in enumerate(PIECES):
        low, high = transposition_range(piece, VOCABULARY)
        for start in admissible(piece):
            for shift in range(max(low, -REACH), min(high, REACH) + 1):
                ids, targets = spelled_window(piece, start, shift)
                windows[ids.tobytes(), targets.tobytes()] = number, start, shift
    return windows


WINDOWS = all_windows()


def test_which_programs_play_nowhere_in_a_piece_is_told(split, monkeypatch):
    monkeypatch.setattr("data.batches.windows.KNOWN_ENSEMBLE_SHARE", 1)
    source = windows_of(split, VOCABULARY, CONTEXT, 0)
    ids, targets, side = source.batch(0, 0, 64)
    bits = told(side, source.features).bits[..., source.features.blocks["silent"]]
    for row, target, beside in zip(ids, targets, bits, strict=True):
        notes = PIECES[WINDOWS[row.tobytes(), target.tobytes()][0]]
        notes = notes[VOCABULARY.kind_of[notes] == Kind.NOTE]
        plays = np.isin(np.arange(len(VOCABULARY.programs)), programs_of(notes, VOCABULARY))
        assert (beside[row > 0] == ~plays).all()


def test_every_window_and_key_comes_up(split):
    source = windows_of(split, VOCABULARY, CONTEXT, REACH)
    seen = set()
    for step in range(400):
        ids, targets, _ = source.batch(0, step, 64)
        seen |= {(i.tobytes(), t.tobytes()) for i, t in zip(ids, targets, strict=True)}
    assert seen == set(WINDOWS)


def test_tokens_are_seen_about_equally_often():
    """A note's pitch tells it from all others here, so that one sees what a window holds."""
    bars, parts = [(4, 4, 48)] * 12, (range(48), range(48, 60))
    long, short = (music.piece(music.line(pitches), bars) for pitches in parts)
    vocabulary = vocabulary_for(long, short)
    pieces = [encode(long, vocabulary), encode(short, vocabulary)]  # 12 bars of 13 tokens; 3
    split = split_of(pieces, vocabulary)
    source = windows_of(split, vocabulary, 52, 0)
    ids = np.concatenate([source.batch(0, step, 64)[0].ravel() for step in range(200)])
    first = vocabulary.first(Kind.NOTE)
    seen = np.bincount(ids, minlength=vocabulary.size)[first : first + 60]
    share = seen / seen.mean()
    assert 0.5 < share.min() < share.max() < 1.7  # the ends and what is a window from them
    np.testing.assert_allclose(share[:48].mean(), share[48:].mean(), rtol=0.15)
    inner = share[20:28]
    np.testing.assert_allclose(inner, inner.mean(), rtol=0.15)


@given(st.data())
def test_a_piece_goes_on_from_a_bar_with_half_a_context_or_more(data):
    piece = data.draw(st.sampled_from([piece for piece in PIECES if len(piece) > 60]))
    context = data.draw(st.integers(8, 60))
    end = data.draw(st.integers(context, len(piece)))
    history = piece[:end]
    prompt = rebase(history, context, VOCABULARY)
    assert context <= 2 * len(prompt) < 2 * context
    half = (context + 1) // 2
    bar = [bar for bar in bar_indices(history, VOCABULARY).tolist() if end - bar >= half][-1]
    head = window_head(history, bar, VOCABULARY)
    rest = history[bar + bar_head_size(history, bar, VOCABULARY) :]
    np.testing.assert_array_equal(prompt[: len(head)], head)
    if len(head) + len(rest) < context:
        np.testing.assert_array_equal(prompt[len(head) :], rest)
    else:  # in mid-bar
        kept = len(prompt) - len(head)
        np.testing.assert_array_equal(prompt[len(head) :], rest[-kept:])
        kinds = VOCABULARY.kind_of[rest]
        soonest = len(rest) - (context - 1 - len(head))
        later_bars = np.flatnonzero(kinds == Kind.BAR).tolist()  # no note of theirs comes before
        latest = min([len(rest) - half + len(head), *later_bars])
        assert len(rest) - kept <= latest
        begin = kinds[soonest : latest + 1].tolist()
        wanted = Kind.POSITION if Kind.POSITION in begin else Kind.NOTE
        assert kinds[-kept] == wanted or wanted not in begin
    # a piece that went on from a prompt goes on from there again
    longer = np.concatenate([prompt, piece[end : end + context - len(prompt)]])
    again = rebase(longer, context, VOCABULARY)
    assert context <= 2 * len(again) < 2 * context
    assert VOCABULARY.kind_of[again[0]] == Kind.BAR


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    path = write_tunes(folder / "tunes", 12)
    options = DataOptions(path=str(path), datasets=str(folder / "out"), batch_size=4, seed=1)
    made = MusicDataModule(options, context_length=32)
    made.prepare_data()
    return made


def first_batches(data, count):
    batches = list(itertools.islice(iter(data.train_dataloader()), count))
    return [everything(batch) for batch in batches]


def everything(batch):
    """All that a batch holds, side by side: (B, T, columns)."""
    ids, targets, side = (batch[name] for name in ("ids", "targets", "side"))
    assert side.bag.dtype == torch.int32
    bag = torch.nn.functional.pad(side.bag, (0, 256 - side.bag.shape[2]))  # as wide in each batch
    parts = ids[..., None], targets[..., None], bag, *side[1:3], side.time[..., None]
    return torch.cat([part.long() for part in parts], dim=2)


def test_training_batches_go_on_where_training_is(data, monkeypatch):
    batches = first_batches(data, 8)
    assert batches[0].shape[:2] == (4, 32)
    assert batches[0].dtype == torch.int64
    assert len({batch.numpy().tobytes() for batch in batches}) == 8
    at = SimpleNamespace(global_step=3)
    monkeypatch.setattr(data, "trainer", at)
    assert torch.equal(first_batches(data, 1)[0], batches[3])
    monkeypatch.setattr(data, "options", replace(data.options, seed=2))
    assert not torch.equal(first_batches(data, 1)[0], batches[3])


def test_workers_change_nothing(data, monkeypatch):
    batches = first_batches(data, 5)
    monkeypatch.setattr(data, "options", replace(data.options, num_workers=2))
    assert torch.equal(torch.stack(first_batches(data, 5)), torch.stack(batches))


@pytest.mark.parametrize("name", ["valid", "test"])
def test_whole_pieces_come_untransposed_with_masks_and_notes(data, name):
    loader = data.val_dataloader() if name == "valid" else data.test_dataloader()
    split = data.corpus.split(name)
    grammar, batches = Grammar(data.vocabulary), list(loader)
    assert len(batches) == len(loader)
    pieces = [piece for batch in batches for piece in batch["pieces"]]
    assert len(pieces) == len(split)
    allowed = [mask for batch in batches for mask in batch["allowed"]]
    for index, (piece, mask) in enumerate(zip(pieces, allowed, strict=True)):
        np.testing.assert_array_equal(piece, split.piece(index))
        np.testing.assert_array_equal(mask, masks_one_by_one(grammar, piece))
    notes = [count for batch in batches for count in batch["notes"]]
    assert notes == split.note_counts.tolist()


@pytest.mark.parametrize("is_sample", [False, True])
def test_each_piece_of_a_split_or_a_sample_is_scored_once(data, monkeypatch, is_sample):
    monkeypatch.setattr("data.batches.windows.SAMPLE_TOKENS", 300)
    monkeypatch.setattr("data.batches.windows.EVALUATION_TOKENS", 1)
    split = data.corpus.split("train")
    lengths = np.diff(split.piece_offsets)
    loader = data._whole_pieces("train", is_sample)
    seen = [piece.tolist() for batch in loader for piece in batch["pieces"]]
    chosen = sampled(lengths) if is_sample else range(len(split))
    assert sorted(seen) == sorted(split.piece(number).tolist() for number in chosen)
    assert (loader.count, loader.total) == (len(seen), len(split))
    assert 1 < len(seen) < len(split) + (not is_sample)


@given(st.lists(st.integers(1, 50_000), min_size=1, max_size=50))
def test_a_sample_is_bounded_and_of_few_pieces_all(lengths):
    lengths = np.array(lengths)
    chosen = sampled(lengths)
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(chosen, sampled(lengths))
    assert 0 < lengths[chosen].sum() < SAMPLE_TOKENS + lengths.max()
    if lengths.sum() <= SAMPLE_TOKENS:
        assert len(chosen) == len(lengths)


def test_an_empty_split_and_values_out_of_range_are_told(tmp_path):
    path = write_tunes(tmp_path / "tunes", 2)
    options = DataOptions(path=str(path), datasets=str(tmp_path / "out"))
    with pytest.raises(CorpusError, match="context_length"):
        MusicDataModule(options, context_length=4)
    data = MusicDataModule(options)
    with pytest.raises(RuntimeError, match="not set up"):
        _ = data.vocabulary
    data.prepare_data()
    with pytest.raises(CorpusError, match="test split is empty"):
        data.test_dataloader()
    for wrong in (
        {"batch_size": 0},
        {"seed": -1},
        {"transpose": -1},
        {"silence": 1.5},
        {"misreading": -0.1},
    ):
        with pytest.raises(CorpusError, match=next(iter(wrong))):
            DataOptions(**wrong)
