"""Passages that come again, of pieces made by hand, and of random ones."""

from hypothesis import given

from data.keys import high_to_low
from data.repeats import RUN_NOTES, Repeat, repeats_of
from tests.music import GRID, line, piece, scores

TUNE = [60, 62, 64, 65, 67, 69, 71, 72]
OTHER = [59, 57, 60, 55, 64, 52, 65, 50]


def quarters(pitches, bass=None, upbeat=False):
    """A melody of quarters in 4/4, of program 40, over a bass of program 43."""
    notes = [(12 * n, 12, pitch, 80, 40) for n, pitch in enumerate(pitches)]
    notes += [(12 * n, 12, pitch, 80, 43) for n, pitch in enumerate(bass or [])]
    bars = [(4, 4, 12)] * upbeat + [(4, 4, 48)] * -(-len(pitches) // 4)
    return piece(notes, bars, 80)


def test_a_melody_that_comes_again():
    assert repeats_of(quarters(TUNE + TUNE + OTHER)) == [Repeat(96, 192, 96, True)]
    assert repeats_of(quarters(TUNE + OTHER + TUNE)) == [Repeat(192, 288, 192, True)]
    assert repeats_of(quarters(TUNE + OTHER)) == []
    in_another_key = [pitch + 2 for pitch in TUNE]
    assert repeats_of(quarters(TUNE + in_another_key)) == []


def test_each_passage_is_as_long_as_can_be_and_repeats_the_first_of_its_kind():
    twice = TUNE + OTHER
    assert repeats_of(quarters(twice + twice)) == [Repeat(192, 384, 192, True)]
    thrice = repeats_of(quarters(TUNE * 3))
    assert thrice == [Repeat(96, 192, 96, True), Repeat(192, 288, 192, True)]


def test_the_other_voices_come_again_or_do_not():
    same, other = [48, 50, 52, 53, 48, 50, 52, 53], [45, 43, 41, 40, 38, 40, 41, 43]
    assert repeats_of(quarters(TUNE + TUNE, same + same))[0].is_whole
    assert not repeats_of(quarters(TUNE + TUNE, same + other))[0].is_whole


def test_seven_notes_are_no_passage():
    assert repeats_of(quarters(TUNE[:7] + OTHER + TUNE[:7] + [40])) == []
    assert len(TUNE) == RUN_NOTES


def test_nothing_is_said_to_repeat_in_the_first_bar():
    eighths = piece(line(TUNE + TUNE, duration=3), bars=((4, 4, 48), (4, 4, 48)))
    assert repeats_of(eighths) == []


@given(scores(GRID))
def test_a_passage_is_what_stood_before(score):
    if not len(score.bars):
        return
    end = 0
    for repeat in repeats_of(score):
        assert end <= repeat.begin_step < repeat.end_step
        assert repeat.end_step <= repeat.begin_step + repeat.lag_steps
        end = repeat.end_step
        notes = score.notes[score.notes["program"] == high_to_low(score)[0]]
        melody = {int(n["onset"]): int(n["pitch"]) for n in notes}  # the highest stays
        here = {t: p for t, p in melody.items() if repeat.begin_step <= t < end}
        assert len(here) >= RUN_NOTES
        assert all(melody.get(t - repeat.lag_steps) == p for t, p in here.items())
