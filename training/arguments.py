"""Reads train.py's command line and its configurations into options, within half a second."""

import re
import sys
from argparse import ArgumentError
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import yaml  # type: ignore[import-untyped]
from jsonargparse import ArgumentParser, Namespace, get_loader, set_loader

from common.cli import explained, file_name, print_error
from common.files import check_writable
from common.options import Options, comments_of, described, hints_of
from data.corpus.find_files import EMBEDDED, check_folder
from training.options import RunOptions

SUBCOMMANDS = ("fit", "validate", "test")
ADVICE = "a configuration is named by --config; fit, validate and test are the subcommands"
NO_CONFIG = "a file that is no configuration: --config takes a .yaml, --ckpt_path a checkpoint"
NO_END = "the run has no end: give --config FILE.yaml, --minutes or --trainer.max_steps"
NO_FORM = "a configuration has another form than those in configs/"
DEEPEST = 20  # the deepest that a configuration may be nested
# What jsonargparse says about a wrong value, and about an unknown setting in a file.
_WRONG = re.compile(r'Parser key "([\w.]+)":.*[vV]alue: (.*)', re.DOTALL)
_MISSING = re.compile(r"Parser key \"config\": (File does not exist|Path is not a file): '(.*)'")
_UNKNOWN = re.compile(r"Option '(\S+)' is not accepted")

_load_yaml = get_loader("yaml")


def load_yaml(text: str) -> Any:
    """Return what YAML says, in time that grows with its length.

    Raises:
        yaml.YAMLError: the text is no YAML, has aliases, or is nested too deep.
    """
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
                raise yaml.YAMLError("write settings out: no aliases, no long chains of lists")
        return _load_yaml(text)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise yaml.YAMLError(f"a value that cannot be read: {error}") from None


set_loader("yaml", load_yaml, (yaml.YAMLError,))


def read(words: Sequence[str]) -> tuple[str, RunOptions]:
    """Read a subcommand and its options; a mistake is reported as one line, with exit code 2."""
    subcommand, *rest = words
    parser = command_line(subcommand)
    try:
        config = parser.parse_args(rest)
    except ArgumentError as error:
        fail(_in_plain_words(str(error), parser))
    except UnicodeDecodeError:  # jsonargparse reads a file as text
        fail(NO_CONFIG)
    except (AttributeError, LookupError, TypeError) as error:  # likewise
        fail(f"{NO_FORM}: {error}")
    try:
        options = _checked_places(_options(config), subcommand)
    except (OSError, ValueError) as error:
        fail(str(error))
    if subcommand == "fit" and options.trainer.max_steps <= 0 and options.minutes is None:
        fail(NO_END)
    return subcommand, options


def command_line(subcommand: str) -> ArgumentParser:
    """Return a parser for the options of a subcommand; it raises ArgumentError."""
    parser = ArgumentParser(
        prog=f"train.py {subcommand}",
        description="Train a model, or judge it on held-out pieces.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    parser.add_argument("-c", "--config", action="config", help="a .yaml file of such settings")
    groups = _groups()
    kinds: dict[str, type[Options]] = {"": RunOptions, **groups}
    for group, kind in kinds.items():
        prefix = f"--{group}." if group else "--"
        defaults, comments = vars(kind()), comments_of(kind)
        section = parser.add_argument_group((kind.__doc__ or "").splitlines()[0].rstrip("."))
        for name, hint in hints_of(kind).items():
            if group or name not in groups:
                section.add_argument(
                    f"{prefix}{name}", type=hint, default=defaults[name], help=comments.get(name)
                )
    return parser


def _groups() -> dict[str, type[Options]]:
    """Return the groups of options, by name."""
    hints = hints_of(RunOptions).items()
    return {
        name: hint for name, hint in hints if isinstance(hint, type) and issubclass(hint, Options)
    }


def _options(config: Namespace) -> RunOptions:
    """Return the options that were read.

    Raises:
        ValueError: a value is out of range, or there is something else in place of a group.
    """
    said = vars(config)
    for name, kind in _groups().items():
        if not isinstance(said[name], Namespace):
            raise ValueError(f"{NO_FORM}: {name} is not a group of settings")
        try:
            said[name] = kind(**vars(said[name]))
        except ValueError as error:
            is_named = str(error).partition(" ")[0] in hints_of(kind)
            raise ValueError(f"--{name}{'.' if is_named else ': '}{error}") from None
    try:
        return RunOptions.from_settings(said)
    except ValueError as error:
        raise ValueError(f"--{error}") from None


def _checked_places(options: RunOptions, subcommand: str) -> RunOptions:
    """Return options whose files and folders can be read and written; ~ becomes the home folder.

    Raises:
        OSError: the run cannot be written there, or the data do not exist.
    """
    data, run = options.data, file_name(options.run)
    if subcommand == "fit":
        check_writable(Path(run) / "config.yaml")
    path, written = file_name(data.path), data.written and file_name(data.written)
    if data.is_ids and not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    for folder in ([] if data.is_ids or path in EMBEDDED else [path]) + (
        [written] if written else []
    ):
        check_folder(folder)
    return replace(options, run=run, data=replace(data, path=path, written=written))


def _in_plain_words(message: str, parser: ArgumentParser) -> str:
    """Return what jsonargparse says about a mistake, and which option may have been meant."""
    if missing := _MISSING.match(message):
        return f"{missing[2]}: {'no such file' if missing[1].startswith('File') else 'not a file'}"
    if wrong := _WRONG.match(message):
        group, _, name = wrong[1].rpartition(".")
        hint = hints_of(_groups()[group] if group else RunOptions)[name]
        return f"--{wrong[1]} must be {described(hint)}, not {wrong[2]}"
    if unknown := _UNKNOWN.match(message):
        message = f"unrecognized arguments: --{unknown[1]}"
    options = [*parser._option_string_actions, *SUBCOMMANDS]
    message = f"{explained(message, options, ADVICE)} (--help lists the options)"
    return message.replace("arguments: --", "setting: ") if unknown else message


def fail(message: str, code: int = 2) -> NoReturn:
    """Print why a run ends, or cannot begin, as one line, and exit."""
    print_error(message, "train.py")
    sys.exit(code)
