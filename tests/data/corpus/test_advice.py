"""How a folder is read: which steps, bars, parts and instruments suit it, by what was measured."""

import numpy as np
import pytest
import symusic

from data.corpus import trials
from data.corpus.advice import STEPS, advised_grid, try_options
from data.corpus.corpus import CorpusOptions, open_corpus
from data.corpus.options import OPEN
from data.corpus.trials import Chosen
from data.midi.io import write_midi
from data.score import SECONDS, Grid
from tests.folders import report_of
from tests.music import GRID, events_of, piece

TICKS = 480  # a quarter note


def events_at(ticks):
    """Notes that begin at these ticks, for 10 ticks."""
    begins = np.rint(ticks).astype(int).tolist()
    rows = [(begin, begin + 10, 60, 80, 0) for begin in begins]
    return events_of(rows, tracks=(("", len(rows)),))


def tried(*pieces, grid=GRID):
    return [try_options(events, grid) for events in pieces]


def fewest(trial, is_anew=False):
    return next((steps for steps in STEPS if trial.fits(steps, is_anew)), None)


@pytest.mark.parametrize(
    ("ticks", "steps"),
    [
        (np.arange(0, 30 * TICKS, TICKS), 12),
        (np.add.outer(np.arange(40) * TICKS, [0, 320]).ravel(), 12),  # swing
        (np.arange(90) * 160, 12),  # triplets
        (np.append(np.arange(64) * 120, np.arange(48, 96) * 160), 12),  # sixteenths, triplets
        (np.arange(200) * 60, 24),  # 32nds
        (np.zeros(1), 12),
    ],
)
def test_music_with_a_beat_needs_these_steps(ticks, steps):
    assert [fewest(trial) for trial in tried(events_at(ticks))] == [steps]
    rng = np.random.default_rng(1)  # a player who follows a click strays by 2 ms
    astray = np.maximum(ticks + rng.normal(0, 0.002 * 2 * TICKS, len(ticks)), 0)
    assert [fewest(trial) for trial in tried(events_at(astray))] == [steps]
    late = tried(events_at(ticks + 55))[0]  # what begins a little late has the same beats
    assert fewest(late) is None
    assert fewest(late, is_anew=True) == steps


def test_onsets_drawn_by_chance_keep_to_no_steps():
    rng = np.random.default_rng(2)
    pieces = tried(*(events_at(rng.integers(0, 100_000, size=200)) for _ in range(100)))
    assert {fewest(trial) for trial in pieces} == {None}
    assert np.mean([trial.errors[0] for trial in pieces]) == pytest.approx(0.25, abs=0.01)
    assert advised_grid(pieces) == {"grid": "seconds", "time_signature": None}


def test_the_grid_is_one_that_half_of_the_files_keep_to():
    even, fine, late = (
        events_at(ticks)
        for ticks in (np.arange(64) * 120, np.arange(200) * 60, np.arange(64) * 120 + 52)
    )
    strange = events_at(np.random.default_rng(0).integers(0, 9999, size=99))
    beats = {"grid": "beats", "steps_per_beat": 12}
    assert advised_grid(tried(even, even, strange)) == beats
    assert advised_grid(tried(even, strange, strange))["grid"] == "seconds"
    assert advised_grid(tried(fine, fine)) == beats | {"steps_per_beat": 24}
    assert advised_grid(tried(late, late)) == beats | {"time_signature": "4/4"}
    assert advised_grid(tried(late, late, grid=Grid(meter=(4, 4)))) == beats
    astray = np.random.default_rng(1).normal(0, 0.02 * 2 * TICKS, 300)  # by 20 ms: by half a step
    drummer = events_at(np.maximum(np.arange(300) * 120 + astray, 0))
    assert fewest(*tried(drummer)) is None
    assert advised_grid(tried(drummer, strange)) == beats | {"steps_per_beat": 24}  # for the feel


