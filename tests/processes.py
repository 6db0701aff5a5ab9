"""train.py in processes of their own, which may die."""

import multiprocessing
import os
import sys
from pathlib import Path
from unittest.mock import patch

import torch

import train
import training.command  # noqa: F401  # all that a run imports

ROOT = Path(__file__).parents[1]


def run_apart(folder, words, prepare):
    """Run train.py in `folder`, after `prepare()`, in a process that really gets its signals.

    Return the exit code, below 0 for a signal, and the lines on stderr. The process is forked
    from a server that has imported everything already.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_live, args=(folder, words, prepare))
    # without the path it imports nothing, silently; a GPU would take memory and files of its own
    with patch.dict(os.environ, PYTHONPATH=str(ROOT), CUDA_VISIBLE_DEVICES=""):
        process.start()
    process.join(300)  # one that waits for a worker would wait for ever
    return process.exitcode, Path(folder, "errors").read_text().strip().splitlines()


def _live(folder, words, prepare):
    os.chdir(folder)
    os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), sys.stderr.fileno())
    torch.set_num_threads(1)
    # Workers are forked, as under a shell: they would come from this kind of server otherwise.
    multiprocessing.set_start_method("fork", force=True)
    prepare()
    train.main(words)
