"""Windows in which some bars of the music have room."""

from dataclasses import replace

import pytest

from data.batches.datamodule import MusicDataModule
from data.batches.options import DataOptions
from data.corpus.corpus import open_corpus
from tests.folders import write_tunes
from training import windows
from training.options import ModelOptions, RunOptions
from training.windows import BARS


def with_windows(options):
    """The options, which are those of the data, too."""
    data = MusicDataModule(options.data, options.model.context_length)
    fitted, data = windows.with_windows(options, data)
    assert (data.options, data.context_length) == (fitted.data, fitted.model.context_length)
    return fitted


@pytest.fixture
def options(tmp_path):
    """32 windows of 16 tokens at a time, of tunes."""
    path, datasets = str(write_tunes(tmp_path, 12)), str(tmp_path / "datasets")
    data = DataOptions(path=path, datasets=datasets, batch_size=32, fit_windows=True)
    return RunOptions(data=data, model=ModelOptions(context_length=16))


def test_windows_are_long_enough_for_eight_bars_and_fewer(options, capsys):
    fitted, data = with_windows(options), options.data
    train = open_corpus(data.path, data.datasets, data.corpus).split("train")
    length, size = fitted.model.context_length, fitted.data.batch_size
    assert length / 2 < BARS * len(train.tokens) / len(train.bar_offsets) <= length
    assert length * size == 16 * 32
    assert f"windows of {length} tokens, {size} at a time" in capsys.readouterr().out
    assert with_windows(fitted) == fitted  # a run that goes on keeps them


def test_a_batch_is_one_window_at_least_and_longer_windows_stay(options):
    few = replace(options, data=replace(options.data, batch_size=2))
    assert with_windows(few).data.batch_size == 1
    assert with_windows(few).model.context_length == 32
    long = replace(options, model=ModelOptions(context_length=2048))
    assert with_windows(long) == long


def test_windows_stay_where_nobody_asks_and_where_there_are_no_bars(options):
    as_said = replace(options, data=replace(options.data, fit_windows=False))
    in_seconds = replace(options, data=replace(options.data, grid="seconds"))
    ids = replace(options, data=DataOptions(path="steps.jsonl", fit_windows=True))
    for each in (as_said, in_seconds, ids):
        assert with_windows(each) == each


def test_the_corpus_is_opened_once(options, capsys):
    data = MusicDataModule(options.data, options.model.context_length)
    _, longer = windows.with_windows(options, data)
    longer.prepare_data()
    assert longer is not data
    assert longer.corpus is data.corpus
    assert capsys.readouterr().out.count("pieces out of") == 1
    assert longer.source.training().batch(0, 0, 2)[0].shape == (2, longer.context_length)
