"""How a corpus is built."""

from __future__ import annotations

from dataclasses import dataclass

from data.score import Grid

SPLITS = ("train", "valid", "test")


class CorpusError(ValueError):
    """No corpus can be made or read; the message is one line, for people."""


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is built.

    Attributes:
        steps_per_beat: of the grid.
        transpose: semitones, up and down, by which the vocabulary must let every piece move.
        valid, test: shares of the pieces that are held out; valid gets one at least.
        seed: another seed, other pieces are held out.
        deduplicate: whether one of several copies, in any key, is used; else all are, in one
            split. Folders with splits of their own keep their copies anyway.

    Raises:
        CorpusError: a value out of range.
    """

    steps_per_beat: int = 12
    transpose: int = 6
    valid: float = 0.1
    test: float = 0.1
    seed: int = 0
    deduplicate: bool = True

    def __post_init__(self) -> None:
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
    def grid(self) -> Grid:
        """The grid that the pieces are brought to."""
        return Grid(self.steps_per_beat)
