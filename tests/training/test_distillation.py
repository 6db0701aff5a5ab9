"""Learning from trained models: their mean, the loss they make, and runs that they teach."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from common.interface import NOT_SCORED
from data.batches.datamodule import MusicDataModule
from data.midi.io import write_midi
from data.tokens.vocabulary import Vocabulary
from generation.model import corpus_of, load
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import decoder_of
from model.serialization import load_model_file
from tests.models import untrained, untrained_on
from tests.music import GRID, piece
from tests.runs import SMOKE, fit, refusal, words
from training import arguments
from training.checks import RunError
from training.distillation import Teachers, begin_with, with_beginning
from training.loss import cross_entropy, expected_cross_entropy
from training.module import BEGUN_RATES, optimizer_for
from training.options import ModelOptions

V = 5


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_teachers_share_the_windows_of_a_batch_and_all_come_to_speak(count):
    torch.manual_seed(0)
    config = DecoderConfig(V, n_layer=1, n_head=1, n_embd=4, context_length=8)
    decoders = [Decoder(config) for _ in range(count)]
    for decoder in decoders:
        torch.nn.init.normal_(decoder.head.weight)
    teachers = Teachers(decoders).eval()
    ids, side = torch.randint(V, (3, 8)), None
    each = torch.stack([decoder(ids) for decoder in decoders])  # (N, B, T, V)
    turns = torch.zeros(3, count)
    for _ in range(200):
        logits = teachers(ids, side)
        is_its = torch.isclose(logits, each, atol=1e-6).all(dim=(2, 3))  # (N, B)
        assert (is_its.sum(dim=0) == 1).all()
        assert is_its.sum(dim=1).max() <= -(-3 // count)  # shares as equal as can be
        turns += is_its.T
    torch.testing.assert_close(turns / 200, torch.full_like(turns, 1 / count), atol=0.1, rtol=0)


def test_the_nats_of_what_is_expected_are_those_of_each_id_as_often_as_it_is_drawn():
    torch.manual_seed(0)
    logits, expected = torch.randn(2, 3, V), torch.randn(2, 3, V)
    targets = torch.randint(V, (2, 3))
    targets[0, 1] = NOT_SCORED
    nats = 0.0
    for each in range(V):
        drawn = torch.where(targets == NOT_SCORED, NOT_SCORED, each)
        for place in (targets != NOT_SCORED).nonzero().tolist():
            only = torch.full_like(targets, NOT_SCORED)
            only[tuple(place)] = drawn[tuple(place)]
            share = expected[tuple(place)].softmax(dim=-1)[each]
            nats += float(share * cross_entropy(logits, only))
    assert float(expected_cross_entropy(logits, expected, targets)) == pytest.approx(nats, rel=1e-5)


SHORT = ("--model.context_length", 64)


def teacher(name, transpose=0, seed=0):
    """An untrained model that guesses at random, with what it expects of every window."""
    return untrained_on("tunes", Path(name), transpose, seed)


def distance(one, other, ids, side):
    """Nats, mean over the places, by which decoders part (Kullback and Leibler's)."""
    logs = [decoder(ids, side=side).log_softmax(dim=-1) for decoder in (one, other)]
    return float((logs[1].exp() * (logs[1] - logs[0])).sum(dim=-1).mean())


def test_a_student_comes_to_expect_what_its_teachers_do(tunes):
    paths = [teacher("one"), teacher("other", seed=1)]
    each = [decoder_of(load_model_file(path).network) for path in paths]

    def mean(ids, side):  # of what they expect
        return torch.stack([one(ids, side=side).softmax(dim=-1) for one in each]).mean(dim=0).log()

    taught = ("--data.transpose", 0, "--model.teachers", f"[{paths[0]}, {paths[1]}]")
    taught = (*taught, "--model.dropout", 0, "--trainer.val_check_interval", 20)
    for steps in (1, 60):
        fit(*SHORT, *taught, "--run", f"run-{steps}", "--trainer.max_steps", steps)
    models = [load(f"run-{steps}/model.safetensors") for steps in (1, 60)]
    piece = corpus_of(models[0], "tunes", "datasets").split("train").piece(0)
    ids = torch.from_numpy(piece[None, :64].astype("int64"))
    side = models[0].side(ids.numpy()).map(torch.from_numpy)
    decoders = [decoder_of(model.network) for model in models]
    for decoder in decoders:
        decoder.temperature.fill_(1)
    early, late = (distance(decoder, mean, ids, side) for decoder in decoders)
    assert late < 0.7 * early
    own = {*decoders[0].state_dict()}
    checkpoint = torch.load("run-60/checkpoints/last.ckpt", weights_only=True)
    assert {name.removeprefix("decoder.") for name in checkpoint["state_dict"]} == own


def test_a_run_begins_with_the_weights_of_a_trained_model(tunes):
    path = teacher("first")
    one = ("--model.n_layer", 1, "--model.n_head", 1, "--model.n_embd", 16)
    given = ("--data.transpose", 0, "--model.begin_with", path, *one)
    slow = ("--model.learning_rate", 1e-9, "--model.muon_learning_rate", 1e-9)
    fit(*SHORT, *given, *slow, "--trainer.max_steps", 1)
    kept, first = (
        decoder_of(load_model_file(name).network) for name in ("run/model.safetensors", path)
    )
    for name, weight in first.named_parameters():
        torch.testing.assert_close(kept.get_parameter(name), weight, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ([], "base"),
        (["--data.grid", "seconds"], "performed"),
        (["--model.n_embd", "96"], None),
        (["--model.context_length", "2048"], "base"),  # it has learned windows of 512
        (["--data.path", "band", "--data.instruments", "original"], None),
        (["--model.begin_with", "null"], None),
        (["--model.begin_with", "first"], "first"),
    ],
)
def test_auto_is_base_where_it_serves_the_folder(tunes, capsys, options, name):
    Path("band").mkdir()
    for number in range(4):
        of_many = piece([(12 * n, 12, 60 + number * n % 12, 80, n) for n in range(17)])
        write_midi(of_many, f"band/{number}.mid")
    folder = ["--config", str(SMOKE.with_name("folder.yaml")), "--data.path", "tunes"]
    _, options = arguments.read(["fit", *folder, *options])
    data = MusicDataModule(options.data, options.model.context_length)
    assert with_beginning(options, data).model.begin_with == name
    said = [*re.findall(r"begins with what models/(\w+)", capsys.readouterr().out), None]
    assert said[0] == (None if name == "first" else name)


