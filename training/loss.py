"""What training makes small: the nats of what follows, or of what others expect to follow."""

from torch import Tensor
from torch.nn import functional

NOT_SCORED = -100  # a target that no loss counts


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Nats of int64 targets (B, T) under logits (B, T, V), summed over those that are scored."""
    return functional.cross_entropy(
        logits.float().flatten(0, 1),  # (B, T, V) -> (B T, V)
        targets.flatten(),  # (B, T) -> (B T)
        ignore_index=NOT_SCORED,
        reduction="sum",
    )


def expected_cross_entropy(logits: Tensor, expected: Tensor, targets: Tensor) -> Tensor:
    """The same, of ids drawn as `expected` (B, T, V), logits too, has them (Hinton et al. 2015).

    Where there is a target, whatever it is.
    """
    nats = -(expected.float().softmax(dim=-1) * logits.float().log_softmax(dim=-1)).sum(dim=-1)
    return nats.masked_fill(targets == NOT_SCORED, 0).sum()  # (B, T) -> ()
