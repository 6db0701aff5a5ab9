"""Logits of notes by their interval from notes that were heard: the same in every key."""

import torch
from torch import Tensor, nn

from common.interface import OCTAVE, SHARED_REFERENCES

REACH = 24  # semitones; notes further away are as far as that
# of each reference: a program's own, its echo, then the shared ones
_PERIODS = (None, None, None, *[OCTAVE] * 3)


class IntervalHead(nn.Module):
    """Logits of notes by their interval from references, added to those by the note itself.

    A head with a row a note learns each melodic step and each chord anew in every key. This one
    has a row a distance, as attention in Shaw et al. 2018 and Huang et al. 2018 has. A note
    counts, in semitones, from what its own program had before; from what that would have next if
    it went on as before; from the latest note that begins with it; and, within the octave, from
    the lowest that sounds, from the lowest before and from the tonic. The note to which a program
    would move in parallel with another that has just moved has a logit, too, by the interval
    between the two.

    Args:
        n_embd: D.
        n_programs: P.
        n_pitches: N, pitches a program.
    """

    # of each table: a row a distance, and one for a reference that is not there
    rows = tuple(1 + (period or 2 * REACH + 1) for period in _PERIODS)

    def __init__(self, n_embd: int, n_programs: int, n_pitches: int) -> None:
        super().__init__()
        self.n_programs, self.n_pitches = n_programs, n_pitches
        self.tables = nn.ModuleList(
            nn.Linear(n_embd, n_programs * count, bias=False) for count in self.rows
        )
        self.parallel = nn.Linear(n_embd, n_programs * OCTAVE, bias=False)
        for number, period in enumerate(_PERIODS):
            self.register_buffer(f"row_{number}", _rows(n_pitches, period), persistent=False)

    def forward(self, x: Tensor, references: Tensor, moves: Tensor) -> Tensor:
        """Return logits of the notes of all programs, program by program.

        Args:
            x: float (B, T, D).
            references: int64 (B, T, 2 P + SHARED_REFERENCES), pitches from 1 up; 0: there is none.
                First what each program had before, what it has next if it goes on as before, then
                the latest note's, the lowest that sounds, the lowest before, the tonic.
            moves: int64 (B, T, P), by how much each program has just moved, plus N; 0: it has not.

        Returns:
            float (B, T, P N).
        """
        P, N = self.n_programs, self.n_pitches
        kinds = torch.split_with_sizes(references, (P, P, *[1] * SHARED_REFERENCES), dim=-1)
        by_table = [self._by_interval(n, x, reference) for n, reference in enumerate(kinds)]
        own, echo, latest, lowest, lowest_before, tonic = by_table
        octave = lowest + lowest_before + tonic  # (B, T, P, 12)
        octaves = octave.repeat(1, 1, 1, -(-N // OCTAVE))[..., :N]  # (B, T, P, N)
        total = own + echo + latest + octaves + self._parallels(x, kinds[0], moves)
        return total.flatten(2)  # (B, T, P, N) -> (B, T, P N)

    def _by_interval(self, number: int, x: Tensor, reference: Tensor) -> Tensor:
        """Return logits (B, T, P, M) by one table, of the M = N notes, or of the octave's M = 12.

        Args:
            number: of the table.
            x: float (B, T, D).
            reference: int64 (B, T, P), or (B, T, 1) for all programs.
        """
        B, T, _ = x.shape
        rows = self.get_buffer(f"row_{number}")  # (1 + N, M)
        row = rows.index_select(0, reference.flatten()).view(B, T, -1, rows.shape[1])
        by_row: Tensor = self.tables[number](x).view(B, T, self.n_programs, -1)
        return by_row.gather(-1, row.expand(B, T, self.n_programs, -1))

    def _parallels(self, x: Tensor, own: Tensor, moves: Tensor) -> Tensor:
        """Return logits (B, T, P, N), nearly all 0, of where programs would move in parallel.

        Args:
            x: float (B, T, D).
            own: int64 (B, T, P), what each program had before.
            moves: int64 (B, T, P), by how much each has moved, plus N.
        """
        B, T, P = own.shape
        N = self.n_pitches
        mine, other, move = own[..., None], own[..., None, :], moves[..., None, :]
        by_interval = self.parallel(x).view(B, T, P, OCTAVE)  # (B, T, P 12) -> (B, T, P, 12)
        logits = by_interval.gather(-1, (mine - other) % OCTAVE)  # (B, T, P, P), beside each other
        # notes from 1 up; what is none, or beyond the vocabulary, goes to either side of them
        place = (mine + move - N).clamp(0, N + 1) * (mine * move > 0)
        around: Tensor = logits.new_zeros(B, T, P, N + 2).scatter_add(-1, place, logits)
        return around[..., 1:-1]


def _rows(n_pitches: int, period: int | None) -> Tensor:
    """Return int64 (1 + N, N): each note's row by reference; (1 + N, period) of the first notes."""
    reference = torch.arange(max(n_pitches, OCTAVE) + 1)[:, None]
    distance = torch.arange(1, (period or n_pitches) + 1) - reference
    row = distance % period if period else distance.clamp(-REACH, REACH) + REACH
    return row.masked_fill(reference == 0, period or 2 * REACH + 1)
