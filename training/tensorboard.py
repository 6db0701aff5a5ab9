"""What TensorBoard shows of a run: its figures, its settings, and what the model has learned.

Each picture or sound is made by a function of its own, so that where one fails the others are
still seen. A picture and a sound never share a tag: TensorBoard would show only one of the two.
"""

import copy
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from common.cli import print_error
from common.text import printable
from data.batches.id_sequences import IdVocabulary
from data.corpus.corpus import Corpus
from data.score import Score
from data.tokens.tokenizer import decode
from data.tokens.vocabulary import Vocabulary
from evaluation import embeddings
from evaluation.charts import draw_statistics
from evaluation.comparison import compare
from evaluation.likelihood import GIVEN, free_nats
from evaluation.samples import split_scores
from generation.compose import Piece, compose
from generation.length import Length
from generation.model import Model
from generation.seeds import Seed, continued
from model.decoding import side_tensors
from rendering.attention_map import draw_attention, token_labels
from rendering.audio import render_audio
from rendering.piano_roll import draw_piano_roll
from training.checkpoints import public_settings
from training.checks import RunError

# What a sound font, a full disk, little memory or an odd corpus may raise where samples are shown.
PASSED_OVER = (
    *(ArithmeticError, AttributeError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError),
)
SAMPLE_RATE = 22_050  # of the audio, in Hz; the event files grow with it
SAMPLES, SAMPLES_SHOWN = 4, 2  # pieces that are sampled and measured; those that are shown
SAMPLE_BARS = 4
PROMPT_BARS = 2  # of a held-out piece, which the model continues
MOST_GIVEN = 10  # held-out pieces of which some notes are given
MOST_REAL = 12  # of the held-out and of the training pieces that samples are compared with
ATTENTION_TOKENS = 16  # of a held-out piece
PROJECTOR_CONFIG = """embeddings {
  tensor_name: "tokens"
  tensor_path: "projector/embeddings.tsv"
  metadata_path: "projector/labels.tsv"
}
"""


class RunLogger(TensorBoardLogger):
    """A logger to a run's own folder, without the charts that say nothing here.

    Figures stand at the number of steps made. Of a run that goes on after `steps_made`, events of
    later steps, which a killed run has left, are hidden.
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
        names = [path.name for path in folder.glob("events.out.tfevents.*")]
        latest = max((int(name.split(".")[3]) for name in names), default=0)
        while int(time.time()) == latest:
            time.sleep(0.01)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log as Lightning does, but count steps from 1 and leave out the epoch: there is one."""
        named = {name: value for name, value in metrics.items() if name != "epoch"}
        super().log_metrics(named, None if step is None else step + 1)


class MusicMonitor(Callback):
    """What TensorBoard shows of a run beside its figures: settings, corpus, and what is learned.

    A few times a run it logs music that the model writes, attention maps, embeddings and
    statistics; for sequences that are no music, none of these. What cannot be shown is reported
    once in a line. Training goes on to the same weights as if nothing were shown.

    Args:
        times: how many times a run, evenly spaced, the last at the end; 0: never.
    """

    def __init__(self, times: int = 4) -> None:
        if times < 0:
            raise RunError(f"monitor.times must be 0 or more, not {times}")
        self.times = times
        self.latest_step = 0  # at which samples were logged
        self.failed: set[str] = set()  # what could not be shown

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log settings and corpus; a run that goes on has logged them, and what was due by then."""
        self.latest_step = trainer.global_step
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or trainer.global_step > 0:
            return
        with self._guarded("the charts", pl_module.device):
            layout = chart_layout(corpus.vocabulary, pl_module.hparams["n_layer"])
            writer.add_custom_scalars(layout)
        with self._guarded("the settings", pl_module.device):
            log_settings(writer, trainer, pl_module)
        with self._guarded("the configuration", pl_module.device):
            config = (Path(trainer.default_root_dir) / "config.yaml").read_text(encoding="utf-8")
            writer.add_text("run/config", f"```\n{config}\n```")
        with self._guarded("the corpus", pl_module.device):
            writer.add_text("run/corpus", f"```\n{corpus.full_report()}\n```")

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Log what the model has learned, where that is due."""
        due = {round(trainer.max_steps * part / self.times) for part in range(1, self.times + 1)}
        step = trainer.global_step
        # While gradients accumulate, several batches end at the same step.
        if step not in due or step == self.latest_step:
            return
        self.latest_step = step
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or not isinstance(corpus, Corpus):
            return
        decoder: Any = None  # the weights go on changing, so what is shown is a copy
        with self._guarded("the model", pl_module.device):
            decoder = copy.deepcopy(pl_module.decoder)
        if decoder is None:
            return
        snapshot = Snapshot(writer, corpus, Model(decoder.eval(), corpus.vocabulary, {}), step)
        for what, log in {**(LOGGED_ONCE if step == min(due) else {}), **LOGGED}.items():
            with self._guarded(what, pl_module.device):
                log(snapshot)

    @contextmanager
    def _guarded(self, what: str, device: torch.device) -> Iterator[None]:
        """Run a block with random numbers of its own, and pass over its errors.

        An error is reported once for each `what`. Signals and Lightning's own ways to stop a run
        go through.
        """
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                yield
        except PASSED_OVER as error:
            if what not in self.failed:
                self.failed.add(what)
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                print(file=sys.stderr)  # below the progress bar
                print_error(f"TensorBoard: {what} cannot be shown: {reason}", "train.py")


