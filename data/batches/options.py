"""The options of what a model learns from: the music, and how training windows are drawn."""

from dataclasses import dataclass
from pathlib import Path

from common.options import Count, Options, Positive, Share
from data.corpus.options import ID_SUFFIXES, CorpusError, CorpusOptions


@dataclass(frozen=True)
class WindowOptions(Options):
    """What a model learns from, and how its training windows are drawn."""

    path: str = "bach"  # a folder of MIDI files or scores; bach or folk; or a .npy or .jsonl file
    datasets: str = "datasets"  # the folder that keeps tokenized corpora
    batch_size: Positive = 8  # training windows in each step, on each device
    fit_windows: bool = False  # if eight bars do not fit, make windows longer, and fewer
    silence: Share = 0.0  # share of the windows in which some, not all, instruments fall silent
    misreading: Share = 0.0  # share of the notes that the model reads a few semitones off
    given: Share = 0.0  # share of the windows that come with some notes known in advance
    stretch: Share = 0.0  # share by which performances (a grid of seconds) become longer or shorter
    chords: Share = 0.0  # share of the windows that come with their chords known
    written: str | None = None  # a folder of pieces that models wrote, to learn from as well
    seed: Count = 0  # random seed of the choice of windows
    num_workers: Count = 0  # processes that prepare windows; 0: training prepares them itself
    vocabulary_size: Positive | None = None  # number of ids in a .npy or .jsonl file; null: counted


@dataclass(frozen=True)
class DataOptions(CorpusOptions, WindowOptions):
    """The music or other sequences to train on, and how they are read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocabulary_size is not None and not self.is_ids:
            raise CorpusError(f"{self.path}: vocabulary_size is only for .npy and .jsonl files")
        if self.written is not None and self.is_ids:
            raise CorpusError(f"{self.path}: written pieces need music to train on, not ids")

    @property
    def is_ids(self) -> bool:
        """Whether the data are sequences that are not music, by the ending of the file's name."""
        return Path(self.path).suffix in ID_SUFFIXES

    @property
    def corpus(self) -> CorpusOptions:
        """The options that decide what the corpus is."""
        return CorpusOptions.from_settings(vars(self))
