"""README.md and docs/: every command in them runs, every file that they name is there.

An indented block is commands, one a line; a block fenced as python is run; one fenced as text is
not. A command that no rule here covers fails. Commands run as they stand, in this process and in
a folder that has what they name: a few chorales, tunes, and small models that were trained for
some steps. These are cut short, or not run:

- `train.py` makes eight steps with a small model, and one process at most prepares its windows
  (options are appended, none is taken away). Where it asks for several devices, its options are
  only parsed: `tests/training` runs those.
- `evaluate.py music` and `all` write two pieces, and `generate.py` two of many; the best is of two.
- `play.py` would not end: its options are parsed.
- `benchmarks` and `make` would take minutes. Of a benchmark's options each must be in its --help;
  of `make` the target must be there, and what it would train or write with is parsed.
"""

import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import evaluate
import generate
import play
import train
from data.corpus import bach
from generation import defaults
from tests.folders import write_tunes
from tests.models import tune

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"runs", "datasets"}
PYTHON = ".venv/bin/python"
SMALL = shlex.split(
    "--model.n_layer 1 --model.n_head 2 --model.n_embd 16 --model.context_length 128"
    " --trainer.enable_progress_bar false --monitor.times 0"
)
SOME_STEPS = [*SMALL, "--trainer.max_steps", "4", "--trainer.val_check_interval", "4"]
ONE_WORKER = ["--data.num_workers", "1", "--data.batch_size", "8"]
FEW_PIECES = ["--count", "2"]
EVERYDAY = {"generate.py": generate, "evaluate.py": evaluate}
CHORALES = ("bwv153.5", "bwv10.7", "bwv14.5", "bwv16.6", "bwv17.7", "bwv20.7", "bwv26.6", "bwv28.6")


def blocks(page: Path) -> list[tuple[int, str, list[str]]]:
    """Line number, kind (commands, python, text) and lines of each block of a page."""
    found: list[tuple[int, str, list[str]]] = []
    fence: str | None = None
    before = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:]
            if fence is not None:
                found.append((number, fence, []))
        elif fence is not None:
            found[-1][2].append(line)
        elif line.startswith("    "):
            if not before:
                found.append((number, "commands", []))
            found[-1][2].append(line[4:])
        before = line
    return found


def all_blocks(kind: str) -> list:
    """A parameter for each block of a kind: its lines, named by page and line."""
    return [
        pytest.param(lines, id=f"{page.name}:{number}")
        for page in PAGES
        for number, found, lines in blocks(page)
        if found == kind
    ]


def all_commands() -> list:
    """A parameter for each command of the pages; the same command on two pages is one."""
    commands: dict[str, str] = {}
    for page in PAGES:
        for number, kind, lines in blocks(page):
            if kind == "commands":
                for line in lines:
                    commands.setdefault(line.partition("  #")[0].strip(), f"{page.name}:{number}")
    return [
        pytest.param(command, id=f"{where} {command[:60]}") for command, where in commands.items()
    ]


