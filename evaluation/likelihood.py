"""How likely a trained model finds whole pieces, and each note of a piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.batches.windows import WholePieces
from data.corpus.corpus import Corpus, CorpusOptions
from data.corpus.reader import MidiPieces, read_paths
from data.corpus.store import Split
from data.midi.instruments import Instruments
from data.midi.quantize import MidiError
from data.score import Score, ScoreBatch
from data.tokens.adapt import without_unknown
from data.tokens.batch_tokenizer import encode_batch
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Vocabulary
from evaluation.bootstrap import SETTINGS, BootstrapSettings, Estimate, estimate_ratios
from evaluation.ngrams import NGram
from evaluation.surprise import ASPECTS, note_nats
from generation.model import Model
from model.scoring import Tally, summarize


@dataclass(frozen=True)
class EvaluationSet:
    """Pieces to be scored together."""

    name: str
    split: Split  # their tokens
    notes_left_out: Sequence[int]  # of each piece, since the vocabulary has no token for them
    messages: Sequence[str] = ()  # for each piece that was changed, and each file left out

    @classmethod
    def of_split(cls, corpus: Corpus, name: str) -> EvaluationSet:
        """Return a split of a corpus."""
        split = corpus.split(name)
        return cls(name, split, [0] * len(split))

    @classmethod
    def of_scores(
        cls, name: str, names: Sequence[str], scores: Sequence[Score], vocabulary: Vocabulary
    ) -> EvaluationSet:
        """Return pieces, one name each, of which the vocabulary has every note."""
        ids, lengths = encode_batch(ScoreBatch.from_scores(scores), vocabulary)
        return cls(name, Split.of_ids(names, ids, lengths, vocabulary), [0] * len(scores))

    @classmethod
    def of_files(cls, model: Model, files: MidiPieces) -> EvaluationSet:
        """Return the pieces in MIDI files as far as the model's vocabulary can represent them."""
        names, scores, notes_left_out, messages = [], [], [], list(files.messages)
        for index, name in enumerate(files.names):
            score, is_known, changes = without_unknown(files.scores[index], model.vocabulary)
            unkept = files.unkept_notes[index]
            missing, total = int((~is_known).sum()) + unkept, len(is_known) + unkept
            if missing:
                changes.insert(0, f"{missing} of {total} notes have no token, left out")
            if changes:
                messages.append(f"{name}: {'; '.join(changes)}")
            if len(score.notes):
                names.append(name)
                scores.append(score)
                notes_left_out.append(missing)
        if not scores:
            raise _nothing_known(files.names[0], model)
        split = cls.of_scores("files", names, scores, model.vocabulary).split
        return cls("files", split, notes_left_out, messages)


def read_files(model: Model, paths: Sequence[str]) -> MidiPieces:
    """Read MIDI files, and folders of them, with the instruments that the model knows."""
    settings = CorpusOptions.from_settings(model.summary.get("data", {}))
    return read_paths(paths, model.vocabulary.grid, Instruments(settings.instruments))


def _nothing_known(name: str, model: Model) -> MidiError:
    programs = " ".join(map(str, model.vocabulary.programs))
    return MidiError(
        f"{name}: none of its notes is in the model's vocabulary (programs {programs})"
    )


@dataclass(frozen=True)
class KindNats:
    """How many tokens of a kind there are, and what they add to the model's nats per note."""

    tokens: int
    nats_per_note: Estimate


@dataclass(frozen=True)
class PieceLikelihood:
    """The model's figure for one piece."""

    name: str
    notes: int
    notes_left_out: int
    nats_per_note: float
    seconds: float


