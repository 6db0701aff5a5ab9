"""generate.py: what it writes, by a model that knows nothing yet, and what mistakes get."""

import re
import sys
from pathlib import Path

import numpy as np
import pretty_midi
import pytest
from PIL import Image

import generate
from common.typed_json import to_json
from data.files.read import read_score
from data.midi.io import write_midi
from data.score import SECONDS
from data.style import Style
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import network_of
from model.serialization import ModelFile, ModelFileError, save_model_file
from rendering.audio import has_sound, render_audio
from tests.models import BAND, PIANIST, QUARTET, tune, untrained
from tests.music import GRID, piece, vocabulary_for
from tests.runs import python


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("run") / "model.safetensors", QUARTET)


@pytest.fixture(scope="module")
def model(checkpoint):
    return generate.load(checkpoint)


def run(capsys, *arguments):
    """Output and errors of the command, which comes to its end."""
    generate.main([*map(str, arguments)])
    return capsys.readouterr()


def refused(capsys, *arguments):
    """The line with which the command refuses these words, and says nothing else."""
    with pytest.raises(SystemExit, match="2"):
        run(capsys, *arguments)
    said, errors = capsys.readouterr()
    (line,) = errors.strip().splitlines()
    assert said == ""
    return line


def test_the_files_hold_the_seed_and_more(checkpoint, tmp_path, capsys):
    out = tmp_path / "deep" / "piece"
    seed = ("--seed-notes", "C4 E4 G4 C5", "--alone")
    said, _ = run(capsys, "-c", checkpoint, *seed, "-n", 3, "-o", out)
    assert "piece.mid" in said
    score = read_score(out.with_suffix(".mid"), GRID)[0]
    assert score.notes[score.notes["onset"] < 48][["onset", "pitch"]].tolist() == [
        *((0, 60), (12, 64), (24, 67), (36, 72))
    ]
    assert len(score.bars) == 4
    assert score.notes["onset"].max() >= 48 * 2
    assert pretty_midi.PrettyMIDI(str(out.with_suffix(".mid"))).get_end_time() > 4
    assert Image.open(out.with_suffix(".png")).size > (300, 100)
    assert out.with_suffix(".wav").read_bytes()[:4] == b"RIFF"
    assert "<score-partwise" in out.with_suffix(".musicxml").read_text()
    assert out.with_suffix(".svg").read_text().startswith("<svg")
    names = {f"piece{ending}" for ending in generate.ENDINGS}
    assert {path.name for path in out.parent.iterdir()} == names
    assert all(name in said for name in names)


def test_without_a_synthesizer_all_but_sound_is_written(checkpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tinysoundfont", None)  # as where it is not installed
    has_sound.cache_clear()
    try:
        said, errors = run(capsys, "-c", checkpoint, "-n", 1, "-o", tmp_path / "piece")
        silence = render_audio(tune(tmp_path / "tune.mid"))
    finally:
        has_sound.cache_clear()
    assert ".wav" not in said
    written = {path.suffix for path in tmp_path.glob("piece.*")}
    assert written == {*generate.ENDINGS} - {".wav"}
    (line,) = errors.splitlines()
    assert line.startswith("no sound: tinysoundfont is not installed")
    assert len(silence) > 44_100  # players go on to its end
    assert not silence.any()


def test_what_is_asked_for_is_written(checkpoint, tmp_path, capsys):
    tune(tmp_path / "tune.mid")
    seed = ("--seed-midi", tmp_path / "tune.mid", "--from-bar", 2, "--seed-bars", 1, "--alone")
    asked = ("--key", "G", "--pitch-range", "C3", "C5", "--programs", 41, 42, "--tempo", 120)
    more = ("--max-polyphony", 2, "--time-signature", "3/4", "--notes", 12)
    out = tmp_path / "piece"
    said, _ = run(capsys, "-c", checkpoint, *seed, *asked, *more, "-o", out)
    assert "about what was given" not in said
    score = read_score(out.with_suffix(".mid"), GRID)[0]
    new = score.notes[4:]
    assert len(new) == 12
    assert set((new["pitch"] % 12).tolist()) <= {7, 9, 11, 0, 2, 4, 6}
    assert 48 <= new["pitch"].min() <= new["pitch"].max() <= 72
    assert set(new["program"].tolist()) <= {41, 42}
    assert set(score.tempo_bpm.tolist()) == {120}
    assert score.bars["numerator"].tolist() == [4] + [3] * (len(score.bars) - 1)


def test_the_seed_can_be_left_out(checkpoint, tmp_path, capsys):
    options = ("-c", checkpoint, "--seed-notes", "C4 E4 G4 C5", "--alone", "--bars", 2, "-o")
    run(capsys, *options, tmp_path / "with")
    said, _ = run(capsys, *options, tmp_path / "without", "--no-seed-in-output")
    whole, new = (read_score(tmp_path / f"{name}.mid", GRID)[0] for name in ("with", "without"))
    assert whole.notes["pitch"][:4].tolist() == [60, 64, 67, 72]
    assert whole.notes["pitch"][4:].tolist() == new.notes["pitch"].tolist()
    assert (whole.notes["onset"][4:] - 48).tolist() == new.notes["onset"].tolist()
    assert f"{len(new.bars)} bars, {len(new.notes)} notes" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "3 voices join the seed; add --alone"),
        (["--voice", 3], "3 voices join the seed; add --alone"),
        (["--programs", 40, 43], "1 voice joins the seed; add --alone"),
        (["--max-polyphony", 3], "2 voices join the seed; add --alone"),
        (["--max-polyphony", 1], None),
        (["--alone"], None),
    ],
)
def test_voices_that_join_a_seed_are_told(tmp_path, capsys, options, words):
    path = untrained(tmp_path / "model.safetensors", QUARTET)
    out = ("-n", 1, "-o", tmp_path / "piece")
    said, _ = run(capsys, "-c", path, "--seed-notes", "C4 E4 G4 C5", *options, *out)
    lines = said.splitlines()
    assert lines[0].startswith(words) if words else len(lines) == 1


