"""Perform scores as a pianist might, for a model of performances to learn from.

    python -m benchmarks.performed LIEDER performed --count 400

Recordings that may be shared are few, scores are many. Each score becomes one performance on a
piano: all parts but drums, with a tempo that wanders, phrases that begin and end slowly and softly,
a melody that comes a little early and loud, fingers that are not exact, and a pedal. How much of
each is drawn for each piece. It is no imitation of anyone: it teaches how music on a grid of
seconds is spelled, and what notes do there that do not begin and end on the beat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pretty_midi

from benchmarks.tables import parser_of
from common.arrays import Reals
from common.cli import fail, positive_integer
from common.files import replace_folder
from data.corpus.find_files import find_music_files
from data.files.read import read_score
from data.midi.quantize import MidiError
from data.score import DRUMS, Grid, Score

FEWEST_NOTES = 60
SHORTEST = 0.03  # seconds
PEDAL = 64  # the number of its control


def walk(rng: np.random.Generator, count: int, memory: float, spread: float) -> Reals:
    """Return `count` numbers that wander around 0; each keeps the share `memory` of the last."""
    wandering = np.zeros(count)
    for beat in range(1, count):
        wandering[beat] = memory * wandering[beat - 1] + rng.normal(0, spread)
    return wandering


def beat_times(rng: np.random.Generator, beats: int, tempo_bpm: float, phrase: Reals) -> Reals:
    """Return the seconds at which beats begin.

    Args:
        rng, beats: the chance, and how many beats there are.
        tempo_bpm: the tempo of the score.
        phrase: (beats,) where each beat stands in its phrase, from 0 to 1.
    """
    tempo = np.clip(tempo_bpm * np.exp(rng.normal(0, 0.15)), 45, 170)
    faster = walk(rng, beats, 0.85, 0.035) - rng.uniform(0.02, 0.12) * np.cos(2 * np.pi * phrase)
    faster[-8:] -= np.linspace(0, 0.35, 8)[-beats:]  # the piece ends slowly
    return np.append(0, np.cumsum(60 / tempo * np.exp(-faster)))


def pedal(
    rng: np.random.Generator, score: Score, starts: Reals, end: float
) -> Iterator[pretty_midi.ControlChange]:
    """Yield how the pedal is changed, at each bass note or a few times in a bar.

    Args:
        rng, score: the chance, and the score.
        starts: (N,) the seconds at which its notes begin.
        end: when the last note ends, in seconds.
    """
    if rng.random() < 0.5:
        changes = starts[score.notes["pitch"] < 55]
    else:
        steps = rng.choice([1, 2, 3, 4]) * score.grid.steps_per_beat
        changes = starts[np.unique(score.notes["onset"] // steps, return_index=True)[1]]
    yield pretty_midi.ControlChange(PEDAL, 127, 0.0)
    latest = 0.1
    for change in np.unique(changes):
        up = change + rng.normal(0.04, 0.02)
        if up > latest and rng.random() < 0.9:
            latest = up + abs(rng.normal(0.09, 0.03)) + 0.02
            yield pretty_midi.ControlChange(PEDAL, 0, up)
            yield pretty_midi.ControlChange(PEDAL, int(rng.integers(70, 127)), latest)
    yield pretty_midi.ControlChange(PEDAL, 0, max(end, latest) + 0.1)


def perform(score: Score, rng: np.random.Generator) -> pretty_midi.PrettyMIDI:
    """Return a performance of a score on a grid of beats, in which no drums play."""
    notes = score.notes  # sorted by onset
    onset, pitch = notes["onset"] / score.grid.steps_per_beat, notes["pitch"].astype(int)
    end = onset + notes["duration"] / score.grid.steps_per_beat
    beats = int(end.max()) + 2
    phrase = np.arange(beats) / rng.choice([8, 12, 16, 24, 32]) % 1
    times = beat_times(rng, beats, float(np.median(score.tempo_bpm)), phrase)

    chord = np.unique(onset, return_inverse=True)[1]  # (N,) the number of the chord of each note
    highest, lowest = np.zeros(chord[-1] + 1, int), np.full(chord[-1] + 1, 128)
    np.maximum.at(highest, chord, pitch)
    np.minimum.at(lowest, chord, pitch)
    is_tune, is_bass = (pitch == highest[chord]) & (pitch >= 60), pitch == lowest[chord]
    late = rng.normal(0, 0.012, len(highest))[chord] + rng.normal(0, 0.010, len(pitch))
    at = np.interp(onset, np.arange(beats + 1), times)
    start = np.maximum(at + late - rng.uniform(0, 0.03) * is_tune, 0)
    held = np.interp(end, np.arange(beats + 1), times) - at
    share = np.clip(
        rng.choice([0.55, 0.85, 0.95, 1.02]) + rng.normal(0, 0.12, len(pitch)), 0.2, 1.3
    )
    stop = start + np.maximum(held * share, SHORTEST)

    swell = walk(rng, beats, 0.9, 3) + rng.uniform(2, 12) * np.sin(np.pi * phrase)
    loud = rng.uniform(45, 80) + np.interp(onset, np.arange(beats), swell)
    loud += rng.uniform(6, 20) * is_tune + rng.uniform(-4, 6) * is_bass
    velocity = np.clip(loud + rng.normal(0, 5, len(pitch)), 10, 120).astype(int)

    piano = pretty_midi.Instrument(0)
    sounding: dict[int, pretty_midi.Note] = {}
    for n in np.argsort(start, kind="stable"):
        if (before := sounding.get(pitch[n])) is not None:  # a key is let go before it is struck
            before.end = max(min(before.end, start[n] - 0.005), before.start + 0.01)
        sounding[pitch[n]] = pretty_midi.Note(velocity[n], pitch[n], start[n], stop[n])
        piano.notes.append(sounding[pitch[n]])
    if rng.random() < 0.75:
        piano.control_changes.extend(pedal(rng, score, start, float(stop.max())))
    played = pretty_midi.PrettyMIDI(resolution=960)
    played.instruments.append(piano)
    return played


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("scores", metavar="SCORES", type=Path, help="a folder of scores")
    parser.add_argument("folder", metavar="NEW", type=Path, help="the folder to write")
    parser.add_argument("--count", type=positive_integer, default=400, help="at most so many")
    options = parser.parse_args()
    if options.folder.exists():
        fail(f"{options.folder}: it is there already; name another folder")
    rng = np.random.default_rng(0)
    names, _ = find_music_files(options.scores)
    with replace_folder(options.folder) as temporary:
        for name in rng.permutation(names)[: options.count]:
            try:
                score, _ = read_score(options.scores / name, Grid())
            except MidiError as error:
                print(error)
                continue
            pitched = replace(score, notes=score.notes[score.notes["program"] != DRUMS])
            if len(pitched.notes) >= FEWEST_NOTES:
                perform(pitched, rng).write(str(temporary / f"{Path(name).stem}.mid"))


if __name__ == "__main__":
    main()
