"""What people call a player: a part by its name, a program by General MIDI's."""

import re

import pretty_midi

from data.score import DRUMS, Grid

# Beginnings of words in the names of parts, in the languages of scores. The longest that fits
# counts.
_INSTRUMENTS = {
    **dict.fromkeys(("piano", "pianoforte", "klavier", "keyboard", "pno", "pfte"), 0),
    **dict.fromkeys(("harpsichord", "cembalo", "clavecin", "continuo"), 6),
    **dict.fromkeys(("organ", "orgel", "orgue"), 19),
    **dict.fromkeys(("guitar", "gitarre", "chitarra", "lute", "laute"), 24),
    **dict.fromkeys(("electric bass", "bass guitar", "e-bass"), 33),
    **dict.fromkeys(("violin", "violino piccolo", "geige", "vln"), 40),
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
_NUMBERS = {  # what names add when there are several alike, in any place
    word: number
    for number, words in enumerate(
        ("1 i 1st first", "2 ii 2nd second", "3 iii 3rd third", "4 iv 4th"), 1
    )
    for word in words.split()
}
# The edges of hi-hats, closed and open, which electronic drum kits send: General MIDI, and so the
# sound font, has no drums there, but these.
HI_HAT_EDGES = {22: 42, 26: 46}
_STRINGS, _ENSEMBLES = range(40, 48), range(48, 52)  # programs of strings


def named_instrument(name: str) -> int | None:
    """Return the program of the instrument that occurs in a name; None: there is none."""
    found = [word for word in _INSTRUMENTS if re.search(rf"\b{word}", name.casefold())]
    return _INSTRUMENTS[max(found, key=len)] if found else None


def played_by(name: str, program: int) -> int:
    """Return the program of a part: that of its name, if the file's program is of the same family.

    So a part called Viola with the program String Ensemble is a viola.
    """
    named = named_instrument(name)
    if named is None or program == DRUMS or name == instrument_name(program, Grid()):
        return program
    is_near = named // 8 == program // 8 or (named in _STRINGS and program in _ENSEMBLES)
    return named if is_near else program


def spelling(name: str) -> str:
    """Return a name as names are compared, with its number at the end unless it is 1.

    So 1st Violin, Violin I and Violin are the same, and so are Violoncello and Cello.
    """
    words = re.findall(r"[^\W_]+", name.casefold())
    numbers = [_NUMBERS[word] for word in words if word in _NUMBERS]
    others = [word for word in words if word not in _NUMBERS]
    others = ["cello" if word.startswith("violoncell") else word for word in others]
    number = max(numbers, default=1)
    return " ".join(others if number == 1 else [*others, str(number)])


def instrument_name(program: int, grid: Grid) -> str:
    """Return the name of a note's `program` on a grid, such as MELODY, Violin or Drums."""
    if program < len(grid.parts):
        return grid.parts[program].name
    if program == DRUMS:
        return "Drums"
    return str(pretty_midi.program_to_instrument_name(grid.general_midi(program)))


def sound_name(program: int, pitch: int, grid: Grid) -> str:
    """Return the name of what plays a note: an instrument, or a single drum."""
    if program != DRUMS:
        return instrument_name(program, grid)
    name = pretty_midi.note_number_to_drum_name(HI_HAT_EDGES.get(pitch, pitch))
    return f"{name} (edge)" if pitch in HI_HAT_EDGES else name or f"Drum {pitch}"
