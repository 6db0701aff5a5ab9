"""The options of a decoder, and of choosing ids from its logits; this module needs no torch."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from common.interface import OCTAVE
from common.options import Options, Positive, Range, Share

REACH = 24  # semitones up or down that the interval head tells apart; beyond, all count as 24
STEPS, CLASSES = 2 * REACH + 2, OCTAVE + 1  # its rows of distances; the last of each: no reference
NEAR = 9  # grid steps before or after that the end head tells apart; beyond, all count as 9
END_ROWS = 2 * NEAR + 3  # for each end: the distances, too far for a Duration, no end
LONGEST = 512.0  # grid steps: the longest period of rotary_time

Size = Annotated[int, Range(1, 2**20)]
SizeOrNone = Annotated[int, Range(0, 2**20)]
Dropout = Annotated[float, Range(0, 0.99)]  # at 1, nothing would be left to scale up
Positions = Literal["sinusoidal", "rotary", "rotary_time"]


@dataclass(frozen=True)
class DecoderOptions(Options):
    """What people can choose about a decoder."""

    n_layer: Size = 4  # the number of blocks, one after the other
    n_head: Size = 4  # H, the number of attention heads in each attention sub-layer
    n_embd: Size = 128  # D, the width of the residual stream: n_head times an even number
    context_length: Size = 512  # C, the most tokens that the model can see at once
    dropout: Dropout = 0.0  # in training, share of numbers set to 0 after embedding and sub-layers
    side_dropout: Dropout = 0.0  # in training, the share of side-input blocks hidden at each token
    n_attention: Literal[1, 2] = 1  # attention sub-layers in each block; the 2017 decoder has 2
    positions: Positions = "rotary"  # waves added to embeddings, or rotated queries and keys
    norm: Literal["layer", "rms"] = "rms"  # LayerNorm (mean 0, variance 1, bias) or RMSNorm
    norm_position: Literal["post", "pre"] = "pre"  # after residual sums, or before each sub-layer
    activation: Literal["relu", "squared_relu"] = "squared_relu"  # in the feed-forward layer
    qk_norm: bool = True  # scale queries and keys to a root mean square of 1
    bias: bool = False  # give the feed-forward layer its biases b_1 and b_2
    interval_head: bool = True  # also score notes by their interval from notes that were heard
    end_head: bool = True  # also score durations by how near they end to other notes

    def __post_init__(self) -> None:
        super().__post_init__()
        rotates_by_time = self.positions == "rotary_time"
        multiple, kind = (4, "a multiple of 4") if rotates_by_time else (2, "an even number")
        if self.n_embd % (multiple * self.n_head):
            raise ValueError(
                f"n_embd must be n_head times {kind} (with positions {self.positions}): "
                f"{self.n_embd} with {self.n_head} heads does not fit"
            )


@dataclass(frozen=True)
class DataShape(Options):
    """What the data decide about a decoder, by their vocabulary and side input."""

    vocabulary_size: Size  # V, the number of different token ids
    side_blocks: tuple[SizeOrNone, ...] = ()  # features in each block of side input; (): none
    n_programs: SizeOrNone = 0  # P, programs that have references in the side input
    n_pitches: SizeOrNone = 0  # N, how many pitches each program has
    first_note: SizeOrNone = 0  # the id of the first of these P N notes
    n_classes: Literal[0, 12] = 0  # pitch classes that `SideInput.sounding` tells, if any
    n_durations: SizeOrNone = 0  # how many Durations there are (`EndHead`)
    first_duration: SizeOrNone = 0  # the id of the first; the id before it is Extend


@dataclass(frozen=True)
class DecoderConfig(DecoderOptions, DataShape):
    """The shape of a decoder: everything that `Decoder` is built from.

    Raises:
        ValueError: no decoder can have this value; the message names the field.
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
        """Whether the decoder has an `IntervalHead`."""
        return self.interval_head and bool(self.side_blocks) and self.n_programs > 0

    @property
    def has_end_head(self) -> bool:
        """Whether the decoder has an `EndHead`."""
        return self.end_head and bool(self.side_blocks) and self.n_durations > 0

    @property
    def n_features(self) -> int:
        """S, how many features the side input has; they are numbered from 1."""
        return sum(self.side_blocks)


def interval_rows(n_programs: int, n_classes: int) -> int:
    """Return how many rows the interval head has: for steps, classes, parallels and verticals."""
    return n_programs * (3 * (STEPS + CLASSES) + OCTAVE + n_classes)


# The options that decide the shape of the weights: all but dropout and the context length.
_ASIDE = ("dropout", "side_dropout", "context_length")
SHAPE = tuple(f.name for f in fields(DecoderOptions) if f.name not in _ASIDE)


@dataclass(frozen=True)
class SamplingOptions(Options):
    """How one id is chosen from logits; by default as the model says, without any filter.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    temperature: Annotated[float, Range(0)] = 1.0  # below 1 is safer, above 1 bolder; 0 always
    # takes the likeliest; with rhythm_temperature, for pitches alone
    top_k: Positive | None = None  # only the k likeliest ids
    top_p: Annotated[float, Range(1e-9, 1)] = 1.0  # only the likeliest ids whose chances reach this
    min_p: Share = 0.0  # only ids at least this likely, as a share of the likeliest
    rhythm_temperature: Annotated[float, Range(1e-9)] | None = None  # for all but pitches: when
    # notes begin, who plays them, and how long they last
