"""Many pieces end to end: what is done to each is done to all at once, and they wait on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from data.score import BAR, NOTE, Grid, Score, ScoreBatch, offsets
from data.tokens.tokenizer import bar_indices, decode_parts, encode
from data.tokens.vocabulary import Kind, Vocabulary

_FILES: dict[str, DTypeLike] = {"notes": NOTE, "bars": BAR, "tempo_bpm": np.int32}


def encode_batch(
    batch_of_scores: ScoreBatch, vocabulary: Vocabulary
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ids of all pieces, end to end, and (P,) how many are each one's: those of `encode`.

    The medley is spelled as if it were one piece, with every piece's onsets counted on from the
    bars before it. What sets pieces apart is put in: End and Start, and the tempo where a piece
    begins with that of the piece before it.

    Raises:
        VocabularyError: the vocabulary has no token for something in it.
    """
    lines = offsets(batch_of_scores.bars["length"])
    notes = batch_of_scores.notes.copy()
    notes["onset"] += np.repeat(
        lines[batch_of_scores.bar_offsets[:-1]], np.diff(batch_of_scores.note_offsets)
    )
    ids = encode(
        Score(notes, batch_of_scores.bars, batch_of_scores.tempo_bpm, batch_of_scores.grid),
        vocabulary,
    )
    kind_of = vocabulary.kind_of
    # where each piece but the first begins: at its first bar; if it has none, at the next, or End
    new = np.append(bar_indices(ids, vocabulary), len(ids) - 1)[batch_of_scores.bar_offsets[1:-1]]

    places = [np.repeat(new, 2)]
    values = [np.tile([vocabulary.first(Kind.END), vocabulary.first(Kind.START)], len(new))]
    if vocabulary.counts[Kind.TEMPO]:
        barred = new[np.diff(batch_of_scores.bar_offsets)[1:] > 0]
        head_end = barred + 1 + (kind_of[ids[barred + 1]] == Kind.LENGTH)
        is_silent = kind_of[ids[head_end]] != Kind.TEMPO
        tempo_at = np.flatnonzero(kind_of[ids] == Kind.TEMPO)
        latest = np.searchsorted(tempo_at, head_end[is_silent]) - 1
        places.append(head_end[is_silent])
        values.append(ids[tempo_at[latest]])
    ids = np.insert(ids, np.concatenate(places), np.concatenate(values))
    return ids, np.diff(np.append(np.flatnonzero(ids == vocabulary.first(Kind.START)), len(ids)))


def decode_medley(
    ids: NDArray[np.int64], lengths: NDArray[np.int64], vocabulary: Vocabulary
) -> ScoreBatch:
    """The pieces that ids spell: the inverse of `encode_batch`.

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


class MedleyWriter:
    """Appends pieces to a medley on disk; a context manager. No arrays of it stay in memory."""

    def __init__(self, folder: Path) -> None:
        self._files = {name: (folder / name).open("wb") for name in _FILES}

    def __enter__(self) -> MedleyWriter:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, batch_of_scores: ScoreBatch) -> None:
        """Appends its pieces."""
        for name, file in self._files.items():
            file.write(getattr(batch_of_scores, name).tobytes())


@dataclass(frozen=True)
class MedleyOnDisk:
    """What a `MedleyWriter` wrote to `folder`."""

    folder: Path
    grid: Grid

    def pieces(self, notes: list[tuple[int, int]], bars: list[tuple[int, int]]) -> ScoreBatch:
        """Some of the pieces, by begin and end of each one's notes, and of its bars."""
        arrays = {
            name: np.memmap(self.folder / name, dtype, mode="r") for name, dtype in _FILES.items()
        }

        note_rows, bar_rows = (
            np.concatenate([np.arange(begin, end) for begin, end in rows]) for rows in (notes, bars)
        )
        return ScoreBatch(
            np.asarray(arrays["notes"][note_rows]),
            np.asarray(arrays["bars"][bar_rows]),
            np.asarray(arrays["tempo_bpm"][bar_rows]),
            offsets([end - begin for begin, end in notes]),
            offsets([end - begin for begin, end in bars]),
            self.grid,
        )
