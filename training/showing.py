"""What a model has learned by some step of its training: music, attention, embeddings, statistics.

Each is shown by a function of its own, so that where one fails the others are still seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

from common.files import write_atomically
from data.corpus.corpus import Corpus
from data.score import Score
from data.tokens.tokenizer import decode
from evaluation import embeddings
from evaluation.charts import draw_statistics
from evaluation.comparison import compare
from evaluation.samples import pieces_of
from generation.compose import Piece, compose
from generation.length import Length
from generation.model import Model
from generation.seeds import Seed
from rendering.attention_map import draw_attention, token_labels
from rendering.audio import render_audio
from rendering.piano_roll import draw_piano_roll

SAMPLE_RATE = 22_050  # of the audio in TensorBoard, whose files grow with it
SAMPLES, HEARD = 4, 2  # pieces that are sampled and measured; those of them that are shown
OPENING_BARS = 2  # of a held-out piece that are given
MOST_REAL = 12  # held-out pieces, and training pieces, that samples are measured beside
PROJECTOR = "projector"  # the folder of what the projector shows


@dataclass
class Moment:
    """A model at a step of its training, and where it is shown.

    Attributes:
        writer: to a run's page.
        corpus: that it is trained on.
        model: with its decoder in evaluation mode.
        step: so many were made.
        bars: how long each piece is.
        tokens: how many of a held-out piece the attention maps show.
    """

    writer: SummaryWriter
    corpus: Corpus
    model: Model
    step: int
    bars: int
    tokens: int

    @cached_property
    def samples(self) -> list[Score]:
        """Pieces from nothing; from the same random numbers at every step."""
        pieces = compose(self.model, length=Length(bars=self.bars), samples=SAMPLES)
        return [piece.score for piece in pieces]

    @cached_property
    def opening(self) -> Score:
        """Of the first held-out piece, as long as the samples are."""
        split, vocabulary = self.corpus.split("valid"), self.corpus.vocabulary
        return self._opening(decode(split.piece(0), vocabulary), self.bars)

    @cached_property
    def seed(self) -> Seed:
        """Its first bars."""
        score = self._opening(self.opening, min(OPENING_BARS, max(self.bars - 1, 1)))
        return Seed(score, int(score.bar_starts[-1]))

    @cached_property
    def continuation(self) -> Piece:
        """Those, and what the model writes after them; of as many as the samples.

        For as many rows, a step of sampling is recorded already.
        """
        given = len(self.seed.score.bars) - self.opening.has_upbeat
        length = Length(bars=max(self.bars - given, 1))
        return compose(self.model, self.seed, length, samples=SAMPLES)[0]

    def real(self, split: str) -> list[Score]:
        """Pieces of a split, as far as the samples go."""
        return [self._opening(s, self.bars) for s in pieces_of(self.corpus, split, MOST_REAL)]

    @staticmethod
    def _opening(score: Score, bars: int) -> Score:
        return score.excerpt(0, bars + score.has_upbeat)


def show_samples(moment: Moment) -> None:
    """Piano rolls of sampled pieces."""
    for number, score in enumerate(moment.samples[:HEARD], start=1):
        roll = draw_piano_roll(score, title=f"after {moment.step} steps")
        moment.writer.add_figure(f"music/roll_{number}", roll, moment.step, close=False)


def play_samples(moment: Moment) -> None:
    """The sound of the same pieces."""
    for number, score in enumerate(moment.samples[:HEARD], start=1):
        _play(moment, f"music/audio_{number}", score)


def show_continuation(moment: Moment) -> None:
    """Piano roll: what the model writes after a held-out opening."""
    score, title = moment.continuation.score, f"after {moment.step} steps"
    _show_after_opening(moment, "model", score, title, "the model goes on")


def play_continuation(moment: Moment) -> None:
    """The sound of the same."""
    _play(moment, "continuation/audio_model", moment.continuation.score)


def show_truth(moment: Moment) -> None:
    """Piano roll: what truly comes after the opening."""
    _show_after_opening(moment, "true", moment.opening, "as it was written", "the piece goes on")


def play_truth(moment: Moment) -> None:
    """The sound of the same."""
    _play(moment, "continuation/audio_true", moment.opening)


def _show_after_opening(moment: Moment, tag: str, score: Score, title: str, continues: str) -> None:
    title = f"{moment.corpus.split('valid').names[0]}, {title}"
    roll = draw_piano_roll(score, moment.seed.end_step, title=title, continues=continues)
    moment.writer.add_figure(f"continuation/roll_{tag}", roll, moment.step, close=False)


def _play(moment: Moment, tag: str, score: Score) -> None:
    """Under another tag than a picture's: TensorBoard shows but one of two with the same."""
    audio = render_audio(score, SAMPLE_RATE)
    moment.writer.add_audio(tag, audio, moment.step, sample_rate=SAMPLE_RATE)


