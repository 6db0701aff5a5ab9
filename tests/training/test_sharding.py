"""Two processes that share what training a model takes, on the CPU."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train
from model.serialization import load_model_file
from tests.folders import write_tunes
from tests.training.test_distributed import CPU, STOPS, TERMINATES, TWO, lines, weights
from training.checkpoints import MODEL_NAME

FSDP = (*CPU, "--trainer.devices", 2, "--trainer.strategy", "fsdp")

# What a process holds before the sixth step's update, in numbers, and of whole weights in bytes.
HOLDS = """
import json
from torch.distributed.tensor import DTensor

def count(tensors):
    return sum(tensor.to_local().numel() for tensor in tensors)

class Noting(train.MusicModule):
    def on_train_batch_start(self, *arguments):
        super().on_train_batch_start(*arguments)
        self.whole = list(self.decoder.parameters())
        assert not any(isinstance(weight, DTensor) for weight in self.whole)

    def on_before_optimizer_step(self, optimizer):
        super().on_before_optimizer_step(optimizer)
        if self.global_step == 5:
            weights = list(self.decoder.parameters())
            state = [t for kept in optimizer.state.values() for t in kept.values() if t.ndim]
            held = {
                "numbers": [count(weights), count(w.grad for w in weights), count(state)],
                "all": [sum(t.numel() for t in tensors) for tensors in (weights, weights, state)],
                "bytes": sum(weight.untyped_storage().nbytes() for weight in self.whole),
            }
            with open(f"held{rank}.json", "w") as file:
                json.dump(held, file)

train.MusicModule = Noting
"""
# Keeps the checkpoint of step 10 of a run.
KEEPS = """
import shutil
def keep(self, trainer, *_):
    if rank == 0 and trainer.global_step == 15:
        shutil.copy("runs/ddp/checkpoints/last.ckpt", "ddp.ckpt")
