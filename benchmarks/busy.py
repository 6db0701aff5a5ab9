"""How fast training is beside other work, by how torch's threads wait and how many there are.

    python -m benchmarks.busy
    python -m benchmarks.busy --beside 0 1 3 --seconds 10

Beside so many processes that do nothing but count: steps of training a second, of the shape of
configs/bach.yaml. Each figure comes from a process of its own, since torch reads how to wait when
it is imported. "chosen" is what Etude does: as many threads as were quickest, and they wait
passively. Sampling needs no torch, and has one thread.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from common.cli import Parser, positive_integer

COUNTING = "while True: pass"
SETTINGS = [("ACTIVE", "all"), ("PASSIVE", "all"), ("PASSIVE", "1"), ("PASSIVE", "chosen")]


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    started = [subprocess.Popen([sys.executable, "-c", COUNTING]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def steps_per_second(threads: str, seconds: float) -> float:
    """Return how many steps of training are made in a second."""
    import torch

    from benchmarks.training import Shape, ours
    from model.threads import ThreadChooser

    step, chooser = ours(Shape(width=128, batch=4, heads=2), 0.1, "fp32"), ThreadChooser(128)
    if threads != "chosen":
        chooser.most = chooser.threads = chooser.most if threads == "all" else 1
        chooser.next_trial = float("inf")
    torch.set_num_threads(chooser.threads)
    for _ in range(3):
        step()
    while threads == "chosen" and chooser.next_trial < time.monotonic():
        with chooser.step():
            step()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        with chooser.step():
            step()
        steps += 1
    return steps / (time.perf_counter() - began)


def measured(policy: str, threads: str, seconds: float) -> float:
    """Return a figure, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.busy", "--one", "--threads", threads]
    environment = os.environ | {"OMP_WAIT_POLICY": policy}
    done = subprocess.run(
        [*command, "--seconds", str(seconds)], env=environment, stdout=subprocess.PIPE, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", nargs="+", type=int, default=[0, 1, 3], help="busy processes")
    parser.add_argument("--seconds", type=positive_integer, default=10, help="for each figure")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(steps_per_second(options.threads, options.seconds))
        return
    print("busy processes  waiting  threads  steps/s")
    for processes in options.beside:
        for policy, threads in SETTINGS:
            with busy(processes):
                steps = measured(policy, threads, options.seconds)
            print(f"{processes:14}  {policy.lower():7}  {threads:7}  {steps:7.2f}", flush=True)


if __name__ == "__main__":
    main()
