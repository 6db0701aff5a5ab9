"""Who has a run's folder."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from training.checkpoints import run_folder
from training.checks import RunError


def test_runs_that_begin_at_once_get_a_folder_each(tmp_path):
    run = tmp_path / "runs" / "a"
    with ExitStack() as held, ThreadPoolExecutor(8) as threads:
        stacks = [held.enter_context(ExitStack()) for _ in range(8)]
        folders = list(threads.map(partial(run_folder, run, None), stacks))
        assert {folder.name for folder in folders} == {"a", *(f"a-{n}" for n in range(2, 9))}
        with pytest.raises(RunError, match="a: another process trains there"):
            run_folder(run, "last", held)
        first = stacks[folders.index(run)]
        (run / "model.safetensors").touch()
        first.close()
        assert run_folder(run, None, first).name == "a-9"  # there is a run in it now
        first.close()
        assert run_folder(run, "last", first) == run
    assert [path.name for path in run.parent.iterdir()] == ["a"]  # of the others nothing was made
    assert [path.name for path in run.iterdir()] == ["model.safetensors"]
    (Path(run) / ".lock").touch()  # of a killed process
    with ExitStack() as held:
        assert run_folder(run, "last", held) == run
