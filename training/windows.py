"""Decides how long the windows are that a run learns from: some bars of the music."""

from dataclasses import replace

from common.cli import say
from data.batches.datamodule import MusicDataModule
from data.corpus.corpus import Corpus
from training.options import RunOptions

BARS = 8  # after these, much comes again


def with_windows(options: RunOptions, data: MusicDataModule) -> tuple[RunOptions, MusicDataModule]:
    """Return both arguments, with longer and fewer windows if eight bars do not fit into one.

    If `data.fit_windows` asks for it, windows become twice as long and half as many, again and
    again, until eight bars fit or a batch is a single window. Music that is not counted in bars
    keeps its windows.
    """
    length, size = options.model.context_length, options.data.batch_size
    if not options.data.fit_windows or options.data.is_ids:
        return options, data
    data.prepare_data()
    corpus = data.corpus
    assert isinstance(corpus, Corpus)
    if not corpus.vocabulary.grid.has_meter:
        return options, data
    split = corpus.split("train")
    tokens = BARS * len(split.tokens) / len(split.bar_offsets)
    while length < tokens and size % 2 == 0:
        length, size = 2 * length, size // 2
    if size == options.data.batch_size:
        return options, data
    say(f"windows of {length:,} tokens, {size} at a time: {BARS} bars have {tokens:,.0f}")
    fitted = replace(options.data, batch_size=size)
    options = replace(options, data=fitted, model=replace(options.model, context_length=length))
    return options, data.with_windows(fitted, length)
