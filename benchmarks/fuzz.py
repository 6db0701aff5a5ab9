"""Read thousands of broken files, and run other attacks.

    python -m benchmarks.fuzz --count 20000 --seed 0
    python -m benchmarks.fuzz --kinds models checkpoints --count 20000

Mutants of the MIDI files of a folder (--folder; by default, of built-in files) are read in guarded
processes, each on a grid, common or unusual. A mutant that can be read must be canonical, survive
tokens and a file unchanged, and have the notes that another program reads
(benchmarks/second_reader.py). The search for copies must match it with itself, and the advice on
options must not fail on it. benchmarks/attacks.py has the attacks on everything else. The exit
status is 1 if anything crashed, hung, or broke a promise.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.attacks import ATTACKS, prepare
from benchmarks.mutations import FOLDER, mutant, originals
from benchmarks.page_attacks import BROKEN, HELD
from benchmarks.second_reader import NotComparedError, second_reading
from common.worker_pool import Failed, guarded
from data.canonical import canonical
from data.corpus.advice import try_options
from data.corpus.corpus import cores
from data.corpus.duplicates import LEAST_RUNS, find_works, sketch_of
from data.corpus.survey import Survey, translation
from data.files.read import read_score
from data.midi.io import midi_bytes, parse_events
from data.midi.quantize import MidiError, score_from_events
from data.midi.repair import track_bytes, walk
from data.score import SECONDS, Grid, Part, Score
from data.tokens.tokenizer import decode, encode

# Grids of every kind: steps that divide a bar or do not, with meters and with parts.
GRIDS = (
    *(Grid(), Grid(24), Grid(meter=(4, 4)), SECONDS, Grid(10, "seconds")),
    *(Grid(steps) for steps in (1, 2, 3, 5, 7, 11, 96)),
    *(Grid(steps, meter=meter) for steps in (4, 7, 24) for meter in ((2, 4), (3, 4), (6, 8))),
    Grid(parts=(Part("Piano", 0), Part("Fiddle", 40)), meter=(4, 4)),
)
LIMIT_SECONDS = (120.0, 20.0)  # for an attack, for reading a MIDI file
READ, SILENT = "read", "read, without notes"


def what_becomes_of(content: bytes, path: Path, grid: Grid) -> str:
    """Return READ or SILENT, or why the file is left out, or BROKEN and the broken promise."""
    path.write_bytes(content)
    try:
        score, _ = read_score(path, grid)
    except MidiError as error:
        reason = str(error).removeprefix(f"{path}: ")
        return f"{BROKEN}a reason of several lines" if "\n" in reason else reason
    broken = broken_promise(score) or misread(content) or misjudged(content, grid)
    if not broken and parsed(midi_bytes(score), grid) != score:
        broken = f"another piece where it is written and read again on {grid}"
    if broken:
        return BROKEN + broken
    return READ if len(score.notes) else SILENT


def misjudged(content: bytes, grid: Grid) -> str | None:
    """Return what is wrong with the checks and advice beyond a file's notes; None: nothing."""
    events = parse_events(content, "once more")
    if not len(events.notes):
        return None
    trial = try_options(events, grid)
    if not np.all(np.isfinite(sum(trial.errors, ()))):
        return f"options that were tried say {trial}"
    sketch = sketch_of(events)
    works = find_works([sketch, sketch], [b"one", b"other"])
    is_long = len(sketch) >= LEAST_RUNS
    return None if works == ([[0, 1]] if is_long else [[0], [1]]) else f"works {works} of itself"


def misread(content: bytes) -> str | None:
    """Return which notes another program reads differently; None if none, or if it fails."""
    if not all(walk(body).is_whole for _, body in track_bytes(content)):
        return None  # after a broken event, every program can only guess
    notes = sorted(map(tuple, parse_events(content, "once more").notes.tolist()))
    try:
        others = second_reading(content)
    except NotComparedError:
        return None
    ours, theirs = (sorted(set(a) - set(b))[:3] for a, b in ((notes, others), (others, notes)))
    return None if notes == others else f"notes {ours} where mido reads {theirs}"


