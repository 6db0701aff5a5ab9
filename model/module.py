"""The decoder as Lightning trains it: loss, validation, optimizer, and what is logged."""

import time
from dataclasses import fields
from typing import Any, Protocol, TypedDict

import numpy as np
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR

from model.checks import RunError, broken_loss, check_memory, check_ranges, check_weights
from model.decoder import Activation, Decoder, DecoderConfig, Norm, NormPosition, Positions
from model.likelihood import Tally, tally_pieces
from model.optim import MuonAdamW, warm_hold_fall
from model.steps import Ids

NOT_SCORED = -100  # a target that no loss counts
# What weights must fit: all of a decoder's config but its dropout, and what the data tell.
SHAPE = tuple(
    field.name
    for field in fields(DecoderConfig)
    if field.name not in ("vocabulary_size", "n_beside", "dropout")
)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Nats of int64 targets (B, T) under logits (B, T, V), summed over those that are scored."""
    return functional.cross_entropy(
        logits.float().flatten(0, 1),  # (B, T, V) -> (B T, V)
        targets.flatten(),  # (B, T) -> (B T)
        ignore_index=NOT_SCORED,
        reduction="sum",
    )


class Vocabulary(Protocol):
    """What a module asks of the vocabulary of its data."""

    @property
    def size(self) -> int:
        """V."""

    @property
    def kind_of(self) -> NDArray[np.integer[Any]]:
        """int (V,): the kind of each id, in [0, K)."""

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The K names of the kinds."""

    @property
    def note_kind(self) -> int:
        """The kind whose tokens are the notes: one a note."""

    def to_json(self) -> str:
        """The vocabulary as text; equal text, equal vocabulary."""


class MusicData(Protocol):
    """What a module asks of the datamodule it is trained with."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Known once the datamodule is set up."""

    @property
    def n_beside(self) -> int:
        """Columns of the side input; 0: there is none. Known as the vocabulary is."""

    def beside(self, ids: Ids) -> NDArray[np.int16]:
        """int16 (B, T, S): the side input beside windows (B, T), Pad at their right end."""

    @property
    def batch_size(self) -> int:
        """Training windows a step and device."""

    def rebase(self, history: Ids) -> Ids:
        """The prompt that stands for all ids so far, as `model.likelihood.token_nats` wants it."""

    def describe(self, step: int) -> list[str]:
        """What was in a training batch, by its number, a window each: for people."""


class TrainingBatch(TypedDict):
    """Windows side by side."""

    ids: Tensor  # int64 (B, T), Pad at the right end
    targets: Tensor  # int64 (B, T), the next id; NOT_SCORED where there is none to learn
    beside: Tensor  # int16 (B, T, S), the side input


class PieceBatch(TypedDict):
    """Whole pieces, to be scored exactly."""

    pieces: list[Ids]  # 1-D, from Start to End
    allowed: list[NDArray[np.bool_]]  # (T-1, V), what the grammar admits
    notes: list[int]  # how many notes each piece has


