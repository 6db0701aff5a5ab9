"""What TensorBoard shows of a run: its figures, its settings, and music that the model writes.

A separate function makes each picture or sound, so that if one fails the others are still seen. A
picture and a sound never share a tag, since TensorBoard would show only one of the two.
"""

import math
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter

from common.cli import print_error
from data.corpus.corpus import Corpus
from data.score import Score
from generation.length import Length
from generation.model import Model
from generation.request import Request
from generation.sequences import SequenceModel, stream
from generation.writing import Writing
from model.decoder import Decoder
from model.decoding import network_of
from rendering.attention_map import draw_attention, token_labels
from rendering.audio import render_audio
from rendering.notation import has_notation, notation_png
from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes
from training.checkpoints import is_stopping
from training.options import MonitorOptions

# What a sound font, a full disk, too little memory or an odd corpus may raise when samples are
# shown.
PASSED_OVER = (
    *(ArithmeticError, AttributeError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError),
)
SAMPLE_RATE = 22_050  # of the audio, in Hz; larger rates make larger event files
SAMPLES, SAMPLE_BARS = 2, 4
SHOWN_SEQUENCES, SHOWN_IDS = 8, 64  # of sequences that are not music, and of the ids of each
ATTENTION_TOKENS = 16  # of a held-out piece
NOTATION_WIDTH = 900  # pixels
# TensorBoard sorts groups by name, and unfolds the first two: `learning` and `music`.
LEARNING = ("nats_per_note", "loss", "temperature")


class RunLogger(TensorBoardLogger):
    """Logs to a run's own folder, without the charts that say nothing here.

    Each chart shows validation beside training, in a color of its own: it is logged under the same
    tags, as a run named `valid` inside the run. Figures stand at the number of steps made. If a run
    goes on after `steps_made`, events of later steps, left by a killed run, are hidden.
    """

    def __init__(self, folder: Path, steps_made: int = 0) -> None:
        self.purge_step = steps_made + 1 if steps_made else 0
        super().__init__(
            folder.parent,
            name=folder.name,
            version="",
            default_hp_metric=False,
            purge_step=self.purge_step,
        )
        # TensorBoard reads the files of a folder in the order of the seconds in their names.
        names = [path.name for path in folder.rglob("events.out.tfevents.*")]
        latest = max((int(name.split(".")[3]) for name in names), default=0)
        while int(time.time()) == latest:
            time.sleep(0.01)
        self._valid: SummaryWriter | None = None

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log as Lightning does, but count steps from 1.

        The epoch is left out, since there is only one. So is NaN, the accuracy of a kind that does
        not occur in a step.
        """
        step = None if step is None else step + 1
        known = (name for name in metrics if name != "epoch" and not math.isnan(metrics[name]))
        shown = {name: shown_tag(name) for name in known}
        valid = {name for name in shown if name.startswith("valid/")}
        super().log_metrics({shown[name]: metrics[name] for name in shown.keys() - valid}, step)
        if valid and self._valid is None:
            self._valid = SummaryWriter(f"{self.log_dir}/valid", purge_step=self.purge_step)
        for name in valid:
            self._valid.add_scalar(shown[name], metrics[name], step)  # type: ignore[union-attr]

    def save(self) -> None:
        """Write what was logged so far."""
        self.experiment.flush()  # unlike Lightning, without hparams.yaml
        if self._valid is not None:
            self._valid.flush()

    def finalize(self, status: str) -> None:
        """Close the files."""
        super().finalize(status)
        if self._valid is not None:
            self._valid.close()


def shown_tag(name: str) -> str:
    """Return the tag under which one of Lightning's figures is shown."""
    group, _, figure = name.partition("/")
    if group not in ("train", "valid", "test"):
        return name
    return f"{'learning' if figure in LEARNING else 'tokens'}/{figure}"


class LeaveOffError(Exception):
    """Raised to leave off samples: there is no more time for them, or the run is asked to stop."""