def parsed(content: bytes, grid: Grid) -> Score:
    """Return the Score in the bytes of a MIDI file."""
    return score_from_events(parse_events(content, "again"), grid)[0]


def broken_promise(score: Score) -> str | None:
    """Return which property of canonical Scores this one lacks; None if it has them all."""
    notes, bars = score.notes, score.bars
    if not len(notes):
        return "bars without notes" if len(bars) else None
    if canonical(notes, bars, score.tempo_bpm, score.grid)[0] != score:
        return "not in canonical form"
    survey = Survey(score.grid)
    wide_ids = encode(score, survey.wide)
    survey.add(wide_ids)
    vocabulary = survey.vocabulary()
    ids = encode(score, vocabulary)
    if decode(ids, vocabulary) != score:
        return "changed by its tokens"
    translated = translation(survey.wide, vocabulary)[wide_ids]
    if not np.array_equal(translated[translated >= 0], ids):
        return "of other tokens where its vocabulary comes last"
    return None


def try_one(number: int, seed: int, folder: Path) -> str:
    """Try a mutant, written to a file in `folder` that belongs to this process; return its fate."""
    grid = GRIDS[number % len(GRIDS)] if number % 2 else Grid()
    return what_becomes_of(mutant(number, seed), folder / f"{os.getpid()}.mid", grid)


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    kinds = ("midi", *ATTACKS)
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=["midi"], help="of damage")
    parser.add_argument("--folder", type=Path, help="of MIDI files (default: files of our own)")
    parser.add_argument("--count", type=int, default=20000, help="mutants; fewer of slower kinds")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other mutants")
    parser.add_argument("--workers", type=int, default=cores(), help="processes")
    given = parser.parse_args()
    if given.folder:
        os.environ[FOLDER] = str(given.folder)
        if not originals():
            parser.error(f"{given.folder} holds no MIDI files (.mid)")
    source = given.folder or "files of our own"
    print(f"mutants of {len(originals()):,} files ({source}), seed {given.seed}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if set(given.kinds) - {"midi"}:
            prepare(folder)
        harm = 0
        for kind in given.kinds:
            attack, cost = ATTACKS.get(kind, (try_one, 1))
            work = partial(attack, seed=given.seed, folder=folder)
            harm += run_kind(kind, work, max(1, given.count // cost), given.workers)
    return int(harm > 0)


def run_kind(kind: str, work: Callable[[int], str], count: int, workers: int) -> int:
    """Try so many attacks of a kind, print their outcomes, and count those that did harm."""
    began = time.perf_counter()
    left_out: Counter[str] = Counter()
    fates: Counter[str] = Counter()
    for number, fate in guarded(work, range(count), workers, LIMIT_SECONDS[kind == "midi"]):
        if isinstance(fate, Failed):
            fates["hung" if fate.reason.startswith("took") else "crashed"] += 1
            print(f"{kind} {number}: {fate.reason}")
        elif fate.startswith(BROKEN):
            fates["broken promises"] += 1
            print(f"{kind} {number}: {fate}")
        elif fate in (READ, SILENT, HELD):
            fates[fate] += 1
        else:
            fates["refused"] += 1
            left_out[re.sub(r"\d[\d,]*", "N", fate)] += 1
    seconds = time.perf_counter() - began
    told = ", ".join(f"{number:,} {fate}" for fate, number in fates.most_common())
    print(f"{kind}: {count:,} tried, {told}; {seconds:.0f} s with {workers} processes")
    for reason, number in left_out.most_common(10):
        print(f"{number:8,} {reason}")
    return sum(fates[harm] for harm in ("crashed", "hung", "broken promises"))


if __name__ == "__main__":
    sys.exit(main())
