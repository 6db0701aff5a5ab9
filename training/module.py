"""The decoder as Lightning trains it: loss, validation, optimizer, and what is logged."""

import math
import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import psutil
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor
from torch.nn.utils import get_total_norm
from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm

from common.arrays import Ints
from common.interface import NOT_SCORED, SideInput
from data.batches.datamodule import MusicDataModule, TrainingBatch
from data.batches.windows import PieceBatch
from model.config import SHAPE, DecoderConfig
from model.cpu import speed_up
from model.decoder import Decoder
from model.decoding import PlainSteps
from model.scoring import Tally, hits_by_kind, score_tokens, summarize
from training.checks import RunError
from training.distillation import Teachers, begin_with, read_teachers
from training.loss import cross_entropy, expected_cross_entropy
from training.optimizer import MuonAdamW, trapezoid
from training.options import ModelOptions

TEMPERATURES = tuple(step / 20 for step in range(16, 41))  # from 0.8 to 2, tried in validation
BEGUN_RATES = 0.3  # factor on the learning rates of a run that begins with a model


def decoder_for(options: ModelOptions, data: MusicDataModule) -> Decoder:
    """Return a new decoder that fits the data.

    Raises:
        RunError: no decoder can have this shape.
    """
    shape = vars(options) | data.side_shape | {"vocabulary_size": data.vocabulary.size}
    try:
        decoder = Decoder(DecoderConfig.from_settings(shape))
    except ValueError as error:
        raise RunError(str(error)) from None
    speed_up(decoder)
    return decoder


def optimizer_for(decoder: Decoder, options: ModelOptions, precision: str) -> MuonAdamW:
    """Return the optimizer for a decoder; the precision has Lightning's name."""
    share = BEGUN_RATES if options.begin_with else 1.0
    return MuonAdamW(
        decoder,
        share * options.learning_rate,
        share * options.muon_learning_rate,
        options.weight_decay,
        torch.bfloat16 if "mixed" in precision else torch.float32,
    )


