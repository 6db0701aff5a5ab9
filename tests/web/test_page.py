"""The page in a browser: notes are played, heard, continued, rewritten, taken away, undone."""

import itertools
import json
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from data.ensembles import Ensemble
from data.files.read import read_score
from data.files.source_text import SUFFIXES
from data.midi.io import midi_bytes
from data.score import DRUMS
from generation.writing import Writing
from tests.chord_checker import what_is_broken
from tests.folders import tune as a_tune
from tests.models import BAND, QUARTET, untrained
from tests.music import GRID
from tests.web import browser, duet, network
from web import server
from web.messages import piece_of
from web.models import Models
from web.server import make_app
from web.tasks import TASKS, describe

pytestmark = pytest.mark.slow
if browser.CHROMIUM is None:
    assert not os.environ.get("CI"), "there is no chromium, which CI must have"
    pytest.skip("there is no chromium", allow_module_level=True)

HERE = "http://127.0.0.1:{}/"
DANCE = replace(QUARTET, meters=((4, 4), (6, 8)), tempos=(24, 88, 140), velocities=(48, 80, 112))
THREE = {(0, 40, 60), (12, 40, 64), (24, 40, 67)}  # as `play_three` plays them
PLAYS = "document.getElementById('play').getAttribute('aria-label')"
PITCH_NAMES = ("C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B")  # as the page has
SHIPPED = Path(__file__).parents[2] / "models/bach.safetensors"