def test_parts_are_asked_for_and_told_by_their_names(tmp_path, capsys):
    path = untrained(tmp_path / "model.safetensors", BAND)
    tune(tmp_path / "tune.mid", program=73)
    options = ("-c", path, "--programs", "melody", "piano", "-n", 1, "-o", tmp_path / "piece")
    said, _ = run(capsys, *options, "--seed-midi", tmp_path / "tune.mid", "--voice", "Piano")
    assert "MELODY joins the seed; add --alone" in said
    written = pretty_midi.PrettyMIDI(str(tmp_path / "piece.mid")).instruments
    assert {"PIANO"} <= {track.name for track in written} <= {"MELODY", "PIANO"}
    line = refused(capsys, *options[:2], "--rewrite", tmp_path / "piece.mid", "--voice", "X")
    assert "the model has no voice X: it has MELODY, BRIDGE" in line


@pytest.mark.parametrize("voice", [1, 3])
def test_a_tune_is_harmonized(checkpoint, tmp_path, capsys, voice):
    score = tune(tmp_path / "tune.mid", upbeat=True, program=0)
    names = ["onset", "duration", "pitch"]
    options = ("-c", checkpoint, "--voice", voice, "-o", tmp_path / "piece", "--harmonize")
    assert run(capsys, *options, tmp_path / "tune.mid").err == ""
    written = read_score(tmp_path / "piece.mid", GRID)[0]
    mine = written.notes["program"] == 39 + voice
    assert written.notes[mine][names].tolist() == score.notes[names].tolist()
    assert np.array_equal(written.bars, score.bars)
    assert not mine.all()
    assert run(capsys, *options, "--seed-notes", "C4 D4:2").err == ""  # the text in its place
    harmony = read_score(tmp_path / "piece.mid", GRID)[0].notes
    mine = harmony["program"] == 39 + voice
    assert harmony[mine][["onset", "pitch"]].tolist() == [(0, 60), (12, 62)]


def test_silent_programs_are_told_and_pieces_in_which_all_play_are_preferred(
    checkpoint, tmp_path, capsys
):
    asked = ("-c", checkpoint, "--programs", 40, 41, 42, 43, "--notes", 5, "-o", tmp_path / "piece")
    silent = set()
    for seed in range(12):
        said, _ = run(capsys, *asked, "--seed", seed)
        playing = set(read_score(tmp_path / "piece.mid", GRID)[0].notes["program"].tolist())
        told = re.search(
            r"([0-9 and]+) plays? no note in piece.mid: --programs .*; --best-of", said
        )
        missing = {40, 41, 42, 43} - playing
        assert {int(n) for n in told[1].split(" and ")} == missing if missing else told is None
        silent.add(len(missing))
    assert len(silent) > 1
    said, _ = run(capsys, *asked, "--best-of", 60)
    assert "no note in" not in said


def test_the_same_seed_gives_the_same_bytes(checkpoint, tmp_path, capsys):
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        two = ("--num-samples", 2, "--seed", seed, "-n", 2, "-o", tmp_path / name)
        run(capsys, "-c", checkpoint, *two)
    for number in ("1", "2"):
        for end in generate.ENDINGS:
            one, other, third = (
                (tmp_path / f"{name}-{number}{end}").read_bytes() for name in ("a", "b", "c")
            )
            assert one == other
            assert one != third
    assert (tmp_path / "a-1.mid").read_bytes() != (tmp_path / "a-2.mid").read_bytes()


