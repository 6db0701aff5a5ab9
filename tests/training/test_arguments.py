"""The options of train.py before torch is imported: what is refused, and that nothing else is."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import train
from tests.test_docs import PYTHON, all_commands
from training import arguments
from training.command import EtudeCLI, MusicDataModule, MusicModule, Parser

ROOT = Path(__file__).parents[2]
CONFIGS = sorted(ROOT.glob("configs/*.yaml"))
SMOKE = str(ROOT / "configs" / "smoke.yaml")


@pytest.fixture(scope="module")
def full_parsers():
    """LightningCLI's own parser of each subcommand."""
    parsers = {}

    class Unparsed(EtudeCLI):
        def parse_arguments(self, parser, args):
            actions = parser._actions
            (found,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))
            parsers.update(found.choices)
            raise SystemExit

    with pytest.raises(SystemExit):
        Unparsed(
            *(MusicModule, MusicDataModule),
            parser_class=Parser,
            seed_everything_default=0,
            auto_configure_optimizers=False,
        )
    return parsers


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name, text in {
        "model.yaml": "n_layer: 3\n",
        "nested.yaml": "model: model.yaml\ntrainer: {profiler: simple}\n",
        "callback.yaml": "trainer: {callbacks: [{class_path: LambdaCallback, init_args: {setup: "
        "os.abort}}]}\n",
        "named.yaml": "trainer: {callbacks: LambdaCallback}\n",
        "dotted.yaml": "trainer.strategy.class_path: os.abort\n",
        "laughs.yaml": "a0: &a0 x\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)),
        "deep.yaml": "run: " + "[" * 9999,
        "list.yaml": "data: []\n",
        "itself.yaml": "config: 1\n",
        "huge.yaml": f"model: {{n_layer: {'9' * 5000}}}\n",
        "wrong.yaml": "model:\n  n_layers: 3\n",
        "misspelt.yaml": "modle:\n  n_layer: 3\n",
        "broken.yaml": "model: [1",
        "number.yaml": "run: 5\n",
    }.items():
        Path(name).write_text(text)
    Path("noise.bin").write_bytes(b"\xe0")


def refusal(capsys, *words):
    """The one line on stderr with which a command line is refused, or None."""
    code = 0
    try:
        arguments.check(words)
    except SystemExit as stop:
        code = stop.code
    lines = capsys.readouterr().err.splitlines()
    assert (code, len(lines)) in ((0, 0), (2, 1))
    assert not lines or lines[0].startswith("train.py: ")
    return lines[0] if lines else None


@pytest.mark.parametrize("subcommand", arguments.SUBCOMMANDS)
def test_the_options_and_their_defaults_are_those_of_the_full_parser(full_parsers, subcommand):
    full, ours = full_parsers[subcommand], arguments._parser(subcommand)
    options = {name for name in full._option_string_actions if not name.endswith(".help")}
    options -= {"--print_shtab"}  # there where shtab is installed, and of no use for a run
    assert (
        {*ours._option_string_actions} - {"--print_shtab"}
        == options
        >= {*re.findall(r"--[\w.]+", train.__doc__)}
    )
    defaults, quiet = full.get_defaults(), EtudeCLI.QUIET
    assert {**vars(ours.get_defaults().as_flat()), **quiet} == vars(defaults.as_flat())


@pytest.mark.parametrize(
    "line",
    [
        "--model.n_layer=3 --model.dropout 1 --model.learning_rate 1e-3 --model.bias yes",
        "--model.teachers+=a.safetensors --model.teachers+ b --model.begin_with null",
        "--model '{\"n_layer\": 3}' --checkpoint {} --monitor '{\"times\": 0}'",
        "--model model.yaml --data.programs [0,24] --data.tracks '[A, 1]'",
        "--trainer.accelerator cpu --trainer.devices 2 --trainer.devices+ 3 --trainer.strategy ddp",
        "--trainer.precision 16 --trainer.deterministic warn --trainer.profiler simple",
        "--trainer.limit_val_batches 0.5 --trainer.val_check_interval 3 --trainer.max_time 0:01",
        "--trainer.max_time '{\"hours\": 1}' --trainer.check_val_every_n_epoch null",
        "--trainer.logger false --trainer.accumulate_grad_batches 2 --trainer.devices auto",
        "--config nested.yaml -c nested.yaml --trainer.max_steps=5",
        '--config \'{"model": {"n_layer": 3}}\' --seed_everything true --ckpt_path last',
        "--run 5 --data.path ~ --ckpt_path= --trainer.default_root_dir=",
    ],
)
def test_what_the_full_parser_takes_is_not_refused(full_parsers, capsys, line):
    words = ["--config", SMOKE, *shlex.split(line)]
    full_parsers["fit"].parse_args(words)
    assert refusal(capsys, "fit", *words) is None


