"""The embedded corpus of folk tunes: Ryan's Mammoth Collection and O'Neill's Music of Ireland.

These are reels, jigs, hornpipes and airs for one voice, as music21 has them in ABC notation. Like
the chorales, they are read as they are printed: an upbeat is a short bar, repeats are not played
twice, and of two endings the second is played. music21 has other collections, which are not read:
Essen's is not for commercial use, Aird's is sold by its editor, and nobody knows where the fife
tunes come from.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from music21 import abcFormat, common, pitch
from tqdm import tqdm

from data.corpus import embedded
from data.corpus.duplicates import fingerprint_of, first_tied
from data.corpus.embedded import BuildReport, LeftOutError, Pieces
from data.corpus.options import SPLITS
from data.score import Grid, Score

TITLE = "folk tunes"
COLLECTIONS = {"ryan": "ryansMammoth", "oneill": "oneills1850"}  # folders of music21's corpus
PROGRAM = 40  # violin, like the chorales' soprano, so that its tunes can be harmonized
# Quarter notes a minute for each meter, since hardly any tune has a tempo mark. A beat of a dance
# takes about half a second; it is a half note in 2/2 and a dotted quarter in 6/8.
TEMPO_BPM = {(2, 4): 105, (4, 4): 150, (2, 2): 200, (6, 8): 165, (9, 8): 165, (12, 8): 165}
OTHER_TEMPO_BPM = 120
# Tunes that share this many intervals in a row are versions of one tune. With 14, a tenth of all
# tunes would be, because of runs and arpeggios that all tunes have.
RUN = 16
HELD_OUT = 0.1  # share of the tunes in valid, and also in test


def build(folder: Path, grid: Grid) -> BuildReport:
    """Write every tune to `folder/SPLIT/NAME.mid`; see `build_folder`.

    All versions of a tune, in any key and from either collection, go to one split. Of versions that
    are the same note for note, the first is kept.
    """
    return embedded.build_folder(folder / "folk.json", grid, partial(_tunes, grid))


def _tunes(grid: Grid) -> Pieces:
    """Yield each tune under its split and name, or why it is left out."""
    tunes: dict[str, Score] = {}
    for name, tokens in read_tunes():
        try:
            if name in tunes:
                raise LeftOutError("of a number that another has")
            tunes[name] = tune_score(tokens, grid)
        except LeftOutError as reason:
            yield name, reason
    scores = list(tunes.values())
    copies: set[bytes] = set()
    first = first_versions(scores)
    names = list(tunes)
    for number, copy in enumerate(map(fingerprint_of, scores)):
        if copy in copies:
            yield names[number], LeftOutError("the same as another, note for note")
        else:
            yield f"{_split(names[first[number]])}/{names[number]}", scores[number]
        copies.add(copy)


def first_versions(tunes: Sequence[Score]) -> list[int]:
    """Return, for each tune, the number of the first that it is a version of, even indirectly."""
    alike, seen = list[tuple[int, int]](), dict[bytes, int]()
    for number, tune in enumerate(tunes):
        intervals = np.diff(tune.notes["pitch"]).astype(np.int8)
        for begin in range(len(intervals) - RUN + 1):
            run = intervals[begin : begin + RUN].tobytes()
            alike.append((number, seen.setdefault(run, number)))
    return first_tied(len(tunes), alike)


def _split(name: str) -> str:
    """Return the split of a tune and its versions, drawn by the name of the first version."""
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    share = int.from_bytes(digest) / 2**32
    train, valid, test = SPLITS
    return valid if share < HELD_OUT else test if share < 2 * HELD_OUT else train


def read_tunes() -> Iterator[tuple[str, list[abcFormat.ABCToken]]]:
    """Yield the name and the tokens of each tune that music21 has, in a fixed order."""
    root = common.getCorpusFilePath()
    for name, collection in COLLECTIONS.items():
        paths = sorted((root / collection).glob("*.abc"))
        for path in tqdm(paths, collection, unit="file"):
            tunes = parse_abc(path.read_text(encoding="utf-8"))
            for number, tokens in tunes.items():
                title = path.stem if len(tunes) == 1 else f"{number:04}"
                yield f"{name}-{title}", tokens


def parse_abc(text: str) -> dict[int, list[abcFormat.ABCToken]]:
    """Return the tokens of each tune in a file of ABC notation, by the tune's number."""
    # from version 2 on, an accidental holds to the end of its bar, as in print
    handler = abcFormat.ABCHandler(abcVersion=(2, 1, 0))
    handler.process(text)
    return {number: tune.tokens for number, tune in handler.splitByReferenceNumber().items()}


