"""Training with Lightning on a toy language: what is logged, exact averages, exact resume."""

import csv
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningDataModule, Trainer, seed_everything
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, IterableDataset

from common.interface import SideInput
from data.batches.datamodule import TrainingBatch
from data.batches.windows import PieceBatch
from model.decoding import PlainSteps
from model.scoring import score_tokens, token_nats
from tests.tensors import last_half, side_input
from training.checks import RunError
from training.module import TEMPERATURES, MusicModule
from training.options import ModelOptions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:lightning.*")

START, END, C = 1, 2, 8


@dataclass(frozen=True)
class ToyVocabulary:
    """Ids 3..5 are notes, 6..8 their durations: a note is a pair, as n, n + 3."""

    size: int = 9
    kind_names: tuple[str, ...] = ("pad", "start", "end", "note", "duration")
    note_kind: int = 3

    @property
    def kind_of(self) -> np.ndarray:
        return np.array([0, 1, 2, 3, 3, 3, 4, 4, 4])

    def to_json(self) -> str:
        return json.dumps({"size": self.size})


def piece(seed: int, notes: int) -> np.ndarray:
    pitch = np.random.default_rng(seed).integers(3, 6, notes)
    return np.concatenate(([START], np.stack((pitch, pitch + 3), axis=1).ravel(), [END]))


class Endless(IterableDataset):
    """Batches as a function of the step; two windows, the second two tokens short."""

    def __init__(self, first: int) -> None:
        self.first = first

    def __iter__(self) -> Iterator[TrainingBatch]:
        for step in itertools.count(self.first):
            windows = np.stack([piece(2 * step + row, 4)[: C + 1] for row in (0, 1)])
            ids, targets = torch.from_numpy(windows[:, :-1]), torch.from_numpy(windows[:, 1:])
            ids, targets = ids.clone(), targets.clone()
            ids[1, -2:], targets[1, -2:] = 0, -100
            yield {"ids": ids, "targets": targets, "side": None}


