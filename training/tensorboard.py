"""What TensorBoard shows of a run: its figures, its settings, and what the model has learned.

Each picture or sound is made by a function of its own, so that where one fails the others are
still seen. A picture and a sound never share a tag: TensorBoard would show only one of the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from data.batches.id_sequences import IdSequences, IdVocabulary
from data.corpus.corpus import Corpus
from data.score import Score
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Vocabulary
from evaluation import embeddings
from evaluation.charts import draw_statistics
from evaluation.comparison import compare
from evaluation.samples import split_scores
from generation.compose import Piece, compose
from generation.length import Length
from generation.model import Model
from generation.seeds import Seed
from model.decoding import side_tensors
from rendering.attention_map import draw_attention, token_labels
from rendering.audio import render_audio
from rendering.piano_roll import draw_piano_roll

Charts: TypeAlias = dict[str, list[Any]]  # by title: "Multiline" and the tags that share it

EVENT_FILES = "events.out.tfevents.*"  # what TensorBoard reads of a run's folder
NEVER_PREDICTED = ("pad", "start")  # kinds of token
SAMPLE_RATE = 22_050  # of the audio, in Hz; the event files grow with it
SAMPLES, SAMPLES_SHOWN = 4, 2  # pieces that are sampled and measured; those that are shown
SAMPLE_BARS = 4
PROMPT_BARS = 2  # of a held-out piece, which the model continues
MOST_REAL_PIECES = 12  # of the held-out and of the training pieces that samples are compared with
ATTENTION_TOKENS = 16  # of a held-out piece
PROJECTOR_CONFIG = """embeddings {
  tensor_name: "tokens"
  tensor_path: "projector/embeddings.tsv"
  metadata_path: "projector/labels.tsv"
}
"""


class RunLogger(TensorBoardLogger):
    """A logger to a run's own folder, without the charts that say nothing here.

    Figures stand at the number of steps made. Events of later steps than the run begins with,
    which a killed run has left, are hidden.

    Args:
        folder: of the run.
        steps_made: before the run goes on; 0 where it begins.
    """

    def __init__(self, folder: Path, steps_made: int = 0) -> None:
        super().__init__(
            folder.parent,
            name=folder.name,
            version="",
            default_hp_metric=False,
            purge_step=steps_made + 1 if steps_made else 0,
        )
        # TensorBoard reads a folder's files in the order of the seconds in their names.
        names = [path.name for path in folder.glob(EVENT_FILES)]
        latest = max((int(name.split(".")[3]) for name in names), default=0)
        while int(time.time()) == latest:
            time.sleep(0.01)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log as Lightning does, but count steps from 1 and leave out the epoch: there is one."""
        named = {name: value for name, value in metrics.items() if name != "epoch"}
        super().log_metrics(named, None if step is None else step + 1)


# At the beginning of a run


def log_charts(writer: SummaryWriter, vocabulary: Vocabulary | IdVocabulary, n_layer: int) -> None:
    """Lay out charts that hold training and validation together, in the custom scalars tab.

    Args:
        writer: to the run's folder.
        vocabulary: of the run.
        n_layer: blocks of its decoder.
    """
    kinds = [vocabulary.kind_names[kind] for kind in np.unique(vocabulary.kind_of).tolist()]
    predicted = [kind for kind in kinds if kind not in NEVER_PREDICTED]
    writer.add_custom_scalars(_chart_layout(predicted, n_layer))


def _chart_layout(kinds: Sequence[str], n_layer: int) -> dict[str, Charts]:
    blocks = [f"layer_{number + 1}" for number in range(n_layer)]
    parts = ["all", "embedding", "side", *blocks, "head", "interval_head"]
    return {
        "learning": {
            "nats per note": _lines("train/nats_per_note", "valid/nats_per_note"),
            "loss: nats per token": _lines("train/loss", "valid/loss"),
            "nats per note by kind of token, valid": _lines(*(f"valid/nats_{k}" for k in kinds)),
            "temperature that suits valid": _lines("valid/temperature"),
        },
        "accuracy by kind of token": {
            kind: _lines(f"train/accuracy_{kind}", f"valid/accuracy_{kind}") for kind in kinds
        },
        "music": {
            "overlap with held-out music": _lines("statistics/overlap", "statistics/overlap_real"),
            "intervals nearer than their neighbors": _lines(
                "embedding/octaves_nearer", "embedding/fifths_nearer"
            ),
        },
        "the machine": {
            "norm of gradients": _lines(*(f"gradient_norm/{part}" for part in parts)),
            "learning rates": _lines("learning_rate/muon", "learning_rate/adamw"),
            "tokens and notes a second": _lines(
                "machine/tokens_per_second", "machine/notes_per_second"
            ),
            "memory, GiB": _lines("machine/memory_gib"),
        },
    }


