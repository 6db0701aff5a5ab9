"""The loss: how surprised a decoder is by the tokens that follow.

The surprise at a token is -log p, in nats, where p is the probability that the decoder gave it. The
loss of a batch is the mean over all targets (training/module.py).
"""

from torch import Tensor
from torch.nn import functional

from common.interface import NOT_SCORED


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the summed nats of int64 targets (B, T), but NOT_SCORED, under logits (B, T, V)."""
    return functional.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=NOT_SCORED, reduction="sum"
    )


def expected_cross_entropy(logits: Tensor, expected: Tensor, targets: Tensor) -> Tensor:
    """Return the summed nats of ids drawn as a teacher expects them (Hinton et al. 2015).

    The teacher's logits, `expected`, are (B, T, V) like ours. Of the targets, (B, T), only
    whether each is NOT_SCORED counts.
    """
    nats = -(expected.float().softmax(dim=-1) * logits.float().log_softmax(dim=-1)).sum(dim=-1)
    return nats.masked_fill(targets == NOT_SCORED, 0).sum()  # (B, T) -> ()
