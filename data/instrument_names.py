"""What people call who plays: a part by its name, a program by General MIDI's."""

import pretty_midi

from data.score import DRUMS, Grid


def instrument_name(program: int, grid: Grid) -> str:
    """Return the name of a note's `program` on a grid: MELODY, Violin or Drums."""
    if program < len(grid.parts):
        return grid.parts[program].name
    if program == DRUMS:
        return "Drums"
    return str(pretty_midi.program_to_instrument_name(grid.general_midi(program)))


def sound_name(program: int, pitch: int, grid: Grid) -> str:
    """Return the name of what plays a note: an instrument, or one drum."""
    if program != DRUMS:
        return instrument_name(program, grid)
    return pretty_midi.note_number_to_drum_name(pitch) or f"Drum {pitch}"