def _lines(*tags: str) -> list[Any]:
    return ["Multiline", [f"^{tag}$" for tag in tags]]  # TensorBoard takes them as patterns


def log_settings(
    writer: SummaryWriter, vocabulary: Vocabulary | IdVocabulary, settings: Mapping[str, Any]
) -> None:
    """Add the run to the table of runs; TensorBoard looks up its latest validation figures.

    Args:
        writer: to the run's folder.
        vocabulary: of the run.
        settings: by name; what is neither number nor text is written as text.
    """
    plain = {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in settings.items()
    }
    note = vocabulary.kind_names[vocabulary.note_kind]
    metrics = ("valid/nats_per_note", "valid/loss", f"valid/accuracy_{note}")
    file = writer._get_file_writer()  # type: ignore[no-untyped-call]
    # `add_hparams` would make a run of its own.
    for summary in hparams(plain, dict.fromkeys(metrics, 0.0)):  # type: ignore[no-untyped-call]
        file.add_summary(summary)


def log_config(writer: SummaryWriter, path: Path) -> None:
    """Add all settings, resolved, as the text of a run's config.yaml."""
    _log_text(writer, "run/config", path.read_text(encoding="utf-8"))


def log_corpus(writer: SummaryWriter, corpus: Corpus | IdSequences) -> None:
    """Add the report on a corpus; of sequences that are no music, how many there are."""
    _log_text(writer, "run/corpus", corpus.full_report())


def _log_text(writer: SummaryWriter, tag: str, text: str) -> None:
    writer.add_text(tag, f"```\n{text}\n```")


# A few times a run


@dataclass(frozen=True)
class Snapshot:
    """A model at a step of its training, with the pieces that show what it has learned.

    Attributes:
        writer: to the run's folder.
        corpus: that the model is trained on.
        model: with its decoder in evaluation mode.
        step: how many were made.
    """

    writer: SummaryWriter
    corpus: Corpus
    model: Model
    step: int

    @cached_property
    def samples(self) -> list[Score]:
        """Pieces from nothing; from the same random numbers at every step."""
        pieces = compose(self.model, length=Length(bars=SAMPLE_BARS), samples=SAMPLES)
        return [piece.score for piece in pieces]

    @cached_property
    def reference(self) -> Score:
        """The first bars of the first held-out piece, as many as a sample has."""
        split, vocabulary = self.corpus.split("valid"), self.corpus.vocabulary
        return _first_bars(decode(split.piece(0), vocabulary), SAMPLE_BARS)

    @cached_property
    def prompt(self) -> Seed:
        """The first bars of the reference."""
        score = _first_bars(self.reference, PROMPT_BARS)
        return Seed(score, int(score.bar_starts[-1]))

    @cached_property
    def continuation(self) -> Piece:
        """The prompt, and what the model writes after it.

        As many rows are sampled as for `samples`, since a step of so many is recorded already.
        """
        given = len(self.prompt.score.bars) - self.reference.has_upbeat
        length = Length(bars=max(SAMPLE_BARS - given, 1))
        return compose(self.model, self.prompt, length, samples=SAMPLES)[0]

    def real_pieces(self, split: str) -> list[Score]:
        """Return pieces of a split, cut to the length of samples."""
        pieces = split_scores(self.corpus, split, MOST_REAL_PIECES)
        return [_first_bars(score, SAMPLE_BARS) for score in pieces]

    def log_figure(self, tag: str, figure: Any) -> None:
        """Add a matplotlib figure; pyplot does not know of it, so there is nothing to close."""
        self.writer.add_figure(tag, figure, self.step, close=False)

    def log_audio(self, tag: str, score: Score) -> None:
        """Add the sound of a piece."""
        audio = render_audio(score, SAMPLE_RATE)
        self.writer.add_audio(tag, audio, self.step, sample_rate=SAMPLE_RATE)

    def log_continuation(self, tag: str, score: Score, title: str, continues: str) -> None:
        """Add the piano roll of a piece that begins with the prompt, with a label for the rest."""
        title = f"{self.corpus.split('valid').names[0]}, {title}"
        roll = draw_piano_roll(score, self.prompt.end_step, title=title, continues=continues)
        self.log_figure(tag, roll)


def _first_bars(score: Score, bars: int) -> Score:
    return score.excerpt(0, bars + score.has_upbeat)