def _writer(trainer: Trainer) -> SummaryWriter | None:
    """Return the writer to the run's folder; None in other processes, or with another logger."""
    logger = trainer.logger if trainer.is_global_zero else None
    return logger.experiment if isinstance(logger, TensorBoardLogger) else None


# At the beginning of a run


def chart_layout(vocabulary: Vocabulary | IdVocabulary, n_layer: int) -> dict[str, Any]:
    """Return charts that hold training and validation together, for the custom scalars tab."""
    kinds = [vocabulary.kind_names[kind] for kind in np.unique(vocabulary.kind_of).tolist()]
    kinds = [kind for kind in kinds if kind not in ("pad", "start")]  # they are never predicted
    blocks = [f"layer_{number + 1}" for number in range(n_layer)]
    parts = ["all", "embedding", "side", *blocks, "head", "interval_head"]
    tags = {
        "learning": {
            "nats per note": ["train/nats_per_note", "valid/nats_per_note"],
            "loss: nats per token": ["train/loss", "valid/loss"],
            "nats per note by kind of token, valid": [f"valid/nats_{kind}" for kind in kinds],
            "nats per note of what is free, some notes given": [
                f"given/{name}_{how}" for name in GIVEN for how in ("told", "not_told")
            ],
            "temperature that suits valid": ["valid/temperature"],
        },
        "accuracy by kind of token": {
            kind: [f"train/accuracy_{kind}", f"valid/accuracy_{kind}"] for kind in kinds
        },
        "music": {
            "overlap with held-out music": ["statistics/overlap", "statistics/overlap_real"],
            "intervals nearer than their neighbors": [
                f"embedding/{name}_nearer" for name in ("octaves", "fifths")
            ],
        },
        "the machine": {
            "norm of gradients": [f"gradient_norm/{part}" for part in parts],
            "learning rates": ["learning_rate/muon", "learning_rate/adamw"],
            "tokens and notes a second": [
                f"machine/{what}_per_second" for what in ("tokens", "notes")
            ],
            "memory, GiB": ["machine/memory_gib"],
        },
    }
    return {  # TensorBoard takes tags as patterns
        category: {
            title: ["Multiline", [f"^{tag}$" for tag in lines]] for title, lines in charts.items()
        }
        for category, charts in tags.items()
    }


def log_settings(writer: SummaryWriter, trainer: Trainer, pl_module: LightningModule) -> None:
    """Add the run to the table of runs; TensorBoard looks up its latest validation figures."""
    data = trainer.datamodule  # type: ignore[attr-defined]
    run = {"max_steps": trainer.max_steps, "precision": trainer.precision}
    plain = {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in public_settings({**data.hparams, **pl_module.hparams, **run}).items()
        if value is not None
    }
    note = data.vocabulary.kind_names[data.vocabulary.note_kind]
    metrics = ("valid/nats_per_note", "valid/loss", f"valid/accuracy_{note}")
    file = writer._get_file_writer()  # type: ignore[no-untyped-call]
    # `add_hparams` would make a run of its own.
    for summary in hparams(plain, dict.fromkeys(metrics, 0.0)):  # type: ignore[no-untyped-call]
        file.add_summary(summary)


# A few times a run


