"""What the page asks of a model, with models that know nothing."""

import shutil
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from data.corpus.corpus import open_corpus
from data.corpus.store import Split
from data.ensembles import Ensemble
from data.extremes import Extremes
from data.forms import Form
from data.midi.io import midi_bytes
from data.style import Style
from data.tokens.tokenizer import encode
from generation.constraints import ConstraintError
from generation.request import Request
from generation.seeds import continued
from model.record import TrainingRecord
from model.serialization import ModelFileError, load_model_file, save_model_file
from tests.chord_checker import what_is_broken
from tests.folders import write_tunes
from tests.models import QUARTET, liking, untrained
from tests.web.conftest import ASKED, SETTINGS
from web.connection import SLICE_SECONDS
from web.messages import MOST_NOTES, MessageError, piece_of
from web.models import Models
from web.tasks import TASKS, TOLD_RUN, advance, blame


def done(told):
    """The pieces that were told; which are the best, comes after them."""
    *_, pieces, ranked = filter(None, told)
    assert sorted(ranked["order"]) == [*range(len(pieces["done"]))]
    assert len(ranked["beyond"]) == len(pieces["done"])
    return pieces["done"]


def keys(piece, is_own=None):
    """Onset, program and pitch of each note; of those put in or of those written, if asked."""
    return {(n[0], n[4], n[2]) for n in piece["notes"] if is_own is None or bool(n[5]) == is_own}


def test_a_model_says_what_it_plays(do):
    quartet, ready = do("describe")
    assert ready == {"ready": True}
    assert [program for program, *_ in quartet["plays"]["programs"]] == [40, 41, 42, 43]
    assert (quartet["plays"]["pitches"], quartet["plays"]["steps"]) == ([36, 84], 12)
    pianist, _ = do("describe", model="runs/piano")
    assert (pianist["plays"]["grid"], pianist["plays"]["steps"]) == ("seconds", 100)
    with pytest.raises(MessageError, match="no model"):
        do("describe", model="../models/quartet.safetensors")


def test_of_meters_those_of_training_pieces_are_offered_and_others_told_of(
    do, models, tune, monkeypatch
):
    assert do("describe")[0]["plays"]["meters"] == [[3, 4], [4, 4]]
    model = models.load("quartet")
    style = replace(model.style, forms=(Form((3, 4), 36, 4, final_position=0),))
    monkeypatch.setattr(models, "load", lambda _: replace(model, style=style))
    assert do("describe")[0]["plays"]["meters"] == [[3, 4]]
    begun = do("write", how="continue", piece=tune)[0]
    assert "no piece in 4/4, but in 3/4" in begun["changes"][-1]


def test_text_is_read(do, tune):
    assert [note[2] for note in tune["notes"]] == [60, 64, 67, 72]
    assert all(note[5] for note in tune["notes"])
    assert do("text", text="C E")[0]["changes"]  # they may be meant as notes


@pytest.mark.parametrize("how", ["continue", "accompany", "harmonize"])
def test_all_that_was_put_in_is_kept_and_each_note_is_told_once(do, tune, how):
    told = do("write", how=how, piece=tune)
    pieces = done(told)
    assert len(pieces) == 2
    heard = [note for each in told for note in each.get("notes", [])]
    for row, piece in enumerate(pieces):
        assert keys(piece, True) == keys(tune)
        its = sorted(note for r, *note in heard if r == row)
        assert its == sorted(note[:5] for note in piece["notes"] if not note[5]) != []
        assert len(piece["bars"]) == len(tune["bars"]) + (0 if how == "harmonize" else 2)


def notes_a_step(piece):
    over = sum(length for _, _, length in piece["bars"])
    ends = [onset + duration for onset, duration, *_ in piece["notes"]]
    return len(piece["notes"]) / max(over, *ends)


def test_variations_are_ranked_as_candidates_are(do, models, tune, monkeypatch):
    model = models.load("quartet")
    few = Extremes(bar_repetition=1.0, equal_bars=99, least_density=0.0, most_density=1e-9)
    critic = liking("pace: notes a second")
    for style in (model.style, Style(critic=critic), Style(critic=critic, extremes=few)):
        monkeypatch.setattr(models, "load", lambda _, style=style: replace(model, style=style))
        (*_, pieces, ranked) = do("write", how="continue", piece=tune, variations=4)
        assert ranked["has_critic"] == (style.critic is not None)
        assert ranked["beyond"] == [style.extremes is not None] * 4
        if style.critic:
            pace = [notes_a_step(pieces["done"][number]) for number in ranked["order"]]
            assert pace == sorted(pace, reverse=True)


