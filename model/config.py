"""What a decoder looks like, and how ids are chosen from its logits; no torch is needed."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from common.interface import OCTAVE
from common.options import Options, Positive, Range, Share

REACH = 24  # semitones of the interval head; all notes farther away share one row
STEPS, CLASSES = 2 * REACH + 2, OCTAVE + 1  # distances that it has rows for, and of no reference
NEAR = 9  # steps of the end head; all ends farther away share one row
END_ROWS = 2 * NEAR + 3  # for each end: distances, beyond the longest duration, none
LONGEST = 512.0  # steps, the longest period of rotary_time

Size = Annotated[int, Range(1, 2**20)]
SizeOrNone = Annotated[int, Range(0, 2**20)]
Dropout = Annotated[float, Range(0, 0.99)]  # of all, nothing would be left to scale up
Positions = Literal["sinusoidal", "rotary", "rotary_time"]


@dataclass(frozen=True)
class DecoderOptions(Options):
    """What people choose of a decoder."""

    n_layer: Size = 4  # blocks, one after the other
    n_head: Size = 4  # H, attention heads in each attention sub-layer
    n_embd: Size = 128  # D, width of the residual stream; n_head times an even number
    context_length: Size = 512  # C, the most tokens that are seen at once
    dropout: Dropout = 0.0  # share of numbers zeroed, in training, after embedding and sub-layers
    side_dropout: Dropout = 0.0  # share of the side input's blocks zeroed, token by token, likewise
    n_attention: Literal[1, 2] = 1  # attention sub-layers a block; 2: one in an encoder's place
    positions: Positions = "rotary"  # added to embeddings, or (rotary) turning queries and keys
    norm: Literal["layer", "rms"] = "rms"  # LayerNorm (mean 0, variance 1, bias) or RMSNorm
    norm_position: Literal["post", "pre"] = "pre"  # after each residual sum, or before sub-layers
    activation: Literal["relu", "squared_relu"] = "squared_relu"  # feed-forward
    qk_norm: bool = True  # queries and keys are brought to a root mean square of 1
    bias: bool = False  # the feed-forward layer's b_1 and b_2
    interval_head: bool = True  # logits of notes by distance from what was heard, added to others
    end_head: bool = True  # logits of durations by distance from where other notes end, likewise

    def __post_init__(self) -> None:
        super().__post_init__()
        rotates_by_time = self.positions == "rotary_time"
        multiple, kind = (4, "a multiple of 4") if rotates_by_time else (2, "an even number")
        if self.n_embd % (multiple * self.n_head):
            raise ValueError(
                f"n_embd must be n_head times {kind} (with positions {self.positions}): "
                f"{self.n_embd} with {self.n_head} heads is not"
            )


@dataclass(frozen=True)
class DataShape(Options):
    """What the data decide of a decoder: the vocabulary and the side input."""

    vocabulary_size: Size  # V, how many different token ids there are
    side_blocks: tuple[SizeOrNone, ...] = ()  # features in each block of the side input; (): none
    n_programs: SizeOrNone = 0  # P, programs with references in the side input (`IntervalHead`)
    n_pitches: SizeOrNone = 0  # N, pitches a program
    first_note: SizeOrNone = 0  # id of the first of these P N notes
    n_classes: Literal[0, 12] = 0  # pitch classes that are told to sound (`IntervalHead`)
    n_durations: SizeOrNone = 0  # durations that one id tells (`EndHead`)
    first_duration: SizeOrNone = 0  # id of the first of them; the one before, Extend, adds the last


@dataclass(frozen=True)
class DecoderConfig(DecoderOptions, DataShape):
    """The shape of a decoder, all that `Decoder` is built from.

    Raises:
        ValueError: a value that no decoder can have; the message names the field.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first_note + self.n_programs * self.n_pitches > self.vocabulary_size:
            raise ValueError("the notes with logits by interval go beyond the vocabulary")
        if self.first_duration + self.n_durations > self.vocabulary_size:
            raise ValueError("the durations go beyond the vocabulary")
        if self.positions == "rotary_time" and not self.side_blocks:
            raise ValueError(
                "rotary_time needs the time of each token, and there is none: try rotary"
            )

    @property
    def has_interval_head(self) -> bool:
        """Whether there is an `IntervalHead`."""
        return self.interval_head and bool(self.side_blocks) and self.n_programs > 0

    @property
    def has_end_head(self) -> bool:
        """Whether there is an `EndHead`."""
        return self.end_head and bool(self.side_blocks) and self.n_durations > 0

    @property
    def n_features(self) -> int:
        """S, the features of the side input, numbered from 1."""
        return sum(self.side_blocks)


def interval_rows(n_programs: int, n_classes: int) -> int:
    """Return how many rows the interval head's table has: steps, classes, parallels, verticals."""
    return n_programs * (3 * (STEPS + CLASSES) + OCTAVE + n_classes)


# The fields that weights must fit: all that people choose but dropout and the context.
_ASIDE = ("dropout", "side_dropout", "context_length")
SHAPE = tuple(f.name for f in fields(DecoderOptions) if f.name not in _ASIDE)


@dataclass(frozen=True)
class SamplingOptions(Options):
    """How one id is chosen from logits; by default as the model says, without any filter.

    Raises:
        ValueError: a value out of range; the message names it.
    """

    temperature: Annotated[float, Range(0)] = 1.0  # of pitches, or of all: below 1 safer, above
    # bolder; 0: the likeliest
    top_k: Positive | None = None  # only the k likeliest ids
    top_p: Annotated[float, Range(1e-9, 1)] = 1.0  # only the likeliest that together are so likely
    min_p: Share = 0.0  # only ids at least this likely, as a share of the likeliest
    rhythm_temperature: Annotated[float, Range(1e-9)] | None = None  # of all else: when notes
    # begin, who plays, how long
