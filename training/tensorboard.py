"""What TensorBoard shows of a run: its figures, its settings, and what the model has learned.

Each picture or sound is made by a function of its own, so that where one fails the others are
still seen. A picture and a sound never share a tag: TensorBoard would show only one of the two.
"""

import math
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from torch.utils.tensorboard import SummaryWriter

from common.cli import print_error
from common.text import printable
from data.corpus.corpus import Corpus
from data.score import Score
from data.tokens.tokenizer import decode
from evaluation.comparison import compare
from evaluation.samples import split_scores
from generation.length import Length
from generation.model import Model
from generation.request import Request
from generation.seeds import Seed, continued
from generation.sequences import SequenceModel, stream
from generation.writing import Piece, Writing
from model.attention_maps import attention_maps, attention_names
from model.decoder import Decoder
from model.decoding import decoder_of, network_of, side_tensors
from model.network import Network
from rendering.attention_map import draw_attention, token_labels
from rendering.audio import render_audio
from rendering.notation import has_notation, notation_png
from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes
from training.checkpoints import is_stopping
from training.options import MonitorOptions

# What a sound font, a full disk, little memory or an odd corpus may raise where samples are shown.
PASSED_OVER = (
    *(ArithmeticError, AttributeError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, TypeError, ValueError),
)
SAMPLE_RATE = 22_050  # of the audio, in Hz; the event files grow with it
SAMPLES, SAMPLES_SHOWN = 4, 2  # pieces that are sampled and measured; those that are shown
SAMPLE_BARS = 4
SHOWN_SEQUENCES, SHOWN_IDS = 8, 64  # that are no music: as many, and of each as many ids
PROMPT_BARS = 2  # of a held-out piece, which the model continues
MOST_REAL = 12  # of the held-out and of the training pieces that samples are compared with
ATTENTION_TOKENS = 16  # of a held-out piece
NOTATION_WIDTH = 900  # pixels
# TensorBoard shows groups by the alphabet, and the first two unfolded: `learning` and `music`.
LEARNING = ("nats_per_note", "loss", "temperature")
# What people vary; the table of runs sorts settings by the alphabet, and shows the first five.
VARIED = (
    *("batch_size", "context_length", "dropout", "learning_rate", "max_steps"),
    *("muon_learning_rate", "n_embd", "n_head", "n_layer", "path", "precision", "seed"),
)


class RunLogger(TensorBoardLogger):
    """A logger to a run's own folder, without the charts that say nothing here.

    Validation stands beside training in each chart, in a color of its own: it is logged under the
    same tags as a run named `valid` inside the run. Figures stand at the number of steps made. Of
    a run that goes on after `steps_made`, events of later steps, which a killed run has left, are
    hidden.
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
        # TensorBoard reads a folder's files in the order of the seconds in their names.
        names = [path.name for path in folder.rglob("events.out.tfevents.*")]
        latest = max((int(name.split(".")[3]) for name in names), default=0)
        while int(time.time()) == latest:
            time.sleep(0.01)
        self._valid: SummaryWriter | None = None

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log as Lightning does, but count steps from 1.

        Left out are the epoch (there is one) and NaN, the accuracy of a kind that a step lacks.
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

    @rank_zero_only
    def save(self) -> None:
        """Write what was logged so far."""
        self.experiment.flush()  # and no hparams.yaml, as Lightning's would write
        if self._valid is not None:
            self._valid.flush()

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Close the files."""
        super().finalize(status)
        if self._valid is not None:
            self._valid.close()


def shown_tag(name: str) -> str:
    """Return the tag under which a figure that Lightning logs is shown."""
    group, _, figure = name.partition("/")
    if group not in ("train", "valid", "test"):
        return name
    return f"{'learning' if figure in LEARNING else 'tokens'}/{figure}"


class LeaveOffError(Exception):
    """A picture is left: there is no more time for it, or the run is asked to stop."""


