"""A mistake on a command line is one line, with exit code 2."""

import pytest

from common.cli import Parser, fail, positive_integer, random_seed


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
        (positive_integer, "-1", "from 1 up"),
        (positive_integer, "1.5", "from 1 up"),
        (random_seed, "-1", "from 0 to 2^63 - 1, not '-1'"),
        (random_seed, str(2**63), "from 0 to 2^63 - 1"),
    ],
)
def test_numbers_out_of_range_are_refused(kind, text, words, capsys):
    parser = Parser()
    parser.add_argument("--number", type=kind)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([f"--number={text}"])
    assert words in capsys.readouterr().err
    assert parser.parse_args(["--number", "7"]).number == 7
