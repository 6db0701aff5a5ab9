"""Computes, once, at the end of a run, what is kept with the model."""

from dataclasses import replace
from typing import Any

from common.cli import say
from common.typed_json import from_json, to_json
from data.style import Style
from evaluation.fit_critic import fit_critic
from evaluation.fit_sampling import fit_sampling
from generation.model import Model
from model.decoding import decoder_of, network_of
from model.serialization import ModelFile

FITTING_SHARE = 0.1  # share of the tokens of a run that may be written to fit its sampling
BEGUN_SHARE = 1.0  # likewise of a run that began with a model: its few tokens are enough to learn
FITTING_TOKENS = 150_000  # and never more than these, a minute of one core; likewise its critic


def scored(content: ModelFile, pl_module: Any) -> ModelFile:
    """Return the model with its figure and temperature on all validation pieces, not a sample."""
    pieces = pl_module.data.val_dataloader()
    if content.record.valid_pieces == pieces.total or pieces.count == pieces.total:
        return content
    print()  # below the progress bar
    say(f"scoring all {pieces.total} validation pieces, not a sample")
    decoder = decoder_of(content.network)
    nats = pl_module.score_all(decoder.to(pl_module.device))
    say(f"all {pieces.total} validation pieces: {nats:.3f} nats per note")
    record = replace(content.record, valid_nats_per_note=nats, valid_pieces=pieces.total)
    return replace(content, network=network_of(decoder), record=record)


def fitted(content: ModelFile, pl_module: Any, steps: int) -> ModelFile:
    """Return the model with its best way to sample, and with a critic, if it writes music.

    Args:
        content: the model.
        pl_module: the `MusicModule` that the run trained.
        steps: how many steps the run made.
    """
    data, style = pl_module.data, from_json(Style, content.style_json)
    if style.temperature is not None or not data.source.some_pieces:
        return content
    tokens = steps * data.options.batch_size * data.context_length
    share = BEGUN_SHARE if pl_module.options.begin_with else FITTING_SHARE
    budget = min(FITTING_TOKENS, round(share * tokens))
    say("finding the sampling options that suit the model best")
    model = Model(content.network, data.vocabulary, style)
    best = fit_sampling(model, data.source.some_pieces, budget)
    if best is None:
        say("the model has learned too little for that: it keeps the default options")
        return content
    sampling = best.sampling
    where = "drawn steps of a beat" if best.style.rhythms else "any step"
    say(
        f"its pieces are most like the training pieces at temperature {sampling.temperature:g}, "
        f"rhythm temperature {sampling.rhythm_temperature:g} and top-p {sampling.top_p:g}, with "
        f"notes on {where}: these are now its defaults"
    )
    critic = fit_critic(best, data.source.some_pieces, budget)
    return replace(content, style_json=to_json(replace(best.style, critic=critic)))
