"""Accompaniments of held-out melodies: whether piano and melody belong together.

    python -m benchmarks.songs -c pop --path pop909

Of each song the bars from the melody's first are taken, and all parts but the melody are written
anew, song N with random seed N. Of melody notes of a beat or longer: the share whose pitch class
the piano has, too, when they begin or in the next half of a beat; in the song itself, as written,
and with what was written for the next song. held: the share of the piano's notes that are longer
than a bar.
"""

import argparse

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.given import head, row
from common.cli import Parser, check_file, fail, positive_integer
from data.corpus.corpus import CorpusError
from data.score import Score
from evaluation.samples import split_scores
from generation.compose import compose
from generation.defaults import model_path
from generation.model import Model, corpus_of, load
from generation.note_text import SeedError
from generation.request import Request
from generation.seeds import program_of, voices_of
from model.serialization import ModelFileError

BARS = 16
MELODY, PIANO = "MELODY", "PIANO"


def excerpts(model: Model, path: str | None, datasets: str, count: int) -> list[Score]:
    """Return bars of held-out songs, from that on in which the melody begins."""
    melody = program_of(MELODY, model.vocabulary)
    found = []
    for score in split_scores(corpus_of(model, path, datasets), "test"):
        onset = score.notes["onset"][score.notes["program"] == melody]
        if len(onset) and len(found) < count:
            first = int(np.searchsorted(score.bar_starts, onset[0], side="right")) - 1
            found.append(score.excerpt(first, first + BARS))
    return found


def notes_of(score: Score, program: int) -> NDArray[np.void]:
    """Return the notes of a program, which may be a part."""
    return np.asarray(score.notes[score.notes["program"] == program])


def belonging(melody: NDArray[np.void], piano: NDArray[np.void], beat: int) -> tuple[int, int]:
    """Count long melody notes: whose pitch class the piano has, too, and those beside a piano."""
    of_chord = beside = 0
    for note in melody[melody["duration"] >= beat]:
        after = piano["onset"] - note["onset"]
        chord = piano["pitch"][(after < beat // 2) & (after + piano["duration"] > 0)]
        beside += bool(len(chord))
        of_chord += int(note["pitch"]) % 12 in chord % 12
    return of_chord, beside


def held(piano: NDArray[np.void], bar: int) -> str:
    """Return the share of notes that are longer than a bar."""
    return f"{np.mean(piano['duration'] > bar) if len(piano) else 0:.0%}"


def main() -> None:
    """Run the command."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--checkpoint", required=True, help="a model of such songs")
    parser.add_argument("--path", help="the folder of the songs, if it is elsewhere now")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    parser.add_argument("--count", type=positive_integer, default=10, help="songs (default: 10)")
    options = parser.parse_args()
    check_file(str(model_path(options.checkpoint)))
    torch.set_grad_enabled(False)
    try:
        model = load(options.checkpoint)
        songs = excerpts(model, options.path, options.datasets, options.count)
    except (ModelFileError, CorpusError, FileNotFoundError, SeedError) as error:
        fail(str(error))
    melody, piano = (program_of(name, model.vocabulary) for name in (MELODY, PIANO))
    beat = model.vocabulary.grid.steps_per_beat
    written = []
    for number, song in enumerate(songs, start=1):
        seed = voices_of(song, model.vocabulary, [MELODY])
        written.append(compose(model, Request(seed, None, random_seed=number))[0].score)
    totals = np.zeros((3, 2), dtype=int)
    head("song", "piano notes", "written", "held", "written", "belong", "written", "another's")
    for number, (song, new) in enumerate(zip(songs, written, strict=True), start=1):
        tune, other = notes_of(song, melody), written[number % len(written)]
        pianos = [notes_of(score, piano) for score in (song, new, other)]
        counts = np.array([belonging(tune, its, beat) for its in pianos])
        totals += counts
        shares = [held(its, 4 * beat) for its in pianos[:2]]
        row(str(number), *map(len, pianos[:2]), *shares, *(f"{n} of {of}" for n, of in counts))
    row("all", *[""] * 4, *(f"{n / max(of, 1):.0%} of {of}" for n, of in totals))


if __name__ == "__main__":
    main()
