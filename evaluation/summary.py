"""Everything there is to say of a model: what `evaluate.py all` prints, keeps and shows."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.canonical import ScoreBatch
from data.corpus.corpus import SPLITS, Corpus, CorpusError
from data.corpus.reader import MidiPieces
from data.corpus.store import SplitCounts
from data.score import Score
from data.tokens.tokenizer import decode
from evaluation.likelihood import (
    Baseline,
    EvaluationSet,
    PieceLikelihood,
    SetLikelihood,
    measure_likelihood,
)
from evaluation.ngrams import fit_baselines
from evaluation.originality import Originality, PieceOriginality, measure_originality
from evaluation.samples import (
    CorpusComparison,
    compare_with_corpus,
    sample_like_corpus,
)
from generation.model import Model
from model.record import TrainingRecord

MAX_FILES = 4  # of the given files that are shown


@dataclass(frozen=True)
class Example:
    """A piece to see and to hear."""

    name: str  # of its file, or what it is
    score: Score
    likelihood: PieceLikelihood
    originality: PieceOriginality | None = None  # None where that was not looked for
    picture: Path | None = None  # the PNG file that generate.py wrote beside it


@dataclass(frozen=True)
class Examples:
    """Pieces to show."""

    given: list[Example]  # of the given files
    written: list[Example]  # by the model: the likeliest, the median and the least likely
    held_out: Example  # the median piece of a held-out split


@dataclass(frozen=True)
class GivenFiles:
    """The figures of all given files, and messages about what was changed or left out."""

    likelihood: SetLikelihood
    originality: Originality
    messages: Sequence[str]


@dataclass(frozen=True)
class ModelSummary:
    """All figures of a model."""

    parameters: int
    decoder: dict[str, Any]  # its configuration
    record: TrainingRecord
    beside: str | None  # the name of the other model that is judged beside it
    corpus: str  # its name
    splits: dict[str, SplitCounts]  # how much is in each
    likelihood: list[SetLikelihood]  # of each held-out split
    music: CorpusComparison  # of the pieces it wrote, as the next two are
    originality: Originality
    written: SetLikelihood
    given: GivenFiles | None  # None where there were none


def summarize_model(
    model: Model,
    corpus: Corpus,
    files: MidiPieces | None,
    count: int,
    seed: int,
    beside: dict[str, Baseline] | None = None,
) -> tuple[ModelSummary, Examples]:
    """Judge a model by everything this package measures, and the MIDI files given, if any.

    The model writes `count` pieces, as long as those of the corpus, which it was trained on.
    `beside` has at most one other model by its name, of which the likelihood is measured too.
    """
    splits = [EvaluationSet.of_split(corpus, n) for n in SPLITS[1:] if len(corpus.split(n))]
    if not splits:
        raise CorpusError(f"{corpus.folder}: no pieces are held out, so there is no measure")
    given, given_examples = _judge_files(model, corpus, files)
    baselines = fit_baselines(corpus) | (beside or {})
    likelihood = [measure_likelihood(model, baselines, split) for split in splits]

    scores = sample_like_corpus(model, corpus, count, seed)
    names = [f"written {number}" for number in range(1, count + 1)]
    written_set = EvaluationSet.of_scores("written", names, scores, model.vocabulary)
    written = measure_likelihood(model, {}, written_set)
    originality = measure_originality(ScoreBatch.from_scores(scores), names, corpus)
    ranks = _ranks(written.files)
    shown = dict.fromkeys([ranks[0], ranks[len(ranks) // 2], ranks[-1]])
    written_examples = [
        Example(names[n], scores[n], written.files[n], originality.pieces[n]) for n in shown
    ]
    held_out = _median(model, splits[-1], likelihood[-1])
    summary = ModelSummary(
        model.network.parameter_count,
        asdict(model.network.config),
        model.record,
        next(iter(beside or {}), None),
        corpus.name,
        corpus.splits,
        likelihood,
        compare_with_corpus(scores, corpus, seed),
        originality,
        written,
        given,
    )
    return summary, Examples(given_examples, written_examples, held_out)


def _median(model: Model, split: EvaluationSet, likelihood: SetLikelihood) -> Example:
    """Return a split's median piece."""
    ranks = _ranks(likelihood.files)
    at = ranks[len(ranks) // 2]
    score = decode(split.split.piece(at), model.vocabulary)
    return Example(likelihood.files[at].name, score, likelihood.files[at])


def _judge_files(
    model: Model, corpus: Corpus, files: MidiPieces | None
) -> tuple[GivenFiles | None, list[Example]]:
    """Judge given files; the first few are examples."""
    if not files:
        return None, []
    pieces = EvaluationSet.of_files(model, files)
    likelihood = measure_likelihood(model, {}, pieces)
    originality = measure_originality(files.scores, files.names, corpus)
    examples = []
    for file in likelihood.files[:MAX_FILES]:
        index = files.names.index(file.name)  # files without a known note have no likelihood
        its = originality.pieces[index], _picture_beside(file.name)
        examples.append(Example(file.name, files.scores[index], file, *its))
    return GivenFiles(likelihood, originality, pieces.messages), examples


def _picture_beside(name: str) -> Path | None:
    """Return the picture that generate.py wrote beside a MIDI file: it shows the seed."""
    path = Path(name).with_suffix(".png")
    try:
        with path.open("rb") as file:
            return path if file.read(8) == b"\x89PNG\r\n\x1a\n" else None
    except OSError:
        return None


def _ranks(files: Sequence[PieceLikelihood]) -> list[int]:
    """Return the indices of pieces that have a figure, the likeliest first; at least one."""
    known = [n for n, file in enumerate(files) if not math.isnan(file.nats_per_note)]
    return sorted(known or [0], key=lambda index: files[index].nats_per_note)
