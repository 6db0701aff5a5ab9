"""Which program a part of a score plays, where the score does not say it, or says it of many."""

import re
from collections import Counter
from collections.abc import Sequence

from data.instrument_names import named_instrument

_CHOIR = {  # voices by name, and the programs of the embedded chorales, from the top
    "canto|cantus|discant|sopran|superius|s": 40,
    "alto|alt|altus|contralto|a": 41,
    "tenor|t": 42,
    "bass|basso|bassus|b": 43,
}
_ANY_VOICE = "voice|vocal|voix|voce|vox|chant|gesang|singstimme|choir|chor|coro|mezzo|bariton"
_SUNG = (52, 53, 54)  # programs of voices
VOICE = 52


def programs_of(parts: Sequence[tuple[str, int | None]]) -> list[int]:
    """Return the program of each part of a score by its name and the one that is said, if any.

    What is said counts; else the instrument that the name has in it; else a singer's name is one.
    Two voices or more that say nothing, or the same, are a choir: they take the programs of our
    chorales, by their names where these keep as many apart as by their places from the top. A
    single part that tells nothing is a piano.
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
    """Return the program of the voice of a choir that a name has in it."""
    found = (program for words, program in _CHOIR.items() if _has_word(name, words))
    return next(found, otherwise)


def _is_singer(name: str) -> bool:
    return named_instrument(name) is None and _has_word(name, "|".join([_ANY_VOICE, *_CHOIR]))


def _has_word(name: str, words: str) -> bool:
    """Return whether a name has one of some words, which may end as in other languages."""
    return bool(re.search(rf"\b({words})(e|o|us|i|s)?\b", name.casefold()))
