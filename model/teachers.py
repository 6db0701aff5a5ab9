"""Several decoders as one, for others to learn from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.bundle import BundleError, load_bundle
from model.checks import RunError
from model.decoder import Decoder


class Mean(nn.Module):
    """Decoders of one vocabulary as one: the mean of the probabilities that they give.

    Args:
        decoders: at least one.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        self.decoders = nn.ModuleList(decoders)
        self.config, self.head = decoders[0].config, decoders[0].head

    def forward(self, ids: Tensor, beside: Tensor | None = None) -> Tensor:
        """Logits (B, T, V), up to a constant in each place; the arguments are a decoder's."""
        each = [decoder(ids, beside=beside).log_softmax(dim=-1) for decoder in self.decoders]
        return torch.stack(each).logsumexp(dim=0)  # (N, B, T, V) -> (B, T, V)


def read_teachers(
    paths: Sequence[str | Path],
    vocabulary_json: str,
    beside_shape: dict[str, Any],
    context_length: int,
) -> Mean:
    """The mean of trained models, for one that reads what they read.

    Args:
        paths: of a `model.safetensors` each, at least one.
        vocabulary_json, beside_shape: of the data that is learnt from.
        context_length: of the windows.

    Raises:
        RunError: a file is no model, or its model does not read such windows.
    """
    decoders = []
    for path in paths:
        try:
            decoder, its_vocabulary, _ = load_bundle(path)
        except BundleError as error:
            raise RunError(f"model.teachers: {error}") from None
        told = {name: getattr(decoder.config, name) for name in beside_shape}
        if its_vocabulary != vocabulary_json or told != beside_shape:
            raise RunError(
                f"model.teachers: {path} has another vocabulary than the data; have it learn data "
                f"with the same pitches, instruments and lengths, and the same data.transpose"
            )
        if decoder.config.context_length < context_length:
            raise RunError(
                f"model.teachers: {path} reads {decoder.config.context_length} tokens at once, not "
                f"{context_length}: lower model.context_length"
            )
        decoders.append(decoder)
    return Mean(decoders).eval().requires_grad_(False)
