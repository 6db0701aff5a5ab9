"""How tokens are written for people: `Bar 4/4`, `C4`, `1/4`."""

from fractions import Fraction

import pretty_midi

from data.score import Grid
from data.tokens.vocabulary import Kind, Vocabulary


def describe(vocabulary: Vocabulary, token: int) -> str:
    """Return an id as people read it: `Bar 4/4`, `C4`, `1/4` (whole notes), `@1.5` (beats).

    On a grid of seconds, these are `Bar`, `C4`, `0.25s` and `@0.5s`.
    """
    grid, kind = vocabulary.grid, Kind(vocabulary.kind_of[token])
    index = token - vocabulary.first(kind)
    match kind:
        case Kind.BAR:
            return "Bar {}/{}".format(*vocabulary.meters[index]) if grid.has_meter else "Bar"
        case Kind.LENGTH:
            return f"Length {_length(grid, index + 1)}"
        case Kind.TEMPO:
            return f"Tempo {vocabulary.tempos[index]}"
        case Kind.POSITION:
            unit = "" if grid.has_meter else "s"
            return f"@{round(index / grid.steps_per_beat, 2):g}{unit}"
        case Kind.NOTE:
            number, pitch = divmod(index, vocabulary.pitch_count)
            name = pretty_midi.note_number_to_name(pitch + vocabulary.lowest_pitch)
            is_solo = len(vocabulary.programs) == 1
            return name if is_solo else f"{name} {_player(grid, vocabulary.programs[number])}"
        case Kind.DURATION:
            return _length(grid, index + 1)
        case Kind.VELOCITY:
            return f"v{vocabulary.velocities[index]}"
    return kind.name.capitalize()


def _player(grid: Grid, program: int) -> str:
    """Return who plays: a program as `p40`, or a part by its name."""
    is_part = program < len(grid.parts)
    return grid.parts[program].name if is_part else f"p{grid.general_midi(program)}"


def _length(grid: Grid, steps: int) -> str:
    """Return a number of steps in whole notes, or in seconds."""
    if grid.has_meter:
        return str(Fraction(steps, 4 * grid.steps_per_beat))
    return f"{steps / grid.steps_per_beat:g}s"
