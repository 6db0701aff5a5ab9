"""generate.py: what it writes, by a model that knows nothing yet, and what mistakes get."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pretty_midi
import pytest
import torch
from PIL import Image

import generate
from data.midi import read_midi, write_midi
from data.score import BAR, NOTE, SECONDS, canonical
from data.tokenizer import decode, encode
from data.vocabulary import Vocabulary
from model.bundle import save_bundle
from model.decoder import Decoder, DecoderConfig
from model.sampling import Choice
from tests.music import GRID, vocabulary_for

QUARTET = Vocabulary(((3, 4), (4, 4)), (80,), (40, 41, 42, 43), 36, 84, (80,), GRID)
PIANIST = Vocabulary(((1, 4),), (60,), (0,), 36, 84, (64, 80), SECONDS)


def untrained(path, vocabulary):
    """Saves a model that knows nothing but its vocabulary."""
    torch.manual_seed(0)
    decoder = Decoder(
        DecoderConfig(vocabulary.size, n_layer=1, n_head=2, n_embd=16, context_length=96)
    )
    torch.nn.init.normal_(decoder.head.weight, std=0.3)  # no two tokens alike
    save_bundle(path, decoder, vocabulary.to_json(), {"step": 0})
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return untrained(tmp_path_factory.mktemp("run") / "model.safetensors", QUARTET)


@pytest.fixture(scope="module")
def model(checkpoint):
    return generate.load(checkpoint)


def run(capsys, *arguments):
    """Exit code, output and errors of the command."""
    try:
        generate.main([str(argument) for argument in arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def tune(path, upbeat=False):
    bars = np.array([(3, 4, 12)] * upbeat + [(4, 4, 48)] * 4, BAR)
    notes = np.array([(step, 12, 60 + step % 5, 80, 40) for step in range(0, 180, 12)], NOTE)
    score = canonical(notes, bars, [80] * len(bars), GRID)[0]
    write_midi(score, path)
    return score


def test_the_three_files_hold_the_seed_and_more(checkpoint, tmp_path, capsys):
    out = tmp_path / "deep" / "piece"
    code, said, _ = run(capsys, "-c", checkpoint, "--seed-notes", "C4 E4 G4 C5", "-n", 3, "-o", out)
    assert code == 0
    assert "piece.mid" in said
    score = read_midi(out.with_suffix(".mid"), GRID)[0]
    assert score.notes[score.notes["onset"] < 48][["onset", "pitch"]].tolist() == [
        *((0, 60), (12, 64), (24, 67), (36, 72))
    ]
    assert len(score.bars) == 4
    assert score.notes["onset"].max() >= 48 * 3
    assert pretty_midi.PrettyMIDI(str(out.with_suffix(".mid"))).get_end_time() > 4
    assert Image.open(out.with_suffix(".png")).size > (300, 100)
    assert out.with_suffix(".wav").read_bytes()[:4] == b"RIFF"
    assert {path.name for path in out.parent.iterdir()} == {"piece.mid", "piece.wav", "piece.png"}


def test_the_same_seed_gives_the_same_bytes(checkpoint, tmp_path, capsys):
    for name in ("a", "b"):
        run(
            capsys,
            "-c",
            checkpoint,
            "--num-samples",
            2,
            "--seed",
            7,
            "-n",
            2,
            "-o",
            tmp_path / name,
        )
    run(capsys, "-c", checkpoint, "--num-samples", 2, "--seed", 8, "-n", 2, "-o", tmp_path / "c")
    for number in ("1", "2"):
        for end in (".mid", ".wav", ".png"):
            one, other, third = (
                (tmp_path / f"{name}-{number}{end}").read_bytes() for name in ("a", "b", "c")
            )
            assert one == other
            assert one != third
    assert (tmp_path / "a-1.mid").read_bytes() != (tmp_path / "a-2.mid").read_bytes()


@pytest.mark.parametrize("upbeat", [False, True])
def test_a_midi_seed_is_kept_bar_for_bar(model, tmp_path, upbeat):
    score = tune(tmp_path / "tune.mid", upbeat)
    seed = generate.read_seed_midi(model, tmp_path / "tune.mid", bars=2)
    assert seed.told == ()
    assert len(seed.score.bars) == 2 + upbeat
    for piece in generate.continue_score(model, seed, bars=5, samples=3):
        assert len(piece.score.bars) == 7 + upbeat
        kept = score.notes[score.notes["onset"] < seed.end_step]
        assert np.array_equal(piece.score.notes[: len(kept)], kept)
        assert piece.score.notes["onset"][len(kept)] >= seed.end_step


def test_without_a_seed_the_model_begins(model):
    (piece,) = generate.continue_score(model, generate.no_seed(model), bars=2)
    assert len(piece.score.bars) == 2
    assert piece.seed_steps == 0


def test_pieces_go_on_past_the_context_and_past_a_long_seed(model, tmp_path):
    tune(tmp_path / "tune.mid")
    seed = generate.read_seed_midi(model, tmp_path / "tune.mid", bars=4)
    (piece,) = generate.continue_score(model, seed, bars=30, choice=Choice())
    assert len(piece.score.bars) == 34
    write_midi(piece.score, tmp_path / "long.mid")
    long_seed = generate.read_seed_midi(model, tmp_path / "long.mid", bars=30)
    assert len(encode(long_seed.score, QUARTET)) > model.decoder.config.context_length
    (longer,) = generate.continue_score(model, long_seed, bars=1)
    assert len(longer.score.bars) == 31
    assert decode(encode(longer.score, QUARTET), QUARTET) == longer.score


def test_a_seed_that_the_model_cannot_spell_is_fitted_and_told(checkpoint, tmp_path, capsys):
    notes = np.array([(0, 12, 100, 80, 0)], NOTE)
    write_midi(canonical(notes, np.array([(7, 8, 42)], BAR), [160], GRID)[0], tmp_path / "odd.mid")
    code, said, _ = run(
        capsys, "-c", checkpoint, "--seed-midi", tmp_path / "odd.mid", "-n", 1, "-o", tmp_path / "x"
    )
    assert code == 0
    line = said.splitlines()[0]
    assert all(word in line for word in ("program 0 became 40", "octave", "tempo", "meter"))


def test_dense_bars_longer_than_the_context_go_on(model):
    """Re-based in mid-bar: the history that is shortened again still knows its tempo."""
    rng = np.random.default_rng(0)
    for bars in (1, 2, 4):
        notes = np.zeros(bars * 48 * 4, NOTE)
        notes["onset"] = np.arange(bars * 48).repeat(4)
        notes["duration"], notes["velocity"] = 1, 80
        notes["pitch"] = rng.integers(50, 70, len(notes))
        notes["program"] = np.tile([40, 41, 42, 43], bars * 48)
        score = canonical(notes, np.array([(4, 4, 48)] * bars, BAR), [80] * bars, GRID)[0]
        seed = generate.Seed(score, 48 * bars)
        (piece,) = generate.continue_score(model, seed, bars=6)
        assert len(piece.score.bars) == bars + 6


def test_new_notes_are_never_counted_as_the_seed(model):
    for text, count in (("C4:8", 1), ("C4 E4 G4 C5:8", 4), ("C4 E4", 2)):
        seed = generate.read_seed_notes(model, text)
        for piece in generate.continue_score(model, seed, bars=3, samples=4):
            assert (piece.score.notes["onset"] < piece.seed_steps).sum() == count


def test_a_seed_that_rests_before_its_bars_are_over_is_told(model, tmp_path):
    notes = np.array([(0, 12, 60, 80, 40), (192, 12, 62, 80, 40)], NOTE)
    score = canonical(notes, np.array([(4, 4, 48)] * 5, BAR), [80] * 5, GRID)[0]
    write_midi(score, tmp_path / "rests.mid")
    seed = generate.read_seed_midi(model, tmp_path / "rests.mid", bars=3)
    assert seed.told == ("it ends with bar 1, the last with a note",)


def test_the_readme_says_what_works(checkpoint, tmp_path, monkeypatch):
    text = (Path(generate.__file__).parent / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    tune(tmp_path / "tune.mid")
    (tmp_path / "runs" / "bach").mkdir(parents=True)
    (tmp_path / "runs" / "bach" / "model.safetensors").write_bytes(checkpoint.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    assert (tmp_path / "longer.wav").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--checkpoint", "none.safetensors"], ["none.safetensors"]),
        (["--checkpoint", __file__], ["test_generate.py"]),
        (["--seed-notes", "C4 H4"], ["H4"]),
        (["--seed-notes", ""], ["seed"]),
        (["--seed-midi", "none.mid"], ["none.mid", "no such file"]),
        (["--seed-midi", __file__], ["test_generate.py", "not a MIDI file"]),
        (["--seed-midi", "a.mid", "--seed-notes", "C4"], ["--seed-midi", "--seed-notes"]),
        (["--temperature", "-1"], ["temperature", "-1"]),
        (["--temperature", "hot"], ["temperature", "hot"]),
        (["--top-p", "2"], ["top-p"]),
        (["--bars", "0"], ["bars", "0"]),
        (["--bars", "-3"], ["bars", "-3"]),
        (["--num-samples", "0"], ["num-samples"]),
        (["--out", "/dev/null/piece"], ["/dev/null"]),
        (["--out", ".."], ["--out", "name"]),
        (["--seed", "-1"], ["seed"]),
        (["--seed", "9" * 30], ["seed"]),
        (["--tempreature", "1"], ["--tempreature"]),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    checkpoint, tmp_path, monkeypatch, capsys, arguments, words
):
    monkeypatch.chdir(tmp_path)
    given = [] if "--checkpoint" in arguments else ["--checkpoint", checkpoint]
    out = [] if "--out" in arguments else ["--out", tmp_path / "music" / "piece"]
    code, said, error = run(capsys, *given, *out, *arguments)
    assert code == 2
    assert said == ""
    assert len(error.strip().splitlines()) == 1
    assert all(word in error for word in words)
    assert list(tmp_path.iterdir()) == []


def test_the_command_runs_by_itself_and_without_lightning(checkpoint, tmp_path):
    program = (
        "import sys, runpy; sys.argv[0] = 'generate.py'; "
        "runpy.run_path('generate.py', run_name='__main__'); "
        "sys.exit('lightning' in sys.modules)"
    )
    command = [sys.executable, "-c", program, "-c", checkpoint, "-n", "1", "-o", tmp_path / "piece"]
    done = subprocess.run(
        command, cwd=Path(generate.__file__).parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_checkpoint_whose_vocabulary_does_not_fit_is_refused(model, tmp_path):
    other = vocabulary_for(tune(tmp_path / "tune.mid"))
    for text in (other.to_json(), "{}"):
        save_bundle(tmp_path / "odd.safetensors", model.decoder, text, {})
        with pytest.raises(generate.BundleError, match=r"odd\.safetensors"):
            generate.load(tmp_path / "odd.safetensors")


def test_a_checkpoint_with_another_side_input_is_refused(tmp_path):
    odd = Decoder(DecoderConfig(QUARTET.size, n_layer=1, n_head=1, n_embd=4, n_control=3))
    save_bundle(tmp_path / "odd.safetensors", odd, QUARTET.to_json(), {})
    with pytest.raises(generate.BundleError, match=r"odd\.safetensors: its side input"):
        generate.load(tmp_path / "odd.safetensors")


@pytest.mark.parametrize("seed", [["--seed-notes", "C4 E4 G4 C5"], ["--seed-midi"], []])
def test_a_model_of_performances_writes_seconds(tmp_path, capsys, seed):
    model = untrained(tmp_path / "pianist.safetensors", PIANIST)
    if seed == ["--seed-midi"]:
        tune(tmp_path / "tune.mid")  # quarter notes at 80: one in 75 steps
        seed = ["--seed-midi", tmp_path / "tune.mid", "--seed-bars", 2]
    out = tmp_path / "piece"
    code, _, errors = run(capsys, "-c", model, *seed, "-n", 4, "-o", out, "--temperature", 0.8)
    assert (code, errors) == (0, "")
    score = read_midi(out.with_suffix(".mid"), SECONDS)[0]
    begun = score.notes[["onset", "pitch"]].tolist()
    if "--seed-notes" in seed:
        assert begun[:4] == [(0, 60), (50, 64), (100, 67), (150, 72)]
    elif seed:
        assert begun[:3] == [(0, 60), (75, 62), (150, 64)]
    assert len(score.bars) == (6 if seed else 4)
    assert Image.open(out.with_suffix(".png")).size > (300, 100)
