"""Seed notes: what a musician types is what comes out, and anything else is one clear line."""

from random import Random

import pretty_midi
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data.canonical import canonical
from data.score import SECONDS, Score
from generation.note_text import SeedError, ambiguous_chords, parse_seed_notes
from tests.music import GRID, piece


def sounding(text, **options):
    """(onset, duration in quarter notes, pitch) of every note."""
    notes = parse_seed_notes(text, GRID, **options).notes
    return [(n["onset"] / 12, n["duration"] / 12, int(n["pitch"])) for n in notes]


def pitches(text, **options):
    return [pitch for _, _, pitch in sounding(text, **options)]


def test_notes_chords_rests_and_lengths():
    assert sounding("C4:1 E4:.5 [C4 E4 G4]:2 R:1 F#3:1/3") == [
        *((0, 1, 60), (1, 0.5, 64)),
        *((1.5, 2, 60), (1.5, 2, 64), (1.5, 2, 67)),
        (4.5, 4 / 12, 54),
    ]


def test_a_length_holds_until_the_next_and_is_a_quarter_note_at_first():
    assert [length for _, length, _ in sounding("C4 D4:.5 E4 R F4:2 G4")] == [1, 0.5, 0.5, 2, 2]


def test_a_dot_at_the_end_makes_a_length_dotted():
    text = "C4:1. D4:.5. E4:1/2. F4:2.. G4:1.5"
    assert [length for _, length, _ in sounding(text)] == [1.5, 0.75, 0.75, 3.5, 1.5]


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        *(("C", [48, 60, 64, 67]), ("Am", [45, 57, 60, 64]), ("G7", [43, 59, 62, 65])),
        *(("Bbmaj7", [46, 57, 62, 65]), ("Dm7", [50, 57, 60, 65]), ("Bdim", [47, 59, 62, 65])),
        *(("Asus4", [45, 57, 62, 64]), ("F#", [42, 58, 61, 66]), ("C7", [48, 58, 64, 67])),
    ],
)
def test_chord_symbols_are_a_bass_and_three_notes_near_middle_c(symbol, expected):
    assert pitches(symbol) == expected


CHORDS = {
    **{"": {0, 4, 7}, "m": {0, 3, 7}, "dim": {0, 3, 6}, "aug": {0, 4, 8}, "sus4": {0, 5, 7}},
    **{"7": {0, 4, 7, 10}, "maj7": {0, 4, 7, 11}, "m7": {0, 3, 7, 10}, "dim7": {0, 3, 6, 9}},
}
ROOTS = [f"{letter}{accidental}" for letter in "CDEFGAB" for accidental in ("", "#", "b")]


@given(st.sampled_from(ROOTS), st.sampled_from(list(CHORDS)), st.sampled_from(ROOTS))
@example("C", "", "E")
@example("A", "m7", "G")
@example("A", "m7", "D")
def test_a_chord_over_another_bass(root, kind, bass):
    *upper, lowest = pitches(f"{root}{kind}/{bass}")[::-1]
    tones = {(pretty_midi.note_name_to_number(f"{root}4") + tone) % 12 for tone in CHORDS[kind]}
    bass_tone = pretty_midi.note_name_to_number(f"{bass}4") % 12
    assert lowest % 12 == bass_tone
    assert 41 <= lowest <= 52  # F2 to E3, as under a chord without a slash
    assert len(upper) == 3
    assert {pitch % 12 for pitch in upper} <= tones
    if bass_tone in tones:
        assert {pitch % 12 for pitch in (lowest, *upper)} == tones
    assert pitches(f"{root}{kind}/{root}") == pitches(f"{root}{kind}")