class MusicMonitor(Callback):
    """What TensorBoard shows of a run beside its figures: settings, corpus, and what is learned.

    A few times a run it logs music that the model writes, attention maps and statistics; of
    sequences that are no music, some that it writes, as text. What cannot be shown, or what there
    is no time for, is reported once in a line. Training goes on to the same weights as if nothing
    were shown.
    """

    clock = staticmethod(time.perf_counter)  # seconds

    def __init__(self, options: MonitorOptions) -> None:
        self.times, self.share = options.times, options.share
        self.latest_step = 0  # at which samples were logged
        self.first_step, self.started = 0, 0.0  # of this process, and when it came to it
        self.taken, self.left = 0.0, 0.0  # seconds that pictures took, and may still take
        self.costs: dict[str, float] = {}  # seconds that each picture is expected to take
        self.failed: set[str] = set()  # what could not be shown
        self.left_off: set[str] = set()  # what there was no time for, as was said

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log settings and corpus; a run that goes on has logged them, and what was due by then."""
        self.latest_step = self.first_step = trainer.global_step
        self.started = self.clock()
        writer, corpus = _writer(trainer), trainer.datamodule.corpus  # type: ignore[attr-defined]
        if writer is None or trainer.global_step > 0:
            return
        with self._guarded("the settings", pl_module.device):
            log_settings(writer, trainer, pl_module)
        with self._guarded("the configuration", pl_module.device):
            config = (Path(trainer.default_root_dir) / "config.yaml").read_text(encoding="utf-8")
            writer.add_text("run/settings", f"```\n{config}\n```")
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
        if writer is None:
            return
        network: Network | None = None  # the weights go on changing, so what is shown is a copy
        with self._guarded("the model", pl_module.device):
            network = network_of(cast(Decoder, pl_module.decoder))
        if network is None:
            return
        if not isinstance(corpus, Corpus):
            with self._guarded("samples", pl_module.device):
                log_sequences(writer, SequenceModel(network, corpus.vocabulary), step)
            return
        model = Model(network, corpus.vocabulary)
        begin = self.clock()
        if self.share and not self.costs:  # what is compiled, once a machine, is no picture's cost
            with self._guarded("samples", pl_module.device):
                next(iter(Writing(model, Request(length=Length(bars=1)))))
            self.started += self.clock() - begin
            begin = self.clock()
        a_step = (begin - self.started - self.taken) / (step - self.first_step)  # seconds
        self.left += self.share * a_step * trainer.max_steps / self.times
        end = begin + self.left

        def check() -> None:
            if is_stopping(trainer) or self.clock() > end:
                raise LeaveOffError

        snapshot = Snapshot(writer, corpus, model, step, check)
        left_off = []
        for what, log in LOGGED.items():
            now = self.clock()
            if is_stopping(trainer) or now + self.costs.get(what, 0) > end:
                left_off.append(what)
                continue
            try:
                with self._guarded(what, pl_module.device):
                    log(snapshot)
                self.costs[what] = self.clock() - now
            except LeaveOffError:
                left_off.append(what)
                self.costs[what] = 2 * (self.clock() - now)  # at least, for all one knows
        taken = self.clock() - begin
        self.left, self.taken = self.left - taken, self.taken + taken
        if not is_stopping(trainer):
            self._report(left_off, step)

    def _report(self, left_off: list[str], step: int) -> None:
        """Say once of each picture that there was no time for it."""
        if new := [what for what in left_off if what not in self.left_off]:
            self.left_off.update(new)
            print(file=sys.stderr)  # below the progress bar
            print_error(
                f"TensorBoard, step {step}: no time for {', '.join(new)} in {self.share:.1%} of "
                f"the run (--monitor.share)",
                "train.py",
            )

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


def log_settings(writer: SummaryWriter, trainer: Trainer, pl_module: Any) -> None:
    """Add the run, with what people vary, to the table of runs; its figures are there anyway."""
    run = {"max_steps": trainer.max_steps, "precision": trainer.precision}
    data = trainer.datamodule  # type: ignore[attr-defined]
    settings = asdict(data.options) | asdict(pl_module.options) | run
    plain = {
        name: value if isinstance(value, bool | int | float) else printable(str(value))
        for name in VARIED
        if (value := settings[name]) is not None
    }
    start = hparams_pb(plain, trial_id=Path(trainer.default_root_dir).name)
    writer._get_file_writer().add_summary(start)  # type: ignore[no-untyped-call]


# A few times a run


@dataclass(frozen=True)
class Snapshot:
    """A model at a step of its training, with the pieces that show what it has learned."""

    writer: SummaryWriter  # to the run's folder
    corpus: Corpus  # that the model is trained on
    model: Model  # with its decoder in evaluation mode
    step: int  # how many were made
    check: Callable[[], None]  # is called in whatever may take long, and raises LeaveOffError

    @cached_property
    def samples(self) -> list[Score]:
        """Pieces from nothing; from the same random numbers at every step."""
        request = Request(length=Length(bars=SAMPLE_BARS), samples=SAMPLES)
        return [piece.score for piece in self._written(request)]

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
        """The prompt, and what the model writes after it."""
        given = len(self.prompt.score.bars) - self.reference.has_upbeat
        length = Length(bars=max(SAMPLE_BARS - given, 1))
        return self._written(Request(self.prompt, length))[0]

    def _written(self, request: Request) -> list[Piece]:
        """Return pieces that the model writes."""
        writing = Writing(self.model, request)
        for _ in writing:
            self.check()
        return writing.pieces

    def log_png(self, tag: str, png: bytes) -> None:
        """Add the content of a PNG file."""
        width, height = struct.unpack_from(">II", png, 16)
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        file = self.writer._get_file_writer()  # type: ignore[no-untyped-call]
        file.add_summary(Summary(value=[Summary.Value(tag=tag, image=image)]), self.step)

    def log_audio(self, tag: str, score: Score) -> None:
        """Add the sound of a piece."""
        audio = render_audio(score, SAMPLE_RATE)
        self.writer.add_audio(tag, audio, self.step, sample_rate=SAMPLE_RATE)


def _first_bars(score: Score, bars: int) -> Score:
    return score.excerpt(0, bars + score.has_upbeat)


def log_sequences(writer: SummaryWriter, model: SequenceModel, step: int) -> None:
    """Log how sequences begin that a model writes by itself, from the same chance each time."""
    rows = [[*islice(stream(model, random_seed=n), SHOWN_IDS)] for n in range(SHOWN_SEQUENCES)]
    lines = "\n".join(model.vocabulary.words(row) for row in rows)
    writer.add_text("samples", f"```\n{lines}\n```", step)


def log_sample_rolls(snapshot: Snapshot) -> None:
    """Draw sampled pieces as piano rolls."""
    for number, score in enumerate(snapshot.samples[:SAMPLES_SHOWN], start=1):
        roll = draw_piano_roll(score, title=f"after {snapshot.step} steps")
        snapshot.log_png(f"music/roll_{number}", png_bytes(roll.svg))


def log_sample_notation(snapshot: Snapshot) -> None:
    """Engrave the same pieces."""
    for number, score in enumerate(snapshot.samples[:SAMPLES_SHOWN], start=1):
        if has_notation(score.grid):
            snapshot.log_png(f"music/score_{number}", notation_png(score, NOTATION_WIDTH))


def log_sample_audio(snapshot: Snapshot) -> None:
    """Play the same pieces."""
    for number, score in enumerate(snapshot.samples[:SAMPLES_SHOWN], start=1):
        snapshot.log_audio(f"music/audio_{number}", score)


def log_continuation_rolls(snapshot: Snapshot) -> None:
    """Draw how the first held-out piece goes on, and how the model goes on with it."""
    name, written = printable(snapshot.corpus.split("valid").names[0]), snapshot.continuation.score
    for tag, score, title, continues in (
        ("continuation", written, f"after {snapshot.step} steps", "the model goes on"),
        ("continuation_true", snapshot.reference, "as it was written", "the piece goes on"),
    ):
        title, is_closed = f"{name}, {title}", snapshot.prompt.is_closed
        roll = draw_piano_roll(score, is_closed, title=title, continues=continues)
        snapshot.log_png(f"music/{tag}_roll", png_bytes(roll.svg))


def log_continuation_audio(snapshot: Snapshot) -> None:
    """Play the same two."""
    snapshot.log_audio("music/continuation_audio", snapshot.continuation.score)
    snapshot.log_audio("music/continuation_true_audio", snapshot.reference)


def log_attention(snapshot: Snapshot) -> None:
    """Draw which tokens of the first held-out piece each head attends to, layer by layer."""
    model, decoder = snapshot.model, decoder_of(snapshot.model.network)
    longest = min(ATTENTION_TOKENS, decoder.config.context_length)
    ids = snapshot.corpus.split("valid").piece(0)[:longest]
    side = side_tensors(model.side(ids[None]), torch.device("cpu"))
    maps = attention_maps(decoder, torch.from_numpy(ids)[None], side=side)[:, 0]  # (L, H, T, T)
    labels = token_labels(ids, model.vocabulary)
    for layer, heads in zip(attention_names(decoder.config), maps.numpy(), strict=True):
        tag = f"tokens/attention_{layer.replace(' ', '_')}"
        snapshot.log_png(tag, png_bytes(draw_attention(heads[None], labels, [layer])))


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
    overlaps = {f"overlap_{name}": row.overlap for name, row in result.rows.items()}
    known = {name: value for name, value in overlaps.items() if np.isfinite(value)}
    if known:
        real = np.nanmean([row.real_overlap.mean for row in result.rows.values()])
        scalars = {"overlap": np.mean(list(known.values())), "overlap_real": real, **known}
        for name, value in scalars.items():
            snapshot.writer.add_scalar(f"statistics/{name}", value, snapshot.step)


# By what is reported where one fails.
LOGGED: dict[str, Callable[[Snapshot], None]] = {
    "the piano rolls of samples": log_sample_rolls,
    "the notation of samples": log_sample_notation,
    "the sound of samples": log_sample_audio,
    "the piano rolls of the continuation": log_continuation_rolls,
    "the sound of the continuation": log_continuation_audio,
    "the attention maps": log_attention,
    "the statistics of samples": log_statistics,
}
