"""Damaged checkpoints are told in one line; a run has a folder of its own."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
import torch

from training.checkpoints import AtomicCheckpointIO, read_step, run_folder
from training.checks import RunError

WHOLE = {"global_step": 7, "weights": torch.zeros(1000)}


@pytest.fixture
def path(tmp_path):
    AtomicCheckpointIO().save_checkpoint(WHOLE, tmp_path / "a.ckpt")
    return tmp_path / "a.ckpt"


def refused(path):
    with pytest.raises(RunError, match=r"a\.ckpt: .*use one of a run's checkpoints") as error:
        read_step(path)
    assert "\n" not in str(error.value)


def test_what_train_py_has_not_written_is_refused(path):
    """No code in it is run, even if it says that it is ours."""
    torch.save(WHOLE, path)
    refused(path)
    AtomicCheckpointIO().save_checkpoint(WHOLE | {"hyper_parameters": print}, path)
    refused(path)


def test_every_flipped_byte_and_every_cut_is_found(path, tmp_path):
    content = path.read_bytes()
    path = tmp_path / "b.ckpt"
    for at in range(0, len(content), 97):
        path.write_bytes(content[:at])
        with pytest.raises(RunError):
            read_step(path)
        path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
        try:
            assert read_step(path) == 7  # between the records nothing matters
        except RunError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_runs_that_begin_at_once_get_a_folder_each(tmp_path):
    run = tmp_path / "runs" / "a"
    with ExitStack() as held, ThreadPoolExecutor(8) as threads:
        stacks = [held.enter_context(ExitStack()) for _ in range(8)]
        folders = list(threads.map(partial(run_folder, run, None), stacks))
        assert {folder.name for folder in folders} == {"a", *(f"a-{n}" for n in range(2, 9))}
        with pytest.raises(RunError, match="a: another process is training there"):
            run_folder(run, "last", held)
        first = stacks[folders.index(run)]
        (run / "model.safetensors").touch()
        first.close()
        assert run_folder(run, None, first).name == "a-9"  # there is a run in it now
        first.close()
        assert run_folder(run, "last", first) == run
    assert [path.name for path in run.parent.iterdir()] == ["a"]  # of the others nothing was made
    assert [path.name for path in run.iterdir()] == ["model.safetensors"]
    (run / ".lock").touch()  # of a killed process
    with ExitStack() as held:
        assert run_folder(run, "last", held) == run
