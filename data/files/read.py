"""Reads every kind of music file: MIDI, MusicXML, MEI, Humdrum and ABC."""

from pathlib import Path

from data.canonical import GridChanges
from data.files.source_text import MIDI_SUFFIXES, NotationError, kind_of, tunes_of
from data.midi import io
from data.midi.events import Events
from data.midi.quantize import MidiError, score_from_events
from data.score import Grid, Score


def read_score(path: str | Path, grid: Grid) -> tuple[Score, GridChanges]:
    """Read the Score in a music file, and count what bringing it to the grid changed.

    Raises:
        FileNotFoundError, OSError: as in `read_events`.
        MidiError: as in `read_events`, or there are times or values that no music has.
    """
    return score_from_events(read_events(path), grid, f"{path}: ")


def read_events(path: str | Path) -> Events:
    """Read what a music file says.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the file cannot be read.
        MidiError: no music can be read in it.
    """
    return parse_events(io.content_of(path), str(path))


def parse_events(content: bytes, path: str) -> Events:
    """Read what the bytes of a music file say; `path` names the file in messages.

    Raises:
        MidiError: no music can be read in the bytes.
    """
    if content[:4] in (b"MThd", b"RIFF", b"") or path.lower().endswith(MIDI_SUFFIXES):
        return io.parse_events(content, path)
    try:
        kind, text = kind_of(content)
        if len(tunes := tunes_of(text) if kind == "abc" else []) > 1:
            raise NotationError(f"it holds {len(tunes):,} tunes; save one in a file of its own")
        midi = _midi_of(kind, text)
    except NotationError as error:
        raise MidiError(f"{path}: {error}") from None
    return io.parse_events(midi, path)


def _midi_of(kind: str, text: str) -> bytes:
    """Return notation as the bytes of a MIDI file.

    It is read in a process of its own, unless this already is one, since native code may end it.

    Raises:
        NotationError: no music can be read in the text.
    """
    import multiprocessing  # these imports take time, and few files need them

    from common.worker_pool import Failed, guarded
    from data.files.notation import midi_or_reason

    found: bytes | Failed
    if multiprocessing.parent_process() is None:
        ((_, found),) = guarded(midi_or_reason, [(kind, text)])
    else:
        found = midi_or_reason((kind, text))
    if isinstance(found, Failed):
        raise NotationError(found.reason)
    return found
