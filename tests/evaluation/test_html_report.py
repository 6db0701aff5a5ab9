"""The page of a model that knows nothing: whole, by itself, and of the same figures as the JSON."""

import base64
import io
import json
import math
import os
import re
import struct
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
from data.harmony import chords_of
from data.midi.io import write_midi
from evaluation import tables
from evaluation.html_report import MAX_SECONDS, TEMPLATES, write_report
from evaluation.summary import summarize_model
from generation.model import corpus_of, load
from rendering.piano_roll import draw_piano_roll
from rendering.png import write_png
from tests.folders import tune, write_tunes
from tests.models import untrained_on
from tests.music import GRID

HOSTILE = "<img src=x onerror=\"alert('1')\">&\u202e.mid"


class Reader(HTMLParser):
    """Reads a page; fails where a tag is not closed in its place.

    Attributes:
        elements: (name, attributes, text directly in it), in order of beginning.
    """

    VOID = ("br", "img", "meta")

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.elements.append([tag, dict(attrs), ""])
        if tag not in self.VOID:
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        if self._open:
            self._open[-1][2] += data

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]

    def texts(self, tag):
        return [text.strip() for _, text in self.all(tag)]

    def rows(self, caption):
        """The texts of the cells of a table, row by row: of its head, then of its body."""
        rows, is_here = [], False
        for name, _, text in self.elements:
            if name == "span" and text.startswith(caption):
                is_here = True
            elif name == "table":
                is_here = False
            elif name == "tr" and is_here:
                rows.append([])
            elif name in ("td", "th") and is_here:
                rows[-1].append(text.strip())
        return rows


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The command was run there; gives the folder, the page and the figures."""
    folder = tmp_path_factory.mktemp("judged")
    before = Path.cwd()
    os.chdir(folder)
    try:
        write_tunes(folder / "tunes", 12)
        for file in (folder / "tunes").iterdir():
            file.rename(file.with_name(f"<b>{file.name}"))
        untrained_on(Path("tunes"), folder / "m.safetensors")
        write_midi(tune(100), HOSTILE)
        write_midi(tune(101, bars=60), "long.mid")
        write_png(
            draw_piano_roll(tune(100), chords=chords_of(tune(100))).svg,
            Path(HOSTILE).with_suffix(".png"),
        )
        Path("long.png").write_bytes(b"no picture")
        Path("more").mkdir()
        (Path("more") / "broken.mid").write_bytes(b"<i>MThd")
        write_tunes(Path("more"), 4, first=50)
        files = [HOSTILE, "long.mid", "more"]
        evaluate.main(command(*files, "--html", "out/a.html", "--json", "out/a.json"))
    finally:
        os.chdir(before)
    page = Reader((folder / "out" / "a.html").read_text(encoding="utf-8"))
    return folder, page, json.loads((folder / "out" / "a.json").read_text())


def command(*more):
    return ["all", "-c", "m.safetensors", "--count", "4", *more]


def content(source, kind):
    head, _, data = source.partition(",")
    assert head == f"data:{kind};base64"
    return base64.b64decode(data, validate=True)


def number(text):
    return float(text.strip().replace("\N{MINUS SIGN}", "-"))


def agrees(cell, value):
    """Whether a cell shows a figure of the JSON file, as far as its digits go."""
    if value is None:
        return math.isnan(number(cell))
    return number(cell) == pytest.approx(value, abs=0.51 * 10 ** -len(cell.partition(".")[2]))


def test_the_page_answers_first_shows_the_best_piece_and_has_every_chapter(judged):
    _, page, figures = judged
    texts = [(name, text.strip()) for name, _, text in page.elements if text.strip()]
    begin = texts.index(("strong", "Is this good?"))
    answer, title = texts[begin - 1][1], texts[begin + 1][1]
    assert "too few pieces to be sure" in answer  # four
    assert not re.search("[0-9]", answer)
    nats = sorted(file["nats_per_note"] for file in figures["written"]["files"])
    titles = page.texts("h3")
    assert title == titles[0]
    ranks = ("the likeliest", "the one in the middle", "the least likely")
    assert [titles[0], *titles[5:7]] == [f"Written from nothing: {which} of 4" for which in ranks]
    told = [text for text in page.texts("p") if "nats per note" in text and "bars," in text]
    for text, value in zip(told[4:6], nats[2:], strict=True):
        assert f"{value:.3f} nats per note" in text
    ids = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    links = [attributes["href"] for attributes, _ in page.all("a") if attributes["href"][0] == "#"]
    assert len(page.texts("h2")) == 5
    assert links == [f"#{name}" for name in ids]
    (typed,) = page.texts("code")
    assert typed.startswith("python evaluate.py all -c m.safetensors --count 4 ")


def test_nothing_is_fetched_and_nothing_runs_but_the_player(judged):
    _, page, _ = judged
    names = {name for name, _, _ in page.elements}
    assert not names & {"link", "iframe", "object", "embed", "base", "form"}
    script = (TEMPLATES / "player.js").read_text(encoding="utf-8")
    assert page.all("script") == [({}, script)]
    assert not re.search(r"fetch|XMLHttp|import|eval|innerHTML|https?:", script)
    assert not re.search(r"url\(|@import|@font-face|https?:|[&<]", *page.texts("style"))
    for _, attributes, _ in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("src", "href", "srcset", "poster", "data", "action"):
            value = attributes.get(name, "#")
            assert value.startswith("#") or urlparse(value).scheme == "data"


def test_pictures_are_pictures_and_one_beside_a_file_is_taken(judged):
    folder, page, _ = judged
    pictures = {"roll": [], "score": []}
    for attributes, _ in page.all("img"):
        assert len(attributes["alt"]) > 20
        pictures[attributes["class"]].append(attributes["src"])
    assert len(pictures["score"]) == 4 + 3 + 1
    for source in pictures["score"]:
        ElementTree.fromstring(content(source, "image/svg+xml"))
    rolls = [content(source, "image/png") for source in pictures["roll"]]
    assert len(rolls) == 4 + 3 + 1  # given, written, real
    assert all(Image.open(io.BytesIO(roll)).size > (500, 100) for roll in rolls)
    assert rolls[1] == (folder / HOSTILE).with_suffix(".png").read_bytes()
    captions = [text for text in page.texts("figcaption") if not text.startswith("Engraved")]
    assert captions[1].endswith("were given to the model. Click in it to hear it from there.")
    assert captions[2].startswith("Pitch over time")


def test_every_piece_can_be_heard_followed_and_taken_away(judged):
    folder, page, _ = judged
    seconds = []
    for attributes, _ in page.all("audio"):
        file = content(attributes["src"], "audio/wav")
        law, channels, rate = struct.unpack_from("<HHI", file, 20)
        assert (file[:4], file[8:12], law, channels) == (b"RIFF", b"WAVE", 7, 1)
        samples = np.frombuffer(file[58:], np.uint8)
        assert len(np.unique(samples)) > 50  # there is something to hear
        seconds.append(len(samples) / rate)
    files = [each for each, _ in page.all("a") if "download" in each]
    assert len(seconds) == len(files) == 4 + 3 + 1
    long, short = (read_score(folder / name, GRID)[0] for name in ("long.mid", HOSTILE))
    most = MAX_SECONDS / len(seconds)
    assert most - 3 < seconds[2] < most + 3 < float(long.step_seconds(long.end_step))
    assert seconds[1] == pytest.approx(float(short.step_seconds(short.end_step)) + 1.5, abs=0.5)
    (folder / "taken.mid").write_bytes(content(files[2]["href"], "audio/midi"))
    assert read_score(folder / "taken.mid", GRID)[0] == long
    assert files[2]["download"] == "long.mid"
    players = [each for each, _ in page.all("article")]
    systems = json.loads(players[2]["data-systems"])
    times = [tuple(point) for system in systems for point in system["times"]]
    assert len(systems) > 1
    assert times[0][1] == 0
    assert times[-1][1] >= float(long.step_seconds(long.bar_starts[-1])) - 0.01
    edges = [edge for system in systems for edge in (system["top"], system["bottom"])]
    for rising in ([moment for _, moment in times], [0.001, *edges, 0.999]):
        assert rising == sorted(rising)


def test_what_files_are_called_is_text(judged):
    _, page, figures = judged
    assert HOSTILE.replace("\u202e", r"\u202e") in page.texts("h3")
    assert not page.all("b")
    assert not page.all("i")
    names = [file["name"] for file in figures["likelihood"][-1]["files"]]
    assert any(name.startswith("<b>tune") and name in page.texts("h3")[-1] for name in names)
    told = page.texts("p")
    assert any("more/broken.mid: left out: not a MIDI file" in text for text in told)
    assert "And 2 more files, not shown." in told


def test_figures_are_those_of_the_json_file_and_nan_where_undefined(judged):
    _, page, figures = judged
    sets, rows = figures["likelihood"], figures["music"]["rows"]
    for who, *cells in page.rows("Nats per note of whole pieces")[1:]:
        for its, value, interval in zip(sets, cells[::2], cells[1::2], strict=True):
            figure = its["nats_per_note"][who]
            shown = zip([value, *interval.strip("[]").split(" to ")], figure.values(), strict=False)
            assert all(agrees(cell, value) for cell, value in shown)  # of one piece no interval
    for row, cells in zip(rows, page.rows("What tells most")[1:], strict=False):
        shown = [row[which][key] for which in ("generated", "held_out") for key in ("mean", "sd")]
        texts = re.split("[\N{PLUS-MINUS SIGN} ]+", " ".join(cells[1:]))
        assert cells[0] == row["name"]
        assert all(agrees(cell, v) for cell, v in zip(texts, [*shown, row["area"]], strict=True))
    held_out = figures["originality"]["held_out"]["line"]
    row = page.rows("Share of the runs")[3]
    assert row[1] == f"{held_out['shares']['4']:.1%}"
    assert number(row[5]) == max(held_out["longest"])
    assert number(row[4]) == sorted(held_out["longest"])[len(held_out["longest"]) // 2]


def test_the_same_figures_give_the_same_bytes_and_one_piece_is_the_likeliest_of_none(
    judged, monkeypatch
):
    folder, _, _ = judged
    monkeypatch.chdir(folder)
    model = load("m.safetensors")
    corpus = corpus_of(model, None, "datasets")
    summary, examples = summarize_model(model, corpus, None, 1, 5)
    for name in ("b.html", "c.html"):
        write_report(summary, examples, "m.safetensors", "command", name)
    assert Path("b.html").read_bytes() == Path("c.html").read_bytes()
    page = Reader(Path("b.html").read_text(encoding="utf-8"))
    titles = [text for _, text in page.all("h3")]
    assert titles[0] == "Written from nothing"
    assert len(titles) == 2
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


def test_without_held_out_pieces_there_is_no_measure(judged, monkeypatch):
    folder, _, _ = judged
    monkeypatch.chdir(folder)
    model = load("m.safetensors")
    corpus = corpus_of(model, None, "datasets")
    monkeypatch.setattr(Corpus, "split", lambda corpus, name: ())
    with pytest.raises(CorpusError, match="no pieces are held out, so there is no measure"):
        summarize_model(model, corpus, None, 1, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--html", "a.txt"], "the name of a .html file is needed, not 'a.txt'"),
        (["--html", "m.safetensors/a.html"], "m.safetensors/a.html: cannot be written ("),
        (["--html", "d.html", "--json", "m.safetensors/a.json"], "a.json: cannot be written ("),
        (["--path", "nowhere", "--html", "d.html"], "nowhere"),
        (["more/broken.mid", "--html", "d.html"], "more/broken.mid: not a MIDI file"),
    ],
)
def test_what_cannot_be_judged_is_said_in_a_line_and_leaves_nothing(
    judged, monkeypatch, capsys, options, words
):
    folder, _, _ = judged
    monkeypatch.chdir(folder)
    there = sorted(folder.rglob("*.html"))
    with pytest.raises(SystemExit) as stop:
        evaluate.main(command(*options))
    assert stop.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert words in lines[-1]
    assert sorted(folder.rglob("*.html")) == there
