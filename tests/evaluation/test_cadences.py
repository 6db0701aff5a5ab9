"""How pieces end."""

from data.keys import Key, estimate_key
from evaluation.cadences import ends_on_tonic
from tests.music import EMPTY, chord, line, piece

C_MAJOR = (60, 62, 64, 65, 67, 69, 71)


def test_an_ending_on_the_tonic():
    before = line(C_MAJOR) + line((60, 64, 67, 60, 67), start=84)  # three bars of C major
    endings = {
        "tonic": ((48, 64, 67), True),
        "Picardy third of another key": ((57, 61, 64), False),
        "minor": ((48, 63, 67), True),
        "dominant": ((43, 59, 62), False),
        "first inversion": ((52, 60, 67), False),
    }
    for name, (pitches, is_tonic) in endings.items():
        score = piece(before + chord(*pitches, start=144), [(4, 4, 48)] * 4)
        assert ends_on_tonic(score) == is_tonic, name
    # However long it sounds, the last bar does not decide what the key is.
    long = piece(before + chord(57, 60, 64, start=144, duration=4800), [(4, 4, 48)] * 4)
    assert estimate_key(long) == Key(9, "minor")
    assert not ends_on_tonic(long)
    assert not ends_on_tonic(piece(chord(48, 64, 67)))  # nothing before it
    assert not ends_on_tonic(EMPTY)
