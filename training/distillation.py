"""Trained decoders whose expectations, or whose weights, a run takes over."""

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import torch
from torch import Tensor, nn

from common.interface import SideInput
from data.batches.datamodule import MusicDataModule
from model.config import SHAPE
from model.cpu import speed_up
from model.decoder import Decoder
from model.decoding import decoder_of
from model.serialization import ModelFileError, load_model_file
from training.checks import RunError


class Teachers(nn.Module):
    """Decoders that share the windows of each batch at random: each window has one teacher.

    A loss that is linear in the expected probabilities then has, on average, the gradient that
    the mean of all teachers would give it, at the cost of one of them. All are of one vocabulary.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        for decoder in decoders:
            speed_up(decoder)
        self.decoders = nn.ModuleList(decoders)

    @torch.no_grad()
    def forward(self, ids: Tensor, side: SideInput[Tensor] | None) -> Tensor:
        """Return logits (B, T, V) for int64 ids (B, T) and their side input, if any."""
        count = len(self.decoders)
        places = -(-len(ids) // count) * count  # the windows, and more for equal shares
        teacher = torch.randperm(places)[: len(ids)].to(ids.device) % count  # (B,)
        logits = []
        for number, decoder in enumerate(self.decoders):
            rows = teacher == number
            if rows.any():
                logits.append(decoder(ids[rows], side=side and side.map(itemgetter(rows))))
        return torch.cat(logits)[teacher.argsort(stable=True).argsort()]


def read_teachers(
    paths: Sequence[str | Path], data: MusicDataModule, context_length: int
) -> Teachers:
    """Read trained models that can teach one that learns from windows of the given data.

    A file that is no model, or whose model cannot read such windows, is refused by a RunError.
    """
    decoders = [_read_model("model.teachers", path, data) for path in paths]
    for path, decoder in zip(paths, decoders, strict=True):
        if decoder.config.context_length < context_length:
            raise RunError(
                f"model.teachers: {path} reads {decoder.config.context_length} tokens at once, not "
                f"{context_length}: lower model.context_length"
            )
    return Teachers(decoders).eval().requires_grad_(False)


def begin_with(decoder: Decoder, path: str | Path, data: MusicDataModule) -> None:
    """Give a decoder, which is to learn from the data, the weights of a trained one.

    A file that is no model, or one of another shape or of other data, is refused by a RunError.
    """
    trained = _read_model("model.begin_with", path, data)
    if differing := [
        f"{name} {its}, not {ours}"
        for name in SHAPE
        if (its := getattr(trained.config, name)) != (ours := getattr(decoder.config, name))
    ]:
        raise RunError(
            f"model.begin_with: {path} has {', '.join(differing)}: give the run the same settings"
        )
    decoder.load_state_dict(trained.state_dict())


def _read_model(option: str, path: str | Path, data: MusicDataModule) -> Decoder:
    """Read the trained decoder that an option names; it must be of the vocabulary of the data."""
    try:
        content = load_model_file(path)
    except ModelFileError as error:
        raise RunError(f"{option}: {error}") from None
    decoder = decoder_of(content.network)
    side_shape = {name: getattr(decoder.config, name) for name in data.side_shape}
    if content.vocabulary_json != data.vocabulary.to_json() or side_shape != data.side_shape:
        raise RunError(
            f"{option}: {path} has another vocabulary than the data; have it learn data with the "
            f"same pitches, instruments and lengths, and the same data.transpose"
        )
    return decoder
