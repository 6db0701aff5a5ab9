"""Everything about a model: what `evaluate.py all` prints, keeps and shows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data.corpus.corpus import SPLITS, Corpus
from data.corpus.reader import MidiPieces
from data.score import Score
from data.tokens.tokenizer import decode
from evaluation.comparison import Comparison, compare
from evaluation.likelihood import (
    Baseline,
    EvaluationSet,
    PieceLikelihood,
    SetLikelihood,
    measure_likelihood,
)
from evaluation.ngrams import fit_baselines
from evaluation.originality import Originality, PieceOriginality, measure_originality
from evaluation.samples import real_pieces, sample_like_corpus
from generation.model import Model
from model.record import TrainingRecord

MAX_FILES = 4  # how many of the given files are shown


@dataclass(frozen=True)
class Example:
    """A piece to see and to hear."""

    name: str  # the name of its file, or what it is
    score: Score
    likelihood: PieceLikelihood
    originality: PieceOriginality | None = None  # None: not measured


@dataclass(frozen=True)
class Examples:
    """Pieces to show."""

    given: list[Example]  # of the given files
    written: list[Example]  # written by the model: the likeliest, the median and the least likely
    held_out: Example  # the median piece of a held-out split


@dataclass(frozen=True)
class ModelSummary:
    """All figures of a model."""

    parameters: int
    record: TrainingRecord
    corpus: str  # the name of the corpus
    likelihood: list[SetLikelihood]  # for each held-out split
    music: Comparison  # of the pieces that the model wrote, like the next two
    originality: Originality
    written: SetLikelihood
    given: SetLikelihood | None  # of all given files; None: there are none
    messages: Sequence[str]  # what was changed or left out in these files


def summarize_model(
    model: Model,
    corpus: Corpus,
    files: MidiPieces | None,
    count: int,
    seed: int,
    beside: Mapping[str, Baseline],
) -> tuple[ModelSummary, Examples]:
    """Judge a model by everything that this package measures, and the given MIDI files, if any.

    The model writes `count` pieces, which are as long as those of the corpus on which it was
    trained. `beside` has other models by name; their likelihood is measured, too.
    """
    real = real_pieces(corpus, seed)
    splits = [EvaluationSet.of_split(corpus, n) for n in SPLITS[1:] if len(corpus.split(n))]
    baselines = {**fit_baselines(corpus), **beside}
    likelihood = [measure_likelihood(model, baselines, split) for split in splits]
    middle = _ranks(likelihood[-1].files)[len(likelihood[-1].files) // 2]
    held_out = decode(splits[-1].split.piece(middle), model.vocabulary)

    scores = sample_like_corpus(model, corpus, count, seed)
    names = [f"written {number}" for number in range(1, count + 1)]
    written_set = EvaluationSet.of_scores("written", names, scores, model.vocabulary)
    written = measure_likelihood(model, {}, written_set)
    originality = measure_originality(scores, names, corpus)
    ranks = _ranks(written.files)
    given, messages, given_examples = None, list[str](), list[Example]()
    if files:
        pieces = EvaluationSet.of_files(model, files)
        given, messages = measure_likelihood(model, {}, pieces), [*pieces.messages]
        given_examples = _of_files(given, files, corpus)
        if hidden := given.pieces - len(given_examples):
            messages.append(f"{hidden:,} more files are not shown")
    summary = ModelSummary(
        model.network.parameter_count,
        model.record,
        corpus.name,
        likelihood,
        compare(scores, real, seed),
        originality,
        written,
        given,
        messages,
    )
    shown = [
        Example(names[n], scores[n], written.files[n], originality.pieces[n])
        for n in dict.fromkeys([ranks[0], ranks[len(ranks) // 2], ranks[-1]])
    ]
    name = likelihood[-1].files[middle].name
    return summary, Examples(
        given_examples, shown, Example(name, held_out, likelihood[-1].files[middle])
    )


def _of_files(likelihood: SetLikelihood, files: MidiPieces, corpus: Corpus) -> list[Example]:
    """Return the first given files that have a note which the model knows."""
    found = measure_originality(files.scores, files.names, corpus).pieces
    shown = [(files.names.index(file.name), file) for file in likelihood.files[:MAX_FILES]]
    return [Example(file.name, files.scores[n], file, found[n]) for n, file in shown]


def _ranks(files: Sequence[PieceLikelihood]) -> list[int]:
    """Return the indices of pieces, the likeliest first; those without a figure come last."""
    nats = [file.nats_per_note for file in files]
    return sorted(range(len(files)), key=lambda n: math.inf if math.isnan(nats[n]) else nats[n])
