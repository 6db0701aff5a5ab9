"""Parts: a piece with named parts through a file and back; which tracks play which."""

import io

import numpy as np
import pretty_midi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.instrument_names import instrument_name, spelling
from data.midi.events import Events
from data.midi.io import midi_bytes, parse_events
from data.midi.parts import common_parts, part_key, tracks_of, with_parts
from data.midi.quantize import score_from_events
from data.score import DRUMS, MOST_PARTS, UNNAMED, Grid, Part
from tests.music import events_of, random_score, score_in

POP = Grid(parts=(Part("MELODY", 0), Part("BRIDGE", 0), Part("PIANO", 0)))

letters = st.characters(min_codepoint=32, max_codepoint=0x4FF, categories=("L", "N", "P", "S"))
names = st.lists(st.text(letters, min_size=1, max_size=8), min_size=1, max_size=3).map(" ".join)
parts = st.builds(Part, names, st.integers(0, 127)).filter(
    lambda part: part_key(part)[0] != spelling(instrument_name(part_key(part)[1], Grid()))
)
grids = st.lists(parts, max_size=MOST_PARTS, unique_by=part_key).map(
    lambda chosen: Grid(parts=tuple(chosen))
)


def tracks_like(*tracks):
    """A note in each track, of a name and a program."""
    rows = [(0, 480, 60 + n, 80, program) for n, (_, program) in enumerate(tracks)]
    return events_of(rows, tracks=tuple((name, 1) for name, _ in tracks))


@given(grids, st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_a_piece_with_parts_survives_a_file(grid, seed):
    score = random_score(np.random.default_rng(seed), grid)
    content = midi_bytes(score)
    events = parse_events(content, "it")
    assert score_from_events(events, grid)[0] == score
    midi = pretty_midi.PrettyMIDI(io.BytesIO(content))
    assert score_in(midi, grid) == score
    played = [program for name, program in {(t.name, t.program) for t in tracks_of(events)}]
    numbers = np.unique(score.notes["program"]).tolist()
    assert sorted(played) == sorted(grid.general_midi(number) for number in numbers)


def test_a_track_plays_its_part_or_that_of_its_name_or_its_program():
    tracks = (("melody", 0), ("Bridge", 40), ("violin", 40), ("", 0), ("kick", DRUMS))
    tracks += (("PIANO", 0), ("PIANO", 0), ("tune", 73))
    numbers = with_parts(tracks_like(*tracks), POP).notes[:, 4].tolist()
    assert numbers == [0, 1, UNNAMED + 40, UNNAMED, DRUMS, 2, UNNAMED, UNNAMED + 73]
    altos = Grid(parts=(Part("Alto", 40), Part("Tenor", 42), Part("Tenor 2", 42)))
    tracks = (("Alto", 41), ("Alto", 40), ("Tenor", 42), ("Tenor", 43), ("Tenor", 44))
    numbers = with_parts(tracks_like(*tracks), altos).notes[:, 4].tolist()
    assert numbers == [UNNAMED + 41, 0, 1, 2, UNNAMED + 44]  # nobody sings two parts at once
    one = tracks_like(("MELODY", 0))
    unknown = Events(one.ticks_per_beat, one.notes, one.meters, one.tempi)  # which tracks it has
    assert with_parts(unknown, POP).notes[:, 4].tolist() == [UNNAMED]


def test_tracks_that_say_the_same_are_numbered_and_names_are_cleaned():
    tracks = (("  left\n hand ", 0), ("Left Hand", 0), ("left hand", 1), ("", 40), ("x" * 99, 0))
    assert tracks_of(tracks_like(*tracks)) == [
        Part("left hand", 0),
        Part("Left Hand 2", 0),
        Part("left hand", 1),
        Part("Violin", 40),
        Part("x" * 40, 0),
    ]


def test_a_part_is_the_same_however_its_name_is_spelled():
    """As editions of string quartets name them, and sampled strings beside single ones."""
    plain = [("Violin", 40), ("Violin 2", 40), ("Viola", 41), ("Cello", 42)]
    others = [("1st Violin", 40), ("2nd Violin", 48), ("Viola", 48), ("Violoncello", 42)]
    roman = [("Violin I", 48), ("VIOLIN II.", 40), ("Viola", 41), ("cello", 43)]
    pieces = [tracks_like(*tracks) for tracks in (plain, others, roman)]
    parts = common_parts(map(tracks_of, pieces))
    assert parts == (Part("Violin", 40), Part("Violin 2", 40))  # others' are no more than programs
    for events in pieces:
        numbers = with_parts(events, Grid(parts=parts)).notes[:, 4].tolist()
        assert numbers == [0, 1, UNNAMED + 41, UNNAMED + 42]


def test_what_a_file_says_counts_where_a_name_is_far_from_it_or_its_own():
    tracks = (("Muted Trumpet", 59), ("Horn section", 33), ("Violin I", 40), ("1st violin", 40))
    assert tracks_of(tracks_like(*tracks)) == [
        Part("Muted Trumpet", 59),
        Part("Horn section", 33),
        Part("Violin I", 40),
        Part("1st violin 2", 40),  # there is a first one already
    ]


def test_common_parts_are_those_that_a_tenth_of_the_files_name_in_their_order():
    song = [Part("MELODY", 0), Part("BRIDGE", 0), Part("PIANO", 0), Part("Drums", DRUMS)]
    assert common_parts([song] * 5) == POP.parts
    assert common_parts([song, song[:1], [Part("Melody", 0), Part("solo", 0)]]) == (
        Part("MELODY", 0),
        *song[1:1],
    )
    unnamed = [Part("Violin", 40), Part("Acoustic Grand Piano", 0)]
    assert common_parts([unnamed] * 9) == ()
    assert common_parts([[Part("Drums", DRUMS), Part("Drums 2", DRUMS)]] * 9) == ()
    rare = [Part("solo", 0)]
    assert common_parts([rare] * 2 + [song] * 19)[:3] == POP.parts
    assert rare[0] not in common_parts([rare] * 2 + [song] * 19)
    band = [Part(f"part {n}", n) for n in range(40)]
    found = common_parts([band, band, band[20:]])
    assert found == tuple(band[20:36])  # the commonest, and of these the first


@pytest.mark.parametrize(
    "parts",
    [
        (Part("", 0),),
        (Part("a\nb", 0),),
        (Part("a" * 99, 0),),
        (Part("a", DRUMS),),
        (Part("a", 0), Part("a", 0)),
        tuple(Part(f"{n}", 0) for n in range(MOST_PARTS + 1)),
    ],
)
def test_parts_that_cannot_be_are_refused(parts):
    with pytest.raises(ValueError, match="part"):
        Grid(parts=parts)