train.MusicMonitor.on_train_batch_end = keep
"""


@pytest.fixture(scope="module")
def trained(ranks, tmp_path_factory):
    """A folder in which two processes have trained by ddp, by fsdp, and by fsdp until killed."""
    folder = tmp_path_factory.mktemp("two")
    write_tunes(folder / "tunes", 8)
    for name, options, first in (("ddp", TWO, KEEPS), ("fsdp", FSDP, HOLDS)):
        done = ranks.run(folder, "fit", *options, "--run", f"runs/{name}", first=first)
        assert (done[0], done[2]) == ([0, 0], ["", ""])
    assert ranks.run(folder, "fit", *FSDP, "--run", "runs/cut", first=STOPS)[0] == [7, 7]
    shutil.copy(folder / "runs/cut/checkpoints/last.ckpt", folder / "fsdp.ckpt")
    return folder


def last(folder, name):
    return weights(folder / f"runs/{name}/checkpoints/last.ckpt")


def scalars(run):
    events = EventAccumulator(str(run)).Reload()
    names = [name for name in events.Tags()["scalars"] if not name.startswith("machine")]
    return {name: [event.value for event in events.Scalars(name)] for name in names}


@pytest.mark.slow
def test_weights_and_figures_are_those_of_ddp(trained):
    ddp, fsdp = (last(trained, name) for name in ("ddp", "fsdp"))
    torch.testing.assert_close(fsdp, ddp, rtol=1e-5, atol=1e-5)
    ddp, fsdp = (scalars(trained / "runs" / name) for name in ("ddp", "fsdp"))
    assert fsdp.keys() == ddp.keys() > {"valid/nats_per_note", "gradient_norm/layer_1"}
    for name, values in ddp.items():
        assert fsdp[name] == pytest.approx(values, rel=1e-4), name


@pytest.mark.slow
def test_each_process_holds_its_share(trained):
    first, second = (json.loads((trained / f"held{rank}.json").read_text()) for rank in (0, 1))
    assert first["bytes"] == second["bytes"] == 0
    for mine, other, count in zip(first["numbers"], second["numbers"], first["all"], strict=True):
        assert mine + other == count
        assert 0.48 < mine / count < 0.52


@pytest.mark.slow
def test_files_hold_whole_tensors(trained):
    decoder, _, summary = load_model_file(trained / "runs/fsdp" / MODEL_NAME)
    best = weights(trained / "runs/fsdp/checkpoints/best.ckpt")
    for name, tensor in decoder.state_dict().items():
        assert torch.equal(tensor, best[f"decoder.{name}"]), name
    assert summary["step"] in (10, 20)
    files = [trained / f"runs/{name}/checkpoints/last.ckpt" for name in ("ddp", "fsdp")]
    ddp, fsdp = (torch.load(file, weights_only=True)["optimizer_states"][0] for file in files)
    assert fsdp["param_groups"] == ddp["param_groups"]
    torch.testing.assert_close(fsdp["state"], ddp["state"], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_run_goes_on_to_the_same_bits(ranks, trained):
    done = ranks.run(trained, "fit", *FSDP, "--run", "runs/cut", "--ckpt_path", "last")
    assert done[0] == [0, 0], done
    whole, cut = last(trained, "fsdp"), last(trained, "cut")
    for name, tensor in whole.items():
        assert torch.equal(tensor, cut[name]), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "options"), [("fsdp.ckpt", TWO), ("ddp.ckpt", FSDP)], ids=["ddp", "fsdp"]
)
def test_a_run_goes_on_under_another_strategy(ranks, trained, kept, options):
    run = ("--run", f"runs/after-{kept}", "--ckpt_path", kept)
    assert ranks.run(trained, "fit", *options, *run)[0] == [0, 0]
    assert (trained / f"runs/after-{kept}/config.yaml").exists()
    there = last(trained, f"after-{kept}")
    torch.testing.assert_close(there, last(trained, "fsdp"), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_run_goes_on_in_one_process(trained, monkeypatch):
    monkeypatch.chdir(trained)
    twice = ("--data.batch_size", 4, "--run", "runs/one", "--ckpt_path", "fsdp.ckpt")
    train.main(list(map(str, ("fit", *CPU, *twice))))
    torch.testing.assert_close(last(trained, "one"), last(trained, "fsdp"), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_gradients_are_clipped_by_the_norm_of_all(ranks, trained):
    clipped = ("--trainer.max_steps", 1, "--trainer.gradient_clip_val", 0.01)
    assert ranks.run(trained, "fit", *FSDP, *clipped, "--run", "runs/clipped")[0] == [0, 0]
    file = trained / "runs/clipped/checkpoints/last.ckpt"
    kept = torch.load(file, weights_only=True)["optimizer_states"][0]["state"].values()
    # After one step: of Muon 1 - 0.95 of the gradient, of AdamW 1 - 0.9.
    gradients = [s["momentum_buffer"] / 0.05 if len(s) == 1 else s["exp_avg"] / 0.1 for s in kept]
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    assert float(norm) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.slow
def test_what_else_a_run_may_ask_for(ranks, trained):
    model = f"runs/ddp/{MODEL_NAME}"
    asked = (
        *("--model.begin_with", model, "--model.teachers", f"[{model}]", "--model.dropout", 0.1),
        *("--trainer.accumulate_grad_batches", 2, "--trainer.max_steps", 4),
        *("--trainer.precision", "bf16-mixed", "--monitor.times", 2, "--monitor.bars", 1),
    )
    for name, options in (("asked-ddp", TWO), ("asked-fsdp", FSDP)):
        codes, _, errors = ranks.run(trained, "fit", *options, *asked, "--run", f"runs/{name}")
        assert (codes, errors) == ([0, 0], ["", ""])
    ddp, fsdp = (last(trained, f"asked-{name}") for name in ("ddp", "fsdp"))
    torch.testing.assert_close(fsdp, ddp, rtol=1e-3, atol=1e-3)
    tags = EventAccumulator(str(trained / "runs/asked-fsdp")).Reload().Tags()
    assert {"attention/maps"} <= set(tags["images"])
    assert tags["audio"]


@pytest.mark.slow
def test_a_run_is_judged_under_it(ranks, trained):
    codes, (first, second), _ = ranks.run(trained, "validate", *FSDP, "--run", "runs/fsdp")
    assert codes == [0, 0]
    assert "nats_per_note" not in second
    (nats,) = re.findall(r"valid/nats_per_note\s+(\d\S+)", first)
    of_run = scalars(trained / "runs/fsdp")["valid/nats_per_note"]
    assert float(nats) == pytest.approx(of_run[-1], rel=1e-6)


@pytest.mark.slow
def test_sigterm_to_one_stops_both(ranks, trained):
    codes, _, errors = ranks.run(trained, "fit", *FSDP, "--run", "runs/term", first=TERMINATES)
    assert codes == [143, 143]
    assert len(lines(errors)) == 1
    kept = torch.load(trained / "runs/term/checkpoints/last.ckpt", weights_only=True)
    assert kept["global_step"] == 3


@pytest.mark.slow
def test_one_device(trained):
    alone = (*FSDP, "--trainer.devices", 1, "--trainer.max_steps", 2, "--run", "runs/alone")
    command = list(map(str, (sys.executable, train.__file__, "fit", *alone)))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=trained)
    assert (done.returncode, done.stderr) == (0, "")
    assert (trained / "runs/alone" / MODEL_NAME).exists()


@pytest.mark.parametrize(
    "name",
    [
        "deepspeed_stage_2",
        "fsdp_cpu_offload",
        "lightning.pytorch.strategies.FSDPStrategy",
        "lightning.pytorch.strategies.ModelParallelStrategy",
    ],
)
def test_other_strategies_that_shard_are_refused(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        train.main(list(map(str, ("fit", *CPU, "--trainer.strategy", name))))
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in (name, "Muon", "ddp", "fsdp"))
    assert not list(tmp_path.iterdir())
