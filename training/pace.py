"""Finds how many steps a run can make in its minutes, by timing some before it begins."""

import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]

from common.cli import say
from common.text import counted
from data.batches.datamodule import MusicDataModule
from model.threads import ThreadChooser
from training.checks import RunError
from training.loss import cross_entropy
from training.module import decoder_for, optimizer_for
from training.options import RunOptions

TIMED_SECONDS = 8.0  # seconds of steps; the median of the later half counts
STEPS_SHARE = 0.75  # of the time; validation, music and the end of the run take the rest
LEAST_STEPS = 20
MOST_PASSES = 8  # through the training pieces, if a run begins with a model: it learns fast
VALIDATION_MINUTES, MOST_VALIDATIONS = 2, 5  # the least from one to the next; the most in a run
STEPS_APART = 100  # the least from one validation to the next, if only the steps are known


def with_steps(options: RunOptions, data: MusicDataModule) -> RunOptions:
    """Return the options with the number of steps that fit into the run's minutes, if these decide.

    A run that goes on makes the steps that its config.yaml has. A run is validated a few times,
    unless the options say how often.

    Raises:
        RunError: the config.yaml cannot be read.
    """
    trainer = options.trainer
    if trainer.max_steps > 0:
        if options.minutes is not None:
            length = counted(trainer.max_steps, "step")
            say(f"the run is {length} long (trainer.max_steps); minutes is ignored")
        apart = max(STEPS_APART, -(-trainer.max_steps // MOST_VALIDATIONS))
        every = trainer.val_check_interval or apart
        return replace(options, trainer=replace(trainer, val_check_interval=every))
    if options.minutes is None:
        return options
    if options.ckpt_path is not None:
        steps, interval = _steps_before(options)
        return replace(
            options, trainer=replace(trainer, max_steps=steps, val_check_interval=interval)
        )
    seconds = _seconds_a_step(options, data)
    steps = max(LEAST_STEPS, 10 * round(STEPS_SHARE * 60 * options.minutes / seconds / 10))
    minutes = options.minutes
    if options.model.begin_with and steps > (most := _enough_steps(options, data)):
        minutes, steps = round(minutes * most / steps, 1), most
    lasts = f"{minutes:g} minute{'s' * (minutes != 1)}"
    say(f"{steps:,} steps of {seconds:.2f} seconds: {lasts} in all, roughly")
    validations = min(MOST_VALIDATIONS, max(1, int(options.minutes / VALIDATION_MINUTES)))
    interval = trainer.val_check_interval or -(-steps // validations)
    return replace(options, trainer=replace(trainer, max_steps=steps, val_check_interval=interval))


def _enough_steps(options: RunOptions, data: MusicDataModule) -> int:
    """Return after how many steps a run that begins with a model would learn pieces by heart."""
    tokens = len(data.corpus.split("train").tokens)
    of_a_step = options.data.batch_size * options.model.context_length
    return max(LEAST_STEPS, MOST_PASSES * tokens // of_a_step)


def _steps_before(options: RunOptions) -> tuple[int, int | None]:
    """Return how many steps a run that goes on has, and how many lie between validations, if set.

    A run whose steps were given by number may have no such interval.
    """
    path = Path(options.run) / "config.yaml"
    trainer = (kept_settings(path) or {"trainer": {}})["trainer"]
    steps, interval = trainer.get("max_steps"), trainer.get("val_check_interval")
    numbers = [steps] if interval is None else [steps, interval]
    if any(type(number) is not int or number < 1 for number in numbers):
        raise RunError(f"{path} does not say how long the run is: give --trainer.max_steps")
    say(f"the run is {counted(steps, 'step')} long, as {path} says")
    return steps, interval


def kept_settings(path: Path) -> dict[str, Any] | None:
    """Return the settings in a run's config.yaml; None: there are none for a trainer."""
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    has_trainer = isinstance(settings, dict) and isinstance(settings.get("trainer"), dict)
    return settings if has_trainer else None


def _seconds_a_step(options: RunOptions, data: MusicDataModule) -> float:
    """Time the steps of a decoder like the one to be trained; the run's random numbers stay."""
    data.prepare_data()
    has_gpu = options.trainer.accelerator != "cpu" and torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    precision = str(options.trainer.precision)
    dtype = torch.bfloat16 if precision.startswith("bf16") else torch.float16
    with torch.random.fork_rng():
        decoder = decoder_for(options.model, data).train().to(device)
        optimizer = optimizer_for(decoder, options.model, precision)
        batches = iter(data.train_dataloader())
        chooser = ThreadChooser(options.model.n_embd)

        def step() -> None:
            batch = next(batches)
            ids, targets, side = batch["ids"], batch["targets"], batch["side"]
            side = side and side.map(lambda array: array.to(device))
            with torch.autocast(device.type, dtype, enabled="16" in precision):
                logits = decoder(ids.to(device), side=side)
                loss = cross_entropy(logits, targets.to(device)) / targets.numel()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()  # waits until a GPU has computed it

        step()  # the first step on a machine compiles, and does not count
        times, began = list[float](), time.monotonic()
        while time.monotonic() - began < TIMED_SECONDS or not times:
            start = time.perf_counter()
            chooser.begin_step()
            step()
            chooser.end_step()
            times.append(time.perf_counter() - start)
        chooser.stop()
    return median(times[len(times) // 2 :])
