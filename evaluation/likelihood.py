"""How likely a model finds whole pieces, each note of one, and sequences that are not music."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np
import pretty_midi

from common.arrays import Bools, Ints, Reals
from data.batches.id_sequences import IdSequences
from data.batches.windows import WholePieces
from data.corpus.corpus import Corpus, CorpusOptions
from data.corpus.reader import MidiPieces, read_paths
from data.corpus.store import Split
from data.instrument_names import instrument_name
from data.midi.instruments import Instruments
from data.midi.quantize import MidiError
from data.score import DRUMS, Score
from data.tokens.adapt import without_unknown
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Kind, Vocabulary
from evaluation.bootstrap import Estimate, estimate_ratios
from generation.model import Model
from generation.sequences import SequenceModel
from model.scoring import Tally, summarize, token_nats

# The aspects of a note, and the kinds of token that encode each.
ASPECTS = {
    "when": (Kind.BAR, Kind.LENGTH, Kind.TEMPO, Kind.POSITION),
    "what": (Kind.NOTE,),
    "how long": (Kind.EXTEND, Kind.DURATION),
    "how loud": (Kind.VELOCITY,),
}

# Takes a piece's ids (T,) and what is allowed; returns the nats (T - 1,) after Start.
Baseline: TypeAlias = Callable[[Ints, Bools], Reals]


@dataclass(frozen=True)
class EvaluationSet:
    """Pieces that are scored together."""

    name: str
    split: Split  # their tokens
    notes_left_out: Sequence[int]  # of each piece: those without tokens in the vocabulary
    messages: Sequence[str] = ()  # for each piece that was changed, and each file left out

    @classmethod
    def of_split(cls, corpus: Corpus, name: str) -> Self:
        """Return a split of a corpus."""
        split = corpus.split(name)
        return cls(name, split, [0] * len(split))

    @classmethod
    def of_scores(
        cls, name: str, names: Sequence[str], scores: Sequence[Score], vocabulary: Vocabulary
    ) -> Self:
        """Return pieces with a name each; the vocabulary must have tokens for all their notes."""
        pieces = [encode(score, vocabulary) for score in scores]
        return cls(name, Split.of_pieces(names, pieces, vocabulary), [0] * len(scores))

    @classmethod
    def of_files(cls, model: Model, files: MidiPieces) -> Self:
        """Return the pieces in MIDI files, as far as the model's vocabulary can represent them."""
        names, scores, notes_left_out, messages = [], [], [], list(files.messages)
        found = zip(files.names, files.scores, files.unkept_notes, strict=True)
        for name, whole, unkept in found:
            score, is_known, changes = without_unknown(whole, model.vocabulary)
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
            programs = " ".join(map(str, model.vocabulary.programs))
            raise MidiError(
                f"{files.names[0]}: none of its notes is in the model's vocabulary "
                f"(programs {programs})"
            )
        split = cls.of_scores("files", names, scores, model.vocabulary).split
        return cls("files", split, notes_left_out, messages)


def read_files(model: Model, paths: Sequence[str]) -> MidiPieces:
    """Read MIDI files, and folders of them, with the instruments that the model knows."""
    settings, vocabulary = CorpusOptions.from_settings(model.record.data), model.vocabulary
    kept = Instruments(settings.kept_instruments.mode)
    if settings.instruments in ("auto", "common") and not vocabulary.grid.parts:
        pitched = tuple(program for program in vocabulary.programs if program != DRUMS)
        kept = Instruments("common", common=pitched)
    return read_paths(paths, vocabulary.grid, kept)


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
    nats_per_note: dict[str, Estimate]  # by the names of the baselines, and "model"
    bits_per_second: dict[str, Estimate]  # likewise
    nats_per_token: Estimate  # of the model
    nats_by_kind: dict[str, Estimate]  # what each kind of token adds to the model's nats per note
    files: list[PieceLikelihood]


def measure_likelihood(
    model: Model, baselines: Mapping[str, Baseline], pieces: EvaluationSet
) -> SetLikelihood:
    """Score whole pieces by a model and by baselines (see model/scoring.py).

    Every figure is a ratio of two sums over the P pieces, with an interval.
    """
    vocabulary = model.vocabulary
    tallies: list[Tally] = []
    baseline_nats: list[list[float]] = []  # for each piece, by each baseline
    seconds: list[float] = []
    for batch in WholePieces(pieces.split, Grammar(vocabulary).masks):
        ids, allowed = batch["pieces"], batch["allowed"]
        scored = model.token_nats(ids, allowed)
        for piece, mask, each, count in zip(ids, allowed, scored, batch["notes"], strict=True):
            kind = vocabulary.kind_of[piece[1:]]
            tallies.append(summarize(each, kind, count, len(vocabulary.kind_names)))
            baseline_nats.append([nats(piece, mask).sum() for nats in baselines.values()])
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
        dict(zip(who, per_note, strict=False)),
        dict(zip(who, per_second, strict=True)),
        estimate_ratios(totals[:, -1:], tokens.sum(axis=1))[0],
        {
            vocabulary.kind_names[kind]: estimate
            for kind, estimate in zip(present.tolist(), per_note[len(who) :], strict=True)
        },
        files,
    )


