"""Parts: which part each track of a file plays, and which parts the files of a folder have."""

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

LEAST_SHARE = 0.1  # a part has a name if at least this share of the files has it
_LONGEST_NAME = 40

_Key: TypeAlias = tuple[str, int]


@lru_cache(maxsize=4096)  # files often have the same names
def part_key(part: Part) -> _Key:
    """Return what distinguishes parts: how the name is spelled, and who plays."""
    return spelling(part.name), played_by(part.name, part.program)


def tracks_of(events: Events) -> list[Part]:
    """Return who plays each track: its name, or the name of its program; and its program.

    If several tracks say the same, the second is called "NAME 2", and so on. Drums are DRUMS.
    """
    found: list[Part] = []
    seen: Counter[_Key] = Counter()  # the number of the latest track that says the same
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
    """Return the parts that at least a tenth of the pieces, and at least two, name.

    There are at most MOST_PARTS, the commonest, in the order that they have in the files. A name
    that says no more than the program is not a part, unless there is a second one, such as a second
    violin. Drums are not parts.

    Args:
        pieces: the tracks of each piece.
    """
    spelled: dict[_Key, Part] = {}
    pieces_with: Counter[_Key] = Counter()
    places: Counter[_Key] = Counter()  # sums of the parts' places in files, from 0 to 1
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
    """Return events with the numbers of a grid's parts in place of programs.

    A track plays the part of its name and program, or else the part of its name if no other track
    does. If it plays none, its program keeps a number of its own.
    """
    if not grid.parts or not events.tracks:
        notes = events.notes.copy()
        if grid.parts:
            notes[:, 4] += UNNAMED * (notes[:, 4] != DRUMS)
        return replace(events, notes=notes)
    parts = [*reversed([*enumerate(grid.parts)])]  # of several alike, the first counts
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
    """Return events in which tracks that share a program play different ones, and what was done.

    So four tracks of a piano become four voices for a model that has no piano but four instruments.

    Args:
        events: in which no parts are distinguished yet.
        programs: the known ones.

    Returns:
        The events, and a clause for each program that was shared.
    """
    counts = [count for _, count in events.tracks]
    ends = np.cumsum(counts, dtype=np.int64)
    track_programs = events.notes[ends - 1, 4].tolist()
    shared = {p: n for p, n in Counter(track_programs).items() if n > 1 and p not in programs}
    shared.pop(DRUMS, None)
    free = [p for p in programs if p != DRUMS and p not in track_programs]
    if not shared or len(free) < 2:
        return events, []
    means = {  # of the tracks, numbered from -1 down, since programs are numbered from 0 up
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
    """Return whether the name of a part says more than its program."""
    name, program = part_key(part)
    return program != DRUMS and name != spelling(instrument_name(program, Grid()))
