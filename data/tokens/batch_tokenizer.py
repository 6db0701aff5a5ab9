"""Many scores to ids and back at once, end to end."""

from __future__ import annotations

import numpy as np

from common.arrays import Ints, offsets
from data.canonical import ScoreBatch
from data.score import Score
from data.tokens.context import bar_head_sizes, bar_indices, bar_tempos
from data.tokens.tokenizer import decode_parts, encode
from data.tokens.vocabulary import Kind, Vocabulary


def encode_batch(scores: ScoreBatch, vocabulary: Vocabulary) -> tuple[Ints, Ints]:
    """Return the ids of all pieces, end to end (N,), and how many are each piece's (P,).

    The ids are those of `encode`. All pieces are encoded as if they were one, with each piece's
    onsets counted on from the bars before it. What sets pieces apart is then inserted: End and
    Start, and the tempo where a piece begins with that of the piece before it.

    Raises:
        VocabularyError: the vocabulary has no token for something in it.
    """
    bar_starts = offsets(scores.bars["length"])
    notes = scores.notes.copy()
    notes["onset"] += np.repeat(bar_starts[scores.bar_offsets[:-1]], np.diff(scores.note_offsets))
    ids = encode(Score(notes, scores.bars, scores.tempo_bpm, scores.grid), vocabulary)
    bars = bar_indices(ids, vocabulary)
    # where each piece but the first begins: at its first bar; if it has none, at the next, or End
    new = np.append(bars, len(ids) - 1)[scores.bar_offsets[1:-1]]

    places = [np.repeat(new, 2)]
    values = [np.tile([vocabulary.first(Kind.END), vocabulary.first(Kind.START)], len(new))]
    if vocabulary.grid.has_meter:
        first_bar = scores.bar_offsets[1:-1][np.diff(scores.bar_offsets)[1:] > 0]
        head_size, has_tempo = bar_head_sizes(ids, bars[first_bar], vocabulary)
        places.append((bars[first_bar] + head_size)[~has_tempo])
        values.append(bar_tempos(ids, vocabulary)[first_bar[~has_tempo]])
    ids = np.insert(ids, np.concatenate(places), np.concatenate(values))
    return ids, np.diff(np.append(np.flatnonzero(ids == vocabulary.first(Kind.START)), len(ids)))


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
