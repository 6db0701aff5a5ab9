"""Headless Chromium, driven over its DevTools protocol: pages as people use them."""

import itertools
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from websockets.sync.client import connect

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
# What a page draws first, its seed, is the same in every run.
SAME_CHANCE = """
    {
        const random = Math.random, draws = [0.25]
        Math.random = () => draws.pop() ?? random()
    }
"""
PATIENCE_SECONDS = 240  # in a fresh clone on one core, compiling takes minutes
ALT, CONTROL, SHIFT = 1, 2, 8  # modifiers of keys
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"),
    *("--remote-debugging-port=0", "--hide-scrollbars", "--disable-dev-shm-usage"),
)


@contextmanager
def chromium(size=(1200, 1000)):
    """A tab of a new browser, as a `Tab`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        flags = [*FLAGS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"]
        process = subprocess.Popen(
            [CHROMIUM, *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            port = until(lambda: _port(Path(folder)))
            with connect(f"ws://127.0.0.1:{port[0]}{port[1]}", max_size=None) as socket:
                yield Tab(socket, size)
        finally:
            process.terminate()
            process.wait(20)


def _port(folder):
    file = folder / "DevToolsActivePort"
    lines = file.read_text().split() if file.is_file() else []
    return lines if len(lines) == 2 else None


def until(ask):
    """What `ask()` gives as soon as that is true; fails after some time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (answer := ask()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
    return answer


class Tab:
    """A tab: what is in it, and what a person's hands do."""

    def __init__(self, socket, size):
        self.socket, self.numbers, self.session, self.errors = socket, itertools.count(1), None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=SAME_CHANCE)
        self.resize(*size)

    def call(self, method, **parameters):
        """The result of a command."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        self.socket.send(
            json.dumps(message | ({"sessionId": self.session} if self.session else {}))
        )
        while (heard := json.loads(self.socket.recv(60))).get("id") != number:
            self._note(heard)
        assert "error" not in heard, heard["error"]
        return heard["result"]

    def _note(self, event):
        """Keeps what went wrong in the page."""
        if event.get("method") == "Runtime.exceptionThrown":
            details = event["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.errors.append(
                f"{event['params']['entry']['text']} {event['params']['entry'].get('url')}"
            )

    def resize(self, width, height, scale=1, mobile=False):
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def phone(self, is_phone=True, size=(390, 844)):
        """Is a phone, which has fingers in place of a mouse, or is none any more."""
        self.resize(*((*size, 2, True) if is_phone else (1200, 1000)))
        self.call("Emulation.setTouchEmulationEnabled", enabled=is_phone, maxTouchPoints=5)

    def dark(self, is_dark=True):
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, address):
        self.call("Page.navigate", url=address)
        until(lambda: self.ask("document.readyState") == "complete")

    def ask(self, expression):
        """The value of JavaScript, awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, expression):
        return until(lambda: self.ask(expression))

    def place(self, selector):
        """The middle of an element, scrolled into view."""
        find = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{find}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.ask(f"(b => [b.x, b.y, b.width, b.height])({find}.getBoundingClientRect())")
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def click(self, selector):
        """Clicks on an element as soon as it is there, can be clicked on, and stands still."""
        find = f"document.querySelector({json.dumps(selector)})"
        self.until(f"!!{find} && !{find}.disabled")
        place = None
        while (now := self.place(selector)) != place:
            place = now
        self.drag([place])

    def drag(self, places, modifiers=0):
        """Presses the mouse at the first place and lets go at the last."""
        held = {"button": "left", "buttons": 1, "clickCount": 1, "modifiers": modifiers}
        kinds = ["mousePressed", *["mouseMoved"] * (len(places) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*places, places[-1]], strict=True):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def double_click(self, x, y):
        for _ in range(2):
            self.drag([(x, y)])

    def hover(self, selector):
        """Puts the mouse on an element, and presses nothing."""
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def tap(self, x, y):
        """Touches a place with a finger for a moment."""
        self.swipe(x, y, 0)

    def swipe(self, x, y, distance, down=0):
        """Draws a finger to the side from a place, and down."""
        steps = range(11 if distance or down else 1)
        places = [{"x": x + step * distance / 10, "y": y + step * down / 10} for step in steps]
        for number, place in enumerate(places):
            kind = "touchMove" if number else "touchStart"
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[place])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def touch(self, *selectors):
        """Puts a finger on each of these at the same time, and takes all away."""
        for selector in selectors:
            self.place(selector)
        points = [
            dict(zip("xy", self.place(selector), strict=True), id=number)
            for number, selector in enumerate(selectors)
        ]
        for kind, fingers in (("touchStart", points), ("touchEnd", [])):
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)

    def choose(self, selector, value):
        """Chooses one of a list, or fills in a field."""
        self.ask(
            f"(its => {{ its.value = {json.dumps(value)}; for (const kind of ['input', 'change'])"
            f" its.dispatchEvent(new Event(kind, {{bubbles: true}})) }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def key(self, key, code=None, modifiers=0, kinds=("keyDown", "keyUp")):
        typed = {"Enter": "\r", " ": " "}
        for kind in kinds:
            text = {"text": typed[key]} if key in typed and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=code or key,
                windowsVirtualKeyCode={"Tab": 9, " ": 32}.get(key, 0),
                modifiers=modifiers,
                **text,
            )
