"""The decoder: token ids in, logits of the next token out."""

import torch
from torch import Tensor, nn

from common.interface import SideInput
from model.block_dropout import BlockDropout
from model.config import DecoderConfig
from model.end_head import EndHead
from model.interval_head import IntervalHead
from model.layers import Block, make_norm
from model.positions import Rotary, Sinusoidal

SIDE_STD = 0.3  # initial std of feature vectors; ids have 1, but some 60 features are summed


class Decoder(nn.Module):
    """Embedding, positions, blocks, and a head: the decoder of the 2017 paper, or a modern GPT.

    Args:
        config: the shape of the decoder.
    """

    temperature: Tensor

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_size, config.n_embd)
        # a token's vector is the sum of its id's vector and those of all features beside it
        self.side, S = None, config.n_features
        if S:
            self.side = nn.EmbeddingBag(S + 1, config.n_embd, mode="sum", padding_idx=0)
            self.side_dropout = BlockDropout(config.side_blocks, config.side_dropout)
        self.positions: Sinusoidal | Rotary
        if config.positions == "sinusoidal":
            self.positions = Sinusoidal(config.n_embd, config.context_length)
        else:
            by_time = config.positions == "rotary_time"
            self.positions = Rotary(config.n_embd // config.n_head, by_time)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        # a post-norm block already ends in a norm
        self.norm = make_norm(config) if config.norm_position == "pre" else nn.Identity()
        self.head = nn.Linear(config.n_embd, config.vocabulary_size, bias=False)
        shape = config.n_embd, config.n_programs, config.n_pitches, config.n_classes
        self.interval_head = IntervalHead(*shape) if config.has_interval_head else None
        self.end_head = EndHead(config.n_embd, config.n_durations) if config.has_end_head else None
        self.register_buffer("temperature", torch.ones(()))  # divides logits, except in training
        self.apply(_initialize)
        for name, weight in self.named_parameters():
            if name.startswith(("head.", "interval_head.", "end_head.")) or name.endswith(
                ("w_o.weight", "w_2.weight")
            ):
                nn.init.zeros_(weight)  # at first, blocks do nothing and ids are equally likely
        if self.side is not None:
            nn.init.normal_(self.side.weight[1:], std=SIDE_STD)  # number 0 stands for no feature
            nn.init.zeros_(self.side.weight[0])

    def forward(self, ids: Tensor, side: SideInput[Tensor] | None = None) -> Tensor:
        """Return the logits of the token that follows each of `ids`.

        Args:
            ids: int64 (B, T) in [0, V).
            side: the side input; a decoder that was built for one needs it.

        Returns:
            float (B, T, V).

        Raises:
            ValueError: there are more tokens than the context holds, or the side input does not
                fit.
        """
        T, context = ids.shape[1], self.config.context_length
        if context < T:
            raise ValueError(f"{T} tokens are too many: the context length is {context}")
        x, rotation = self._embed(ids, side)
        for block in self.blocks:
            x = block(x, rotation)
        logits = self._logits(self.norm(x), side)
        return logits if self.training else logits / self.temperature

    def _embed(
        self, ids: Tensor, side: SideInput[Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """Return what enters the blocks, (B, T, D), and the angles of rotary positions or None."""
        x = self.embedding(ids)  # (B, T) -> (B, T, D)
        positions = torch.arange(ids.shape[1], device=ids.device)  # (T,)
        if (side is None) != (self.side is None):
            raise ValueError("a side input where the decoder has none, or none where it has one")
        if self.side is not None and side is not None:
            bag, weight = side.bag.flatten(0, 1), self.side_dropout(side.bag)  # (B T, K)
            x = x + self.side(bag, per_sample_weights=weight).view(x.shape)  # (B T, D) -> (B, T, D)
        rotation = None
        if isinstance(self.positions, Rotary):
            rotation = self.positions(positions, side and side.time)
        else:
            x = x + self.positions(positions)  # (T, D)
        return self.dropout(x), rotation

    def _logits(self, x: Tensor, side: SideInput[Tensor] | None) -> Tensor:
        """Return the logits (B, T, V) for what leaves the blocks, (B, T, D)."""
        logits: Tensor = self.head(x)  # (B, T, D) -> (B, T, V)
        if self.interval_head is not None and side is not None:
            first = self.config.first_note
            logits = self.interval_head.added(logits, first, x, side)
        if self.end_head is not None and side is not None:
            extend = self.config.first_duration - 1
            logits[..., extend : extend + 1 + self.config.n_durations] += self.end_head(
                x, side.ends
            )
        return logits


def _initialize(module: nn.Module) -> None:
    """Draw weights from normal distributions.

    The std of a linear layer is 0.5 / sqrt(fan-in), which is GPT-2's 0.02 at GPT-2's width. That of
    an embedding is 1.
    """
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.5 * module.in_features**-0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight)