class MusicModule(LightningModule):
    """A decoder in training.

    The vocabulary comes from the datamodule, so the decoder is built in `configure_model`.

    Args:
        n_layer: blocks, one after the other.
        n_head: attention heads in each block.
        n_embd: width of the residual stream; n_head times an even number.
        context_length: the most tokens that are seen at once.
        dropout: share of numbers zeroed after embedding and sub-layers, while training.
        n_attention: attention sub-layers a block, 1 or 2 (one in the place of an encoder's).
        positions: sinusoidal or learned, added to the embeddings; rotary; or rotary_time, by place
            and by musical time.
        norm: layer or rms.
        norm_position: pre, before each sub-layer, or post, after each residual sum.
        activation: relu, gelu or squared_relu, inside the feed-forward layer.
        qk_norm: whether queries and keys are brought to RMS 1.
        bias: whether the feed-forward layer has biases.
        learning_rate: of AdamW (embeddings, head, gains), at its highest.
        muon_learning_rate: of Muon (the matrices inside the blocks), at its highest.
        weight_decay: decoupled, times the rate; gains have none.
        warm_up: share of the run in which the rates rise from 0.
        cool_down: share of the run, at its end, in which the rates fall to 0.

    Raises:
        RunError: a value that no decoder can have, or that nothing can be learnt with.
    """

    decoder: Decoder
    is_note: Tensor  # bool (V,)
    tally: Tally

    def __init__(
        self,
        n_layer: int = 4,
        n_head: int = 4,
        n_embd: int = 128,
        context_length: int = 512,
        dropout: float = 0.1,
        n_attention: int = 1,
        positions: Positions = "rotary",
        norm: Norm = "rms",
        norm_position: NormPosition = "pre",
        activation: Activation = "squared_relu",
        qk_norm: bool = True,
        bias: bool = False,
        learning_rate: float = 0.006,
        muon_learning_rate: float = 0.06,
        weight_decay: float = 0.1,
        warm_up: float = 0.02,
        cool_down: float = 0.7,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        try:  # a mistake is told before the data is read
            self._config(vocabulary_size=1, n_beside=1)
        except ValueError as error:
            raise RunError(str(error)) from None
        check_ranges(self.hparams)
        self.seed: int | None = None
        self.tokens = 0  # trained on since `since`, in seconds: for the rate that is logged
        self.since = self.paused = 0.0

    @property
    def data(self) -> MusicData:
        """The datamodule in use."""
        data: MusicData = self.trainer.datamodule  # type: ignore[attr-defined]
        return data

    @property
    def _log_interval(self) -> int:
        interval: int = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        return interval

    def _config(self, vocabulary_size: int, n_beside: int) -> DecoderConfig:
        shape = {name: self.hparams[name] for name in (*SHAPE, "dropout")}
        return DecoderConfig(vocabulary_size, n_beside=n_beside, **shape)

    def configure_model(self) -> None:
        """Build the decoder, once the datamodule knows the vocabulary; a second call is idle."""
        if hasattr(self, "decoder"):
            return
        vocabulary = self.data.vocabulary
        try:
            config = self._config(vocabulary.size, self.data.n_beside)
        except ValueError as error:
            raise RunError(str(error)) from None
        if self.trainer.training and self.trainer.world_size == 1:  # several may share a model
            check_memory(config, self.data.batch_size, self.device)
        self.decoder = Decoder(config)
        is_note = torch.from_numpy(np.asarray(vocabulary.kind_of) == vocabulary.note_kind)
        self.register_buffer("is_note", is_note, persistent=False)

    def forward(self, ids: Tensor, beside: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) of int64 ids (B, T), and of the side input beside them, if any."""
        logits: Tensor = self.decoder(ids, beside=beside)
        return logits

    # Training

    def on_fit_start(self) -> None:
        """Remember the seed of the run, from which that of every step follows."""
        if self.seed is None:  # a run that goes on has it from its checkpoint
            self.seed = torch.initial_seed()

    def on_train_start(self) -> None:
        """Start the clock."""
        self.tokens, self.since = 0, time.perf_counter()

    def on_train_batch_start(self, batch: TrainingBatch, batch_idx: int) -> None:
        """Seed the step's dropout by its number, so that a resumed run draws the same."""
        part = batch_idx % self.trainer.accumulate_grad_batches  # of the batches of one step
        assert self.seed is not None
        place = [self.seed, self.global_step, part, self.global_rank]
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0]))

    def training_step(self, batch: TrainingBatch, batch_idx: int) -> Tensor:
        """Cross-entropy in nats, mean over the scored tokens of the batch.

        Of the batches of all ranks together: then the mean of the ranks' gradients, which DDP
        takes, is the gradient that one process has of them as one batch.
        """
        logits, targets = self(batch["ids"], batch["beside"]), batch["targets"]
        total = cross_entropy(logits, targets)
        scored = targets != NOT_SCORED
        if not total.isfinite():
            raise self._broken_loss(total, logits, batch_idx)
        notes = (self.is_note[targets.clamp(min=0)] & scored).sum()
        sums = torch.stack((total.detach(), scored.sum(), notes))
        if self.trainer.world_size > 1:
            torch.distributed.all_reduce(sums)
        nats, n_tokens, n_notes = sums[0], sums[1].clamp(min=1), sums[2].clamp(min=1)
        self.log("train/loss", nats / n_tokens, prog_bar=True)
        self.log("train/nats_per_note", nats / n_notes, prog_bar=True)
        self.tokens += targets.numel()
        return total * self.trainer.world_size / n_tokens

    def _broken_loss(self, loss: Tensor, logits: Tensor, batch_idx: int) -> RunError:
        each = self.trainer.accumulate_grad_batches
        windows = self.data.describe(self.global_step * each + batch_idx % each)
        rates = [group["lr"] for group in self.trainer.optimizers[0].param_groups[:2]]
        weights = self.named_parameters()
        return broken_loss(self.global_step + 1, loss, logits, weights, rates, windows)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log the norm of all gradients and the rate, at the steps that are logged."""
        if (self.global_step + 1) % self._log_interval == 0:
            gradients = [p.grad for p in self.parameters() if p.grad is not None]
            self.log("train/gradient_norm", torch.nn.utils.get_total_norm(gradients))
            self.log("train/learning_rate", optimizer.param_groups[-1]["lr"])

    def on_train_batch_end(self, outputs: object, batch: TrainingBatch, batch_idx: int) -> None:
        """Log how many tokens a second went by since this was last logged."""
        if self.global_step % self._log_interval == 0:
            now = time.perf_counter()
            rate = self.tokens * self.trainer.world_size / (now - self.since)
            self.log("train/tokens_per_second", rate)
            self.tokens, self.since = 0, now

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Muon and AdamW; rates rise, hold and fall to 0 at the last step of the run."""
        wish = self.hparams
        rates = (wish["learning_rate"], wish["muon_learning_rate"], wish["weight_decay"])
        try:
            optimizer = MuonAdamW(self.decoder, *rates)
        except ValueError as error:
            raise RunError(str(error)) from None
        total = self.trainer.max_steps
        if total < 1:
            raise RunError("the run has no end: give trainer.max_steps, so that rates can fall")
        schedule = LambdaLR(
            optimizer,
            lambda step: warm_hold_fall(step, total, wish["warm_up"], wish["cool_down"]),
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    # Validation and test

    def on_validation_start(self) -> None:
        """Stop the clock of training."""
        self.paused = time.perf_counter()

    def on_validation_epoch_start(self) -> None:
        """Forget the pieces that were scored before."""
        self.tally = self._empty_tally()

    def validation_step(self, batch: PieceBatch, batch_idx: int) -> None:
        """Score whole pieces."""
        self.tally += self._score(batch)

    def on_validation_epoch_end(self) -> None:
        """Log exact averages: totals over totals."""
        self._log_tally("valid")

    def on_validation_end(self) -> None:
        """Take validation, and what callbacks show there, out of the tokens a second."""
        self.since += time.perf_counter() - self.paused

    def on_test_epoch_start(self) -> None:
        """Forget the pieces that were scored before."""
        self.tally = self._empty_tally()

    def test_step(self, batch: PieceBatch, batch_idx: int) -> None:
        """Score whole pieces."""
        self.tally += self._score(batch)

    def on_test_epoch_end(self) -> None:
        """Log exact averages: totals over totals."""
        self._log_tally("test")

    def _empty_tally(self) -> Tally:
        n_kinds = len(self.data.vocabulary.kind_names)
        return Tally(np.zeros(n_kinds), np.zeros(n_kinds, dtype=np.int64), 0)

    def _score(self, batch: PieceBatch) -> Tally:
        vocabulary = self.data.vocabulary
        return tally_pieces(
            self.decoder,
            **batch,
            kind_of=vocabulary.kind_of,
            n_kinds=len(vocabulary.kind_names),
            rebase=self.data.rebase,
            beside=self.data.beside,
        )

    def _log_tally(self, split: str) -> None:
        """Sums over all ranks, then one division: the figures of one process, to rounding."""
        mine = np.concatenate((self.tally.nats, self.tally.counts, [self.tally.notes]))
        sums = torch.from_numpy(mine)
        if self.trainer.world_size > 1:  # a single device need not know float64: Apple's do not
            sums = self.trainer.strategy.reduce(sums.to(self.device), reduce_op="sum").cpu()
        names = self.data.vocabulary.kind_names
        nats, counts = sums[:-1].reshape(2, len(names)).numpy()  # (2 K,) -> (2, K)
        tally = Tally(nats, counts.astype(np.int64), int(sums[-1]))
        self.log(f"{split}/nats_per_note", tally.per_note, prog_bar=True, sync_dist=True)
        self.log(f"{split}/loss", tally.per_token, sync_dist=True)
        for name, count, per_note in zip(names, tally.counts, tally.by_kind, strict=True):
            if count:  # Pad and Start are never scored
                self.log(f"{split}/nats_{name}", per_note, sync_dist=True)

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what the data told, without which the weights mean nothing, and the seed.

        Raises:
            RunError: the weights are no numbers; the checkpoint before stays.
        """
        check_weights(self.named_parameters(), self.global_step)
        checkpoint["seed"] = self.seed
        checkpoint["vocabulary"] = self.data.vocabulary.to_json()
        checkpoint["n_beside"] = self.data.n_beside

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse weights of another model, or that were trained on other tokens.

        A run that goes on must have all the settings that it began with; one that is only judged,
        those that give the decoder its shape.

        Raises:
            RunError: what differs.
        """
        if "vocabulary" not in checkpoint:
            raise RunError("the checkpoint is not one that train.py wrote")
        kept, mine = checkpoint["hyper_parameters"], dict(self.hparams)
        names = mine if self.trainer.training else SHAPE
        changed = [f"{n} {kept.get(n)}, not {mine[n]}" for n in names if kept.get(n) != mine[n]]
        if changed:
            raise RunError(
                f"the checkpoint was trained with {', '.join(changed)}: "
                f"give it those settings, or train afresh under another --run"
            )
        if checkpoint["vocabulary"] != self.data.vocabulary.to_json():
            size = len(checkpoint["state_dict"]["decoder.embedding.weight"])
            raise RunError(
                f"the checkpoint was trained with another vocabulary ({size} ids) than the data "
                f"has now ({self.data.vocabulary.size}): use the data it was trained on, or train "
                f"afresh under another --run"
            )
        if checkpoint.get("n_beside", 0) != self.data.n_beside:
            raise RunError(
                "the checkpoint was trained with another side input than the data has now: "
                "train afresh under another --run"
            )
        self.seed = checkpoint.get("seed")