class MusicMonitor(Callback):
    """Shows a run in TensorBoard: its settings, its corpus, and what the model has learned.

    A few times in a run, it logs music that the model writes, and attention maps; if the sequences
    are not music, it logs some that the model writes, as text. What cannot be shown, or has no
    time, is reported once in one line. Training leads to the same weights as if nothing were shown.
    """

    clock = staticmethod(time.perf_counter)  # seconds

    def __init__(self, options: MonitorOptions) -> None:
        self.times, self.share = options.times, options.share
        self.started = self.taken = 0.0  # seconds: when training began, and how long samples took
        self.reported: set[str] = set()  # what could not be shown

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log settings and corpus; a run that goes on has done so, and logged what was due."""
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if trainer.global_step == 0:
            with self._guarded("the configuration", pl_module.device):
                config = (Path(trainer.default_root_dir) / "config.yaml").read_text("utf-8")
                writer.add_text("run/settings", f"```\n{config}\n```")
            with self._guarded("the corpus", pl_module.device):
                writer.add_text("run/corpus", f"```\n{corpus.full_report()}\n```")
        if self.times and self.share and isinstance(corpus, Corpus):
            with self._guarded("samples", pl_module.device):  # compiles before samples are timed
                network = network_of(cast(Decoder, pl_module.decoder))
                request = Request(length=Length(bars=1))
                next(iter(Writing(Model(network, corpus.vocabulary), request)))
        self.started = self.clock()

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        """Log what the model has learned, if that is due."""
        due = {round(trainer.max_steps * part / self.times) for part in range(1, self.times + 1)}
        step = trainer.global_step
        if step not in due:
            return
        begin = self.clock()
        end = begin + self.share * (begin - self.started) - self.taken

        def check() -> None:
            if is_stopping(trainer) or self.clock() > end:
                raise LeaveOffError

        try:
            with self._guarded("samples", pl_module.device):
                self._log(trainer, pl_module, check)
        except LeaveOffError:
            if not is_stopping(trainer):
                share = f"{self.share:.1%} of the run (--monitor.share)"
                line = f"some samples of step {step} are left out, as they may take {share}"
                self._report("late", line)
        taken = self.clock() - begin
        self.taken += taken
        # not a part of the tokens a second
        pl_module.clock_start += taken  # type: ignore[assignment, operator]

    def _log(self, trainer: Trainer, pl_module: LightningModule, check: Callable[[], None]) -> None:
        """Log samples; `check` raises LeaveOffError if there is no time for more."""
        corpus, step = trainer.datamodule.corpus, trainer.global_step  # type: ignore[attr-defined]
        writer = _writer(trainer)
        check()
        # the weights keep changing, so a copy is shown
        network = network_of(cast(Decoder, pl_module.decoder))
        if not isinstance(corpus, Corpus):
            log_sequences(writer, SequenceModel(network, corpus.vocabulary), step)
            return
        model = Model(network, corpus.vocabulary)
        # from the same random numbers at every step
        writing = Writing(model, Request(length=Length(bars=SAMPLE_BARS), samples=SAMPLES))
        for _ in writing:
            check()
        samples = [piece.score for piece in writing.pieces]
        shown = Snapshot(writer, corpus, model, step, samples)
        for what, log in LOGGED.items():
            check()
            with self._guarded(what, pl_module.device):
                log(shown)

    def _report(self, what: str, line: str) -> None:
        """Say why something is not shown, once for each `what`."""
        if what not in self.reported:
            self.reported.add(what)
            print(file=sys.stderr)  # below the progress bar
            print_error(f"TensorBoard: {line}", "train.py")

    @contextmanager
    def _guarded(self, what: str, device: torch.device) -> Iterator[None]:
        """Run a block with random numbers of its own, and pass over its errors.

        Signals, and Lightning's own ways to stop a run, are not passed over.
        """
        try:
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                yield
        except PASSED_OVER as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self._report(what, f"{what} cannot be shown: {reason}")


def _writer(trainer: Trainer) -> SummaryWriter:
    """Return the writer to the run's folder."""
    writer: SummaryWriter = cast(RunLogger, trainer.logger).experiment
    return writer


@dataclass(frozen=True)
class Snapshot:
    """A model at some step of its training, and what it has written."""

    writer: SummaryWriter  # writes to the run's folder
    corpus: Corpus  # the corpus that the model is trained on
    model: Model
    step: int  # how many steps were made
    samples: list[Score]  # pieces written from nothing

    def log_png(self, tag: str, png: bytes) -> None:
        """Log the content of a PNG file."""
        width, height = struct.unpack_from(">II", png, 16)
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        file = self.writer._get_file_writer()
        file.add_summary(Summary(value=[Summary.Value(tag=tag, image=image)]), self.step)


def log_sequences(writer: SummaryWriter, model: SequenceModel, step: int) -> None:
    """Log how sequences begin that the model writes by itself, by the same seeds each time."""
    rows = [[*islice(stream(model, random_seed=n), SHOWN_IDS)] for n in range(SHOWN_SEQUENCES)]
    lines = "\n".join(model.vocabulary.words(row) for row in rows)
    writer.add_text("samples", f"```\n{lines}\n```", step)


def log_rolls(shown: Snapshot) -> None:
    """Draw the samples as piano rolls."""
    for number, score in enumerate(shown.samples, start=1):
        roll = draw_piano_roll(score, title=f"after {shown.step} steps")
        shown.log_png(f"music/roll_{number}", png_bytes(roll.svg))


def log_notation(shown: Snapshot) -> None:
    """Engrave the samples."""
    for number, score in enumerate(shown.samples, start=1):
        if has_notation(score.grid):
            shown.log_png(f"music/score_{number}", notation_png(score, NOTATION_WIDTH))


def log_audio(shown: Snapshot) -> None:
    """Play the samples."""
    for number, score in enumerate(shown.samples, start=1):
        audio, tag = render_audio(score, SAMPLE_RATE), f"music/audio_{number}"
        shown.writer.add_audio(tag, audio, shown.step, sample_rate=SAMPLE_RATE)


def log_attention(shown: Snapshot) -> None:
    """Draw which tokens of the first held-out piece each head attends to, layer by layer."""
    model = shown.model
    longest = min(ATTENTION_TOKENS, model.network.config.context_length)
    ids = shown.corpus.split("valid").piece(0)[:longest]
    labels = token_labels(ids, model.vocabulary)
    for layer, heads in model.steps.attention_maps(ids, model.side(ids[None])).items():
        tag = f"tokens/attention_{layer.replace(' ', '_')}"
        shown.log_png(tag, png_bytes(draw_attention(heads[None], labels, [layer])))


# By the name that is reported if one of them fails.
LOGGED: dict[str, Callable[[Snapshot], None]] = {
    "the piano rolls of samples": log_rolls,
    "the notation of samples": log_notation,
    "the sound of samples": log_audio,
    "the attention maps": log_attention,
}
