"""Training pieces at other speeds, as if they had been played faster or slower."""

import numpy as np

from data.canonical import canonical
from data.corpus.store import Split
from data.score import Score
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Vocabulary


def factors(share: float) -> list[float]:
    """Return how long a second becomes if pieces are up to a share longer and shorter."""
    return [1 + share * step for step in (-1, -0.5, 0.5, 1)]


def with_stretched(split: Split, share: float, vocabulary: Vocabulary) -> Split:
    """Return pieces on a grid of seconds followed by themselves at other speeds.

    Args:
        split: the pieces.
        share: by how much they become longer and shorter: 0.1 makes a second 0.9 to 1.1 seconds.
        vocabulary: what the ids mean.
    """
    pieces = [decode(split.piece(index), vocabulary) for index in range(len(split))]
    speeds = factors(share)
    ids = [encode(stretched(piece, each), vocabulary) for each in speeds for piece in pieces]
    return split.followed_by(Split.of_pieces(split.names * len(speeds), ids, vocabulary))


def stretched(piece: Score, factor: float) -> Score:
    """Return a piece on a grid of seconds whose times are multiplied, then rounded to its steps.

    What begins or ends together still does.
    """
    notes = piece.notes.copy()
    onset = np.rint(factor * notes["onset"])
    notes["duration"] = np.rint(factor * (notes["onset"] + notes["duration"])) - onset
    notes["onset"] = onset
    return canonical(notes, piece.bars[:0], piece.tempo_bpm[:0], piece.grid)[0]
