"""Messages between the page and the server, as JSON.

Nothing that the page sends is trusted: every number is checked, every size is bounded, and a
message that does not fit is refused in one line. What the server sends is plain lists.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np

from common.arrays import Bools, Ints
from common.options import Count, Range, hints_of
from common.typed_json import checked
from data.canonical import canonical
from data.score import BAR, DRUMS, MOST_PROGRAM, NOTE, TEMPO_LEVELS, Grid, Score
from generation.constraints import Constraints

Json: TypeAlias = dict[str, Any]
How = Literal["continue", "accompany", "harmonize", "rewrite", "instead"]

MOST_BYTES = 512 * 2**10  # in a message
MOST_NOTES = 4096  # in a piece that a request sends; the page may hold a longer result
MOST_BARS = 512  # in such a piece
MOST_PAUSE = 64  # beats between a piece's last bar and its continuation
MOST_TEXT = 4096  # characters of seed text, or of chords
MOST_NAME = 256  # characters of a model's name
MOST_KEY = 20  # characters of a key
MOST_CHORD_TEXT = 64  # characters of the chords of a bar
MOST_PROGRAMS = 256

Program = Annotated[int, Range(0, MOST_PROGRAM)]
Pitch = Annotated[int, Range(0, 127)]
Bar = Annotated[int, Range(0, MOST_BARS)]
Meter = Annotated[int, Range(0, 64)]
Number = Annotated[float, Range(-1e9, 1e9)]  # a model decides which values it accepts

# Names in `Constraints` of settings that have another name on the page.
_NAMES = {"range": "pitch_range", "meter": "time_signature", "tempo": "tempo_bpm"}
_NAMES |= {"polyphony": "max_polyphony"}
_NOTE_LIMITS = ((0, 2**20), (1, 2**16), (0, 127), (1, 127), (0, MOST_PROGRAM), (0, 1))


class MessageError(ValueError):
    """A message that the page may not send; the text of the error is one line."""


@dataclass(frozen=True, eq=False)
class PagePiece:
    """A piece as the page holds it, and whether a person put in each of its notes, (N,)."""

    score: Score
    is_own: Bools


@dataclass(frozen=True)
class Settings:
    """What the controls of the page ask for, much as in `Constraints`; None: nothing."""

    key: str | None = None
    range: tuple[Pitch, Pitch] | None = None
    meter: tuple[Meter, Meter] | None = None
    tempo: Number | None = None
    busy: Number | None = None
    programs: tuple[Program, ...] | None = None
    polyphony: Annotated[int, Range(1, 64)] | None = None
    counterpoint: str | None = None
    rests: str | None = None
    cadence: str | None = None
    chords: str | None = None
    bar_chords: tuple[str, ...] = ()  # the chords of each bar, from the first; an empty text: any
    bars: Annotated[int, Range(1, 32)] | None = None  # to write; None: as many as the chords have
    temperature: Annotated[float, Range(0, 3)] | None = None  # None: the model's own

    @cached_property
    def constraints(self) -> Constraints:
        """The constraints on new music, without `bar_chords`.

        Raises:
            ConstraintError: a value that no model can meet.
        """
        asked = {_NAMES.get(name, name): value for name, value in vars(self).items()}
        return Constraints(**{name: asked[name] for name in asked.keys() & hints_of(Constraints)})


@dataclass(frozen=True)
class WriteRequest:
    """What to write.

    Attributes:
        model: its name in the list of models.
        how: continue after the piece; accompany it from its first note on, and continue; harmonize
            it to its end; rewrite bars; take another note instead, and rewrite what follows it.
        piece: the piece on the page.
        settings: the settings of the page.
        variations: how many pieces to write.
        random_seed: the same number gives the same pieces.
        opens: for `continue`, the step at which the new music begins, with the last notes held
            until then; 0: where they end.
        bars: for `rewrite`, the index of the first bar, and of the bar after the last one.
        programs: for `rewrite`, the programs to rewrite; empty: all.
        note: for `instead`, the number of the note.
        instead: for `instead`, the pitch and the program that take its place.
        written: for `instead`, the request that wrote the note; None: a person put it in.
    """

    model: str
    how: How
    piece: PagePiece
    settings: Settings
    variations: Annotated[int, Range(1, 4)]
    random_seed: Annotated[int, Range(0, 2**53)]
    opens: Count = 0
    bars: tuple[Bar, Bar] = (0, 0)
    programs: tuple[Program, ...] = ()
    note: Annotated[int, Range(0, MOST_NOTES)] = 0
    instead: tuple[Pitch, Program] = (0, 0)
    written: WriteRequest | None = None


def parse(text: str | bytes) -> Json:
    """Parse a message into a JSON object.

    Raises:
        MessageError: the message is not a JSON object.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageError("a message that is not JSON") from None
    if not isinstance(message, dict):
        raise MessageError("a message that is no object")
    return message


