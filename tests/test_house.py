"""The rules of the house: which package may import which, and how large things may get."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs import ROOT, python

COMMANDS = ("train", "generate", "evaluate", "play")
# Each package, and the packages of ours that it may import.
MAY_IMPORT = {
    "common": set(),
    "data": {"common"},
    "model": {"common"},
    "rendering": {"common", "data"},
    "generation": {"common", "data", "model", "rendering"},
    "evaluation": {"common", "data", "model", "rendering", "generation"},
    "training": {"common", "data", "model", "rendering", "generation", "evaluation"},
    "web": {"common", "data", "model", "rendering", "generation", "evaluation"},
}
# The same among the parts of data; what lies in data itself is at the bottom.
DATA_MAY_IMPORT = {
    "data": {"data"},
    "data.midi": {"data"},
    "data.files": {"data", "data.midi"},
    "data.tokens": {"data"},
    "data.corpus": {"data", "data.midi", "data.files", "data.tokens"},
    "data.batches": {"data", "data.midi", "data.tokens", "data.corpus"},
}
LIGHTNING = ("data/batches/datamodule.py", "training/")
SERVERS = ("web/", "play.py")
UNSAFE = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
TOP_LEVEL = {
    *("README.md", "LICENSE", "Makefile", "pyproject.toml"),
    *("requirements.txt", "requirements-train.txt", "requirements-dev.txt", ".gitignore", ".ci"),
    *("benchmarks", "configs", "docs", "models", "tests"),
    *(f"{command}.py" for command in COMMANDS),
    *MAY_IMPORT,
}
NOT_KEPT = {  # what tools and runs leave here
    *(".git", ".venv", "runs", "music", "datasets", "__pycache__"),
    *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".dmypy.json"),
}
MOST_LINES = 60  # of a function, all of it
MOST_LINES_TO_STUDY = 2000

PACKAGE_FILES = sorted(file for name in MAY_IMPORT for file in (ROOT / name).rglob("*.py"))
HOUSE = [*sorted(ROOT.glob("*.py")), *PACKAGE_FILES]
HOUSE_AND_BENCHMARKS = [*HOUSE, *sorted(ROOT.glob("benchmarks/*.py"))]


def name_of(file: Path) -> str:
    """The path of a file from the top, with slashes."""
    return file.relative_to(ROOT).as_posix()


def named(files: list[Path]) -> list:
    """A test parameter for each file, named by its path."""
    return [pytest.param(file, id=name_of(file)) for file in files]


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, at its top or inside a function, by their dotted names."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports by relative name"
            for alias in node.names:  # a module of ours, or what is in one
                path = ROOT / node.module.replace(".", "/") / alias.name
                is_module = path.is_dir() or path.with_suffix(".py").is_file()
                yield f"{node.module}.{alias.name}" if is_module else node.module


def part_of_data(module: str) -> str:
    """`data`, or the package in it that holds a module."""
    path = ROOT / module.replace(".", "/")
    package = path if path.is_dir() else path.parent
    return name_of(package).replace("/", ".")


def stands_in(file: Path, places: tuple[str, ...]) -> bool:
    """Whether a file is one of `places`, or lies in one that ends with a slash."""
    name = name_of(file)
    return any(name.startswith(place) if place[-1] == "/" else name == place for place in places)


@pytest.mark.parametrize("file", named(PACKAGE_FILES))
def test_imports_go_down(file):
    package = name_of(file).split("/")[0]
    ours = {module.split(".")[0] for module in imported(file)} & {*MAY_IMPORT, *COMMANDS}
    assert ours - {package} <= MAY_IMPORT[package]


@pytest.mark.parametrize(
    "file", named([f for f in PACKAGE_FILES if f.is_relative_to(ROOT / "data")])
)
def test_imports_go_down_in_data(file):
    here = part_of_data(name_of(file).removesuffix(".py").replace("/", "."))
    parts = {part_of_data(module) for module in imported(file) if module.split(".")[0] == "data"}
    assert parts - {here} <= DATA_MAY_IMPORT[here]


@pytest.mark.parametrize("file", named(HOUSE))
def test_a_file_takes_only_the_libraries_of_its_place(file):
    libraries = {module.split(".")[0] for module in imported(file)}
    assert "lightning" not in libraries or stands_in(file, LIGHTNING)
    assert not libraries & {"starlette", "uvicorn"} or stands_in(file, SERVERS)
    assert not libraries & UNSAFE
    assert "matplotlib" not in libraries  # it has fonts; pictures are SVG, ten times as fast
    is_quick = stands_in(file, ("common/",)) and file.name != "arrays.py"  # commands begin
    assert not libraries & {"torch", "numpy", "pretty_midi"} or not is_quick
    assert not libraries & {"tests", "benchmarks"}


def test_commands_do_not_import_each_other():
    for command in COMMANDS:
        others = {*COMMANDS, "tests", "benchmarks"} - {command}
        assert not {module.split(".")[0] for module in imported(ROOT / f"{command}.py")} & others


def test_the_top_level_shows_commands_folders_and_project_files():
    assert {path.name for path in ROOT.iterdir()} <= TOP_LEVEL | NOT_KEPT


@pytest.mark.parametrize("file", named(HOUSE_AND_BENCHMARKS))
def test_no_function_needs_scrolling(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {node.name: node.end_lineno - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def students_path() -> tuple[list[str], set[str]]:
    """The files that README tells a student to read, in order, and those that may be skipped."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Read the code in this order")[2].partition("\n## ")[0]
    listed, skipped = section.split("may skip", 1)
    return re.findall(r"^\d+\. `(.+?)`", listed, re.MULTILINE), set(re.findall(r"`(.+?)`", skipped))


def needed(name: str) -> set[str]:
    """The files of ours that a file imports, by their names."""
    files = {f"{module.replace('.', '/')}.py" for module in imported(ROOT / name)}
    return {file for file in files if (ROOT / file).is_file()}


def test_a_student_can_read_what_makes_a_gpt_write_music():
    listed, skipped = students_path()
    assert len(listed) > 10
    assert skipped == set().union(*map(needed, listed)) - {*listed}
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in listed]
    assert sum(len(text.splitlines()) for text in texts) <= MOST_LINES_TO_STUDY


def test_a_student_meets_nothing_before_it_is_explained():
    listed, skipped = students_path()
    for number, name in enumerate(listed):
        assert needed(name) <= skipped | {*listed[:number]}, name


def test_to_write_music_what_only_training_needs_is_not_imported():
    lines = (ROOT / "requirements-train.txt").read_text(encoding="utf-8").splitlines()
    names = {line.partition("==")[0].lower() for line in lines if "==" in line}
    names = names - {"scikit-learn"} | {"sklearn"}
    assert "torch" in names
    check = f"print({{*{sorted(names)}}} & {{*sys.modules}})"
    code = f"import sys, generation.command, web.server; {check}"
    assert python(code) == ("set()\n", "", 0)
