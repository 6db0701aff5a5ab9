"""Which program a part of a score plays, where the score does not say it, or says it of many."""

import re
from collections import Counter
from collections.abc import Sequence

# What names of parts begin a word with, in the languages of scores. Of several the longest counts.
_INSTRUMENTS = {
    **dict.fromkeys(("piano", "pianoforte", "klavier", "keyboard", "pno", "pfte"), 0),
    **dict.fromkeys(("harpsichord", "cembalo", "clavecin", "continuo"), 6),
    **dict.fromkeys(("organ", "orgel", "orgue"), 19),
    **dict.fromkeys(("guitar", "gitarre", "chitarra", "lute", "laute"), 24),
    **dict.fromkeys(("violin", "geige", "vln"), 40),
    **dict.fromkeys(("viola", "bratsche", "vla"), 41),
    **dict.fromkeys(("violoncell", "cello"), 42),
    **dict.fromkeys(("contrabass", "contrebasse", "kontrabass", "double bass", "violone"), 43),
    **dict.fromkeys(("harp", "harfe", "arpa"), 46),
    **dict.fromkeys(("timpani", "pauken", "timbales"), 47),
    **dict.fromkeys(("trumpet", "trompet", "tromba", "cornet"), 56),
    **dict.fromkeys(("trombon", "posaune"), 57),
    **dict.fromkeys(("tuba",), 58),
    **dict.fromkeys(("horn", "corno"), 60),
    **dict.fromkeys(("soprano sax",), 64),
    **dict.fromkeys(("alto sax", "sax"), 65),
    **dict.fromkeys(("tenor sax",), 66),
    **dict.fromkeys(("baritone sax",), 67),
    **dict.fromkeys(("oboe", "hautbois"), 68),
    **dict.fromkeys(("english horn", "englischhorn", "cor anglais", "corno inglese"), 69),
    **dict.fromkeys(("bassoon", "fagott", "basson"), 70),
    **dict.fromkeys(("clarinet", "klarinette", "bass clarinet"), 71),
    **dict.fromkeys(("piccolo",), 72),
    **dict.fromkeys(("flute", "flauto", "flöte", "flûte"), 73),
    **dict.fromkeys(("recorder", "blockflöte"), 74),
}
_SINGERS = re.compile(
    r"\b(voice|vocal|voix|voce|vox|canto|cantus|chant|gesang|singstimme|choir|chor|coro|sopran|"
    r"discant|mezzo|alto|alt|altus|contralto|tenor|bariton|bass|basso|bassus|[satb])(e|o|us|i|s)?\b"
)
_SUNG = (52, 53, 54)  # programs of voices
VOICE = 52
CHOIR = (40, 41, 42, 43)  # as the chorales of the embedded corpus have them, from the top


def programs_of(parts: Sequence[tuple[str, int | None]]) -> list[int]:
    """Return the program of each part of a score by its name and the one that is said, if any.

    What is said counts; else the instrument that the name has in it; else a singer's name is one.
    Two voices or more that say nothing, or the same, are a choir: they take the programs of our
    chorales from the top, so that they stay apart. A single part that tells nothing is a piano.
    """
    programs = [_of_name(name) if program is None else program for name, program in parts]
    voices = [
        number
        for number, (name, said) in enumerate(parts)
        if programs[number] is None or said in _SUNG or (said is not None and _is_singer(name))
    ]
    count = Counter(programs[number] for number in voices)
    if count and max(count.values()) > 1:
        for place, number in enumerate(voices):
            programs[number] = CHOIR[min(place, len(CHOIR) - 1)]
    return [
        program if program is not None else VOICE if _is_singer(name) else 0
        for program, (name, _) in zip(programs, parts, strict=True)
    ]


def _of_name(name: str) -> int | None:
    """Return the program of the instrument that a name has in it."""
    found = [word for word in _INSTRUMENTS if re.search(rf"\b{word}", name.casefold())]
    return _INSTRUMENTS[max(found, key=len)] if found else None


def _is_singer(name: str) -> bool:
    return _of_name(name) is None and bool(_SINGERS.search(name.casefold()))
