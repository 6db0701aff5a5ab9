"""What a model file says about the run that made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from common.options import Count, Measure


@dataclass(frozen=True)
class TrainingRecord:
    """What a model file says about the run that made it.

    Attributes:
        step: how many training steps led to these weights.
        valid_nats_per_note: on the validation pieces; None: there are none.
        valid_pieces: how many validation pieces there are, if all were scored; None: a sample was.
        model, data: these groups of the run's settings, as in its config.yaml.
        corpus: the hash of what the model learned from (`Corpus.content`); None: unknown.
        figures: of a model that ships, its results on each held-out split (benchmarks/ship.py).
    """

    step: Count = 0
    valid_nats_per_note: Measure | None = None
    valid_pieces: Count | None = None
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    corpus: str | None = None
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
