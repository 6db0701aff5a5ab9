"""How long the windows are that a run learns from: some bars of the music."""

from dataclasses import replace

from common.cli import say
from data.corpus.corpus import open_corpus
from training.options import RunOptions

BARS = 8  # after which much comes again


def with_windows(options: RunOptions) -> RunOptions:
    """Return the options with windows twice as long, and half as many, where eight bars are longer.

    That is done where `data.fit_windows` asks for it, as often as it takes, or until a batch is one
    window. Music that is not counted in bars keeps its windows.
    """
    data, length = options.data, options.model.context_length
    if not data.fit_windows or data.is_ids:
        return options
    corpus = open_corpus(data.path, data.datasets, data.corpus)
    split, size = corpus.split("train"), data.batch_size
    if not corpus.vocabulary.grid.has_meter:
        return options
    tokens = BARS * len(split.tokens) / len(split.bar_offsets)
    while length < tokens and size % 2 == 0:
        length, size = 2 * length, size // 2
    if size < data.batch_size:
        say(f"windows of {length:,} tokens, {size} at a time: {BARS} bars have {tokens:,.0f}")
    model = replace(options.model, context_length=length)
    return replace(options, data=replace(data, batch_size=size), model=model)