@pytest.mark.parametrize(
    ("written", "means"),
    [
        *(("C4,E4,G4", "C4 E4 G4"), ("C4, E4,\tG4,", "C4 E4 G4"), ("[C4,E4]", "[C4 E4]")),
        *(("C4-E4-G4", "C4 E4 G4"), ("C4\u2013E4\u2014G4", "C4 E4 G4"), ("Am - F - C", "Am F C")),
        *(("C-E-G", "C E G"), ("[C4-E4]-R-Am", "[C4 E4] R Am"), ("C4:2-E4:.5", "C4:2 E4:.5")),
        *(("60 64 67", "C4 E4 G4"), ("60:2 R:1/3 67", "C4:2 R:1/3 G4"), ("060", "C4")),
        *(("60-64,67", "C4 E4 G4"), ("60:1.-64:.5", "C4:1. E4:.5"), ("[60 E4 67]", "[C4 E4 G4]")),
        *(("[60-64]-67", "[C4 E4] G4"), ("0 127", "C-1 G9"), ("C4|60|", "C4 C4")),
        *(("C-1-E4", "[0] E4"), ("Bb-1-C-1", "[10] [0]"), ("[C#-1-C4]", "[1 60]")),
        *(("C/E:2 G/B", "C/E:2 G/B:2"), ("Bb/D-F", "Bb/D F"), ("B♭m7/A♭", "Bbm7/Ab")),
        *(("Cmaj Amin CM7", "C Am Cmaj7"), ("C-7 A- B-7b5 Bø", "Cm7 Am Bm7b5 Bm7b5")),
        *(("C-7-F7", "Cm7 F7"), ("C°7 B° G+ Dsus", "Cdim7 Bdim Gaug Dsus4")),
        *(("F##3 Fx3 F𝄪3", "G3 G3 G3"), ("Ebb4 E𝄫4 Cb4", "D4 D4 B3"), ("[C7] c7", "[96] [96]")),
        *(("C♯m7♭5 C♮4", "C#m7b5 C4"), ("c4 e4 bb4 r c♯5", "C4 E4 Bb4 R C#5")),
    ],
)
def test_what_people_type(written, means):
    assert sounding(written) == sounding(means)


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("C E G", "C E G was read as 3 chords (for notes give octaves: C4 E4 G4)"),
        ("Bb:2, R F♯", "Bb F# was read as 2 chords (for notes give octaves: Bb4 F#4)"),
        ("C4 E", "E was read as a chord (for notes give octaves: E4)"),
        *(("Am F C G7", None), ("C E/G#", None), ("C4 E4", None), ("[C4 E4 G4]", None)),
        ("C " * 9, f"{'C ' * 8}... was read as 9 chords (for notes give octaves: {'C4 ' * 8}...)"),
    ],
)
def test_bare_letters_say_that_they_are_chords(text, clause):
    assert ambiguous_chords(text) == ([clause] if clause else [])


def test_voices_take_the_programs_in_order_and_the_last_is_shared():
    for text in ("C5 D5 / E4:2 / C3", "C5 D5\n\nE4:2\nC3\n"):
        score = parse_seed_notes(text, GRID, programs=(40, 41))
        assert score.notes[["onset", "duration", "pitch", "program"]].tolist() == [
            *((0, 12, 72, 40), (0, 12, 48, 41), (0, 24, 64, 41), (12, 12, 74, 40))
        ]


def test_chords_of_a_single_voice_are_dealt_out_from_the_top():
    score = parse_seed_notes("G7 [C4 E4]", GRID, programs=(1, 2, 3, 4))
    by_program = score.notes[["onset", "program", "pitch"]].tolist()
    assert by_program == [
        *((0, 1, 65), (0, 2, 62), (0, 3, 59), (0, 4, 43), (12, 1, 64), (12, 2, 60))
    ]


def test_on_a_grid_of_seconds_the_tempo_says_how_long_a_note_is():
    score = parse_seed_notes("C4:1 D4:.5 E4:1/3", SECONDS, tempo_bpm=120, meter=(3, 4))
    assert score.notes[["onset", "duration"]].tolist() == [(0, 50), (50, 25), (75, 17)]
    assert score.bars.tolist() == [(1, 4, 100)]
    with pytest.raises(SeedError, match="50 steps a quarter note"):
        parse_seed_notes("C4:1/200", SECONDS, tempo_bpm=120)


@pytest.mark.parametrize(
    ("text", "meter", "bars"),
    [
        ("G4 | C5 B4 A4 G4 | C5:4", (4, 4), [12, 48, 48]),
        ("| G4:.5 F4 | C5:2 B4:1 | C5", (3, 4), [12, 36, 36]),
        ("R:1 G4 | C5:4 / C3:2 | E3:4", (4, 4), [24, 48]),
        ("C4 D4 E4 | F4 G4 A4 | G4:3", (4, 4), [48, 48]),  # in three, which nobody said
        ("C4 D4 E4 F4 | G4:2 | C4:2", (4, 4), [48, 48]),
        ("C4 D4 E4 F4 G4:2 | C4:2", (4, 4), [48, 48]),
        ("G4 C5 B4 A4 G4 C5:4", (4, 4), [48, 48]),
    ],
)
def test_notes_before_an_early_bar_line_are_an_upbeat(text, meter, bars):
    score = parse_seed_notes(text, GRID, meter=meter)
    assert score.bars["length"].tolist() == bars


