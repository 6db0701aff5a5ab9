"""How much memory training takes at least, how much is free, and how much is in use.

Bounds from below: what is refused by them cannot fit. What passes may still not, for a batch takes
twice (bfloat16) to four times (float32) as much, as torch computes it today.
"""

import platform
from dataclasses import replace
from pathlib import Path

import torch

from model.decoder import Decoder, DecoderConfig
from training.optimizer import split_parameters

MEMORY = Path("/proc/meminfo")
MINE = Path("/proc/self/statm")  # in pages: of all addresses, and of those in memory
# What a container may have, by the two versions of Linux' control groups.
LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
FLOAT = 4  # bytes: weights, gradients and optimizer state are float32 whatever the precision
# Numbers of 2 bytes a token and layer, over n_embd, that the backward pass must find: queries,
# keys, values, the sum of the values, what goes into each product, and thrice four times as many
# inside the feed-forward layer.
KEPT = 17


def least_weight_bytes(config: DecoderConfig) -> int:
    """Of weights, gradients and optimizer state: Muon keeps one number a weight, AdamW two."""
    one, two = (_weight_bytes(replace(config, n_layer=count)) for count in (1, 2))
    return one + (config.n_layer - 1) * (two - one)


def _weight_bytes(config: DecoderConfig) -> int:
    with torch.device("meta"):  # shapes, no numbers
        matrices, *others = split_parameters(Decoder(config))
    count = 3 * sum(weight.numel() for weight in matrices)
    count += 4 * sum(weight.numel() for group in others for weight in group)
    return FLOAT * count


def least_window_bytes(config: DecoderConfig) -> int:
    """Of what a training window leaves for the backward pass: in each layer, and the logits."""
    layers = 2 * KEPT * config.n_layer * config.n_embd
    logits = 2 * FLOAT * config.vocabulary_size  # as float32, and their gradient
    return config.context_length * (layers + logits)


def free_bytes(device: torch.device) -> int | None:
    """What a process could still get on a device; None where nothing tells."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu" or not MEMORY.exists():
        return None
    fields = dict(line.split(":") for line in MEMORY.read_text().splitlines())
    free = 1024 * int(fields["MemAvailable"].split()[0])
    limits = [path.read_text().strip() for path in LIMITS if path.exists()]
    return min([free, *(int(limit) for limit in limits if limit.isdigit())])


def used_bytes(device: torch.device) -> dict[str, int]:
    """The `memory` in use for training, as far as the system tells, and the `peak_memory` so far.

    On a GPU what torch has allocated there; else the process's resident set.
    """
    if device.type == "cuda":
        return {
            "memory": torch.cuda.memory_allocated(device),
            "peak_memory": torch.cuda.max_memory_allocated(device),
        }
    if platform.system() == "Windows":
        return {}
    import resource  # there is none on Windows

    unit = 1 if platform.system() == "Darwin" else 1024
    used = {"peak_memory": unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    if MINE.exists():
        used["memory"] = resource.getpagesize() * int(MINE.read_text().split()[1])
    return used
