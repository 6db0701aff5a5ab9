"""Small folders of MIDI files for the tests."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from common.typed_json import from_json
from data.batches.datamodule import MusicDataModule
from data.batches.options import DataOptions
from data.canonical import canonical
from data.corpus.corpus import Corpus
from data.corpus.report import CorpusReport
from data.midi.io import write_midi
from data.score import BAR, DRUMS, NOTE, Score
from tests.music import GRID

# Real files: the tunes of the Nottingham collection. Tests of them are skipped without them.
NOTTINGHAM = Path(
    os.environ.get("NOTTINGHAM") or Path(__file__).parents[2] / "shared/corpora/nottingham"
)


def tune(seed: int, bars: int = 6) -> Score:
    """A tune over a drum, in bars of 4/4 with an upbeat and a change of tempo."""
    rng = np.random.default_rng(seed)
    lengths = np.array([(4, 4, 12), *[(4, 4, 48)] * bars], dtype=BAR)
    onsets = np.arange(0, 12 + 48 * bars, 12)
    notes = np.zeros(2 * len(onsets), dtype=NOTE)
    notes["onset"] = np.tile(onsets, 2)
    notes["duration"] = rng.choice([6, 12, 18], size=len(notes))
    notes["pitch"] = np.append(rng.integers(60, 72, size=len(onsets)), np.full(len(onsets), 36))
    notes["velocity"] = 80
    notes["program"] = np.repeat([0, DRUMS], len(onsets))
    tempo = np.where(np.arange(bars + 1) < 3, 100, 120)
    return canonical(notes, lengths, tempo, GRID)[0]


def transposed(score: Score, semitones: int) -> Score:
    """The same music in another key; drums stay."""
    notes = score.notes.copy()
    notes["pitch"][notes["program"] != DRUMS] += semitones
    return Score(notes, score.bars, score.tempo_bpm, score.grid)


def write_tunes(folder: Path, count: int, first: int = 0) -> Path:
    """Writes `count` different tunes of different lengths to a folder, and returns it."""
    for number in range(first, first + count):
        write_midi(tune(number, bars=3 + number % 7), folder / f"tune{number}.mid")
    return folder


def data_of_tunes(**settings) -> MusicDataModule:
    """The music in `tunes`, in windows of 64 tokens."""
    data = MusicDataModule(DataOptions(path="tunes", **settings), context_length=64)
    data.prepare_data()
    return data


def run_of_tunes(folder: Path, begin: Callable[[], None]) -> Path:
    """Begins a run in a folder in which are tunes, and returns the folder, with their tokens."""
    write_tunes(folder / "tunes", 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        begin()
    return folder


def enter_same_tunes(whole: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Goes to a folder with the tunes and tokens of `run_of_tunes`, and returns it."""
    for name in ("tunes", "datasets"):
        (folder / name).symlink_to(whole / name)
    monkeypatch.chdir(folder)
    return folder


def report_of(corpus: Corpus) -> CorpusReport:
    """What the corpus's report.json says."""
    return from_json(CorpusReport, (corpus.folder / "report.json").read_text())
