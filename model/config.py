"""What a decoder looks like, and how ids are chosen from its logits; no torch is needed."""

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

Positions = Literal["sinusoidal", "learned", "rotary", "rotary_time"]
Norm = Literal["layer", "rms"]
NormPosition = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "squared_relu"]
_CHOICES = {
    "positions": get_args(Positions),
    "norm": get_args(Norm),
    "norm_position": get_args(NormPosition),
    "activation": get_args(Activation),
    "n_attention": (1, 2),
    "qk_norm": (False, True),
    "bias": (False, True),
    "interval_head": (False, True),
}
REACH = 24  # semitones of the interval head; notes further away are as far as that
LONGEST = 512.0  # steps, the longest period of rotary_time
_MOST = 2**20  # of any size
_MOST_DROPOUT = 0.99  # of all, nothing would be left to scale up


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder, all that `Decoder` is built from.

    Raises:
        ValueError: a value that no decoder can have; the message names the field.
    """

    vocabulary_size: int  # V, how many different token ids there are
    n_layer: int = 4  # blocks, one after the other
    n_head: int = 4  # H, attention heads in each attention sub-layer
    n_embd: int = 128  # D, width of the residual stream; n_head times an even number
    context_length: int = 512  # C, the most tokens that are seen at once
    dropout: float = 0.0  # share of numbers zeroed, while training, after embedding and sub-layers
    n_attention: int = 1  # attention sub-layers a block; 2: one more in the place of an encoder's
    positions: Positions = "rotary"  # added to the embeddings, or (rotary) turning queries and keys
    norm: Norm = "rms"  # LayerNorm (mean 0, variance 1, bias) or RMSNorm
    norm_position: NormPosition = "pre"  # before each sub-layer, or after each residual sum
    activation: Activation = "squared_relu"  # inside the feed-forward layer
    qk_norm: bool = True  # queries and keys are brought to RMS 1
    bias: bool = False  # the feed-forward layer's b_1 and b_2
    interval_head: bool = True  # logits of notes by interval, too, where the side input has them
    side_blocks: tuple[int, ...] = ()  # widths of the side input's blocks of bits; (): it has none
    side_dropout: float = 0.0  # share of these blocks zeroed, token by token, while training
    n_programs: int = 0  # P, programs with references in the side input (`IntervalHead`)
    n_pitches: int = 0  # N, pitches a program
    first_note: int = 0  # id of the first of these P N notes

    def __post_init__(self) -> None:
        if not isinstance(self.side_blocks, list | tuple):
            raise ValueError(f"side_blocks must be a list, not {self.side_blocks!r}")
        object.__setattr__(self, "side_blocks", tuple(self.side_blocks))  # JSON has lists
        for name in ("n_programs", "n_pitches", "first_note"):
            self._check_integer(name, 0)
        for name in ("vocabulary_size", "n_layer", "n_head", "n_embd", "context_length"):
            self._check_integer(name, 1)
        for name in DROPOUTS:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= _MOST_DROPOUT:
                raise ValueError(f"{name} must be from 0 to {_MOST_DROPOUT}, not {value!r}")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices or type(value) is not type(choices[0]):
                listed = ", ".join(map(str, choices))
                raise ValueError(f"{name} must be one of {listed}, not {value!r}")
        self._check_side()
        if self.n_embd % (2 * self.n_head):
            raise ValueError(
                f"n_embd must be n_head times an even number (positions come in pairs): "
                f"{self.n_embd} with {self.n_head} heads is not"
            )

    def _check_integer(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if type(value) is not int or not least <= value <= _MOST:
            raise ValueError(
                f"{name} must be a whole number from {least} to {_MOST}, not {value!r}"
            )

    def _check_side(self) -> None:
        """Refuse a side input that does not fit the rest."""
        for width in self.side_blocks:
            if type(width) is not int or not 0 <= width <= _MOST:
                raise ValueError(f"side_blocks must be whole numbers up to {_MOST}, not {width!r}")
        if self.first_note + self.n_programs * self.n_pitches > self.vocabulary_size:
            raise ValueError("the notes with logits by interval go beyond the vocabulary")
        if self.positions == "rotary_time":
            if not self.side_blocks:
                raise ValueError(
                    "rotary_time needs the time of each token, and there is none: try rotary"
                )
            if self.n_embd % (4 * self.n_head):
                raise ValueError(
                    f"with rotary_time n_embd must be n_head times a multiple of 4: "
                    f"{self.n_embd} with {self.n_head} heads is not"
                )

    @property
    def has_interval_head(self) -> bool:
        """Whether there is an `IntervalHead`."""
        return self.interval_head and bool(self.side_blocks) and self.n_programs > 0

    @property
    def n_bits(self) -> int:
        """S, the columns of the side input that are zeros and ones."""
        return sum(self.side_blocks)


DROPOUTS = ("dropout", "side_dropout")
_FROM_THE_DATA = (
    "vocabulary_size",
    "side_blocks",
    "n_programs",
    "n_pitches",
    "first_note",
)
# The fields that weights must fit: all but dropout and what the data decide.
SHAPE = tuple(
    field.name for field in fields(DecoderConfig) if field.name not in (*DROPOUTS, *_FROM_THE_DATA)
)


@dataclass(frozen=True)
class SamplingOptions:
    """How one id is chosen from logits; by default as the model says, without any filter.

    Raises:
        ValueError: a value out of range; the message names it.
    """

    temperature: float = 1.0  # below 1 bolder on the likely, above 1 wilder; 0 = the likeliest
    top_k: int | None = None  # only the k likeliest ids
    top_p: float = 1.0  # only the likeliest ids that together reach this probability
    min_p: float = 0.0  # only ids at least this likely, as a share of the likeliest
    rhythm_temperature: float | None = None  # of all but the choice of pitches; None: the same

    def __post_init__(self) -> None:
        if not (0 <= self.temperature < math.inf):
            raise ValueError(f"temperature must be 0 (greedy) or more, not {self.temperature}")
        rhythm = self.rhythm_temperature
        if rhythm is not None and not (0 < rhythm < math.inf):
            raise ValueError(f"rhythm_temperature must be above 0, not {rhythm}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be 1 or more, not {self.top_k}")
        if not (0 < self.top_p <= 1):
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not (0 <= self.min_p <= 1):
            raise ValueError(f"min_p must be from 0 to 1, not {self.min_p}")