def write_band(folder, names, programs=lambda number: (0, 0), count=12):
    """Files of two tracks that play the same keys, a half of the notes at the same time."""
    for number in range(count):
        band = symusic.Score(480)
        for track, (name, program) in enumerate(zip(names(number), programs(number), strict=True)):
            band.tracks.append(symusic.Track(name=name, program=program))
            beats = np.arange(40) * (1 + track)
            pitches = 40 + np.random.default_rng(number).integers(0, 40, size=80)[beats]
            for beat, pitch in zip(beats.tolist(), pitches.tolist(), strict=True):
                band.tracks[-1].notes.append(symusic.Note(beat * 480, 480, pitch, 80))
        folder.mkdir(exist_ok=True)
        band.dump_midi(folder / f"{number}.mid")
    return folder


def lost(report):
    changes = report.music.grid_changes
    notes = sum(report.music.programs.values()) + changes.merged
    return (changes.merged + changes.cut) / notes


def test_parts_are_chosen_by_what_they_really_save(tmp_path):
    band = write_band(tmp_path / "band", lambda number: ("right", "left"))
    plain, parts = (
        report_of(open_corpus(band, tmp_path / "out", CorpusOptions(parts=parts)))
        for parts in ("program", "track")
    )
    opened = open_corpus(band, tmp_path / "out", CorpusOptions(**OPEN))
    chosen = report_of(opened).chosen
    assert chosen == Chosen("--parts track", lost(parts), lost(plain))
    assert lost(plain) > 0.2
    assert lost(parts) == 0
    assert opened.vocabulary.grid.parts == parts.grid.parts
    lines = [line.strip() for line in opened.full_report().splitlines()]
    assert "chosen        --parts track: fewer notes meet" in lines
    assert f"0.0% of the notes merged or cut short; {lost(plain):.1%} otherwise" in lines
    assert plain.chosen is parts.chosen is None


def test_of_many_instruments_those_that_most_files_have_play_for_all(tmp_path):
    """Each of 20 files has a piano, and a program of its own that no other has."""
    band = write_band(tmp_path / "band", lambda _: ("", ""), lambda n: (0, 40 + n), count=20)
    opened = open_corpus(band, tmp_path / "out", CorpusOptions(**OPEN))
    assert report_of(opened).chosen.options == "--instruments common"
    assert report_of(opened).chosen.replaced == (*range(54, 60),)
    said = opened.full_report()
    played = "Synth Choir, Orchestra Hit, Trumpet, Trombone"
    assert f"common instruments also play the notes of {played}" in said
    assert "Choir Aahs" in said  # the last of the fifteen
    assert opened.vocabulary.programs == (0, *range(40, 54))
    kept = open_corpus(band, tmp_path / "out").vocabulary.programs
    assert kept == (0, *range(40, 60))


def test_half_as_many_instruments_are_many_where_only_some_files_were_tried(tmp_path, monkeypatch):
    band = write_band(tmp_path / "band", lambda _: ("", ""), lambda n: (0, 40 + n), count=14)
    found = []
    for most in (14, 7):
        monkeypatch.setattr(trials, "MOST_FILES", most)
        opened = open_corpus(band, tmp_path / str(most), CorpusOptions(**OPEN))
        found.append((len(opened.vocabulary.programs), report_of(opened).chosen))
    assert found[0] == (15, None)
    assert found[1][0] == 8
    assert found[1][1].options == "--instruments common"


def test_the_grid_is_that_to_which_notes_keep(tmp_path):
    """What is said is never overruled; what is not said is as the notes lie."""
    folder, rng = tmp_path / "free", np.random.default_rng(0)
    for number in range(6):
        drawn = rng.integers((0, 40), (5000, 80), size=(60, 2)).tolist()
        free = piece([(onset, 30, pitch, 80, 0) for onset, pitch in drawn], grid=SECONDS)
        write_midi(free, folder / f"{number}.mid")

    def grid(**said):
        options = CorpusOptions(**OPEN | said)
        return open_corpus(folder, tmp_path / "out", options).vocabulary.grid

    assert grid().kind == "seconds"
    assert grid(grid="beats").kind == "beats"
    assert grid(steps_per_beat=24) == Grid(24)
    assert grid(time_signature="3/4") == Grid(meter=(3, 4))
