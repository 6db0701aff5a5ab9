"""Training with Lightning on a toy language: what is logged, exact averages, exact resume."""

import csv
import itertools
import json

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.loggers import CSVLogger

from common.interface import NOT_SCORED
from data.batches.datamodule import MusicDataModule, TrainingBatch
from data.batches.options import DataOptions
from model.decoding import PlainSteps
from model.scoring import score_tokens, token_nats
from training.checks import RunError
from training.module import TEMPERATURES, MusicModule
from training.options import ModelOptions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:lightning.*")

C = 8


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file of 60 sequences of notes and their durations, as 2 and 5; some pass the context."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("toy") / "toy.jsonl"
    notes = [rng.integers(0, 3, count) for count in range(1, 61)]
    rows = [np.stack([each[:14], each[:14] + 3], axis=1).ravel().tolist() for each in notes]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def of_ids(path) -> MusicDataModule:
    return MusicDataModule(DataOptions(path=str(path), vocabulary_size=6, batch_size=2), C)


def validation(data: MusicDataModule):
    """The validation pieces, what may come next in each place, and how many notes there are."""
    batches = [*data.val_dataloader()]
    pieces, allowed, notes = (
        [*itertools.chain(*(batch[name] for batch in batches))]
        for name in ("pieces", "allowed", "notes")
    )
    return pieces, allowed, sum(notes)


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
def run(path):
    """A run of 60 steps: module, data, and the rows it logged."""
    seed_everything(0)
    student, data = module(dropout=0.0), of_ids(path)
    fit = trainer(path.parent, 60, logger=CSVLogger(path.parent, name="", version=""))
    fit.fit(student, datamodule=data)
    with (path.parent / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return student, data, rows


def column(rows: list[dict[str, str]], name: str) -> list[float]:
    return [float(row[name]) for row in rows if row[name]]


def test_it_learns_and_says_so(run):
    _, _, rows = run
    for name in ("train/loss", "train/nats_per_note", "valid/loss", "valid/nats_per_note"):
        values = column(rows, name)
        assert len(values) == 12, name  # at every fifth step
        assert values[-1] < 0.7 * values[0], name


def test_accuracy_is_the_share_of_tokens_that_were_the_likeliest(run):
    student, data, rows = run
    student.eval()
    pieces, allowed, _ = validation(data)
    scores = score_tokens(PlainSteps(student.decoder), pieces, allowed, rebase=data.source.rebase)
    is_likeliest = np.concatenate([score.is_likeliest for score in scores])
    vocabulary = data.vocabulary
    kinds = vocabulary.kind_of[np.concatenate([piece[1:] for piece in pieces])]
    for kind in {*kinds.tolist()}:
        expected, name = is_likeliest[kinds == kind].mean(), vocabulary.kind_names[kind]
        assert column(rows, f"valid/accuracy_{name}")[-1] == pytest.approx(expected)
    assert column(rows, "valid/accuracy_id")[-1] > 0.5  # a duration follows from its note
    assert column(rows, "train/accuracy_id")[-1] > 0.5
    by_kind = [column(rows, f"valid/nats_{name}")[-1] for name in ("end", "id")]
    assert sum(by_kind) == pytest.approx(column(rows, "valid/nats_per_note")[-1], rel=1e-5)
    assert not any("accuracy_start" in name or "accuracy_pad" in name for name in rows[0])


def test_padding_is_no_part_of_the_loss(run):
    student = run[0]
    student.eval()
    student.log = lambda *args, **options: None
    ids, targets = torch.randint(3, 9, (2, 2, C))
    ids[1, -2:], targets[1, -2:] = 0, NOT_SCORED
    batch = {"ids": ids, "targets": targets, "side": None}
    logits = student(ids)
    log_p = logits.log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    by_hand = -(log_p[0].sum() + log_p[1, :-2].sum()) / (2 * C - 2)
    torch.testing.assert_close(student.training_step(batch, 0), by_hand)
    nothing = {**batch, "targets": torch.full_like(targets, NOT_SCORED)}
    assert student.training_step(nothing, 0) == 0
    del student.log


@pytest.mark.parametrize(("kept", "now"), [(0, 0.2), (0.2, 0)])
def test_another_side_input_is_refused(tunes, kept, now):
    """Of two runs on the same tunes one is told chords."""

    def data(chords: float) -> MusicDataModule:
        return MusicDataModule(DataOptions(path="tunes", chords=chords), 32)

    teacher, last = trainer(tunes, 1), tunes / "last.ckpt"
    teacher.fit(module(context_length=32), datamodule=data(kept))
    teacher.save_checkpoint(last)
    with pytest.raises(RunError, match="another side input") as caught:
        trainer(tunes, 1).validate(module(context_length=32), datamodule=data(now), ckpt_path=last)
    assert "\n" not in str(caught.value)


def test_each_step_draws_its_own_dropout(path, tmp_path):
    seeds = []

    class Noting(MusicModule):
        def training_step(self, batch: TrainingBatch, batch_idx: int) -> torch.Tensor:
            seeds.append(torch.initial_seed())
            return super().training_step(batch, batch_idx)

    student = Noting(module().options)
    trainer(tmp_path, 3).fit(student, datamodule=of_ids(path))
    assert len(set(seeds)) == 3


class TooSure(MusicModule):
    """Learns as good as nothing, and takes what another has learned for more certain than it is."""

    teacher: MusicModule

    def on_fit_start(self) -> None:
        super().on_fit_start()
        self.decoder.load_state_dict(self.teacher.decoder.state_dict())
        self.decoder.head.weight.data *= 4


def test_validation_finds_the_temperature_that_is_used_outside_of_training(run, path, tmp_path):
    small = {"n_layer": 1, "n_head": 2, "n_embd": 8, "context_length": C, "dropout": 0.0}
    options = ModelOptions(**small, learning_rate=1e-9, muon_learning_rate=1e-9)
    student, data = TooSure(options), of_ids(path)
    object.__setattr__(student, "teacher", run[0])  # no part of the student
    seed_everything(0)
    logger = CSVLogger(tmp_path, name="", version="")
    fit = trainer(tmp_path, 10, logger=logger)
    fit.fit(student, datamodule=data)
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    decoder, (pieces, allowed, notes) = student.decoder.eval(), validation(data)
    found = float(decoder.temperature)

    def per_note(temperature: float) -> float:
        decoder.temperature.fill_(temperature)
        nats = token_nats(PlainSteps(decoder), pieces, allowed, rebase=data.source.rebase)
        return sum(each.sum() for each in nats) / notes

    each = {temperature: per_note(temperature) for temperature in TEMPERATURES}
    assert 1 < found < 2
    assert found == pytest.approx(min(each, key=each.__getitem__))
    assert column(rows, "valid/temperature") == pytest.approx([found, found])
    assert column(rows, "valid/nats_per_note")[-1] == pytest.approx(min(each.values()), rel=1e-4)

    decoder.temperature.fill_(found)
    ids = torch.from_numpy(pieces[0][None, :C]).long()
    calm = decoder(ids)
    torch.testing.assert_close(decoder.train()(ids), calm * found)
    (again,) = fit.validate(student, datamodule=data, verbose=False)  # judges, and finds nothing
    assert "valid/temperature" not in again
    assert float(decoder.temperature) == found
    assert again["valid/nats_per_note"] == pytest.approx(min(each.values()), rel=1e-4)
