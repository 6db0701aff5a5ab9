"""What every test runs under."""

import pytest

import common  # noqa: F401  # before torch: it settles how threads wait

# isort: split

import torch

from tests.ranks import Ranks

torch.set_num_threads(1)  # tiny tensors: more threads cost more than they bring


@pytest.fixture(scope="session")
def ranks():
    """Runs train.py in two processes."""
    with Ranks() as two:
        yield two
