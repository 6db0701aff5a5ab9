"""One HTML page that needs nothing else: what its parts are made of.

Elements come from the standard library's tree, so every tag is closed and whatever a file is
called is text, never markup. Pictures and sound are in the page itself, as data: URIs.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, tostring

from common.files import write_atomically
from data.score import Score
from rendering.audio import mu_law_wav

_STYLE = Path(__file__).with_name("page.css")
_FIGURE_SPACE, _PUNCTUATION_SPACE = "\N{FIGURE SPACE}", "\N{PUNCTUATION SPACE}"

Child = Element | str


def element(name: str, *children: Child, **attributes: str) -> Element:
    """An element around text and others; `class_` is its class, `aria_label` its aria-label."""
    whole = Element(name, {key.rstrip("_").replace("_", "-"): v for key, v in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            whole.append(child)
        elif len(whole):
            whole[-1].tail = (whole[-1].tail or "") + child
        else:
            whole.text = (whole.text or "") + child
    return whole


def section(title: str, *children: Child) -> Element:
    """A chapter of the page."""
    name = title.lower().replace(" ", "-")
    return element("section", element("h2", title), *children, id=name)


def facts(pairs: Sequence[tuple[str, str]]) -> Element:
    """Terms and what they are."""
    rows = [element("div", element("dt", term), element("dd", what)) for term, what in pairs]
    return element("dl", *rows, class_="facts")


def contents(sections: Sequence[Element]) -> Element:
    """Links to chapters."""
    links = [element("a", str(its[0].text), href=f"#{its.get('id')}") for its in sections]
    return element("nav", *links, aria_label="Contents")


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[Child]], marked: str = ""
) -> Element:
    """A table whose first column names its rows; columns of figures align at the point.

    The row of the name `marked` stands out.

    A column is of figures where every entry is text that begins with a digit or a sign, or is
    NaN or nothing.
    """
    columns = [_aligned(column) for column in zip(*rows, strict=True)]
    is_figure = [column is not None for column in columns]
    entries = [c or list(given) for c, given in zip(columns, zip(*rows, strict=True), strict=True)]

    def cell(name: str, column: int, child: Child, **more: str) -> Element:
        kind = "figure" if is_figure[column] else "text"
        is_nan = isinstance(child, str) and child.strip().startswith("NaN")
        return element(name, child, class_=kind + " nan" * is_nan, **more)

    top = [cell("th", column, name, scope="col") for column, name in enumerate(head)]
    body = [
        element(
            "tr",
            cell("th", 0, row[0], scope="row"),
            *(cell("td", column, child) for column, child in enumerate(row[1:], start=1)),
            class_="marked" if row[0] == marked else "",
        )
        for row in zip(*entries, strict=True)
    ]
    whole = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *top)),
        element("tbody", *body),
    )
    return _wide(whole, caption)


def _aligned(column: Sequence[Child]) -> list[Child] | None:
    """A column of figures, padded to the same number of digits after the point; or None."""
    texts = [child for child in column if isinstance(child, str)]
    if len(texts) < len(column) or not any(text[:1].isdigit() for text in texts):
        return None
    if not all(not t or t == "NaN" or t[0].isdigit() or t[0] in "±[\N{MINUS SIGN}" for t in texts):
        return None
    after = [len(text.partition(".")[2]) for text in texts]
    padded: list[Child] = []
    for text, digits in zip(texts, after, strict=True):
        missing = max(after) - digits
        point = _PUNCTUATION_SPACE if max(after) and not digits else ""
        padded.append(text + point + _FIGURE_SPACE * missing)
    return padded


def chart(svg: str, alt: str, caption: str) -> Element:
    """A chart as SVG: sharp at any size."""
    return _figure(_data_uri(svg.encode(), "image/svg+xml"), alt, caption, "chart")


def roll(png: bytes, alt: str, caption: str) -> Element:
    """A picture of music over time."""
    return _figure(_data_uri(png, "image/png"), alt, caption, "roll")


def _figure(source: str, alt: str, caption: str, kind: str) -> Element:
    image = element("img", src=source, alt=alt, class_=kind)
    return element("figure", _wide(image, alt), element("figcaption", caption))


def _wide(child: Element, label: str) -> Element:
    """What scrolls by itself where the screen is narrow, with the keyboard too."""
    return element("div", child, class_="wide", tabindex="0", role="region", aria_label=label)


def player(score: Score, label: str) -> Element:
    """Something to play a Score with."""
    source = _data_uri(mu_law_wav(score), "audio/wav")
    return element("audio", controls="", preload="metadata", src=source, aria_label=label)


def _data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def write_page(title: str, body: Sequence[Element], path: str | Path) -> None:
    """Writes a page of these parts, whole or not at all."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", _STYLE.read_text(encoding="utf-8")),
    )
    whole = element("html", head, element("body", element("main", *body)), lang="en")
    text = tostring(whole, encoding="unicode", method="html")
    with write_atomically(path) as beside:
        beside.write_text(f"<!doctype html>\n{text}\n", encoding="utf-8")
