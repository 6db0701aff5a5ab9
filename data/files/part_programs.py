"""Chooses the program of a part in a score that names none, or names one for many parts."""

import re
from collections import Counter
from collections.abc import Sequence

from data.instrument_names import named_instrument

_CHOIR = {  # names of voices, and the programs of the embedded chorales, from the top
    "canto|cantus|discant|sopran|superius|s": 40,
    "alto|alt|altus|contralto|a": 41,
    "tenor|t": 42,
    "bass|basso|bassus|b": 43,
}
_ANY_VOICE = "voice|vocal|voix|voce|vox|chant|gesang|singstimme|choir|chor|coro|mezzo|bariton"
_SUNG = (52, 53, 54)  # the programs of singers
VOICE = 52


def programs_of(parts: Sequence[tuple[str, int | None]]) -> list[int]:
    """Return the program of each part of a score, by its name and the program named, if any.

    A named program counts; else the instrument in the part's name; else a singer's name is a
    singer. Two or more voices that name nothing, or name the same, are a choir. They take the
    programs of our chorales: by their names, if these distinguish as many voices as their places
    from the top do. A single part that says nothing is a piano.
    """
    programs = [named_instrument(name) if program is None else program for name, program in parts]
    voices = [
        number
        for number, (name, said) in enumerate(parts)
        if programs[number] is None or said in _SUNG or (said is not None and _is_singer(name))
    ]
    count = Counter(programs[number] for number in voices)
    voices = [
        number
        for number in voices
        if programs[number] in (None, *_SUNG) or count[programs[number]] > 1
    ]
    if count and max(count.values()) > 1:
        choir = [*_CHOIR.values()]
        by_place = [choir[min(place, len(choir) - 1)] for place in range(len(voices))]
        by_name = [*map(_of_voice, (parts[number][0] for number in voices), by_place)]
        apart = max(by_name, by_place, key=lambda found: len({*found}))
        for number, program in zip(voices, apart, strict=True):
            programs[number] = program
    return [
        program if program is not None else VOICE if _is_singer(name) else 0
        for program, (name, _) in zip(programs, parts, strict=True)
    ]


def _of_voice(name: str, otherwise: int) -> int:
    """Return the program of the choir's voice that a name contains."""
    found = (program for words, program in _CHOIR.items() if _has_word(name, words))
    return next(found, otherwise)


def _is_singer(name: str) -> bool:
    return named_instrument(name) is None and _has_word(name, "|".join([_ANY_VOICE, *_CHOIR]))


def _has_word(name: str, words: str) -> bool:
    """Return whether a name has one of some words, with the endings of other languages."""
    return bool(re.search(rf"\b({words})(e|o|us|i|s)?\b", name.casefold()))
