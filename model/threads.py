"""How many of torch's threads work: as many as help. Other work on the machine decides that."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

COLUMNS_A_THREAD = 16  # of a weight, at least: narrower products differ by the number of threads
TRIAL_STEPS = 5  # with each number of threads
TRIAL_EVERY = 60.0  # seconds
HAS_TILES = bool(torch.cpu.get_capabilities().get("amx_bf16"))  # of numbers, multiplied at once


@contextmanager
def steady_products() -> Iterator[None]:
    """Make bfloat16 products inside that do not depend on the number of threads.

    By tiles (AMX) long sums are shared among threads, and products are so fast that one will do.
    """
    threads = torch.get_num_threads()
    if HAS_TILES:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class ThreadChooser:
    """Times steps, and works with the number of threads with which they are quickest.

    It tries half and twice the number it has, at most as many as torch had at first: at the
    beginning until none of them is quicker, and again every minute, since other work comes and
    goes. What a step computes must not depend on the number of threads.

    Args:
        width: of the narrowest products in a step.
    """

    def __init__(self, width: int) -> None:
        self.before = torch.get_num_threads()
        self.most = self.threads = max(1, min(self.before, width // COLUMNS_A_THREAD))
        self.trial: list[int] = []  # the threads of the steps to come
        self.seconds: dict[int, list[float]] = {}  # of the steps of a trial, by threads
        self.next_trial = self.began = 0.0

    def begin_step(self) -> None:
        """Give a step as many threads as are its turn."""
        if not self.trial and time.monotonic() >= self.next_trial:
            tried = {max(1, self.threads // 2), self.threads, min(2 * self.threads, self.most)}
            self.trial = sorted(tried) * TRIAL_STEPS
        torch.set_num_threads(self.trial[0] if self.trial else self.threads)
        self.began = time.perf_counter()

    def end_step(self) -> None:
        """Count the time of a step; choose when a trial is over."""
        if not self.trial:
            return
        seconds = time.perf_counter() - self.began
        self.seconds.setdefault(self.trial.pop(0), []).append(seconds)
        if not self.trial:
            best = min(self.seconds, key=lambda threads: median(self.seconds[threads]))
            self.next_trial = time.monotonic() + (TRIAL_EVERY if best == self.threads else 0)
            self.threads, self.seconds = best, {}

    def stop(self) -> None:
        """Give torch back the threads that it had at first."""
        torch.set_num_threads(self.before)