def text_of(message: Json, name: str, most: int = MOST_NAME) -> str:
    """Return a text in a message.

    Raises:
        MessageError: there is none, or it is too long.
    """
    text = message.get(name)
    if not isinstance(text, str) or len(text) > most:
        raise MessageError(f"{name} must be a text of at most {most} characters")
    return text


def piece_of(message: Json) -> PagePiece:
    """Return the piece in a message, in canonical form.

    Raises:
        MessageError: there is no piece, or one that a page cannot hold.
    """
    data = message.get("piece")
    if not isinstance(data, dict):
        raise MessageError("there must be a piece")
    notes = _table(data, "notes", 6, 2 * MOST_NOTES)
    bars = _table(data, "bars", 3, 2 * MOST_BARS)
    tempo = _table(data, "tempo", 1, 2 * MOST_BARS)[:, 0]
    named = {name: data[name] for name in ("parts", "meter") if name in data}
    counts = {"steps_per_beat": data.get("steps"), "kind": data.get("grid")}
    grid: Grid = _checked(Grid, counts | named, "piece")
    if not len(bars) or len(bars) != len(tempo):
        raise MessageError("a piece must have bars, each with its tempo")
    if np.any((tempo < TEMPO_LEVELS[0]) | (tempo > TEMPO_LEVELS[-1])):
        raise MessageError(f"a tempo must lie from {TEMPO_LEVELS[0]} to {TEMPO_LEVELS[-1]}")
    least, most = np.array(_NOTE_LIMITS).T
    if np.any((notes < least) | (notes > most)) or np.any(notes[:, 0] >= bars[:, 2].sum()):
        raise MessageError("a note lies outside of what a piece can hold")
    program = notes[:, 4]
    if grid.parts and np.any((program >= len(grid.parts)) & (program < DRUMS)):
        raise MessageError("a note has a program that no part of the piece has")
    rows = np.array([tuple(row) for row in notes[:, :5].tolist()], dtype=NOTE)
    bar_rows = np.array([tuple(bar) for bar in bars.tolist()], dtype=BAR)
    try:  # all else that no piece can have is refused there
        score = canonical(rows, bar_rows, tempo, grid)[0]
    except ValueError as error:
        raise MessageError(str(error)) from None
    names = ["onset", "program", "pitch"]
    return PagePiece(score, np.isin(score.notes[names], rows[notes[:, 5] != 0][names]))


def json_of(score: Score, is_own: Bools | bool = True) -> Json:
    """Return a piece in the page's form.

    Args:
        score: the piece.
        is_own: bool (N,), or one for all notes: whether a person put in each note.
    """
    notes = score.notes
    columns = [notes[name] for name in ("onset", "duration", "pitch", "velocity", "program")]
    columns[1] = np.minimum(columns[1], _NOTE_LIMITS[1][1])
    return {
        "notes": np.stack([*columns, np.broadcast_to(is_own, len(notes))], axis=1).tolist(),
        "bars": [list(bar) for bar in score.bars.tolist()],
        "tempo": score.tempo_bpm[:, None].tolist(),
        **counts_of(score.grid),
    }


def counts_of(grid: Grid) -> Json:
    """Return the page's description of a grid: the units in which a piece counts."""
    fields = grid.to_json()
    return {"grid": fields.pop("kind"), "steps": fields.pop("steps_per_beat"), **fields}


