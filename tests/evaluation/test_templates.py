"""The parts of a page: text is text, figures align, nothing is fetched."""

import re
from html.parser import HTMLParser

from evaluation.html_report import TEMPLATES, environment
from evaluation.tables import Table

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


def macro(name, *values):
    return str(getattr(environment().get_template("macros.html").module, name)(*values))


def test_what_a_file_is_called_is_text_never_markup():
    picture = "data:image/png;base64,AA=="
    page = Reader(
        macro("table", Table(HOSTILE, (HOSTILE, "x"), [(HOSTILE, "1")]))
        + macro("figure", picture, "roll", HOSTILE, HOSTILE)
        + macro("fact", HOSTILE, HOSTILE)
    )
    names = {name for name, _, _ in page.elements}
    assert not names & {"script", "p"}
    assert page.rows(HOSTILE) == [[HOSTILE, "x"], [HOSTILE, "1"]]
    assert page.all("img") == [({"src": picture, "alt": HOSTILE, "class": "roll"}, "")]
    assert page.all("figcaption") == page.all("dt") == page.all("dd") == [({}, HOSTILE)]
    page = Reader(macro("table", Table("t", ("", "x"), [(HOSTILE, "1")]), {HOSTILE: HOSTILE}))
    assert [text for _, text in page.all("span")] == ["t", HOSTILE, HOSTILE]


def test_the_style_fetches_nothing():
    style = (TEMPLATES / "report.css").read_text()
    assert "prefers-color-scheme: dark" in style
    assert not re.search(r"url\(|@import|@font-face|https?:", style)
    assert "&" not in style  # in a style nothing is unescaped
    assert "<" not in style


def test_figures_align_at_the_point():
    rows = [("a", "1.25", "NaN", "x"), ("b", "\N{MINUS SIGN}10", "2.5", ""), ("c", "3.5", "", "1")]
    page = Reader(macro("table", Table("t", ("", "one", "two", "three"), rows)))
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
    table = Table("t", ("who", "n"), [("a", "1"), ("b", "2")], marked="b")
    page = Reader(macro("table", table))
    assert [attributes["scope"] for attributes, _ in page.all("th")] == ["col", "col", "row", "row"]
    assert [attributes.get("class") for attributes, _ in page.all("tr")] == [None, "", "marked"]
    assert page.rows("t") == [["who", "n"], ["a", "1"], ["b", "2"]]