class Toy(LightningDataModule):
    """Four pieces, the longest beyond the context, `together` in a batch."""

    side_shape: ClassVar = {}
    content = None
    batch_size = 2

    def __init__(self, together: int = 2) -> None:
        super().__init__()
        self.together = together

    def setup(self, stage: str) -> None:
        self.vocabulary = ToyVocabulary()
        self.source = SimpleNamespace(rebase=last_half(C))
        self.pieces = [piece(100 + i, notes) for i, notes in enumerate((1, 9, 3, 14))]

    def side(self, ids: np.ndarray, rows: object = ()) -> None:
        return None

    def train_dataloader(self) -> DataLoader:
        return DataLoader(Endless(self.trainer.global_step), batch_size=None)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.pieces, batch_size=self.together, collate_fn=self.collate)

    test_dataloader = val_dataloader

    @staticmethod
    def collate(pieces: list[np.ndarray]) -> PieceBatch:
        allowed = [np.ones((len(p) - 1, 9), dtype=bool) for p in pieces]
        for mask in allowed:
            mask[:, :2] = False
        return {"pieces": pieces, "allowed": allowed, "notes": [len(p) // 2 - 1 for p in pieces]}


def module(**changes: float) -> MusicModule:
    small = {"n_layer": 1, "n_head": 2, "n_embd": 8, "context_length": C, "dropout": 0.2}
    return MusicModule(ModelOptions(**(small | changes)))


def trainer(path, max_steps: int, **options: object) -> Trainer:
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    every = {"check_val_every_n_epoch": None, "val_check_interval": 5, "log_every_n_steps": 5}
    return Trainer(
        accelerator="cpu",
        max_steps=max_steps,
        default_root_dir=path,
        enable_checkpointing=False,
        **(quiet | every | options),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of 60 steps: module, data, trainer, and the rows it logged."""
    path = tmp_path_factory.mktemp("run")
    seed_everything(0)
    student, data = module(dropout=0.0), Toy()
    fit = trainer(path, 60, logger=CSVLogger(path, name="", version=""))
    fit.fit(student, datamodule=data)
    fit.save_checkpoint(path / "last.ckpt")
    with (path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return student, data, fit, rows, path


def column(rows: list[dict[str, str]], name: str) -> list[float]:
    return [float(row[name]) for row in rows if row[name]]


def test_it_learns_and_says_so(run):
    _, _, _, rows, _ = run
    for name in ("train/loss", "train/nats_per_note", "valid/loss", "valid/nats_per_note"):
        values = column(rows, name)
        assert len(values) == 12, name  # at every fifth step
        assert values[-1] < 0.7 * values[0], name


def test_accuracy_is_the_share_of_tokens_that_were_the_likeliest(run):
    student, data, _, rows, _ = run
    student.eval()
    batch = Toy.collate(data.pieces)
    scores = score_tokens(
        PlainSteps(student.decoder), batch["pieces"], batch["allowed"], rebase=last_half(C)
    )
    is_likeliest = np.concatenate([score.is_likeliest for score in scores])
    kinds = data.vocabulary.kind_of[np.concatenate([piece[1:] for piece in data.pieces])]
    for kind, name in ((2, "end"), (3, "note"), (4, "duration")):
        expected = is_likeliest[kinds == kind].mean()
        assert column(rows, f"valid/accuracy_{name}")[-1] == pytest.approx(expected)
    assert column(rows, "valid/accuracy_duration")[-1] > 0.9  # it follows from the note
    assert column(rows, "train/accuracy_duration")[-1] > 0.9
    by_kind = [column(rows, f"valid/nats_{name}")[-1] for name in ("end", "note", "duration")]
    assert sum(by_kind) == pytest.approx(column(rows, "valid/nats_per_note")[-1], rel=1e-5)
    assert not any("accuracy_start" in name or "accuracy_pad" in name for name in rows[0])


def test_padding_is_no_part_of_the_loss(run):
    student = run[0]
    student.eval()
    student.log = lambda *args, **options: None
    batch = next(iter(Endless(0)))
    logits = student(batch["ids"], batch["side"])
    log_p = logits.log_softmax(-1).gather(-1, batch["targets"].clamp(min=0)[..., None])[..., 0]
    by_hand = -(log_p[0].sum() + log_p[1, :-2].sum()) / (2 * C - 2)
    torch.testing.assert_close(student.training_step(batch, 0), by_hand)
    nothing = {**batch, "targets": torch.full_like(batch["targets"], -100)}
    assert student.training_step(nothing, 0) == 0
    del student.log


class TwoSided(Toy):
    """The same, with a side input: whether an id is Start, or a note, or what none is."""

    side_shape: ClassVar = {"side_blocks": (3,)}

    def side(self, ids: np.ndarray, rows: object = ()) -> SideInput:
        return side_input(np.stack([ids == START, (ids >= 3) & (ids < 6), ids > C], axis=-1))

    def train_dataloader(self) -> DataLoader:
        windows = Endless(self.trainer.global_step)
        return DataLoader(windows, batch_size=None, collate_fn=self.add_side)

    def add_side(self, batch: TrainingBatch) -> TrainingBatch:
        return {**batch, "side": self.side(batch["ids"].numpy()).map(torch.from_numpy)}


@pytest.mark.parametrize(("kept", "now"), [(Toy, TwoSided), (TwoSided, Toy)])
def test_another_side_input_is_refused(tmp_path, kept, now):
    teacher = trainer(tmp_path, 1)
    teacher.fit(module(), datamodule=kept())
    teacher.save_checkpoint(tmp_path / "last.ckpt")
    with pytest.raises(RunError, match="another side input") as caught:
        trainer(tmp_path, 1).validate(module(), datamodule=now(), ckpt_path=tmp_path / "last.ckpt")
    assert "\n" not in str(caught.value)


def test_each_step_draws_its_own_dropout(tmp_path):
    seeds = []

    class Noting(MusicModule):
        def training_step(self, batch: TrainingBatch, batch_idx: int) -> torch.Tensor:
            seeds.append(torch.initial_seed())
            return super().training_step(batch, batch_idx)

    student = Noting(module().options)
    trainer(tmp_path, 3).fit(student, datamodule=Toy())
    assert len(set(seeds)) == 3


class TooSure(MusicModule):
    """Learns as good as nothing, and takes what another has learned for more certain than it is."""

    teacher: MusicModule

    def on_fit_start(self) -> None:
        super().on_fit_start()
        self.decoder.load_state_dict(self.teacher.decoder.state_dict())
        self.decoder.head.weight.data *= 2


def test_validation_finds_the_temperature_that_is_used_outside_of_training(run, tmp_path):
    small = {"n_layer": 1, "n_head": 2, "n_embd": 8, "context_length": C, "dropout": 0.0}
    options = ModelOptions(**small, learning_rate=1e-9, muon_learning_rate=1e-9)
    student, data = TooSure(options), Toy()
    object.__setattr__(student, "teacher", run[0])  # no part of the student
    seed_everything(0)
    logger = CSVLogger(tmp_path, name="", version="")
    fit = trainer(tmp_path, 10, logger=logger)
    fit.fit(student, datamodule=data)
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    decoder, batch = student.decoder.eval(), Toy.collate(data.pieces)
    found = float(decoder.temperature)

    def per_note(temperature: float) -> float:
        decoder.temperature.fill_(temperature)
        nats = token_nats(
            PlainSteps(decoder), batch["pieces"], batch["allowed"], rebase=last_half(C)
        )
        return sum(each.sum() for each in nats) / sum(batch["notes"])

    each = {temperature: per_note(temperature) for temperature in TEMPERATURES}
    assert 1 < found < 2
    assert found == pytest.approx(min(each, key=each.__getitem__))
    assert column(rows, "valid/temperature") == pytest.approx([found, found])
    assert column(rows, "valid/nats_per_note")[-1] == pytest.approx(min(each.values()), rel=1e-4)

    decoder.temperature.fill_(found)
    ids = torch.from_numpy(data.pieces[0][None, :C]).long()
    calm = decoder(ids)
    torch.testing.assert_close(decoder.train()(ids), calm * found)
    (again,) = fit.validate(student, datamodule=data, verbose=False)  # judges, and finds nothing
    assert "valid/temperature" not in again
    assert float(decoder.temperature) == found
    assert again["valid/nats_per_note"] == pytest.approx(min(each.values()), rel=1e-4)
