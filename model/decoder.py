"""The decoder: token ids in, logits of the next token out."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.attention import KVCache, MultiHeadAttention, causal_mask
from model.cpu import BlockDropout, Dropout, RMSNorm, squared_relu
from model.interval_head import IntervalHead, reference_count
from model.positions import Learned, Rotary, RotaryTime, Sinusoidal

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
MOST_DROPOUT = 0.99  # of all, nothing would be left to scale up
BESIDE_STD = 0.3  # of the side input's weights at first; some twenty of its columns are 1 at once


@dataclass(frozen=True)
class DecoderConfig:
    """What a decoder looks like.

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
    n_side: int = 0  # S, columns of a side input: bits, references, time; 0: there is none
    side_blocks: tuple[int, ...] = ()  # widths of the blocks of its bits, if they are told
    side_dropout: float = 0.0  # share of these blocks zeroed, token by token, while training
    n_programs: int = 0  # P, whose notes the references are for (`IntervalHead`); 0: none
    n_pitches: int = 0  # N, pitches a program
    first_note: int = 0  # id of the first of these P N notes

    def __post_init__(self) -> None:
        for name in ("n_side", "n_programs", "n_pitches", "first_note"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 2**20:
                raise ValueError(f"{name} must be a whole number from 0 to {2**20}, not {value!r}")
        object.__setattr__(self, "side_blocks", tuple(self.side_blocks))  # JSON has lists
        if self.side_blocks and sum(self.side_blocks) != self.n_bits:
            raise ValueError(f"side_blocks must add up to {self.n_bits}: {self.side_blocks}")
        if self.n_programs and self.n_bits < 0:
            raise ValueError(f"a side input of {self.n_side} columns has no room for references")
        if self.first_note + self.n_programs * self.n_pitches > self.vocabulary_size:
            raise ValueError("the notes with logits by distance go beyond the vocabulary")
        for name in ("vocabulary_size", "n_layer", "n_head", "n_embd", "context_length"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= 2**20:
                raise ValueError(f"{name} must be a whole number from 1 to {2**20}, not {value!r}")
        if self.positions == "rotary_time" and not self.n_side:
            raise ValueError(
                "rotary_time needs the time of each token, and there is none: try rotary"
            )
        if self.positions == "rotary_time" and self.n_embd % (4 * self.n_head):
            raise ValueError(
                f"with rotary_time n_embd must be n_head times a multiple of 4: {self.n_embd} with "
                f"{self.n_head} heads is not"
            )
        if self.n_embd % (2 * self.n_head):
            raise ValueError(
                f"n_embd must be n_head times an even number (positions come in pairs): "
                f"{self.n_embd} with {self.n_head} heads is not"
            )
        for name in ("dropout", "side_dropout"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= MOST_DROPOUT:
                raise ValueError(f"{name} must be from 0 to {MOST_DROPOUT}, not {value!r}")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices or type(value) is not type(choices[0]):
                told = ", ".join(map(str, choices))
                raise ValueError(f"{name} must be one of {told}, not {value!r}")

    @property
    def has_interval_head(self) -> bool:
        """Whether there is a `IntervalHead`."""
        return self.interval_head and self.n_programs > 0

    @property
    def n_bits(self) -> int:
        """The columns of the side input that are zeros and ones."""
        return self.n_side - 1 - reference_count(self.n_programs) if self.n_side else 0


DROPOUTS = ("dropout", "side_dropout")
BESIDE = ("n_side", "side_blocks", "n_programs", "n_pitches", "first_note")
# What weights must fit: all of a decoder's config but dropout, and what the data tell.
SHAPE = tuple(
    field.name
    for field in fields(DecoderConfig)
    if field.name not in ("vocabulary_size", *DROPOUTS, *BESIDE)
)


class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2, four times as wide inside (Vaswani et al. 2017, equation 2).

    f is relu, gelu (Hendrycks & Gimpel 2016) or relu squared (So et al. 2021, Primer, section 3);
    the b are there where the config asks for them.

    Args:
        config: of the decoder.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.w_2 = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.activation = _ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """float (B, T, D) -> (B, T, D), each position by itself."""
        y: Tensor = self.w_2(self.activation(self.w_1(x)))
        return y


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "squared_relu": squared_relu,
}


class AddNorm(nn.Module):
    """A sub-layer f with its residual sum and its norm.

    norm(x + f(x)) is post-norm (Vaswani et al. 2017, section 3.1), x + f(norm(x)) pre-norm (Xiong
    et al. 2020).

    Args:
        config: of the decoder.
        layer: f.
    """

    def __init__(self, config: DecoderConfig, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.norm = _norm(config)
        self.is_post = config.norm_position == "post"
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, *others: Any) -> Tensor:
        """float (B, T, D) -> (B, T, D); `others` are handed to f after x."""
        y: Tensor
        if self.is_post:
            y = self.norm(x + self.dropout(self.layer(x, *others)))
        else:
            y = x + self.dropout(self.layer(self.norm(x), *others))
        return y


def _norm(config: DecoderConfig) -> nn.Module:
    """LayerNorm (Ba et al. 2016) or RMSNorm (Zhang & Sennrich 2019)."""
    return (nn.LayerNorm if config.norm == "layer" else RMSNorm)(config.n_embd)


class Block(nn.Module):
    """Attention, once or twice, then feed-forward, each with its `AddNorm`.

    The second attention stands where a translation model attends to its encoder (Vaswani et al.
    2017, figure 1); with no encoder here, it too attends to the sequence itself.

    Args:
        config: of the decoder.
        number: of the block, from 0; it tells which slots of a `KVCache` are its own.
    """

    def __init__(self, config: DecoderConfig, number: int) -> None:
        super().__init__()
        first_slot = number * config.n_attention
        self.attention = nn.ModuleList(
            AddNorm(
                config,
                MultiHeadAttention(config.n_embd, config.n_head, slot, qk_norm=config.qk_norm),
            )
            for slot in range(first_slot, first_slot + config.n_attention)
        )
        self.feed_forward = AddNorm(config, FeedForward(config))

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """float (B, T, D) -> (B, T, D); the arguments are `MultiHeadAttention`'s."""
        for attend in self.attention:
            x = attend(x, rotation, mask, cache)
        x = self.feed_forward(x)
        return x


class Decoder(nn.Module):
    """Embedding, positions, blocks, head: the decoder of the 2017 paper, or a GPT of today's parts.

    Args:
        config: its shape.
    """

    temperature: Tensor

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.n_embd)
        # what is known of each token beside its id, such as when it is and how far the end
        bits = config.n_bits
        self.side = nn.Linear(bits, config.n_embd, bias=False) if bits else None
        self.side_dropout = BlockDropout(config.side_blocks, config.side_dropout)
        self.positions = _positions(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, number) for number in range(config.n_layer))
        # post-norm blocks end in a norm of their own
        self.norm = _norm(config) if config.norm_position == "pre" else nn.Identity()
        self.head = nn.Linear(config.n_embd, config.vocabulary_size, bias=False)
        notes = (config.n_programs, config.n_pitches)
        has_intervals = config.has_interval_head
        self.interval_head = IntervalHead(config.n_embd, *notes) if has_intervals else None
        self.register_buffer("temperature", torch.ones(()))  # of logits, outside of training
        self.apply(_initialize)
        for name, weight in self.named_parameters():
            if name.startswith(("head.", "interval_head.")) or name.endswith(
                ("w_o.weight", "w_2.weight")
            ):
                nn.init.zeros_(weight)  # every block starts as the identity, every guess as even
        if self.side is not None:
            nn.init.normal_(self.side.weight, std=BESIDE_STD)

    def forward(
        self,
        ids: Tensor,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
        side: Tensor | None = None,
    ) -> Tensor:
        """Logits of the token after each of `ids`.

        Args:
            ids: int64 (B, T) in [0, V).
            cache: what came before; `ids` are appended to it.
            mask: bool, broadcastable to (B, H, T, S), S the columns cached and T more;
                True = may look. None = causal.
            side: int (B, T, n_side), the side input of a decoder that has one: zeros and ones,
                then references (`IntervalHead`), and last the time of the token, in steps.

        Returns:
            float (B, T, V).

        Raises:
            ValueError: more tokens than the context holds, or a side input amiss.
        """
        T = ids.shape[1]
        S = T if cache is None else cache.length + T
        context = self.config.context_length
        if context < S:
            raise ValueError(f"{S} tokens are too many: the context length is {context}")
        if cache is None:
            positions = torch.arange(T, device=ids.device)  # (T,)
        else:
            positions = cache.positions(T)  # (T,) or (B, T)
            if cache.padded:
                if mask is None and T > 1:  # the one last query sees every key
                    mask = causal_mask(T, S, ids.device)
                is_token = cache.not_padding(T)  # (B, 1, 1, S)
                mask = is_token if mask is None else mask & is_token  # (B, 1, T, S)
        x = self.embedding(ids)  # (B, T) -> (B, T, D)
        width = 0 if side is None else side.shape[-1]
        if width != self.config.n_side:
            raise ValueError(f"the side input has {width} columns, not {self.config.n_side}")
        if self.side is not None and side is not None:
            bits = side[..., : self.config.n_bits].to(x.dtype)
            x = x + self.side(self.side_dropout(bits))  # (B, T, bits) -> (B, T, D)
        rotation = None
        if isinstance(self.positions, Rotary):
            rotation = self.positions(positions)
        elif isinstance(self.positions, RotaryTime):
            assert side is not None  # as the config asks for
            rotation = self.positions(positions, side[..., -1])
        else:
            x = x + self.positions(positions)  # (T, D) or (B, T, D)
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x, rotation, mask, cache)
        if cache is not None:
            cache.advance(T)
        x = self.norm(x)
        logits: Tensor = self.head(x)  # (B, T, D) -> (B, T, V)
        if self.interval_head is not None and side is not None:
            references = side[..., self.config.n_bits : -1].long()
            by_distance = self.interval_head(x, references)  # (B, T, P N)
            first = self.config.first_note
            after = self.config.vocabulary_size - first - by_distance.shape[-1]
            logits = logits + functional.pad(by_distance, (first, after))
        return logits if self.training else logits / self.temperature

    def empty_cache(self, start: Tensor) -> KVCache:
        """A cache for `start.shape[0]` rows with `start` (int64 (B,)) padding columns each."""
        config = self.config
        width = config.n_embd // config.n_head
        shape = (config.n_head, config.context_length, width, width)
        return KVCache(config.n_layer * config.n_attention, start, shape, like=self.head.weight)

    def copied(self) -> "Decoder":
        """Another with the same weights, whatever cuts up or hooks into those of this one."""
        with torch.random.fork_rng([]):  # what it begins with is drawn in vain
            copy = Decoder(self.config)
        copy.load_state_dict(self.state_dict())
        return copy.to(self.head.weight.device).train(self.training)

    @property
    def attention_names(self) -> list[str]:
        """A name for each layer of `attention_maps`."""
        twice = ("",) if self.config.n_attention == 1 else (", attention 1", ", attention 2")
        return [f"layer {n + 1}{which}" for n in range(self.config.n_layer) for which in twice]

    @torch.no_grad()
    def attention_maps(
        self, ids: Tensor, mask: Tensor | None = None, side: Tensor | None = None
    ) -> Tensor:
        """Who looks at whom: the weights of every attention layer while it reads `ids`.

        Args:
            ids: int64 (B, T).
            mask, side: as in `forward`.

        Returns:
            float (L, B, H, T, T), L = n_layer * n_attention in the order of reading; each row
            sums to 1, or is all 0 where a query may see nothing.
        """
        maps: list[Tensor] = []

        def look(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
            assert isinstance(layer, MultiHeadAttention)
            maps.append(layer.weights(*inputs[:3]))  # x, rotation, mask

        layers = [layer for layer in self.modules() if isinstance(layer, MultiHeadAttention)]
        hooks = [layer.register_forward_pre_hook(look) for layer in layers]
        try:
            self(ids, mask=mask, side=side)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(maps)


def _positions(config: DecoderConfig) -> Sinusoidal | Learned | Rotary | RotaryTime:
    width = config.n_embd // config.n_head
    if config.positions == "rotary":
        return Rotary(width, config.context_length)
    if config.positions == "rotary_time":
        return RotaryTime(width)
    added = Sinusoidal if config.positions == "sinusoidal" else Learned
    return added(config.n_embd, config.context_length)


def _initialize(module: nn.Module) -> None:
    """Normal weights: 0.5 / sqrt(fan-in), GPT-2's 0.02 at its width; embeddings of size 1."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.5 * module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight)
