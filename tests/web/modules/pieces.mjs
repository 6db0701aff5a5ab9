// Pieces to try things on.

/** A piece of notes [onset, duration, pitch, program], twelve steps a quarter. */
export function piece(notes, meter = [4, 4], bars = 2) {
  const [numerator, denominator] = meter;
  const length = (numerator * 48) / denominator;
  return {
    notes: notes.map(([onset, duration, pitch, program = 40]) => [
      ...[onset, duration, pitch, 80, program, 0],
    ]),
    bars: Array.from({ length: bars }, () => [numerator, denominator, length]),
    tempo: Array.from({ length: bars }, () => [120]),
    grid: "beats",
    steps: 12,
  };
}

export const keys = (...notes) => new Set(notes.map(([on, pitch]) => `${on}/40/${pitch}`));
export const short = (made) => made.notes.map((note) => note.slice(0, 3));