@pytest.fixture(scope="session")
def workplace(tmp_path_factory):
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("docs")
    for name in ("configs", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    tunes = write_tunes(folder / "my_midi_files", 8)
    write_tunes(folder / "datasets" / "written", 2)
    tune(folder / "tune.mid")
    tune(folder / "ode.mid")
    (folder / "steps.jsonl").write_text(
        "".join(f"{list(range(n, n + 9))}\n" for n in range(90)), encoding="utf-8"
    )
    entries = [path for path in bach.entries() if path.stem in CHORALES and path.suffix == ".mxl"]
    assert len(entries) == len(CHORALES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(bach, "entries", lambda: entries)
        folder_options = ["--config", "configs/folder.yaml", "--data.path", str(tunes)]
        train.main(["fit", *folder_options, *SOME_STEPS, "--run", "runs/mine"])
        ids = ["--config", "configs/sequences.yaml", "--data.path", "steps.jsonl"]
        train.main(["fit", *ids, *SOME_STEPS])
        bach_options = ["--config", "configs/bach.yaml", *SOME_STEPS]
        train.main(["fit", *bach_options, "--trainer.max_steps", "40"])
    for name, like in (("a", "mine"), ("b", "mine"), ("classic", "bach")):
        (folder / "runs" / name).mkdir()
        shutil.copy(folder / "runs" / like / "model.safetensors", folder / "runs" / name)
    (folder / "models").mkdir()
    shutil.copy(folder / "runs/bach/model.safetensors", folder / "models/bach.safetensors")
    shutil.copy(folder / "runs/mine/model.safetensors", folder / "models/base.safetensors")
    for name in ("pop", "songs"):
        shutil.copy(ROOT / f"models/{name}.safetensors", folder / "models")
    shutil.copytree(folder / "datasets/bach/midi", folder / "runs/bach/music")
    shutil.move(folder / "runs/bach/music/bwv16.6.mid", folder / "runs/bach/music/chorale.mid")
    return folder


@pytest.fixture
def at_work(workplace, monkeypatch):
    """In the folder that has all that the commands name, also the model if they name none."""
    monkeypatch.chdir(workplace)
    monkeypatch.setattr(defaults, "PROJECT", workplace)
    monkeypatch.setattr("generation.compose.CANDIDATES", 2)


def run_to_the_end(run: Callable[..., object], *arguments: object, **options: object) -> None:
    """Calls what may leave with exit code 0, as --help does, and with no other."""
    try:
        run(*arguments, **options)
    except SystemExit as stop:
        if stop.code:
            raise


def run_module(name: str, arguments: list[str]) -> str:
    """Runs `python -m name`, and returns what it prints."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", [name, *arguments])
        for module in (name, f"{name}.__main__"):
            patch.delitem(sys.modules, module, raising=False)
        run_to_the_end(runpy.run_module, name, run_name="__main__")
    return said.getvalue()


def parse_training(arguments: list[str]) -> None:
    """Checks the options of train.py without training."""
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as stop:
        train.main([*arguments, "--print_config"])
    assert not stop.value.code


def check_benchmark(name: str, arguments: list[str]) -> None:
    """Checks that a benchmark has the options that a command gives it."""
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", run_module(name, ["--help"])))
    given = {argument for argument in arguments if re.match("--?[a-z]", argument)}
    assert given <= known


def run_python(words: list[str], only_parse: bool = False) -> None:
    """Runs what follows `.venv/bin/python` on a command line."""
    program, *arguments = words
    if program in EVERYDAY:
        command = EVERYDAY[program]
        if only_parse:
            command.command_line().parse_args(arguments)
        else:
            is_long = program == "evaluate.py" and arguments[0] in ("all", "music")
            few = [*(FEW_PIECES if is_long else [])]
            for option in {"--num-samples", "--best-of", "--count"} & set(arguments):
                few += [option, "2"]
            run_to_the_end(command.main, [*arguments, *few])
    elif program == "play.py":  # it would not end
        play.command_line().parse_args(arguments)
    elif program == "train.py":
        if only_parse or {"--print_config", "--help", "--trainer.devices"} & {*arguments}:
            parse_training([word for word in arguments if word != "--print_config"])
        else:
            few = ONE_WORKER if "--data.num_workers" in arguments else []
            train.main([*arguments, *SOME_STEPS, "--trainer.max_steps", "8", *few])
    elif arguments[0].startswith("benchmarks."):
        check_benchmark(arguments[0], arguments[1:])
    elif (program, arguments[0]) == ("-m", "data.corpus"):
        assert run_module("data.corpus", arguments[1:])
    else:
        pytest.fail(f"no rule for {shlex.join(words)}")


def check_make(target: str) -> None:
    """Checks that make has a target, and parses what it would train and write with."""
    command = ["make", "--dry-run", "--always-make", f"PYTHON={sys.executable}", target]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for line in said.replace("\\\n", "").splitlines():
        if line.startswith(PYTHON) and "-m" not in line.split():
            run_python(shlex.split(line)[1:], only_parse=True)


@pytest.mark.parametrize("command", all_commands())
@pytest.mark.usefixtures("at_work")
@pytest.mark.slow
def test_a_command_runs(command):
    words = [word for word in shlex.split(command) if not re.match("[A-Z_]+=", word)]
    if words[0] == "make":
        check_make(words[1])
    elif words[0] == PYTHON:
        run_python(words[1:])
    elif words[0] != "curl":  # which tests/web/test_server.py runs
        pytest.fail(f"no rule for {command}")


@pytest.mark.parametrize("lines", all_blocks("python"))
@pytest.mark.usefixtures("at_work")
@pytest.mark.slow
def test_python_runs(lines):
    exec(compile("\n".join(lines), "docs", "exec"), {})


def test_an_option_that_a_benchmark_has_not_is_found():
    with pytest.raises(AssertionError):
        check_benchmark("benchmarks.speed", ["--no", "3"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_what_is_there(page):
    text = page.read_text(encoding="utf-8")
    assert {kind for _, kind, _ in blocks(page)} <= {"commands", "python", "text"}
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).is_file(), link
    for name in re.findall(r"`([\w/]+/[\w.-]*)`", text):
        if name.split("/")[0] in FOLDERS:
            assert (ROOT / name).exists(), name


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
