"""Builds that are disturbed: killed, out of room, two at once; and how the work is shared."""

import errno
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from common import files, worker_pool
from data.corpus import build as build_module
from data.corpus import store
from data.corpus.build import random_splits
from data.corpus.corpus import Corpus, CorpusError, open_corpus
from data.corpus.survey import Survey, translation
from data.score import SECONDS
from data.tokens.tokenizer import encode
from tests.folders import write_tunes
from tests.music import GRID, PARTS, scores, vocabulary_for
from tests.runs import python

# Both scripts fork, for a process that has all imported is quicker than one that begins.
KILLED = """
import os, random, shutil, signal, sys, threading
from pathlib import Path
from data.corpus import build, corpus, store
from data.files.read import read_score
from data.score import Grid
from common import files, worker_pool

counting = threading.Lock()  # files are synced by threads

def mortal(owner, name):
    function = getattr(owner, name)
    def dies(*arguments, **options):
        step()
        return function(*arguments, **options)
    setattr(owner, name, dies)

def step():
    global left
    with counting:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

build.CHUNK_TOKENS = 300
source, out = sys.argv[1:]
corpus.open_corpus(source, f"{out} before", workers=1)  # compiles once for all
read_score(next(Path(source).iterdir()), Grid())  # and is loaded, else each child would load it
os.fsync = lambda descriptor: None  # what is killed here is no machine
for owner, name in [
    (store, "_write_header"), (Path, "write_bytes"), (Path, "write_text"),
    (os, "fsync"), (Path, "replace"), (Path, "mkdir"), (shutil, "rmtree"),
]:
    mortal(owner, name)

def build_and_die(at):
    # in a child that is killed at a step; never, where that is not reached
    global left
    child = os.fork()
    if not child:
        left = at
        corpus.open_corpus(source, out, workers=1)
        step()
        Path(out, "steps").write_text(str(at - left))
        os._exit(0)
    return os.waitpid(child, 0)[1]

def clean():
    for path in Path(out).glob("[!.]*"):
        if path.is_dir():  # killed after all was done
            corpus.Corpus.open(path)
            assert (path / "report.txt").is_file()
            shutil.rmtree(path)

left = 0
os.mkdir(out)
build_and_die(10_000)
steps = int(Path(out, "steps").read_text())
places = random.Random(0).sample(range(1, steps), 24)
for at in [*places, steps]:
    clean()
    assert os.WTERMSIG(build_and_die(at)) == signal.SIGKILL
clean()
assert build_and_die(10_000) == 0
print(steps)
"""


@pytest.fixture
def folder(tmp_path):
    return write_tunes(tmp_path / "tunes", 6)


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_killed_anywhere_the_next_build_is_that_of_an_undisturbed_run(folder, tmp_path):
    steps, errors, code = python(KILLED, folder, tmp_path / "out")
    assert code == 0, errors
    assert int(steps) > 50
    (tmp_path / "out" / "steps").unlink()
    (after,) = (tmp_path / "out").iterdir()  # what the killed ones left is gone
    undisturbed = open_corpus(folder, tmp_path / "elsewhere")
    assert content(after) == content(undisturbed.folder)


def test_what_living_processes_and_other_machines_are_writing_is_left_alone(folder, tmp_path):
    out = tmp_path / "out"
    parent = f".tunes.{os.uname().nodename}-{os.getppid()}{files.UNFINISHED}"
    elsewhere = f".tunes.another-machine-1{files.UNFINISHED}"
    for name in (parent, elsewhere, ".cache"):
        (out / name).mkdir(parents=True)
    open_corpus(folder, out)
    assert {path.name for path in out.glob(".*")} == {parent, elsewhere, ".cache"}


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    folder = write_tunes(tmp_path / "tunes", 3)

    def fills_up(owner, name):
        function = getattr(owner, name)

        def write(*arguments, **options):
            nonlocal room
            room -= 1
            if room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, write)

    places = [(store, "_write_header"), (Path, "write_bytes"), (os, "fsync")]
    for owner, name in [*places, (Path, "write_text"), (Path, "mkdir"), (Path, "replace")]:
        fills_up(owner, name)
    room = 1
    (tmp_path / "out").mkdir()
    for times in range(10_000):
        room = times
        try:
            corpus = open_corpus(folder, tmp_path / "out", workers=1)
            break
        except CorpusError as error:
            told = str(error)
        assert told.endswith("the corpus cannot be written (No space left on device)")
        assert "\n" not in told
        assert list((tmp_path / "out").iterdir()) == []
    assert times > 30
    assert Corpus.open(corpus.folder) == corpus


@pytest.mark.parametrize("chunk", [1, 5])
def test_workers_and_chunks_change_nothing(folder, tmp_path, monkeypatch, chunk):
    one = open_corpus(folder, tmp_path / "one", workers=1)
    monkeypatch.setattr(build_module, "CHUNK_TOKENS", 100 * chunk)
    monkeypatch.setattr(worker_pool, "MOST_ITEMS", chunk)
    three = open_corpus(folder, tmp_path / "three", workers=3)
    assert content(one.folder) == content(three.folder)


@given(scores(GRID, SECONDS, PARTS))
def test_ids_of_the_widest_vocabulary_become_those_of_any_that_holds_the_piece(score):
    wide, vocabulary = Survey(score.grid).wide, vocabulary_for(score, transpose=3)
    ids = translation(wide, vocabulary)[encode(score, wide)]
    assert np.array_equal(ids[ids >= 0], encode(score, vocabulary))


def test_pieces_with_one_fingerprint_go_to_one_split():
    rng = np.random.default_rng(0)
    for count in range(2, 40):
        marks = [bytes([mark]) * 16 for mark in rng.integers(0, max(2, count // 2), size=count)]
        members = random_splits(marks, [1] * count)
        if len(set(marks)) == 1:
            assert members == {}
            continue
        assert sorted(itertools.chain(*members.values())) == list(range(count))
        assert members["train"]
        assert members["valid"]
        assert bool(members["test"]) == (len(set(marks)) > 2)
        of_split = [{marks[number] for number in numbers} for numbers in members.values()]
        assert sum(map(len, of_split)) == len(set(marks))


def test_a_split_whose_pieces_are_short_gets_more_of_them():
    """A drummer has fills of a bar and whole songs: four fills are no tenth of what he plays."""
    rng, more = np.random.default_rng(0), 0
    for count in range(12, 60):
        marks, tokens = [rng.bytes(16) for _ in range(count)], rng.choice((10, 200), size=count)
        members, alike = random_splits(marks, tokens), random_splits(marks, [1] * count)
        share = 0.1 * tokens.sum()
        for name in ("valid", "test"):
            held_out, own = len(alike[name]), tokens[members[name]]
            assert held_out <= len(own) <= 2 * held_out
            has_enough = own.sum() >= share / 2
            assert has_enough or len(own) == 2 * held_out or share < 200  # no long piece fits
            if len(own) > held_out:
                assert own[:-1].sum() < share / 2
                more += has_enough
        assert members["valid"][: len(alike["valid"])] == alike["valid"]
    assert more > 10


def test_long_works_are_learned_from():
    """A pianist plays each of four works three times: she does not want half of it held out."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        marks = [rng.bytes(16) for _ in range(4)]
        tokens = rng.integers(1, 10, size=4)
        members = random_splits(marks * 3, [*tokens] * 3)
        music = {name: sum(tokens[n % 4] for n in numbers) for name, numbers in members.items()}
        assert music["train"] >= sum(music.values()) / 2
