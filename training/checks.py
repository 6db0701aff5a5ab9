"""Refuses or stops a run, with one line that says what is wrong, where, and what to do."""

import torch


class RunError(ValueError):
    """Raised if a run cannot go on, or not as it was asked to; the message is one line."""


def out_of_memory_message(error: BaseException) -> str | None:
    """Return what to do about an error if it is one of memory; None for other errors."""
    first = str(error).strip().partition("\n")[0]
    signs = ("out of memory", "can't allocate memory", "not enough memory")
    is_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
    if not is_memory and not any(sign in first for sign in signs):
        return None
    return (
        f"the memory ran out ({first or 'of this machine'}): lower data.batch_size, "
        f"model.context_length, model.n_layer or model.n_embd; the checkpoint before is untouched"
    )