@pytest.fixture(scope="module")
def all_models(folder, tmp_path_factory):
    """Models that know nothing, one of them of named parts, and the shipped one."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(folder, home, dirs_exist_ok=True)
    shutil.copy(SHIPPED, home / "models")
    untrained(home / "models/band.safetensors", BAND)
    untrained(home / "models/dance.safetensors", DANCE)
    untrained(home / "models/drums.safetensors", replace(QUARTET, programs=(DRUMS,)))
    untrained(
        home / "models/song.safetensors",
        replace(QUARTET, programs=(0, 68)),
        ensembles=(Ensemble(1, (0, 68)),),
        ranges={0: (36, 84), 68: (60, 84)},
    )
    return Models(home / "models/quartet.safetensors", home)


@pytest.fixture(scope="module")
def address(all_models):
    """Where the page is."""
    with network.served(make_app(all_models)) as (_, port):
        yield HERE.format(port)


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
    any_tab.errors.clear()
    any_tab.phone(False)
    any_tab.dark(False)
    open_page(any_tab, address)
    yield any_tab
    any_tab.ask("0")  # and hear what else was said
    assert any_tab.errors == []


def open_page(tab, address):
    """Opens the page, and waits until it can be played on."""
    tab.open(address)
    tab.until("globalThis.etude && !document.querySelector('[data-how=continue]').disabled")


def come_back(tab, address):
    """Opens the page in which a session was kept."""
    open_page(tab, address)
    says(tab, "as you left it")


def choose_model(tab, name, words, where="voice"):
    """Chooses a model, and waits until the page says what it has."""
    tab.choose("#model", name)
    tab.until(f"document.getElementById('{where}').textContent.includes('{words}')")


def copy_link(tab):
    """Copies a link to the session, and gives it."""
    tab.click("#copy-link")
    return tab.until("location.hash.length > 3 && location.href")


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


def play_and_keep(tab, pitch):
    """Plays a note on the piano, and waits until the session with it is kept."""
    tab.click(f'[data-pitch="{pitch}"]')
    tab.until("etude.isKept")


def write(tab, how, bars="1"):
    """Has so many bars written, and waits for them."""
    tab.choose("#s-bars", bars)
    tab.click(f"[data-how={how}]")
    tab.until("etude.session.now.variations")


def go_on_by_the_third(tab):
    """Three notes, a bar after them in C major, and of its variations the third."""
    play_three(tab)
    tab.choose("#s-key", "C major")
    write(tab, "continue")
    tab.click(".variation:nth-child(3)")


def in_roll(tab, *keys, modifiers=0):
    """Presses keys in the roll."""
    tab.ask("document.getElementById('roll').focus()")
    for key in keys:
        tab.key(key, modifiers=modifiers)


def spot(tab, step, pitch):
    """Where a step and a pitch are in the window."""
    tab.place("#roll-frame")
    return tab.ask(f"etude.place({step}, {pitch})")


def dark_pixels(tab, x, y):
    """How many pixels of the roll are dark in a column at a place of the window."""
    box = tab.ask("(({x, y}) => [x, y])(document.getElementById('roll').getBoundingClientRect())")
    where = f"{x - box[0]}, {y - box[1] - 8}, 1, 16"
    column = f"document.getElementById('roll').getContext('2d').getImageData({where}).data"
    colors = tab.ask(f"[...{column}]")
    pixels = [colors[at : at + 4] for at in range(0, len(colors), 4)]
    return sum(sum(pixel[:3]) < 300 and pixel[3] > 200 for pixel in pixels)


def number_of(tab, bar):
    """Where the number of a bar is in the window, and that bar is one of several."""
    length = tab.ask("etude.piece().bars[1][2]")
    x, _ = spot(tab, (bar + 0.5) * length, 60)
    return x, tab.ask("document.getElementById('roll').getBoundingClientRect().y") + 12


def type_in(tab, text):
    """Types notes."""
    tab.choose("#text", text)
    tab.click("#text-form button")
    tab.until("etude.session.now?.label == 'text'")


def drop(tab, content):
    """Drops a file on the page; what the page says then."""
    return tab.ask(
        "{ const data = new DataTransfer();"
        f" data.items.add(new File([new Uint8Array({[*content]})], 'tune.mid'));"
        " document.body.dispatchEvent(new DragEvent('drop',"
        " { dataTransfer: data, bubbles: true, cancelable: true }));"
        " document.getElementById('status').textContent }"
    )


def ask_why(tab, presses):
    """Goes so many notes on with the arrow keys, and asks why that note."""
    in_roll(tab, *["ArrowRight"] * presses)
    tab.ask("document.getElementById('status').textContent = ''")  # what was said of another
    tab.key("Enter")
    says(tab, "alternatives for")


def alternatives(tab):
    """Pitch and instrument of each note that the page would take instead, and its button."""
    buttons = tab.ask(
        "[...document.querySelectorAll('.alternatives button')].map(b => [b.innerText, b.disabled])"
    )
    for place, (text, is_taken) in enumerate(buttons, 1):
        name, program = text.split(" · ")
        pitch = PITCH_NAMES.index(name[:-1]) + 12 * (int(name[-1]) + 1)
        if not is_taken:
            yield pitch, program, f".alternatives li:nth-child({place}) button"


def test_a_person_plays_and_the_shipped_model_answers_in_four_voices(tab, tmp_path):
    tab.until("etude.isReady && etude.bytes > 500_000")  # code, and the first sounds
    assert tab.ask("etude.bytes") < 1_500_000
    tab.choose("#model", "bach")
    tab.until("document.getElementById('model-about').textContent.includes('steps of training')")
    assert tab.ask("etude.level()") == 0
    play_three(tab)
    tab.until("etude.level() > 0.01")
    assert notes(tab) == THREE

    tab.choose("#s-bars", "2")
    tab.click("[data-how=accompany]")
    tab.until("etude.session.now.variations?.length == 4")
    about = "[...document.querySelectorAll('.variation small')].map(its => its.textContent)"
    told = tab.until(f"(its => its[0].includes('tru') && its)({about})")
    assert [*sorted(each.split(", ")[0] for each in told)] == [
        *("least true to its style", "second truest", "third truest", "truest to its style")
    ]
    assert all("ends on" in each for each in told)
    assert notes(tab, "n[5]") == THREE
    first = notes(tab)
    assert {program for _, program, _ in first} == {40, 41, 42, 43}
    tab.click(".variation:nth-child(3)")
    tab.until("etude.level() > 0.01")
    third = notes(tab)
    assert notes(tab, "n[5]") == THREE
    assert third != first

    lengths = tab.ask("etude.piece().bars.map(bar => bar[2])")
    starts = [sum(lengths[:bar]) for bar in range(len(lengths) + 1)]
    tab.drag([number_of(tab, bar) for bar in (1, 2)])
    assert tab.ask("document.getElementById('about-action').textContent").startswith("Bars 2 to 3")
    tab.click("[data-how=rewrite]")
    tab.until("etude.session.now.label == 'rewrite'")
    rewritten = notes(tab)
    outside = {note for note in third if not starts[1] <= note[0] < starts[3]}
    assert {note for note in rewritten if not starts[1] <= note[0] < starts[3]} == outside
    assert rewritten != third

    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for kind in ("wav", "stems", "png", "musicxml", "midi"):  # of the bars that are selected
        tab.click(f"[data-file={kind}]")
        says(tab, "is in your downloads (Bars 2 to 3)")
    finished = {".mid", ".musicxml", ".png", ".wav", ".zip"}  # Chromium adds .crdownload until then
    browser.until(lambda: {path.suffix for path in tmp_path.iterdir()} == finished)
    score = read_score(tmp_path / "etude.mid", GRID)[0]
    taken = {*map(tuple, score.notes[["onset", "program", "pitch"]].tolist())}
    selected = {note for note in rewritten if starts[1] <= note[0] < starts[3]}
    assert taken == {(onset - starts[1], *rest) for onset, *rest in selected}

    tab.click("#undo")
    assert notes(tab) == third
    tab.click("#redo")
    assert notes(tab) == rewritten


def test_notes_sound_while_they_are_written_and_the_cursor_moves(tab, monkeypatch):
    class Slowly(Writing):
        def __iter__(self):
            for notes in super().__iter__():
                time.sleep(0.02)  # a slow browser sounds before all is written, too
                yield notes

    monkeypatch.setattr("web.tasks.Writing", Slowly)
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
    assert notes(tab) == THREE


def test_the_page_says_that_a_model_is_compiled_and_when_it_is_ready(tab, address, monkeypatch):
    def slowly(models, message):
        *told, ready = filter(None, describe(models, message))
        yield from told
        for _ in range(60):  # others have their turns
            time.sleep(0.05)
            yield {}
        yield ready

    monkeypatch.setitem(TASKS, "describe", slowly)
    open_page(tab, address)
    says(tab, "is being compiled")
    tab.ask("globalThis.fetch = () => new Promise(() => {})")
    assert "is being compiled" in drop(tab, b"waits for it")
    assert tab.ask("etude.isReady") is False
    says(tab, "The model is ready.")
    tab.until("etude.isReady")


def test_a_note_is_explained_and_another_taken_in_its_place(tab):
    play_three(tab)
    own = notes(tab)
    tab.click("[data-how=harmonize]")
    tab.until("etude.session.now.variations")
    number = tab.ask("etude.piece().notes.findIndex(n => !n[5])")
    ask_why(tab, number + 1)
    assert tab.ask("document.querySelectorAll('.alternatives li').length") >= 2
    while True:  # a note in whose place the model could have played a higher one
        onset, _, old, _, program, _ = tab.ask(f"etude.piece().notes[{number}]")
        name = tab.ask(f"document.querySelector('#voice option[value=\"{program}\"]').text")
        its = [(p, button) for p, who, button in alternatives(tab) if who == name and p > old]
        if program != 40 and its:
            break
        number += 1
        ask_why(tab, 1)
    tab.click(its[0][1])
    tab.until("etude.session.now.label == 'instead'")
    for variation in tab.ask("etude.session.now.variations"):
        written = {(n[0], n[4], n[2]) for n in variation["notes"]}
        assert (onset, program, its[0][0]) in written
        assert {note for note in written if note[1] == 40} == own  # nobody joins the melody


def test_another_note_in_the_place_of_ones_own_changes_nothing_else(tab):
    play_three(tab)
    ask_why(tab, 2)
    pitch, _, button = next(each for each in alternatives(tab) if each[1] == "Violin")
    tab.click(button)
    says(tab, "in place of E4")
    assert notes(tab, "n[5]") == notes(tab) == {(0, 40, 60), (12, 40, pitch), (24, 40, 67)}
    tab.click("#undo")
    assert notes(tab) == THREE


def test_an_answer_that_comes_too_late_is_not_shown(tab, monkeypatch):
    is_let = threading.Event()
    explain = TASKS["explain"]

    def late(*arguments):
        while not is_let.is_set():
            yield {}
        yield from explain(*arguments)

    monkeypatch.setitem(TASKS, "explain", late)
    play_three(tab)
    in_roll(tab, "ArrowRight", "ArrowRight", "Enter")
    tab.click("#undo")
    is_let.set()
    tab.click("#clear")
    type_in(tab, "C4 E4")  # answered after it
    assert tab.ask("document.getElementById('why').hidden")


def test_the_session_is_there_again_after_a_reload(tab, address):
    shown = "JSON.stringify([etude.piece(), etude.session.at, etude.session.states.length])"
    go_on_by_the_third(tab)
    tab.click("#undo")
    there = tab.ask(shown)
    tab.click("#metronome")
    tab.choose("#volume", "0.2")
    tab.until("etude.isKept")
    come_back(tab, address)
    assert tab.ask(shown) == there
    assert tab.ask("document.getElementById('metronome').getAttribute('aria-pressed')") == "true"
    assert tab.ask("document.getElementById('volume').value") == "0.2"
    assert tab.ask("document.getElementById('s-key').value") == "C major"
    tab.click("#redo")
    tab.click("#clear")
    tab.until("etude.isKept")
    tab.ask("sessionStorage.clear()")  # another tab
    open_page(tab, address)
    tab.until("etude.session.now?.label == 'new'")
    assert notes(tab) == set()
    tab.click("#undo")
    assert notes(tab) > THREE


def test_the_latest_sessions_are_listed_and_come_back(tab, address):
    listed = "[...document.querySelectorAll('#latest option')].map(its => its.text)"
    play_three(tab)
    tab.click("#clear")
    tab.until(f"{listed}.length == 2")
    assert "C4 E4 G4 (1 bar)" in tab.ask(listed)[1]
    type_in(tab, "C5 D5")
    tab.until("Object.values({...localStorage}).some(kept => kept.includes('C5 D5'))")
    tab.ask("sessionStorage.clear()")
    open_page(tab, address)  # another tab, which has the latest
    says(tab, "as you left it")
    name = tab.ask("document.querySelectorAll('#latest option')[1].value")
    tab.choose("#latest", name)
    says(tab, "C4 E4 G4 (1 bar)")
    assert notes(tab) == THREE
    tab.click("#undo")
    assert notes(tab) == {(0, 40, 60), (12, 40, 64)}
    tab.until(f"{listed}.some(its => its.startsWith('C5 D5'))")


def test_a_browser_without_room_says_that_it_keeps_nothing(tab):
    tab.ask("Storage.prototype.setItem = () => { throw new Error('QuotaExceededError') }")
    play_three(tab)
    tab.until("!document.getElementById('is-not-kept').hidden")
    assert tab.ask("document.getElementById('is-kept').hidden")


def listed(tab, words):
    """Waits until an earlier session is listed that begins with words, and gives its value."""
    options = "[...document.querySelectorAll('#latest option')]"
    return tab.until(f"{options}.find(its => its.text.startsWith('{words}'))?.value")


def test_a_link_opens_in_a_page_that_is_open_and_what_was_there_stays(tab):
    play_three(tab)
    link = copy_link(tab)
    play_and_keep(tab, 72)
    tab.ask(f"location.href = '{link}'")
    says(tab, "as it was when the link was made")
    assert notes(tab) == THREE
    play_and_keep(tab, 74)
    tab.choose("#latest", listed(tab, "C4 E4 G4 C5"))
    tab.until("etude.piece().notes.some(note => note[2] === 72)")


def test_what_two_tabs_make_of_one_tune_stays_when_one_opens_that_of_the_other(tab, address):
    play_three(tab)
    tab.until("etude.isKept")
    own = tab.ask("sessionStorage.getItem('etude.session')")
    tab.ask("sessionStorage.clear()")  # another tab, which has the latest
    come_back(tab, address)
    play_and_keep(tab, 72)
    tab.ask(f"sessionStorage.setItem('etude.session', {json.dumps(own)})")
    come_back(tab, address)
    play_and_keep(tab, 74)
    in_roll(tab, "ArrowRight", modifiers=browser.SHIFT)
    assert status(tab) == "Bar 1 selected."
    for other, pitch in (("C4 E4 G4 C5", 72), ("C4 E4 G4 D5", 74)):
        tab.choose("#latest", listed(tab, other))
        tab.until(f"etude.piece().notes.at(-1)[2] === {pitch} && etude.isKept")
        assert tab.ask("document.querySelectorAll('#latest option').length") == 2
        assert "selected" not in tab.ask("document.getElementById('about-action').textContent")


def test_a_tab_that_was_duplicated_keeps_what_it_changes_as_its_own(tab, address):
    play_three(tab)
    tab.until("etude.isKept")
    own = tab.ask("sessionStorage.getItem('etude.session')")
    twin = browser.Tab(tab.socket, (1200, 1000))
    twin.open(address)
    twin.ask(f"sessionStorage.setItem('etude.session', {json.dumps(own)})")
    come_back(twin, address)
    play_and_keep(twin, 72)
    twin.call("Page.close")
    play_and_keep(tab, 74)
    assert listed(tab, "C4 E4 G4 C5")


def test_bars_are_selected_by_tapping_the_first_and_the_last(tab):
    tab.phone()
    type_in(tab, "C4:4 E4:4 G4:4 C5:4 " * 2)
    for bar, told in ((1, "Bar 2"), (2, "Bars 2 to 3"), (0, "Bar 1"), (0, "Nothing")):
        tab.tap(*number_of(tab, bar))
        assert status(tab) == f"{told} selected."
    left, top = number_of(tab, 1)
    tab.swipe(left, top, -150)  # it scrolls, and selects nothing
    tab.until("document.getElementById('roll-frame').scrollLeft > 50")
    assert status(tab) == "Nothing selected."
    for selector in ("html", "#roll-frame", "#piano"):  # and is no way back
        style = f"getComputedStyle(document.querySelector('{selector}')).overscrollBehaviorX"
        assert tab.ask(style) != "auto"


def sorted_notes(tab):
    """Onset, duration and pitch of the notes that there are, in order."""
    return sorted(map(tuple, tab.ask("etude.piece().notes.map(n => n.slice(0, 3))")))


def test_notes_are_edited_with_the_mouse(tab):
    tab.double_click(*spot(tab, 13, 60))  # on an empty page
    assert sorted_notes(tab) == [(12, 6, 60)]
    x, y = spot(tab, 15, 60)
    tab.drag([(x, y), (x + 20, y), spot(tab, 27, 62)])
    assert sorted_notes(tab) == [(24, 6, 62)]
    (x, y), (end, _) = spot(tab, 30, 62), spot(tab, 36, 62)
    tab.drag([(x - 2, y), (x + 9, y), (end - 2, y)])
    assert sorted_notes(tab) == [(24, 12, 62)]
    tab.click("#draw")
    (x, y), (end, _) = spot(tab, 50, 67), spot(tab, 59, 67)
    tab.drag([(x, y), (x + 9, y), (end, y)])
    tab.click("#draw")
    assert sorted_notes(tab) == [(24, 12, 62), (48, 12, 67)]
    tab.drag([spot(tab, 20, 70), spot(tab, 40, 65), spot(tab, 64, 60)])  # a box around both
    assert len(tab.ask("etude.chosen()")) == 2
    tab.click("[data-edit=copy]")
    tab.click("[data-edit=down]")
    assert sorted_notes(tab) == [(24, 12, 50), (48, 12, 55)]
    tab.choose("#grid", "free")
    tab.drag([spot(tab, 97.5, 60)])  # the cursor
    tab.choose("#grid", "1/8")
    tab.click("[data-edit=paste]")
    assert sorted_notes(tab)[2:] == [(97, 12, 62), (121, 12, 67)]
    tab.drag([spot(tab, 26, 50)], modifiers=browser.SHIFT)  # one more
    assert len(tab.ask("etude.chosen()")) == 3
    tab.click("[data-edit=quantize]")
    assert sorted_notes(tab)[2:] == [(96, 12, 62), (120, 12, 67)]
    tab.ask("document.activeElement.blur()")
    tab.key("Delete")  # wherever the focus is
    assert sorted_notes(tab) == [(48, 12, 55)]
    for _ in range(7):
        tab.click("#undo")
    assert sorted_notes(tab) == [(12, 6, 60)]


def test_undo_leaves_the_cursor_where_it_is_and_an_empty_page_has_it_at_its_beginning(tab):
    clock = "document.getElementById('clock').textContent"
    type_in(tab, "C4:4 E4 G4 C5")
    tab.double_click(*spot(tab, 100, 70))
    assert len(notes(tab)) == 5
    there = tab.ask(clock)
    assert there != "0:00"
    for button in ("#undo", "#redo", "#undo"):
        tab.click(button)
        assert tab.ask(clock) == there
        assert tab.ask("!document.getElementById('cursor').hidden")
    tab.click("#clear")
    assert tab.ask(clock) == "0:00"


def test_notes_are_pasted_where_one_sees_the_cursor_and_into_pieces_of_other_parts(tab):
    play_three(tab)
    in_roll(tab, "ArrowRight", "ArrowRight")
    tab.key("c", "KeyC", modifiers=browser.CONTROL)
    tab.click("#to-start")
    tab.key("v", "KeyV", modifiers=browser.CONTROL)
    assert sorted_notes(tab) == [(0, 12, 60), (0, 12, 64), (12, 12, 64), (24, 12, 67)]
    choose_model(tab, "band", "MELODY")
    tab.click("#clear")
    tab.key("v", "KeyV", modifiers=browser.CONTROL)
    assert notes(tab) == {(0, 129 + 40, 64)}
    assert "Violin" in tab.ask("document.getElementById('legend').innerText")
    write(tab, "continue")
    assert "Violin became" in status(tab)


def test_notes_are_edited_with_keys_alone(tab):
    type_in(tab, "C4 E4 G4")
    in_roll(tab, "ArrowRight")
    for key, modifiers in (
        ("ArrowUp", 0),
        ("ArrowUp", browser.SHIFT),
        ("ArrowRight", browser.ALT),
        ("ArrowRight", browser.ALT | browser.SHIFT),
    ):
        tab.key(key, modifiers=modifiers)
    assert sorted_notes(tab) == [(6, 18, 73), (12, 12, 64), (24, 12, 67)]
    tab.key("a", "KeyA", modifiers=browser.CONTROL)
    tab.key("c", "KeyC", modifiers=browser.CONTROL)
    tab.key("v", "KeyV", modifiers=browser.CONTROL)
    assert len(sorted_notes(tab)) == 6
    tab.key("Delete")
    assert sorted_notes(tab) == [(6, 18, 73), (12, 12, 64), (24, 12, 67)]
    for _ in range(6):
        tab.key("z", "KeyZ", modifiers=browser.CONTROL)
    assert sorted_notes(tab) == [(0, 12, 60), (12, 12, 64), (24, 12, 67)]
    tab.key("Insert")
    assert (0, 6, 67) in sorted_notes(tab)
    tab.ask("document.getElementById('zoom-in').focus()")
    for _ in range(2):  # past the chords, into the roll: letters put nothing in there
        tab.key("Tab")
    assert tab.ask("document.activeElement.id") == "roll"
    tab.key("a", "KeyA")
    assert len(sorted_notes(tab)) == 4


def test_notes_are_edited_with_a_finger(tab):
    tab.phone()
    type_in(tab, "C4 E4 G4")
    tab.tap(*spot(tab, 6, 60))
    says(tab, "alternatives for C4")
    x, y = spot(tab, 6, 60)
    tab.swipe(x, y, 0, spot(tab, 6, 58)[1] - y)
    assert sorted_notes(tab)[0] == (0, 12, 58)
    x, y = spot(tab, 40, 64)
    for _ in range(2):
        tab.tap(x, y)
    assert (36, 6, 64) in sorted_notes(tab)
    there = sorted_notes(tab)
    x, y = spot(tab, 30, 67)
    tab.swipe(x, y, -80)  # not selected: it scrolls
    tab.until("document.getElementById('roll-frame').scrollLeft > 10")
    assert sorted_notes(tab) == there


def test_an_edited_note_of_the_models_is_ones_own_and_the_variations_stay(tab):
    go_on_by_the_third(tab)
    in_roll(tab, *["ArrowRight"] * 4, "ArrowUp")
    assert len(notes(tab, "n[5]")) == 4
    assert tab.ask("document.querySelectorAll('.variation').length") == 4
    edited = notes(tab)
    tab.click(".variation:nth-child(2)")
    assert notes(tab) != edited
    tab.click(".variation:nth-child(3)")
    assert notes(tab) == edited
    ask_why(tab, 5)  # a note that the model wrote, of the variation that was edited


def test_a_new_piece_has_a_usual_tempo_and_plays_at_the_tempo_that_is_chosen(tab):
    choose_model(tab, "dance", "6/8", "s-meter")
    tab.click("#clear")
    play_three(tab)
    assert tab.ask("etude.piece().tempo") == [[88]]
    tab.click("#play")
    tab.choose("#s-tempo", "140")
    assert tab.ask("etude.piece().tempo") == [[140]]
    assert tab.ask(PLAYS) == "Pause"
    write(tab, "continue", "2")
    assert {*tab.ask("etude.piece().tempo.flat()")} == {140}
    tab.choose("#s-tempo", "88")  # all variations, and why they are so
    assert {*tab.ask("etude.session.now.variations.flatMap(v => v.tempo.flat())")} == {88}
    ask_why(tab, 4)
    for _ in range(2):
        tab.click("#undo")
    assert tab.ask("etude.piece().tempo") == [[140]]


@pytest.mark.parametrize("until", ["true", "etude.shown().notes.length > 3"])
def test_the_tempo_that_is_chosen_while_the_model_writes_is_that_of_the_answer(tab, until):
    play_three(tab)
    tab.ask(
        "document.querySelector('[data-how=continue]').click();"
        "globalThis.wait = setInterval(() => {"
        f" if (!({until})) return; clearInterval(wait);"
        " const field = document.getElementById('s-tempo'); field.value = '140';"
        " for (const kind of ['input', 'change'])"
        "  field.dispatchEvent(new Event(kind, {bubbles: true})) }, 1)"
    )
    tab.until("etude.session.now.variations")
    assert {*tab.ask("etude.session.now.variations.flatMap(v => v.tempo.flat())")} == {140}
    assert tab.ask("document.getElementById('s-tempo').value") == "140"
    assert tab.ask("etude.session.now.written.settings.tempo") == 140
    tab.click("#undo")
    assert {*tab.ask("etude.piece().tempo.flat()")} != {140}


def count_sounds(tab):
    """Counts from now on notes and clicks that are handed to the audio clock, with their times."""
    tab.ask(
        "globalThis.heard = []; globalThis.clicks = []; globalThis.accents = [];"
        "for (const [its, list] of [[AudioBufferSourceNode, heard], [OscillatorNode, clicks]]) {"
        " const start = its.prototype.start; its.prototype.start = function (...all) {"
        " list.push(all[0]); if (this.frequency?.value > 1300) accents.push(all[0]);"
        " return start.apply(this, all) } }"
    )


def test_bars_are_looped_without_a_gap_and_the_metronome_clicks(tab):
    tab.choose("#s-tempo", "240")
    type_in(tab, "C4 E4 G4 C5 " * 2)  # a second a bar
    tab.until("etude.isReady")
    count_sounds(tab)
    tab.drag([number_of(tab, 1)])
    for button in ("#loop", "#metronome", "#play"):
        tab.click(button)
    tab.until("heard.length >= 9 && clicks.length >= 9")
    for times in tab.ask("[heard, clicks]"):
        apart = [after - before for before, after in itertools.pairwise(times[1:9])]
        assert apart == pytest.approx([0.25] * 7, abs=0.005)
    tab.until("etude.level() > 0")
    assert tab.ask("document.getElementById('clock').textContent") == "0:01"  # never 0:02
    tab.click("#loop")
    tab.until(f"{PLAYS} == 'Play'")


def test_a_voice_is_muted_or_heard_alone_and_the_volume_is_low(tab):
    type_in(tab, "C5 D5 E5 F5")
    tab.choose("#voice", "42")
    tab.click('[data-pitch="60"]')
    tab.until("etude.isReady")
    count_sounds(tab)
    tab.click("[data-voice='Mute Cello']")
    assert tab.ask("document.querySelectorAll('.silent').length") == 1
    tab.click("#play")
    tab.until(f"{PLAYS} == 'Play'")
    assert tab.ask("heard.length") == 4
    tab.click("[data-voice='Only Cello']")  # which wins
    assert tab.ask("document.querySelector('.silent').textContent") == "ViolinSK"
    tab.ask("heard.length = 0")
    tab.click("#to-start")
    tab.click("#play")
    tab.until(f"{PLAYS} == 'Play'")
    assert tab.ask("heard.length") == 1
    tab.choose("#volume", "0")
    tab.click("#play")
    tab.until("heard.length > 1")
    time.sleep(0.2)
    assert tab.ask("etude.level()") < 0.001
    tab.click("#play")


def boxes(tab, *selectors):
    """Left, top, right and bottom of elements in the window."""
    return [
        tab.ask(
            "(b => [b.left, b.top, b.right, b.bottom])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for selector in selectors
    ]


@pytest.mark.parametrize("size", [(1400, 900), (390, 844)])
def test_roll_transport_and_variations_are_in_the_first_screen(tab, address, size):
    if size[0] < 400:
        tab.phone()
    else:
        tab.resize(*size)
    open_page(tab, address)
    tab.choose("#s-bars", "1")
    tab.click("#hear-one")  # a first click: a tune in all voices
    tab.until("etude.session.now?.variations")
    assert "Next:" in status(tab)
    assert len({program for _, program, _ in notes(tab)}) == 4
    tab.ask("scrollTo({top: 0, behavior: 'instant'})")
    parts = ("[data-how=continue]", "#roll-frame", "#play", ".variation:nth-child(4)")
    bar = tab.ask("document.querySelector('.transport').getBoundingClientRect().top")
    for part, (left, top, right, bottom) in zip(parts, boxes(tab, *parts), strict=True):
        assert 0 <= left < right <= size[0]
        is_above_bar = size[0] < 400 and part != "#play"  # which stays in reach there
        assert 0 <= top < bottom <= (bar if is_above_bar else size[1])
    assert tab.ask("document.documentElement.scrollWidth") <= size[0]


def test_on_a_phone_on_its_side_one_sees_the_roll_with_what_edits_and_plays_it(tab, address):
    tab.phone(size=(844, 390))
    open_page(tab, address)
    (_, _, _, bottom), (_, top, _, _) = boxes(tab, "#hear-one", ".transport")
    assert bottom <= top  # in the first screen
    tab.ask("document.querySelector('.tools').scrollIntoView({ behavior: 'instant' })")
    tools, roll, bar = boxes(tab, ".tools", "#roll-frame", ".transport")
    assert -1 < tools[1] < tools[3] <= roll[1] < roll[1] + 200 <= roll[3] <= bar[1] < bar[3] <= 390
    assert not tab.ask("document.querySelector('#chords input').checkVisibility()")
    tab.click("#has-chords")
    tab.until("document.querySelector('#chords input').checkVisibility()")


def test_what_buttons_say_is_not_cut_off_on_a_small_phone(tab):
    for width in (390, 360, 320):
        tab.phone(size=(width, 640))
        cut = "b => b.checkVisibility() && b.scrollWidth > b.clientWidth"
        assert tab.ask(f"[...document.querySelectorAll('.actions button')].some({cut})") is False
        assert tab.ask("document.documentElement.scrollWidth") == width


def test_controls_are_large_enough_for_fingers(tab):
    tab.phone()
    go_on_by_the_third(tab)
    ask_why(tab, 4)
    tab.ask("for (const its of document.querySelectorAll('details')) its.open = true")
    tab.ask("document.querySelector('#chords input').style.width = '20px'")  # over a short bar
    small = tab.ask(
        "[...document.querySelectorAll('button:not(.key), select, summary, label.button,"
        " .segments label, #s-programs label, input:not([type=radio], [type=checkbox], #file)')]"
        ".filter(its => its.checkVisibility()).filter(its => {"
        " const box = its.getBoundingClientRect(); return box.height < 44 || box.width < 44 })"
        ".map(its => its.id || its.outerHTML.slice(0, 80))"
    )
    assert small == []
    (_, _, right, _), (_, _, edge, _) = boxes(tab, "#text-form", "#piano")
    assert right <= edge


def test_the_focus_is_never_lost(tab):
    play_three(tab)
    for how in ("harmonize", "continue"):
        tab.ask(f"document.querySelector('[data-how={how}]').focus()")
        tab.key("Enter")
        tab.until("document.activeElement.id == 'roll'")
        tab.until(f"etude.session.now.label == '{how}'")
    tab.ask("document.getElementById('undo').focus()")
    while tab.ask("!document.getElementById('undo').disabled"):
        tab.key("Enter")
    assert tab.ask("document.activeElement.id") == "roll"


def test_a_beat_of_six_eighths_is_a_dotted_quarter(tab):
    count_sounds(tab)
    choose_model(tab, "dance", "6/8", "s-meter")
    tab.choose("#s-meter", "6/8")
    tab.choose("#length", "1.5")
    for pitch in (60, 64):
        tab.click(f'[data-pitch="{pitch}"]')
    in_roll(tab, "ArrowRight", "ArrowRight")
    assert "bar 1, beat 2." in status(tab)
    lines = tab.ask(
        "{ const pen = CanvasRenderingContext2D.prototype, was = pen.moveTo, seen = [];"
        " pen.moveTo = function (x, y) { if (this.canvas.id == 'roll' && y == 54) seen.push(x);"
        " return was.call(this, x, y) }; dispatchEvent(new Event('resize')); pen.moveTo = was;"
        " seen.slice(0, 2) }"
    )
    left = tab.ask("document.getElementById('roll').getBoundingClientRect().x")
    assert lines == pytest.approx([spot(tab, step, 60)[0] - left for step in (18, 54)], abs=1)
    tab.click("[name=mode][value=record] + span")
    tab.click("#record")
    first, *others = tab.until("clicks.length > 2 && clicks.slice(0, 3)")
    tab.click("#record")
    assert status(tab) == "Nothing was played."
    assert tab.ask("accents.slice(0, 2)") == [first, others[1]]
    beat = 1.5 * 60 / 88
    assert [at - first for at in others] == pytest.approx([beat, 2 * beat], abs=0.01)


def test_one_records_over_the_music_and_sees_what_one_plays(tab):
    tab.choose("#s-tempo", "240")
    type_in(tab, "C4:4 D4:4 " * 16)  # 32 seconds
    tab.until("etude.isReady")
    tab.click("[name=mode][value=record] + span")
    count_sounds(tab)
    tab.click("#record")
    says(tab, "Recording")
    tab.until("heard.length > 1")  # the music goes on
    tab.ask("document.activeElement.blur()")
    tab.key("d", "KeyD", kinds=("keyDown",))
    held = "etude.shown().notes.find(n => n[2] == 64)?.[1]"
    tab.until(f"globalThis.was = {held}")
    tab.until(f"{held} > was")  # it grows
    place = "document.getElementById('cursor').style.transform"
    tab.ask(f"globalThis.was = {place}")
    tab.until(f"!document.getElementById('cursor').hidden && {place} != was")
    tab.key("d", "KeyD", kinds=("keyUp",))
    tab.click("#record")
    says(tab, "Recorded 1 note.")
    assert len(notes(tab)) == 33
    ((onset, program, _),) = notes(tab, "n[5] && n[2] == 64")
    assert program == 40
    assert 0 < onset < 32 * 48
    tab.click("#undo")
    assert len(notes(tab)) == 32


def test_space_plays_and_control_z_undoes_wherever_the_focus_is(tab):
    play_three(tab)
    write(tab, "continue")
    tab.click("#play")
    assert tab.ask(PLAYS) == "Play"
    for selector in (".variation:nth-child(2)", '[data-pitch="72"]', "[name=mode] + span"):
        tab.click(selector)
        tab.ask(
            "if (document.getElementById('play').classList.contains('on')) "
            "document.getElementById('play').click()"
        )
        at = tab.ask("etude.session.at")
        tab.key(" ", "Space")
        assert tab.ask(PLAYS) == "Pause"
        tab.key(" ", "Space")
        assert tab.ask(PLAYS) == "Play"
        assert tab.ask("etude.session.at") == at  # no button was pressed by it
    for selector in ('[data-pitch="72"]', "#undo", ".variation:nth-child(3)"):
        tab.click(selector)
        at = tab.ask("etude.session.at")
        tab.key("z", "KeyZ", modifiers=browser.CONTROL)
        assert tab.ask("etude.session.at") == at - 1
    tab.ask("document.getElementById('to-start').focus()")
    tab.key("Tab")  # to a button, which the space presses then
    assert tab.ask("document.activeElement.id") == "undo"
    at = tab.ask("etude.session.at")
    tab.key(" ", "Space")
    assert tab.ask("etude.session.at") == at - 1
    tab.ask("document.getElementById('text').focus()")
    tab.key(" ", "Space")
    assert tab.ask("document.getElementById('text').value") == " "


def test_letters_play_after_one_has_chosen_in_a_list_with_the_mouse(tab):
    for by_tab in (False, True):
        tab.drag([tab.place("#text")])
        tab.ask("document.getElementById('length').focus()")
        if by_tab:
            tab.key("Tab", modifiers=browser.SHIFT)
            tab.key("Tab")
            assert tab.ask("document.activeElement.id") == "length"
        tab.choose("#length", "0.5")
        tab.key("h", "KeyH")
        assert len(tab.ask("etude.piece()?.notes ?? []")) == 1
        assert tab.ask("document.activeElement.id") == ("length" if by_tab else "")


def luminance(color):
    """The relative luminance of a color, as WCAG has it."""
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in color)
    ]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(*colors):
    """By how much the lighter of two colors is lighter, as WCAG has it."""
    dark, light = sorted(map(luminance, colors))
    return (light + 0.05) / (dark + 0.05)


def test_a_model_of_one_voice_is_not_asked_for_others(tab):
    type_in(tab, "C4 E4")
    for how, is_off in (("continue", False), ("harmonize", True), ("accompany", True)):
        tab.choose("#model", "runs/piano")
        off = f"document.querySelector('[data-how={how}]').disabled"
        tab.until(off if is_off else f"!{off}")
    assert "one voice" in tab.ask("document.getElementById('about-action').textContent")
    tab.phone()  # where this is said, the buttons have all of their words
    cut = "[...document.querySelectorAll('[data-how]')].filter(b => b.scrollWidth > b.clientWidth)"
    assert tab.ask(f"{cut}.length") == 0
    tab.choose("#model", "quartet")
    tab.until("!document.querySelector('[data-how=harmonize]').disabled")


def test_music_that_is_counted_in_seconds_has_no_notation(tab):
    hidden = (
        "[...document.querySelectorAll('#score-section, [data-file=musicxml]')].map(e => e.hidden)"
    )
    play_three(tab)
    assert tab.ask(hidden) == [False, False]
    tab.choose("#model", "runs/piano")
    tab.until("etude.isReady")
    tab.click("#clear")
    assert tab.ask(hidden) == [True, True]
    tab.choose("#model", "quartet")
    tab.until("etude.isReady")
    tab.click("#clear")
    assert tab.ask(hidden) == [False, False]


def test_a_drummer_strikes_drums_that_have_names_and_the_model_goes_on(tab):
    tab.choose("#model", "drums")
    tab.until("document.getElementById('hear-one').hidden")
    tab.until("etude.isReady")
    tab.click('[data-pitch="36"]')  # the kick, which no piano of tunes has
    tab.double_click(*spot(tab, 36, 38))
    says(tab, "Acoustic Snare added: Drums")
    assert notes(tab) == {(0, DRUMS, 36), (36, DRUMS, 38)}
    tab.hover("#status")
    x, y = spot(tab, 36, 38)
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 3, y=y)
    assert tab.ask("document.getElementById('roll').title") == "Acoustic Snare"
    end, _ = spot(tab, 36 + tab.ask("etude.piece().notes[1][1]"), 38)
    assert dark_pixels(tab, x + 3, y) > 2 * dark_pixels(tab, end - 5, y) > 0  # it fades
    assert tab.ask("document.querySelector('[data-how=harmonize]').disabled")
    write(tab, "continue")
    assert {program for _, program, _ in notes(tab)} == {DRUMS}
    type_in(tab, "36 38")
    assert notes(tab) == {(0, DRUMS, 36), (12, DRUMS, 38)}


def test_rewriting_says_that_ones_own_notes_were_there(tab):
    type_in(tab, "C4:2 E4:2 G4:4")
    in_roll(tab, "ArrowRight", modifiers=browser.SHIFT)
    tab.click("[data-how=rewrite]")
    says(tab, "these bars had 2 notes of yours, which Undo brings back")
    assert notes(tab, "n[5]") == {(48, 40, 67)}


def test_a_voice_is_kept_where_the_others_are_rewritten(tab):
    type_in(tab, "C5:2 E5 D5 / C4:2 G3:2 / E3:4")
    kept = notes(tab, "n[4] != 41")
    in_roll(tab, "ArrowRight", modifiers=browser.SHIFT)
    for name in ("Violin", "Cello"):
        tab.click(f"[data-voice='Keep {name}']")
    tab.click("[data-how=rewrite]")
    tab.until("etude.session.now.variations")
    assert notes(tab, "n[4] != 41") == notes(tab, "n[5]") == kept
    tab.click("[data-voice='Keep Viola']")
    tab.click("[data-how=rewrite]")
    says(tab, "All voices are kept")


def test_unlikely_notes_are_paler(tab):
    go_on_by_the_third(tab)
    tab.until("etude.surprise().length == etude.piece().notes.length")
    assert min(tab.ask("etude.surprise()")) >= 0
    tab.click("#unlikely")
    assert tab.ask("etude.surprise()") == []


def test_notes_are_as_loud_as_one_plays_or_makes_them(tab):
    assert tab.ask("document.getElementById('louder').hidden")  # a model that knows one loudness
    tab.choose("#model", "dance")
    tab.until("!document.getElementById('louder').hidden")
    (_, first, _, _), (_, last, _, _) = boxes(tab, "#draw", "#zoom-in")
    assert first == last  # in one row
    tab.ask(duet.PORTS)
    tab.click("#midi")
    says(tab, "connected")
    tab.ask(duet.PHRASE % ("[[60, 64], 60, []]", 0))
    for presses in (["#louder"] * 2, ["#softer"]):
        in_roll(tab, "ArrowRight")
        for button in presses:
            before = tab.ask("String(etude.piece().notes)")
            tab.click(button)
            tab.until(f"String(etude.piece().notes) != '{before}'")
    assert tab.ask("etude.piece().notes.map(n => n[3])") == [112, 64]


def test_a_link_brings_the_session_back_and_goes_on_the_same(tab, address):
    shown = "JSON.stringify([etude.piece(), etude.session.now.chosen, etude.session.at])"
    go_on_by_the_third(tab)
    link = copy_link(tab)
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
        assert notes(other) == THREE
        other.click("#undo")
        assert notes(other) == {(0, 40, 60), (12, 40, 64)}
        assert other.errors == []
    tab.open("about:blank")
    tab.open(address + "#s=AAAA")
    says(tab, "damaged")


@pytest.mark.parametrize(
    ("control", "value", "words"),
    [
        ("tempo", "9", "no tempo of 9"),
        ("cadence", "half", "a cadence is in a key"),
        ("polyphony", "0", "from 1 to 64"),
    ],
)
def test_what_cannot_be_is_said_beside_the_control(tab, control, value, words):
    tab.ask("document.getElementById('ask').open = true")
    tab.choose(f"#s-{control}", value)
    tab.until(f"document.querySelector('[data-control={control}]').textContent.includes('{words}')")


def type_chords(tab, bar, text):
    """Goes to the field of a bar, and types chords over what is there."""
    tab.click(f"#chords input:nth-of-type({bar})")
    tab.ask("document.activeElement.select()")
    tab.call("Input.insertText", text=text)
    tab.key("Enter")


def test_chords_are_typed_into_bars_and_what_is_written_holds_to_them(tab, address, tmp_path):
    shown = "[...document.querySelectorAll('#chords input')].map(its => its.value)"
    says_error = "document.querySelector('[data-control=bar_chords]').textContent"
    type_chords(tab, 1, "C | F C/E | H7 | C")
    assert tab.ask("document.activeElement.getAttribute('aria-label')") == "Chords of bar 2"
    tab.until(f"{says_error}.includes('no chord \\'H7\\'')")
    type_chords(tab, 3, "Dm7 G7")
    tab.until(f"!{says_error}")
    assert tab.ask(shown) == ["C", "F C/E", "Dm7 G7", "C", ""]
    write(tab, "continue")
    piece = tab.ask("etude.piece()")
    assert len(piece["bars"]) == 4  # to the last chord
    (tmp_path / "piece.mid").write_bytes(midi_bytes(piece_of({"piece": piece}).score))
    two = [("F", 48, 72), ("C/E", 72, 96), ("Dm7", 96, 120), ("G7", 120, 144)]
    chords = [("C", 0, 48), *two, ("C", 144, 192)]
    assert what_is_broken(tmp_path / "piece.mid", chords) == []

    type_chords(tab, 4, "")
    assert tab.ask("etude.session.now.chords") == ["C", "F C/E", "Dm7 G7"]
    tab.click("#undo")
    assert tab.ask(shown)[:4] == ["C", "F C/E", "Dm7 G7", "C"]
    link = copy_link(tab)
    tab.until("etude.isKept")
    for place in (address, link):  # after a reload, and by the link
        tab.open("about:blank")
        open_page(tab, place)
        tab.until(f"{shown}[0]")
        assert tab.ask(shown)[:4] == ["C", "F C/E", "Dm7 G7", "C"]
    tab.click("#clear")
    assert not any(tab.ask(shown))


def test_chords_cover_no_notes_where_the_window_is_narrow(tab):
    play_three(tab)
    for size in ((1200, 1000), (640, 700)):  # as a page that is zoomed in
        tab.resize(*size)
        of = "document.querySelector('{}').getBoundingClientRect()"
        room = f"{of.format('#chords input')}.bottom - {of.format('#roll')}.y"
        browser.until(lambda ask=room: tab.ask(ask) <= 24 + 30)


def test_in_an_empty_bar_the_model_offers_its_own_chords(tab):
    type_chords(tab, 1, "C")  # and the focus is in the next
    offers = "[...document.querySelectorAll('#offers button')].map(its => its.textContent)"
    names = tab.until(f"(its => its.length && its)({offers})")
    assert 1 <= len({*names}) == len(names) <= 3
    tab.click("#offers button:nth-child(1)")
    assert tab.ask("etude.session.now.chords") == ["C", names[0]]
    tab.ask("document.activeElement.blur()")
    tab.click("#chords input:nth-of-type(2)")  # of a bar that has one, nothing is offered
    assert tab.ask("document.getElementById('offers').hidden")
    tab.click("#clear")
    type_in(tab, "C5 E5 G5 C6 D5 F5 A5 D6")
    for how in ("harmonize", "continue"):  # under a tune, then in the place of what is written
        tab.click("#chords input:nth-of-type(2)")
        tab.until("!document.getElementById('offers').hidden")
        tab.click(f"[data-how={how}]")
        tab.until(f"etude.session.now.label == '{how}'")
        assert tab.ask("document.getElementById('offers').hidden")


def test_the_chords_of_what_is_there_are_named(tab):
    tab.choose("#model", "dance")
    tab.until("etude.isReady")
    type_in(tab, "Am:4 F:2 C/E:2 G7:4 / A3:4 F3:2 G3:2 B3:4")
    shown = "[...document.querySelectorAll('#chords input')].map(its => its.placeholder)"
    tab.until(f"{shown}[2] == 'G7'")
    assert tab.ask(shown) == ["Am", "F C/E", "G7", ""]


def test_the_score_of_the_bars_that_are_selected_is_engraved(tab, monkeypatch):
    play_three(tab)
    tab.click("#score-section summary")
    tab.until("document.getElementById('score-picture').naturalWidth > 100")
    monkeypatch.setattr(server, "MOST_ENGRAVED", 4)
    type_in(tab, "C4:4 E4 F4 G4 A4")
    about = "document.getElementById('about-score').textContent"
    tab.until(f"{about}.includes('more than 4 notes: select some bars')")
    tab.drag([number_of(tab, 1)])
    tab.until(f"{about} == 'Bar 2'")  # and all of it one's own
    assert not tab.ask("document.getElementById('score-picture').hidden")
    assert "400" in tab.errors.pop()  # the browser's own word for it


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
    tab.until(f"{PLAYS} == 'Pause'")
    type_in(tab, "C5:2 E5")
    assert notes(tab) == {(0, 40, 72), (24, 40, 76)}
    tab.click("#examples button:nth-of-type(5)")  # chord symbols
    tab.until("etude.piece().notes.length > 12")
    assert {pitch % 12 for onset, _, pitch in notes(tab) if onset == 0} == {9, 0, 4}


def test_fingers_bring_notes_in(tab):
    tab.touch('[data-pitch="60"]', '[data-pitch="64"]')
    tab.touch('[data-pitch="67"]')
    assert notes(tab) == {(0, 40, 60), (0, 40, 64), (12, 40, 67)}
    tab.click("[data-how=harmonize]")
    tab.until("etude.session.now.variations")
    whole = notes(tab)
    tab.click("#delete-last")
    assert status(tab).startswith("1 note deleted")
    assert whole - notes(tab) == {(12, 40, 67)}
    tab.click("#delete-last")  # all that was put in together
    assert notes(tab) == notes(tab, "!n[5]") == whole - {(0, 40, 60), (0, 40, 64), (12, 40, 67)}


def test_a_midi_keyboard_brings_notes_in(tab):
    tab.ask(duet.PORTS)
    tab.click("#midi")
    says(tab, "1 MIDI keyboard connected")
    hear = "midi.inputs.get('{}').onmidimessage({{ data: {}, timeStamp: 0 }})".format
    for message in ([0x90, 62, 90], [0xF8], [0x80, 62, 0]):
        tab.ask(hear("keys", message))
    tab.ask("midi.inputs.set('more', {}); midi.onstatechange()")  # another is plugged in
    for message in ([0x91, 65, 90], [0x91, 65, 0]):  # without a loudness: it is let go
        tab.ask(hear("more", message))
    assert notes(tab) == {(0, 40, 62), (12, 40, 65)}
    assert tab.ask("document.querySelectorAll('.key.on').length") == 0


def test_in_a_duet_the_model_answers_on_a_beat_until_one_plays_again(tab):
    tab.choose("#model", "bach")
    tab.until("etude.isReady")
    duet.connect(tab)
    duet.begin(tab, "beat")
    began, answered = duet.play(tab, [72, 74, 76, 77], 60_000 / 112)
    tempo = tab.ask("etude.piece().tempo[0][0]")
    assert tempo == pytest.approx(112, abs=6)  # as one played
    beat = 60_000 / tempo
    opens = tab.ask("etude.piece().notes.find(n => !n[5])[0]")
    assert opens in range(60, 600, 12)  # the beat after the pause, or a later one if all is slow
    assert (answered - began) / beat > opens / 12 - 0.5
    own = notes(tab, "n[5]")
    assert [pitch for _, _, pitch in sorted(own)] == [72, 74, 76, 77]
    says(tab, "The model answers")
    whole = notes(tab)
    _, again = duet.play(tab, [79, 77], beat, answered + 4 * beat)
    assert (again - answered) / beat > 6
    there = tab.ask("etude.session.states.map(s => s.label)")
    assert there[:3] == ["duet", "continue", "duet"]
    assert len(notes(tab, "n[5]")) == 6
    assert own < notes(tab, "n[5]")
    tab.until("etude.session.now.label === 'continue'")
    written, bars = notes(tab), tab.ask("etude.piece().bars.length")
    tab.click("#duet")
    tab.until(f"{PLAYS} == 'Play'")
    assert tab.ask(duet.HANGING) == 0
    heard = notes(tab)  # of the answer no more than that
    assert notes(tab, "n[5]") < heard < written
    assert tab.ask("etude.piece().bars.length") < bars
    tab.click("#undo")
    assert notes(tab) == written
    while tab.ask("etude.session.at") > 1:
        tab.click("#undo")
    assert notes(tab) == whole  # the first answer, to its end


def test_a_file_is_dropped_or_opened(tab, tmp_path):
    score, path = a_tune(0), tmp_path / "tune.mid"
    path.write_bytes(midi_bytes(score))
    assert drop(tab, path.read_bytes()) == "Reading tune.mid …"
    tab.until("etude.session.now?.label == 'tune.mid'")
    tune = score.notes[score.notes["program"] != DRUMS]
    onsets = {*map(tuple, tune[["onset", "pitch"]].tolist())}
    assert {(onset, pitch) for onset, _, pitch in notes(tab)} == onsets
    told = status(tab)
    assert told.startswith(f"{len(score.notes)} notes of Acoustic Grand Piano, Drums; ")
    assert f"{len(score.notes) - len(tune)} notes of Drums left out" in told
    assert "Acoustic Grand Piano became Violin" in told
    assert tab.ask("etude.piece().tempo[0][0]") == 100
    path.write_bytes(b"no MIDI")
    assert tab.ask("document.getElementById('file').accept.split(',')") == [*SUFFIXES, "audio/midi"]
    root = tab.call("DOM.getDocument")["root"]["nodeId"]
    node = tab.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    tab.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
    says(tab, "tune.mid: it is neither MIDI")
    assert len(notes(tab)) == len(tune)
    assert "400" in tab.errors.pop()  # the browser's own word for it


def test_parts_are_called_by_their_names(tab):
    choose_model(tab, "band", "MELODY")
    assert tab.ask("[...document.getElementById('voice').options].map(its => its.text)")[:3] == [
        *("MELODY", "BRIDGE", "PIANO")
    ]
    play_three(tab)
    write(tab, "accompany")
    legend = tab.ask("[...document.querySelectorAll('#legend b')].map(its => its.textContent)")
    assert legend[0] == "yours"
    assert {"MELODY", "BRIDGE", "PIANO"} & {*legend}
    # another model's piece keeps its players, and what is put in is one's own and stays it
    own = len(notes(tab, "n[5]"))
    choose_model(tab, "quartet", "Viola")
    again = tab.ask("[...document.querySelectorAll('#legend b')].map(its => its.textContent)")
    assert again == legend
    tab.click('[data-pitch="60"]')
    assert {program for _, program, _ in notes(tab)} <= {0, 1, 2, 128, 129 + 33}
    tab.click("[data-how=continue]")
    tab.until("etude.session.now.label === 'continue'")
    assert len(notes(tab, "n[5]")) == own + 1 < len(notes(tab))


def test_parts_sound_as_they_did_when_another_model_is_chosen(tab):
    choose_model(tab, "band", "MELODY")
    tab.choose("#voice", "2")
    tab.click('[data-pitch="60"]')
    choose_model(tab, "quartet", "Viola")
    duet.connect(tab)
    tab.click("#play")
    tab.click('[data-pitch="62"]')  # is played by the same part
    tab.until("sent.filter(([status]) => status >> 4 === 9).length > 1")
    assert tab.ask("sent.filter(([status]) => status >> 4 === 12).map(data => data[1])") == [0]


def test_what_was_asked_is_stopped_before_its_first_note(tab):
    play_three(tab)
    tab.ask("document.querySelector('[data-how=continue]').click()")
    assert not tab.ask("document.getElementById('stop-writing').hidden")
    tab.click("#clear")
    tab.choose("#s-key", "C major")  # is asked about, in turn
    tab.until("document.querySelector('[data-how=continue]').disabled === false")
    says(tab, "An empty page")
    assert notes(tab) == set()
    assert tab.ask("document.getElementById('stop-writing').hidden")


def test_what_is_stopped_early_ends_with_its_last_bar(tab, monkeypatch):
    def begin(_, message):
        yield {"begun": message["piece"], "changes": [], "opens": 36, "trained": 0}
        yield {"notes": [[row, 48, 48, 60 + row, 80, 40] for row in range(4)]}
        while True:
            time.sleep(0.05)
            yield {}

    monkeypatch.setitem(TASKS, "write", begin)
    play_three(tab)
    tab.choose("#s-bars", "32")
    tab.click("[data-how=continue]")
    tab.until("etude.piece().notes.length === 4")
    assert tab.ask("etude.piece().bars.length") == 33
    tab.click("#stop-writing")
    says(tab, "Stopped.")
    assert tab.ask("etude.session.now.variations.map(its => its.bars.length)") == [2] * 4


def test_what_the_model_was_asked_to_go_on_from_stays_as_it_is(tab):
    play_three(tab)
    key = "new KeyboardEvent('keydown', {key: 'k', bubbles: true})"
    tab.ask(f"document.querySelector('[data-how=continue]').click(); dispatchEvent({key})")
    tab.until("etude.session.now.variations")
    assert tab.ask("etude.session.states.map(state => state.label)")[-2:] == ["G4", "continue"]


def test_a_variation_without_a_new_note_is_not_the_first_that_is_heard(tab, monkeypatch):
    def write_second(_, message):
        piece = message["piece"]
        yield {"begun": piece, "changes": [], "opens": 0, "trained": 0}
        more = piece | {"notes": [*piece["notes"], [36, 12, 55, 80, 40, 0]]}
        yield {"done": [piece, more, more, piece]}

    monkeypatch.setitem(TASKS, "write", write_second)
    play_three(tab)
    write(tab, "harmonize")
    assert tab.ask("etude.session.now.chosen") == 1
    assert (36, 40, 55) in notes(tab)


def test_the_page_says_where_the_model_added_nothing(tab, monkeypatch):
    def write_nothing(_, message):
        yield {"begun": message["piece"], "changes": ["it rests"], "opens": 0, "trained": 0}
        yield {"done": [message["piece"]] * message["variations"]}

    monkeypatch.setitem(TASKS, "write", write_nothing)
    play_three(tab)
    write(tab, "harmonize")
    assert status(tab) == "The model added no notes; it rests."


def test_a_tune_that_was_made_with_another_model_is_a_tune(tab):
    play_three(tab)
    assert {program for _, program, _ in notes(tab)} == {40}
    tab.choose("#model", "song")
    tab.until("document.getElementById('voice').value == '68'")
    write(tab, "harmonize")
    assert notes(tab, "n[5]") == {(0, 68, 60), (12, 68, 64), (24, 68, 67)}  # too low for an oboe


def test_a_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(any_tab, all_models):
    gone = "document.getElementById('gone').hidden"
    with network.served(make_app(all_models)) as (_, port):
        open_page(any_tab, HERE.format(port))
        play_three(any_tab)
    any_tab.until(f"!{gone}")
    assert any_tab.ask("document.querySelector('[data-how=continue]').disabled")
    with network.served(make_app(all_models), port):
        any_tab.until(gone)
        assert notes(any_tab) == THREE
        any_tab.until("!document.querySelector('[data-how=continue]').disabled")
        assert status(any_tab) == "The server is back."
        assert not any_tab.ask("document.getElementById('status').classList.contains('bad')")
        any_tab.open("about:blank")
    any_tab.errors.clear()  # each try to reach it was one


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("is_phone", [False, True])
def test_axe_finds_nothing_serious(tab, tools, is_dark, is_phone):
    tab.dark(is_dark)
    if is_phone:
        tab.phone()
    go_on_by_the_third(tab)
    ask_why(tab, 4)
    tab.ask("for (const its of document.querySelectorAll('details')) its.open = true")
    tab.until("!document.getElementById('score-picture').hidden")
    tab.ask((tools / "axe-core/axe.min.js").read_text() + ";0")
    found = tab.ask(
        "axe.run(document).then(its => its.violations"
        ".filter(each => ['serious', 'critical'].includes(each.impact))"
        ".map(each => [each.id, each.nodes.map(node => node.html.slice(0, 120))]))"
    )
    assert found == []
    tab.click("[name=mode][value=record] + span")
    tab.click("#record")
    tab.hover("#record")  # which says Stop
    colors = tab.ask(
        "(s => [s.color, s.backgroundColor].map(c => c.match(/[0-9]+/g).map(Number)))"
        "(getComputedStyle(document.querySelector('#record:hover')))"
    )
    assert contrast(*colors) >= 4.5
    tab.click("#record")
    tab.hover('[data-pitch="61"]')  # a black key stays dark
    color = tab.ask(
        "getComputedStyle(document.querySelector('[data-pitch=\"61\"]')).backgroundColor"
        ".match(/[0-9]+/g).map(Number)"
    )
    assert luminance(color) < 0.1


@pytest.mark.parametrize("is_dark", [False, True])
def test_what_marks_is_seen(tab, is_dark):
    tab.dark(is_dark)
    colors = tab.ask(
        "{ const its = document.createElement('i'); document.body.append(its);"
        " ['--mark', '--paper', '--sheet'].map(name => { its.style.color = `var(${name})`;"
        " return getComputedStyle(its).color.match(/[0-9]+/g).map(Number) }) }"
    )
    mark, *grounds = colors
    for ground in grounds:
        assert (luminance(ground) < 0.2) == is_dark
        assert contrast(mark, ground) >= 3