@dataclass(frozen=True)
class SetLikelihood:
    """How likely a model and baselines find a set of pieces."""

    name: str
    pieces: int
    notes: int
    tokens: int
    seconds: float
    notes_left_out: int
    interval: BootstrapSettings  # how the intervals of all estimates were found
    nats_per_note: dict[str, Estimate]  # by the names of the baselines, and "model"
    bits_per_second: dict[str, Estimate]  # likewise
    nats_per_token: Estimate  # of the model
    by_kind: dict[str, KindNats]  # of the model, by kind of token
    files: list[PieceLikelihood]

    @property
    def nats_by_kind(self) -> dict[str, Estimate]:
        """What each kind of token adds to the model's nats per note."""
        return {kind: its.nats_per_note for kind, its in self.by_kind.items()}


def measure_likelihood(
    model: Model, baselines: Mapping[str, NGram], pieces: EvaluationSet
) -> SetLikelihood:
    """Score whole pieces by a model and by baselines (see model/scoring.py).

    Every figure is a ratio of two sums over the P pieces, with an interval over them.
    """
    vocabulary = model.vocabulary
    tallies: list[Tally] = []
    baseline_nats: list[list[float]] = []  # of each piece, by each baseline
    seconds: list[float] = []
    for batch in WholePieces(pieces.split, vocabulary):
        ids, allowed = batch["pieces"], batch["allowed"]
        nats = model.token_nats(ids, allowed)
        for piece, mask, each, count in zip(ids, allowed, nats, batch["notes"], strict=True):
            kind = vocabulary.kind_of[piece[1:]]
            tallies.append(summarize(each, kind, count, len(vocabulary.kind_names)))
            baseline_nats.append([b.token_nats(piece, mask).sum() for b in baselines.values()])
            score = decode(piece, vocabulary)
            seconds.append(float(score.step_seconds(score.end_step)))
    columns = (pieces.split.names, tallies, pieces.notes_left_out, seconds)
    files = [
        PieceLikelihood(name, tally.notes, missing, tally.per_note, length)
        for name, tally, missing, length in zip(*columns, strict=True)
    ]
    who, notes = [*baselines, "model"], np.array([tally.notes for tally in tallies])
    by_kind = np.stack([tally.nats for tally in tallies])  # (P, K)
    tokens = np.stack([tally.counts for tally in tallies])
    counted = np.array(baseline_nats, dtype=np.float64).reshape(len(files), -1)
    totals = np.column_stack([counted, by_kind.sum(axis=1)])
    present = np.flatnonzero(tokens.any(axis=0))
    per_note = estimate_ratios(np.column_stack([totals, by_kind[:, present]]), notes)
    per_second = estimate_ratios(totals / np.log(2), np.array(seconds))
    return SetLikelihood(
        pieces.name,
        len(files),
        int(notes.sum()),
        int(tokens.sum()),
        float(np.sum(seconds)),
        sum(pieces.notes_left_out),
        SETTINGS,
        dict(zip(who, per_note, strict=False)),
        dict(zip(who, per_second, strict=True)),
        estimate_ratios(totals[:, -1:], tokens.sum(axis=1))[0],
        {
            vocabulary.kind_names[kind]: KindNats(int(tokens[:, kind].sum()), estimate)
            for kind, estimate in zip(present.tolist(), per_note[len(who) :], strict=True)
        },
        files,
    )


def measure_surprise(
    model: Model, path: str | Path
) -> tuple[Score, NDArray[np.float64], list[str]]:
    """Measure how surprising the model finds each note of a MIDI file.

    Returns:
        The piece; (N, 4) the nats of each of its notes by aspect (see evaluation/surprise.py), NaN
        for notes that the vocabulary has no token for; and a message for each change.
    """
    whole = read_files(model, [str(path)]).scores[0]
    score, is_known, messages = without_unknown(whole, model.vocabulary)
    if not len(score.notes):
        raise _nothing_known(str(path), model)
    ids = encode(score, model.vocabulary)
    nats = np.full((len(whole.notes), len(ASPECTS)), np.nan)
    nats[is_known] = note_nats(ids, model.token_nats([ids])[0], model.vocabulary)
    if not is_known.all():
        messages.insert(0, f"{int((~is_known).sum())} notes have no token, left out")
    return whole, nats, messages
