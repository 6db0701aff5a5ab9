"""Parts: which tracks of a file play which, and which parts the files of a folder have."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from data.instrument_names import instrument_name, played_by, spelling
from data.midi.events import Events
from data.score import DRUMS, MOST_PARTS, UNNAMED, Grid, Part
from data.stand_ins import stand_ins

LEAST_SHARE = 0.1  # of the files, in which a part is for it to have a name
_LONGEST_NAME = 40

_Key: TypeAlias = tuple[str, int]


@lru_cache(maxsize=4096)  # files share names
def part_key(part: Part) -> _Key:
    """Return by what parts are told apart: how a name is spelled, and who plays."""
    return spelling(part.name), played_by(part.name, part.program)


def tracks_of(events: Events) -> list[Part]:
    """Return who plays each track: its name, or that of its program, and its program.

    Of tracks that say the same the second is called "NAME 2", and so on. Drums are DRUMS.
    """
    found: list[Part] = []
    seen: Counter[_Key] = Counter()  # the number of the latest track that says so
    begin = 0
    for written, count in events.tracks:
        program = int(events.notes[begin, 4])
        begin += count
        printed = "".join(letter if letter.isprintable() else " " for letter in written)
        name = " ".join(printed[:_LONGEST_NAME].split()) or instrument_name(program, Grid())
        part = Part(name, program)
        said = part_key(part)
        while seen[part_key(part)]:
            seen[said] += 1
            part = replace(part, name=f"{name} {seen[said]}")
        seen[part_key(part)] = 1
        found.append(part)
    return found


def common_parts(pieces: Iterable[Sequence[Part]]) -> tuple[Part, ...]:
    """Return the parts that a tenth of the pieces name, and two at least; the commonest MOST_PARTS.

    They are in the order that they have in the files. A name that says no more than the program is
    none, unless there is a second of it, such as a second violin. Drums are none.

    Args:
        pieces: the tracks of each.
    """
    spelled: dict[_Key, Part] = {}
    pieces_with: Counter[_Key] = Counter()
    places: Counter[_Key] = Counter()  # sums of their places in files, from 0 to 1
    count = 0
    for tracks in pieces:
        count += 1
        for place, part in enumerate(tracks):
            key = part_key(part)
            spelled.setdefault(key, part)
            pieces_with[key] += 1
            places[key] += place
    common = [
        key for key, number in pieces_with.most_common() if number >= max(2, LEAST_SHARE * count)
    ]
    named = [
        (name, program)
        for name, program in common
        if _has_name(spelled[name, program])
        or (program != DRUMS and (f"{name} 2", program) in common)
    ][:MOST_PARTS]
    named.sort(key=lambda key: (places[key] / pieces_with[key], key))
    return tuple(spelled[key] for key in named)


def with_parts(events: Events, grid: Grid) -> Events:
    """Return events with the numbers of a grid's parts in the place of programs.

    A track plays the part of its name and program, or else of its name, if no other does; or else
    none: then its program keeps a number of its own.
    """
    if not grid.parts or not events.tracks:
        notes = events.notes.copy()
        if grid.parts:
            notes[:, 4] += UNNAMED * (notes[:, 4] != DRUMS)
        return replace(events, notes=notes)
    parts = [*reversed([*enumerate(grid.parts)])]  # of several alike the first counts
    exact = {part_key(part): n for n, part in parts}
    by_name = {part_key(part)[0]: n for n, part in parts}
    tracks = tracks_of(events)
    taken = {exact.get(part_key(part)) for part in tracks}
    numbers = []
    for part in tracks:
        name, program = part_key(part)
        number = exact.get((name, program))
        if number is None and _has_name(part):
            named = (by_name.get(each) for each in (name, f"{name} 2"))
            number = next((each for each in named if each not in taken), None)
        if number is None:
            number = UNNAMED + program
        taken.add(number)
        numbers.append(DRUMS if program == DRUMS else number)
    notes = events.notes.copy()
    notes[:, 4] = np.repeat(numbers, [count for _, count in events.tracks])
    return replace(events, notes=notes)


def with_tracks_apart(events: Events, programs: Sequence[int]) -> tuple[Events, list[str]]:
    """Return events whose tracks of one program play several, and a clause for each such program.

    Four tracks of a piano are four voices for those who have no piano but four instruments.

    Args:
        events: on which no parts are told apart yet.
        programs: that are known.
    """
    counts = [count for _, count in events.tracks]
    ends = np.cumsum(counts, dtype=np.int64)
    track_programs = events.notes[ends - 1, 4].tolist()
    shared = {p: n for p, n in Counter(track_programs).items() if n > 1 and p not in programs}
    shared.pop(DRUMS, None)
    free = [p for p in programs if p != DRUMS and p not in track_programs]
    if not shared or len(free) < 2:
        return events, []
    means = {  # of the tracks, numbered from -1 down: programs have numbers from 0 up
        -number: float(events.notes[end - count : end, 2].mean())
        for number, (end, count) in enumerate(zip(ends.tolist(), counts, strict=True), start=1)
        if track_programs[number - 1] in shared
    }
    play = stand_ins(means, free, lambda p: p if p >= 0 else track_programs[-p - 1])
    its = [play.get(-number, p) for number, p in enumerate(track_programs, start=1)]
    notes = events.notes.copy()
    notes[:, 4] = np.repeat(its, counts)
    changes = []
    for program, number in shared.items():
        players = {new for old, new in zip(track_programs, its, strict=True) if old == program}
        names = [instrument_name(each, Grid()) for each in (program, *sorted(players))]
        changes.append(f"{number} tracks of {names[0]} became {', '.join(names[1:])}")
    return replace(events, notes=notes), changes


def _has_name(part: Part) -> bool:
    """Return whether a name says more than the program."""
    name, program = part_key(part)
    return program != DRUMS and name != spelling(instrument_name(program, Grid()))
