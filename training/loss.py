"""The loss: how surprised a decoder is by the tokens that do follow.

The surprise at a token is -log p, in nats, where p is the probability that the decoder gave it. The
loss of a batch is the mean over all targets (training/module.py).
"""

from torch import Tensor
from torch.nn import functional

from common.interface import NOT_SCORED


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the summed surprise, in nats, at int64 targets (B, T) under logits (B, T, V).

    Targets that are NOT_SCORED count nothing.
    """
    return functional.cross_entropy(
        logits.float().flatten(0, 1), targets.flatten(), ignore_index=NOT_SCORED, reduction="sum"
    )


def expected_cross_entropy(logits: Tensor, expected: Tensor, targets: Tensor) -> Tensor:
    """Return the surprise that a teacher expects, summed in nats (Hinton et al. 2015).

    It is the expected surprise at ids drawn with the teacher's probabilities. The teacher's logits,
    `expected`, are (B, T, V) like ours. `targets` (B, T) only say which places are NOT_SCORED.
    """
    nats = -(expected.float().softmax(dim=-1) * logits.float().log_softmax(dim=-1)).sum(dim=-1)
    return nats.masked_fill(targets == NOT_SCORED, 0).sum()  # (B, T) -> ()
