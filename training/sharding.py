"""The strategy `fsdp`: processes that each keep a share of what training a model takes.

Gradients, what the optimizer keeps and the weights that it changes are cut up by rows among all
processes, by torch's FSDP2 (as ZeRO-2 of Rajbhandari et al. 2020). Between steps each process has
the whole weights, too: they are gathered when the optimizer has made its step, and let go block by
block as gradients come to be. So what one process does alone (it scores its pieces, writes music
and files) needs none of the others, and whoever reads the weights finds plain tensors.

Blocks keep their weights from the forward pass to the backward one: a step takes most where the
optimizer makes it, so letting go of them earlier would save nothing.

Lightning's own strategy needs CUDA, and writes checkpoints in a way of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.optim import Optimizer

from training.optimizer import own_rows, whole


class Sharded(DDPStrategy):
    """Trains a `MusicModule` whose decoder is cut up; what is only judged is not.

    Checkpoints hold whole tensors, so that a run can go on under any strategy.
    """

    def configure_ddp(self) -> None:
        """Cuts up the decoder, a block at a time, where DDP would wrap the module."""
        mesh = init_device_mesh(self.root_device.type, (self.world_size,))
        decoder = self._decoder
        for module in (*decoder.blocks, decoder):
            fully_shard(module, mesh=mesh, reshard_after_forward=False)

    def setup_optimizers(self, trainer: Trainer) -> None:
        """Gives the optimizer its rows, and then the module whole weights."""
        super().setup_optimizers(trainer)
        self._gather()
        for module in self._decoder.modules():
            # With FSDP's hooks a state_dict() would let go of weights that one process writes.
            module._state_dict_pre_hooks.clear()

    def optimizer_step(self, *arguments: Any, **options: Any) -> Any:
        """Changes each process's rows, and gathers them."""
        loss = super().optimizer_step(*arguments, **options)
        self._gather()
        return loss

    @property
    def _decoder(self) -> Any:
        assert self.lightning_module is not None
        return self.lightning_module.decoder

    def _gather(self) -> None:
        for module in self._decoder.modules():
            if isinstance(module, FSDPModule):
                module.unshard()

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """What one process would keep; in the first, which writes it, and in its main memory."""
        kept: dict[str, Any] = super().optimizer_state(optimizer)
        gathered: dict[int, dict[str, Tensor]] = {}
        for number, of_weight in kept["state"].items():
            tensors = {name: whole(tensor) for name, tensor in of_weight.items()}
            if self.is_global_zero:
                gathered[number] = {name: tensor.cpu() for name, tensor in tensors.items()}
        return {**kept, "state": gathered}

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Gives each process its rows of what one process, or several, had kept."""
        for optimizer, kept in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            weights = [weight for group in optimizer.param_groups for weight in group["params"]]
            for number, of_weight in kept["state"].items():
                for name, value in of_weight.items():
                    if value.shape == weights[number].shape:  # and not a count of steps
                        of_weight[name] = own_rows(value, weights[number])
        super().load_optimizer_state_dict(checkpoint)
