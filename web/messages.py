"""What the page says and hears, as JSON: checked when it comes in, plain lists when it goes out.

Nothing that comes from the page is trusted: every number is checked, every size bounded, and a
message that does not fit is refused in one line.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from common.typed_json import checked
from data.canonical import canonical
from data.score import BAR, DRUMS, MOST_PROGRAM, NOTE, TEMPO_LEVELS, Grid, Score
from generation.constraints import Constraints

Json: TypeAlias = dict[str, Any]
How = Literal["continue", "accompany", "harmonize", "rewrite", "instead"]

MOST_BYTES = 512 * 2**10  # of a message
MOST_NOTES = 4096  # of a piece
MOST_BARS = 512  # of a piece
MOST_NEW_BARS = 32
MOST_PAUSE = 64  # beats between a piece's last bar and what goes on with it
MOST_VARIATIONS = 4
MOST_TEXT = 4096  # characters of seed text, or of chords
MOST_CHORD_TEXT = 64  # characters of the chords of a bar

_NOTE_LIMITS = ((0, 2**20), (1, 2**16), (0, 127), (1, 127), (0, MOST_PROGRAM))
_GRIDS: dict[Literal["beats", "seconds"], range] = {
    "beats": range(1, 97),
    "seconds": range(1, 1001),
}  # steps a beat, or a second


class MessageError(ValueError):
    """A message that is not what the page may say; the message is one line."""


@dataclass(frozen=True, eq=False)
class PagePiece:
    """A piece as the page holds it, and which of its notes, (N,), a person put in."""

    score: Score
    is_own: NDArray[np.bool_]


@dataclass(frozen=True)
class Settings:
    """What the controls of the page ask for."""

    constraints: Constraints
    bars: int | None  # to write after what there is; None: until the chords are over
    temperature: float | None  # None: the model's own
    chords: tuple[str, ...] = ()  # of each bar of the piece from its first on; empty: any


@dataclass(frozen=True)
class WriteRequest:
    """What to write.

    Attributes:
        model: its name in the list of models.
        how: continue after the piece; accompany it from its first note on, and continue; harmonize
            it to its end; rewrite bars; take another note instead, and rewrite what follows it.
        piece: what there is.
        settings: of the page.
        variations: how many pieces to write.
        random_seed: the same number writes the same pieces.
        opens: for `continue` the step with which it goes on, the last notes being held until then;
            0: where they end.
        bars: for `rewrite` the index of the first bar, and of the one after the last.
        programs: for `rewrite` whose notes; none: everyone's.
        instead: for `instead` the pitch and program of the other note.
        note: for `instead` the number of the note in whose place it comes.
        written: for `instead` the request that wrote that note; None: nothing is known of it.
    """

    model: str
    how: How
    piece: PagePiece
    settings: Settings
    variations: int
    random_seed: int
    opens: int = 0
    bars: tuple[int, int] = (0, 0)
    programs: tuple[int, ...] = ()
    instead: tuple[int, ...] = ()
    note: int = 0
    written: WriteRequest | None = None


def parse(text: str | bytes) -> Json:
    """Return the object in a message.

    Raises:
        MessageError: it is none.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageError("a message that is not JSON") from None
    if not isinstance(message, dict):
        raise MessageError("a message that is no object")
    return message


def text_of(message: Json, name: str, most: int = 256) -> str:
    """Return a text in a message.

    Raises:
        MessageError: there is none, or it is too long.
    """
    text = message.get(name)
    if not isinstance(text, str) or len(text) > most:
        raise MessageError(f"{name} must be a text of at most {most} letters")
    return text


