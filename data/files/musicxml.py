"""MusicXML whose printed note values say how long notes last, for readers that trust them."""

from fractions import Fraction
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

# Quarter notes.
_VALUES = {
    **{"long": Fraction(16), "breve": Fraction(8), "whole": Fraction(4), "half": Fraction(2)},
    **{"quarter": Fraction(1), "eighth": Fraction(1, 2), "16th": Fraction(1, 4)},
    **{"32nd": Fraction(1, 8), "64th": Fraction(1, 16), "128th": Fraction(1, 32)},
}


def with_exact_values(musicxml: str) -> str:
    """Return MusicXML in which each note that lasts another time than it says is a tuplet.

    Programs leave out tuplets, hide or nest them, and write whole rests in bars of 2/4; verovio
    reads the printed values, but what counts is the duration beside them.
    """
    document = ElementTree.fromstring(musicxml)
    divisions = Fraction(1)  # a quarter note
    for element in document.iter():
        if element.tag == "divisions":
            divisions = _number(element.text) or divisions
        elif element.tag == "note":
            _set_value(element, divisions)
    return ElementTree.tostring(document, "unicode")


def _set_value(note: Element, divisions: Fraction) -> None:
    """Make a note a tuplet of its own, with the ratio that its duration asks for, if any."""
    rest, quarters = note.find("rest"), _number(note.findtext("duration")) / divisions
    is_whole_bar = rest is not None and rest.get("measure") == "yes"
    is_of_two = any(sign.get("type") != "single" for sign in note.iter("tremolo"))
    if not quarters or is_whole_bar or is_of_two or note.find("chord") is not None:
        return
    for parent in (note, *note.findall("notations")):
        for child in [*parent]:
            if child.tag in ("time-modification", "tuplet"):
                parent.remove(child)
    kind = note.findtext("type", "")
    if kind not in _VALUES:
        kind = "quarter"
        for child in note.findall("type"):
            note.remove(child)
        SubElement(note, "type").text = kind
    ratio = _VALUES[kind] * (2 - Fraction(1, 2 ** len(note.findall("dot")))) / quarters
    if ratio != 1:
        modification = SubElement(note, "time-modification")
        SubElement(modification, "actual-notes").text = str(ratio.numerator)
        SubElement(modification, "normal-notes").text = str(ratio.denominator)
        notations = SubElement(note, "notations")
        for end in ("start", "stop"):
            SubElement(notations, "tuplet", type=end)


def _number(text: str | None) -> Fraction:
    """Return a number that a text says, or 0."""
    try:
        return max(Fraction(text or 0), Fraction(0))
    except (ValueError, ZeroDivisionError):
        return Fraction(0)