def test_a_seed_that_the_model_cannot_spell_is_fitted_and_told(checkpoint, tmp_path, capsys):
    write_midi(piece([(0, 12, 100, 80, 0)], [(7, 8, 42)], 160), tmp_path / "odd.mid")
    odd = ("--seed-midi", tmp_path / "odd.mid")
    said, _ = run(capsys, "-c", checkpoint, *odd, "-n", 1, "-o", tmp_path / "x")
    line = said.splitlines()[0]
    words = ("Acoustic Grand Piano became Violin", "octave", "meter")
    assert all(word in line for word in words)
    assert "tempo" not in line  # its only one stands for any
    assert {*read_score(tmp_path / "x.mid", GRID)[0].tempo_bpm.tolist()} == {160}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--checkpoint", "none.safetensors"], ["none.safetensors"]),
        (["--checkpoint", __file__], ["test_generate.py"]),
        (["--checkpoint", str(Path(__file__).parent)], ["no model.safetensors in it"]),
        (["--seed-midi", str(Path(__file__).parent)], ["a folder, where a music file is needed"]),
        (["tune.mid"], ["a file is named by --seed-midi"]),
        (["--seed-notes", "C4", "E4", "G4"], ["words that belong together go in quotes"]),
        (["--pieces", "5"], ["unrecognized arguments: --pieces 5"]),
        (["--seed-notes", "C4 H4"], ["H4"]),
        (["--seed-midi", "none.mid"], ["none.mid", "no such file"]),
        (["--seed-midi", __file__], ["test_generate.py", "it is neither MIDI"]),
        (["--seed-midi", "a.mid", "--seed-notes", "C4"], ["--seed-midi", "--seed-notes"]),
        (["--seed-notes", "C4:2 E4:1", "--seconds", "0.2"], ["last bar goes on for 0."]),
        (["--temperature", "-1"], ["temperature", "-1"]),
        (["--out", "/dev/null/piece"], ["/dev/null is not a folder"]),
        (["--out", "/proc/piece"], ["/proc/piece.mid: cannot be written"]),
        (["--bars", "1000000000"], ["bars", "above 0 and below 1048576"]),
        (["--out", ""], ["--out", "name"]),
        (["--bars", "2", "--notes", "3"], ["--notes", "--bars"]),
        (["--from-bar", "3"], ["--from-bar", "--seed-midi"]),
        (["--seed-bars", "3", "--seed-notes", "C4"], ["--seed-bars", "--seed-midi"]),
        (["--voice", "2"], ["--voice", "--harmonize"]),
        (["--seed-notes", "C4", "--voices", "1", "2"], ["--voices", "--rewrite"]),
        (["--bars-to-rewrite", "2"], ["--bars-to-rewrite", "--rewrite"]),
        (["--rewrite", "a.mid", "--bars-to-rewrite", "8-5"], ["--bars-to-rewrite", "8-5"]),
        (["--rewrite", ""], ["--rewrite", "name of a file"]),
        (["--rewrite", "a.mid", "--alone"], ["--alone", "--rewrite"]),
        (["--harmonize", "--seed-notes", "C4", "--voices", "1", "3"], ["1 voice", "no voice 3"]),
        (["--alone"], ["--alone", "--seed-notes"]),
        (["--rewrite", "a.mid", "--bars-to-rewrite", "b"], ["--bars-to-rewrite", "5-8"]),
        (["--rewrite", "a.mid", "--bars", "2"], ["--bars", "--rewrite"]),
        (["--rewrite", "a.mid", "--seed-notes", "C4"], ["--rewrite", "--seed-notes"]),
        (["--harmonize"], ["--harmonize", "--seed-notes"]),
        (["--harmonize", "a.mid", "--seed-notes", "C4"], ["--harmonize", "one melody"]),
        (["--harmonize", "a.mid", "--seed-midi", "a.mid"], ["--seed-midi"]),
        (["--harmonize", "--seed-notes", "C4", "--bars", "3"], ["--bars", "--harmonize"]),
        (["--programs", "0"], ["0", "40 (Violin), 41 (Viola)"]),
        (["--time-signature", "3"], ["time-signature", "3/4"]),
        (["--num-samples", "20000"], ["--num-samples", "at most 10000"]),
        (["--best-of", 129], ["--best-of", "at most 128"]),
        (["--pitch-range", "9" * 5000, "C5"], ["no note", "C3 C6"]),
        (["--checkpoint", "[" * 3000], ["no such file"]),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    checkpoint, tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    given = [] if "--checkpoint" in arguments else ["--checkpoint", checkpoint]
    out = [] if "--out" in arguments else ["--out", tmp_path / "music" / "piece"]
    line = refused(capsys, *given, *out, *arguments)
    assert all(word in line for word in words)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_written_into_under_a_name_from_the_seed(checkpoint, tmp_path, capsys):
    (tmp_path / "old").mkdir()
    tune(tmp_path / "tune.mid")
    for out, seed, name in (
        (tmp_path / "old", ["--seed-notes", "C4"], "from-notes"),
        (f"{tmp_path}/new/", ["--seed-midi", tmp_path / "tune.mid"], "from-tune"),
    ):
        run(capsys, "-c", checkpoint, "-n", 1, *seed, "-o", out)
        written = {path.name for path in Path(out).iterdir()}
        assert written == {f"{name}{ending}" for ending in generate.ENDINGS}


