"""Many scores to ids and back at once, end to end."""

from __future__ import annotations

import numpy as np

from common.arrays import Ints, offsets
from data.canonical import ScoreBatch
from data.tokens.tokenizer import decode_parts, encode
from data.tokens.vocabulary import Kind, Vocabulary


def encode_batch(scores: ScoreBatch, vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Return the ids of all pieces, end to end (N,), and how many are each piece's (P,).

    Raises:
        VocabularyError: the vocabulary has no token for something in one.
    """
    pieces = [encode(scores[number], vocabulary) for number in range(len(scores))]
    return np.concatenate(pieces), np.array([*map(len, pieces)])


def decode_batch(ids: Ints, lengths: Ints, vocabulary: Vocabulary) -> ScoreBatch:
    """Return the pieces that ids encode: the inverse of `encode_batch`.

    Args:
        ids: (N,) of all pieces, end to end; not checked, for they come from a corpus.
        lengths: (P,) how many are each piece's.
        vocabulary: theirs.
    """
    notes, bars, tempo = decode_parts(ids, vocabulary)
    kinds, token_offsets = vocabulary.kind_of[ids], offsets(lengths)
    note_offsets, bar_offsets = (
        offsets(kinds == kind)[token_offsets] for kind in (Kind.NOTE, Kind.BAR)
    )
    begins = offsets(bars["length"])[bar_offsets[:-1]]
    notes["onset"] -= np.repeat(begins, np.diff(note_offsets)).astype(np.int32)
    return ScoreBatch(notes, bars, tempo, note_offsets, bar_offsets, vocabulary.grid)
