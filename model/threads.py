"""Chooses how many threads torch works with: as many as help, beside the machine's other work."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import torch

COLUMNS_A_THREAD = 16  # columns of a weight; with fewer, products depend on threads
TRIAL_STEPS = 5  # steps in a trial, with each number of threads
TRIAL_EVERY = 60.0  # seconds
HAS_TILES = bool(torch.cpu.get_capabilities().get("amx_bf16"))  # multiplies whole tiles at once


@contextmanager
def steady_products() -> Iterator[None]:
    """Make the bfloat16 products inside it independent of the number of threads.

    A CPU with tiles (AMX) would divide long sums among threads. It multiplies so fast that one
    thread is enough.
    """
    threads = torch.get_num_threads()
    if HAS_TILES:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class ThreadChooser:
    """Times training steps, and works with the number of threads that makes them fastest.

    It tries half and twice the present number, and at most as many as torch had at first. It does
    so at the beginning, until neither is faster, and then every minute, since other work comes and
    goes. What a step computes must not depend on the number of threads.

    Args:
        width: of the narrowest products in a step.
    """

    def __init__(self, width: int) -> None:
        self.before = torch.get_num_threads()
        self.most = self.threads = max(1, min(self.before, width // COLUMNS_A_THREAD))
        self.trial: list[int] = []  # how many threads each of the next steps will have
        self.seconds: dict[int, list[float]] = {}  # how long the steps of a trial took, by threads
        self.next_trial = self.began = 0.0

    def begin_step(self) -> None:
        """Give the next step its number of threads."""
        if not self.trial and time.monotonic() >= self.next_trial:
            tried = {max(1, self.threads // 2), self.threads, min(2 * self.threads, self.most)}
            self.trial = sorted(tried) * TRIAL_STEPS
        torch.set_num_threads(self.trial[0] if self.trial else self.threads)
        self.began = time.perf_counter()

    def end_step(self) -> None:
        """Record the time of a step, and choose when a trial is over."""
        if not self.trial:
            return
        seconds = time.perf_counter() - self.began
        self.seconds.setdefault(self.trial.pop(0), []).append(seconds)
        if not self.trial:
            best = min(self.seconds, key=lambda threads: median(self.seconds[threads]))
            self.next_trial = time.monotonic() + (TRIAL_EVERY if best == self.threads else 0)
            self.threads, self.seconds = best, {}

    def stop(self) -> None:
        """Give torch back the number of threads that it had at first."""
        torch.set_num_threads(self.before)
