"""A little of what benchmarks.fuzz does by the thousand: all is held, or refused in a line."""

import pytest

from benchmarks import attacks
from benchmarks.second_reader import NotComparedError, second_reading
from data.midi.io import parse_events
from tests.data.corpus.test_hostile import meta, midi, off, on, track


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    attacks.prepare(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("models", 20),
        ("checkpoints", 4),
        ("corpora", 8),
        ("commands", 3),
        ("messages", 40),
        ("requests", 40),
    ],
)
def test_attacks_are_held_or_refused_in_one_line(prepared, kind, count):
    attack, _ = attacks.ATTACKS[kind]
    fates = [attack(number, 3, prepared) for number in range(count)]
    assert not [fate for fate in fates if fate.startswith(attacks.BROKEN)]
    if kind in ("models", "corpora"):
        assert len(set(fates)) > 2


def test_what_reaches_a_terminal_raw_is_seen():
    assert attacks.outcome(lambda: print("a\x1b[31m.mid")).startswith(attacks.BROKEN)
    assert attacks.outcome(lambda: print("a.mid")) == attacks.HELD


def test_mido_reads_pedals_hanging_notes_and_channels_as_we_do():
    pedal = [bytes([0, 0xB0, 64, 127]), on(60), off(60), bytes([96, 0xB0, 64, 0])]
    hanging = [on(60), on(60, 480), off(60), on(64), on(64), off(64)]
    for events in (pedal, hanging, [bytes([0, 0xC0, 40]), *pedal]):
        content = midi(track(*events))
        notes = sorted(map(tuple, parse_events(content, "a.mid").notes.tolist()))
        assert second_reading(content) == notes
    with pytest.raises(NotComparedError, match="after its end"):
        second_reading(midi(track(meta(0x2F, b""), on(60), off(60))))