@dataclass(frozen=True)
class SequenceLikelihood:
    """How likely a model and n-grams find the sequences of a split; End counts, too."""

    name: str
    sequences: int
    ids: int
    nats_per_id: dict[str, Estimate]  # by the names of the n-grams, and "model"


def measure_sequences(
    model: SequenceModel, baselines: Mapping[str, Baseline], source: IdSequences, name: str
) -> SequenceLikelihood:
    """Score the sequences of a split, each as a whole (see model/scoring.py)."""
    split = source.split(name)
    nats: dict[str, list[float]] = {each: [] for each in (*baselines, "model")}
    for batch in WholePieces(split, source.vocabulary.masks):
        pieces, allowed = batch["pieces"], batch["allowed"]
        scored = token_nats(model.steps, pieces, allowed, rebase=model.rebase)
        nats["model"] += [each.sum() for each in scored]
        for each, score in baselines.items():
            nats[each] += [score(*both).sum() for both in zip(pieces, allowed, strict=True)]
    sums, ids = np.array([*nats.values()]).T, split.note_counts  # (P, K), (P,)
    estimates = dict(zip(nats, estimate_ratios(sums, ids.astype(np.float64)), strict=True))
    return SequenceLikelihood(name, len(split), int(ids.sum()), estimates)


@dataclass(frozen=True)
class NoteSurprise:
    """How surprising one note is."""

    note: int  # its index in the Score
    place: str  # where it begins, in words; an upbeat is bar 0
    program: int
    instrument: str
    name: str
    nats: float  # its surprise, the sum of `parts`
    parts: dict[str, float]  # by aspect

    @property
    def label(self) -> str:
        """The note in words: where it is, what it is, who plays it, and how surprising it is."""
        return (
            f"{self.place}: {self.name}, {self.instrument} ({self.program}), {self.nats:.1f} nats"
        )


def note_nats(ids: Ints, nats: Reals, vocabulary: Vocabulary) -> Reals:
    """Return (N, 4): the nats of each note of a piece in Score order, one column for each aspect.

    The tokens of a note are its own, and those between the note before it and itself: a bar and a
    position count for the first note there. So every token except End is counted once. The ids (T,)
    go from Start to End. The nats (T - 1,) are those of each id after Start.
    """
    kinds = vocabulary.kind_of[ids[1:-1]]
    owner = np.cumsum(kinds == Kind.NOTE) - 1 + np.isin(kinds, ASPECTS["when"])
    aspect_of = np.zeros(len(Kind), dtype=np.int64)
    for aspect, members in enumerate(ASPECTS.values()):
        aspect_of[list(members)] = aspect
    cells = np.zeros((int((kinds == Kind.NOTE).sum()), len(ASPECTS)))
    np.add.at(cells, (owner, aspect_of[kinds]), nats[:-1])
    return cells


def most_surprising(score: Score, nats: Reals, limit: int) -> list[NoteSurprise]:
    """Return at most `limit` notes of a piece, the most surprising first.

    The nats are (N, 4), from `note_nats`; NaN for notes that were not scored.
    """
    total = nats.sum(axis=1)
    rows = np.argsort(-total, kind="stable")[: min(limit, int(np.isfinite(total).sum()))]
    return [_note_surprise(score, row, nats[row]) for row in rows.tolist()]


def _note_surprise(score: Score, row: int, nats: Reals) -> NoteSurprise:
    """Describe one note of a Score; `nats` (4,) are those of its aspects."""
    onset, _, pitch, _, program = score.notes[row].tolist()
    if program == DRUMS:
        name = pretty_midi.note_number_to_drum_name(pitch) or str(pitch)
    else:
        name = pretty_midi.note_number_to_name(pitch)
    place = f"at {float(score.step_seconds(onset)):.2f} s"
    if score.grid.has_meter:
        bar = int(np.searchsorted(score.bar_starts, onset, side="right")) - 1
        unit = 4 * score.grid.steps_per_beat / int(score.bars["denominator"][bar])
        beat = round(1 + (onset - int(score.bar_starts[bar])) / unit, 3)
        place = f"bar {bar + score.first_number}, beat {beat:g}"
    return NoteSurprise(
        row,
        place,
        program,
        instrument_name(program, score.grid),
        name,
        float(nats.sum()),
        dict(zip(ASPECTS, nats.tolist(), strict=True)),
    )


def measure_surprise(model: Model, path: str | Path) -> tuple[Score, Reals, Sequence[str]]:
    """Measure how surprising the model finds each note of a MIDI file.

    Returns:
        The piece; (N, 4) the nats of each note by aspect (see `note_nats`), NaN for notes for which
        the vocabulary has no tokens; and a message for each change.
    """
    if Path(path).is_dir():
        raise MidiError(f"{path}: a folder, where a music file is needed")
    files = read_files(model, [str(path)])
    whole, pieces = files.scores[0], EvaluationSet.of_files(model, files)
    _, is_known, _ = without_unknown(whole, model.vocabulary)
    nats, ids = np.full((len(whole.notes), len(ASPECTS)), np.nan), pieces.split.piece(0)
    nats[is_known] = note_nats(ids, model.token_nats([ids])[0], model.vocabulary)
    return whole, nats, pieces.messages
