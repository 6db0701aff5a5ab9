"""The page in a browser: notes are played, heard, continued, rewritten, taken away, undone."""

import json
import os
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from data.midi.io import midi_bytes, read_midi
from generation.compose import stream_pieces
from data.score import DRUMS
from tests.folders import tune as a_tune
from tests.models import BAND, untrained
from tests.music import GRID
from tests.web import browser
from web.models import Models
from web.server import make_app

pytestmark = pytest.mark.slow
if browser.CHROMIUM is None:
    assert not os.environ.get("CI"), "there is no chromium, which CI must have"
    pytest.skip("there is no chromium", allow_module_level=True)

SHIPPED = Path(__file__).parents[2] / "models/bach.safetensors"


@contextmanager
def served(models, port=0):
    """The address of a server of the page."""
    config = uvicorn.Config(
        make_app(models), port=port, log_level="warning", ws="websockets-sansio"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    browser.until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.fixture(scope="module")
def all_models(folder, tmp_path_factory):
    """Models that know nothing, one of them of named parts, and the shipped one."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(folder, home, dirs_exist_ok=True)
    shutil.copy(SHIPPED, home / "models")
    untrained(home / "models/band.safetensors", BAND)
    return Models(home / "models/quartet.safetensors", home)


@pytest.fixture(scope="module")
def address(all_models):
    """Where the page is."""
    with served(all_models) as address:
        yield address


@pytest.fixture(scope="module")
def any_tab():
    """A tab of a browser."""
    with browser.chromium() as tab:
        yield tab


@pytest.fixture
def tab(any_tab, address):
    """A tab with the page, ready to be played on; nothing may have gone wrong in it at the end."""
    any_tab.open(address)
    any_tab.ask("localStorage.clear(); sessionStorage.clear()")  # what other tests left
    any_tab.open("about:blank")
    any_tab.resize(1200, 1000)
    open_page(any_tab, address)
    yield any_tab
    any_tab.ask("0")  # and hear what else was said
    assert any_tab.errors == []


def open_page(tab, address):
    """Opens the page, and waits until it can be played on."""
    tab.open(address)
    tab.until("globalThis.etude && !document.querySelector('[data-how=continue]').disabled")


def notes(tab, condition="true"):
    """Onset, program and pitch of the notes that there are."""
    found = tab.ask(f"etude.piece().notes.filter(n => {condition}).map(n => [n[0], n[4], n[2]])")
    return {tuple(note) for note in found}


def status(tab):
    """What the page said last."""
    return tab.ask("document.getElementById('status').textContent")


def says(tab, words):
    """Waits until the page says something."""
    browser.until(lambda: words in status(tab))


def play_three(tab):
    """Plays three notes on the piano."""
    for pitch in (60, 64, 67):
        tab.click(f'[data-pitch="{pitch}"]')


def type_in(tab, text):
    """Types notes."""
    tab.choose("#text", text)
    tab.click("#text-form button")
    tab.until("etude.session.now?.label == 'text'")


def test_a_person_plays_and_the_shipped_model_answers_in_four_voices(tab, tmp_path):
    tab.choose("#model", "bach")
    tab.until("etude.isReady")  # its sounds are there
    tab.until("document.getElementById('model-about').textContent.includes('steps of training')")
    assert tab.ask("etude.level()") == 0
    play_three(tab)
    tab.until("etude.level() > 0.01")
    own = {(0, 40, 60), (12, 40, 64), (24, 40, 67)}
    assert notes(tab) == own

    tab.choose("#s-bars", "2")
    tab.click("[data-how=accompany]")
    tab.until("etude.session.now.variations?.length == 4")
    tab.until("etude.level() > 0.01")
    assert tab.ask("document.querySelectorAll('.variation').length") == 4
    assert notes(tab, "n[5]") == own
    first = notes(tab)
    assert {program for _, program, _ in first} == {40, 41, 42, 43}
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
    for kind in ("midi", "wav", "musicxml"):
        tab.click(f"[data-file={kind}]")
        says(tab, "is in your downloads")
    browser.until(lambda: len([*tmp_path.glob("etude.[mw]*")]) == 3)
    score = read_midi(tmp_path / "etude.mid", GRID)[0]
    taken = {*map(tuple, score.notes[["onset", "program", "pitch"]].tolist())}
    assert taken == rewritten >= outside

    tab.click("#undo")
    assert notes(tab) == third
    tab.click("#redo")
    assert notes(tab) == rewritten


def test_notes_sound_while_they_are_written_and_the_cursor_moves(tab, monkeypatch):
    def slowly(*arguments, **options):
        writing = stream_pieces(*arguments, **options)
        while True:
            try:
                notes = next(writing)
            except StopIteration as end:
                return end.value
            time.sleep(0.02)  # a slow browser sounds before all is written, too
            yield notes

    monkeypatch.setattr("web.tasks.stream_pieces", slowly)
    tab.until("etude.isReady")
    type_in(tab, "C4 E4 G4")
    tab.choose("#s-bars", "32")
    tab.click("[data-how=continue]")
    place = "document.getElementById('cursor').style.transform"
    tab.until(f"etude.level() > 0.01 && (globalThis.was = {place})")
    assert tab.ask("document.getElementById('stop-writing').hidden") is False
    tab.until(f"{place} != was")
    tab.click("#stop-writing")
    assert status(tab) == "Stopped."
    assert len(notes(tab)) > 3
    tab.click("#undo")
    assert notes(tab) == {(0, 40, 60), (12, 40, 64), (24, 40, 67)}


def test_a_note_is_explained_and_another_taken(tab):
    play_three(tab)
    tab.click("[data-how=harmonize]")
    tab.until("etude.session.now.variations")
    tab.ask("document.getElementById('roll').focus()")
    place = tab.ask("etude.piece().notes.findIndex(n => !n[5])")
    for _ in range(place + 1):
        tab.key("ArrowRight")
    assert "the model's" in status(tab)
    tab.key("ArrowRight", modifiers=browser.SHIFT)
    assert status(tab) == "Bar 1 selected."
    assert tab.ask("document.querySelector('[data-how=rewrite]').disabled") is False
    tab.key("Enter")
    tab.until("!document.getElementById('why').hidden")
    assert tab.ask("document.querySelectorAll('.alternatives li').length") >= 2
    tab.click(".alternatives button:not(:disabled)")
    tab.until("etude.session.now.label == 'instead'")
    assert notes(tab, "n[5]") >= {(0, 40, 60), (12, 40, 64), (24, 40, 67)}


def test_a_link_brings_the_session_back_and_goes_on_the_same(tab, address):
    shown = "JSON.stringify([etude.piece(), etude.session.now.chosen, etude.session.at])"
    play_three(tab)
    tab.choose("#s-bars", "1")
    tab.choose("#s-key", "C major")
    tab.click("[data-how=continue]")
    tab.until("etude.session.now.variations")
    tab.click(".variation:nth-child(3)")
    tab.click("#copy-link")
    link = tab.until("location.hash.length > 3 && location.href")
    there = json.loads(tab.ask(shown))
    tab.click("[data-how=continue]")
    tab.until("etude.session.at == 5")
    after = json.loads(tab.ask(shown))

    with browser.chromium() as other:
        other.open(link)
        other.until("globalThis.etude?.isReady")
        says(other, "The session is as it was")
        assert json.loads(other.ask(shown)) == there
        assert other.ask("document.getElementById('s-key').value") == "C major"
        other.click("[data-how=continue]")
        other.until("etude.session.at == 5")
        assert json.loads(other.ask(shown)) == after
        for _ in range(3):
            other.click("#undo")
        assert notes(other) == {(0, 40, 60), (12, 40, 64), (24, 40, 67)}
        other.click("#undo")
        assert notes(other) == {(0, 40, 60), (12, 40, 64)}
        assert other.errors == []
    tab.open("about:blank")
    tab.open(address + "#s=AAAA")
    says(tab, "damaged")


def test_what_cannot_be_is_said_beside_the_control(tab):
    tab.ask("document.getElementById('ask').open = true")
    tab.choose("#s-tempo", "9")
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
    tab.ask("document.querySelector('[data-pitch=\"60\"]').focus()")
    for key in ("ArrowRight", "Enter"):
        tab.key(key)
    assert notes(tab) == {(0, 40, 60), (12, 40, 62), (24, 40, 64), (36, 40, 61)}
    tab.ask("document.activeElement.blur()")
    tab.key("z", "KeyZ", modifiers=browser.CONTROL)
    assert notes(tab) == {(0, 40, 60), (12, 40, 62), (24, 40, 64)}
    tab.key(" ", "Space")
    tab.until("document.getElementById('play').getAttribute('aria-label') == 'Pause'")
    type_in(tab, "C5:2 E5")
    assert notes(tab) == {(0, 40, 72), (24, 40, 76)}
    tab.click("#examples button:nth-of-type(5)")  # chord symbols
    tab.until("etude.piece().notes.length > 12")
    assert {pitch % 12 for onset, _, pitch in notes(tab) if onset == 0} == {9, 0, 4}


def test_fingers_bring_notes_in(tab):
    tab.touch('[data-pitch="60"]', '[data-pitch="64"]')
    tab.touch('[data-pitch="67"]')
    assert notes(tab) == {(0, 40, 60), (0, 40, 64), (12, 40, 67)}


def test_a_midi_keyboard_brings_notes_in(tab):
    tab.ask(
        "navigator.requestMIDIAccess = async () => globalThis.midi ="
        " { inputs: new Map([[1, {}]]) }; 0"
    )
    tab.click("#midi-in")
    says(tab, "1 MIDI keyboard connected")
    hear = "midi.inputs.get({}).onmidimessage({{ data: {} }})".format
    for message in ([0x90, 62, 90], [0xF8], [0x80, 62, 0]):
        tab.ask(hear(1, message))
    tab.ask("midi.inputs.set(2, {}); midi.onstatechange()")  # another is plugged in
    for message in ([0x91, 65, 90], [0x91, 65, 0]):  # without a loudness: it is let go
        tab.ask(hear(2, message))
    assert notes(tab) == {(0, 40, 62), (12, 40, 65)}
    assert tab.ask("document.querySelectorAll('.key.on').length") == 0


def test_notes_are_recorded_in_time_after_a_bar_of_clicks(tab):
    tab.choose("#s-tempo", "240")
    tab.click("[name=mode][value=record] + span")
    tab.click("#record")
    tab.until("etude.level() > 0.01")  # the clicks
    says(tab, "Recording")
    tab.ask("document.activeElement.blur()")
    tab.key("d", "KeyD")
    tab.click("#record")
    ((_, program, pitch),) = notes(tab, "n[5]")
    assert (program, pitch) == (40, 64)


def test_a_file_is_dropped_or_opened(tab, tmp_path):
    score, path = a_tune(0), tmp_path / "tune.mid"
    path.write_bytes(midi_bytes(score))
    tab.ask(
        "{ const data = new DataTransfer();"
        f" data.items.add(new File([new Uint8Array({[*path.read_bytes()]})], 'tune.mid'));"
        " document.body.dispatchEvent(new DragEvent('drop',"
        " { dataTransfer: data, bubbles: true, cancelable: true })) }"
    )
    tab.until("etude.session.now?.label == 'tune.mid'")
    tune = score.notes[score.notes["program"] != DRUMS]
    onsets = {*map(tuple, tune[["onset", "pitch"]].tolist())}
    assert {(onset, pitch) for onset, _, pitch in notes(tab)} == onsets
    told = status(tab)
    assert told.startswith(f"{len(score.notes)} notes of Acoustic Grand Piano, Drums; ")
    assert f"{len(score.notes) - len(tune)} notes of Drums were left out" in told
    assert "Acoustic Grand Piano became Violin" in told
    assert tab.ask("etude.piece().tempo[0][0]") == 100
    path.write_bytes(b"no MIDI")
    root = tab.call("DOM.getDocument")["root"]["nodeId"]
    node = tab.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    tab.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
    says(tab, "tune.mid: the file")
    assert len(notes(tab)) == len(tune)
    assert "400" in tab.errors.pop()  # the browser's own word for it


def test_parts_are_called_by_their_names(tab):
    tab.choose("#model", "band")
    tab.until("document.getElementById('voice').textContent.includes('MELODY')")
    assert tab.ask("[...document.getElementById('voice').options].map(its => its.text)")[:3] == [
        *("MELODY", "BRIDGE", "PIANO")
    ]
    play_three(tab)
    tab.choose("#s-bars", "1")
    tab.click("[data-how=accompany]")
    tab.until("etude.session.now.variations")
    legend = tab.ask("[...document.getElementById('legend').children].map(its => its.textContent)")
    assert legend[0] == "yours"
    assert {"MELODY", "BRIDGE", "PIANO"} & {*legend}


def test_a_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(any_tab, all_models):
    gone = "document.getElementById('gone').hidden"
    with served(all_models) as address:
        open_page(any_tab, address)
        play_three(any_tab)
    any_tab.until(f"!{gone}")
    assert any_tab.ask("document.querySelector('[data-how=continue]').disabled")
    with served(all_models, int(address.rsplit(":")[-1].strip("/"))):
        any_tab.until(gone)
        assert notes(any_tab) == {(0, 40, 60), (12, 40, 64), (24, 40, 67)}
        any_tab.until("!document.querySelector('[data-how=continue]').disabled")
        any_tab.open("about:blank")
    any_tab.errors.clear()  # each try to reach it was one


def test_controls_have_names_and_nothing_is_wider_than_a_phone(tab):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.ask(ground)
    tab.dark()
    assert tab.ask(ground) != light
    tab.dark(False)
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
