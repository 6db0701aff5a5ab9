"""Two processes side by side that run train.py, forked from one that has imported it already.

The import takes longer than a small run. `python -m tests.ranks` reads a line of JSON for each
run: the command's arguments, and code that a process runs first; it answers with what came of them.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 120  # seconds after which processes that wait for each other are ended


class Ranks:
    """The process that forks; a context manager."""

    def __enter__(self):
        command = [sys.executable, "-m", "tests.ranks"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        # a forked process must not meet the threads of the one before
        quiet = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, env=os.environ | quiet, **pipes)
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def run(self, folder, *arguments, first="", environment=None):
        """Return exit codes, output and errors of the two, as lists."""
        words = list(map(str, arguments))
        self.process.stdin.write(json.dumps([str(folder), words, first, environment or {}]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def be_rank(rank, folder, arguments, first, environment):
    import train
    from training.command import rank_zero_only

    os.chdir(folder)
    os.environ.update({"LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"})
    for name, values in environment.items():
        os.environ[name] = values[rank]
    rank_zero_only.rank = rank
    for descriptor, name in ((1, "out"), (2, "err")):
        file = os.open(f"{name}{rank}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, descriptor)
    code = 1
    try:
        exec(first, {"rank": rank})
        train.main(arguments)
        code = 0
    except SystemExit as left:
        code = left.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if code == 1:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code or 0)


def wait_for(numbers):
    """Return exit codes, negative for signals, of the processes that have these numbers."""
    codes = {}
    end = time.monotonic() + LIMIT
    while len(codes) < len(numbers):
        for number in set(numbers) - codes.keys():
            if time.monotonic() > end:
                os.kill(number, signal.SIGKILL)
            done, status = os.waitpid(number, os.WNOHANG)
            if done:
                codes[number] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return [codes[number] for number in numbers]


def main():
    import training.command  # noqa: F401  # all that a run imports

    for line in sys.stdin:
        folder, arguments, first, environment = json.loads(line)
        os.environ["MASTER_PORT"] = free_port()
        numbers = []
        for rank in (0, 1):
            numbers.append(os.fork())
            if numbers[-1] == 0:
                be_rank(rank, folder, arguments, first, environment)
        codes = wait_for(numbers)
        texts = [[Path(folder, f"{n}{r}").read_text() for r in (0, 1)] for n in ("out", "err")]
        print(json.dumps([codes, *texts]), flush=True)


if __name__ == "__main__":
    main()