def piece_of(message: Json, name: str = "piece") -> PagePiece:
    """Return the piece in a message, in canonical form.

    Raises:
        MessageError: there is none that a page can hold.
    """
    data = message.get(name)
    if not isinstance(data, dict):
        raise MessageError(f"{name} must be a piece")
    notes = _table(data, "notes", 6, MOST_NOTES)
    bars = _table(data, "bars", 3, MOST_BARS)
    tempo = _table(data, "tempo", 1, MOST_BARS)[:, 0]
    steps, kinds = data.get("steps"), [kind for kind in _GRIDS if kind == data.get("grid")]
    if not kinds or type(steps) is not int or steps not in _GRIDS[kinds[0]]:
        raise MessageError("a piece must have a grid of beats or seconds")
    named = {name: data[name] for name in ("parts", "meter") if name in data}
    try:
        grid = checked(Grid, {"steps_per_beat": steps, "kind": kinds[0], **named}, name)
    except ValueError:
        raise MessageError("a piece must have parts with names and programs") from None
    if not len(bars) or len(bars) != len(tempo):
        raise MessageError("a piece must have bars, each with its tempo")
    numerator, denominator, length = bars.T
    if np.any((numerator < 1) | (numerator > 64) | ~np.isin(denominator, (1, 2, 4, 8, 16, 32, 64))):
        raise MessageError("a bar must have a meter from 1/64 to 64/1")
    if np.any((length < 1) | (length > grid.bar_steps(numerator, denominator))):
        raise MessageError("a bar must not be longer than its meter says")
    if np.any((tempo < TEMPO_LEVELS[0]) | (tempo > TEMPO_LEVELS[-1])):
        raise MessageError(f"a tempo must lie from {TEMPO_LEVELS[0]} to {TEMPO_LEVELS[-1]}")
    for column, (low, high) in zip(notes.T, _NOTE_LIMITS, strict=False):
        if np.any((column < low) | (column > high)):
            raise MessageError("a note lies outside of what a piece can hold")
    program, is_part = notes[:, 4], notes[:, 4] < DRUMS
    if np.any(is_part & (program >= len(grid.parts)) if grid.parts else program > DRUMS):
        raise MessageError("a note has a program that no part of the piece has")
    if np.any(notes[:, 0] >= length.sum()):
        raise MessageError("a note begins after the last bar")
    rows = np.array([tuple(row) for row in notes[:, :5].tolist()], dtype=NOTE)
    bar_rows = np.array([tuple(bar) for bar in bars.tolist()], dtype=BAR)
    try:
        score = canonical(rows, bar_rows, tempo, grid)[0]
    except ValueError as error:
        raise MessageError(str(error)) from None
    names = ["onset", "program", "pitch"]
    return PagePiece(score, np.isin(score.notes[names], rows[notes[:, 5] != 0][names]))


def json_of(score: Score, is_own: NDArray[np.bool_]) -> Json:
    """Return a piece as the page holds it."""
    notes = score.notes
    columns = [notes[name] for name in ("onset", "duration", "pitch", "velocity", "program")]
    return {
        "notes": np.stack([*columns, is_own], axis=1).tolist(),
        "bars": [list(bar) for bar in score.bars.tolist()],
        "tempo": score.tempo_bpm[:, None].tolist(),
        **counts_of(score.grid),
    }


def counts_of(grid: Grid) -> Json:
    """Return what a piece's numbers count, as the page holds it."""
    fields = grid.to_json()
    return {"grid": fields.pop("kind"), "steps": fields.pop("steps_per_beat"), **fields}


def settings_of(message: Json) -> Settings:
    """Return the settings in a message.

    Raises:
        MessageError: values that no control gives.
        ConstraintError: values that no model can meet.
    """
    data = message.get("settings")
    if not isinstance(data, dict):
        raise MessageError("settings must be an object")
    key, low_high, meter = data.get("key"), data.get("range"), data.get("meter")
    programs, polyphony, tempo = data.get("programs"), data.get("polyphony"), data.get("tempo")
    if key is not None and not (isinstance(key, str) and len(key) <= 20):
        raise MessageError("key must be a name, such as D minor")
    if low_high is not None and not (_is_integers(low_high, 127) and len(low_high) == 2):
        raise MessageError("range must be two notes")
    if meter is not None and not (_is_integers(meter, 64) and len(meter) == 2):
        raise MessageError("meter must be two numbers")
    if programs is not None and not _is_integers(programs, MOST_PROGRAM):
        raise MessageError("instruments must be program numbers")
    if polyphony is not None:
        polyphony = _integer(data, "polyphony", 1, 64)
    busy, cadence = data.get("busy"), data.get("cadence")
    if not all(number is None or _is_number(number) for number in (tempo, busy)):
        raise MessageError("tempo and busy must be numbers")
    if cadence is not None and not isinstance(cadence, str):
        raise MessageError("cadence must be a name")
    temperature = data.get("temperature")
    if temperature is not None and not (_is_number(temperature) and 0 <= temperature <= 3):
        raise MessageError("boldness must be a number from 0 to 3")
    constraints = Constraints(
        key=key or None,
        pitch_range=None if low_high is None else (low_high[0], low_high[1]),
        programs=None if programs is None else tuple(programs),
        max_polyphony=polyphony,
        tempo_bpm=tempo,
        busy=busy,
        cadence=cadence,
        time_signature=None if meter is None else (meter[0], meter[1]),
        counterpoint=data.get("counterpoint"),
        rests=data.get("rests"),
        chords=None if data.get("chords") is None else text_of(data, "chords", MOST_TEXT),
    )
    is_open = constraints.chord_track is not None and data.get("bars") is None
    bars = None if is_open else _integer(data, "bars", 1, MOST_NEW_BARS)
    return Settings(constraints, bars, temperature, _bar_chords(data))


