"""Takes over the predictions, or the weights, of trained decoders."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import torch
from torch import Tensor, nn

from common.cli import say
from common.interface import SideInput
from data.batches.datamodule import MusicDataModule
from data.tokens.features import SideFeatures, has_harmony
from data.tokens.vocabulary import Vocabulary
from generation.defaults import model_path
from model.config import SHAPE, DecoderOptions
from model.cpu import speed_up
from model.decoder import Decoder
from model.decoding import decoder_of
from model.serialization import ModelFile, ModelFileError, load_model_file
from training.checks import RunError
from training.options import RunOptions
from training.warm_start import take_weights

BASES = {"beats": "base", "seconds": "performed"}  # what comes with Etude to begin with, by grid


class Teachers(nn.Module):
    """Decoders that divide the windows of each batch among them at random, one teacher a window.

    The loss is linear in the teacher's probabilities. So on average it has the same gradient as
    with the mean of all teachers, at the cost of a single one. All teachers have the same
    vocabulary.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        for decoder in decoders:
            speed_up(decoder)
        self.decoders = nn.ModuleList(decoders)

    @torch.no_grad()
    def forward(self, ids: Tensor, side: SideInput[Tensor] | None) -> Tensor:
        """Return the logits (B, T, V) for int64 ids (B, T) and their side input, if any."""
        count = len(self.decoders)
        places = -(-len(ids) // count) * count  # the windows, filled up to equal shares
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
    """Read trained models that can teach a model which learns from windows of these data.

    Raises:
        RunError: a file is no model, or its model cannot read such windows.
    """
    decoders = []
    for path in paths:
        content = _content("model.teachers", path)
        decoder = decoder_of(content.network)
        side_shape = {name: getattr(decoder.config, name) for name in data.side_shape}
        if content.vocabulary_json != data.vocabulary.to_json() or side_shape != data.side_shape:
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
    return Teachers(decoders).eval().requires_grad_(False)


def with_beginning(options: RunOptions, data: MusicDataModule) -> RunOptions:
    """Return the options with the model that a run begins with; `auto`: one of BASES, or none.

    BASES fit music of few instruments, and a decoder of their own shape. A run that goes on, or is
    judged, has the weights of its checkpoint instead.
    """
    model = options.model
    if options.ckpt_path is not None:
        return replace(options, model=replace(model, begin_with=None))
    if model.begin_with != "auto":
        return options
    data.prepare_data()
    name, vocabulary = None, data.vocabulary
    if isinstance(vocabulary, Vocabulary) and data.side_shape.get("n_programs"):
        base = BASES[vocabulary.grid.kind]
        if not _differences(_content("model.begin_with", base).network.config, model):
            say(f"the run begins with what models/{base}.safetensors has learned")
            name = base
    return replace(options, model=replace(model, begin_with=name))


def begin_with(decoder: Decoder, path: str | Path, data: MusicDataModule) -> None:
    """Give a decoder that is to learn from the data the weights of a trained one.

    Raises:
        RunError: the file is no model, or its model has another shape.
    """
    content = _content("model.begin_with", path)
    trained, ours = decoder_of(content.network), data.vocabulary
    config, own = trained.config, decoder.config
    if differing := _differences(config, own):
        raise RunError(
            f"model.begin_with: {path} has {', '.join(differing)}: give the run the same settings"
        )
    is_same = content.vocabulary_json == ours.to_json() and config.n_classes == own.n_classes
    if is_same and config.side_blocks == own.side_blocks:
        decoder.load_state_dict(decoder.state_dict() | trained.state_dict())
        return
    theirs = None
    if config.n_programs and own.n_programs:  # with too many, features are not told by instrument
        with suppress(ValueError):  # it learned something other than music
            theirs = Vocabulary.from_json(content.vocabulary_json)
    if theirs is None or not isinstance(ours, Vocabulary):
        raise RunError(
            f"model.begin_with: {path} has learned other data: ids, or more than 16 instruments"
        )
    features = SideFeatures(theirs, has_harmony(config.side_blocks))
    if features.shape["side_blocks"] != config.side_blocks:
        raise RunError(f"model.begin_with: {path}: it has another side input than this program")
    take_weights(decoder, trained, ours, theirs)


def _differences(trained: DecoderOptions, own: DecoderOptions) -> list[str]:
    """Return how the shape of a trained decoder differs from that of our own."""
    return [
        f"{name} {before}, not {now}"
        for name in SHAPE
        if (before := getattr(trained, name)) != (now := getattr(own, name))
    ]


def _content(option: str, path: str | Path) -> ModelFile:
    """Read the model that an option names."""
    try:
        return load_model_file(model_path(path))
    except ModelFileError as error:
        raise RunError(f"{option}: {error}") from None
