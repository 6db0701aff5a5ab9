"""train.py: whole runs, small ones."""

import json
import math
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import evaluate
import generate
import train
from data.score import DRUMS
from model.serialization import load_model_file
from tests.runs import SMOKE, fit, refusal, words
from training.checkpoints import run_folder
from training.command import StepProgress, fast_precision
from training.tensorboard import MusicMonitor


def test_a_run_leaves_a_model_that_generates(tunes, capsys):
    fit("--run", "runs/number one/", "--model.n_layer", 2)
    run = Path("runs/number one")
    out = capsys.readouterr().out
    assert "another run" not in out
    last = out.splitlines()[-1]
    assert last == f"to write with it: generate.py --checkpoint '{run / 'model.safetensors'}'"
    model = generate.load(run / "model.safetensors")
    assert model.network.config.n_layer == 2
    assert model.record.step in (10, 20)
    assert model.record.data["path"] == "tunes"
    assert model.record.model["n_layer"] == 2
    assert model.record.valid_nats_per_note > 0
    assert model.vocabulary.programs == (0, DRUMS)
    (piece,) = generate.compose(model, generate.Request(length=generate.Length(bars=2)))
    assert len(piece.score.bars) == 2
    assert "n_layer: 2" in (run / "config.yaml").read_text()


def test_any_sequences_of_ids_train_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    starts = rng.integers(0, 30, size=40)
    rows = [(start + np.arange(rng.integers(20, 300))) % 30 for start in starts.tolist()]
    text = "".join(json.dumps(row.tolist()) + "\n" for row in rows)
    Path("steps.jsonl").write_text(text)
    of_ids = ("--data.path", "steps.jsonl", "--data.vocabulary_size", 30)
    fit(*of_ids, "--model.dropout", 0, "--monitor.times", 1)
    model = load_model_file("run/model.safetensors")
    assert model.record.valid_nats_per_note < 0.9 * math.log(30)
    shown = EventAccumulator("run").Reload()
    assert not shown.Tags()["audio"]  # there is nothing to hear
    (samples,) = shown.Tensors("samples/text_summary")
    text = samples.tensor_proto.string_val[0].decode()
    assert len(text.splitlines()) == 10  # eight sequences, and what makes it no prose
    assert set(text.replace("```", "").split()) <= set(map(str, range(30)))
    shown = EventAccumulator("run/valid").Reload()
    assert [event.step for event in shown.Scalars("tokens/nats_id")] == [10, 20]
    assert [event.step for event in shown.Scalars("tokens/accuracy_id")] == [10, 20]
    evaluate.main(["likelihood", "--checkpoint", "run", "--json", "figures.json"])
    (valid, test) = json.loads(Path("figures.json").read_text())["likelihood"]
    assert math.isclose(
        valid["nats_per_id"]["model"]["value"], model.record.valid_nats_per_note, rel_tol=5e-3
    )
    assert valid["nats_per_id"]["bigram"]["value"] < math.log(30)
    assert valid["sequences"] + test["sequences"] < 40
    assert "5-gram" in capsys.readouterr().out
    for command in ("music", "all"):
        line = refusal(capsys, command, "--checkpoint", "run", command=evaluate)
        assert "a model of ids, which are no music" in line


def test_a_folder_in_which_another_process_trains_is_left_to_it(tunes, capsys):
    with ExitStack() as other:
        assert run_folder(Path("run"), None, other) == Path("run")
        said = refusal(capsys, *words("--ckpt_path", "a"))
        assert "run: another process is training there" in said
    assert not Path("run").exists()  # nothing was written


def test_a_run_that_was_stopped_before_its_first_checkpoint_begins_anew(tunes, monkeypatch):
    def stop(*_):
        raise SystemExit("killed")

    with monkeypatch.context() as patched:
        patched.setattr(MusicMonitor, "on_train_batch_end", stop)
        with pytest.raises(SystemExit, match="killed"):
            fit()
    assert Path("run/config.yaml").is_file()
    fit("--ckpt_path", "last", "--model.dropout", 0.25)
    assert "dropout: 0.25" in Path("run/config.yaml").read_text()
    assert not Path("run-2").exists()
    assert Path("run/model.safetensors").is_file()


