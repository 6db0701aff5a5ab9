"""Damaged checkpoints are told in one line; a run has a folder of its own."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
import torch

from training.checkpoints import read_step, run_folder
from training.checks import RunError, has_form_of

WHOLE = {
    **{"global_step": 7, "epoch": 0, "pytorch-lightning_version": "2", "state_dict": {}},
    **{"loops": {}, "callbacks": {}, "optimizer_states": [{}], "lr_schedulers": [{}]},
    "hyper_parameters": {},
    "weights": torch.zeros(1000),
}


def save(path, change):
    torch.save(WHOLE | change, path)
    return path


def test_the_steps_of_a_whole_one_are_read(tmp_path):
    assert read_step(save(tmp_path / "a.ckpt", {})) == 7


@pytest.mark.parametrize(
    "change",
    [
        *({"global_step": value} for value in ("7", float("nan"), 2**70, -1, None)),
        *({name: None} for name in ("epoch", "state_dict", "loops", "callbacks")),
        {"hyper_parameters": None},
        {"hyper_parameters": print},  # code
        *(
            {"optimizer_states": {}},
            {"lr_schedulers": 3},
            {"lr_schedulers": ["x"]},
            {"pytorch-lightning_version": None},
            {"pytorch-lightning_version": "x"},
        ),
    ],
)
def test_what_a_run_cannot_go_on_from_is_refused(tmp_path, change):
    path = save(tmp_path / "a.ckpt", change)
    with pytest.raises(RunError, match=r"a\.ckpt: .*use one of a run's checkpoints") as error:
        read_step(path)
    assert "\n" not in str(error.value)


def test_every_flipped_byte_and_every_cut_is_found(tmp_path):
    content = save(tmp_path / "a.ckpt", {}).read_bytes()
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


def test_form_is_keys_lengths_shapes_and_kinds():
    ours = {"a": [1, 0.5], "b": torch.zeros(2), "c": None}
    assert has_form_of({"a": (7, 3), "b": torch.ones(2), "c": None, "d": 1}, ours)
    for change in (
        *({"a": value} for value in ([1], [1, "x"], [True, 1.0], [-1, 1.0], [1, float("nan")], {})),
        *({"b": value} for value in (torch.zeros(3), torch.zeros(2, dtype=torch.bool), [0, 0])),
        {"c": 0},
    ):
        assert not has_form_of(ours | change, ours)
    assert not has_form_of({"a": [1, 0.5], "b": torch.zeros(2)}, ours)


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
    (run / ".lock").touch()  # of a killed process
    with ExitStack() as held:
        assert run_folder(run, "last", held) == run