def show_attention(moment: Moment) -> None:
    """Which tokens each head looks at while the first held-out piece is read."""
    model = moment.model
    decoder, vocabulary = model.decoder, model.vocabulary
    longest = min(moment.tokens, decoder.config.context_length)
    ids = moment.corpus.split("valid").piece(0)[:longest]
    on_device = torch.from_numpy(ids)[None].to(decoder.head.weight.device)
    side = torch.from_numpy(model.side(ids[None])).to(on_device.device)
    maps = decoder.attention_maps(on_device, side=side)[:, 0]  # (L, H, T, T)
    picture = draw_attention(
        maps.float().cpu().numpy(), token_labels(ids, vocabulary), decoder.attention_names
    )
    moment.writer.add_figure("attention/maps", picture, moment.step, close=False)


def show_embeddings(moment: Moment) -> None:
    """The embeddings of all tokens in the projector, and how near some intervals lie in them.

    Files as the projector reads them, instead of torch's `add_embedding`, which would name the
    same tokens in its list once more each time, and after a run goes on.
    """
    vocabulary = moment.model.vocabulary
    table = moment.model.decoder.embedding.weight.detach().float().cpu().numpy()  # (V, D)
    folder = Path(moment.writer.log_dir)
    with write_atomically(folder / PROJECTOR / "embeddings.tsv") as path:
        np.savetxt(path, table, fmt="%.5g", delimiter="\t")
    with write_atomically(folder / PROJECTOR / "labels.tsv") as path:
        rows = [embeddings.COLUMNS, *embeddings.labels(vocabulary)]
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    with write_atomically(folder / "projector_config.pbtxt") as path:
        path.write_text(
            f'embeddings {{\n  tensor_name: "tokens"\n  tensor_path: "{PROJECTOR}/embeddings.tsv"\n'
            f'  metadata_path: "{PROJECTOR}/labels.tsv"\n}}\n'
        )
    for name, semitones in (("octaves", embeddings.OCTAVE), ("fifths", embeddings.FIFTH)):
        nearer = embeddings.interval_nearness(table, vocabulary, semitones)
        if np.isfinite(nearer):
            moment.writer.add_scalar(f"embedding/{name}_nearer", nearer, moment.step)


def show_statistics(moment: Moment) -> None:
    """How samples measure beside held-out pieces of their length, and training pieces beside both.

    Overlaps are those of evaluation/comparison.py, 1 where two sets are alike; `overlap` is the
    mean of all
    that are defined, `overlap_real` the same of training pieces in place of the samples.
    """
    result = compare(moment.samples, moment.real("valid"), moment.real("train"))
    picture = draw_statistics(result)
    moment.writer.add_figure("statistics/samples", picture, moment.step, close=False)
    rows = result["measures"] | result["histograms"]
    overlaps = {name: row["distance"]["overlap"] for name, row in rows.items()}
    real = [row["real_distance"]["overlap"]["mean"] for row in rows.values()]
    known = {f"overlap_{name}": value for name, value in overlaps.items() if np.isfinite(value)}
    if known:
        means = {"overlap": np.mean(list(known.values())), "overlap_real": np.nanmean(real)}
        for name, value in {**means, **known}.items():
            moment.writer.add_scalar(f"statistics/{name}", float(value), moment.step)


# at the first point alone, for it stays the same
SHOWN_ONCE: dict[str, Callable[[Moment], None]] = {
    "the piano roll of the true continuation": show_truth,
    "the sound of the true continuation": play_truth,
}
SHOWN: dict[str, Callable[[Moment], None]] = {
    "the piano rolls of samples": show_samples,
    "the sound of samples": play_samples,
    "the piano roll of the continuation": show_continuation,
    "the sound of the continuation": play_continuation,
    "the attention maps": show_attention,
    "the embeddings": show_embeddings,
    "the statistics of samples": show_statistics,
}