def test_the_progress_of_a_run_that_goes_on_has_an_end():
    progress = StepProgress()
    trainer = SimpleNamespace(max_steps=9, global_step=4)
    progress._trainer = trainer
    progress.on_train_start(trainer)
    bar = progress.train_progress_bar
    assert (bar.initial, bar.total) == (4, 9)
    bar.close()


def test_validate_and_test_read_a_run_and_leave_it_alone(tunes, capsys):
    fit()
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    for command in ("validate", "test"):
        train.main([command, "--config", "run/config.yaml"])
        assert "nats_per_note" in capsys.readouterr().out
    assert before == {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "programs", "kind"),
    [
        (("--data.grid", "seconds", "--data.instruments", "piano"), (0,), "seconds"),
        (("--data.programs", f"[{DRUMS}]"), (DRUMS,), "beats"),
    ],
)
def test_the_grid_and_the_instruments_that_were_asked_for(tunes, capsys, options, programs, kind):
    fit(*options, "--trainer.max_steps", 10)
    model = generate.load("run/model.safetensors")
    assert model.vocabulary.programs == programs
    assert model.vocabulary.grid.kind == kind
    (piece,) = generate.compose(model, generate.Request(length=generate.Length(bars=3)))
    assert set(np.unique(piece.score.notes["program"])) <= set(programs)
    evaluate.main(["likelihood", "-c", "run/model.safetensors"])  # on the same tokens
    assert "model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("capabilities", "precision"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, "bf16-mixed"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, "bf16-mixed"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, "32-true"),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": False}, "32-true"),
        ({"architecture": "aarch64"}, "32-true"),
    ],
)
def test_a_processor_computes_in_bf16_where_that_is_faster(monkeypatch, capabilities, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert fast_precision("cpu") == precision


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--model.positions", "rotary_time", "--model.n_embd", "36"], ["a multiple of 4"]),
        (["--data.path", "empty"], ["empty", "no music file"]),
        (["--data.path", "noise"], ["noise", "none of its 1", "not a MIDI file"]),
        (["--ckpt_path", "none.ckpt"], ["none.ckpt", "no such"]),
        (["--ckpt_path", "noise/a.mid"], ["noise/a.mid", "not a checkpoint"]),
        (["--ckpt_path", "best"], ["best.ckpt"]),
    ],
)
def test_a_mistake_is_one_line_that_names_it(tunes, capsys, options, told):
    Path("empty").mkdir()
    Path("noise").mkdir()
    Path("noise/a.mid").write_bytes(b"noise")
    line = refusal(capsys, *words(*options))
    assert all(word in line for word in told)
    assert not Path("run/model.safetensors").exists()


def test_fit_is_meant_where_no_subcommand_stands(tunes, capsys):
    config = ("--config", SMOKE)
    assert "nowhere: no such folder" in refusal(capsys, *config, "--data.path", "nowhere")
    assert "last.ckpt: no such checkpoint" in refusal(capsys, *config, "test")
    assert "give --config FILE.yaml" in refusal(capsys, "--data.path", tunes)


def test_a_run_does_not_go_on_with_other_settings(tunes, capsys):
    fit()
    kept = Path("run/config.yaml").read_text()
    for command, option, value, checkpoint in (
        ("fit", "dropout", "0.3", "last"),
        ("fit", "n_layer", "2", "run/checkpoints/last.ckpt"),
        ("test", "n_embd", "64", "best"),
    ):
        _, *run = words(f"--model.{option}", value, "--ckpt_path", checkpoint)
        line = refusal(capsys, command, *run)
        assert f"{option} " in line
        assert value in line
    assert Path("run/config.yaml").read_text() == kept


def test_the_last_weights_are_validated_wherever_they_fall(tunes):
    fit("--trainer.max_steps", 13)
    shown = EventAccumulator("run/valid").Reload()
    assert [event.step for event in shown.Scalars("learning/loss")] == [10, 13]
    last = torch.load("run/checkpoints/last.ckpt", weights_only=True)
    assert last["global_step"] == 13
