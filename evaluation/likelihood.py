"""Where a trained model meets music to be judged: how likely it finds pieces, and single notes.

evaluate.py is its command. What it gives is plain data, for JSON and for pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.batches.windows import WholePieces
from data.corpus.corpus import Corpus, CorpusOptions
from data.corpus.reader import MidiPieces, read_paths
from data.corpus.store import Split, token_arrays
from data.midi.instruments import Instruments
from data.midi.quantize import MidiError
from data.score import Score, ScoreBatch
from data.tokens.adapt import without_unknown
from data.tokens.batch_tokenizer import encode_batch
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Vocabulary
from evaluation.bootstrap import CONFIDENCE, RESAMPLES, SEED, intervals
from evaluation.ngrams import NGram
from evaluation.surprise import PARTS, note_nats
from generation.model import Model
from model.scoring import Tally, summarize

NATS_PER_BIT = float(np.log(2))


@dataclass(frozen=True)
class Music:
    """Some pieces to be scored.

    Attributes:
        name: of them all.
        split: their tokens.
        left_out: of each piece, notes that the vocabulary has no token for.
        told: a line for each piece that was changed, and each file that was left out.
    """

    name: str
    split: Split
    left_out: list[int]
    told: list[str]

    @classmethod
    def of(cls, corpus: Corpus, name: str) -> Music:
        """A split of a corpus."""
        split = corpus.split(name)
        return cls(name, split, [0] * len(split), [])

    @classmethod
    def of_scores(
        cls, name: str, names: Sequence[str], scores: Sequence[Score], vocabulary: Vocabulary
    ) -> Music:
        """Pieces that the vocabulary can spell, each under a name."""
        arrays = token_arrays(*encode_batch(ScoreBatch.of(scores), vocabulary), vocabulary)
        return cls(name, Split.of(names, arrays), [0] * len(scores), [])


def read_files(model: Model, paths: Sequence[str]) -> MidiPieces:
    """The pieces in MIDI files, and in folders of them, with the instruments that the model has.

    Raises:
        FileNotFoundError, MidiError, OSError: as `data.pieces.read_paths`.
    """
    settings = CorpusOptions.from_settings(model.summary.get("data", {}))
    return read_paths(paths, model.vocabulary.grid, Instruments(settings.instruments))


def music_of_files(model: Model, paths: Sequence[str]) -> Music:
    """MIDI files, and folders of them, as far as the model's vocabulary can represent them.

    Raises:
        FileNotFoundError, MidiError, OSError: as `read_files`; or nothing in them can be.
    """
    return music_of(model, read_files(model, paths))


def music_of(model: Model, readings: MidiPieces) -> Music:
    """Pieces that were read, as far as the model's vocabulary can represent them.

    Raises:
        MidiError: nothing in them can be.
    """
    told = readings.messages
    names, scores, left_out = [], [], []
    for number, name in enumerate(readings.names):
        score, is_known, changes = without_unknown(readings.scores[number], model.vocabulary)
        unkept = readings.unkept_notes[number]
        missing = int((~is_known).sum()) + unkept
        if missing:
            all_notes = len(is_known) + unkept
            changes.insert(0, f"{missing} of {all_notes} notes have no token, left out")
        if changes:
            told.append(f"{name}: {'; '.join(changes)}")
        if len(score.notes):
            names.append(name)
            scores.append(score)
            left_out.append(missing)
    if not scores:
        raise MidiError(_nothing_known(readings.names[0], model))
    music = Music.of_scores("files", names, scores, model.vocabulary)
    return replace(music, left_out=left_out, told=told)


def _nothing_known(name: str, model: Model) -> str:
    programs = " ".join(map(str, model.vocabulary.programs))
    return f"{name}: none of its notes is in the model's vocabulary (programs {programs})"


def likelihood(model: Model, baselines: Mapping[str, NGram], music: Music) -> dict[str, Any]:
    """How likely model and baselines find whole pieces (see model/scoring.py), as plain data.

    Every figure is the ratio of two sums over the pieces, `value`, with the bootstrap interval
    (see evaluation/bootstrap.py) from `low` to `high`.

    Returns:
        `nats_per_note` and `bits_per_second` of the baselines and the model; the model's
        `nats_per_token`, and `by_kind` of token how many `tokens` there are and what they add to
        its `nats_per_note`; what was scored, and of each of the `files` the model's figure.
    """
    vocabulary = model.vocabulary
    tallies: list[Tally] = []
    counted: list[list[float]] = []  # nats of each piece by each baseline
    seconds: list[float] = []
    for batch in WholePieces(music.split, vocabulary):
        pieces, allowed = batch["pieces"], batch["allowed"]
        nats = model.token_nats(pieces, allowed)
        for piece, mask, each, count in zip(pieces, allowed, nats, batch["notes"], strict=True):
            kind = vocabulary.kind_of[piece[1:]]
            tallies.append(summarize(each, kind, count, len(vocabulary.kind_names)))
            counted.append([float(b.token_nats(piece, mask).sum()) for b in baselines.values()])
            score = decode(piece, vocabulary)
            seconds.append(float(score.step_seconds(score.end_step)))
    by_kind = np.stack([tally.nats for tally in tallies])  # (P, K)
    tokens = np.stack([tally.counts for tally in tallies])
    totals = np.column_stack([np.array(counted).reshape(len(tallies), -1), by_kind.sum(axis=1)])
    notes, length = np.array([tally.notes for tally in tallies]), np.array(seconds)

    who = [*baselines, "model"]
    present = np.flatnonzero(tokens.any(axis=0))
    per_note = _figures(np.column_stack([totals, by_kind[:, present]]), notes)
    kinds = [vocabulary.kind_names[kind] for kind in present.tolist()]
    return {
        "name": music.name,
        "pieces": len(tallies),
        "notes": int(notes.sum()),
        "tokens": int(tokens.sum()),
        "seconds": float(length.sum()),
        "notes_left_out": sum(music.left_out),
        "interval": {"confidence": CONFIDENCE, "resamples": RESAMPLES, "seed": SEED},
        "nats_per_note": dict(zip(who, per_note, strict=False)),
        "bits_per_second": dict(zip(who, _figures(totals / NATS_PER_BIT, length), strict=True)),
        "nats_per_token": _figures(totals[:, -1:], tokens.sum(axis=1))[0],
        "by_kind": {
            name: {"tokens": int(tokens[:, kind].sum()), "nats_per_note": figure}
            for name, kind, figure in zip(kinds, present, per_note[len(who) :], strict=True)
        },
        "files": [
            {
                "name": name,
                "notes": tally.notes,
                "notes_left_out": missing,
                "nats_per_note": tally.per_note,
                "seconds": lasting,
            }
            for name, tally, missing, lasting in zip(
                music.split.names, tallies, music.left_out, seconds, strict=True
            )
        ],
    }


def _figures(parts: NDArray[Any], whole: NDArray[Any]) -> list[dict[str, float]]:
    """Of each of K columns, (P, K), its sum over that of the whole, (P,), and the interval."""
    wholes = np.broadcast_to(whole[:, None], parts.shape)
    values = parts.sum(axis=0) / whole.sum()
    return [
        {"value": value, "low": low, "high": high}
        for value, (low, high) in zip(
            values.tolist(), intervals(parts, wholes).tolist(), strict=True
        )
    ]


def surprises(model: Model, path: str | Path) -> tuple[Score, NDArray[np.float64], list[str]]:
    """How surprising the model finds each note of a MIDI file.

    Returns:
        The piece; (N, 4) the nats of each of its notes by what they say (see
        evaluation/surprise.py),
        NaN for notes that the vocabulary has no token for; and a line for what was changed.

    Raises:
        FileNotFoundError, MidiError: there is no such file, or no note in it can be scored.
    """
    readings = read_files(model, [str(path)])
    whole, vocabulary = readings.scores[0], model.vocabulary
    score, is_known, told = without_unknown(whole, vocabulary)
    if not len(score.notes):
        raise MidiError(_nothing_known(str(path), model))
    ids = encode(score, vocabulary)
    (nats,) = model.token_nats([ids])
    each = np.full((len(whole.notes), len(PARTS)), np.nan)
    each[is_known] = note_nats(ids, nats, vocabulary)
    if not is_known.all():
        told.insert(0, f"{int((~is_known).sum())} notes have no token, left out")
    return whole, each, told
