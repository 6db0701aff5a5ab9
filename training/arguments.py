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
from argparse import ArgumentError, ArgumentTypeError
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, NoReturn

import yaml  # type: ignore[import-untyped]
from jsonargparse import ArgumentParser, Namespace, get_loader, set_loader

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
# What the trainer would take as an object, of a class that a configuration names; here a word.
OF_CLASSES: dict[str, tuple[Any, Any]] = {
    "accelerator": (str, "auto"),
    "strategy": (str, "auto"),
    "logger": (bool | None, None),
    "profiler": (str | None, None),
}
CLASS_KEYS = {"class_path", "init_args", "dict_kwargs"}
DEEPEST = 20  # levels of a configuration
NOT_ZERO = ("val_check_interval", "check_val_every_n_epoch", "accumulate_grad_batches")
LARGEST = 2**31 - 1
MOST_DEVICES = 8  # or as many as the machine has processors
# jsonargparse's words of settings in a file that are none; real ones have no group.
UNKNOWN = re.compile(r"(?:Group '(\S+)'|Subcommand '\w+')?(?: does not accept o|O)ption '(\S+)'")
# Help, --print_config and addresses.
LEFT_TO_LIGHTNING = re.compile(r"-h$|--help|--print_config|.*://", re.DOTALL)

_load_yaml = get_loader("yaml")


def load_yaml(text: str) -> Any:
    """Return what YAML says, in time that grows with its length, without the class of anything.

    Raises:
        yaml.YAMLError: it is none, or has aliases, names a class, or goes too deep.
    """
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
                raise yaml.YAMLError("write settings out: no aliases, no long chains of lists")
            if isinstance(event, yaml.ScalarEvent) and {*event.value.split(".")} & CLASS_KEYS:
                raise yaml.YAMLError("no class is taken from a configuration")
        return _load_yaml(text)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise yaml.YAMLError(f"a value that cannot be read: {error}") from None


set_loader("yaml", load_yaml, (yaml.YAMLError,))


def add_trainer(parser: ArgumentParser, trainer: type) -> list[str]:
    """Add the options of a trainer but those that take objects, and return their names."""
    skipped: set[str | int] = {"callbacks", "plugins", *OF_CLASSES}
    added = parser.add_class_arguments(
        *(trainer, "trainer"), fail_untyped=False, instantiate=False, sub_configs=True, skip=skipped
    )
    for name, (kind, default) in OF_CLASSES.items():
        parser.add_argument(f"--trainer.{name}", type=kind, default=default)
    return [*added, *(f"trainer.{name}" for name in OF_CLASSES)]


def check(words: Sequence[str]) -> None:
    """Refuse a mistake in a subcommand and its options by one line and exit code 2."""
    if any(map(_is_left_to_lightning, words)):
        return
    subcommand, *options = words
    parser = _parser(subcommand)
    try:
        config = parser.parse_args(options)
        check_settings(config)
    except ArgumentError as error:
        if "://" not in str(error):
            _fail(in_plain_words(str(error), parser))
    except UnicodeDecodeError:  # jsonargparse reads a file as text, and as YAML
        _fail(NO_CONFIG)
    except (ArgumentTypeError, OSError) as error:
        _fail(str(error))
    except (AttributeError, LookupError, TypeError) as error:  # as of a list in a group's place
        _fail(f"a configuration has another form than that of configs/: {error}")
    else:
        trainer = config.trainer
        if subcommand == "fit" and trainer.max_steps < 1 and not trainer.fast_dev_run:
            _fail(NO_END)


def check_settings(config: Namespace) -> None:
    """Check numbers, the folder of a run, and those of its data; ~ becomes the home folder.

    Raises:
        ArgumentTypeError: a number with which nothing can run.
        OSError: the run cannot be written there, or there is no such data.
    """
    seed, trainer, devices = config.seed_everything, config.trainer, str(config.trainer.devices)
    if not 0 <= seed < 2**32:
        raise ArgumentTypeError(f"--seed_everything {seed}: must be from 0 to 2^32 - 1")
    for name in NOT_ZERO:
        value = trainer[name]
        if isinstance(value, int | float) and not 0 < value <= LARGEST:
            raise ArgumentTypeError(f"--trainer.{name} {value}: must be above 0, at most {LARGEST}")
    most = max(MOST_DEVICES, os.cpu_count() or 0)
    if devices.isdecimal() and (len(devices) > 9 or not 0 < int(devices) <= most):
        raise ArgumentTypeError(f"--trainer.devices {devices}: must be from 1 to {most} here")
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
    trainer = stand_ins["trainer"]
    add_trainer(parser, stand_ins.pop("trainer"))
    for group, stand_in in stand_ins.items():
        parser.add_class_arguments(stand_in, group, fail_untyped=False, sub_configs=True)
    parser.add_argument("--run", type=str, default="runs/music")
    parser.link_arguments("model.context_length", "data.context_length")
    method = getattr(trainer, subcommand)
    skipped: set[str | int] = {name for name in signature(method).parameters if name in OF_THE_CLI}
    parser.add_method_arguments(trainer, subcommand, skip=skipped)
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