def log_sample_rolls(snapshot: Snapshot) -> None:
    """Draw sampled pieces as piano rolls."""
    for number, score in enumerate(snapshot.samples[:SAMPLES_SHOWN], start=1):
        roll = draw_piano_roll(score, title=f"after {snapshot.step} steps")
        snapshot.log_figure(f"music/roll_{number}", roll)


def log_sample_audio(snapshot: Snapshot) -> None:
    """Play the same pieces."""
    for number, score in enumerate(snapshot.samples[:SAMPLES_SHOWN], start=1):
        snapshot.log_audio(f"music/audio_{number}", score)


def log_attention(snapshot: Snapshot) -> None:
    """Draw which tokens of the first held-out piece each head attends to."""
    model = snapshot.model
    decoder, vocabulary = model.decoder, model.vocabulary
    longest = min(ATTENTION_TOKENS, decoder.config.context_length)
    ids = snapshot.corpus.split("valid").piece(0)[:longest]
    on_device = torch.from_numpy(ids)[None].to(decoder.head.weight.device)
    side = side_tensors(model.side(ids[None]), on_device.device)
    maps = decoder.attention_maps(on_device, side=side)[:, 0]  # (L, H, T, T)
    picture = draw_attention(
        maps.float().cpu().numpy(), token_labels(ids, vocabulary), decoder.attention_names
    )
    snapshot.log_figure("attention/maps", picture)


def log_embeddings(snapshot: Snapshot) -> None:
    """Write the token embeddings for the projector, and log how near some intervals lie in them.

    torch's `add_embedding` would list the same tokens once more each time, and after a resume.
    """
    vocabulary = snapshot.model.vocabulary
    table = snapshot.model.decoder.embedding.weight.detach().float().cpu().numpy()  # (V, D)
    folder = Path(snapshot.writer.log_dir)
    (folder / "projector").mkdir(exist_ok=True)
    np.savetxt(folder / "projector/embeddings.tsv", table, fmt="%.5g", delimiter="\t")
    rows = [embeddings.COLUMNS, *embeddings.labels(vocabulary)]
    text = "".join("\t".join(row) + "\n" for row in rows)
    (folder / "projector/labels.tsv").write_text(text, encoding="utf-8")
    (folder / "projector_config.pbtxt").write_text(PROJECTOR_CONFIG)
    for name, semitones in (("octaves", embeddings.OCTAVE), ("fifths", embeddings.FIFTH)):
        nearer = embeddings.interval_nearness(table, vocabulary, semitones)
        if np.isfinite(nearer):
            snapshot.writer.add_scalar(f"embedding/{name}_nearer", nearer, snapshot.step)


def log_statistics(snapshot: Snapshot) -> None:
    """Compare samples with held-out pieces of their length, and training pieces with the same.

    Overlaps are those of evaluation/comparison.py, 1 where two sets are alike; `overlap` is the
    mean of all that are defined, `overlap_real` the same of training pieces in place of samples.
    """
    held_out, train = snapshot.real_pieces("valid"), snapshot.real_pieces("train")
    result = compare(snapshot.samples, held_out, train)
    snapshot.log_figure("statistics/samples", draw_statistics(result))
    overlaps = {name: row.distance.overlap for name, row in result.rows.items()}
    real = [row.real_distance.overlap.mean for row in result.rows.values()]
    known = {f"overlap_{name}": value for name, value in overlaps.items() if np.isfinite(value)}
    if known:
        mean = float(np.mean(list(known.values())))
        scalars = {"overlap": mean, "overlap_real": float(np.nanmean(real)), **known}
        for name, value in scalars.items():
            snapshot.writer.add_scalar(f"statistics/{name}", value, snapshot.step)


# By what is reported where one fails.
LOGGED_ONCE: dict[str, Callable[[Snapshot], None]] = {  # for it stays the same
    "the piano roll of the true continuation": lambda snapshot: snapshot.log_continuation(
        "continuation/roll_true", snapshot.reference, "as it was written", "the piece goes on"
    ),
    "the sound of the true continuation": lambda snapshot: snapshot.log_audio(
        "continuation/audio_true", snapshot.reference
    ),
}
LOGGED: dict[str, Callable[[Snapshot], None]] = {
    "the piano rolls of samples": log_sample_rolls,
    "the sound of samples": log_sample_audio,
    "the piano roll of the continuation": lambda snapshot: snapshot.log_continuation(
        "continuation/roll_model",
        snapshot.continuation.score,
        f"after {snapshot.step} steps",
        "the model goes on",
    ),
    "the sound of the continuation": lambda snapshot: snapshot.log_audio(
        "continuation/audio_model", snapshot.continuation.score
    ),
    "the attention maps": log_attention,
    "the embeddings": log_embeddings,
    "the statistics of samples": log_statistics,
}
