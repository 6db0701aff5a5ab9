"""Everything that is known of a model at once: what `evaluate.py all` prints, keeps and shows.

The figures are plain data, for JSON; evaluation/html_report.py makes a page of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.corpus.corpus import SPLITS, Corpus, CorpusError
from data.score import Score, ScoreBatch
from data.tokens.tokenizer import decode
from evaluation.likelihood import Music, likelihood, music_of, read_files
from evaluation.ngrams import NAMES, train
from evaluation.originality import originality
from evaluation.samples import measured, written_like
from evaluation.surprise import most_surprising, note_nats
from generation.model import Model

MOST_GIVEN = 4  # pieces of the files asked about that are kept to be shown
MOST_NOTES = 10  # listed as the most surprising


@dataclass(frozen=True)
class Piece:
    """A piece to see and to hear.

    Attributes:
        name: a file's, or what it is.
        score: its notes.
        figures: of it, as `judge.likelihood` gives them for a file.
        original: of it, as evaluation/originality.py gives it for a piece; empty where nobody
        asked. drawn: the PNG file that generate.py wrote beside it, if there is one.
    """

    name: str
    score: Score
    figures: dict[str, Any]
    original: dict[str, Any]
    drawn: Path | None = None


@dataclass(frozen=True)
class ModelSummary:
    """What there is to say of a model.

    Attributes:
        figures: all of them, as plain data.
        given: the files that were asked about.
        written: of the pieces it wrote for the statistics the likeliest, the middle one and the
            least likely.
        real: a held-out piece: of those of its split the one in the middle.
        nats: (N,) the surprise of each of its notes.
    """

    figures: dict[str, Any]
    given: list[Piece]
    written: list[Piece]
    real: Piece
    nats: NDArray[np.float64]


def overall(
    model: Model, corpus: Corpus, paths: Sequence[str], count: int, seed: int
) -> ModelSummary:
    """Judges a model by all that this program measures.

    Args:
        model: the model.
        corpus: that it was trained on.
        paths: MIDI files and folders that it is asked about too; none at all is fine.
        count: pieces that it writes, as long as those it was trained on.
        seed: of what is drawn.

    Raises:
        CorpusError: no piece is held out.
        FileNotFoundError, MidiError, OSError: as `judge.music_of_files`.
    """
    splits = [Music.of(corpus, name) for name in SPLITS[1:] if len(corpus.split(name))]
    if not splits:
        raise CorpusError(f"{corpus.folder}: no pieces are held out, so there is no measure")
    given, of_given = _given(model, corpus, paths)  # what is wrong with a file, first
    baselines = {name: train(corpus, order) for order, name in NAMES.items()}
    sets = [likelihood(model, baselines, music) for music in splits]

    scores = written_like(model, corpus, count, seed)
    names = [f"written {number}" for number in range(1, count + 1)]
    own = likelihood(model, {}, Music.of_scores("written", names, scores, model.vocabulary))
    original = originality(ScoreBatch.of(scores), names, corpus)
    ranks = _ranked(own["files"])
    chosen = list(dict.fromkeys([ranks[0], ranks[len(ranks) // 2], ranks[-1]]))
    written = [Piece(names[n], scores[n], own["files"][n], original["pieces"][n]) for n in chosen]

    ranks = _ranked(sets[-1]["files"])
    middle = ranks[len(ranks) // 2]
    ids = splits[-1].split.piece(middle)
    file, score = sets[-1]["files"][middle], decode(ids, model.vocabulary)
    nats = note_nats(ids, model.token_nats([ids])[0], model.vocabulary)
    figures = {
        "model": {
            "parameters": sum(weight.numel() for weight in model.decoder.parameters()),
            "decoder": asdict(model.decoder.config),
            "summary": model.summary,
        },
        "corpus": {
            "name": corpus.folder.name,
            "splits": {name: asdict(counts) for name, counts in corpus.splits.items()},
        },
        "likelihood": sets,
        "music": measured(scores, corpus, seed),
        "originality": original,
        "written": own,
        "given": of_given,
        "surprise": {
            "file": file["name"],
            "split": sets[-1]["name"],
            "nats": nats.sum(axis=1).tolist(),
            "most": most_surprising(score, nats, MOST_NOTES),
        },
    }
    real = Piece(file["name"], score, file, {})
    return ModelSummary(figures, given, written, real, nats.sum(axis=1))


def _given(
    model: Model, corpus: Corpus, paths: Sequence[str]
) -> tuple[list[Piece], dict[str, Any]]:
    """The first pieces of some files and folders, and the figures of all of them."""
    if not paths:
        return [], {}
    readings = read_files(model, paths)
    music = music_of(model, readings)
    own = likelihood(model, {}, music)
    original = originality(readings.scores, readings.names, corpus)
    by_name = {file["name"]: file for file in own["files"]}
    pieces = [
        Piece(
            name,
            readings.scores[number],
            by_name[name],
            original["pieces"][number],
            _picture_beside(name),
        )
        for number, name in enumerate(readings.names)
        if name in by_name
    ]
    return pieces[:MOST_GIVEN], {"likelihood": own, "originality": original, "told": music.told}


def _picture_beside(name: str) -> Path | None:
    """The picture that generate.py writes beside a MIDI file: it knows where the seed ends."""
    path = Path(name).with_suffix(".png")
    try:
        with path.open("rb") as file:
            return path if file.read(8) == b"\x89PNG\r\n\x1a\n" else None
    except OSError:
        return None


def _ranked(files: Sequence[dict[str, Any]]) -> list[int]:
    """The numbers of some pieces, the likeliest first; those without a figure are left out."""
    known = [n for n, file in enumerate(files) if not math.isnan(file["nats_per_note"])]
    return sorted(known or [0], key=lambda number: files[number]["nats_per_note"])
