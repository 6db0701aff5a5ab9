"""Echo: the next note by the longest match; test_features.py holds it to plain comparison."""

from common.compiled import compiled
from data.tokens import echo
from data.tokens.echo import DUE, ECHO_WIDTH, LENGTHS, Lines


@compiled
def add(lines, note):
    echo.add(lines, 0, 0, note)


@compiled
def columns(lines, now):
    return echo.columns(lines.of_programs[0, 0], now)


def read(notes):
    """The lines of one program that has read these notes; the last counts."""
    notes = list(notes)
    lines = Lines.of_none(1, len(notes), 1)
    for number, (pitch, onset) in enumerate(notes):
        lines.pitch[0, number], lines.onset[0, number] = pitch, onset
        add(lines, number)
    return lines


def expected(notes):
    """After each note the pitch and onset of the next by its echo."""
    notes = list(notes)
    read_so_far = [read(notes[: end + 1]).of_programs[0, 0] for end in range(len(notes))]
    return [
        (pitch + line.move, line.due) if line.length else None
        for line, (pitch, _) in zip(read_so_far, notes, strict=True)
    ]


QUARTERS = [12 * number for number in range(20)]


def test_a_tune_that_comes_again_is_known_after_three_notes():
    tune = [60, 62, 64, 60, 60, 62, 64, 60]
    assert expected(zip(tune, QUARTERS, strict=False)) == [
        *[None] * 6,
        (60, 84),  # C D E: then C
        (60, 96),  # and then another
    ]


def test_so_it_is_a_step_higher_but_not_in_another_rhythm():
    higher = [60, 62, 64, 60, 70, 72, 74]
    assert expected(zip(higher, QUARTERS, strict=False))[-1] == (70, 84)
    times = [0, 12, 24, 36, 48, 54, 60]
    assert expected(zip(higher, times, strict=True))[-1] is None


def test_the_longest_match_counts_and_of_those_the_latest():
    first, other = [60, 62, 64, 65], [50, 52, 54, 50]
    assert expected(zip([*first, *other, 70, 72, 74], QUARTERS, strict=False))[-1] == (70, 132)
    longer = [57, *first, *other, 67, 70, 72, 74]  # as far up to it as to the first
    assert expected(zip(longer, QUARTERS, strict=False))[-1] == (75, 156)


def test_what_is_told_of_it():
    same, moved = (
        read(zip([60, 62, 64, 90, *again], QUARTERS, strict=False))
        for again in ([60, 62, 64], [61, 63, 65])
    )
    first = ECHO_WIDTH - len(DUE) - 1
    assert columns(same, 84) == (0, 36, first)
    assert columns(moved, 84) == (len(LENGTHS) + 1, 36, first)
    assert columns(same, 72) == (0, 36, first + DUE.index(12) + 1)
    assert max(columns(same, -1000)) == ECHO_WIDTH - 1
