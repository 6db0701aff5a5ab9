"""Trained decoders for others to learn from, or to begin with."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from data.batches.datamodule import MusicDataModule
from model.config import SHAPE
from model.cpu import speed_up
from model.decoder import Decoder
from model.serialization import ModelFileError, load_model_file
from training.checks import RunError


class Teachers(nn.Module):
    """Decoders that share the windows of each batch, drawn by lot: each window is told by one.

    A loss that is linear in what is expected has on average the gradient that the mean of their
    probabilities would give it, at the cost of one of them.

    Args:
        decoders: of one vocabulary, at least one.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        for decoder in decoders:
            speed_up(decoder)
        self.decoders = nn.ModuleList(decoders)

    @torch.no_grad()
    def forward(self, ids: Tensor, side: Tensor) -> Tensor:
        """Logits (B, T, V) of int64 ids (B, T), with the side input (B, T, S) beside them."""
        count = len(self.decoders)
        places = -(-len(ids) // count) * count  # the windows, and more for equal shares
        whose = torch.randperm(places)[: len(ids)].to(ids.device) % count  # (B,)
        told = [
            decoder(ids[whose == number], side=side[whose == number])
            for number, decoder in enumerate(self.decoders)
            if (whose == number).any()
        ]
        order = whose.argsort(stable=True)
        return torch.cat(told)[order.argsort()]


def read_teachers(
    paths: Sequence[str | Path], data: MusicDataModule, context_length: int
) -> Teachers:
    """Trained models, for one that reads what they read.

    Args:
        paths: of a `model.safetensors` each, at least one.
        data: that is learned from.
        context_length: of the windows.

    Raises:
        RunError: a file is no model, or its model does not read such windows.
    """
    decoders = []
    for path in paths:
        decoder = _read("model.teachers", path, data)
        if decoder.config.context_length < context_length:
            raise RunError(
                f"model.teachers: {path} reads {decoder.config.context_length} tokens at once, not "
                f"{context_length}: lower model.context_length"
            )
        decoders.append(decoder)
    return Teachers(decoders).eval().requires_grad_(False)


def begin_with(decoder: Decoder, path: str | Path, data: MusicDataModule) -> None:
    """Give a decoder the weights of a trained one.

    Args:
        decoder: to be trained.
        path: of a `model.safetensors`.
        data: that is to be learned from.

    Raises:
        RunError: the file is no model, or one of another shape or of other data.
    """
    trained = _read("model.begin_with", path, data)
    pairs = {name: (getattr(trained.config, name), getattr(decoder.config, name)) for name in SHAPE}
    told = [f"{name} {its}, not {mine}" for name, (its, mine) in pairs.items() if its != mine]
    if told:
        raise RunError(f"model.begin_with: {path} has {', '.join(told)}: give the run what it has")
    decoder.load_state_dict(trained.state_dict())


def _read(option: str, path: str | Path, data: MusicDataModule) -> Decoder:
    """The trained decoder that an option asks for, of just such data."""
    try:
        decoder, its_vocabulary, _ = load_model_file(path)
    except ModelFileError as error:
        raise RunError(f"{option}: {error}") from None
    told = {name: getattr(decoder.config, name) for name in data.side_shape}
    if its_vocabulary != data.vocabulary.to_json() or told != data.side_shape:
        raise RunError(
            f"{option}: {path} has another vocabulary than the data; have it learn data with the "
            f"same pitches, instruments and lengths, and the same data.transpose"
        )
    return decoder
