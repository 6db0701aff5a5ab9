"""Folders of other music than chorales: each is read, learned from, written for and read back."""

from pathlib import Path

import numpy as np
import pretty_midi
import pytest

import evaluate
import generate
import train
from data.files.read import read_score
from data.instrument_names import instrument_name
from data.midi.io import to_pretty_midi
from data.score import DRUMS, MOST_PARTS, UNNAMED
from tests.models import untrained_on
from tests.runs import SMOKE

SMALL = {"model.n_layer": 1, "model.n_embd": 16, "model.context_length": 128, "monitor.times": 0}
STEPS = {"trainer.max_steps": 2, "trainer.val_check_interval": 2}
BEATS = 8  # of a song
ORCHESTRA = (*range(40, 50), 56, 57, 58, 60, 68, 70, 71, 73, 11, 19)
BANDS = {  # name, program and pitches of each track
    "drums and bass": [("Bass", 33, (28, 31, 35)), ("Drums", DRUMS, (36, 38, 42))],
    "piano": [("Piano", 0, (48, 60, 64, 67))],
    "orchestra": [(f"Desk {n}", n, (50 + n % 20, 57 + n % 20)) for n in ORCHESTRA],
}
# The numbers that play, by track: of parts from 0; of 16 desks, the 4 others by their programs.
BY_TRACK = {"drums and bass": {0, DRUMS}, "orchestra": {*range(MOST_PARTS)}}


def song(tracks, seed):
    """Each track plays some of its pitches on every beat, chords among them."""
    rng = np.random.default_rng(seed)
    midi = pretty_midi.PrettyMIDI(initial_tempo=120)
    for name, program, pitches in tracks:
        track = pretty_midi.Instrument(program % DRUMS, program == DRUMS, name)
        for beat in range(BEATS):
            chosen = rng.choice(pitches, rng.integers(1, len(pitches)), replace=False).tolist()
            notes = [pretty_midi.Note(80, p + seed % 3, beat / 2, beat / 2 + 0.4) for p in chosen]
            track.notes += notes
        midi.instruments.append(track)
    return midi


@pytest.mark.slow
@pytest.mark.parametrize(
    ("band", "parts"),
    [
        *(("drums and bass", "track"), ("piano", "program")),
        *(("orchestra", "program"), ("orchestra", "track")),
    ],
)
def test_a_folder_is_learned_from_written_for_and_read_back(tmp_path, monkeypatch, band, parts):
    monkeypatch.chdir(tmp_path)
    Path("songs").mkdir()
    for number in range(5):  # are enough
        song(BANDS[band], number).write(f"songs/{number}.mid")
    data = {"data.path": "songs", "data.parts": parts}
    options = {"config": SMOKE, "run": "run", **data, **SMALL, **STEPS}
    train.main(["fit", *(f"--{name}={its}" for name, its in options.items())])
    model = generate.load("run/model.safetensors")
    grid, programs = model.vocabulary.grid, {*model.vocabulary.programs}
    if parts == "track":
        assert BY_TRACK[band] <= programs
        unnamed = {number for number in programs if number >= UNNAMED}
        assert len(unnamed) == len(BANDS[band]) - len(BY_TRACK[band])
    else:
        assert programs == {program for _, program, _ in BANDS[band]}
    (piece,) = generate.compose(model, generate.Request(length=generate.Length(bars=2)))
    generate.write_piece(piece, "written")
    assert read_score("written.mid", grid)[0] == piece.score
    names = {track.name for track in pretty_midi.PrettyMIDI("written.mid").instruments}
    assert names <= {instrument_name(program, grid) for program in programs}
    # a song goes on, and its first voice is kept where others are written
    whole = read_score("songs/0.mid", grid)[0]
    longer = generate.continue_midi(model, to_pretty_midi(whole), generate.Length(bars=1))
    assert len(longer.get_downbeats()) >= len(whole.bars)
    if len(programs) > 1:
        seed = generate.given_from_midi("songs/0.mid", model.vocabulary)
        (piece,) = generate.compose(model, generate.Request(seed, None))
        assert np.array_equal(piece.score.notes[piece.is_given], seed.score.notes)
        others = np.array(model.vocabulary.programs)[seed.is_open.any(axis=1)]
        assert {*others.tolist()} == programs - {*seed.score.notes["program"].tolist()}


@pytest.mark.slow
def test_drums_alone_are_judged_by_what_they_have(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("songs").mkdir()
    for number in range(5):
        song(BANDS["drums and bass"][1:], number).write(f"songs/{number}.mid")
    untrained_on(Path("songs"), Path("model.safetensors"), transpose=0)
    page = ["--html", "page.html", "--count", "1"]
    evaluate.main(["all", "--checkpoint", "model.safetensors", *page])
    assert "Nats per note of whole pieces (valid: 1 piece, " in capsys.readouterr().out
    assert ">NaN</td>" in Path("page.html").read_text()  # there is no line of pitches
