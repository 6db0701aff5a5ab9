import io
import json
import os
import re
import signal
import zipfile

import numpy as np
import pytest

from common.verovio_toolkit import load_notation
from data.corpus.corpus import open_corpus
from data.corpus.options import SPLITS
from data.files import notation
from data.files.musicxml import made_plain
from data.files.part_programs import programs_of
from data.files.read import read_events, read_score
from data.midi.parts import tracks_of
from data.midi.quantize import MidiError
from data.score import DRUMS, Score
from rendering.notation import to_musicxml
from tests.folders import tune, write_tunes
from tests.models import four_parts
from tests.music import GRID

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
ATTRIBUTES = (
    "<attributes><divisions>6</divisions><time><beats>2</beats><beat-type>4</beat-type></time>"
    "{}</attributes>"
)
CLARINET = "<transpose><diatonic>-1</diatonic><chromatic>-2</chromatic></transpose>"
PIANO = "<staves>2</staves>"
KINDS = {12: "half", 6: "quarter", 3: "eighth", 4: "quarter", 2: "eighth"}


def note(pitch: str, duration: int, inside: str = "", before: str = "", staff: int = 1) -> str:
    """A note or a rest (R) of MusicXML, in sixths of a quarter note."""
    what = f"<pitch><step>{pitch[0]}</step><octave>{pitch[1:]}</octave></pitch>"
    if pitch == "R":
        what = "<rest/>"
    length = f"<duration>{duration}</duration>" if duration else ""
    third = "<time-modification><actual-notes>3</actual-notes><normal-notes>2</normal-notes>"
    return (
        f"<note>{before}{what}{length}<voice>{staff}</voice>"
        f"<type>{KINDS.get(duration, 'eighth')}</type>"
        + (f"{third}</time-modification>" if duration in (2, 4) else "")
        + f"<staff>{staff}</staff>{inside}</note>"
    )


def score_of(*parts: tuple[str, list[str]]) -> str:
    """MusicXML of parts: the name and the measures of each."""
    names = "".join(
        f'<score-part id="P{number}"><part-name>{name}</part-name></score-part>'
        for number, (name, _) in enumerate(parts)
    )
    music = "".join(
        f'<part id="P{number}">'
        + "".join(f'<measure number="{n}">{measure}</measure>' for n, measure in enumerate(its))
        + "</part>"
        for number, (_, its) in enumerate(parts)
    )
    return f"{HEAD}<score-partwise><part-list>{names}</part-list>{music}</score-partwise>"


def tied(kind: str, sign: str = "") -> str:
    return f'<tie type="{kind}"/><notations><tied type="{kind}"/>{sign}</notations>'


GRACE = note("B5", 0, before="<grace/>")
CHORD = "<notations><arpeggiate/></notations>"
LOUD = (
    "<direction><direction-type><dynamics><ff/></dynamics></direction-type><staff>1</staff>"
    '<sound tempo="90"/></direction>'
)
HARMONY = "<harmony><root><root-step>C</root-step></root><kind>major</kind></harmony>"
# An upbeat; a bar that is repeated, with two endings; triplets whose signs are left out.
SONG = score_of(
    (
        "Clarinet in B",
        [
            ATTRIBUTES.format(CLARINET) + note("D5", 6),
            HARMONY
            + GRACE
            + note("E5", 6)
            + note("F5", 3, tied("start"))
            + note("F5", 3, tied("stop")),
            '<barline location="left"><ending number="1" type="start"/></barline>'
            + note("F5", 12)
            + '<barline location="right"><ending number="1" type="stop"/>'
            '<repeat direction="backward"/></barline>',
            '<barline location="left"><ending number="2" type="start"/></barline>'
            + "".join(note(f"{step}5", 2) for step in "CDECDE")
            + '<barline location="right"><ending number="2" type="stop"/></barline>',
        ],
    ),
    (
        "Klavier",
        [
            ATTRIBUTES.format(PIANO) + note("R", 6),
            LOUD
            + note("C4", 12, CHORD)
            + note("G4", 12, CHORD, "<chord/>")
            + "<backup><duration>12</duration></backup>"
            + note("C2", 12, staff=2),
            note("R", 12) + "<backup><duration>12</duration></backup>" + note("E2", 12, staff=2),
            note("R", 12) + "<backup><duration>12</duration></backup>" + note("F2", 12, staff=2),
        ],
    ),
)
# onset, duration, pitch, as they sound
CLARINET_NOTES = [
    *[(0, 12, 72), (12, 12, 74), (24, 12, 75), (36, 24, 75), (60, 12, 72), (72, 12, 74)],
    *[(84, 12, 75), *((96 + 4 * n, 4, pitch) for n, pitch in enumerate([70, 72, 74] * 2))],
]
PIANO_NOTES = [
    *[(12, 24, 36), (12, 24, 60), (12, 24, 67), (36, 24, 40)],
    *[(72, 24, 36), (72, 24, 60), (72, 24, 67), (96, 24, 41)],
]


