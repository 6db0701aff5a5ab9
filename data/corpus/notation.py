"""Keeps the notation in a folder as MIDI files, which can be read again in milliseconds."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from tqdm import tqdm

from common.worker_pool import Failed, guarded
from data.corpus.find_files import is_midi
from data.corpus.reader import reason_of
from data.files.notation import midi_or_reason
from data.files.source_text import NotationError, kind_of, tunes_of
from data.midi.io import content_of
from data.midi.quantize import MidiError

Tune = tuple[str, Path, int]  # the name of a piece, its file, and its number in that file


def notation_as_midi(
    files: Mapping[str, Path], into: Path, workers: int
) -> tuple[dict[str, Path], list[tuple[str, str]]]:
    """Write the notation among some files as MIDI, under the names of its pieces.

    A file of ABC may have many tunes, each of which is a piece: the third tune of reels.abc is
    called reels.abc/3.abc, a name that no file can have.

    Returns:
        The names of all pieces in order, including MIDI files, and their MIDI files; and the name
        of each file or tune that cannot be read, with the reason.
    """
    found_in, left_out = {name: path for name, path in files.items() if is_midi(name)}, []
    notation = [
        tune for name, path in files.items() if not is_midi(name) for tune in _tunes(name, path)
    ]
    each = guarded(partial(_convert, into=into), notation, workers)
    for (name, _, _), found in tqdm(each, "converting", len(notation), disable=None):
        if isinstance(found, Failed):
            left_out.append((name, found.reason))
        else:
            found_in[name] = into / name
    return dict(sorted(found_in.items())), left_out


def _tunes(name: str, path: Path) -> list[Tune]:
    """Return the pieces in a file of notation."""
    count = 1
    if name.lower().endswith(".abc"):
        with suppress(OSError, MidiError, NotationError):  # its conversion will give the reason
            count = len(tunes_of(kind_of(content_of(path))[1]))
    if count <= 1:
        return [(name, path, 0)]
    return [(f"{name}/{number + 1}.abc", path, number) for number in range(count)]


def _convert(tune: Tune, into: Path) -> Failed | None:
    """Write a piece as a MIDI file, or return why that is impossible."""
    piece, path, number = tune
    try:
        kind, text = kind_of(content_of(path))
        found = midi_or_reason((kind, tunes_of(text)[number] if kind == "abc" else text))
    except (MidiError, NotationError, OSError) as error:
        return reason_of(error, path)
    if isinstance(found, Failed):
        return found
    (into / piece).parent.mkdir(parents=True, exist_ok=True)
    (into / piece).write_bytes(found)
    return None
