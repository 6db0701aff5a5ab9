"""The options of train.py, checked within half a second: before torch and Lightning are imported.

A parser like LightningCLI's reads them. In the place of the classes it has stand-ins, whose
constructors are read in the source files. A type that would have to be imported is `Any`. So what
is refused here, LightningCLI would refuse, and what is not known here is left to it.
"""

import ast
import builtins
import os
import re
import sys
import typing
from argparse import ArgumentError
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, Namespace

import model.config
from common.cli import explained, file_name, print_error
from common.files import check_writable
from data.corpus.find_files import EMBEDDED, check_folder

SUBCOMMANDS = ("fit", "validate", "test")
ADVICE = "a configuration is named by --config; fit, validate and test are the subcommands"
NO_CONFIG = "a file that is no configuration: --config takes a .yaml, --ckpt_path a checkpoint"
NO_END = "the run has no end: give --config FILE.yaml, or --trainer.max_steps"
CLASSES = {  # group of options: module and class
    "trainer": ("lightning.pytorch.trainer.trainer", "Trainer"),
    "model": ("training.module", "MusicModule"),
    "data": ("data.batches.datamodule", "MusicDataModule"),
    "monitor": ("training.tensorboard", "MusicMonitor"),
    "checkpoint": ("training.checkpoints", "Checkpoints"),
}
OF_THE_CLI = {"model", "datamodule", "dataloaders", "train_dataloaders", "val_dataloaders"}
# jsonargparse's words of settings in a file that are none; real ones have no group.
UNKNOWN = re.compile(r"(?:Group '(\S+)'|Subcommand '\w+')?(?: does not accept o|O)ption '(\S+)'")
# Help, --print_config, options of a class that is chosen by name, and addresses.
LEFT_TO_LIGHTNING = re.compile(r"-h$|--help|--print_config|--\w+\.\w+\.|.*://", re.DOTALL)


def check(words: Sequence[str]) -> None:
    """Refuse a mistake in a subcommand and its options by one line and exit code 2."""
    if any(map(_is_left_to_lightning, words)):
        return
    subcommand, *options = words
    parser = _parser(subcommand)
    try:
        config = parser.parse_args(options)
        check_names(config)
    except ArgumentError as error:
        if "://" not in str(error):
            _fail(in_plain_words(str(error), parser))
    except UnicodeDecodeError:  # jsonargparse reads a file as text, and as YAML
        _fail(NO_CONFIG)
    except OSError as error:
        _fail(str(error))
    else:
        trainer = config.trainer
        if subcommand == "fit" and trainer.max_steps < 1 and not trainer.fast_dev_run:
            _fail(NO_END)


def check_names(config: Namespace) -> None:
    """Check the folder of a run, and those of its data; in all ~ becomes the home folder.

    Raises:
        OSError: the run cannot be written there, or there is no such data.
    """
    if not config.run:
        raise OSError("--run needs the name of a folder")
    if config.run != config.run.encode(errors="replace").decode():
        raise OSError(f"--run {config.run}: TensorBoard needs a name in UTF-8")
    config.run, config.data.path = map(file_name, (config.run, config.data.path))
    check_writable(Path(config.run) / "config.yaml")
    path = config.data.path
    if path and path not in EMBEDDED and not Path(path).suffix:  # sequences of ids have one
        check_folder(path)
    if config.data.written is not None:
        config.data.written = file_name(config.data.written)
        check_folder(config.data.written)


def in_plain_words(message: str, parser: ArgumentParser) -> str:
    """Return what jsonargparse says of a mistake, and which option may have been meant."""
    message = re.sub(r"\n\s+Errors:.*(?=\n\s+Given value:)", ";", message, flags=re.DOTALL)
    message = re.sub(r"Does not validate .*\s+Subtypes:", "must be one of", message)
    message = re.sub(r"typing\.Literal|<class '(\w+)'>", lambda found: found[1] or "", message)
    message = re.sub(r'^Parser key "([\w.]+)"', r"--\1", message)
    options = [*parser._option_string_actions, *SUBCOMMANDS]
    if found := UNKNOWN.match(message):
        message = f"unrecognized arguments: --{'.'.join(filter(None, found.groups()))}"
    message = f"{explained(message, options, ADVICE)} (--help lists the options)"
    return message.replace("arguments: --", "setting: ") if found else message


def _is_left_to_lightning(word: str) -> bool:
    """Return whether a word asks for what only LightningCLI knows, or can be read only once."""
    path = word.rpartition("=")[2]
    is_file = os.path.isfile(path) or os.path.isdir(path)  # noqa: PTH112, PTH113  # never raise
    return bool(LEFT_TO_LIGHTNING.match(word)) or (os.path.exists(path) and not is_file)  # noqa: PTH110


@cache
def _parser(subcommand: str) -> ArgumentParser:
    """Return a parser of a subcommand's options; it raises ArgumentError."""
    parser = ArgumentParser(env_prefix="PL", allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-c", "--config", action="config")
    parser.add_argument("--seed_everything", type=bool | int, default=0)
    stand_ins = {group: _stand_in(*name) for group, name in CLASSES.items()}
    for group, stand_in in stand_ins.items():
        parser.add_class_arguments(stand_in, group, fail_untyped=False, sub_configs=True)
    parser.add_argument("--run", type=str, default="runs/music")
    parser.link_arguments("model.context_length", "data.context_length")
    method = getattr(stand_ins["trainer"], subcommand)
    skipped: set[str | int] = {name for name in signature(method).parameters if name in OF_THE_CLI}
    parser.add_method_arguments(stand_ins["trainer"], subcommand, skip=skipped)
    return parser


def _stand_in(module: str, name: str) -> type:
    """Return a class with the constructor and the subcommands of another; they do nothing."""
    package, *rest = module.split(".")
    (folder,) = find_spec(package).submodule_search_locations  # type: ignore[union-attr, misc]
    source = Path(folder, *rest).with_suffix(".py").read_text(encoding="utf-8")
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    (found,) = [node for node in classes if node.name == name]
    methods = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    found.bases, found.body = [], [m for m in methods if m.name in ("__init__", *SUBCOMMANDS)]
    for method in methods:
        method.body, method.decorator_list = [ast.Pass()], []
    unknown = dict.fromkeys((n.id for n in ast.walk(found) if isinstance(n, ast.Name)), Any)
    names = unknown | vars(builtins) | vars(typing) | vars(model.config)
    exec(ast.unparse(found), names)
    return names[name]  # type: ignore[no-any-return]


def _fail(message: str) -> NoReturn:
    """Print why from one process of those on this machine, and exit."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        print_error(message, "train.py")
    sys.exit(2)
