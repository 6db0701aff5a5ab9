"""Sequences that are no music."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evaluate
import generate
from data.batches.id_sequences import FIRST_ID, IdVocabulary, open_id_sequences
from data.tokens.vocabulary import Kind
from generation import sequences
from generation.sequences import SequenceModel
from model.config import DecoderConfig, SamplingOptions
from model.decoding import network_of
from model.scoring import token_nats
from model.serialization import ModelFile, save_model_file
from tests.runs import refusal
from tests.tensors import opinionated

NAMES = ("kick", "snare", "hat", "ride", "tom")
CONTEXT = 12


def of_names(names=NAMES, seed=3):
    """A model of five ids that has learned nothing, but has opinions."""
    config = DecoderConfig(FIRST_ID + 5, n_layer=1, n_head=2, n_embd=8, context_length=CONTEXT)
    return SequenceModel(network_of(opinionated(config, seed, std=0.5)), IdVocabulary(5, names))


MODEL = of_names()


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The path of a model, alone in the working folder."""
    monkeypatch.chdir(tmp_path)
    content = ModelFile(MODEL.network, MODEL.vocabulary.to_json(), style_json="{}")
    save_model_file("model.safetensors", content)
    return "model.safetensors"


@given(
    seed=st.lists(st.integers(0, 4), max_size=2 * CONTEXT),
    count=st.integers(1, 3),
    length=st.none() | st.integers(1, 3 * CONTEXT),
    random_seed=st.integers(0, 99),
)
def test_sequences_begin_with_the_seed_and_are_as_long_as_asked(seed, count, length, random_seed):
    rows = sequences.write(MODEL, seed, count=count, length=length, random_seed=random_seed)
    assert len(rows) == count
    for row in rows:
        assert row
        assert row[: len(seed)] == seed
        assert set(row) <= set(range(5))
        assert length is None or len(row) == len(seed) + length
    again = sequences.write(MODEL, seed, count=count, length=length, random_seed=random_seed)
    assert rows == again


def test_a_seed_may_be_an_array_and_its_sequences_can_be_kept(tmp_path):
    rows = sequences.write(MODEL, np.array([2, 0]), length=3)
    sequences.save(rows, tmp_path / "rows.jsonl")
    assert json.loads((tmp_path / "rows.jsonl").read_text()) == rows[0]
    for seed in (["kick"], [5], [0.5]):
        with pytest.raises(ValueError, match=r"is no id: a number from 0 to 4; model\.vocab"):
            sequences.write(MODEL, seed)


@pytest.mark.parametrize("length", [0, -1])
def test_a_length_that_no_sequence_can_have_is_refused(length):
    with pytest.raises(ValueError, match=f"{length} ids to write, where 1 is the least"):
        sequences.write(MODEL, [2], length=length)
    with pytest.raises(ValueError, match="where 1 is the least"):
        next(sequences.stream(MODEL, [2], length=length))


def test_a_stream_is_what_is_written():
    (row,) = sequences.write(MODEL, [2, 0], length=40)
    assert [*sequences.stream(MODEL, [2, 0], length=40)] == row[2:]


def test_it_writes_what_it_scores():
    """How often short sequences come is what the likelihood says of them."""
    rows = [tuple(row) for row in sequences.write(MODEL, count=3000)]
    short = [[*ids] for size in (1, 2) for ids in itertools.product(range(5), repeat=size)]
    tokens = [np.append(MODEL.vocabulary.tokens(ids), Kind.END) for ids in short]
    allowed = [*map(MODEL.vocabulary.masks, tokens)]
    scored = token_nats(MODEL.steps, tokens, allowed, rebase=MODEL.rebase)
    expected = np.exp([-nats.sum() for nats in scored])
    found = np.array([rows.count(tuple(ids)) for ids in short]) / len(rows)
    assert expected.sum() > 0.1
    np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(expected.max() / len(rows)))


def test_at_temperature_0_chance_has_no_say():
    greedy = SamplingOptions(temperature=0)
    rows = [sequences.write(MODEL, [1], length=9, sampling=greedy, random_seed=n) for n in range(3)]
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.parametrize("name", ["new.jsonl", "new.npy"])
def test_the_command_writes_what_training_reads(file, capsys, name):
    words = ["--checkpoint", file, "--seed-ids", "hat 0", "--count", "20", "--ids", "9"]
    generate.main([*words, "--seed", "4", "--out", name])
    expected = sequences.write(MODEL, [2, 0], count=20, length=9, random_seed=4)
    splits = open_id_sequences(name, 5).splits.values()
    read = [split.piece(n)[1:-1].tolist() for split in splits for n in range(len(split))]
    assert sorted(read) == sorted([number + FIRST_ID for number in row] for row in expected)
    told = capsys.readouterr().out.splitlines()
    assert told == [
        f"{name} (20 sequences, 220 ids), of which the first is",
        MODEL.vocabulary.words(expected[0]),
    ]
    assert told[1].startswith("hat kick ")


def test_the_command_begins_and_ends_by_itself(file):
    generate.main(["--checkpoint", file, "--count", "5", "--out", "new.jsonl"])
    lines = Path("new.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == sequences.write(MODEL, count=5)


def test_one_is_counted_as_one(file, capsys):
    generate.main(["--checkpoint", file, "--ids", "1", "--out", "new.jsonl"])
    assert capsys.readouterr().out.startswith("new.jsonl (1 sequence, 1 id), of which the first is")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--seed-ids hat", "--seed-ids needs --out FILE.jsonl or FILE.npy"),
        ("--ids 3 --out x.mid", "--ids needs --out FILE.jsonl or FILE.npy"),
        ("--out x.jsonl --bars 8", "--bars is about music, and x.jsonl holds ids"),
        ("--out x.jsonl --key C", "--key is about music, and x.jsonl holds ids"),
        ("--out x.jsonl --seed-ids drum", "'drum' is no id: a name, or a number from 0 to 4"),
        ("--out x.npy --count 20", "sequences of an .npy file are equally long: say --ids N"),
        ("--bars 8", "a model of ids, which are no music; generate.py --out new.jsonl"),
        ("--out x.jsonl -c bach", "bach.safetensors: a model of music, not of other sequences"),
        ("--out x.jsonl --top-p 0", "--top-p"),
        ("--out x.jsonl --ids 0", "--ids"),
    ],
)
def test_a_mistake_is_one_line_and_no_file(file, tmp_path, capsys, words, told):
    assert told in refusal(capsys, "--checkpoint", file, *words.split(), command=generate)
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_sequences_need_a_model_that_is_named(file, capsys):
    line = refusal(capsys, "--out", "x.jsonl", command=generate)
    assert "needs --checkpoint, of a model that learned from ids" in line


def test_a_vocabulary_that_does_not_fit_is_refused(file):
    content = ModelFile(MODEL.network, IdVocabulary(6).to_json(), style_json="{}")
    save_model_file(file, content)
    with pytest.raises(sequences.ModelFileError, match="the vocabulary does not fit"):
        sequences.load(file)


def test_a_split_without_sequences_is_said_in_a_line(file, capsys):
    Path("some.jsonl").write_text("[0, 1, 2]\n[3, 4]\n")
    content = ModelFile(MODEL.network, IdVocabulary(5).to_json(), style_json="{}")
    save_model_file(file, content)
    words = ("likelihood", "-c", file, "--path", "some.jsonl", "--splits", "test")
    assert "some.jsonl: no sequence in test" in refusal(capsys, *words, command=evaluate)
