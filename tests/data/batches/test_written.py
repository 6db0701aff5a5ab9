"""Pieces that models wrote are learned from beside a corpus, and change nothing else."""

import itertools

import numpy as np
import pytest

from benchmarks import written as benchmark
from data.batches.options import DataOptions
from data.corpus.corpus import CorpusError
from data.corpus.options import CorpusOptions
from data.files.read import read_score
from data.midi.io import write_midi
from data.tokens.tokenizer import decode
from tests.folders import data_of_tunes, tune
from tests.models import untrained_on
from tests.runs import refusal


@pytest.fixture(autouse=True)
def folder(tunes, tmp_path):
    """A corpus of tunes, and beside it a folder of two more, one of them deeper."""
    (tmp_path / "more" / "deeper").mkdir(parents=True)
    write_midi(tune(98), tmp_path / "more" / "a.mid")
    write_midi(tune(99), tmp_path / "more" / "deeper" / "b.mid")
    return tmp_path


def test_written_pieces_are_in_training_windows_alone():
    plain, data = data_of_tunes(batch_size=8), data_of_tunes(batch_size=8, written="more")
    assert data.corpus == plain.corpus
    learned, own = data.source.learned, plain.source.learned
    assert learned.names == (*own.names, "more/a.mid", "more/deeper/b.mid")
    for number in range(len(own)):
        assert np.array_equal(learned.piece(number), own.piece(number))
    for number, path in enumerate(("more/a.mid", "more/deeper/b.mid"), start=len(own)):
        score, _ = read_score(path, data.vocabulary.grid)
        assert np.array_equal(decode(learned.piece(number), data.vocabulary).notes, score.notes)
    drawn = [data.source.training()._choose(0, step, 8).piece for step in range(20)]
    assert {*np.concatenate(drawn).tolist()} == {*range(len(learned))}
    notes = [[len(score.notes) for score in each.source.some_pieces] for each in (data, plain)]
    assert notes[0] == notes[1]
    for mine, its in zip(data.val_dataloader(), plain.val_dataloader(), strict=True):
        assert [*map(bytes, mine["pieces"])] == [*map(bytes, its["pieces"])]
    for batch in itertools.islice(data.train_dataloader(), 3):
        assert batch["ids"].shape == (8, 64)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda here: write_midi(tune(1), here / "x.mid") or (here / "y.mid").touch(), "y.mid"),
        (lambda here: [path.unlink() for path in here.rglob("*.mid")], "no music file"),
        (
            lambda here: write_midi(_low(), here / "low.mid"),
            "a model of another corpus wrote these pieces",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(folder, spoil, words):
    spoil(folder / "more")
    with pytest.raises(CorpusError, match=words):
        data_of_tunes(batch_size=8, written="more").train_dataloader()


def _low():
    score = tune(5)
    score.notes["pitch"] -= 24
    return score


def test_a_folder_that_is_not_there_is_refused_before_anything(capsys, folder):
    for option, word in (("nowhere", "no such folder"), ("more/a.mid", "a file, where a folder")):
        line = refusal(capsys, "fit", "--trainer.max_steps", 1, "--data.written", option)
        assert f"{option}: {word}" in line
    with pytest.raises(CorpusError, match=r"x\.npy: written pieces"):
        DataOptions(path="x.npy", vocabulary_size=5, written="more")


def test_a_model_writes_pieces_like_those_that_it_learned(folder, monkeypatch, capsys):
    untrained_on("tunes", folder / "model", transpose=6)
    words = ["written.py", "model", "new/one", "--count", "3"]
    monkeypatch.setattr("sys.argv", words)
    benchmark.main()
    grid = CorpusOptions().time_grid
    real = [read_score(path, grid)[0] for path in (folder / "tunes").iterdir()]
    pieces = [read_score(folder / f"new/one/000{n}.mid", grid)[0] for n in range(3)]
    lengths = {len(score.bars) for score in real}
    assert {len(score.bars) for score in pieces} <= lengths
    pitches = np.concatenate([s.notes["pitch"][s.notes["program"] < 128] for s in pieces])
    assert 60 <= pitches.min() <= pitches.max() < 72
    assert len(data_of_tunes(batch_size=8, written="new").source.learned) > 3

    with pytest.raises(SystemExit) as stop:
        benchmark.main()
    assert stop.value.code == 2
    assert "new/one: it is there already" in capsys.readouterr().err
