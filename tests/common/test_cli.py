"""A mistake on a command line is one line, with exit code 2; so is Ctrl-C, with 130."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from common.cli import (
    Parser,
    check_file,
    ended_by_ctrl_c,
    fail,
    file_name,
    number,
    positive_integer,
    random_seed,
    say,
    with_command_first,
)
from tests.runs import ROOT, python


@pytest.mark.parametrize("program", ["tool.py", "package/tool.py/__main__.py"])
def test_errors_are_one_line_that_names_the_program(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [program])
    with pytest.raises(SystemExit, match="2"):
        fail("two\n lines")
    assert capsys.readouterr().err == "tool.py: two lines\n"
    with pytest.raises(SystemExit, match="2"):
        Parser().parse_args(["--color"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "tool.py: unrecognized arguments: --color (--help lists the options)"


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (positive_integer, "0", "must be a whole number from 1 up, not '0'"),
        (positive_integer, "1.5", "from 1 up"),
        (positive_integer, "9" * 5000, "not 5000 characters; the largest is 1000000000"),
        (random_seed, "9" * 5000, "from 0 to 2^63 - 1, not 5000 characters"),
        (random_seed, "-1", "from 0 to 2^63 - 1, not '-1'"),
        (random_seed, str(2**63), "from 0 to 2^63 - 1"),
        (number, "0,8", "must be a number such as 0.8, not '0,8'"),
    ],
)
def test_numbers_out_of_range_are_refused(kind, text, words, capsys):
    parser = Parser()
    parser.add_argument("--number", type=kind)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([f"--number={text}"])
    assert words in capsys.readouterr().err
    assert parser.parse_args(["--number", "7"]).number == 7


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--tempreature", "1"], "; is --temperature meant? ("),
        (["--temp", "1"], "--temp 1 ("),  # not cut short: it might be another option
        (["tune.mid"], "tune.mid; files go in quotes ("),
        ([""], "unrecognized arguments: ("),
        (["play", "--sizes", "1"], "; is --size meant? ("),
    ],
)
def test_what_no_option_takes_is_told_with_what_may_be_meant(words, meant, capsys):
    parser = Parser("files go in quotes")
    parser.add_argument("--temperature")
    commands = parser.add_subparsers()
    commands.add_parser("play").add_argument("--size")
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(words if words[0] == "play" else ["play", *words])
    (line,) = capsys.readouterr().err.splitlines()
    assert meant in line


def test_a_command_may_stand_after_options():
    commands = ("fit", "test")
    words = ["--config", "a.yaml", "test", "--run=fit"]
    assert with_command_first(words, commands) == ["test", "--config", "a.yaml", "--run=fit"]
    for words in (["fit", "--run", "test"], ["--run", "fit"], ["--help"], []):
        assert with_command_first(words, commands) == words


def test_a_home_folder_is_found_where_no_shell_has_written_it_out(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("USERPROFILE", "/home/me")
    names = ("~/a b.mid", "music/", "", "C:\\tune.mid")
    assert [*map(file_name, names)] == ["/home/me/a b.mid", *names[1:]]


def test_names_reach_a_terminal_escaped(capsys):
    say("a\nb\x1b[31m.mid \udce9")
    assert capsys.readouterr().out == "a\\nb\\x1b[31m.mid \\xe9\n"
    with pytest.raises(SystemExit, match="2"):
        check_file("no\n\x1b[31m.mid")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(r"no\n\x1b[31m.mid: no such file")
    with pytest.raises(SystemExit, match="2"):
        fail("red\x1b[31m.mid: broken")
    assert "\x1b" not in capsys.readouterr().err


def work(tidied):
    with ended_by_ctrl_c(), ExitStack() as files:
        files.callback(tidied.append, True)
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_work_in_one_line_when_it_is_tidied_up(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tool.py"])
    before = signal.getsignal(signal.SIGINT)
    tidied = []
    try:
        with pytest.raises(SystemExit, match="130"):
            work(tidied)
    finally:
        signal.signal(signal.SIGINT, before)
    assert tidied
    assert capsys.readouterr().err == "tool.py: ended by Ctrl-C\n"


@pytest.mark.parametrize(
    "command", ["train.py", "generate.py", "evaluate.py", "play.py", "-m data.corpus"]
)
def test_ctrl_c_while_a_command_starts_ends_it_without_a_word(command, tmp_path):
    """Libraries would turn it into errors of their own, or lose it: numpy and torch do."""
    (tmp_path / "numpy.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    here = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    options = ["--config", "configs/smoke.yaml"] if command == "train.py" else []
    words = [sys.executable, *command.split(), *options]
    ran = subprocess.run(words, cwd=ROOT, env=os.environ | here, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("error", ["MemoryError()", "ImportError('libtorch.so: no segment')"])
def test_a_library_that_cannot_be_loaded_is_a_line(error):
    work = f"with quick_imports(): raise {error}"
    _, errors, code = python(f"from common.cli import quick_imports\n{work}\n")
    (line,) = errors.splitlines()
    assert "a library cannot be loaded (" in line
    assert "()" not in line
    assert code == 2
