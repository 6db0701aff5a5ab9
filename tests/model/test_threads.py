"""As many threads as help, and the same results with any number."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.training import Shape, ours
from model import threads
from model.threads import TRIAL_EVERY, ThreadChooser, one_thread

ROOT = Path(__file__).parents[2]


@pytest.fixture
def four_threads():
    """As many threads as a machine with four cores has."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; seconds are added to it."""
    now = [1000.0]
    monkeypatch.setattr(threads.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(threads.time, "monotonic", lambda: now[0])
    return now


def work(chooser, clock, seconds, steps):
    """Makes steps that take so many seconds, by threads; gives the threads of each."""
    used = []
    for _ in range(steps):
        with chooser.step():
            used.append(torch.get_num_threads())
            clock[0] += seconds[used[-1]]
    return used


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 0.1, 2: 0.2, 4: 0.9}, 1),
        ({1: 0.3, 2: 0.2, 4: 0.25}, 2),
        ({1: 0.4, 2: 0.2, 4: 0.1}, 4),
    ],
)
def test_the_quickest_number_of_threads_is_found_and_kept(clock, seconds, best):
    chooser = ThreadChooser()
    work(chooser, clock, seconds, 40)
    assert set(work(chooser, clock, seconds, 50)) == {best}
    chooser.stop()
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_when_other_work_comes_or_goes_it_chooses_anew(clock):
    chooser, quiet, beside = ThreadChooser(), {1: 0.4, 2: 0.2, 4: 0.1}, {1: 0.4, 2: 2.0, 4: 9.0}
    work(chooser, clock, quiet, 40)
    clock[0] += TRIAL_EVERY
    work(chooser, clock, beside, 60)
    assert set(work(chooser, clock, beside, 20)) == {1}
    clock[0] += TRIAL_EVERY
    work(chooser, clock, quiet, 60)
    assert set(work(chooser, clock, quiet, 20)) == {4}


@pytest.mark.usefixtures("four_threads")
def test_sampling_works_with_one_thread_and_gives_the_others_back():
    with one_thread():
        assert torch.get_num_threads() == 1
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_steps_of_training_do_not_depend_on_the_number_of_threads(precision):
    weights = []
    for number in (1, 2, 4):
        torch.set_num_threads(number)
        step = ours(Shape(width=32, batch=2, heads=1), 0.1, precision)
        step()
        weights.append(torch.cat([weight.ravel() for weight in step.model.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


# Ends where torch would be imported.
WATCH = """
import os, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
"""


@pytest.mark.parametrize(
    "modules", ["generate", "evaluate, evaluation.command", "train, training.command"]
)
@pytest.mark.parametrize("own", [None, "ACTIVE"])
def test_threads_wait_passively_unless_the_user_says_otherwise(modules, own):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": own} if own else {}
    command = [sys.executable, "-c", f"{WATCH}import {modules}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == [own or "PASSIVE"]
