"""The options of what is learned from: the music, and how training windows are drawn."""

from dataclasses import dataclass
from pathlib import Path

from common.options import Count, Options, Positive, Share
from data.corpus.options import CorpusError, CorpusOptions

ID_SUFFIXES = (".npy", ".jsonl")  # of files of other sequences (data/batches/id_sequences.py)


@dataclass(frozen=True)
class WindowOptions(Options):
    """What is learned from, and how training windows of it are drawn."""

    path: str = "bach"
    """A folder of MIDI files; or bach or folk, the embedded corpora; or a .npy or .jsonl file."""
    datasets: str = "datasets"
    """The folder in which tokenized corpora are kept."""
    batch_size: Positive = 8
    """Training windows a step and device."""
    silence: Share = 0.0
    """Share of the training windows in which some instruments are silent, but not all."""
    misreading: Share = 0.0
    """Share of the notes that are moved by a few semitones in training windows."""
    given: Share = 0.0
    """Share of the training windows in which some notes are given: known in advance."""
    written: str | None = None
    """A folder of MIDI files that trained models wrote, to be learned from as well."""
    seed: Count = 0
    """Of the choice of training windows."""
    num_workers: Count = 0
    """Processes that prepare training windows; 0: none beside training."""
    vocabulary_size: Positive | None = None
    """How many ids there are in other sequences; music knows by itself."""


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