def tune_score(tokens: Iterable[abcFormat.ABCToken], grid: Grid) -> Score:
    """Return the score of a tune. Tied notes are one note, and grace notes are left out.

    Of two notes at once, the higher one is kept.

    Raises:
        LeftOutError: the tune has no meter, or bars that its meter does not fill.
    """
    tune = _Tune()
    for token in tokens:
        tune.read(token)
    tune.end_bar(is_sign=True)
    if tune.is_first_ending or not tune.notes:
        raise LeftOutError("without an end")
    return embedded.notated_score(
        tune.bars, {PROGRAM: tune.notes}, lambda meter: TEMPO_BPM.get(meter, OTHER_TEMPO_BPM), grid
    )


@dataclass
class _Tune:
    """A tune that is read token by token. Times are in quarter notes."""

    bars: list[embedded.Bar] = field(default_factory=list)
    notes: embedded.Line = field(default_factory=list)
    meter: tuple[int, int] | None = None
    time: embedded.Quarters = Fraction(0)
    is_after_sign: bool = True  # whether the bar begins at a repeat sign or a double bar
    is_first_ending: bool = False

    def read(self, token: abcFormat.ABCToken) -> None:
        """Read the next token."""
        if isinstance(token, abcFormat.ABCMetadata):
            if token.isMeter():
                found = token.getTimeSignatureParameters()
                self.meter = found[:2] if found else None
        elif isinstance(token, abcFormat.ABCBar):
            self.read_bar_line(token)
        elif isinstance(token, abcFormat.ABCNote) and not (token.inGrace or self.is_first_ending):
            self.read_note(token)

    def read_bar_line(self, token: abcFormat.ABCBar) -> None:
        """End the bar; a first ending goes on until the repeat sign after it."""
        if token.repeatForm == "first":
            self.is_first_ending = True
        elif token.repeatForm == "second":
            self.is_first_ending = False
        elif not self.is_first_ending:
            self.end_bar(is_sign=not token.isRegular())
        elif token.repeatForm == "end":
            self.is_first_ending = False

    def end_bar(self, is_sign: bool) -> None:
        """End the bar at a bar line or at a sign; bars before and after a sign may be short."""
        start = self.bars[-1].end if self.bars else Fraction(0)
        if self.time > start:
            if self.meter is None:
                raise LeftOutError("without a meter")
            whole = Fraction(4 * self.meter[0], self.meter[1])
            if self.time - start > whole:
                raise LeftOutError("with a bar longer than its meter")
            if self.time - start < whole and not is_sign and not self.is_after_sign:
                raise LeftOutError("with a bar shorter than its meter")
            self.bars.append(embedded.Bar(self.meter, start, self.time))
            self.is_after_sign = is_sign
        self.is_after_sign = self.is_after_sign or is_sign

    def read_note(self, token: abcFormat.ABCNote) -> None:
        """Read a note, a chord or a rest."""
        length = token.quarterLength
        if token.activeTuplet:
            length *= token.activeTuplet.tupletMultiplier()
        start, self.time = self.time, self.time + Fraction(length).limit_denominator(96)
        sounding = token.subTokens if isinstance(token, abcFormat.ABCChord) else [token]
        pitches = [pitch.Pitch(note.pitchName).midi for note in sounding if not note.isRest]
        if pitches:
            is_tied = token.tie in ("continue", "stop")
            embedded.add_note(self.notes, start, self.time, max(pitches), is_tied)
