"""What a page is made of: text is text, figures align, nothing is fetched."""

import re
from html.parser import HTMLParser
from xml.etree.ElementTree import tostring

from evaluation.page import element, table, write_page

HOSTILE = "<script>x='\"&amp;</p>"


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

    def rows(self, caption):
        """The texts of the cells of a table, row by row: of its head, then of its body."""
        found, rows = False, []
        for name, _, text in self.elements:
            if name == "table":
                found = False
            elif name == "span" and text.startswith(caption):
                found, rows = True, []
            elif name == "tr" and found:
                rows.append([])
            elif name in ("td", "th") and found:
                rows[-1].append(text.strip())
            if rows:
                whole = rows
        return whole


def html(whole):
    return tostring(whole, encoding="unicode", method="html")


def test_what_a_file_is_called_is_text_never_markup(tmp_path):
    path = tmp_path / "a.html"
    body = [
        element("p", HOSTILE, element("em", HOSTILE), HOSTILE, title=HOSTILE),
        table(HOSTILE, (HOSTILE, "x"), [(HOSTILE, "1")]),
    ]
    write_page(HOSTILE, body, path)
    page = Reader(path.read_text())
    assert not page.all("script")
    assert page.all("title") == [({}, HOSTILE)]
    assert page.all("p") == [({"title": HOSTILE}, HOSTILE * 2)]
    assert page.all("em") == [({}, HOSTILE)]
    assert page.rows(HOSTILE) == [[HOSTILE, "x"], [HOSTILE, "1"]]
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


def test_the_style_fetches_nothing(tmp_path):
    write_page("t", [element("p", "x")], tmp_path / "a.html")
    page = Reader((tmp_path / "a.html").read_text())
    ((_, style),) = page.all("style")
    assert "prefers-color-scheme: dark" in style
    assert not re.search(r"url\(|@import|@font-face|https?:", style)
    assert "&" not in style  # in a style nothing is unescaped


def test_figures_align_at_the_point():
    rows = [("a", "1.25", "NaN", "x"), ("b", "\N{MINUS SIGN}10", "2.5", ""), ("c", "3.5", "", "1")]
    page = Reader(html(table("t", ("", "one", "two", "three"), rows)))
    cells = page.all("td")
    columns = [cells[column::3] for column in range(3)]
    assert {attributes["class"] for attributes, _ in columns[0]} == {"figure"}
    # each text has as many characters after the point, figure spaces being as wide as digits
    point = "\N{PUNCTUATION SPACE}"
    ends = [re.split(rf"[.{point}]", text)[1] for _, text in columns[0]]
    assert [len(end) for end in ends] == [2, 2, 2]
    assert [attributes["class"] for attributes, _ in columns[1]] == [
        "figure nan",
        "figure",
        "figure",
    ]
    assert {attributes["class"] for attributes, _ in columns[2]} == {"text"}  # not all are figures


def test_a_table_names_its_rows_and_columns_and_marks_one():
    page = Reader(html(table("t", ("who", "n"), [("a", "1"), ("b", "2")], marked="b")))
    assert [attributes["scope"] for attributes, _ in page.all("th")] == ["col", "col", "row", "row"]
    assert [attributes.get("class") for attributes, _ in page.all("tr")] == [None, "", "marked"]
    assert page.rows("t") == [["who", "n"], ["a", "1"], ["b", "2"]]