class MusicModule(LightningModule):
    """A decoder in training; `configure_model` builds it, from the data's vocabulary."""

    decoder: Decoder
    kind_of: Tensor  # int64 (V,), the kind of each id
    tallies: list[Tally]  # sums over the pieces scored so far, one for each temperature
    hits: Ints  # (2, K) for the same pieces, as `hits_by_kind` counts them

    def __init__(self, options: ModelOptions) -> None:
        super().__init__()
        self.options = options
        self.seed: int | None = None
        self.teachers: list[Teachers] = []  # at most one; in a list, its weights are not ours
        self.tokens = 0  # tokens that were trained on since `clock_start`
        self.clock_start = self.paused_at = 0.0  # seconds

    @property
    def data(self) -> MusicDataModule:
        """The datamodule in use."""
        data: MusicDataModule = self.trainer.datamodule  # type: ignore[attr-defined]
        return data

    def _is_logged(self, step: int) -> bool:
        """Return whether the figures of this step, counted from 1, are logged."""
        interval: int = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        return step % interval == 0

    def configure_model(self) -> None:
        """Build the decoder once, now that the datamodule knows the vocabulary.

        Raises:
            RunError: the decoder needs another side input than the data have.
        """
        if hasattr(self, "decoder"):
            return
        vocabulary = self.data.vocabulary
        self.decoder = decoder_for(self.options, self.data)
        if self.options.begin_with:
            begin_with(self.decoder, self.options.begin_with, self.data)
        kind_of = torch.from_numpy(np.asarray(vocabulary.kind_of, dtype=np.int64))
        self.register_buffer("kind_of", kind_of, persistent=False)

    def forward(self, ids: Tensor, side: SideInput[Tensor] | None = None) -> Tensor:
        """Return the logits (B, T, V) for int64 ids (B, T) and their side input, if any."""
        logits: Tensor = self.decoder(ids, side=side)
        return logits

    # Training

    def on_fit_start(self) -> None:
        """Remember the run's seed, from which that of each step follows, and read the teachers."""
        if self.seed is None:  # a run that goes on has it from its checkpoint
            self.seed = torch.initial_seed()
        if self.options.teachers:
            context_length = self.options.context_length
            teachers = read_teachers(self.options.teachers, self.data, context_length)
            self.teachers = [teachers.to(self.device)]

    def on_train_start(self) -> None:
        """Start the clock."""
        self.tokens, self.clock_start = 0, time.perf_counter()

    def on_train_batch_start(self, batch: TrainingBatch, batch_idx: int) -> None:
        """Seed the dropout of each step by its number, so that a resumed run draws the same."""
        assert self.seed is not None
        entropy = [self.seed, self.global_step]
        torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]))

    def training_step(self, batch: TrainingBatch, batch_idx: int) -> Tensor:
        """Return the cross-entropy in nats, (): the mean over the scored tokens of the batch.

        The targets are the tokens that follow, or the probabilities of teachers.

        Raises:
            RunError: the loss is not finite.
        """
        logits, targets = self(batch["ids"], batch["side"]), batch["targets"]
        if self.teachers:
            expected = self.teachers[0](batch["ids"], batch["side"])
            total = expected_cross_entropy(logits, expected, targets)
        else:
            total = cross_entropy(logits, targets)
        scored = targets != NOT_SCORED
        if not total.isfinite():
            raise self._loss_error(total)
        is_note = self.kind_of[targets.clamp(min=0)] == self.data.vocabulary.note_kind
        n_tokens, n_notes = (of.sum().clamp(min=1) for of in (scored, is_note & scored))
        self.log("train/loss", total.detach() / n_tokens, prog_bar=True)
        self.log("train/nats_per_note", total.detach() / n_notes, prog_bar=True)
        self.tokens += targets.numel()
        if self._is_logged(self.global_step + 1):
            self._log_hits(logits[scored], targets[scored])
        return total / n_tokens

    @torch.no_grad()
    def _log_hits(self, logits: Tensor, targets: Tensor) -> None:
        """Log the accuracy of logits (N, V) for targets (N,)."""
        is_right = logits.argmax(dim=-1) == targets
        kinds = self.kind_of[targets].cpu().numpy()
        hits = hits_by_kind(is_right.cpu().numpy(), kinds, len(self._kind_names))
        self._log_accuracy("train", hits)

    def _loss_error(self, loss: Tensor) -> RunError:
        """Return the error for a loss that is not finite, with what may explain it."""
        name = self._first_not_finite()
        cause = f"{name} is not finite" if name else "all weights are finite"
        return RunError(
            f"step {self.global_step + 1}: the loss is {loss.item()} ({cause}). The checkpoint "
            f"before is unchanged: train again with lower learning rates"
        )

    def _first_not_finite(self) -> str | None:
        weights = self.named_parameters()
        return next((name for name, weight in weights if not weight.isfinite().all()), None)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log the norm of the gradients, before they are clipped, and the learning rates."""
        if self._is_logged(self.global_step + 1):
            gradients = [weight.grad for weight in self.parameters() if weight.grad is not None]
            self.log("optimizer/gradient_norm", get_total_norm(gradients))
            for name, group in zip(("muon", "adamw"), optimizer.param_groups, strict=False):
                self.log(f"optimizer/learning_rate_{name}", group["lr"])

    def on_train_batch_end(self, outputs: object, batch: TrainingBatch, batch_idx: int) -> None:
        """Log the tokens a second since the last such log, and the memory in use."""
        if self._is_logged(self.global_step):
            seconds = time.perf_counter() - self.clock_start
            self.log("resources/tokens_per_second", self.tokens / seconds)
            if self.device.type == "cuda":
                memory = torch.cuda.max_memory_allocated(self.device)
            else:
                memory = psutil.Process().memory_info().rss
            self.log("resources/memory_gib", memory / 2**30)
            self.on_train_start()

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Return Muon and AdamW; their rates rise, stay, and fall to 0 at the run's last step."""
        options, total = self.options, self.trainer.max_steps
        optimizer = optimizer_for(self.decoder, options, str(self.trainer.precision))
        shares = options.warm_up, options.cool_down
        schedule = LambdaLR(optimizer, lambda step: trapezoid(step, total, *shares))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    # Validation and test

    def on_validation_start(self) -> None:
        """Stop the clock of training."""
        self.paused_at = time.perf_counter()

    def on_validation_epoch_start(self) -> None:
        """Forget the pieces that were scored before, and the temperature that they gave."""
        self._begin_tallies(self.decoder)

    def _begin_tallies(self, decoder: Decoder) -> None:
        if self._is_fitting:
            decoder.temperature.fill_(1)
        n_kinds = len(self._kind_names)
        empty = Tally(np.zeros(n_kinds), np.zeros(n_kinds, dtype=np.int64), 0)
        self.tallies = [empty] * len(self._temperatures)
        self.hits = np.zeros((2, n_kinds), dtype=np.int64)

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: PieceBatch, batch_idx: int) -> None:
        """Score whole pieces."""
        self._tally(self.decoder, batch)

    def _tally(self, decoder: Decoder, batch: PieceBatch) -> None:
        scores = score_tokens(
            PlainSteps(decoder),
            batch["pieces"],
            batch["allowed"],
            rebase=self.data.source.rebase,  # type: ignore[arg-type]  # ids here are int64
            side=self.data.side,
            temperatures=self._temperatures,
        )
        kind_of, count = self.data.vocabulary.kind_of, len(self._kind_names)
        kinds = np.concatenate([kind_of[piece[1:]] for piece in batch["pieces"]])
        nats = np.concatenate([score.nats for score in scores], axis=1)  # (S, N)
        tallies = [summarize(each, kinds, sum(batch["notes"]), count) for each in nats]
        self.tallies = [one + more for one, more in zip(self.tallies, tallies, strict=True)]
        is_right = np.concatenate([score.is_likeliest for score in scores])
        self.hits += hits_by_kind(is_right, kinds, count)

    test_step = validation_step

    def on_validation_epoch_end(self) -> None:
        """Log exact averages, totals over totals; within a run, at the best temperature.

        A model that has learned a few pieces by heart is overconfident. A single number corrects
        this: outside of training, logits are divided by it (Guo et al. 2017, section 4.2).
        """
        temperature = self._log_tally("valid")
        if self._is_fitting:
            self.decoder.temperature.fill_(temperature)
            self.log("valid/temperature", temperature)

    def score_all(self, decoder: Decoder) -> float:
        """Score all validation pieces; within a run, only a sample of them may have been scored.

        Args:
            decoder: in evaluation mode. It gets the temperature at which the pieces are likeliest.

        Returns:
            Its nats per note.
        """
        pieces = self.data.all_valid_pieces()
        self._begin_tallies(decoder)
        label = f"Validating on all {pieces.total} pieces"
        for batch in tqdm(pieces, label, unit="batch", disable=None):
            with self.trainer.precision_plugin.forward_context():
                self._tally(decoder, batch)
        tally, temperature = self._likeliest()
        decoder.temperature.fill_(temperature)
        return tally.per_note

    @property
    def _is_fitting(self) -> bool:
        """Whether this validation is within a run, and not of a finished one."""
        return self.trainer.state.fn == TrainerFn.FITTING

    @property
    def _temperatures(self) -> tuple[float, ...]:
        return TEMPERATURES if self._is_fitting else (1.0,)

    def on_validation_end(self) -> None:
        """Leave the time of validation, and of callbacks in it, out of the tokens a second."""
        self.clock_start += time.perf_counter() - self.paused_at

    def on_test_epoch_end(self) -> None:
        """Log exact averages: totals over totals."""
        self._log_tally("test")

    @property
    def _kind_names(self) -> tuple[str, ...]:
        return self.data.vocabulary.kind_names

    def _likeliest(self) -> tuple[Tally, float]:
        """Return the sums over all pieces at the temperature where they are likeliest, and it."""
        best = int(np.argmin([tally.nats.sum() for tally in self.tallies]))
        return self.tallies[best], self._temperatures[best]

    def _log_tally(self, split: str) -> float:
        """Log the figures of a split; return the temperature at which the split is likeliest."""
        tally, temperature = self._likeliest()
        self.log(f"{split}/nats_per_note", tally.per_note, prog_bar=True)
        self.log(f"{split}/loss", tally.per_token)
        for name, count, per_note in zip(
            self._kind_names, tally.counts, tally.by_kind, strict=True
        ):
            if count:  # Pad and Start are never scored
                self.log(f"{split}/nats_{name}", per_note)
        self._log_accuracy(split, self.hits)
        return temperature

    def _log_accuracy(self, split: str, hits: Ints) -> None:
        """Log the accuracy for each kind that occurs, from `hits`, (2, K)."""
        for name, (right, count) in zip(self._kind_names, hits.T.tolist(), strict=True):
            figure = f"{split}/accuracy_{name}"
            if count:
                self.log(figure, right / count)
            elif split == "train" and figure in self.trainer.callback_metrics:
                self.log(figure, math.nan)  # else Lightning would log that of an earlier step

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the options, the seed, and the vocabulary and side input that the weights fit.

        Raises:
            RunError: a weight is not finite, so the checkpoint before this one stays.
        """
        if name := self._first_not_finite():
            raise RunError(
                f"step {self.global_step} made {name} no longer finite: the checkpoint before is "
                f"unchanged; train again with lower learning rates"
            )
        checkpoint |= {"hyper_parameters": asdict(self.options), "seed": self.seed}
        checkpoint["corpus"] = self.data.content
        checkpoint |= self._told_by_data()

    def _told_by_data(self) -> dict[str, Any]:
        """Return what the weights must fit."""
        return {"vocabulary": self.data.vocabulary.to_json(), "side_shape": self.data.side_shape}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse the weights of another model, or those trained on other tokens.

        A run that goes on must have all the settings with which it began. One that is only
        validated or tested needs those that give the decoder its shape.

        Raises:
            RunError: the weights are refused.
        """
        saved = checkpoint["hyper_parameters"]
        began = saved.get("begin_with")  # this settles the rates, too
        self.options = replace(self.options, begin_with=began)
        ours = asdict(self.options)
        if changed := [
            f"{name} {saved.get(name)}, not {ours[name]}"
            for name in (ours if self.trainer.training else SHAPE)
            if saved.get(name) != ours[name]
        ]:
            raise RunError(
                f"the checkpoint was trained with {', '.join(changed)}: "
                f"use those settings, or start a new training with another --run"
            )
        for name, told in self._told_by_data().items():
            if checkpoint[name] != told:
                what = name.replace("_shape", " input")
                raise RunError(
                    f"the checkpoint was trained with another {what} than the data has now: use "
                    f"the data it was trained on, or start a new training with another --run"
                )
        if self.trainer.training and checkpoint["corpus"] != self.data.content:
            raise RunError(
                "the folder has changed since the run began, so it could learn held-out pieces: "
                "undo the change, or start another --run with this run's model "
                "(--model.begin_with)"
            )
        self.seed = checkpoint["seed"]
