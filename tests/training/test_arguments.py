"""The options of train.py, read before torch is imported: what is taken, and what is refused."""

import inspect
import re
import shlex
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lightning.pytorch import Trainer

import train
from common.options import hints_of
from common.text import printable
from tests.runs import ROOT, SMOKE, python
from training import arguments
from training.options import RunOptions, TrainerOptions

CONFIGS = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("benchmarks/configs/*.yaml")])


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name, text in {
        "class.yaml": "model: {class_path: os.abort}\n",
        "callback.yaml": "trainer: {callbacks: [{class_path: LambdaCallback, init_args: {setup: "
        "os.abort}}]}\n",
        "dotted.yaml": "trainer.logger.class_path: os.abort\n",
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
        arguments.read(words)
    except SystemExit as stop:
        code = stop.code
    lines = capsys.readouterr().err.splitlines()
    assert (code, len(lines)) in ((0, 0), (2, 1))
    assert not lines or lines[0].startswith("train.py: ")
    assert lines == [*map(printable, lines)]
    return lines[0] if lines else None


def test_the_options_of_the_trainer_are_those_of_lightnings():
    theirs = inspect.signature(Trainer).parameters
    for name, default in vars(TrainerOptions()).items():
        assert theirs[name].default == default, name


def test_words_and_files_are_read_in_their_order():
    Path("a.yaml").write_text("model: {n_layer: 3, learning_rate: 1e-3}\ndata.tracks: [A, 1]\n")
    line = "--model.n_layer 2 --model.n_head=1 --config a.yaml --config b.yaml --data.path ~"
    line += " --run 5 --model.teachers '[a, b]'"
    Path("b.yaml").write_text("trainer: {max_steps: 7}\nmodel: {n_embd: 32}\n")
    subcommand, options = arguments.read(["fit", *shlex.split(line)])
    assert (subcommand, options.trainer.max_steps) == ("fit", 7)
    assert (options.model.n_layer, options.model.n_head, options.model.n_embd) == (3, 1, 32)
    assert (options.model.learning_rate, options.model.teachers) == (0.001, ("a", "b"))
    assert (options.data.path, options.data.tracks) == (str(Path.home()), ("A", 1))
    assert options.run == "5"


def test_what_is_written_of_a_run_is_read_as_the_same_options():
    line = "--data.programs [0,24] --minutes 2.5 --run é --model.teachers [x]"
    _, options = arguments.read(["fit", "--config", str(SMOKE), *line.split()])
    assert options != RunOptions()
    Path("config.yaml").write_text(yaml.safe_dump(asdict(options), allow_unicode=True), "utf-8")
    assert arguments.read(["fit", "--config", "config.yaml"]) == ("fit", options)


def test_every_option_has_its_comment(capsys):
    with pytest.raises(SystemExit, match="0"):
        arguments.read(["fit", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    kinds = {"": RunOptions, **arguments._groups()}
    names = {f"{group}.{name}".strip(".") for group in kinds for name in hints_of(kinds[group])}
    assert len(names) > 60
    for name in names - kinds.keys():
        assert re.search(rf"--{name} \S+ [^(]", said), name


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tset", "unrecognized arguments: tset; is test meant?"),
        ("train", "fit, validate and test are the subcommands"),
        ("--rnu x", "--rnu x; is --run meant?"),
        ("--model.n_layers 4", "--model.n_layers 4; is --model.n_layer meant?"),
        ("--trainer.max_step=5", "is --trainer.max_steps meant?"),  # not cut short
        ("--modle.n_layer 4", "is --model.n_layer meant?"),
        ("--config none.yaml", "none.yaml: no such file"),
        ("--config folder", "not a file"),
        ("--config", "expected one argument"),
        ("--config wrong.yaml", "setting: model.n_layers; is --model.n_layer meant?"),
        ("--config misspelt.yaml", "setting: modle.n_layer; is --model.n_layer meant?"),
        ("--config broken.yaml", "line 1, column 8"),
        ("--config number.yaml", "--run must be text, not 5"),
        ("--config noise.bin", "--config takes a .yaml, --ckpt_path a checkpoint"),
        ("--model.n_layer --run x", "argument --model.n_layer: expected one argument"),
        ("--model.n_layer four", "--model.n_layer must be a whole number from 1 to 1,048,576"),
        ("--model.norm batch", "--model.norm must be one of layer, rms, not batch"),
        ("--config class.yaml", "setting: model.class_path"),
        ("--config callback.yaml", "setting: trainer.callbacks"),
        ("--config dotted.yaml", "setting: trainer.logger.class_path"),
        ("--trainer.callbacks+=LambdaCallback", "unrecognized arguments: --trainer.callbacks+"),
        ("--trainer.accelerator.class_path=os.abort", "--trainer.accelerator must be one of auto"),
        ('--trainer \'{"plugins": "x"}\'', "unrecognized arguments: --trainer"),
        ("--config laughs.yaml", "no aliases"),
        ("--config deep.yaml", "no long chains of lists"),
        ("--config list.yaml", "data is not a group of settings"),
        ("--config itself.yaml", "another form than those in configs/"),
        ("--config huge.yaml", "a value that cannot be read"),
        ("--seed_everything -5", "must be a whole number from 0 to 4,294,967,295"),
        ("--trainer.precision fast", "bf16-mixed"),
        ("--trainer.max_steps -1", "the run has no end: give --config FILE.yaml"),
        ("--model.learning_rate .nan", "--model.learning_rate must be a number from 1e-12 to 1"),
        ("--model.n_embd 33", "--model.n_embd must be n_head times an even number"),
        ("--model.dropout 1", "--model.dropout must be a number from 0 to 0.99"),
        ("--data.time_signature 4/3", "a time signature must be such as 4/4"),
        ("--run ''", "--run needs the name of a folder"),
        ("--run caf\udce9", "--run caf\\xe9: TensorBoard needs a name in UTF-8"),
        ("--run noise.bin", "noise.bin is not a folder"),
        ("--data.path nowhere", "nowhere: no such folder"),
        ("--data.path nowhere.npy --data.vocabulary_size 5", "nowhere.npy: no such file"),
    ],
)
def test_a_mistake_is_told_with_what_may_be_meant(capsys, line, words):
    assert words in refusal(capsys, "fit", "--config", str(SMOKE), *shlex.split(line))


# What stands for a value in YAML or a word.
VALUES = (
    *("null", "true", "-1", "0", "1", "2.5", "1e400", ".nan", "9" * 30, "9" * 5000, "0x10", "1_0"),
    *("''", "x", "C3", "3/4", "[]", "{}", "[1, [2, {a: b}]]", "{a: }", "*a", "&a [*a]", "- 1", "~"),
    *("2001-99-99", "2001-01-01", "!!binary x", "!!python/object/apply:os.abort []", "[" * 3000),
    *("os.abort", "LambdaCallback", "[Timer]", "{class_path: os.abort}", "\x1b[31m", "a: b: c"),
)
OPTIONS = sorted(arguments.command_line("fit")._option_string_actions)
SOME = st.lists(st.tuples(st.sampled_from(OPTIONS), st.sampled_from(VALUES)), max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SOME, SOME, st.binary(max_size=3), st.integers(0))
def test_whatever_is_set_is_taken_or_refused_in_a_line(capsys, inside, words, noise, at):
    lines = "\n".join(f"{name.strip('-')}: {value}" for name, value in inside).encode()
    at %= len(lines) + 1
    Path("any.yaml").write_bytes(lines[:at] + noise + lines[at:])
    refusal(capsys, "fit", "--config=any.yaml", *(f"{name}={value}" for name, value in words))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_shipped_config_is_read(capsys, monkeypatch, config):
    monkeypatch.setattr(arguments, "check_folder", lambda _: None)  # of which not all are here
    Path("steps.jsonl").touch()
    assert refusal(capsys, "fit", "--config", str(config)) is None
    with pytest.raises(SystemExit, match="0"):
        arguments.read(["fit", "--config", str(config), "--print_config"])
    printed = yaml.safe_load(capsys.readouterr().out)
    for name, value in yaml.safe_load(config.read_text()).items():
        assert printed[name] == (printed[name] | value if isinstance(value, dict) else value)


def test_the_classic_decoder_is_that_of_the_paper():
    config = ROOT / "benchmarks/configs/classic.yaml"
    model = arguments.read(["fit", "--config", str(config)])[1].model
    assert (model.n_attention, model.positions) == (2, "sinusoidal")
    assert (model.norm, model.norm_position, model.activation) == ("layer", "post", "relu")


def test_help_and_mistakes_wait_for_no_large_library():
    lines = ("--help", "fit --help", "", "--model.n_layers 4", "--config none.yaml")
    code = (
        "import sys, train\n"
        f"for line in {lines!r}:\n"
        "    try: train.main(line.split())\n"
        "    except SystemExit as stop: print(stop.code)\n"
        "print(sorted({'torch', 'lightning', 'numba'} & {*sys.modules}))"
    )
    told, errors, _ = python(code)
    assert told.endswith("\n0\n2\n2\n2\n[]\n")
    assert train.__doc__.strip() in told
    assert len(errors.splitlines()) == 3