def notes_of(score: Score, program: int) -> list[tuple[int, int, int]]:
    its = score.notes[score.notes["program"] == program]
    return its[["onset", "duration", "pitch"]].tolist()


def files_of(musicxml: str) -> dict[str, bytes]:
    """The same music as MusicXML, plain, packed and in UTF-16, and as MEI."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/container.xml", "<container/>")
        archive.writestr("__MACOSX/._score.xml", b"\0\5\x16\7")
        archive.writestr("score.xml", musicxml)
    mei = load_notation(made_plain(musicxml), {"inputFrom": "xml"}).getMEI()
    return {
        "song.musicxml": musicxml.encode(),
        "song.xml": musicxml.replace("UTF-8", "UTF-16").encode("utf-16"),
        "song.mxl": packed.getvalue(),
        "song.mei": mei.encode(),
    }


def test_a_song_is_read_as_it_sounds_whatever_it_is_written_in(tmp_path):
    for name, content in files_of(SONG).items():
        (tmp_path / name).write_bytes(content)
        score, changes = read_score(tmp_path / name, GRID)
        assert notes_of(score, 71) == CLARINET_NOTES
        assert notes_of(score, 0) == PIANO_NOTES
        assert score.bars["length"].tolist() == [12, 24, 24, 12, 24, 24]
        assert {*score.tempo_bpm[1:].tolist()} == {90}
        assert score.notes["velocity"][score.notes["program"] == 0].min() >= 108
        assert changes.moved == 0
        assert [part.name for part in tracks_of(read_events(tmp_path / name))] == [
            "Clarinet in B",
            "Klavier",
        ]


def test_what_is_written_as_notation_is_read_as_it_was(tmp_path):
    """But for drums: in notation each lasts until the next."""
    path = tmp_path / "tune.musicxml"
    path.write_text(to_musicxml(four_parts(3)))  # two voices, of two programs, on a staff
    assert read_score(path, GRID)[0] == four_parts(3)
    for seed in range(3):
        score = tune(seed)
        path.write_text(to_musicxml(score))
        read, _ = read_score(path, GRID)
        assert notes_of(read, 0) == notes_of(score, 0)
        assert notes_of(read, DRUMS)[0][2] == 36
        assert np.array_equal(read.notes["onset"], score.notes["onset"])
        assert np.array_equal(read.bars, score.bars)
        assert np.array_equal(read.tempo_bpm, score.tempo_bpm)


CHORALE = """!! in C\x85 of 3/4
**kern\t**kern\t**kern
*M3/4\t*M3/4\t*M3/4
=0-\t=0-\t=0-
4C\t4G\t4c
=1\t=1\t=1
[2.G\t2.B\t4e
.\t.\t4f
.\t.\t4g
=2\t=2\t=2
4G]\t2.c\t2.cc
2r\t.\t.
==\t==\t==
*-\t*-\t*-
"""


def test_a_rest_of_a_whole_measure_that_is_written_twice_lasts_one(tmp_path):
    rest = "<note><rest/><duration>12</duration><voice>1</voice></note>"
    upper = [ATTRIBUTES.format("") + note("C5", 12), note("D5", 12)]
    lower = [ATTRIBUTES.format("") + 2 * rest, note("E3", 12)]
    path = tmp_path / "twice.musicxml"
    path.write_text(score_of(("Violin", upper), ("Cello", lower)), encoding="utf-8")
    score, _ = read_score(path, GRID)
    assert len(score.bars) == 2
    assert sorted(score.notes[["onset", "pitch"]].tolist()) == [(0, 72), (24, 52), (24, 74)]


def test_voices_without_names_stay_apart(tmp_path):
    (tmp_path / "chorale.krn").write_text(CHORALE)
    score, _ = read_score(tmp_path / "chorale.krn", GRID)
    upper = [(0, 12, 60), (12, 12, 64), (24, 12, 65), (36, 12, 67), (48, 36, 72)]
    assert notes_of(score, 40) == upper
    assert notes_of(score, 42) == [(0, 12, 48), (12, 48, 55)]
    assert score.bars["length"].tolist() == [12, 36, 36]


@pytest.mark.parametrize(
    "place", ['staff="1" tstamp="2"', 'staff="1" startid="#second"', 'startid="#chord"']
)
def test_a_dynamic_sign_of_mei_holds_from_where_it_stands(place, tmp_path):
    """Whether it says the beat, or the note or the chord."""
    notes = '<note pname="c" oct="4" dur="4"/><chord xml:id="chord" dur="4">{}</chord>'
    chord = '<note xml:id="second" pname="e" oct="4"/><note pname="g" oct="4"/>'
    (tmp_path / "loud.mei").write_text(
        '<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score>'
        '<scoreDef meter.count="2" meter.unit="4"><staffGrp>'
        '<staffDef n="1" lines="5" clef.shape="G" clef.line="2"/></staffGrp></scoreDef><section>'
        f'<measure n="1"><staff n="1"><layer n="1">{notes.format(chord)}</layer></staff>'
        f"<dynam {place}>f</dynam></measure></section></score></mdiv></body></music></mei>"
    )
    assert read_score(tmp_path / "loud.mei", GRID)[0].notes["velocity"].tolist() == [80, 96, 96]


@pytest.mark.parametrize(
    ("parts", "programs"),
    [
        ([("Singstimme", None), ("Pianoforte", None)], [52, 0]),
        ([("Mignon", 73), ("PIANO", 0)], [73, 0]),
        ([("Soprano", 0), ("Alto", 0), ("Tenor", 0), ("Bass", 0)], [40, 41, 42, 43]),
        ([("S", 52), ("A", 52), ("Tenore I", 52), ("T", 52), ("B", 52)], [40, 41, 42, 42, 43]),
        ([("Cantus", 52), ("Altus", 52), ("Bassus", 52)], [40, 41, 43]),
        ([("Tenor I", 52), ("Tenor II", 52), ("Bass", 52)], [40, 41, 42]),
        ([("Canto", 52), ("Alto", 52), ("Quinto", 52), ("Basso", 52)], [40, 41, 42, 43]),
        ([("Soprano", 40), ("Bass", 43)], [40, 43]),
        ([("Voice 1", 52), ("Voice 2", 52), ("Organ", None)], [40, 41, 19]),
        ([("Violoncello", None), ("Corno inglese", None), ("Alto Sax", None)], [42, 69, 65]),
        ([("", None)], [0]),
        ([("", None), ("", None)], [40, 41]),
        ([("Violin I", 40), ("Violin II", 40)], [40, 40]),
        ([("Lead Vocals", 53), ("Backing Vocals", 53), ("Electric Bass", 33)], [40, 41, 33]),
        ([("Bass Guitar", None), ("Violino piccolo", None)], [33, 40]),
    ],
)
def test_parts_get_programs_by_what_they_say(parts, programs):
    assert programs_of(parts) == programs


BOMB = HEAD + (
    '<!DOCTYPE score-partwise [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    "<score-partwise>&b;</score-partwise>"
)
SECRET = f'{HEAD}<!DOCTYPE mei [<!ENTITY x SYSTEM "file:///etc/passwd">]><mei>&x;</mei>'


def zip_bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("score.xml", b" " * (33 << 20))
    return packed.getvalue()


BROKEN = {
    "bomb.xml": (BOMB.encode(), "XML that declares entities is not read"),
    "secret.mei": (SECRET.encode(), "XML that declares entities is not read"),
    "zip.mxl": (zip_bomb(), "it unpacks to more than 32 MiB"),
    "cut.mxl": (zip_bomb()[:500], "a zip archive that is damaged"),
    "cut.musicxml": (HEAD.encode(), "damaged XML (no element found: line 2, column 0)"),
    "other.xml": (b"<html></html>", "XML, but neither MusicXML nor MEI"),
    "time.xml": (b"<score-timewise/>", "MusicXML by measures (score-timewise); save it by parts"),
    "bare.mei": (b"<mei/>", "no music in it (verovio, which reads notation, finds none)"),
    "empty.musicxml": (b"<score-partwise/>", "it holds no measures"),
    "odd.krn": (b"**kern\t**kern\n4c\n", "damaged Humdrum (line 2: 1 of 2 fields)"),
    "text.abc": (b"hello", "it is neither MIDI, MusicXML, MEI, Humdrum nor ABC"),
}


def test_damaged_notation_costs_itself_and_gets_one_line(tmp_path):
    folder = write_tunes(tmp_path / "songs", 3)
    for name, (content, reason) in BROKEN.items():
        (folder / name).write_bytes(content)
        with pytest.raises(MidiError) as caught:
            read_score(folder / name, GRID)
        assert str(caught.value) == f"{folder / name}: {reason}"
    (folder / "song.mxl").write_bytes(files_of(SONG)["song.mxl"])
    (folder / "tune1.musicxml").write_text(SONG)  # beside tune1.mid
    corpus = open_corpus(folder, tmp_path / "out", workers=2)
    assert {*corpus.files["train"], *corpus.files["valid"], *corpus.files["test"]} == {
        *(f"tune{n}.mid" for n in range(3)),
        "song.mxl",
    }
    report = json.loads((corpus.folder / "report.json").read_text())
    assert {each["file"]: each["reason"] for each in report["left_out"]} == {
        name: reason for name, (_, reason) in BROKEN.items()
    }
    assert not (corpus.folder / "midi").exists()


def test_native_code_that_ends_takes_no_other_file_along(tmp_path, monkeypatch, capfd):
    """verovio crashes on some of what is damaged; here it does so on all."""
    monkeypatch.setattr(notation, "midi_of", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    (tmp_path / "song.musicxml").write_text(SONG)
    with pytest.raises(MidiError, match=r"song.musicxml: the reader crashed on it \(SIGKILL\)$"):
        read_score(tmp_path / "song.musicxml", GRID)
    assert capfd.readouterr().err == ""


ABC = """X:1
T:One
M:3/4
L:1/8
K:G
G2|"G"A2B2c2|[1{e}d6:|[2 (3gag ^c2c2|]

X:2
T:Two
M:4/4
L:1/4
K:C
CDEF|G4|
"""


@pytest.mark.parametrize(
    ("strains", "bars"),
    [
        ("G|c2e2|g2e:|\nd|d2B2|G2d:|", [1, 4, 3] * 4),
        ("G|c2e2|1g2e:|2g2e|]\nd|d2B2|1G2d:|2d2|G2|]", [1, 4, 3] * 3 + [1, 4, 2, 2]),
    ],
)
def test_strains_of_a_tune_are_played_twice_each_without_a_rest(tmp_path, strains, bars):
    pytest.importorskip("music21")
    (tmp_path / "reel.abc").write_text(f"X:1\nT:Reel\nM:2/4\nL:1/8\nK:C\n{strains}\n")
    score, _ = read_score(tmp_path / "reel.abc", GRID)
    notes = score.notes
    assert score.bars["length"].tolist() == [6 * eighths for eighths in bars]
    pitch = notes["pitch"].tolist()
    assert pitch[:5] == pitch[5:10] == [67, 72, 76, 79, 76]
    assert pitch[10:13] == pitch[15:18] == [74, 74, 71]
    assert np.array_equal(notes["onset"][1:], (notes["onset"] + notes["duration"])[:-1])


@pytest.mark.parametrize("bars", ["CDEF|", "CDEF"])
def test_a_tune_may_have_a_single_bar(tmp_path, bars):
    pytest.importorskip("music21")
    (tmp_path / "bar.abc").write_text(f"X:1\nT:Bar\nM:4/4\nL:1/4\nK:C\n{bars}\n")
    score, _ = read_score(tmp_path / "bar.abc", GRID)
    assert score.notes["pitch"].tolist() == [60, 62, 64, 65]
    assert score.bars["length"].tolist() == [48]


def test_no_two_things_in_a_score_have_the_same_id_while_it_is_played(monkeypatch):
    # Ids that came twice ended the process that read a quartet.
    loaded = []

    def load(*arguments):
        loaded.append(load_notation(*arguments))
        return loaded[-1]

    monkeypatch.setattr(notation, "load_notation", load)
    bars = [ATTRIBUTES.format("") + note("C4", 12), note("C4", 12)]
    notation.midi_of("xml", score_of(*((f"Part {n}", bars) for n in range(8))))
    ids = re.findall(r'xml:id="([^"]+)"', loaded[-1].getMEI())
    assert len(ids) == len(set(ids))


def test_a_repeat_in_a_new_movement_goes_back_to_where_that_begins(tmp_path):
    end = '<barline location="right"><bar-style>light-heavy</bar-style>{}</barline>'
    again = end.format('<repeat direction="backward"/>')
    first = ATTRIBUTES.format("") + note("C4", 12) + end.format("")
    measures = [first, note("D4", 12), note("E4", 12) + again]
    (tmp_path / "two.musicxml").write_text(score_of(("Flute", measures)), encoding="utf-8")
    score, _ = read_score(tmp_path / "two.musicxml", GRID)
    assert score.notes["pitch"].tolist() == [60, 62, 64, 62, 64]


def test_each_tune_of_a_book_is_a_piece(tmp_path):
    pytest.importorskip("music21")
    (tmp_path / "songs").mkdir()
    (tmp_path / "songs" / "book.abc").write_text(ABC)
    with pytest.raises(MidiError, match=r"book.abc: it holds 2 tunes; save one in a file of its"):
        read_score(tmp_path / "songs" / "book.abc", GRID)
    head, _, other = ABC.partition("X:2")
    (tmp_path / "songs" / "book#2.abc").write_text("X:2" + other.replace("CDEF", "GFED"))
    corpus = open_corpus(tmp_path / "songs", tmp_path / "out")
    names = {name for split in corpus.files.values() for name in split}
    assert names == {"book.abc/1.abc", "book.abc/2.abc", "book#2.abc"}
    assert "3 pieces out of 2 files" in corpus.full_report()
    ids = [corpus.split(name).piece(n) for name in SPLITS for n in range(len(corpus.files[name]))]
    assert len({each.tobytes() for each in ids}) == 3
    (tmp_path / "one.abc").write_text(head)
    score, _ = read_score(tmp_path / "one.abc", GRID)
    first = [(67, 12), (69, 12), (71, 12), (72, 12), (74, 36)]
    again = [*first[:4], (79, 4), (81, 4), (79, 4), (73, 12), (73, 12)]
    assert [(p, d) for _, d, p in notes_of(score, 0)] == first + again
