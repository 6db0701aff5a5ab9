"""Attacks other than broken MIDI files: on models, checkpoints, corpora, commands, and the page.

Each attack is a function of a number, a seed, and a folder that `prepare` has filled. It returns
HELD, or the reason of a refusal, or BROKEN followed by the promise that was broken.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import evaluate
import generate
import train
from benchmarks.mutations import damaged, mutant, originals, with_a_lie
from benchmarks.page_attacks import BROKEN, HELD, attack_message, attack_request, prepare_page
from common.text import printable
from data.corpus.corpus import Corpus, CorpusError, open_corpus
from generation.compose import compose
from generation.length import Length
from generation.model import load
from generation.request import Request
from model.serialization import ModelFileError, load_model_file, save_model_file
from tests.folders import write_tunes
from tests.models import QUARTET, untrained, untrained_on
from training.checkpoints import read_step
from training.checks import RunError

ROOT = Path(__file__).parents[1]
SPLITS = ("train", "valid", "test")
# File names that Linux allows, but that a terminal or a page could take for commands.
ODD_NAMES = (
    *(b"\x1b[31mred", b"new\nline", b"\xe2\x80\xaertl", b"caf\xe9", b"<b onclick=x>&amp;", b" "),
    *(
        b"-rf",
        b"--out",
        b"~",
        b"$(id)",
        b"a'b\"c",
        b"\x07bell",
        b"\xc2\x9b31m",
        b"\xf0\x9f\x8e\xb5",
    ),
)

Attack = Callable[..., str]  # called with number, seed, folder


def prepare(folder: Path) -> None:
    """Fill a folder with targets: tunes, their corpus, models, a checkpoint, models for a page."""
    torch.set_num_threads(1)
    prepare_page(folder / "page")
    tunes = write_tunes(folder / "tunes", 8)
    open_corpus(tunes, folder / "datasets")
    quartet = untrained(folder / "quartet.safetensors", QUARTET)
    style = load_model_file(ROOT / "models" / "bach.safetensors").style_json  # a rich one
    save_model_file(quartet, replace(load_model_file(quartet), style_json=style))
    with contextlib.chdir(folder):
        untrained_on("tunes", folder / "tunes.safetensors")
        config = ["--config", str(ROOT / "configs" / "smoke.yaml"), "--data.path", "tunes"]
        quiet = ["--trainer.enable_progress_bar", "false", "--trainer.max_steps", "2"]
        with contextlib.redirect_stdout(io.StringIO()):
            train.main(["fit", *config, *quiet, "--run", "run"])


def attack_model(number: int, seed: int, folder: Path) -> str:
    """Load a model file with flipped bits, a cut, or a false header, and let it write a bar."""
    rng = np.random.default_rng((seed, number))
    content = (folder / "quartet.safetensors").read_bytes()
    if rng.random() < 0.3:
        content = damaged(content, rng)
    else:
        end = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:end])
        if rng.random() < 0.2:
            header = with_a_lie(header, rng)
        else:
            part = ("config", "vocabulary", "style", "training")[int(rng.integers(4))]
            said = with_a_lie(json.loads(header["__metadata__"][part]), rng)
            header["__metadata__"][part] = json.dumps(said)
        text = json.dumps(header).encode()
        content = len(text).to_bytes(8, "little") + text + content[end:]
    path = folder / f"{os.getpid()}.safetensors"
    path.write_bytes(content)
    try:
        compose(load(path), Request(length=Length(bars=1)))
    except ModelFileError as error:
        return refusal(error, path)
    return HELD


def attack_checkpoint(number: int, seed: int, folder: Path) -> str:
    """Read a checkpoint with flipped bits, a cut, or a false entry."""
    rng = np.random.default_rng((seed, number))
    whole = folder / "run" / "checkpoints" / "last.ckpt"
    path = folder / f"{os.getpid()}.ckpt"
    if rng.random() < 0.5:
        path.write_bytes(damaged(whole.read_bytes(), rng))
    else:
        torch.save(with_a_lie(torch.load(whole, weights_only=True), rng), path)
    with contextlib.chdir(folder):
        config = ["--config", str(ROOT / "configs" / "smoke.yaml"), "--data.path", "tunes"]
        quiet = ["--trainer.enable_progress_bar", "false", "--trainer.max_steps", "3"]
        words = ["fit", *config, *quiet, "--run", f"run-{os.getpid()}", "--ckpt_path", str(path)]
        try:
            read_step(path)  # refuses most, without the seconds that a run needs to start
        except RunError as error:
            return refusal(error, path)
        fate = outcome(lambda: train.main(words))
        shutil.rmtree(f"run-{os.getpid()}", ignore_errors=True)
    return fate


def attack_corpus(number: int, seed: int, folder: Path) -> str:
    """Read a corpus in which one file is damaged or holds a false value."""
    rng = np.random.default_rng((seed, number))
    whole = min((folder / "datasets").glob("tunes-*"))
    broken = folder / f"corpus-{os.getpid()}"
    shutil.rmtree(broken, ignore_errors=True)
    shutil.copytree(whole, broken)
    files = sorted(path for path in broken.rglob("*") if path.is_file())
    path = files[int(rng.integers(len(files)))]
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_text(json.dumps(with_a_lie(json.loads(path.read_text()), rng)))
    elif path.suffix == ".npy" and rng.random() < 0.7:
        array = np.load(path)
        changed = (array[1:], rng.permutation(array), array[::-1], array.astype("<f4"), array * 0)
        np.save(path, changed[int(rng.integers(len(changed)))])
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))
    try:
        corpus = Corpus.open(broken)
        corpus.full_report(), corpus.summary()
        for name in SPLITS:
            split = corpus.split(name)
            for piece in range(len(split)):
                split.piece(piece)
    except (CorpusError, FileNotFoundError) as error:
        return refusal(error, broken)
    return HELD


def attack_command(number: int, seed: int, folder: Path) -> str:
    """Give a mutant with an odd file name to a command that reads one file in its own process."""
    rng = np.random.default_rng((seed, number))
    name = os.fsdecode(ODD_NAMES[number % len(ODD_NAMES)])
    path = str(folder / f"{os.getpid()}-{name}.mid")
    whole = originals()[int(rng.integers(len(originals())))]
    Path(path).write_bytes(mutant(number, seed) if rng.random() < 0.7 else whole)
    out = folder / f"out-{os.getpid()}"
    shutil.rmtree(out, ignore_errors=True)
    quartet, tunes = (str(folder / f"{name}.safetensors") for name in ("quartet", "tunes"))
    write = ["--checkpoint", quartet, "--out", str(out / "piece")]
    commands: tuple[tuple[Callable[[list[str]], None], list[str]], ...] = (
        (generate.main, ["--seed-midi", path, "--bars", "1", *write]),
        (generate.main, ["--harmonize", path, *write]),
        (generate.main, ["--rewrite", path, "--bars-to-rewrite", "1", *write]),
        (evaluate.main, ["likelihood", path, "-c", tunes]),
        (evaluate.main, ["likelihood", "--piece", path, "-c", tunes, "--out", str(out / "x.png")]),
        (evaluate.main, ["originality", path, "-c", tunes]),
        (evaluate.main, ["attention", "--midi", path, "-c", tunes, "--out", str(out / "x.png")]),
    )
    command, words = commands[int(rng.integers(len(commands)))]
    with contextlib.chdir(folder):
        fate = outcome(lambda: command(words))
    if fate not in (HELD,) and not fate.startswith(BROKEN) and out.exists():
        return f"{BROKEN}{words[0]} was refused, and has written something"
    return fate


def outcome(command: Callable[[], object]) -> str:
    """Run a command in this process; return HELD, the text of its refusal, or BROKEN."""
    said, errors = io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            command()
    except SystemExit as stop:
        code = stop.code
    for text in (said.getvalue(), errors.getvalue()):
        for line in text.replace("\r", "\n").split("\n"):
            if line != printable(line):
                return f"{BROKEN}{line!r} reaches the terminal"
    if code in (0, None):
        return HELD
    lines = errors.getvalue().strip().splitlines()
    if code != 2 or not lines or ": " not in lines[-1]:
        return f"{BROKEN}exit code {code}, {errors.getvalue()[-200:]!r}"
    return lines[-1].split(": ")[-1]


def refusal(error: Exception, path: Path) -> str:
    """Return the message of an error, or BROKEN if that is not one line of words."""
    reason = str(error)
    is_line = reason == printable(reason) and 10 < len(reason) < 2000
    return reason.replace(str(path), "it") if is_line else f"{BROKEN}the error says {reason!r}"


# The attacks by name, each with the number of MIDI mutants that take as long as one attack.
ATTACKS: dict[str, tuple[Attack, int]] = {
    "models": (attack_model, 20),
    "checkpoints": (attack_checkpoint, 100),
    "corpora": (attack_corpus, 20),
    "commands": (attack_command, 100),
    "messages": (attack_message, 1),
    "requests": (attack_request, 1),
}
