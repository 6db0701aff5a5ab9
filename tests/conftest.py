"""What every test runs under."""

from collections import Counter

import hypothesis
import pytest

import common  # noqa: F401  # before torch: it settles how threads work

# isort: split

import torch

from data.files.read import read_score
from evaluation import classifier
from generation.model import load
from tests.folders import write_tunes
from tests.models import BAND, QUARTET, untrained
from tests.music import GRID

hypothesis.settings.register_profile("timeless", deadline=None)  # loops compile when first called
hypothesis.settings.load_profile("timeless")
torch.set_num_threads(1)  # tiny tensors: more threads cost more than they bring


@pytest.fixture(scope="session", autouse=True)
def small_judgments():
    """Lets models be judged by fewer trees, which are as sure of what is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "TREES", classifier.TREES // 5)
        yield


@pytest.fixture(scope="session", autouse=True)
def loaded_reader(tmp_path_factory):
    """Loads what was compiled to read files: every worker that is forked would load it again."""
    read_score(write_tunes(tmp_path_factory.mktemp("read"), 1) / "tune0.mid", GRID)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model that knows nothing but the four voices of its vocabulary."""
    return load(untrained(tmp_path_factory.mktemp("quartet") / "model.safetensors", QUARTET))


@pytest.fixture(scope="session")
def band(tmp_path_factory):
    """A model that knows nothing but the parts of its vocabulary."""
    return load(untrained(tmp_path_factory.mktemp("band") / "model.safetensors", BAND))


@pytest.fixture
def tunes(tmp_path, monkeypatch):
    """The folder `tunes`, in which are eight of them, in the folder in which a test works."""
    monkeypatch.chdir(tmp_path)
    return write_tunes(tmp_path / "tunes", 8)


def pytest_collection_modifyitems(items):
    """Files with slow tests come first, so that processes side by side end at the same time.

    The page comes last of these: by then another process has compiled what it needs, for the
    documents.
    """
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path] if item.path.name != "test_page.py" else -0.5)