def test_a_folder_in_the_place_of_a_file_is_told_before_anything_is_written(
    checkpoint, tmp_path, capsys
):
    (tmp_path / "piece-2.wav").mkdir()
    options = ("-c", checkpoint, "--num-samples", 2, "-o", tmp_path / "piece")
    assert "piece-2.wav is a folder" in refused(capsys, *options)
    assert [path.name for path in tmp_path.iterdir()] == ["piece-2.wav"]


@pytest.mark.parametrize("command", ["generate.py", "evaluate.py", "evaluate.py all"])
def test_help_and_mistakes_wait_for_no_large_library(command):
    program, *words = command.split()
    code = (
        "import sys, runpy\n"
        "for option in ('--help', '--checkpoint=none.safetensors', '--no-such-option'):\n"
        f"    sys.argv = [{program!r}, *{words!r}, option]\n"
        f"    try: runpy.run_path({program!r}, run_name='__main__')\n"
        "    except SystemExit as stop: print(stop.code)\n"
        "print(sorted({'torch', 'matplotlib', 'music21'} & {*sys.modules}))"
    )
    told, errors, _ = python(code)
    assert told.endswith("\n0\n2\n2\n[]\n")
    assert len(errors.splitlines()) == 2


def test_the_command_runs_by_itself_and_without_lightning(checkpoint, tmp_path):
    program = (
        "import sys, runpy; sys.argv[0] = 'generate.py'; "
        "runpy.run_path('generate.py', run_name='__main__'); "
        "sys.exit('lightning' in sys.modules)"
    )
    words = ("-c", checkpoint, "-n", 1, "-o", tmp_path / "piece")
    assert python(program, *words)[1:] == ("", 0)


def test_a_checkpoint_whose_vocabulary_or_side_input_does_not_fit_is_refused(model, tmp_path):
    config = DecoderConfig(QUARTET.size, n_layer=1, n_head=1, n_embd=4, side_blocks=(3,))
    other = vocabulary_for(tune(tmp_path / "tune.mid")).to_json()
    for network, vocabulary, words in (
        (model.network, other, ""),
        (network_of(Decoder(config)), QUARTET.to_json(), ": its side input"),
    ):
        content = ModelFile(network, vocabulary, to_json(Style()))
        save_model_file(tmp_path / "odd.safetensors", content)
        with pytest.raises(ModelFileError, match=rf"odd\.safetensors{words}"):
            generate.load(tmp_path / "odd.safetensors")


@pytest.mark.parametrize("seed", [["--seed-notes", "C4 E4 G4 C5"], ["--seed-midi"], []])
def test_a_model_of_performances_writes_seconds(tmp_path, capsys, seed):
    model = untrained(tmp_path / "pianist.safetensors", PIANIST)
    if seed == ["--seed-midi"]:
        tune(tmp_path / "tune.mid")  # quarter notes at 80: one in 75 steps
        seed = ["--seed-midi", tmp_path / "tune.mid", "--seed-bars", 2]
    out = tmp_path / "piece"
    assert run(capsys, "-c", model, *seed, "-n", 4, "-o", out, "--temperature", 0.8).err == ""
    score = read_score(out.with_suffix(".mid"), SECONDS)[0]
    begun = score.notes[["onset", "pitch"]].tolist()
    if "--seed-notes" in seed:
        assert begun[:4] == [(0, 60), (50, 64), (100, 67), (150, 72)]
    elif seed:
        assert begun[:3] == [(0, 60), (75, 62), (150, 64)]
    assert len(score.bars) == (6 if seed else 4)
    assert Image.open(out.with_suffix(".png")).size > (300, 100)
