"""Sequences of another kind than music."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.interface import NOT_SCORED
from data.batches.datamodule import MusicDataModule
from data.batches.id_sequences import (
    FIRST_ID,
    IdVocabulary,
    SequenceBatches,
    SequenceWindows,
    open_id_sequences,
)
from data.batches.options import DataOptions
from data.corpus.corpus import SPLITS, CorpusError
from data.tokens.vocabulary import Kind

SIZE = 50
CONTEXT = 8


def sequences(count=30, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, SIZE, size=rng.integers(1, 30)).tolist() for _ in range(count)]


def as_ids(tokens):
    """Return the ids of a sequence whose tokens go from Start to End."""
    assert (tokens[0], tokens[-1]) == (Kind.START, Kind.END)
    return (tokens[1:-1] - FIRST_ID).tolist()


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def stream(tmp_path):
    return open_id_sequences(write_jsonl(tmp_path / "s.jsonl", sequences()), SIZE)


def test_every_sequence_is_in_one_split_and_equal_ones_in_the_same(tmp_path):
    rows = sequences() + sequences()[:15]
    stream = open_id_sequences(write_jsonl(tmp_path / "s.jsonl", rows), SIZE)
    dealt = {
        name: [as_ids(split.piece(number)) for number in range(len(split))]
        for name, split in stream.splits.items()
    }
    assert sorted(itertools.chain(*dealt.values())) == sorted(rows)
    for split, members in dealt.items():
        assert members
        others = [row for other in SPLITS if other != split for row in dealt[other]]
        assert not [row for row in members if row in others]


def test_a_sparse_file_is_not_read_to_its_end(tmp_path):
    path = write_jsonl(tmp_path / "s.jsonl", sequences(3))
    with path.open("r+b") as file:
        file.truncate(2**40)  # of which all that is written is three lines
    with pytest.raises(CorpusError, match=r"s\.jsonl, line 4: longer than 32 MiB, not read"):
        open_id_sequences(path, SIZE)


def test_an_array_is_read_as_its_rows(tmp_path):
    array = np.random.default_rng(0).integers(0, SIZE, size=(12, 9)).astype(np.uint8)
    np.save(tmp_path / "s.npy", array)
    rows = write_jsonl(tmp_path / "s.jsonl", array.tolist())
    one, other = (open_id_sequences(p) for p in (tmp_path / "s.npy", rows))
    for name in SPLITS:
        assert one.splits[name].names == other.splits[name].names
        np.testing.assert_array_equal(one.splits[name].tokens, other.splits[name].tokens)
    assert one.vocabulary.ids == array.max() + 1


@given(step=st.integers(0, 2**40), size=st.integers(1, 9))
def test_windows_are_stretches_of_training_sequences(tmp_path_factory, step, size):
    path = tmp_path_factory.getbasetemp() / "windows.jsonl"
    split = open_id_sequences(write_jsonl(path, sequences()), SIZE).splits["train"]
    ids, targets, side = SequenceWindows(split, CONTEXT).batch(0, step, size)
    assert side is None
    train = [split.piece(number).tolist() for number in range(len(split))]
    for row, target in zip(ids.tolist(), targets.tolist(), strict=True):
        known = [id_ for id_ in target if id_ != NOT_SCORED]
        window = [row[0], *known]
        assert row == [*window, *[0] * CONTEXT][:CONTEXT]
        assert target == [*known, *[NOT_SCORED] * (CONTEXT - len(known))]
        assert any(
            window == whole[at : at + len(window)] and (len(known) == CONTEXT or window == whole)
            for whole in train
            for at in range(len(whole))
        )


def test_every_place_comes_up_equally_often(stream):
    split = stream.splits["train"]
    source = SequenceWindows(split, CONTEXT)
    batches = [np.hstack(source.batch(0, step, 64)[:2]) for step in range(300)]
    _, counts = np.unique(np.concatenate(batches), axis=0, return_counts=True)
    lengths = np.diff(split.piece_offsets)
    assert len(counts) == np.maximum(lengths - CONTEXT, 1).sum()
    np.testing.assert_allclose(counts, counts.mean(), rtol=0.5)


def test_whole_sequences_are_scored_by_every_id_and_where_they_end(tmp_path):
    path = write_jsonl(tmp_path / "s.jsonl", sequences())
    data = MusicDataModule(DataOptions(path=str(path), vocabulary_size=SIZE))
    data.prepare_data()
    (batch,) = data.val_dataloader()
    assert [len(piece) - 1 for piece in batch["pieces"]] == [len(mask) for mask in batch["allowed"]]
    for mask in batch["allowed"]:  # ids may follow each other in any order; one comes first
        assert mask[:, FIRST_ID:].all()
        assert not mask[:, : Kind.END].any()
        assert not mask[0, Kind.END]
        assert mask[1:, Kind.END].all()
    assert batch["notes"] == [len(as_ids(piece)) for piece in batch["pieces"]]
    assert data.vocabulary.size == FIRST_ID + SIZE
    assert data.side_shape == {}
    assert data.side(np.zeros((2, 5), dtype=int)) is None
    rebased = SequenceBatches(data.corpus, 9).rebase(np.arange(21))
    assert len(rebased) == 5
    assert rebased[-1] == 20


def lying(shape):
    """The text of a .npy file whose header says this shape."""
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}\n"
    return f"\x93NUMPY\x01\0{chr(len(text))}\0{text}{80 * chr(0)}"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("none.jsonl", None, "no such file"),
        ("s.jsonl", "[1, 2]\n[1, 5]\n", "allows 0 to 4"),
        ("s.jsonl", "[1, 2]\n[-1, 3]\n", "ids from -1"),
        ("s.jsonl", "[1, 2]\n[]\n", "line 2: not a list of ids"),
        ("s.jsonl", "", "one id at least"),
        ("s.npy", np.zeros((5, 0), dtype=int), "one id at least"),
        ("s.jsonl", "[1, 2]\n[1, 2]\n", "a different one"),
        ("s.jsonl", "[1, 2]\n[1.5, 2]\n", "line 2: not a list of ids"),
        ("s.jsonl", "[1, [2]]\n", "line 1: not a list of ids"),
        ("s.jsonl", "[true, false]\n", "line 1: not a list of ids"),
        ("s.jsonl", "[" * 100_000, "line 1: not a list of ids"),
        ("s.jsonl", "[1, 99999999999999999999]\n", "line 1: not a list of ids"),
        ("s.npy", lying("(10000000, 1000000)}"), "not a whole .npy file"),
        ("s.npy", lying("((("), "not a whole .npy file"),
        ("s.npy", "noise", "not a whole .npy file"),
        ("s.npy", np.zeros(5, dtype=int), "shape (5,)"),
        ("s.npy", np.zeros((5, 5)), "float64"),
        ("s.npy", np.array([[None]]), "not a whole .npy file"),
        ("s.npy", np.array([[2**64 - 1, 1]], dtype=np.uint64), "an id of 18446744073709551615"),
        ("folder", None, "vocabulary_size is only for"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, name, content, words):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content, encoding="latin-1")
    elif content is not None:
        np.save(path, content)
    with pytest.raises((CorpusError, FileNotFoundError)) as caught:
        MusicDataModule(DataOptions(path=str(path), vocabulary_size=5)).prepare_data()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ids_have_names_if_there_are_some(tmp_path):
    path = write_jsonl(tmp_path / "s.jsonl", [[0, 1], [2, 1], [1]])
    (tmp_path / "vocabulary.txt").write_text("kick\nsnare\nhi-hat\n")
    vocabulary = open_id_sequences(path).vocabulary
    assert vocabulary.words([2, 0]) == "hi-hat kick"
    assert vocabulary.parse("snare 0 hi-hat").tolist() == [1, 0, 2]
    assert IdVocabulary(3).parse("2, 0,1").tolist() == [2, 0, 1]
    for word in ("tom", "3", "-1", "1.5", "²", "9" * 5000):
        with pytest.raises(ValueError, match=r"is no id: a name, or a number from 0 to 2"):
            vocabulary.parse(f"kick {word}")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (b"a\nb\n", "allows 0 to 1"),
        (b"a\nb\na\n", "a name stands twice"),
        (b"a\nb c\nd\n", "'b c' is no name"),
        (b"a\n\nd\n", "'' is no name"),
        (b"a\nb\n\xff\n", "not text in UTF-8"),
    ],
)
def test_names_that_are_none_are_refused(tmp_path, names, words):
    path = write_jsonl(tmp_path / "s.jsonl", [[0, 1], [2, 1], [1]])
    (tmp_path / "vocabulary.txt").write_bytes(names)
    with pytest.raises(CorpusError, match=words):
        open_id_sequences(path)
