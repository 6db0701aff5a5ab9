"""The options of a corpus: how it is built from MIDI files."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from data.midi.instruments import Instruments
from data.score import SECONDS, Grid

SPLITS = ("train", "valid", "test")


class CorpusError(ValueError):
    """Raised where no corpus can be made or read; the message is one line, for people."""


@dataclass(frozen=True)
class CorpusOptions:
    """The options of a corpus.

    Raises:
        CorpusError: a value out of range.
    """

    grid: Literal["beats", "seconds"] = "beats"  # seconds: for performances that keep to no beat
    steps_per_beat: int = 12  # of a grid of beats; that of seconds is `SECONDS`
    instruments: Literal["original", "family", "piano"] = "original"  # see data.midi.instruments
    programs: tuple[int, ...] | None = None  # to keep; None: all
    tracks: tuple[int | str, ...] | None = None  # likewise
    transpose: int = 6  # semitones, up and down, by which the vocabulary lets every piece move
    valid: float = 0.1  # share of the pieces that is held out; one at least
    test: float = 0.1  # likewise
    seed: int = 0  # another seed, other pieces are held out
    deduplicate: bool = True  # use one of several copies, in any key; else all, in one split

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the options among the settings of a run, as they are kept with a model.

        Raises:
            CorpusError: a value out of range.
        """
        # a run's seed says which windows it draws, not which pieces are held out
        names = {field.name for field in fields(cls)} & settings.keys() - {"seed"}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value := settings[name], list) else value
            for name in names
        }
        return cls(**values)

    def __post_init__(self) -> None:
        try:
            self.time_grid, self.kept_instruments  # noqa: B018  # they check their values
            self.transpose + self.valid + self.test
        except (ValueError, TypeError) as error:
            raise CorpusError(str(error)) from None
        if not 0 <= self.transpose <= 127:
            raise CorpusError(f"transpose must be 0 to 127 semitones, not {self.transpose}")
        if self.valid < 0 or self.test < 0 or not self.valid + self.test < 1:
            raise CorpusError(
                f"the shares of valid and test must leave something to train on, "
                f"not be {self.valid} and {self.test}"
            )

    @property
    def time_grid(self) -> Grid:
        """The grid that the pieces are brought to."""
        return SECONDS if self.grid == "seconds" else Grid(self.steps_per_beat, self.grid)

    @property
    def kept_instruments(self) -> Instruments:
        """The instruments of the pieces that are kept."""
        return Instruments(self.instruments, self.programs, self.tracks)
