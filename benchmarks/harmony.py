"""How many of the chords are found that people have named.

    python -m benchmarks.harmony
    python -m benchmarks.harmony --tunes ../shared/corpora/nottingham

Shares of the time for which the root is found, and the root and the kind: of the first twenty
chorales of Riemenschneider, by the analyses that come with music21, where they and the score are of
one length and key; and of a folder of MIDI files whose second track has the chords, as those of
Nottingham have. Half of the chorales and 32 tunes set the numbers in data/harmony.py.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pretty_midi
from music21 import corpus
from numpy.typing import NDArray

from benchmarks.tables import parser_of
from data.chords import CHORDS
from data.corpus.bach import chorale_score
from data.files.read import read_score
from data.harmony import chords_of
from data.score import Grid, Score

CHORALES = range(1, 21)
OTHER_EDITIONS = (6, 11, 14, 15, 17)  # of another length or key, or not in four parts
SHAPES = {frozenset(above): kind for kind, above in reversed(CHORDS.items())}
Named = list[tuple[int, int, int, str]]  # begin, end, root, kind


def of_chorale(number: int) -> tuple[Score, Named]:
    """Return a chorale and the chords that its analysis has."""
    names = corpus.chorales.Iterator(
        number, number, numberingSystem="riemenschneider", returnType="filename"
    )
    score = chorale_score(corpus.parse(next(iter(names))), Grid())
    analysis = corpus.parse(f"bach/choraleAnalyses/riemenschneider{number:03d}.rntxt")
    named = []
    for each in analysis.recurse().getElementsByClass("RomanNumeral"):
        begin, root = each.getOffsetInHierarchy(analysis), each.root().pitchClass
        shape = frozenset((pitch.pitchClass - root) % 12 for pitch in each.pitches)
        end = begin + each.quarterLength
        named.append((round(begin * 12), round(end * 12), root, SHAPES.get(shape, "?")))
    return score, named


def of_tune(path: Path) -> tuple[Score, Named]:
    """Return a tune and the chords of its second track, the lowest note of which is the root."""
    midi = pretty_midi.PrettyMIDI(str(path))
    chords: dict[tuple[int, int], list[int]] = {}
    for note in midi.instruments[1].notes if len(midi.instruments) > 1 else ():
        begin, end = (
            round(midi.time_to_tick(time) / midi.resolution * 12) for time in (note.start, note.end)
        )
        chords.setdefault((begin, end), []).append(note.pitch)
    named = []
    for (begin, end), pitches in chords.items():
        root = min(pitches) % 12
        shape = frozenset((pitch - root) % 12 for pitch in pitches)
        named.append((begin, end, root, SHAPES.get(shape, "?")))
    return read_score(path, Grid())[0], named


def found(score: Score, named: Named) -> NDArray[np.int64]:
    """Return for how many steps the root is found, root and kind, and the steps that are named."""
    spans, counts = chords_of(score), np.zeros(3, dtype=np.int64)
    for begin, end, root, kind in named:
        counts[2] += end - begin
        for span in spans:
            both = max(min(end, span.end) - max(begin, span.begin), 0)
            counts[0] += both * (span.chord.root == root)
            counts[1] += both * (span.chord.root == root and span.chord.kind == kind)
    return counts


def pieces(tunes: Path | None) -> Iterator[tuple[str, list[tuple[Score, Named]]]]:
    """Yield a line's name, and what is judged in it."""
    chorales = [of_chorale(number) for number in CHORALES if number not in OTHER_EDITIONS]
    yield "chorales", chorales[0::2]
    yield "chorales, held out", chorales[1::2]
    if tunes:
        yield "tunes", [of_tune(path) for path in sorted(tunes.glob("*.mid"))]


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--tunes", type=Path, metavar="FOLDER", help="MIDI files with chords")
    options = parser.parse_args()
    for name, judged in pieces(options.tunes):
        root, both, steps = np.sum([found(*each) for each in judged], axis=0).tolist()
        print(f"{name}, {len(judged)}: root {root / steps:.1%}, root and kind {both / steps:.1%}")


if __name__ == "__main__":
    main()
