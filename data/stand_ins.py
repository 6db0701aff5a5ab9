"""Which instruments play in place of others.

A model's instruments play for those of a file that the model does not know, and the common
instruments of a folder play for all others there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from data.score import FAMILY_PROGRAMS

_C3 = 48
_BASSES = 4  # the number of the bass guitars' family
_STRUCK = {*range(8, 16), 47}  # celesta to dulcimer, and timpani, which hold no note
_REACH = 8  # semitones from the middle of a register to the mean of what is played in it
# Pitches in the middle of General MIDI's instruments that have a register; all others lie in the
# middle.
_MIDDLE_PITCHES = {
    **{8: 84, 9: 91, 10: 84, 11: 72, 13: 79, 14: 72},  # celesta to tubular bells
    **{40: 76, 41: 67, 42: 54, 43: 41, 47: 45},  # violin, viola, cello, contrabass; timpani
    **{56: 70, 57: 54, 58: 41, 60: 57},  # trumpet, trombone, tuba, horn
    **{64: 71, 65: 63, 66: 58, 67: 51},  # saxophones
    **{68: 74, 69: 67, 70: 51, 71: 66},  # oboe, English horn, bassoon, clarinet
    **{72: 86, 73: 79},  # piccolo, flute
}


def stand_ins(
    mean_pitches: Mapping[int, float],
    there: Sequence[int],
    general_midi: Callable[[int], int] = int,
    tune: int | None = None,
) -> dict[int, int]:
    """Return which known program plays each unknown program of a piece.

    It is one of the same family if there is one, or else any in whose register it lies; of the
    highest voice, but a bass, who plays tunes. High voices take high ones and a bass takes the
    lowest, each a different one while there are enough.

    Args:
        mean_pitches: the mean pitch of each program in the piece, without drums.
        there: the known programs without drums, at least one.
        general_midi: maps the number of a program to that of General MIDI.
        tune: the known program that plays tunes; None: that is not known.
    """
    taken = {program for program in mean_pitches if program in there}
    highest = max(mean_pitches, key=mean_pitches.__getitem__, default=None)
    groups: dict[tuple[int, ...], list[int]] = {}  # unknown programs, by what they may become
    for program in mean_pitches:
        if program not in taken:
            sings = tune if program == highest and tune not in taken else None
            may = _who_may_play(program, mean_pitches[program], there, general_midi, sings)
            groups.setdefault(tuple(may), []).append(program)
    became: dict[int, int] = {}
    for candidates, unknown in sorted(groups.items(), key=lambda its: (its[0] != (tune,), its[0])):
        free = [program for program in candidates if program not in taken] or candidates
        high_to_low = sorted(free, key=lambda p: (-_middle_pitch(general_midi(p)), p))
        voices = sorted(unknown, key=lambda program: (-mean_pitches[program], program))
        is_bass = [_is_bass(general_midi(p), mean_pitches[p], len(voices)) for p in voices]
        for place, program in enumerate(voices):
            became[program] = high_to_low[_rank_in(len(high_to_low), place, is_bass)]
        taken |= set(became.values())
    return became


def _who_may_play(
    program: int,
    mean_pitch: float,
    there: Sequence[int],
    general_midi: Callable[[int], int],
    tune: int | None,
) -> Sequence[int]:
    """Return those of a program's family, or else who plays high and low, or where its notes lie.

    Where each keeps to a register of its own, as in a choir, all may: there voices go by order. Who
    plays tunes is given for a voice that is one, unless it is a bass.
    """
    own = general_midi(program)
    family = [p for p in there if general_midi(p) // FAMILY_PROGRAMS == own // FAMILY_PROGRAMS]
    if family or all(_has_register(general_midi(p)) for p in there):
        return family or there
    is_bass = _is_bass(own, mean_pitch, 1)
    if tune is not None and not is_bass:
        return [tune]

    def fits(other: int) -> bool:
        middle = _middle_pitch(other)
        is_near = abs(middle - mean_pitch) <= _REACH or (is_bass and middle < _C3)
        return other not in _STRUCK and (is_near or not _has_register(other))

    return [p for p in there if fits(general_midi(p))] or there


def _has_register(program: int) -> bool:
    """Return whether an instrument plays in one register, not high and low as a piano does."""
    return program in _MIDDLE_PITCHES or program // FAMILY_PROGRAMS == _BASSES


def _is_bass(program: int, mean_pitch: float, voices: int) -> bool:
    """Return whether a voice is a bass: by its instrument, or below C3 (beside others: C4)."""
    return _middle_pitch(program) < _C3 or mean_pitch < (_C3 if voices == 1 else _C3 + 12)


def _rank_in(instruments: int, place: int, is_bass: list[bool]) -> int:
    """Return which instrument a voice takes; both are counted from 0 for the highest.

    If there are enough instruments, voices take them from the top down, but from the first bass on
    they take the lowest. If there are too few, neighboring voices share one.

    Args:
        instruments: how many there are.
        place: the number of the voice.
        is_bass: whether each voice is a bass.
    """
    voices = len(is_bass)
    if voices > instruments:
        return (2 * place * (instruments - 1) + voices - 1) // (2 * (voices - 1))
    return place + instruments - voices if any(is_bass[: place + 1]) else place


def _middle_pitch(program: int) -> int:
    """Return a pitch near the middle of an instrument's range; only the order of these matters."""
    if program // FAMILY_PROGRAMS == _BASSES:
        return 40
    return _MIDDLE_PITCHES.get(program, 64)
