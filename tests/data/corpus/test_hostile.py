"""Files nobody should have written: read as a person would expect, or left out with a reason."""

import os
import struct
from functools import partial

import pytest

from benchmarks import fuzz
from common.worker_pool import Failed, guarded
from data.files.read import read_score
from data.midi.quantize import MidiError
from data.midi.repair import repaired
from tests.music import GRID

MOST_TICKS = 2**28 - 1  # between two events


def ticks(number):
    """A whole number as MIDI writes it: seven bits a byte."""
    digits = [number & 127]
    while number := number >> 7:
        digits.append(128 | number & 127)
    return bytes(reversed(digits))


def on(pitch, after=0, velocity=80):
    return ticks(after) + bytes([0x90, pitch, velocity])


def off(pitch, after=480):
    return ticks(after) + bytes([0x80, pitch, 0])


def meta(kind, content, after=0):
    return ticks(after) + bytes([0xFF, kind, len(content)]) + content


def track(*events):
    content = b"".join([*events, meta(0x2F, b"")])
    return b"MTrk" + struct.pack(">I", len(content)) + content


def midi(*tracks, form=1, division=480):
    return b"MThd" + struct.pack(">IHHH", 6, form, len(tracks), division) + b"".join(tracks)


def one(*events, division=480):
    """A file of one track: these events, then a C and an E, a beat each."""
    return midi(track(*events, NOTES), division=division)


NOTES = on(60) + off(60) + on(64) + off(64)
BOTH = [(0, 12, 60), (12, 12, 64)]  # what NOTES say, as onset, duration and pitch


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "odd.mid"
        path.write_bytes(content)
        return read_score(path, GRID)[0]

    return read


@pytest.fixture
def reason(read):
    def reason(content):
        with pytest.raises(MidiError) as caught:
            read(content)
        assert "\n" not in str(caught.value)
        return str(caught.value).split("odd.mid: ")[1]

    return reason


def rows(score):
    return score.notes[["onset", "duration", "pitch"]].tolist()


@pytest.mark.parametrize(
    "content",
    [
        one(),
        one(meta(0x59, b"\x64\x05")),  # a hundred sharps: keys are not asked for
        one(meta(0x03, b"caf\xe9 \xff")),  # a track name that is not UTF-8
        one(off(72, after=0)),  # ends what never began
        one(on(72)),  # never ends
        midi(track(), track(NOTES)),
        midi(track(NOTES), form=2),
        one() + b"garbage after the last track",
        one()[:-4].replace(struct.pack(">I", len(NOTES) + 4), struct.pack(">I", len(NOTES))),
        one(meta(0x58, b"\xff\x00\x18\x08")),  # bars of 1,020 beats
        midi(track(on(60, velocity=200) + off(60) + on(64) + off(64))),  # players clip it
        one(b"\0\xf7" + ticks(200) + on(72) * 50),  # bytes to send, of a known number
        one(b"\0\xf0\2\x43\x12\0\xf7" + ticks(161) + on(72) * 40 + b"\xf7"),
    ],
    ids=[
        *("plain", "key", "name", "off without on", "on without off", "empty track", "type 2"),
        *("garbage after", "no end of track", "long bars", "data byte over 127"),
        *("escape", "message in two packets"),
    ],
)
def test_what_does_not_matter_is_no_obstacle(read, content):
    assert rows(read(content)) == BOTH


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "an empty file"),
        (b"RIFF\x10\0\0\0RMIDdata" + one(), "a RIFF file"),
        (b"MThX" + one()[4:], "not a MIDI file"),
        (one()[:12], "broken"),
        (one(division=0), "time division"),
        (one(division=0xE728), "SMPTE"),
        (midi(track(NOTES), form=7), "broken"),
        (one(meta(0x51, b"\0\0\0")), "a tempo of zero"),
        (one(meta(0x58, b"\x00\x02\x18\x08")), "a time signature that no MIDI file"),
        (one(meta(0x58, b"\x04\xff\x18\x08")), "a time signature that no MIDI file"),
        (midi(track(on(60), off(60, after=MOST_TICKS))), "beyond beat 100,000"),
        (midi(track(on(60), off(60, after=4), on(60, MOST_TICKS), off(60))), "beyond beat"),
        (midi(track(*[on(60, MOST_TICKS), off(60)] * 12)), "beyond tick 1,6"),
    ],
)
def test_what_cannot_be_trusted_is_left_out_with_a_reason(reason, content, why):
    assert why in reason(content)


