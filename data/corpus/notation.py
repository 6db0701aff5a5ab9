"""The notation in a folder as MIDI files, which are read again and again in milliseconds."""

from collections.abc import Sequence
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

Tune = tuple[str, str, int]  # the name of a piece, its file, and which tune of that file it is


def notation_as_midi(
    folder: Path, files: Sequence[str], into: Path, workers: int, progress: bool
) -> tuple[list[str], list[tuple[str, str]]]:
    """Write the notation among some files as MIDI, by the names of its pieces.

    A file of ABC may hold many tunes, which are as many pieces: the third of reels.abc is called
    reels.abc/3.abc, as no file can be.

    Returns:
        The names of all pieces, MIDI files among them, in order; and the name and the reason of
        each file or tune that cannot be read.
    """
    names, left_out = [name for name in files if is_midi(name)], []
    notation = [tune for name in files if not is_midi(name) for tune in _tunes(folder, name)]
    convert = partial(_convert, folder=folder, into=into)
    each, hides = guarded(convert, notation, workers), None if progress else True
    for (name, _, _), found in tqdm(each, "converting", len(notation), disable=hides):
        if isinstance(found, Failed):
            left_out.append((name, found.reason))
        else:
            names.append(name)
    return sorted(names), left_out


def _tunes(folder: Path, name: str) -> list[Tune]:
    """Return the pieces in a file of notation."""
    count = 1
    if name.lower().endswith(".abc"):
        with suppress(OSError, MidiError, NotationError):  # when it is converted there is a reason
            count = len(tunes_of(kind_of(content_of(folder / name))[1]))
    if count <= 1:
        return [(name, name, 0)]
    return [(f"{name}/{number + 1}.abc", name, number) for number in range(count)]


def _convert(tune: Tune, folder: Path, into: Path) -> Failed | None:
    """Write a piece as a MIDI file, or return why it cannot be."""
    piece, name, number = tune
    try:
        kind, text = kind_of(content_of(folder / name))
        found = midi_or_reason((kind, tunes_of(text)[number] if kind == "abc" else text))
    except (MidiError, NotationError, OSError) as error:
        return reason_of(error, folder / name)
    if isinstance(found, Failed):
        return found
    (into / piece).parent.mkdir(parents=True, exist_ok=True)
    (into / piece).write_bytes(found)
    return None
