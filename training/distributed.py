"""Several processes that train one model: they start and stop together, and one reports why."""

import atexit
import os
import signal
import socket
import time
from datetime import timedelta

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import distributed

from training.checks import RunError

GRACE_SECONDS = 3.0  # in which all processes meet an error that is everybody's
REPORTS = "etude/reports"  # the counter that processes share
NODE_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


def check_environment() -> None:
    """Refuse numbers of nodes that are none, by a RunError."""
    for name in ("MASTER_PORT", "NODE_RANK"):
        if not (value := os.environ.get(name, "0")).isdecimal():
            raise RunError(f"{name} must be a whole number, not {value!r}")


def check_nodes(trainer: Trainer) -> None:
    """Refuse to wait for other nodes where they cannot find each other, by a RunError."""
    environment = getattr(trainer.strategy, "cluster_environment", None)
    missing = [name for name in NODE_VARIABLES if name not in os.environ]
    if trainer.num_nodes > 1 and missing and isinstance(environment, LightningEnvironment):
        raise RunError(
            f"trainer.num_nodes {trainer.num_nodes}: set {', '.join(missing)} on every node "
            f"(the first node's address, a free port there, this node's number from 0)"
        )


class ProcessGroupGuard(Callback):
    """Checks that the processes of a run begin at one step, and that none outlives the others."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check that all begin at the same step, or they would wait for each other for ever."""
        first = trainer.strategy.broadcast(trainer.global_step)
        if first != trainer.global_step:
            raise RunError(
                f"this process goes on from step {trainer.global_step}, the first from {first}: "
                f"all have to see the same checkpoints"
            )

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let SIGTERM stop a validation or test at once, for it has nothing to save.

        Lightning's handler begins a broadcast, which may meet another collective of the others.
        """
        if trainer.world_size > 1 and trainer.state.fn != "fit":
            signal.signal(signal.SIGTERM, _raise_sigterm)

    on_test_start = on_validation_start

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """End the processes that this one started; on a GPU they would wait for it."""
        if trainer.strategy.launcher is not None:
            # Only at exit: Lightning kills this one, before it has reported, once they are gone.
            atexit.register(trainer.strategy.launcher.kill, signal.SIGKILL)


def _raise_sigterm(*_: object) -> None:
    raise SIGTERMException


def is_lost_process(error: RuntimeError) -> bool:
    """Return whether an error means that another process is gone; Gloo's have no class."""
    return isinstance(error, distributed.DistError) or "gloo/transport" in str(error)


def is_reporter() -> bool:
    """Return whether this process is the one to report why the run ends.

    The first process reports, unless another has. Another does only if the first has not within
    GRACE_SECONDS.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return os.environ.get("RANK", "0") == "0"  # torchrun sets it, and starts all at once
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        end = time.monotonic() + (GRACE_SECONDS if distributed.get_rank() > 0 else 0)
        while time.monotonic() < end:  # torch would print pages where it cannot connect
            socket.create_connection((address, port), GRACE_SECONDS).close()
            time.sleep(0.2)
        store = distributed.TCPStore(  # type: ignore[attr-defined]  # it is public
            address, port, timeout=timedelta(seconds=GRACE_SECONDS), wait_for_workers=False
        )
        return bool(store.add(REPORTS, 1) == 1)
    except (OSError, distributed.DistError):  # the first process held it: it has reported and left
        return False
