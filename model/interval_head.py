"""Logits of notes by their interval from notes that were heard, which are the same in every key."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.interface import OCTAVE, SHARED_REFERENCES, SideInput
from model.config import CLASSES, REACH, STEPS, interval_rows

# In semitones, a note is counted from three references: what its program had before, what its
# program would have next if it repeated itself, and the latest note. Within the octave, it is
# counted from three more: the lowest note that sounds, the lowest before, and the tonic.
REFERENCES = 3


class IntervalHead(nn.Module):
    """Logits of notes by their interval from references; they are added to those by note.

    A head with one row for each note must learn each melodic step and each chord anew in every key.
    This head has one row for each distance, like the attention of Shaw et al. 2018 and Huang et al.
    2018. It adds up the logits of

    - the distance of the note, in semitones, from what its program had before, from what its
      program would have next if it repeated itself, and from the latest note that begins with it;
    - its distance, within the octave, from the lowest note that sounds, from the lowest before, and
      from the tonic;
    - if its program would move in parallel with another that has just moved, the interval between
      these two;
    - its intervals, within the octave, from all that sounds. So the head learns once which notes
      clash, for all keys.

    Args:
        n_embd: D.
        n_programs: P.
        n_pitches: N, how many pitches each program has.
        n_classes: 12; or 0, if the side input does not tell what sounds.
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
        """Return the logits of all notes, program by program.

        Args:
            x: float (B, T, D).
            references: int64 (B, T, 2 P + SHARED_REFERENCES), as in `SideInput`.
            moves: int64 (B, T, P), as in `SideInput`.
            sounding: int64 (B, T, 12), as in `SideInput`.

        Returns:
            float (B, T, P N).
        """
        P, N, counts = self.n_programs, self.n_pitches, REFERENCES * self.n_programs
        sizes = (counts * STEPS, counts * CLASSES, P * OCTAVE, P * self.n_classes)
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
        """Return the logits (B, T, V) of all ids, to which those of `forward` are added.

        `first` is the id of the first note, and x is that of `forward`.
        """
        of_notes = self(x, side.references, side.moves, side.sounding)  # (B, T, P N)
        after = logits.shape[-1] - first - of_notes.shape[-1]
        return logits + functional.pad(of_notes, (first, after))

    def _by_interval(self, by_row: Tensor, references: Tensor, row: Tensor) -> Tensor:
        """Return logits (B, T, P, M) of M notes, summed over the three references of each program.

        Args:
            by_row: float (B, T, 3 P R), a logit for each of R distances.
            references: int64 (B, T, 3 P).
            row: int64 (1 + N, M), the number of the distance from each reference to each note.
        """
        B, T, count = references.shape
        rows = row.index_select(0, references.flatten()).view(B, T, count, -1)
        logits = by_row.view(B, T, count, -1).gather(-1, rows)  # (B, T, 3 P, M)
        return logits.view(B, T, REFERENCES, -1, row.shape[1]).sum(dim=2)

    def _verticals(self, by_row: Tensor, sounding: Tensor) -> Tensor:
        """Return logits (B, T, P, 12) of pitch classes, summed over all that sounds.

        Args:
            by_row: float (B, T, 12 P), a logit for each interval.
            sounding: int64 (B, T, 12).
        """
        by_interval = by_row.unflatten(-1, (self.n_programs, OCTAVE))  # (B, T, P, 12)
        below = self.pitch_class[1 : OCTAVE + 1]  # (12, 12), the class so far below each other one
        logits: Tensor = by_interval @ sounding[..., below].to(by_row.dtype)
        return logits

    def _parallels(self, by_row: Tensor, own: Tensor, moves: Tensor) -> Tensor:
        """Return logits (B, T, P, N), nearly all 0, of the notes that would move in parallel.

        Args:
            by_row: float (B, T, 12 P), a logit for each interval.
            own: int64 (B, T, P), what each program had before.
            moves: int64 (B, T, P), by how much each has moved, plus N.
        """
        B, T, P = own.shape
        N = self.n_pitches
        mine, other, move = own[..., None], own[..., None, :], moves[..., None, :]
        by_interval = by_row.view(B, T, P, OCTAVE)  # (B, T, 12 P) -> (B, T, P, 12)
        logits = by_interval.gather(-1, (mine - other) % OCTAVE)  # (B, T, P, P), for each pair
        # notes count from 1; places 0 and N + 1 collect those that do not exist
        place = (mine + move - N).clamp(0, N + 1) * (mine * move > 0)
        around: Tensor = logits.new_zeros(B, T, P, N + 2).scatter_add(-1, place, logits)
        return around[..., 1:-1]
