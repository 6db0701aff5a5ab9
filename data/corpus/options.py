"""The options of a corpus: how it is built from MIDI files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from data.midi.instruments import Instruments, InstrumentsError
from data.score import SECONDS, Grid

SPLITS = ("train", "valid", "test")


class CorpusError(ValueError):
    """Raised where no corpus can be made or read; the message is one line, for people."""


@dataclass(frozen=True)
class CorpusOptions:
    """The options of a corpus.

    Attributes:
        grid: `beats`, or `seconds` for performances that keep to no beat.
        steps_per_beat: of a grid of beats; that of seconds is `SECONDS`.
        instruments: `original`, `family` or `piano`; see `data.midi.instruments`.
        programs, tracks: which to keep; None: all.
        transpose: semitones, up and down, by which the vocabulary must let every piece move.
        valid, test: shares of the pieces that are held out; valid gets one at least.
        seed: another seed, other pieces are held out.
        deduplicate: whether one of several copies, in any key, is used; else all are, in one
            split. Folders with splits of their own keep their copies anyway.

    Raises:
        CorpusError: a value out of range.
    """

    grid: Literal["beats", "seconds"] = "beats"
    steps_per_beat: int = 12
    instruments: Literal["original", "family", "piano"] = "original"
    programs: tuple[int, ...] | None = None
    tracks: tuple[int | str, ...] | None = None
    transpose: int = 6
    valid: float = 0.1
    test: float = 0.1
    seed: int = 0
    deduplicate: bool = True

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> CorpusOptions:
        """Return the options among the settings of a run, as they are kept with a model.

        Raises:
            CorpusError: a value out of range.
        """
        known = {f.name: settings[f.name] for f in fields(cls) if f.name in settings}
        known.pop("seed", None)  # of a run: which windows it draws, not which pieces it holds out
        listed = {name: value for name, value in known.items() if isinstance(value, list)}
        return cls(**known | {name: tuple(value) for name, value in listed.items()})

    def __post_init__(self) -> None:
        try:
            self.kept_instruments  # noqa: B018  # it checks its values
        except InstrumentsError as error:
            raise CorpusError(str(error)) from None
        if self.grid not in ("beats", "seconds"):
            raise CorpusError(f"grid must be beats or seconds, not {self.grid!r}")
        if self.steps_per_beat < 1:
            raise CorpusError(f"steps_per_beat must be 1 or more, not {self.steps_per_beat}")
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
        return SECONDS if self.grid == "seconds" else Grid(self.steps_per_beat)

    @property
    def kept_instruments(self) -> Instruments:
        """The instruments of the pieces that are kept."""
        return Instruments(self.instruments, self.programs, self.tracks)
