"""What stands on a run's page in TensorBoard from its beginning: charts, settings, the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from data.batches.id_sequences import IdVocabulary, Stream
from data.corpus.corpus import Corpus
from data.corpus.report import report_text
from data.tokens.vocabulary import Vocabulary

Charts: TypeAlias = dict[str, list[Any]]  # by title: "Multiline" and the tags that share it

GIVEN = ("pad", "start")  # kinds of token that are never predicted


def show_charts(writer: SummaryWriter, vocabulary: Vocabulary | IdVocabulary, layers: int) -> None:
    """Training and validation in one chart, in the tab of custom scalars.

    Args:
        vocabulary: of the run.
        layers: of its decoder.
    """
    kinds = [vocabulary.kind_names[kind] for kind in np.unique(vocabulary.kind_of).tolist()]
    scored = [kind for kind in kinds if kind not in GIVEN]
    writer.add_custom_scalars(_layout(scored, layers))


def _layout(scored: Sequence[str], layers: int) -> dict[str, Charts]:
    """The charts for these kinds of token."""
    blocks = [f"layer_{number + 1}" for number in range(layers)]
    parts = ["all", "embedding", "side", *blocks, "head", "interval_head"]
    return {
        "learning": {
            "nats per note": _lines("train/nats_per_note", "valid/nats_per_note"),
            "loss: nats per token": _lines("train/loss", "valid/loss"),
            "nats per note by kind of token, valid": _lines(*(f"valid/nats_{k}" for k in scored)),
            "temperature that suits valid": _lines("valid/temperature"),
        },
        "accuracy by kind of token": {
            kind: _lines(f"train/accuracy_{kind}", f"valid/accuracy_{kind}") for kind in scored
        },
        "music": {
            "overlap with held-out music": _lines("statistics/overlap", "statistics/overlap_real"),
            "intervals nearer than their neighbors": _lines(
                "embedding/octaves_nearer", "embedding/fifths_nearer"
            ),
        },
        "the machine": {
            "norm of gradients": _lines(*(f"gradient_norm/{part}" for part in parts)),
            "learning rates": _lines("learning_rate/muon", "learning_rate/adamw"),
            "tokens and notes a second": _lines(
                "machine/tokens_per_second", "machine/notes_per_second"
            ),
            "memory, GiB": _lines("machine/memory_gib"),
        },
    }


def _lines(*tags: str) -> list[Any]:
    return ["Multiline", [f"^{tag}$" for tag in tags]]  # TensorBoard takes them as patterns


def show_settings(
    writer: SummaryWriter, vocabulary: Vocabulary | IdVocabulary, settings: Mapping[str, Any]
) -> None:
    """A row in the table of runs, with the latest validation figures, which TensorBoard looks up.

    Args:
        settings: by name; what is neither number nor text is written as text.
    """
    told = {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in settings.items()
    }
    note = vocabulary.kind_names[vocabulary.note_kind]
    metrics = ("valid/nats_per_note", "valid/loss", f"valid/accuracy_{note}")
    file = writer._get_file_writer()  # type: ignore[no-untyped-call]
    # `add_hparams` would make a run of its own.
    for summary in hparams(told, dict.fromkeys(metrics, 0.0)):  # type: ignore[no-untyped-call]
        file.add_summary(summary)


def show_config(writer: SummaryWriter, path: Path) -> None:
    """All settings, resolved, as train.py keeps them."""
    _show_lines(writer, "run/config", path.read_text(encoding="utf-8"))


def show_corpus(writer: SummaryWriter, corpus: Corpus | Stream) -> None:
    """What is trained on: the report of a corpus; of other sequences how many there are."""
    text = corpus.summary() if isinstance(corpus, Stream) else report_text(corpus.report())
    _show_lines(writer, "run/corpus", text)


def _show_lines(writer: SummaryWriter, tag: str, text: str) -> None:
    writer.add_text(tag, f"```\n{text}\n```")
