"""Many processes that train one model: they stop together, and one of them says why."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import time
from datetime import timedelta

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import ParallelStrategy
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import distributed

from training.checks import RunError

GRACE = 3.0  # seconds in which processes that meet the same error meet it
TOLD = "etude/told"
SHARDED = ("fsdp", "deepspeed", "modelparallel")  # in the names of Lightning's strategies
NODE_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


def check_strategy(strategy: object) -> None:
    """Refuses strategies that cut matrices up in ways of their own.

    Args:
        strategy: as it is given to the trainer: a name, or what names a class.

    Raises:
        RunError: it is one of those.
    """
    name = strategy if isinstance(strategy, str) else getattr(strategy, "class_path", "")
    if any(word in name.lower() for word in SHARDED):
        raise RunError(
            f"trainer.strategy {name} cuts up matrices, which Muon needs whole: ddp is the "
            f"strategy for several devices"
        )


def check_numbers() -> None:
    """Refuses what nodes are told where it cannot be read.

    Raises:
        RunError: it is no whole number.
    """
    for name in ("MASTER_PORT", "NODE_RANK"):
        if not (value := os.environ.get(name, "0")).isdecimal():
            raise RunError(f"{name} must be a whole number, not {value!r}")


def check_nodes(trainer: Trainer) -> None:
    """Refuses to wait for nodes that cannot find each other.

    Raises:
        RunError: what they have to be told is missing.
    """
    strategy = trainer.strategy
    missing = [name for name in NODE_VARIABLES if name not in os.environ]
    if (
        trainer.num_nodes > 1
        and missing
        and isinstance(strategy, ParallelStrategy)
        and isinstance(strategy.cluster_environment, LightningEnvironment)
    ):
        raise RunError(
            f"trainer.num_nodes {trainer.num_nodes}: set {', '.join(missing)} on every node "
            f"(the first node's address, a free port there, this node's number from 0)"
        )


class LeaveTogether(Callback):
    """Sees that the processes of a run begin together, and that none stays behind."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Sees that all begin at the same step, or they would wait for each other for ever.

        Raises:
            RunError: this one does not.
        """
        first = trainer.strategy.broadcast(trainer.global_step)
        if first != trainer.global_step:
            raise RunError(
                f"this process goes on from step {trainer.global_step}, the first from {first}: "
                f"all have to see the same checkpoints"
            )

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Has SIGTERM stop at once what only judges a model, and so has nothing to keep.

        Lightning's handler begins a broadcast, which may meet another collective of the others.
        """
        if trainer.world_size > 1 and trainer.state.fn != "fit":
            signal.signal(signal.SIGTERM, _leave)

    on_test_start = on_validation_start

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Has the processes that this one began end with it: on a GPU they would wait for it."""
        if trainer.strategy.launcher is not None:
            # Not yet: Lightning ends this one, whatever it has still to say, when it misses them.
            atexit.register(trainer.strategy.launcher.kill, signal.SIGKILL)


def _leave(*_: object) -> None:
    raise SIGTERMException


def is_lost_process(error: RuntimeError) -> bool:
    """Whether an error means that another process of the run is gone; Gloo's have no class."""
    return isinstance(error, distributed.DistError) or "gloo/transport" in str(error)


def is_to_tell() -> bool:
    """Whether this process is the one to say why the run ends.

    It is the first process, unless another has told; another only tells what the first has not
    told within GRACE.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return os.environ.get("RANK", "0") == "0"  # torchrun sets it, and starts all at once
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        end = time.monotonic() + (GRACE if distributed.get_rank() > 0 else 0)
        while time.monotonic() < end:  # torch would write pages where it cannot connect
            socket.create_connection((address, port), GRACE).close()
            time.sleep(0.2)
        store = distributed.TCPStore(  # type: ignore[attr-defined]  # it is public
            address, port, timeout=timedelta(seconds=GRACE), wait_for_workers=False
        )
        return bool(store.add(TOLD, 1) == 1)
    except (OSError, distributed.DistError):  # the first process kept it: it is gone, and has told
        return False
