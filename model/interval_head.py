"""Logits of notes by their interval from notes that were heard: the same in every key."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.interface import OCTAVE, SHARED_REFERENCES, SideInput
from model.config import CLASSES, REACH, STEPS, interval_rows

# A note is counted in semitones from three references: what its program had before, what would
# come next if it went on as before, and the latest note. Within the octave it is counted from three
# more: the lowest that sounds, the lowest before, and the tonic.
THREE = 3


class IntervalHead(nn.Module):
    """Logits of notes by their interval from references, added to those by the note itself.

    A head with a row a note learns each melodic step and each chord anew in every key. This one
    has a row a distance, as attention in Shaw et al. 2018 and Huang et al. 2018 has. A note
    counts, in semitones, from what its own program had before; from what that would have next if
    it went on as before; from the latest note that begins with it; and, within the octave, from
    the lowest that sounds, from the lowest before and from the tonic. The note to which a program
    would move in parallel with another that has just moved has a logit, too, by the interval
    between the two; and each note by the intervals, within the octave, from all that sounds: so
    what rubs is learned once, whichever note it is beside.

    Args:
        n_embd: D.
        n_programs: P.
        n_pitches: N, pitches a program.
        n_classes: 12; 0: nothing is told of all that sounds.
    """

    step: Tensor
    pitch_class: Tensor

    def __init__(self, n_embd: int, n_programs: int, n_pitches: int, n_classes: int) -> None:
        super().__init__()
        self.n_programs, self.n_pitches, self.n_classes = n_programs, n_pitches, n_classes
        self.table = nn.Linear(n_embd, interval_rows(n_programs, n_classes), bias=False)
        notes = torch.arange(1, n_pitches + 1)
        reference = torch.arange(max(n_pitches, OCTAVE) + 1)[:, None]
        step = (notes - reference).clamp(-REACH, REACH) + REACH
        step = step.masked_fill(reference == 0, STEPS - 1)
        pitch_class = (notes[:OCTAVE] - reference) % OCTAVE
        pitch_class = pitch_class.masked_fill(reference == 0, CLASSES - 1)
        self.register_buffer("step", step, persistent=False)  # (1 + N, N) by reference and note
        self.register_buffer("pitch_class", pitch_class, persistent=False)  # (1 + N, 12)

    def forward(self, x: Tensor, references: Tensor, moves: Tensor, sounding: Tensor) -> Tensor:
        """Return logits of the notes of all programs, program by program.

        Args:
            x: float (B, T, D).
            references: int64 (B, T, 2 P + SHARED_REFERENCES), pitches from 1 up; 0: there is none.
                First what each program had before, what it has next if it goes on as before, then
                the latest note's, the lowest that sounds, the lowest before, the tonic.
            moves: int64 (B, T, P), by how much each program has just moved, plus N; 0: it has not.
            sounding: int64 (B, T, 12), 1 for each pitch class that sounds.

        Returns:
            float (B, T, P N).
        """
        P, N = self.n_programs, self.n_pitches
        sizes = (THREE * P * STEPS, THREE * P * CLASSES, P * OCTAVE, P * self.n_classes)
        steps, classes, parallels, verticals = self.table(x).split_with_sizes(sizes, dim=-1)
        widths = (2 * P, 1, SHARED_REFERENCES - 1)
        mine, latest, others = torch.split_with_sizes(references, widths, dim=-1)
        mine = torch.cat([mine, latest.expand(-1, -1, P)], dim=-1)  # (B, T, 3 P)
        others = others.repeat_interleave(P, dim=-1)  # (B, T, 3 P)
        total = self._by_interval(steps, mine, self.step)  # (B, T, P, N)
        within = self._by_interval(classes, others, self.pitch_class)  # (B, T, P, 12)
        if self.n_classes:
            within = within + self._verticals(verticals, sounding)
        total = total + within.repeat(1, 1, 1, -(-N // OCTAVE))[..., :N]
        total = total + self._parallels(parallels, references[..., :P], moves)
        return total.flatten(2)  # (B, T, P, N) -> (B, T, P N)

    def added(self, logits: Tensor, first: int, x: Tensor, side: SideInput[Tensor]) -> Tensor:
        """Return logits of all ids, (B, T, V), with those of the notes, from id `first` on, added.

        x is that of `forward`.
        """
        of_notes = self(x, side.references, side.moves, side.sounding)  # (B, T, P N)
        after = logits.shape[-1] - first - of_notes.shape[-1]
        return logits + functional.pad(of_notes, (first, after))

    def _by_interval(self, by_row: Tensor, references: Tensor, row: Tensor) -> Tensor:
        """Return logits (B, T, P, M) of M notes, summed over three references of each program.

        Args:
            by_row: float (B, T, 3 P R), of R distances.
            references: int64 (B, T, 3 P).
            row: int64 (1 + N, M), the distance of each note from each reference.
        """
        B, T, count = references.shape
        rows = row.index_select(0, references.flatten()).view(B, T, count, -1)
        logits = by_row.view(B, T, count, -1).gather(-1, rows)  # (B, T, 3 P, M)
        return logits.view(B, T, THREE, -1, row.shape[1]).sum(dim=2)

    def _verticals(self, by_row: Tensor, sounding: Tensor) -> Tensor:
        """Return logits (B, T, P, 12) of pitch classes, summed over all that sound.

        Args:
            by_row: float (B, T, 12 P), by interval.
            sounding: int64 (B, T, 12).
        """
        by_interval = by_row.unflatten(-1, (self.n_programs, OCTAVE))  # (B, T, P, 12)
        below = self.pitch_class[1 : OCTAVE + 1]  # (12, 12), the class so far below another
        logits: Tensor = by_interval @ sounding[..., below].to(by_row.dtype)
        return logits

    def _parallels(self, by_row: Tensor, own: Tensor, moves: Tensor) -> Tensor:
        """Return logits (B, T, P, N), nearly all 0, of where programs would move in parallel.

        Args:
            by_row: float (B, T, 12 P), by interval.
            own: int64 (B, T, P), what each program had before.
            moves: int64 (B, T, P), by how much each has moved, plus N.
        """
        B, T, P = own.shape
        N = self.n_pitches
        mine, other, move = own[..., None], own[..., None, :], moves[..., None, :]
        by_interval = by_row.view(B, T, P, OCTAVE)  # (B, T, 12 P) -> (B, T, P, 12)
        logits = by_interval.gather(-1, (mine - other) % OCTAVE)  # (B, T, P, P), beside each other
        # notes from 1 up; what is none, or beyond the vocabulary, goes to either side of them
        place = (mine + move - N).clamp(0, N + 1) * (mine * move > 0)
        around: Tensor = logits.new_zeros(B, T, P, N + 2).scatter_add(-1, place, logits)
        return around[..., 1:-1]
