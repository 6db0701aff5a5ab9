"""Echo: the next note by the longest match; test_features.py holds it to plain comparison."""

import numpy as np

from data.tokens.echo import DUE, ECHO_WIDTH, LENGTHS, Echo, EchoLine, read_echoes


def echoes_of(notes):
    line = EchoLine()
    return [line.add(pitch, onset) for pitch, onset in notes]


def expected(notes):
    return [echo and (echo.pitch, echo.due) for echo in echoes_of(notes)]


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
        echoes_of(zip([60, 62, 64, 90, *again], QUARTERS, strict=False))[-1]
        for again in ([60, 62, 64], [61, 63, 65])
    )
    assert same == Echo(match_column=0, move_column=12 + 24, due=84, pitch=90)
    assert moved == Echo(len(LENGTHS) + 1, 12 + 24, due=84, pitch=91)
    first = ECHO_WIDTH - len(DUE) - 1
    assert same.columns(84) == (0, 36, first)
    assert same.columns(72) == (0, 36, first + DUE.index(12) + 1)
    assert max(same.columns(-1000)) == ECHO_WIDTH - 1


def test_notes_of_windows_and_programs_are_apart():
    tune = [60, 62, 64, 60, 60, 62, 64]
    alone = echoes_of(zip(tune, QUARTERS, strict=False))
    three = [(0, 0), (0, 1), (1, 0)]
    rows, programs, pitches, onsets = zip(
        *((*line, its, at) for its, at in zip(tune, QUARTERS, strict=False) for line in three),
        strict=True,
    )
    echoes, after = read_echoes(*map(np.array, (rows, programs, pitches, onsets)))
    rows_of = np.stack(echoes, axis=1).tolist()
    nothing = [-1] * len(Echo._fields)
    assert rows_of == [list(echo or nothing) for echo in alone for _ in three]
    assert after.tolist() == [*range(3, len(rows)), 0, 0, 0]