def test_runs_that_training_pieces_have_are_told_where_these_lie_here(
    do, models, tune, monkeypatch
):
    def write():
        return do("write", how="continue", piece=tune, settings=SETTINGS | {"bars": 32})

    pieces = done(write())
    vocabulary = models.load("quartet").vocabulary
    scores = [piece_of({"piece": piece}).score for piece in pieces]
    encoded = [encode(score, vocabulary) for score in scores]
    train = Split.of_pieces(["songs/first.mid", "second.mid"], encoded, vocabulary)
    corpus = SimpleNamespace(vocabulary=vocabulary, split={"train": train}.get)
    monkeypatch.setattr(models, "corpus_at_hand", lambda model: corpus)
    told = write()
    assert done(told[:-1]) == pieces
    shared = told[-1]["shared"]
    assert [runs[0][1] for runs in shared] == ["first", "second"]
    for piece, runs in zip(pieces, shared, strict=True):
        voices = Counter(note[4] for note in piece["notes"] if not note[5])
        assert TOLD_RUN <= runs[0][0] <= max(voices.values())


def test_the_corpus_of_a_model_is_found_if_it_is_of_its_vocabulary(tmp_path):
    folder = write_tunes(tmp_path / "tunes", 20)
    corpus = open_corpus(folder, tmp_path / "datasets")
    models = Models(tmp_path / "none.safetensors", tmp_path)
    assert (
        models.corpus_at_hand(model_of(corpus.vocabulary, path="elsewhere/tunes")).name
        == corpus.name
    )
    assert models.corpus_at_hand(model_of(corpus.vocabulary, path="other")) is None
    assert models.corpus_at_hand(model_of(QUARTET, path="tunes")) is None
    (corpus.folder / "corpus.json").write_text("{")
    assert models.corpus_at_hand(model_of(corpus.vocabulary, path="tunes")) is None


def model_of(vocabulary, *, path):
    """What is asked of a model of these tokens, trained on this folder."""
    return SimpleNamespace(vocabulary=vocabulary, record=SimpleNamespace(data={"path": path}))


