"""The options of a corpus: how it is built from music files."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from common.options import Options, Range
from data.midi.instruments import Instruments
from data.score import DRUMS, MAX_BAR_BEATS, MOST_STEPS, SECONDS, Grid

SPLITS = ("train", "valid", "test")
FOLDERS = {**dict(zip(SPLITS, SPLITS, strict=True)), "validation": "valid", "val": "valid"}
ID_SUFFIXES = (".npy", ".jsonl")  # of files with other sequences (data/batches/id_sequences.py)
Program = Annotated[int, Range(0, DRUMS)]
Track = Annotated[int, Range(1)]
Steps = Annotated[int, Range(1, MOST_STEPS["beats"])]
OPEN = {"grid": "auto", "instruments": "auto", "parts": "auto"}  # the music decides these


class CorpusError(ValueError):
    """Raised when a corpus cannot be made or read; the message is one line, for people."""


@dataclass(frozen=True)
class CorpusOptions(Options):
    """How music is read.

    Raises:
        CorpusError: a value is out of range.
    """

    grid: Literal["auto", "beats", "seconds"] = "beats"  # seconds: for music that keeps to no beat
    steps_per_beat: Steps = 12  # steps in a quarter note, on a grid of beats
    instruments: Literal["auto", "original", "common", "piano"] = "original"  # what plays the notes
    programs: tuple[Program, ...] | None = None  # the programs to keep, 128 for drums; else all
    tracks: tuple[Track | str, ...] | None = None  # the tracks to keep, by name or by number from 1
    parts: Literal["auto", "program", "track"] = "program"  # what a part is: a program or a track
    time_signature: str | None = None  # such as 4/4: replaces those of files that have wrong ones
    transpose: Annotated[int, Range(0, 127)] = 6  # semitones that windows may move, up or down

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
            self.time_grid  # noqa: B018  # the property checks the values
            for name, kept in (("programs", self.programs), ("tracks", self.tracks)):
                if kept == ():
                    raise ValueError(f"no {name} to keep: name some, or leave this out to keep all")
        except ValueError as error:
            raise CorpusError(str(error)) from None

    @property
    def time_grid(self) -> Grid:
        """The grid that the pieces are brought to; it does not know the names of parts yet.

        It counts beats if the music is still to decide.
        """
        if self.grid == "seconds" and self.time_signature is None:
            return SECONDS
        kind: Literal["beats", "seconds"] = "seconds" if self.grid == "seconds" else "beats"
        return Grid(self.steps_per_beat, kind, meter=_meter(self.time_signature))

    @property
    def kept_instruments(self) -> Instruments:
        """The instruments of the pieces that are kept. Which ones are common is not known yet."""
        mode = "original" if self.instruments == "auto" else self.instruments
        return Instruments(mode, self.programs, self.tracks)

    @property
    def is_open(self) -> bool:
        """Whether the music is still to decide some option."""
        return any(getattr(self, name) == word for name, word in OPEN.items())


def _meter(text: str | None) -> tuple[int, int] | None:
    """Return the numerator and denominator of a time signature; None: there is none.

    Raises:
        ValueError: the text is no time signature.
    """
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,2})/(1|2|4|8)", text)
    if not match or not 1 <= int(match[1]) * 4 <= MAX_BAR_BEATS * int(match[2]):
        raise ValueError(f"a time signature must be such as 4/4 or 6/8, not {text!r}")
    return int(match[1]), int(match[2])
