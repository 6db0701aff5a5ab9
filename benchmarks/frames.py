"""The four data sets of Boulanger-Lewandowski et al. (2012), as papers score them: nats a frame.

    python -m benchmarks.frames PATH/JSB_Chorales.npz --minutes 30
    python -m benchmarks.frames PATH/JSB_Chorales.npz -c runs/JSB_Chorales/model.safetensors

A frame is the set of a piano's keys that sound, for an eighth (in JSB_Chorales a quarter). The file
holds for each split `SPLIT`, the frames of all pieces end to end, 88 keys from A0 packed as
np.packbits packs rows, and `SPLIT_frames`, the number of each piece's. The pieces become a folder
of MIDI files: a key that sounds on is one note (--strike: it is struck again after so many frames).
train.py trains on that folder; all options but ours are its own.

Frames come back from the tokens, up to silence before the first and after the last note. So the
nats of a split's tokens, End among them, over its frames are those of the frames, or a little more:
what a model gives to notes that fill the same frames otherwise is lost.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import train
from benchmarks.chorales import in_common_time, runs, write_corpus
from benchmarks.models import refused_in_a_line
from benchmarks.tables import parser_of
from common.arrays import Bools
from common.cli import fail
from data.corpus.corpus import Corpus
from data.corpus.embedded import VELOCITY
from data.score import Grid, Score
from data.tokens.tokenizer import decode
from evaluation.likelihood import EvaluationSet, measure_likelihood
from generation.model import corpus_of, load

CONFIG = "benchmarks/configs/frames.yaml"
KEYS, LOWEST = 88, 21  # of a piano; the pitch of the first
FRAMES_PER_QUARTER = {"JSB_Chorales": 1}  # else 2
Frames = Bools  # (F, KEYS): which keys sound


def read_frames(source: Path) -> dict[str, list[Frames]]:
    """Read the pieces of each split.

    Raises:
        ValueError: the file holds something else.
        OSError: it cannot be read.
    """
    with np.load(source, allow_pickle=False) as file:
        arrays = dict(file)
    splits = {}
    for name in (each for each in arrays if f"{each}_frames" in arrays):
        sounds = np.unpackbits(arrays[name], axis=1)[:, :KEYS].astype(bool)
        counts = arrays[f"{name}_frames"]
        if sounds.shape != (counts.sum(), KEYS):
            raise ValueError(f"{name}: not {KEYS} keys in each of {counts.sum():,} frames")
        splits[name] = np.split(sounds, np.cumsum(counts)[:-1])
    if not splits:
        raise ValueError("no split and its numbers of frames")
    return splits


def score_of(sounds: Frames, grid: Grid, strike: int = 0) -> Score:
    """Turn frames into a piece in bars of 4/4 for a piano.

    A key that sounds on is struck again every `strike` frames of the piece; 0: it is held.
    """
    rows = [
        (onset, length, LOWEST + key, VELOCITY, 0)
        for key, own in enumerate(sounds.T)
        for onset, length in zip(*runs(own, strike), strict=True)
        if own[onset]
    ]
    return in_common_time(rows, len(sounds), grid, grid.default_tempo_bpm)


def frames_of(score: Score) -> Frames:
    """Return the frames of a Score: undo `score_of`, up to silence at the end."""
    notes = score.notes
    sounds = np.zeros((int((notes["onset"] + notes["duration"]).max(initial=0)), KEYS), dtype=bool)
    for onset, duration, pitch, *_ in notes.tolist():
        sounds[onset : onset + duration, pitch - LOWEST] = True
    return sounds


def check(splits: dict[str, list[Frames]], corpus: Corpus) -> None:
    """Assert that the tokens of a corpus hold the source, frame for frame."""

    def heard(sounds: Frames) -> Frames:
        at = np.flatnonzero(sounds.any(axis=1))
        return sounds[at[0] : at[-1] + 1]

    for name, pieces in splits.items():
        split = corpus.split(name)
        assert len(split) == len(pieces), f"{name}: {len(split)} of {len(pieces)}"
        for index, file in enumerate(split.names):
            own = frames_of(decode(split.piece(index), corpus.vocabulary))
            source = pieces[int(Path(file).stem)]
            assert np.array_equal(heard(own), heard(source)), f"{file}: not what the source says"


def report(options: argparse.Namespace, others: list[str]) -> None:
    """Train a model, or read one, and print the figures."""
    splits, name = read_frames(options.source), options.source.stem
    grid = Grid(steps_per_beat=FRAMES_PER_QUARTER.get(name, 2))
    folder = Path(options.datasets) / "frames" / f"{name}-{options.strike}"
    pieces = {
        split: [score_of(sounds, grid, options.strike) for sounds in each]
        for split, each in splits.items()
    }
    write_corpus(pieces, folder)
    checkpoint = options.checkpoint
    if checkpoint is None:
        checkpoint = options.run or Path("runs") / name
        if checkpoint.exists():
            fail(f"{checkpoint}: holds an earlier run; give another --run, or -c to score it")
        run = ["--config", CONFIG, "--run", str(checkpoint), "--data.path", str(folder)]
        train.main(["fit", *run, "--data.steps_per_beat", str(grid.steps_per_beat), *others])
    model = load(checkpoint)
    corpus = corpus_of(model, str(folder), options.datasets)
    check(splits, corpus)
    for split in [each for each in splits if each != "train"]:
        figures = measure_likelihood(model, {}, EvaluationSet.of_split(corpus, split))
        frames, nats = sum(map(len, splits[split])), figures.nats_per_note["model"]
        value, low, high = (
            each * figures.notes / frames for each in (nats.value, nats.low, nats.high)
        )
        print(f"{split}: {figures.pieces} pieces, {frames:,} frames, {figures.notes:,} notes")
        print(f"nats a frame {value:.3f} [{low:.3f}, {high:.3f}], a note {nats.value:.3f}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("source", type=Path, help="a .npz file of frames")
    parser.add_argument(
        "--strike", type=int, default=0, metavar="FRAMES", help="a key is struck again (default: 0)"
    )
    parser.add_argument("--run", type=Path, help="where to (default: runs/ and the file's name)")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    parser.add_argument(
        "-c", "--checkpoint", type=Path, help="a model that is trained, to be scored"
    )
    options, others = parser.parse_known_args(argv)
    if others and options.checkpoint:
        fail(f"{' '.join(others)}: options of a training run, but none is asked for")
    try:
        with refused_in_a_line():
            report(options, others)
    except ValueError as error:
        fail(f"{options.source}: {error}")


if __name__ == "__main__":
    main()
