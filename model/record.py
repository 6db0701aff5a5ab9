"""What a model file tells of the run that made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from common.options import Count, Measure


@dataclass(frozen=True)
class TrainingRecord:
    """What a model file tells of the run that made it.

    Attributes:
        step: how many steps of training led to these weights.
        valid_nats_per_note: on the validation pieces; None: there are none.
        valid_pieces: how many they are, where all were scored; None: a sample of them was.
        model, data: the settings of the run that have these names, as its config.yaml has them.
        corpus: the hash of what it learned from (`Corpus.content`); None: it is not known.
        figures: of a model that ships, on each held-out split (benchmarks/ship.py).
    """

    step: Count = 0
    valid_nats_per_note: Measure | None = None
    valid_pieces: Count | None = None
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    corpus: str | None = None
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
