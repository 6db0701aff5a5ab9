"""Prepares MusicXML for a reader that trusts printed values and expects one instrument a part."""

from collections.abc import Sequence
from copy import deepcopy
from fractions import Fraction
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

# Printed values, in quarter notes.
_VALUES = {
    **{"long": Fraction(16), "breve": Fraction(8), "whole": Fraction(4), "half": Fraction(2)},
    **{"quarter": Fraction(1), "eighth": Fraction(1, 2), "16th": Fraction(1, 4)},
    **{"32nd": Fraction(1, 8), "64th": Fraction(1, 16), "128th": Fraction(1, 32)},
}


def made_plain(musicxml: str) -> str:
    """Return MusicXML with one instrument a part, and printed values that say how long notes last.

    Some programs leave out tuplets, hide or nest them, and write whole rests in bars of 2/4.
    verovio reads the printed values, but the durations beside them are what counts. So each note
    whose printed value differs from its duration becomes a tuplet. In some files, a voice rests for
    the whole of a measure twice, which would make the measure twice as long, so one of these rests
    is removed. A repeated passage begins after the previous repeat, even if no sign says so.
    """
    document = ElementTree.fromstring(musicxml)
    for entry in document.findall("part-list/score-part"):
        for part in document.findall("part"):
            if part.get("id") == entry.get("id"):
                _split(document, entry, part)
    for part in document.findall("part"):
        _begin_repeats([*part.iter("measure")])
    divisions, bar = Fraction(1), Fraction(4)  # divisions of a quarter note; quarter notes in a bar
    measure, rested = document, list[tuple[str, str]]()  # voices that rest for all of the measure
    for element in [*document.iter()]:
        if element.tag == "divisions":
            divisions = _number(element.text) or divisions
        elif element.tag == "time" and (unit := _number(element.findtext("beat-type"))):
            bar = 4 * _number(element.findtext("beats")) / unit
        elif element.tag == "measure":
            measure, rested = element, []
        elif element.tag == "note":
            is_rest, voice = element.find("rest") is not None, _voice(element)
            is_whole = is_rest and _number(element.findtext("duration")) == bar * divisions
            if is_whole and voice in rested and element in measure:
                measure.remove(element)
            else:
                rested += [voice] if is_whole else []
                _set_value(element, divisions)
    return ElementTree.tostring(document, "unicode")


def _begin_repeats(measures: Sequence[Element]) -> None:
    """Put a sign where a passage begins that is repeated after another, or in a new movement."""
    begin, is_signed, is_in_ending = 0, True, False  # the beginning of the piece needs no sign
    for number, measure in enumerate(measures):
        signs = {each.get("direction") for each in measure.iter("repeat")}
        is_signed |= "forward" in signs
        if "backward" in signs and not is_signed:
            line = Element("barline", location="left")
            SubElement(line, "repeat", direction="forward")
            measures[begin].insert(0, line)
        endings = [each.get("type") for each in measure.iter("ending")]
        is_ending = is_in_ending or "start" in endings
        is_in_ending = is_ending and not {"stop", "discontinue"} & {*endings}
        lines = [line for line in measure.iter("barline") if line.get("location") != "left"]
        is_over = any(line.findtext("bar-style") == "light-heavy" for line in lines)
        # a passage after a second ending is repeated without that ending
        if "backward" in signs or is_over or (is_ending and begin == number):
            begin, is_signed = number + 1, False


def _split(document: Element, entry: Element, part: Element) -> None:
    """Replace a part for several instruments by one part for each."""
    sounds = [*dict.fromkeys(element.get("id", "") for element in part.iter("instrument"))]
    entries = document.find("part-list")
    if len(sounds) < 2 or entries is None:
        return
    for sound in sounds:
        own_entry, own = deepcopy(entry), deepcopy(part)
        for each in (own_entry, own):
            each.set("id", f"{part.get('id')}-{sound}")
        for child in [*own_entry]:
            if child.tag in ("score-instrument", "midi-instrument") and child.get("id") != sound:
                own_entry.remove(child)
        name = own_entry.findtext("score-instrument/instrument-name")
        for label in own_entry.findall("part-name"):
            label.text = name or label.text
        for measure in own.iter("measure"):
            _keep(measure, sound, is_first=sound == sounds[0])
        entries.insert([*entries].index(entry), own_entry)
        document.insert([*document].index(part), own)
    entries.remove(entry)
    document.remove(part)


def _keep(measure: Element, sound: str, is_first: bool) -> None:
    """Keep the notes of one instrument in a measure; rests take the time of the others."""
    leader: Element | None = None  # a rest in place of a chord's first note
    for note in measure.findall("note"):
        instrument, chord = note.find("instrument"), note.find("chord")
        is_own = is_first if instrument is None else instrument.get("id") == sound
        if note.find("rest") is not None or (is_own and chord is None):
            leader = None
        elif is_own and leader is not None and chord is not None:
            measure.remove(leader)
            note.remove(chord)
            leader = None
        elif chord is not None and not is_own:
            measure.remove(note)
        elif not is_own:
            for child in [*note]:
                if child.tag in ("pitch", "unpitched", "tie", "notations", "instrument"):
                    note.remove(child)
            note.insert(0, Element("rest"))
            note.attrib.pop("id", None)  # this is the note's, in its own part
            leader = note


def _set_value(note: Element, divisions: Fraction) -> None:
    """Make a note a tuplet of its own, with the ratio that its duration needs, if it needs one."""
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


def _voice(note: Element) -> tuple[str, str]:
    """Return the voice and the staff of a note."""
    return note.findtext("voice", ""), note.findtext("staff", "")


def _number(text: str | None) -> Fraction:
    """Return the number in a text, or 0."""
    try:
        return max(Fraction(text or 0), Fraction(0))
    except (ValueError, ZeroDivisionError):
        return Fraction(0)
