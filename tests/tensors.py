"""What the tests of the model room share."""

import numpy as np

from model.sampling import Rebase


def last_half(context_length: int) -> Rebase:
    """The plain `rebase`: the last half of the context, rounded up, wherever that begins."""
    keep = (context_length + 1) // 2

    def rebase(history: np.ndarray) -> np.ndarray:
        return history[-keep:]

    return rebase
