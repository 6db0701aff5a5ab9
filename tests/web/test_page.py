"""The page in a browser: notes are played, heard, continued, rewritten, taken away, undone."""

import json
import os
import threading

import pytest
import uvicorn

from data.midi.io import read_midi
from tests.music import GRID
from tests.web import browser
from web.models import Models
from web.server import make_app

pytestmark = pytest.mark.slow
if browser.CHROMIUM is None:
    assert not os.environ.get("CI"), "there is no chromium, which CI must have"
    pytest.skip("there is no chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def address(folder):
    """Where the page is, with models that know nothing."""
    app = make_app(Models(folder / "models/quartet.safetensors", folder))
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="warning", ws="websockets-sansio")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    browser.until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module")
def any_tab():
    """A tab of a browser."""
    with browser.chromium() as tab:
        yield tab


@pytest.fixture
def tab(any_tab, address):
    """A tab with the page, ready to be played on; nothing may have gone wrong in it at the end."""
    any_tab.open("about:blank")
    any_tab.resize(1200, 1000)
    any_tab.open(address)
    any_tab.until("globalThis.etude?.isReady")
    yield any_tab
    any_tab.ask("0")  # and hear what else was said
    assert any_tab.errors == []


def notes(tab, condition="true"):
    """Onset, program and pitch of the notes that there are."""
    found = tab.ask(f"etude.piece().notes.filter(n => {condition}).map(n => [n[0], n[4], n[2]])")
    return {tuple(note) for note in found}


def play_three(tab):
    """Plays three notes on the piano."""
    for pitch in (60, 64, 67):
        tab.click(f'[data-pitch="{pitch}"]')


def test_a_person_plays_and_the_model_answers(tab, tmp_path):
    assert tab.ask("etude.level()") == 0
    play_three(tab)
    tab.until("etude.level() > 0.01")
    own = {(0, 40, 60), (12, 40, 64), (24, 40, 67)}
    assert notes(tab) == own

    tab.ask("document.getElementById('s-bars').value = 3")
    tab.click("[data-how=accompany]")
    tab.until("etude.session.now.variations?.length == 4")
    tab.until("etude.level() > 0.01")
    assert tab.ask("document.querySelectorAll('.variation').length") == 4
    assert notes(tab, "n[5]") == own
    first = notes(tab)
    tab.click(".variation:nth-child(3)")
    third = notes(tab)
    assert notes(tab, "n[5]") == own
    assert third != first

    tab.place("#roll")
    left, top, width, lengths = tab.ask(
        "(b => [b.x, b.y, b.width, etude.piece().bars.map(bar => bar[2])])"
        "(document.getElementById('roll').getBoundingClientRect())"
    )
    starts = [sum(lengths[:bar]) for bar in range(len(lengths) + 1)]
    middle = [left + (starts[bar] + starts[bar + 1]) / 2 / starts[-1] * width for bar in (1, 2)]
    tab.drag([(middle[0], top + 8), (middle[1], top + 8)])
    assert tab.ask("document.getElementById('about-action').textContent").startswith("Bars 2 to 3")
    tab.click("[data-how=rewrite]")
    tab.until("etude.session.now.label == 'rewrite'")
    rewritten = notes(tab)
    outside = {note for note in third if not starts[1] <= note[0] < starts[3]}
    assert {note for note in rewritten if not starts[1] <= note[0] < starts[3]} == outside
    assert rewritten != third

    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab.click("[data-file=midi]")
    browser.until(lambda: [*tmp_path.glob("*.mid")])
    score = read_midi(tmp_path / "etude.mid", GRID)[0]
    taken = {*map(tuple, score.notes[["onset", "program", "pitch"]].tolist())}
    assert taken == rewritten >= outside

    tab.click("#undo")
    assert notes(tab) == third
    tab.click("#redo")
    assert notes(tab) == rewritten


def test_a_note_is_explained_and_another_taken(tab):
    play_three(tab)
    tab.click("[data-how=harmonize]")
    tab.until("etude.session.now.variations")
    tab.ask("document.getElementById('roll').focus()")
    place = tab.ask("etude.piece().notes.findIndex(n => !n[5])")
    for _ in range(place + 1):
        tab.key("ArrowRight")
    assert "the model's" in tab.ask("document.getElementById('status').textContent")
    tab.key("Enter")
    tab.until("!document.getElementById('why').hidden")
    assert tab.ask("document.querySelectorAll('.alternatives li').length") >= 2
    tab.click(".alternatives button:not(:disabled)")
    tab.until("etude.session.now.label == 'instead'")
    assert notes(tab, "n[5]") >= {(0, 40, 60), (12, 40, 64), (24, 40, 67)}


def test_a_link_brings_the_session_back(tab, address):
    play_three(tab)
    tab.click("[data-how=continue]")
    tab.until("etude.session.now.variations")
    there = tab.ask("JSON.stringify(etude.piece())")
    tab.click("#copy-link")
    link = tab.until("location.hash.length > 3 && location.href")
    tab.open("about:blank")
    tab.open(link)
    tab.until("globalThis.etude?.piece()?.notes.length > 3")
    assert json.loads(tab.ask("JSON.stringify(etude.piece())")) == json.loads(there)
    tab.open("about:blank")
    tab.open(address + "#s=AAAA")
    tab.until("document.getElementById('status').textContent.includes('damaged')")


def test_what_cannot_be_is_said_beside_the_control(tab):
    tab.ask("document.getElementById('ask').open = true")
    tab.ask("document.getElementById('s-tempo').value = 9")
    tab.ask("document.getElementById('settings').dispatchEvent(new Event('input'))")
    tab.until(
        "document.querySelector('[data-control=tempo]').textContent.includes('no tempo of 9')"
    )


def test_the_score_is_engraved(tab):
    play_three(tab)
    tab.click("#score-section summary")
    tab.until("document.getElementById('score-picture').naturalWidth > 100")


def test_keys_and_text_bring_notes_in(tab):
    tab.ask("document.activeElement.blur()")
    for key in ("a", "s", "d"):
        tab.key(key, f"Key{key.upper()}")
    assert notes(tab) == {(0, 40, 60), (12, 40, 62), (24, 40, 64)}
    tab.ask("document.getElementById('text').value = 'C5:2 E5'")
    tab.click("#text-form button")
    tab.until("etude.session.now.label == 'text'")
    assert notes(tab) == {(0, 40, 72), (24, 40, 76)}


def test_controls_have_names_and_nothing_is_wider_than_a_phone(tab):
    tab.resize(390, 844, 2, True)
    assert tab.ask("document.documentElement.scrollWidth") <= 390
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "combobox", "textbox", "spinbutton", "slider", "radio", "checkbox"}
    unnamed = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node["role"]["value"] in roles
        and not node.get("name", {}).get("value", "").strip()
    ]
    assert unnamed == []
