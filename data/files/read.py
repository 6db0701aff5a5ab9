"""Music files of every kind that Etude reads: MIDI, MusicXML, MEI, Humdrum and ABC."""

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
        FileNotFoundError, MidiError: as `read_events`, or times or values that no music has.
    """
    return score_from_events(read_events(path), grid, f"{path}: ")


def read_events(path: str | Path) -> Events:
    """Read what a music file says.

    Raises:
        FileNotFoundError: no such file.
        OSError: it cannot be read.
        MidiError: no music can be read in it.
    """
    return parse_events(io.content_of(path), str(path))


def parse_events(content: bytes, path: str) -> Events:
    """Read what the bytes of a music file say; `path` names it in messages.

    Raises:
        MidiError: no music can be read in them.
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

    It is read in a process of its own, if this is not one: native code may end it.

    Raises:
        NotationError: no music can be read in it.
    """
    import multiprocessing  # what follows takes its time to import, and few files need it

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