def test_meter_tempo_and_velocity():
    score = parse_seed_notes("C4 D4 E4 F4", GRID, tempo_bpm=91, meter=(3, 4), velocity=100)
    assert score.bars.tolist() == [(3, 4, 36), (3, 4, 36)]
    assert score.tempo_bpm.tolist() == [92, 92]
    assert set(score.notes["velocity"]) == {100}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("H4", r"'H4' \(symbol 1\): write notes as C4"),
        ("C4 E4 [C4 H4]", r"'H4' in '\[C4 H4\]' \(symbol 3"),
        *(("C4:1 [E4", "bracket"), ("C4 E4]:2", "bracket"), ("[]", "cannot read")),
        *(("[C4:1 E4]", "length inside"), ("[C4 E4:1/3]:2", "length inside"), ("[C4:2", "bracket")),
        *(("G#9", "out of range"), ("Cb-1", "out of range")),
        *(("C4:0", "too short"), ("C4:1/100", "too short"), ("C4:1/0", "length")),
        *(("C4:", "length"), ("C4:long", "length"), ("C4:-1", "length"), ("C4:1...", "length")),
        *(("C4:99999", "length"), ("C4:9999", "longer than"), ("C4 " * 5000, "longer than")),
        *(("", "no notes"), (" \n ", "no notes"), ("R:4", "no notes"), ("C4/E4", "cannot read")),
        *(("am", "cannot read"), ("x" * 500, "cannot read"), ("c e g", "'c'"), ("c' d'", "c'")),
        ("H4", r"chords as .* Am or C/E \(m dim .* dim7 m6\), rests as R"),
        *(("128", "'128' .* out of range"), ("[60 999]", "'999' in .* out of range")),
        *(("9" * 5000, "cannot read"), ("60/2", "cannot read"), ("60.5", "cannot read")),
        *(("C4-60", "'C4-60'"), ("A7-5", "'A7-5'"), ("C-2", "'C-2'"), ("Am-7", "'Am-7'")),
        *(("-5", "'-5'"), ("C4-", "'C4-'"), ("C4:-E4", "length"), ("[C4 E4]2", "'.C4 E4.2'")),
        *(("C4 E4/ G3", "'E4/'"), ("C/", "'C/'"), ("C/e", "'C/e'"), (": C4", "cannot read")),
        *((",", "no notes"), ("| - ,", "no notes"), ("[C E G]", "'C' in"), ("C4 | H", "symbol 2")),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text, says):
    with pytest.raises(SeedError, match=says) as caught:
        parse_seed_notes(text, GRID)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


@given(st.text() | st.text("ABCDEFGR#bm7s4[]:./|12 \n0,-\u2013♭6", max_size=40))
@example("C4:\uff11")
@example("C4\u2028H4")
def test_any_text_is_read_or_refused(text):
    try:
        score = parse_seed_notes(text, GRID, programs=(0, 1))
    except SeedError as refusal:
        message = str(refusal)
    else:
        assert len(score.notes)
        assert canonical(score.notes, score.bars, score.tempo_bpm, GRID)[0] == score
        assert all(len(clause.splitlines()) == 1 for clause in ambiguous_chords(text))
        return
    assert len(message.splitlines()) == 1


def spelled(score: Score, random: Random) -> str:
    """A single-voice Score as seed notes, each in a random way of those that there are.

    Its first bar is a whole one: no bar line stands within it.
    """
    text, at = "", 0
    for note in score.notes:
        pitch = int(note["pitch"])
        name = pretty_midi.note_number_to_name(pitch)
        names = [
            f"[{name}]",
            str(pitch),
            f"[{pitch}]",
            name.lower(),
            name.replace("#", "♯").lower(),
        ]
        words = [f"R:{note['onset'] - at}/12"] if note["onset"] > at else []
        words.append(f"{random.choice(names)}:{note['duration']}/12")
        marks = [" ", ",", ", ", "-", " - ", "\u2013"]
        marks += [" | ", "|"] if note["onset"] >= score.bars["length"][0] else []
        for word in words:
            text += word + random.choice(marks)
        at = note["onset"] + note["duration"]
    return text


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 99), st.integers(0, 127)),
        min_size=1,
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_a_melody_written_as_text_comes_back(melody, random):
    rows, at = [], 0
    for rest, duration, pitch in melody:
        rows.append((at + rest, duration, pitch, 80, 0))
        at += rest + duration
    score = piece(rows)
    assert parse_seed_notes(spelled(score, random), GRID) == score
