"""The options of a corpus: how it is built from MIDI files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from data.midi.bars import MAX_BAR_BEATS
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
    parts: Literal["program", "track"] = "program"  # who plays: programs, or tracks by their names
    time_signature: str | None = None  # such as 4/4, of files whose own is wrong (data.midi.bars)
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
            if self.parts not in ("program", "track"):
                raise ValueError(f"parts must be program or track, not {self.parts!r}")
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
        """The grid that the pieces are brought to, the names of parts still unknown."""
        if self.grid == "seconds" and self.time_signature is None:
            return SECONDS
        return Grid(self.steps_per_beat, self.grid, meter=_meter(self.time_signature))

    @property
    def kept_instruments(self) -> Instruments:
        """The instruments of the pieces that are kept."""
        return Instruments(self.instruments, self.programs, self.tracks)


def _meter(text: str | None) -> tuple[int, int] | None:
    """Return a time signature's numerator and denominator.

    Raises:
        ValueError: it is none.
    """
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,2})/(1|2|4|8)", text)
    if not match or not 1 <= int(match[1]) * 4 <= MAX_BAR_BEATS * int(match[2]):
        raise ValueError(f"a time signature must be such as 4/4 or 6/8, not {text!r}")
    return int(match[1]), int(match[2])
