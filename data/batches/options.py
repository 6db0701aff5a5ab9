"""The options of what is learned from: the music, and how training windows are drawn."""

from dataclasses import dataclass
from pathlib import Path

from common.options import Count, Options, Positive, Share
from data.corpus.options import CorpusError, CorpusOptions

ID_SUFFIXES = (".npy", ".jsonl")  # of files of other sequences (data/batches/id_sequences.py)


@dataclass(frozen=True)
class WindowOptions(Options):
    """What is learned from, and how training windows of it are drawn."""

    path: str = "bach"  # a folder of MIDI files; or bach or folk; or a .npy or .jsonl file
    datasets: str = "datasets"  # the folder in which tokenized corpora are kept
    batch_size: Positive = 8  # training windows a step and device
    fit_windows: bool = False  # longer windows, and fewer of them, where eight bars are longer
    silence: Share = 0.0  # share of the windows in which some instruments are silent, but not all
    misreading: Share = 0.0  # share of the notes in windows that are a few semitones off
    given: Share = 0.0  # share of the windows in which some notes are known in advance
    chords: Share = 0.0  # share of the windows beside which their chords are known
    written: str | None = None  # a folder of pieces that trained models wrote, to learn from too
    seed: Count = 0  # of the choice of windows
    num_workers: Count = 0  # processes that prepare windows; 0: none beside training
    vocabulary_size: Positive | None = None  # ids of a .npy or .jsonl file; else counted


@dataclass(frozen=True)
class DataOptions(CorpusOptions, WindowOptions):
    """Music to train on, or sequences of another kind, and how it is read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocabulary_size is not None and not self.is_ids:
            raise CorpusError(f"{self.path}: vocabulary_size is for .npy and .jsonl files alone")
        if self.written is not None and self.is_ids:
            raise CorpusError(
                f"{self.path}: written pieces are learned from beside MIDI files alone"
            )

    @property
    def is_ids(self) -> bool:
        """Whether the data are other sequences, by the ending of their file's name."""
        return Path(self.path).suffix in ID_SUFFIXES

    @property
    def corpus(self) -> CorpusOptions:
        """The options on which the corpus depends."""
        return CorpusOptions.from_settings(vars(self))