def settings_of(message: Json) -> Settings:
    """Return the settings in a message.

    Raises:
        MessageError: a value that no control of the page gives.
        ConstraintError: a value that no model can meet.
    """
    settings: Settings = _checked(Settings, message.get("settings"), "settings")
    for name, size, most in (
        ("key", len(settings.key or ""), MOST_KEY),
        ("chords", len(settings.chords or ""), MOST_TEXT),
        ("bar_chords", len(settings.bar_chords), MOST_BARS),
        ("bar_chords", max(map(len, settings.bar_chords), default=0), MOST_CHORD_TEXT),
        ("programs", len(settings.programs or ()), MOST_PROGRAMS),
    ):
        if size > most:
            raise MessageError(f"{name} must not be longer than {most}")
    if settings.constraints.chord_track is None and settings.bars is None:
        raise MessageError("settings must say how many bars to write")
    for text in settings.bar_chords:
        if set("|\r\n") & {*text}:
            raise MessageError("the chords of a bar have no bar line in them")
        if text.strip():
            _ = Constraints(chords=f"|{text}|")
    return settings


def write_request(message: Json) -> WriteRequest:
    """Return the request to write that a message holds.

    Raises:
        MessageError: the message does not hold a valid request.
        ConstraintError: the settings hold a value that no model can meet.
    """
    piece, how, written = piece_of(message), message.get("how"), message.get("written")
    read = {"piece": piece, "settings": settings_of(message), "written": None}
    read["model"] = text_of(message, "model")
    if how == "instead":
        if message.get("instead") is None:
            raise MessageError("instead must be a pitch and a program")
        integer_of(message, "note", len(piece.score.notes) - 1)
        if isinstance(written, dict) and written.get("how") != "instead":
            read["written"] = write_request(written)
        elif written is not None:
            raise MessageError("written must be what asked for the piece")
    request: WriteRequest = _checked(WriteRequest, message | read, "message")
    if how == "rewrite" and request.bars[0] >= request.bars[1]:
        raise MessageError("the piece has no such bars to rewrite")
    if len(request.programs) > MOST_PROGRAMS:
        raise MessageError(f"programs must not be longer than {MOST_PROGRAMS}")
    score = piece.score
    if len(score.notes) > MOST_NOTES or len(score.bars) > MOST_BARS:
        raise MessageError(f"the piece is too long: over {MOST_NOTES} notes or {MOST_BARS} bars")
    if request.opens > score.bar_starts[-1] + MOST_PAUSE * score.grid.steps_per_beat:
        raise MessageError("opens must be soon after the piece")
    return request


def integer_of(message: Json, name: str, most: int) -> int:
    """Return a whole number in a message.

    Raises:
        MessageError: there is none, or it is not between 0 and `most`.
    """
    number = message.get(name)
    if type(number) is not int or not 0 <= number <= most:
        raise MessageError(f"{name} must be a whole number from 0 to {most}")
    return number


def _checked(kind: Any, data: object, name: str) -> Any:
    """Return a dataclass with its fields taken from JSON; null and unknown names are ignored.

    Raises:
        MessageError: `data` is not an object, or a value does not fit its field.
    """
    if not isinstance(data, dict):
        raise MessageError(f"{name} must be an object")
    known = {each: data[each] for each in hints_of(kind) if data.get(each) is not None}
    try:
        return checked(kind, known, name)
    except ValueError as error:  # the sender knows only the names of fields
        raise MessageError(str(error).removeprefix(f"{name}.")) from None


def _table(data: Json, name: str, width: int, most: int) -> Ints:
    """Return a list of rows of whole numbers as int64 (N, width).

    Raises:
        MessageError: it is not such a list, or has more than `most` rows.
    """
    rows = data.get(name)
    if not isinstance(rows, list) or len(rows) > most:
        raise MessageError(f"{name} must be a list of at most {most} rows")
    for row in rows:
        is_row = isinstance(row, list) and len(row) == width
        if not is_row or not all(type(n) is int and 0 <= n < 2**31 for n in row):
            raise MessageError(f"{name} must be rows of {width} whole numbers")
    return np.array(rows, dtype=np.int64).reshape(-1, width)
