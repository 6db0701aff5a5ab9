"""Corpora: what is read, left out, split and written, and when it is written again."""

import dataclasses
import json
import os
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text import printable
from data.corpus import build as build_module
from data.corpus import reader
from data.corpus.__main__ import main
from data.corpus.corpus import SPLITS, Corpus, CorpusError, CorpusOptions, open_corpus
from data.corpus.duplicates import fingerprint_of
from data.corpus.report import Copy, LeftOut, report_text
from data.midi.instruments import Instruments
from data.midi.io import write_midi
from data.midi.quantize import MidiError
from data.score import BAR, DRUMS, Score
from data.tokens.tokenizer import decode
from tests.folders import report_of, transposed, tune, write_tunes
from tests.music import GRID, piece, scores


def names(corpus):
    return {split: corpus.split(split).names for split in SPLITS}


@pytest.fixture
def folder(tmp_path):
    return write_tunes(tmp_path / "tunes", 12)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A corpus of twelve tunes, which is only read."""
    folder = tmp_path_factory.mktemp("built")
    write_tunes(folder / "tunes", 12)
    return open_corpus(folder / "tunes", folder / "out")


@pytest.fixture
def own(built, tmp_path):
    """A copy of that corpus, which may be damaged."""
    return Corpus.open(shutil.copytree(built.folder, tmp_path / built.folder.name))


def test_bars_before_the_first_note_are_left_out_and_counted(tmp_path):
    """The upbeat, the bars after it with their tempi, and all that sounds stay as they are."""
    written = [tune(number) for number in range(4)]
    delayed = dataclasses.replace(
        written[0],
        notes=written[0].notes.copy(),
        bars=np.concatenate([np.array([(3, 4, 36), (3, 4, 24)], BAR), written[0].bars]),
        tempo_bpm=np.append([60, 90], written[0].tempo_bpm),
    )
    delayed.notes["onset"] += 36 + 24
    for number, score in enumerate([delayed, *written[1:]]):
        write_midi(score, tmp_path / "tunes" / f"{number}.mid")
    corpus = open_corpus(tmp_path / "tunes", tmp_path / "out")
    for split in map(corpus.split, SPLITS):
        for index, name in enumerate(split.names):
            assert decode(split.piece(index), corpus.vocabulary) == written[int(name[0])]
            assert split.note_counts[index] == len(written[int(name[0])].notes)
    assert "  2 empty bars before first notes left out\n" in corpus.full_report()
    write_midi(written[0], tmp_path / "tunes" / "again.mid")  # which is the same music
    corpus = open_corpus(tmp_path / "tunes", tmp_path / "out")
    assert "Copies: 1, left out; 1 exact, 0 transposed\n" in corpus.full_report()


def test_what_was_done_is_in_the_report(folder, tmp_path):
    (folder / "a.mid").write_bytes(b"")
    (folder / "b.mid").write_bytes(b"MThd and no more")
    (folder / "notes.txt").write_text("no MIDI file")
    write_midi(transposed(tune(0, bars=3), 4), folder / "tune0 in E.mid")
    empty = tune(0)
    write_midi(Score(empty.notes[:0], empty.bars[:0], empty.tempo_bpm[:0], GRID), folder / "c.mid")
    corpus = open_corpus(folder, tmp_path / "out")
    report = report_of(corpus)
    assert report_text(report) == corpus.full_report()
    assert report.files == 16
    assert [entry.file for entry in report.left_out] == ["a.mid", "b.mid", "c.mid"]
    assert report.left_out[0].reason == "an empty file"
    assert "broken MIDI file" in report.left_out[1].reason
    assert report.left_out[2].reason == "it holds no notes"
    assert report.copies == (Copy("tune0.mid", "tune0 in E.mid", -4),)
    assert {s: report.splits[s].pieces for s in SPLITS} == {"train": 10, "valid": 1, "test": 1}
    for split in SPLITS:
        assert report.splits[split].tokens == len(corpus.split(split).tokens)
        assert report.splits[split].notes == corpus.split(split).note_counts.sum()
        assert report.splits[split].bars == len(corpus.split(split).bar_offsets)
    assert report.music.grid_changes.moved == 0
    text = corpus.folder.joinpath("report.txt").read_text()
    assert "tunes: 12 pieces out of 16 files" in text
    assert "Copies: 1, left out; 0 exact, 1 transposed\n  tune0.mid is tune0 in E.mid, -4" in text
    assert "Left out: 3\n  1 an empty file: a.mid" in text


def test_the_page_can_be_written_whatever_the_names_and_the_music(tmp_path):
    source = tmp_path / "tunes"
    write_tunes(source, 3)
    source.joinpath(os.fsdecode(b"\xe9t\xe9.mid")).write_bytes(b"")
    source.joinpath("tune0.mid").rename(source / os.fsdecode(b"tune\xff.mid"))
    corpus = open_corpus(source, tmp_path / "out")
    page = (corpus.folder / "report.txt").read_text()
    assert "\\xe9t\\xe9.mid" in page
    assert os.fsdecode(b"tune\xff.mid") in sum(names(corpus).values(), ())
    assert Corpus.open(corpus.folder) == corpus
    drums = tune(0).notes[tune(0).notes["program"] == DRUMS]
    for number in range(3):
        score = Score(drums[: number + 2], tune(0).bars, tune(0).tempo_bpm, GRID)
        write_midi(score, tmp_path / "drums" / f"{number}.mid")
    page = (open_corpus(tmp_path / "drums", tmp_path / "out").folder) / "report.txt"
    assert "pitches       drums alone" in page.read_text()


@given(scores(), st.integers(-5, 5))
def test_copies_in_another_key_have_one_fingerprint(score, semitones):
    pitch = score.notes["pitch"][score.notes["program"] != DRUMS] + semitones
    if not len(pitch) or pitch.min() < 0 or pitch.max() > 127:
        return
    assert fingerprint_of(transposed(score, semitones)) == fingerprint_of(score)


@given(scores(), st.data())
def test_another_note_makes_another_fingerprint(score, data):
    if len(score.notes) < 2:
        return
    index = data.draw(st.integers(0, len(score.notes) - 1))
    field = data.draw(st.sampled_from(["onset", "duration", "pitch", "program"]))
    notes = score.notes.copy()
    notes[field][index] += 1
    if field == "pitch" and (notes["program"] != DRUMS).sum() == 1:
        return  # the only note that has a key
    changed = Score(notes, score.bars, score.tempo_bpm, GRID)
    assert fingerprint_of(changed) != fingerprint_of(score)


def test_a_file_that_changes_while_it_is_read_spoils_nothing(folder, tmp_path, monkeypatch):
    def build_and_change(*arguments):
        build(*arguments)
        write_midi(tune(99), folder / "tune3.mid")

    build = build_module.build
    monkeypatch.setattr(build_module, "build", build_and_change)
    with pytest.raises(CorpusError, match="tunes: it changed while it was read"):
        open_corpus(folder, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_too_large_to_be_read_is_not_hashed_to_its_end(folder, tmp_path):
    with (folder / "huge.mid").open("wb") as file:
        file.truncate(2**40)  # sparse: to read it all takes an hour
    corpus = open_corpus(folder, tmp_path / "out")
    assert report_of(corpus).left_out == (LeftOut("huge.mid", "larger than 32 MiB, not read"),)
    with (folder / "huge.mid").open("r+b") as file:
        file.truncate(2**41)
    assert open_corpus(folder, tmp_path / "out").folder != corpus.folder


def test_all_performances_of_a_work_go_to_one_split(tmp_path):
    """In any key, with other rhythms, tempi, rolled chords and a wrong note here and there."""
    rng = np.random.default_rng(0)
    melodies = rng.integers(55, 80, size=(8, 120))
    for number, melody in enumerate(melodies):
        for player in range(5):
            write_midi(performance(melody, rng), tmp_path / "works" / f"{player} {number}.mid")
    corpus = open_corpus(tmp_path / "works", tmp_path / "out")
    works = [{name.split()[1] for name in members} for members in names(corpus).values()]
    assert sum(map(len, works)) == 8
    assert [len(work) for work in works] == [6, 1, 1]
    report = report_of(corpus)
    assert sorted(len(work) for work in report.works) == [5] * 8
    assert report.held_out_of_trained == 0
    assert "Works of several pieces: 8 (40 pieces), each in one split" in corpus.full_report()
    for split, number in (("train", 0), ("valid", 0), ("test", 1)):
        path = tmp_path / "given" / split / "piece.mid"
        write_midi(performance(melodies[number], rng), path)
    given_splits = open_corpus(tmp_path / "given", tmp_path / "out")
    assert "1 held-out pieces are of works that training has, too" in given_splits.full_report()
    for number in range(6):  # of one work alone training needs some, validation others
        write_midi(performance(melodies[0], rng), tmp_path / "alone" / f"{number}.mid")
    alone = open_corpus(tmp_path / "alone", tmp_path / "out")
    assert [len(members) for members in names(alone).values()] == [4, 1, 1]


def performance(melody, rng):
    """A melody and chords below it on one instrument, played by somebody."""
    lengths = rng.integers(5, 14, size=len(melody))
    onset = np.cumsum(lengths)
    heard = np.where(rng.random(len(melody)) < 0.03, melody + 1, melody) + rng.integers(-5, 6)
    top = np.stack([onset, lengths, heard], axis=1)
    chords = np.stack([onset - rng.integers(0, 2, len(onset)), lengths, heard - 20], axis=1)
    rows = [(*row, 80, 0) for row in np.concatenate([top, chords[::3]]).tolist()]
    return piece(rows)


def test_pieces_with_a_figure_in_common_are_works_of_their_own(tmp_path):
    """A scale that all have, and 16 notes that each has from the one before it."""
    rng = np.random.default_rng(1)
    own = rng.integers(50, 75, size=(12, 150)).tolist()
    for number, melody in enumerate(own):
        notes = [*range(50, 75), *melody, *own[number - 1][:16]]
        rows = [(12 * at, 12, pitch, 80, 0) for at, pitch in enumerate(notes)]
        write_midi(piece(rows), tmp_path / "pieces" / f"{number}.mid")
    corpus = open_corpus(tmp_path / "pieces", tmp_path / "out")
    assert report_of(corpus).works == ()


@pytest.mark.parametrize("valid", ["valid", "validation", "val"])
def test_subfolders_are_taken_at_their_word(valid, tmp_path):
    source = tmp_path / "tunes"
    write_tunes(source / "train", 3)
    write_tunes(source / valid, 2, first=2)  # tune 2 is in both
    write_tunes(source, 1, first=50)
    corpus = open_corpus(source, tmp_path / "out")
    assert names(corpus) == {
        "train": ("train/tune0.mid", "train/tune1.mid", "train/tune2.mid"),
        "valid": (f"{valid}/tune2.mid", f"{valid}/tune3.mid"),
        "test": (),
    }
    assert report_of(corpus).copies == (Copy(f"{valid}/tune2.mid", "train/tune2.mid", 0),)
    assert [entry.file for entry in report_of(corpus).left_out] == ["tune50.mid"]


def test_a_second_call_reuses_and_a_change_builds_anew(folder, tmp_path, monkeypatch):
    first = open_corpus(folder, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(build_module, "build", None)  # calling it would raise
        assert open_corpus(folder, tmp_path / "out") == first
    other = open_corpus(folder, tmp_path / "out", CorpusOptions(transpose=2))
    assert other.folder != first.folder
    write_midi(tune(77), folder / "tune3.mid")
    assert open_corpus(folder, tmp_path / "out").folder != first.folder
    assert first.folder.name.startswith("tunes-")


def test_errors_are_one_clear_line(tmp_path):
    def message(path, error=CorpusError):
        with pytest.raises(error) as caught:
            open_corpus(path, tmp_path / "out")
        assert "\n" not in str(caught.value)
        return str(caught.value).replace(str(tmp_path), "")

    assert message(tmp_path / "none", FileNotFoundError) == "/none: no such folder"
    (tmp_path / "file").write_text("")
    assert message(tmp_path / "file") == "/file: a file, where a folder of music files is needed"
    (tmp_path / "empty").mkdir()
    assert message(tmp_path / "empty") == "/empty: no music file in it"
    (tmp_path / "empty" / "steps.jsonl").touch()
    told = "/empty: no music file in it; name the file of sequences: "
    assert message(tmp_path / "empty").startswith(told)
    (tmp_path / "broken").mkdir()
    for number in range(3):
        (tmp_path / "broken" / f"{number}.mid").write_bytes(b"RIFF")
    assert message(tmp_path / "broken") == (
        "/broken: none of its 3 files can be used; "
        "most often: not a MIDI file (it does not begin with MThd)"
    )
    write_tunes(tmp_path / "one", 1)
    assert "only one piece" in message(tmp_path / "one")
    write_tunes(tmp_path / "given" / "train", 2)
    (tmp_path / "given" / "valid").mkdir()
    own = "it has folders of its own for train/, valid/ or test/, but no file"
    assert message(tmp_path / "given") == f"/given: {own} in valid/ can be used"
    write_tunes(tmp_path / "halves" / "train", 2)
    write_tunes(tmp_path / "halves" / "test", 2, first=5)  # never trained on, for want of valid/
    assert message(tmp_path / "halves") == f"/halves: {own} in valid/ can be used"
    assert message("") == "no folder of music files is named"
    for number in range(5):
        write_midi(tune(7), tmp_path / "one" / f"{number}.mid")
    (tmp_path / "one" / "tune0.mid").unlink()
    assert "only one piece (0.mid)" in message(tmp_path / "one")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_damage_is_told(own, tmp_path):
    tokens = own.folder / "train" / "tokens.npy"
    for header in (b"(", b"\0", b"\x80{"):  # which NumPy reads as Python
        tokens.write_bytes(tokens.read_bytes()[:10] + header + tokens.read_bytes()[11:])
        with pytest.raises(CorpusError, match="damaged"):
            own.split("train")
    assert own.summary() == own.full_report().split("\n\n  tokens")[0].replace("\n\n", "\n")
    (own.folder / "report.txt").write_bytes(b"\xff{}")
    with pytest.raises(CorpusError, match=r"report\.txt: damaged"):
        own.summary()
    (own.folder / "corpus.json").write_text("{")
    with pytest.raises(CorpusError, match="damaged"):
        Corpus.open(own.folder)
    with pytest.raises(FileNotFoundError, match="no corpus"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tokens", lambda array: array[:0]),
        ("tokens", lambda array: np.random.default_rng(0).permutation(array)),
        ("tokens", lambda array: array + 40_000),
        ("tokens", lambda array: array.astype(np.float32)),
        ("piece_offsets", lambda array: array[::-1]),
        ("piece_offsets", lambda array: array[:-1]),
        ("note_counts", lambda array: array[1:]),
        ("shifts", lambda array: array[:, :1]),
        ("bar_offsets", lambda array: array * 0),
        ("bar_tempos", lambda array: array[:3]),
    ],
)
def test_arrays_that_are_not_pieces_are_damage(own, name, change):
    path = own.folder / "train" / f"{name}.npy"
    np.save(path, change(np.load(path)))
    with pytest.raises(CorpusError, match="damaged; delete it to build the corpus anew"):
        own.split("train")


@pytest.mark.parametrize("part", ["files", "vocabulary", "format"])
@pytest.mark.parametrize("value", [None, [], {}, "x\x1b[31m\n", 0.5])
def test_a_corpus_that_lacks_something_is_damaged(own, part, value):
    path = own.folder / "corpus.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | {part: value}))
    with pytest.raises(CorpusError, match=r"damaged|delete it") as error:
        Corpus.open(own.folder)
    assert str(error.value) == printable(str(error.value))


def test_the_command_prints_a_summary_or_one_line(folder, tmp_path, monkeypatch, capsys):
    datasets = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["corpus", str(folder), "--datasets", datasets])
    main()
    (made,) = (tmp_path / "out").iterdir()
    printed = capsys.readouterr().out
    assert printed == (made / "report.txt").read_text() + f"\nin {made}\n"
    monkeypatch.setattr(sys, "argv", ["corpus", "nowhere", "--datasets", datasets])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err == "corpus: nowhere: no such folder\n"


def test_a_file_that_cannot_be_opened_costs_itself_wherever_it_lies(folder, tmp_path, monkeypatch):
    read = reader.read_events

    def denied(path):
        if path.name in ("tune1.mid", "tune2.mid"):
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(reader, "read_events", denied)  # workers are forked: they have it too
    left_out = report_of(open_corpus(folder, tmp_path / "out")).left_out
    assert [entry.reason for entry in left_out] == ["cannot be read (Permission denied)"] * 2


def test_a_piece_of_more_tokens_than_can_be_scored_costs_itself(folder, tmp_path):
    held = [(0, 90_000 * 12, pitch, 80, 0) for pitch in range(100)]  # 22,500 bars each
    write_midi(piece(held), folder / "held.mid")
    corpus = open_corpus(folder, tmp_path / "out")
    (left_out,) = report_of(corpus).left_out
    assert left_out.file == "held.mid"
    assert "held too long" in left_out.reason
    with pytest.raises(MidiError, match=r"held\.mid: it takes over 262,144 tokens"):
        reader.read_paths([folder / "held.mid"], GRID, Instruments())  # as evaluate.py does
    assert sum(len(corpus.split(split)) for split in SPLITS) == 12


@pytest.mark.parametrize(
    "settings",
    [
        {"steps_per_beat": 0},
        {"transpose": -1},
        {"parts": "tracks"},
        {"time_signature": "4"},
        {"time_signature": "0/4"},
        {"time_signature": "4/3"},
        {"time_signature": "99/4"},
        {"time_signature": "4/4", "grid": "seconds"},
        {"instruments": "organ"},
        *({"programs": programs} for programs in ((129,), (-1,), ())),
        *({"tracks": tracks} for tracks in ((0,), ())),
    ],
)
def test_options_that_cannot_be_are_refused(settings):
    told = r"must (be|leave)|steps_per_beat|time signature|to keep"
    with pytest.raises(CorpusError, match=told) as caught:
        CorpusOptions(**settings)
    assert len(str(caught.value).splitlines()) == 1
