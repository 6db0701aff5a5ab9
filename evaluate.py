"""Judge a model on music that it has not seen.

    python evaluate.py likelihood --checkpoint runs/bach/model.safetensors
    python evaluate.py likelihood --piece piece.mid --out surprise.png
    python evaluate.py originality piece.mid
    python evaluate.py music --count 50
    python evaluate.py attention --midi piece.mid --out maps.png
    python evaluate.py all --html report.html --json report.json

docs/evaluating.md says what each of them measures.
"""

if __name__ == "__main__":
    import common.command  # noqa: F401  # Ctrl-C ends it at once while it starts

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from common.cli import (
    Parser,
    check_file,
    ended_by_ctrl_c,
    fail,
    file_name,
    positive_integer,
    quick_imports,
    random_seed,
    say,
    with_command_first,
)
from common.files import check_writable
from data.corpus.options import SPLITS
from generation.defaults import add_checkpoint, default_model, model_path


def _file(text: str, ending: str) -> str:
    text = file_name(text)
    if Path(text).suffix.lower() != ending or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"the name of a {ending} file is needed, not {text!r}")
    return text


_png, _json, _html = (partial(_file, ending=ending) for ending in (".png", ".json", ".html"))


COMMANDS = ("likelihood", "music", "originality", "attention", "all")


def command_line() -> argparse.ArgumentParser:
    """Return the parser of all options."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True, metavar=" | ".join(COMMANDS))
    likelihood = _add_command(
        *(what, "likelihood", "how likely pieces are, and each note of one"),
        midi="files and folders to score, not the splits",
    )
    likelihood.add_argument(
        "--splits",
        nargs="+",
        choices=SPLITS,
        default=SPLITS[1:],
        help="which splits to score (default: %(default)s)",
    )
    likelihood.add_argument(
        "--piece",
        metavar="FILE",
        type=file_name,
        help="a file: draw and list how surprising its notes are",
    )
    likelihood.add_argument("--out", type=_png, metavar="FILE.png", help="the picture of --piece")
    _add_command(
        *(what, "music", "musical statistics beside those of held-out pieces"),
        midi="files and folders, not pieces it writes",
        count=50,
    )
    _add_command(
        *(what, "originality", "what of some pieces stands in training"),
        midi="files, and folders",
        nargs="+",
    )
    everything = _add_command(
        *(what, "all", "all of these but attention, on a page with sound"),
        midi="files to show too; pictures beside them count",
        count=30,
    )
    everything.add_argument(
        "--html", type=_html, metavar="FILE.html", help="write the page here; it needs nothing else"
    )
    for command in (likelihood, everything):
        command.add_argument(
            "--beside",
            metavar="FILE",
            type=model_path,
            help="another model.safetensors, to judge beside it",
        )
    attention = _add_command(what, "attention", "a picture of which tokens look at which")
    add = attention.add_argument
    add("--midi", required=True, metavar="FILE", type=file_name, help="what the model reads")
    add("--out", required=True, type=_png, metavar="FILE.png", help="the picture to write")
    return parser


def _add_command(
    what: Any, name: str, text: str, midi: str = "", nargs: str = "*", count: int = 0
) -> argparse.ArgumentParser:
    """Add a command with the options that it shares with others.

    One that takes no MIDI files needs no corpus. The count is of the pieces that it writes if it
    is not told; 0 where it writes none.
    """
    command: argparse.ArgumentParser = what.add_parser(name, help=text)
    command.set_defaults(**dict.fromkeys(("beside", "html", "json", "out", "piece")), midi=[])
    add = command.add_argument
    add_checkpoint(command)
    if midi:
        add("midi", nargs=nargs, metavar="FILE", type=file_name, help=midi)
        add("--path", type=file_name, help="where the music that it was trained on lies now")
        add("--datasets", default="datasets", type=file_name, help="where corpora lie")
        add("--json", type=_json, metavar="FILE.json", help="write the figures here too")
    if count:
        many = "how many pieces it writes (default: %(default)s)"
        same = "the same number, the same figures (default: %(default)s)"
        add("--count", "-n", type=positive_integer, default=count, help=many)
        add("--seed", type=random_seed, default=0, help=same)
    return command


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options_given = sys.argv[1:] if argv is None else argv
    options = command_line().parse_args(with_command_first(options_given, COMMANDS))
    options.command = options_given
    if options.what == "likelihood":
        if bool(options.piece) != bool(options.out):
            fail("--piece FILE and --out FILE.png go together: what to read, what to draw")
        if options.piece and options.midi:
            fail("--piece is about one file: leave out the others")
    read = [options.midi] if options.what == "attention" else options.midi
    for path in filter(None, (options.checkpoint, options.beside, options.piece, *read)):
        check_file(path)
    try:
        for path in filter(None, (options.html, options.json, options.out)):
            check_writable(path)
        if options.checkpoint is None:
            options.checkpoint, which = default_model()
            say(which)
    except OSError as error:
        fail(str(error))

    with quick_imports():
        from evaluation.command import run

    with ended_by_ctrl_c():
        run(options)


if __name__ == "__main__":
    main()