def test_data_bytes_over_127_are_read_as_players_do_and_counted(tmp_path, reason):
    path = tmp_path / "loud.mid"
    high = on(200) + off(200) + on(60, velocity=255) + off(60)
    path.write_bytes(midi(track(b"\0\xc0\x85", high), track(NOTES)))
    score, changes = read_score(path, GRID)
    told = score.notes[["onset", "pitch", "velocity", "program"]].tolist()
    assert told[1::2] == [(0, 127, 80, 127), (12, 60, 127, 127)]  # between those of NOTES
    assert changes.clipped_bytes == 4
    assert "broken" in reason(midi(track(on(200), off(200)))[:-6])  # cut short, too


# Inputs that did harm once, as they were.
CRASHED_SYMUSIC_058 = "4d546864000000060001000201e04d54726b0000002700ff510307a120008f85"
THREE_HUNDRED_MILLION_BARS = (  # 1/128, a tick a beat, and a note at tick 9,999,999
    "4d546864000000060001000100014d54726b0000001b00ff580401071808"
    "00903c5084e2ac7f903c5001803c0000ff2f00"
)


def test_what_did_harm_once_is_refused(reason):
    for content in (CRASHED_SYMUSIC_058, THREE_HUNDRED_MILLION_BARS):
        assert reason(bytes.fromhex(content))
    signatures = meta(0x58, b"\x03\x02\x18\x08", after=1) * 1_000_001
    assert reason(one(signatures)) == "more than 1,000,000 bars"


def test_only_files_with_such_notes_are_rewritten():
    ended, hanging = one(), midi(track(on(60), NOTES))
    many_tracks = midi(*[track(on(60), NOTES)] * 600)  # it would take megabytes
    assert repaired(hanging) is not None
    for content in (ended, ended[:-3], many_tracks, b"MThd"):
        assert repaired(content) is None
    many = midi(track(on(60), *[on(60, 1)] * 3000, off(60)))
    (notes,) = (each.notes.numpy() for each in repaired(many).tracks)
    assert notes["duration"].tolist() == [1] * 3000 + [480]
    for greedy in (  # the second took 5 GiB, the third 10, of 200 kB
        midi(track(on(60), *[on(60, 1)] * 5000, off(60))),
        midi(track(on(60), *map(on, range(128)), *[on(60)] * 300), *[track(on(60))] * 99),
        midi(track(*[on(60)] * 300), *[track()] * 400),
    ):
        with pytest.raises(ValueError, match="too many notes are never ended"):
            repaired(greedy)


def test_a_note_past_the_ticks_that_are_counted_is_refused_and_not_moved(reason, read):
    for count in (7, 8, 16, 17):
        late = [b"\xff\xff\xff\x7f\xff\x01\x00"] * count
        assert "beyond tick 1,6" in reason(midi(track(*late, NOTES)))
        assert "beyond tick 1,6" in reason(midi(track(*late), track(NOTES)))
    text = "\u4e2d".encode() * 40  # bytes that look like long deltas
    told = b"\0\xff\x01" + bytes([len(text)]) + text
    assert rows(read(midi(track(told * 9, NOTES)))) == BOTH


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.mid")
    with pytest.raises(MidiError, match="not a regular file"):
        read_score(tmp_path / "pipe.mid", GRID)


def test_hundreds_of_mutants_do_no_harm(tmp_path):
    fates = list(guarded(partial(fuzz.try_one, seed=1, folder=tmp_path), range(600), 2))
    harm = [
        (number, fate)
        for number, fate in fates
        if isinstance(fate, Failed) or fate.startswith(fuzz.BROKEN)
    ]
    assert not harm
    assert [fate for _, fate in fates].count(fuzz.READ) > 60  # or nothing was tried
