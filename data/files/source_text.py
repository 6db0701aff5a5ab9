"""The endings of music files' names, the text in a file of notation, and its kind of notation."""

import codecs
import io
import lzma
import re
import zipfile
import zlib
from itertools import pairwise
from xml.parsers import expat

from data.midi.events import MAX_FILE_BYTES

# The endings of the names of all music files that Etude reads.
MIDI_SUFFIXES = (".mid", ".midi", ".kar")
SUFFIXES = (*MIDI_SUFFIXES, ".musicxml", ".mxl", ".xml", ".mei", ".krn", ".abc")

_ROOTS = {"score-partwise": "xml", "mei": "mei"}  # root elements of XML, and verovio's names
_HUMDRUM = re.compile(r"(!!|\*\*)")
_TUNE = re.compile(r"^(?=X:)", re.MULTILINE)  # where a tune begins in ABC
_DECLARED = re.compile(rb"<\?xml[^>]*\bencoding=[\"']([\w.:-]+)")
_BYTE_ORDER = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class NotationError(ValueError):
    """Raised if no music can be read in notation; the message is one line."""


def kind_of(content: bytes) -> tuple[str, str]:
    """Return verovio's name for the kind of notation in the bytes of a file, and the text.

    The kind is "xml" for MusicXML, "mei", "humdrum" or "abc".

    Raises:
        NotationError: the bytes are none of these, or damaged, or too large.
    """
    if content.startswith(b"PK\x03\x04"):
        content = _unpacked(content)
    text = _decoded(content)
    start = text.lstrip()
    if start.startswith("<"):
        return _kind_of_xml(text), text
    if _HUMDRUM.match(start):
        _check_humdrum(text)
        return "humdrum", text
    if _TUNE.search(text):
        return "abc", text
    raise NotationError("it is neither MIDI, MusicXML, MEI, Humdrum nor ABC")


def tunes_of(text: str) -> list[str]:
    """Return the tunes in a text of ABC, each preceded by what stands before the first."""
    head, *tunes = _TUNE.split(text)
    return [head + tune for tune in tunes]


def _unpacked(content: bytes) -> bytes:
    """Return the score in a compressed MusicXML file (.mxl)."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            own = [n for n in archive.namelist() if not n.startswith(("META-INF", "__MACOSX"))]
            scores = [name for name in own if name.lower().endswith((".xml", ".musicxml"))]
            if not scores:
                raise NotationError("a zip archive without MusicXML")
            with archive.open(scores[0]) as file:
                unpacked = file.read(MAX_FILE_BYTES + 1)
    except NotationError:
        raise
    except (
        *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
        *(LookupError, RuntimeError, ValueError),
    ):
        raise NotationError("a zip archive that is damaged") from None
    if len(unpacked) > MAX_FILE_BYTES:
        raise NotationError(f"it unpacks to more than {MAX_FILE_BYTES >> 20} MiB")
    return unpacked


def _decoded(content: bytes) -> str:
    mark = next((mark for mark in _BYTE_ORDER if content.startswith(mark)), b"")
    declared = _DECLARED.match(content)
    coding = _BYTE_ORDER.get(mark) or (declared[1].decode() if declared else "utf-8")
    try:
        return content.decode(coding)
    except (LookupError, ValueError):
        return content.decode("latin-1")


def _check_humdrum(text: str) -> None:
    """Check that each line of Humdrum has one field for each of its spines.

    Raises:
        NotationError: a line does not, which would make verovio end the process.
    """
    spines = 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if not line or line.startswith("!!"):
            continue
        fields = line.split("\t")
        spines = spines or len(fields)
        if len(fields) != spines:
            count = f"line {number}: {len(fields)} of {spines} fields"
            raise NotationError(f"damaged Humdrum ({count})")
        spines += fields.count("*^") + fields.count("*+") - fields.count("*-")
        spines -= sum(pair == ("*v", "*v") for pair in pairwise(fields))


def _kind_of_xml(text: str) -> str:
    """Return the kind of notation in XML. All of the text is parsed, to see that it is sound.

    Nothing that it refers to is opened. Entities are refused: a short file can make a long one with
    them, and music does not need them.
    """
    roots: list[str] = []
    parser = expat.ParserCreate("utf-8")

    def begin(name: str, _: object) -> None:
        roots.append(name)
        parser.StartElementHandler = None

    def refuse(*_: object) -> None:
        raise NotationError("XML that declares entities is not read")

    parser.StartElementHandler, parser.EntityDeclHandler = begin, refuse
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise NotationError(f"damaged XML ({error})") from None
    if roots[0] == "score-timewise":
        raise NotationError("MusicXML by measures (score-timewise); save it by parts")
    if roots[0] not in _ROOTS:
        raise NotationError("XML, but neither MusicXML nor MEI")
    return _ROOTS[roots[0]]
