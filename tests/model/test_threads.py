"""As many threads as help, and the same results with any number."""

import pytest
import torch
from torch import nn

from benchmarks.training import PRECISIONS, Shape, Step
from data.tokens.features import SideFeatures
from model import threads
from model.config import DecoderConfig
from model.cpu import speed_up
from model.decoder import Decoder
from model.threads import TRIAL_EVERY, ThreadChooser
from tests.runs import python
from training.optimizer import MuonAdamW


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
        chooser.begin_step()
        used.append(torch.get_num_threads())
        clock[0] += seconds[used[-1]]
        chooser.end_step()
    return used


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize(
    ("seconds", "best"),
    [({1: 0.1, 2: 0.2, 4: 0.9}, 1), ({1: 0.3, 2: 0.2, 4: 0.25}, 2), ({1: 0.4, 2: 0.2, 4: 0.1}, 4)],
)
def test_the_quickest_number_of_threads_is_found_and_kept(clock, seconds, best):
    chooser = ThreadChooser(128)
    work(chooser, clock, seconds, 40)
    assert set(work(chooser, clock, seconds, 50)) == {best}
    chooser.stop()
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_when_other_work_comes_or_goes_it_chooses_anew(clock):
    chooser, quiet, beside = ThreadChooser(128), {1: 0.4, 2: 0.2, 4: 0.1}, {1: 0.4, 2: 2.0, 4: 9.0}
    work(chooser, clock, quiet, 40)
    clock[0] += TRIAL_EVERY
    work(chooser, clock, beside, 60)
    assert set(work(chooser, clock, beside, 20)) == {1}
    clock[0] += TRIAL_EVERY
    work(chooser, clock, quiet, 60)
    assert set(work(chooser, clock, quiet, 20)) == {4}


# None has a size that products or sums could take in whole blocks.
ODD = Shape(width=100, batch=5, layers=1, context=227, heads=1, pitches=33)


def gradients(threads, precision, norm):
    """Return the gradient of every weight of a decoder whose weights are all random."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    sizes = {"n_layer": ODD.layers, "n_head": ODD.heads, "n_embd": ODD.width}
    sizes |= {"context_length": ODD.context, **SideFeatures(ODD.words).shape}
    config = DecoderConfig(ODD.words.size, **sizes, dropout=0.1, norm=norm, bias=True)
    decoder = Decoder(config).train()
    for weight in decoder.parameters():
        nn.init.normal_(weight, std=0.1)  # where weights are zero, so are gradients of others
    speed_up(decoder)
    optimizer = MuonAdamW(decoder, 1e-4, 1e-3, 0.1, PRECISIONS[precision])
    step = Step(decoder, optimizer, precision, ODD)
    step.forward().backward()
    found = [weight.grad.clone() for weight in decoder.parameters()]
    optimizer.step()
    return found + [weight.detach() for weight in decoder.parameters()]


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_steps_of_training_do_not_depend_on_the_number_of_threads(precision, norm):
    one, *others = (gradients(threads, precision, norm) for threads in (1, 2, 3, 4, 6))
    for other in others:
        assert all(map(torch.equal, one, other))


def test_narrow_products_get_few_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(16)
    try:
        assert [ThreadChooser(width).most for width in (8, 32, 100, 128, 512)] == [1, 2, 6, 8, 16]
    finally:
        torch.set_num_threads(before)


# Ends where torch would be imported.
WATCH = """
import os, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name == "torch":
            print(os.environ["OMP_WAIT_POLICY"], os.environ["MKL_CBWR"], flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
"""


COMMANDS = ("train, training.command", "benchmarks.training")


@pytest.mark.parametrize("modules", COMMANDS)
@pytest.mark.parametrize("own", [{}, {"OMP_WAIT_POLICY": "ACTIVE", "MKL_CBWR": "COMPATIBLE"}])
def test_threads_wait_and_multiply_alike_unless_the_user_says_otherwise(modules, own):
    ours = {"OMP_WAIT_POLICY": "PASSIVE", "MKL_CBWR": "AUTO,STRICT"}
    told, *_ = python(f"{WATCH}import {modules}", **dict.fromkeys(ours) | own)
    assert told.split() == [*(ours | own).values()]