@pytest.mark.parametrize("option", ["n_layer", "dropout", "bias", "norm", "teachers"])
def test_a_value_is_refused_only_where_the_full_parser_refuses_it(full_parsers, capsys, option):
    values = ("3", "-1", "1.0", "1e3", "true", "null", "x", "[1]", "{}", "", "1_0", "rms", "nan")
    refused = 0
    for value in values:
        words = ["--config", SMOKE, f"--model.{option}={value}"]
        if refusal(capsys, "fit", *words):
            refused += 1
            with pytest.raises(SystemExit):
                full_parsers["fit"].parse_args(words)
            capsys.readouterr()  # the same in other words
    assert refused


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tset", "unrecognized arguments: tset; is test meant?"),
        ("--rnu x", "--rnu x; is --run meant?"),
        ("--model.n_layers 4", "--model.n_layers 4; is --model.n_layer meant?"),
        ("--trainer.max_step=5", "is --trainer.max_steps meant?"),  # not cut short
        ("--data.pth x", "is --data.path meant?"),
        ("--monitor.tims 3", "is --monitor.times meant?"),
        ("--checkpoint.minuets 3", "is --checkpoint.minutes meant?"),
        ("--modle.n_layer 4", "is --model.n_layer meant?"),
        ("--config none.yaml", "none.yaml'"),
        ("--config folder", "not a file"),
        ("--config", "expected one argument"),
        ("--config wrong.yaml", "setting: model.n_layers; is --model.n_layer meant?"),
        ("--config misspelt.yaml", "setting: modle.n_layer; is --model.n_layer meant?"),
        ("--config broken.yaml", "line 1, column 8"),
        ("--config number.yaml", "--run: Expected a str. Got value: 5"),
        ("--config noise.bin", "--config takes a .yaml"),
        ("--model.n_layer --run x", "argument --model.n_layer: expected one argument"),
        ("--model.n_layer four", "--model.n_layer: Expected a int. Got value: four"),
        ("--model.norm batch", "--model.norm: Expected a ['layer', 'rms']. Got value: batch"),
        ("--config callback.yaml", "no class is taken from a configuration"),
        ("--config named.yaml", "setting: trainer.callbacks"),
        ("--config dotted.yaml", "no class is taken from a configuration"),
        ("--trainer.callbacks+=LambdaCallback", "unrecognized arguments: --trainer.callbacks+"),
        ("--trainer.profiler.class_path=os.abort", "--trainer.profiler: "),
        ('--trainer \'{"plugins": "x"}\'', "trainer.plugins"),
        ("--config laughs.yaml", "no aliases"),
        ("--config deep.yaml", "no long chains of lists"),
        ("--config list.yaml --data.tracks+=1", "another form than that of configs/"),
        ("--config itself.yaml", "another form than that of configs/"),
        ("--config huge.yaml", "a value that cannot be read"),
        ("--seed_everything -5", "--seed_everything -5: must be from 0 to 2^32 - 1"),
        ("--trainer.val_check_interval 0", "--trainer.val_check_interval 0: must be above 0"),
        ("--trainer.accumulate_grad_batches 0", "must be above 0"),
        ("--trainer.devices 99999", "--trainer.devices 99999: must be from 1 to "),
        ("--trainer.max_steps -1", "the run has no end"),
        ("--run noise.bin", "noise.bin is not a folder"),
        ("--data.path nowhere", "nowhere: no such folder"),
        ("--data.path noise", "noise: no such folder"),
    ],
)
def test_a_mistake_is_told_with_what_may_be_meant(capsys, line, words):
    assert words in refusal(capsys, "fit", "--config", SMOKE, *shlex.split(line))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_shipped_config_passes(capsys, monkeypatch, config):
    monkeypatch.setattr(arguments, "check_folder", lambda _: None)  # of which not all are here
    assert refusal(capsys, "fit", "--config", str(config)) is None


def test_every_command_of_the_pages_passes(capsys):
    Path("configs").symlink_to(ROOT / "configs")
    for folder in ("my_midi_files", "datasets/written"):
        Path(folder).mkdir(parents=True)
    lines = [param.values[0] for param in all_commands() if "train.py" in param.values[0]]
    assert len(lines) > 10
    for line in lines:
        found = re.search(rf"{PYTHON} train\.py (.*)", line)
        assert refusal(capsys, *shlex.split(found[1])) is None, line


def test_what_can_be_read_only_once_is_left_to_the_full_parser(capsys):
    os.mkfifo("pipe")  # to open it would wait for a writer
    assert refusal(capsys, "fit", "--config=pipe", "--no-such-option") is None
    assert refusal(capsys, "fit", "--config", "memory://a/b.yaml") is None


def test_one_process_of_a_machine_tells_why(capsys, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(SystemExit, match="2"):
        arguments.check(["fit", "--no-such-option"])
    assert capsys.readouterr().err == ""


def test_help_and_mistakes_wait_for_no_large_library():
    lines = (
        "--help",
        "",
        "tset",
        "--model.n_layers 4",
        "--config none.yaml",
        "--config wrong.yaml",
    )
    code = (
        "import sys, train\n"
        f"for line in {lines!r}:\n"
        "    try: train.main(line.split())\n"
        "    except SystemExit as stop: print(stop.code)\n"
        "print(sorted({'torch', 'lightning', 'numpy'} & {*sys.modules}))"
    )
    words = [sys.executable, "-c", code]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=here, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n2\n2\n2\n2\n2\n[]\n")
    assert train.__doc__.strip() in done.stdout
    assert len(done.stderr.splitlines()) == 5