def test_a_run_that_begins_with_a_model_learns_at_lower_rates():
    decoder = Decoder(DecoderConfig(V, n_layer=1, n_head=1, n_embd=4, context_length=8))
    options = ModelOptions(learning_rate=0.1, muon_learning_rate=0.2)
    for first, share in ((None, 1), ("base", BEGUN_RATES)):
        of_run = optimizer_for(decoder, replace(options, begin_with=first), "32-true")
        rates = [group["lr"] for group in of_run.param_groups]
        assert rates == pytest.approx([share * 0.2, share * 0.1, share * 0.1])


def test_a_run_that_begins_with_another_shape_is_refused_in_one_line(tunes, capsys):
    path = teacher("first")
    line = refusal(capsys, *words("--data.transpose", 0, "--model.begin_with", path))
    assert line.startswith("train.py: model.begin_with: first has n_head 1, not 2, n_embd 16, not")


def test_what_has_learned_of_many_instruments_begins_no_run_of_as_many(tmp_path):
    theirs = Vocabulary(((4, 4),), (120,), tuple(range(20)), 40, 80, (80,), GRID)
    ours = replace(theirs, lowest_pitch=48, highest_pitch=72)
    path = untrained(tmp_path / "many", theirs)
    own = decoder_of(load_model_file(untrained(tmp_path / "own", ours)).network)
    with pytest.raises(RunError, match="has learned other data: ids, or more than 16 instruments"):
        begin_with(own, path, SimpleNamespace(vocabulary=ours))


def test_teachers_that_read_otherwise_are_refused_in_one_line(tunes, capsys):
    widened, short = teacher("widened", transpose=3), teacher("short")
    for paths, options, why in (
        (["none"], (), "none: no such file"),
        ([widened], (), "widened has another vocabulary than the data"),
        ([short], ("--model.context_length", 128), "short reads 64 tokens at once, not 128"),
    ):
        teachers = ("--model.teachers", [*map(str, paths)])
        line = refusal(capsys, *words(*SHORT, "--data.transpose", 0, *teachers, *options))
        assert line.startswith(f"train.py: model.teachers: {why}")