def test_the_chords_of_bars_hold_in_what_is_written(do, models, tune, tmp_path):
    names = ["C", "F C/E", "Dm", "G7"]
    settings = SETTINGS | {"bar_chords": names, "bars": 3}
    three = do("text", text="C4 E4 G4 C5 A4 F4 G4 E4 D4 F4 A4 D5")[0]["read"]
    for how in ("continue", "accompany", "harmonize", "rewrite"):
        whole = three if how == "rewrite" else tune
        told = done(do("write", how=how, piece=whole, bars=[1, 3], settings=settings))[0]
        path = tmp_path / "piece.mid"
        path.write_bytes(midi_bytes(piece_of({"piece": told}).score))
        first = {"continue": 1, "rewrite": 1}.get(how, 0)
        bars = [names[0:1], names[1].split(), names[2:3], names[3:4]][: len(told["bars"])]
        chords = [
            (name, 48 * bar + number * 48 // len(its), 48 * bar + (number + 1) * 48 // len(its))
            for bar, its in enumerate(bars)
            for number, name in enumerate(its)
            if bar >= first
        ]
        given = {(*key[1:2], key[0], key[2]) for key in keys(told, True)}
        assert what_is_broken(path, chords, given, 48 * first) == []
    later = SETTINGS | {"bar_chords": ["H", "C"]}
    for wrong, said in (
        (["C:3"], "3 quarter notes"),
        (["C|F"], "no bar line"),
        (["C#"], "cannot be played"),
    ):
        asked = later | {"bar_chords": wrong, "key": "C major"}
        with pytest.raises(ValueError, match=said):
            do("write", how="harmonize", piece=tune, settings=asked)


def test_the_same_number_writes_the_same(do, tune):
    first, again, other = (
        done(do("write", how="continue", piece=tune, random_seed=n)) for n in (1, 1, 2)
    )
    assert first == again != other


def test_a_model_on_another_grid_goes_on_too(do, tune):
    (piece, _) = done(do("write", how="continue", piece=tune, model="runs/piano"))
    assert piece["grid"] == "seconds"
    assert [note[2] for note in piece["notes"] if note[5]] == [60, 64, 67, 72]


def test_the_page_is_told_nothing_of_the_command_line(do, tune):
    (whole, _) = done(do("write", how="harmonize", piece=tune))
    told = do("write", how="harmonize", piece=whole)
    assert told[0]["changes"] == ["kept Violin; 3 other voices left out"]


def test_nothing_begins_from_nothing(do, tune):
    empty = tune | {"notes": []}
    assert done(do("write", how="continue", piece=empty))[0]["notes"]
    for how in ("harmonize", "rewrite"):
        with pytest.raises(MessageError, match="no notes"):
            do("write", how=how, piece=empty, bars=[0, 1])


def test_a_whole_band_is_joined_by_nobody_and_that_is_said(do, models, monkeypatch):
    bands = Ensemble(1, (40, 41)), Ensemble(2, (40, 41, 42, 43))
    style = Style(voices=4, ensembles=bands, registers=({40: (60,)},))
    model = replace(models.load("quartet"), style=style)
    monkeypatch.setattr(models, "load", lambda _: model)
    duo = do("text", text="C4 E4 G4 C5 / C3:4")[0]["read"]
    said = {how: do("write", how=how, piece=duo)[0]["changes"] for how in ("accompany", "continue")}
    assert said == {"accompany": ["going by the training pieces, nobody joins"], "continue": []}
    all_voices = do("text", text="C5 / G4 / E4 / C4")[0]["read"]
    told = do("write", how="accompany", piece=all_voices)[0]
    assert told["changes"] == ["every voice plays already, so none joined"]


def test_another_note_is_taken_and_what_follows_is_written_anew(do, tune):
    request = {"how": "harmonize", "piece": tune}
    piece = done(do("write", **request))[0]
    number = next(i for i, note in enumerate(piece["notes"]) if note[0] >= 12 and not note[5])
    note = piece["notes"][number]
    full = ASKED | request
    (why,) = do("explain", written=full, piece=piece, note=number)
    assert [note[4], note[2]] in [[program, pitch] for program, pitch, _ in why["alternatives"]]
    earlier = {key for key in keys(piece) if key[0] < note[0]}
    for pitch in (note[2] + 1, note[2] - 1):
        asked = {"note": number, "instead": [pitch, note[4]], "written": full}
        for other in done(do("write", how="instead", piece=piece, **asked)):
            assert (note[0], note[4], pitch) in keys(other)
            assert (note[0], note[4], note[2]) not in keys(other)
            assert {key for key in keys(other) if key[1] == 40} == keys(tune)  # kept by harmonizing
            assert {key for key in keys(other) if key[0] < note[0]} == earlier


def test_a_low_tune_goes_on_where_it_lies_and_is_explained_there(do, models, tune, monkeypatch):
    model, settings = models.load("quartet"), SETTINGS | {"bars": 4, "programs": [40]}
    ranged = replace(model, style=Style(ranges={40: (72, 80)}, pitches={40: (72, 74, 76)}))
    monkeypatch.setattr(models, "load", lambda _: ranged)
    request = {"how": "continue", "piece": tune, "settings": settings}
    (begun, *turns), full = do("write", **request), ASKED | request
    (piece, *_) = done(turns)
    assert keys(begun["begun"]) == keys(tune)
    new = {key for key in keys(piece, False) if key[1] == 40}
    assert {pitch for _, _, pitch in new} == {60, 62, 64}
    heard = [note for told in turns for row, *note in told.get("notes", []) if row == 0]
    assert new == {(n[0], n[4], n[2]) for n in heard if n[4] == 40}
    number = next(i for i, note in enumerate(piece["notes"]) if note[4] == 40 and not note[5])
    (why,) = do("explain", written=full, piece=piece, note=number)
    shares = {(program, pitch): share for program, pitch, share in why["alternatives"]}
    assert shares[40, piece["notes"][number][2]] > 0
    settings["counterpoint"] = "strict"
    strict = do("write", **request)[0]
    assert strict["changes"][0].startswith("most notes of Violin lie beyond C5 to G#5")


def test_another_note_leaves_bars_alone_that_were_not_rewritten(do, tune):
    whole = done(do("write", how="accompany", piece=tune))[0]
    request = {"how": "rewrite", "piece": whole, "bars": [1, 2]}
    piece = done(do("write", **request))[0]
    number = next(i for i, note in enumerate(piece["notes"]) if 48 <= note[0] < 96)
    (onset, _, pitch, _, program, _) = piece["notes"][number]
    full = ASKED | request
    asked = {"note": number, "instead": [pitch - 1, program], "written": full}
    for other in done(do("write", how="instead", piece=piece, **asked)):
        kept = {key for key in keys(piece) if not onset <= key[0] < 96}
        assert {key for key in keys(other) if not onset <= key[0] < 96} == kept
        assert (onset, program, pitch - 1) in keys(other)
        assert (onset, program, pitch) not in keys(other)


def test_the_tempo_asked_for_holds_from_the_first_note_on(do, tune):
    settings = SETTINGS | {"tempo": 130}
    told = do("write", how="harmonize", piece=tune, settings=settings)
    piece = done(told)[0]
    assert told[0]["begun"]["tempo"] == piece["tempo"] == [[130]]
    number = next(n for n, note in enumerate(piece["notes"]) if not note[5])
    written = ASKED | {"how": "harmonize", "piece": tune, "settings": settings}
    assert do("explain", written=written, piece=piece, note=number)[0]["explained"] == number


def test_on_a_finer_grid_a_note_is_taken_where_it_stands(do, tune):
    notes = [[8 * onset, 8 * duration, *rest] for onset, duration, *rest in tune["notes"]]
    finer = tune | {"notes": notes, "bars": [[4, 4, 384]], "steps": 96}
    request = {"how": "instead", "note": 2, "instead": [65, 40], "written": None}
    for piece in (finer, tune):
        taken = done(do("write", piece=piece, **request))[0]
        assert {(0, 40, 60), (12, 40, 64), (24, 40, 65), (36, 40, 72)} <= keys(taken)


def test_what_a_piece_was_not_written_from_explains_no_note(do, tune):
    piece = done(do("write", how="continue", piece=tune))[0]
    other = do("text", text="E4 E4 E4 E4")[0]["read"]
    last = len(piece["notes"]) - 1
    for given, note in ((other, last), (piece, last), (tune, 0)):
        written = ASKED | {"how": "continue", "piece": given}
        with pytest.raises(ConstraintError, match="not written from"):
            do("explain", written=written, piece=piece, note=note)


def test_a_long_piece_is_read_within_a_turn(models):
    notes = [[3 * (n // 4), 3, 60 - 5 * (n % 4), 80, 40 + n % 4, 1] for n in range(MOST_NOTES)]
    bars = 3 * MOST_NOTES // 4 // 48
    tune = {"notes": notes, "bars": [[4, 4, 48]] * bars, "tempo": [[80]] * bars, "grid": "beats"}
    score = piece_of({"piece": tune | {"steps": 12}}).score
    _, grammar = Request(continued(score, QUARTET)).to(models.load("quartet"))
    assert len(grammar.given.prompt) > 2 * MOST_NOTES
    grammar.start(1)  # compiled
    begin = time.thread_time()
    grammar.start(1)
    assert time.thread_time() - begin < 3 * SLICE_SECONDS


def test_how_unlikely_the_notes_of_a_long_piece_are_is_told_in_turns(do, models, tune):
    (short,) = do("surprise", piece=tune)
    notes = [[48 * bar, 12, 60 + bar % 5, 80, 40, 1] for bar in range(100)]
    bars = {"bars": [[4, 4, 48]] * 100, "tempo": [[80]] * 100}
    message = {"model": "quartet", "piece": tune | {"notes": notes} | bars}
    *turns, told = TASKS["surprise"](models, message)
    assert turns == [{}] * 4
    assert [len(each["surprise"]) for each in (short, told)] == [4, 100]
    message["piece"] |= {"notes": notes[:32], "bars": [[4, 4, 48]] * 32, "tempo": [[80]] * 32}
    assert [*TASKS["surprise"](models, message)][-1]["surprise"][:31] == told["surprise"][:31]


def test_a_note_that_was_put_in_is_explained_too(do, tune):
    (why,) = do("explain", written=None, piece=tune, note=2)
    assert [40, 67] in [[program, pitch] for program, pitch, _ in why["alternatives"]]


def test_what_cannot_be_is_said_beside_its_control(do, models, tune):
    assert do("check", how="continue", piece=tune) == [{"possible": True}]
    message = {"model": "quartet", "how": "continue", "piece": tune, "variations": 1}
    for asked, control in (
        ({"tempo": 9, "key": "D minor"}, "tempo"),
        ({"meter": [7, 8], "key": "D minor"}, "meter"),
        ({"programs": [3]}, "programs"),
        ({"range": [1, 2]}, "range"),
        ({"range": [72, 48]}, "range"),
        ({"programs": []}, "programs"),
        ({"key": "C major", "range": [61, 61]}, "key"),
        ({"bar_chords": ["Am:5"]}, "bar_chords"),
    ):
        settings = SETTINGS | asked
        with pytest.raises(ConstraintError) as refused:
            do("check", how="continue", piece=tune, settings=settings)
        asked = message | {"settings": settings, "random_seed": 0}
        *_, told = blame(models, asked, refused.value)
        assert told == {"error": str(refused.value), "control": control}


def test_a_run_in_training_is_played_with_its_newest_weights(tmp_path):
    path = tmp_path / "runs/mine/model.safetensors"
    path.parent.mkdir(parents=True)
    models = Models(untrained(path, QUARTET, 1, record=TrainingRecord(step=100)), tmp_path)

    def written():
        piece = {"notes": [], "bars": [[4, 4, 48]], "tempo": [[80]], "grid": "beats", "steps": 12}
        message = {"model": "runs/mine", "how": "continue", "piece": piece, "settings": SETTINGS}
        told = [*TASKS["write"](models, message | {"variations": 1, "random_seed": 1})]
        return told[0]["trained"], done(told)

    first = written()
    assert written() == first
    assert models.load("runs/mine") is models.load("runs/mine")
    untrained(path, QUARTET, 2, record=TrainingRecord(step=200))
    second = written()
    assert (first[0], second[0]) == (100, 200)
    assert second[1] != first[1]


def test_no_page_is_told_where_the_server_keeps_its_files(folder, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(folder, home)
    models = Models(home / "models/quartet.safetensors", home)
    (home / "runs/broken").mkdir()
    (home / "runs/broken/model.safetensors").write_bytes(b"no model")
    (home / "runs/ids").mkdir()
    ids = QUARTET.to_json().replace("{", '{"ids": 9, ', 1)
    content = load_model_file(home / "models/quartet.safetensors")
    save_model_file(home / "runs/ids/model.safetensors", replace(content, vocabulary_json=ids))
    for name, reason in (("runs/broken", "damaged"), ("runs/ids", "not a vocabulary of music")):
        with pytest.raises(ModelFileError, match=f"^{name}[ :].*{reason}") as refused:
            models.load(name)
        assert str(tmp_path) not in str(refused.value)


def test_a_model_from_elsewhere_is_named_by_its_folder(folder, tmp_path):
    path = untrained(tmp_path / "model.safetensors", QUARTET)
    models = Models(path, folder)
    name = f"{tmp_path.name}/model.safetensors"
    assert [*models.paths()] == [name, "quartet", "runs/piano"]
    assert models.load(name).vocabulary == QUARTET


def test_tasks_take_turns():
    told = iter([{}, {}, {"a": 1}, {"b": 2}])
    assert advance(told, 0.0) == []
    assert advance(told, 60.0) == [{"a": 1}]
    assert advance(told, 60.0) == [{"b": 2}]
    assert advance(told, 60.0) is None


def test_a_piece_of_the_page_is_canonical(tune):
    notes = [*tune["notes"], tune["notes"][0]]
    piece = piece_of({"piece": tune | {"notes": notes}})
    assert len(piece.score.notes) == 4
    assert np.all(piece.is_own)


def test_an_answer_begins_with_a_beat_and_the_last_note_is_held_until_then(do, tune):
    told = do("write", how="continue", piece=tune, opens=72)
    begun = next(each for each in told if "begun" in each)
    assert begun["opens"] == 72
    assert begun["begun"]["notes"][-1][:2] == [36, 36]
    (done,) = [each["done"] for each in told if "done" in each]
    for piece in done:
        assert min(onset for onset, *_, is_given in piece["notes"] if not is_given) >= 72
    late = do("write", how="continue", piece=tune, opens=240)  # more bars later than it writes
    (done,) = [each["done"] for each in late if "done" in each]
    assert all(len(piece["bars"]) == 5 + SETTINGS["bars"] for piece in done)
    for opens in (-1, 1.5, "72", 2**20):
        with pytest.raises(MessageError, match="opens"):
            do("write", how="continue", piece=tune, opens=opens)