def _bar_chords(data: Json) -> tuple[str, ...]:
    """Return the chords of each bar of a piece, which may be left out.

    Raises:
        MessageError: they are no texts, or many.
        ConstraintError: they cannot be read.
    """
    texts = data.get("bar_chords") or []
    if not isinstance(texts, list) or len(texts) > MOST_BARS:
        raise MessageError(f"bar_chords must be a list of at most {MOST_BARS} texts")
    for text in texts:
        if not isinstance(text, str) or len(text) > MOST_CHORD_TEXT or set("|\r\n") & {*text}:
            raise MessageError(
                f"a bar has at most {MOST_CHORD_TEXT} letters of chords, and no bar line"
            )
        if text.strip():
            _ = Constraints(chords=f"|{text}|")
    return tuple(text.strip() for text in texts)


def write_request(message: Json) -> WriteRequest:
    """Return what a message asks to write.

    Raises:
        MessageError: it does not say that.
        ConstraintError: settings that no model can meet.
    """
    how: Any = message.get("how")
    if how not in [*get_args(How)]:
        raise MessageError("there is no such way to write")
    piece = piece_of(message)
    bars = _integers(message, "bars", MOST_BARS)
    instead = _integers(message, "instead", MOST_PROGRAM)
    if how == "rewrite" and not (len(bars) == 2 and bars[0] < bars[1]):
        raise MessageError("select bars of the piece to rewrite")
    if how == "instead" and (len(instead) != 2 or instead[0] > 127):
        raise MessageError("instead must be a pitch and a program")
    return WriteRequest(
        model=text_of(message, "model"),
        how=how,
        piece=piece,
        settings=settings_of(message),
        variations=_integer(message, "variations", 1, MOST_VARIATIONS),
        random_seed=_integer(message, "random_seed", 0, 2**53),
        opens=_opens(message, piece) if how == "continue" else 0,
        bars=(bars[0], bars[1]) if how == "rewrite" else (0, 0),
        programs=_integers(message, "programs", MOST_PROGRAM),
        instead=instead if how == "instead" else (),
        note=note_number(message, piece) if how == "instead" else 0,
        written=_written(message) if how == "instead" else None,
    )


def _opens(message: Json, piece: PagePiece) -> int:
    """Return the step with which a piece is to go on."""
    score = piece.score
    most = int(score.bar_starts[-1]) + MOST_PAUSE * score.grid.steps_per_beat
    return _integer({"opens": 0} | message, "opens", 0, most)


def _written(message: Json) -> WriteRequest | None:
    """Return the request in a message that wrote a note; it took no other note instead."""
    written = message.get("written")
    if written is None:
        return None
    if not isinstance(written, dict) or written.get("how") == "instead":
        raise MessageError("written must be what asked for the piece")
    return write_request(written)


def note_number(message: Json, piece: PagePiece) -> int:
    """Return the number of the note of a piece that a message points to.

    Raises:
        MessageError: there is no such note.
    """
    return _integer(message, "note", 0, len(piece.score.notes) - 1)


def bar_number(message: Json) -> int:
    """Return the index of the bar that a message points to.

    Raises:
        MessageError: no piece has such a bar.
    """
    return _integer(message, "bar", 0, MOST_BARS - 1)


def _table(data: Json, name: str, width: int, most: int) -> NDArray[np.int64]:
    """Return rows of whole numbers, int64 (N, width)."""
    rows = data.get(name)
    if not isinstance(rows, list) or len(rows) > most:
        raise MessageError(f"{name} must be a list of at most {most} rows")
    if not all(_is_integers(row, 2**31 - 1) and len(row) == width for row in rows):
        raise MessageError(f"{name} must be rows of {width} whole numbers")
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _is_integers(value: object, most: int) -> bool:
    """Return whether a value is a list of at most 256 whole numbers from 0 to `most`."""
    if not isinstance(value, list) or len(value) > 256:
        return False
    return all(type(number) is int and 0 <= number <= most for number in value)


def _integers(data: Json, name: str, most: int) -> tuple[int, ...]:
    """Return a list of whole numbers, which may be left out."""
    numbers = data.get(name)
    if numbers is None:
        return ()
    if not _is_integers(numbers, most):
        raise MessageError(f"{name} must be whole numbers from 0 to {most}")
    return tuple(numbers)


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and type(value) is not bool and -1e9 < value < 1e9


def _integer(data: Json, name: str, low: int, high: int) -> int:
    number = data.get(name)
    if type(number) is not int or not low <= number <= high:
        raise MessageError(f"{name} must be a whole number from {low} to {high}")
    return number