@dataclass(frozen=True)
class Snapshot:
    """A model at a step of its training, with the pieces that show what it has learned."""

    writer: SummaryWriter  # to the run's folder
    corpus: Corpus  # that the model is trained on
    model: Model  # with its decoder in evaluation mode
    step: int  # how many were made

    @cached_property
    def samples(self) -> list[Score]:
        """Pieces from nothing; from the same random numbers at every step."""
        pieces = compose(self.model, length=Length(bars=SAMPLE_BARS), samples=SAMPLES)
        return [piece.score for piece in pieces]

    @cached_property
    def reference(self) -> Score:
        """The first bars of the first held-out piece, as many as a sample has."""
        piece = self.corpus.split("valid").piece(0)
        return _first_bars(decode(piece, self.corpus.vocabulary), SAMPLE_BARS)

    @cached_property
    def prompt(self) -> Seed:
        """The first bars of the reference."""
        return continued(_first_bars(self.reference, PROMPT_BARS), self.corpus.vocabulary)

    @cached_property
    def continuation(self) -> Piece:
        """The prompt, and what the model writes after it.

        As many rows are sampled as for `samples`, since a step of so many is recorded already.
        """
        given = len(self.prompt.score.bars) - self.reference.has_upbeat
        length = Length(bars=max(SAMPLE_BARS - given, 1))
        return compose(self.model, self.prompt, length, samples=SAMPLES)[0]

    def log_figure(self, tag: str, figure: Any) -> None:
        """Add a matplotlib figure; pyplot does not know of it, so there is nothing to close."""
        self.writer.add_figure(tag, figure, self.step, close=False)

    def log_audio(self, tag: str, score: Score) -> None:
        """Add the sound of a piece."""
        audio = render_audio(score, SAMPLE_RATE)
        self.writer.add_audio(tag, audio, self.step, sample_rate=SAMPLE_RATE)

    def log_continuation(self, tag: str, score: Score, title: str, continues: str) -> None:
        """Add the piano roll of a piece that begins with the prompt, with a label for the rest."""
        title = f"{printable(self.corpus.split('valid').names[0])}, {title}"
        roll = draw_piano_roll(score, self.prompt.is_closed, title=title, continues=continues)
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
    model, decoder = snapshot.model, snapshot.model.decoder
    longest = min(ATTENTION_TOKENS, decoder.config.context_length)
    ids = snapshot.corpus.split("valid").piece(0)[:longest]
    on_device = torch.from_numpy(ids)[None].to(decoder.head.weight.device)
    side = side_tensors(model.side(ids[None]), on_device.device)
    maps = decoder.attention_maps(on_device, side=side)[:, 0].float().cpu()  # (L, H, T, T)
    labels = token_labels(ids, model.vocabulary)
    picture = draw_attention(maps.numpy(), labels, decoder.attention_names)
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
    np.savetxt(folder / "projector/labels.tsv", rows, "%s", delimiter="\t", encoding="utf-8")
    (folder / "projector_config.pbtxt").write_text(PROJECTOR_CONFIG)
    for name, semitones in (("octaves", embeddings.OCTAVE), ("fifths", embeddings.FIFTH)):
        nearer = embeddings.interval_nearness(table, vocabulary, semitones)
        if np.isfinite(nearer):
            snapshot.writer.add_scalar(f"embedding/{name}_nearer", nearer, snapshot.step)


def log_given(snapshot: Snapshot) -> None:
    """Log how likely held-out pieces are where some of their notes are given, told of them or not.

    The figures are nats per note of the others (see `free_nats` in evaluation/likelihood.py).
    """
    model, corpus = snapshot.model, snapshot.corpus
    scores = [score for score in split_scores(corpus, "valid", MOST_GIVEN) if len(score.notes)]
    for name, way in GIVEN.items():
        seeds = [way(score, model.vocabulary) for score in scores]
        for how, nats in zip(("told", "not_told"), free_nats(model, scores, seeds), strict=True):
            if np.isfinite(nats):
                snapshot.writer.add_scalar(f"given/{name}_{how}", nats, snapshot.step)


def log_statistics(snapshot: Snapshot) -> None:
    """Compare samples with held-out pieces of their length, and training pieces with the same.

    Overlaps are those of evaluation/comparison.py, 1 where two sets are alike; `overlap` is the
    mean of all that are defined, `overlap_real` the same of training pieces in place of samples.
    """
    corpus = snapshot.corpus
    held_out, train = (
        [_first_bars(score, SAMPLE_BARS) for score in split_scores(corpus, split, MOST_REAL)]
        for split in ("valid", "train")
    )
    result = compare(snapshot.samples, held_out, train)
    snapshot.log_figure("statistics/samples", draw_statistics(result))
    overlaps = {f"overlap_{name}": row.distance.overlap for name, row in result.rows.items()}
    known = {name: value for name, value in overlaps.items() if np.isfinite(value)}
    if known:
        real = np.nanmean([row.real_distance.overlap.mean for row in result.rows.values()])
        scalars = {"overlap": np.mean(list(known.values())), "overlap_real": real, **known}
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
    "how likely pieces are with notes given": log_given,
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
