"""The page of a model that knows nothing: whole, by itself, and of the same figures as the JSON."""

import base64
import io
import json
import math
import re
import struct
from contextlib import chdir
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import evaluate
from data.corpus.corpus import Corpus, CorpusError
from data.files.read import read_score
from data.midi.io import write_midi
from evaluation import tables
from evaluation.html_report import MAX_SECONDS, TEMPLATES, write_report
from evaluation.summary import summarize_model
from generation.model import corpus_of, load
from tests.folders import tune, write_tunes
from tests.models import untrained_on
from tests.music import GRID

HOSTILE = "<img src=x onerror=\"alert('1')\">&\u202e.mid"
COMMAND = ["all", "-c", "m.safetensors", "--count", "4"]


class Reader(HTMLParser):
    """Reads a page; fails where a tag is not closed in its place.

    Attributes:
        elements: (name, attributes, text directly in it), in order of beginning.
    """

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.elements.append([tag, dict(attrs), ""])
        if tag not in ("br", "img", "meta"):
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        if self._open:
            self._open[-1][2] += data

    def all(self, tag):
        return [attributes for name, attributes, _ in self.elements if name == tag]

    def texts(self, *tags):
        return [text.strip() for name, _, text in self.elements if name in tags]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The command was run there; gives the folder, the page and the figures."""
    folder = tmp_path_factory.mktemp("judged")
    with chdir(folder):
        write_tunes(folder / "tunes", 12)
        for file in (folder / "tunes").iterdir():
            file.rename(file.with_name(f"<b>{file.name}"))
        untrained_on(Path("tunes"), folder / "m.safetensors")
        write_midi(tune(100), HOSTILE)
        write_midi(tune(101, bars=60), "long.mid")
        Path("more").mkdir()
        (Path("more") / "broken.mid").write_bytes(b"<i>MThd")
        write_tunes(Path("more"), 4, first=50)
        files = [HOSTILE, "long.mid", "more"]
        evaluate.main([*COMMAND, *files, "--html", "out/a.html", "--json", "out/a.json"])
    page = Reader((folder / "out" / "a.html").read_text(encoding="utf-8"))
    return folder, page, json.loads((folder / "out" / "a.json").read_text())


@pytest.fixture
def model(judged, monkeypatch):
    monkeypatch.chdir(judged[0])
    return load("m.safetensors")


def content(source, kind):
    head, _, data = source.partition(",")
    assert head == f"data:{kind};base64"
    return base64.b64decode(data, validate=True)


def test_the_page_answers_first_and_shows_the_best_piece_first(judged):
    _, page, figures = judged
    (answer,) = (text for name, _, text in page.elements if "too few pieces to be sure" in text)
    assert not re.search("[0-9]", answer)  # in words
    ranks = ("the likeliest", "the one in the middle", "the least likely")
    titles = page.texts("h3")
    assert titles[:3] == [f"Written from nothing: {which} of 4" for which in ranks]
    assert len(titles) == 3 + 4 + 1
    nats = sorted(file["nats_per_note"] for file in figures["written"]["files"])
    told = [text for text in page.texts("p") if "nats per note" in text and "bars," in text]
    for text, value in zip(told[:3], (nats[0], *nats[2:]), strict=True):
        assert f"{value:.3f} nats per note" in text
    (typed,) = page.texts("code")
    assert typed.startswith("python evaluate.py all -c m.safetensors --count 4 ")


def test_nothing_is_fetched_and_nothing_runs_but_the_player(judged):
    _, page, _ = judged
    names = {name for name, _, _ in page.elements}
    assert not names & {"link", "iframe", "object", "embed", "base", "form"}
    script = (TEMPLATES / "player.js").read_text(encoding="utf-8")
    assert [text for name, _, text in page.elements if name == "script"] == [script]
    assert not re.search(r"fetch|XMLHttp|import|eval|innerHTML|https?:", script)
    assert not re.search(r"url\(|@import|@font-face|https?:|[&<]", *page.texts("style"))
    for _, attributes, _ in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("src", "href", "srcset", "poster", "data", "action"):
            value = attributes.get(name, "#")
            assert value.startswith("#") or urlparse(value).scheme == "data"


def test_every_piece_can_be_seen_heard_followed_and_taken_away(judged):
    folder, page, _ = judged
    players = page.all("article")
    pictures = {
        kind: [it for it in page.all("img") if it["class"] == kind] for kind in ("roll", "score")
    }
    for each in pictures["score"]:
        ElementTree.fromstring(content(each["src"], "image/svg+xml"))
    for each in pictures["roll"]:
        assert Image.open(io.BytesIO(content(each["src"], "image/png"))).size > (500, 100)
    seconds = []
    for attributes in page.all("audio"):
        file = content(attributes["src"], "audio/wav")
        law, channels, rate = struct.unpack_from("<HHI", file, 20)
        assert (file[:4], file[8:12], law, channels) == (b"RIFF", b"WAVE", 7, 1)
        samples = np.frombuffer(file[58:], np.uint8)
        assert len(np.unique(samples)) > 50  # there is something to hear
        seconds.append(len(samples) / rate)
    files = [each for each in page.all("a") if "download" in each]
    for each in (players, files, seconds, *pictures.values()):
        assert len(each) == 3 + 4 + 1  # written, given, real
    at = next(n for n, file in enumerate(files) if file["download"] == "long.mid")
    (folder / "taken.mid").write_bytes(content(files[at]["href"], "audio/midi"))
    long = read_score(folder / "long.mid", GRID)[0]
    assert read_score(folder / "taken.mid", GRID)[0] == long
    most = MAX_SECONDS / len(seconds)
    assert most - 3 < seconds[at] < most + 3 < float(long.step_seconds(long.end_step))
    systems = json.loads(players[at]["data-systems"])
    times = [moment for system in systems for _, moment in system["times"]]
    assert len(systems) > 1
    assert (times[0], times) == (0, sorted(times))
    assert times[-1] >= float(long.step_seconds(long.bar_starts[-1])) - 0.01


def test_what_files_are_called_is_text(judged):
    _, page, _ = judged
    titles, told = page.texts("h3"), page.texts("p")
    assert HOSTILE.replace("\u202e", r"\u202e") in titles
    assert not page.all("b")
    assert not page.all("i")
    assert "<b>tune" in titles[-1]
    assert any("more/broken.mid: left out: not a MIDI file" in text for text in told)
    assert "2 more files are not shown" in told


def test_figures_are_those_of_the_json_file_and_nan_where_undefined(judged):
    _, page, figures = judged
    cells = page.texts("td", "th")

    def assert_shown(name, *values):
        begin = cells.index(name) + 1
        shown = re.findall(
            "NaN|-?[0-9.]+", " ".join(cells[begin : begin + 4]).replace("\u2212", "-")
        )
        for text, value in zip(shown, values, strict=False):
            exact = math.nan if value is None else value
            within = 0.51 * 10 ** -len(text.partition(".")[2])
            assert float(text) == pytest.approx(exact, abs=within, nan_ok=True)

    nats = figures["likelihood"][0]["nats_per_note"]["5-gram"]  # of one piece: no interval
    assert_shown("5-gram", nats["value"], nats["low"])
    for row in figures["music"]["rows"][:20]:
        shown = [row[which][key] for which in ("generated", "held_out") for key in ("mean", "sd")]
        assert_shown(row["name"], *shown, row["area"])
    held_out = figures["originality"]["held_out"]["line"]
    shares = [100 * share if share is not None else None for share in held_out["shares"].values()]
    assert_shown(f"held out, {len(held_out['longest'])}: the line", *shares)


def test_the_same_figures_give_the_same_bytes_and_one_piece_is_the_likeliest_of_none(
    model, monkeypatch
):
    corpus = corpus_of(model, None, "datasets")
    summary, examples = summarize_model(model, corpus, None, 1, 5, {})
    for name in ("b.html", "c.html"):
        write_report(summary, examples, "m.safetensors", "command", name)
    assert Path("b.html").read_bytes() == Path("c.html").read_bytes()
    page = Reader(Path("b.html").read_text(encoding="utf-8"))
    assert page.texts("h3")[0] == "Written from nothing"
    assert len(page.texts("h3")) == 2
    assert "silent" not in Path("b.html").read_text(encoding="utf-8")
    monkeypatch.setattr("evaluation.html_report.has_sound", lambda: False)
    write_report(summary, examples, "m.safetensors", "command", "c.html")
    assert "The players are silent" in Path("c.html").read_text(encoding="utf-8")
    for own, real, is_copied in ((0.9, 0.1, True), (0.1, 0.9, False)):
        found = summary.originality
        all_runs, held_out = (
            replace(runs, line=replace(runs.line, shares={8: share}))
            for runs, share in ((found.all, own), (found.held_out, real))
        )
        judged_so = replace(summary, originality=replace(found, all=all_runs, held_out=held_out))
        assert ("it copies" in tables.verdict(judged_so)) == is_copied


def test_without_held_out_pieces_there_is_no_measure(model, monkeypatch):
    corpus = corpus_of(model, None, "datasets")
    monkeypatch.setattr(Corpus, "split", lambda corpus, name: ())
    with pytest.raises(CorpusError, match="no pieces are held out, so nothing to compare with"):
        summarize_model(model, corpus, None, 1, 0, {})
