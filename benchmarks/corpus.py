"""How fast a folder of MIDI files becomes token arrays, compared with MidiTok and pretty_midi.

    python -m benchmarks.corpus NOTTINGHAM
    python -m benchmarks.corpus NOTTINGHAM --copies 97     # 100,000 files

Etude's time is the time of `open_corpus`: from files on disk to token arrays on disk, with checks,
the search for copies, splits and the report, until everything is written to the disk. MidiTok reads
each file and tokenizes it with REMI; pretty_midi only reads it. Neither writes anything. Each runs
in its own process, bound to as many cores as it has workers, and imports do not count. The three
take turns for several rounds, and the best round of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.tables import head, in_turns, parser_of, row
from common.cli import fail, positive_integer
from data.corpus.corpus import cores
from data.corpus.find_files import find_music_files

ROUNDS = 3
MIDITOK = "MidiTok REMI, reads and tokenizes"


def etude(folder: Path, _: list[str], workers: int) -> dict[str, Any]:
    """Build the corpus with Etude, and return the figures."""
    from data.corpus.corpus import SPLITS, open_corpus

    with tempfile.TemporaryDirectory() as datasets:
        began = time.perf_counter()
        corpus = open_corpus(folder, datasets, workers=workers)
        seconds = time.perf_counter() - began
        splits = [corpus.split(name) for name in SPLITS]
        notes = sum(int(split.note_counts.sum()) for split in splits)
        tokens = sum(len(split.tokens) for split in splits)
    return {"seconds": seconds, "files": sum(map(len, splits)), "notes": notes, "tokens": tokens}


def miditok(folder: Path, names: list[str], *_: Any) -> dict[str, Any]:
    """Read each file and tokenize it with MidiTok's REMI; return the figures."""
    import symusic
    from miditok import REMI

    tokenizer = REMI()
    began, notes, tokens = time.perf_counter(), 0, 0
    for name in names:
        score = symusic.Score(folder / name)
        notes += sum(len(track.notes) for track in score.tracks)
        spelled = tokenizer(score)
        tokens += sum(len(one) for one in (spelled if isinstance(spelled, list) else [spelled]))
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "files": len(names), "notes": notes, "tokens": tokens}


def pretty_midi(folder: Path, names: list[str], *_: Any) -> dict[str, Any]:
    """Read each file with pretty_midi; return the figures."""
    from pretty_midi import PrettyMIDI

    began, notes = time.perf_counter(), 0
    for name in names:
        notes += sum(len(track.notes) for track in PrettyMIDI(str(folder / name)).instruments)
    return {"seconds": time.perf_counter() - began, "files": len(names), "notes": notes}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "etude": etude,
    "miditok": miditok,
    "pretty_midi": pretty_midi,
}


def in_this_process(part: str, folder: Path, workers: int) -> None:
    """Print one part's figures as JSON, after a few files to have everything imported."""
    warnings.filterwarnings("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])
    names = find_music_files(folder)[0]
    with tempfile.TemporaryDirectory() as few:
        repeat(folder, names[:8], Path(few, "files"), 1)
        PARTS[part](Path(few, "files"), names[:8], workers)
    result = PARTS[part](folder, names, workers)
    own, largest_child = (
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(json.dumps({**result, "peak_mib": own + workers * largest_child}))


def repeat(folder: Path, names: list[str], into: Path, copies: int) -> None:
    """Link the files many times under other names, laid out so that the corpus keeps the copies."""
    for number in range(copies):
        split = {0: "valid", 1: "test"}.get(number, "train")
        for name in names:
            link = into / split / f"{number:04}" / name if copies > 1 else into / name
            link.parent.mkdir(parents=True, exist_ok=True)
            try:
                link.hardlink_to(folder / name)
            except OSError:  # the folder is on another disk
                shutil.copyfile(folder / name, link)


def round_of(part: str, folder: Path, workers: int) -> dict[str, Any]:
    """Run one round of one part in its own process; return its figures."""
    command = [sys.executable, "-m", "benchmarks.corpus", str(folder), "--part", part]
    command += ["--workers", str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{part}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def print_table(rounds: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Print the best round of each part."""
    best = {label: min(each, key=lambda it: it["seconds"]) for label, each in rounds.items()}
    speed = {label: its["notes"] / its["seconds"] for label, its in best.items()}
    head("", "files", "notes", "seconds", "notes/s", "x MidiTok", "tokens/note", "peak MiB")
    for label, its in best.items():
        times = f"{speed[label] / speed[MIDITOK]:.1f}" if MIDITOK in speed else ""
        tokens = f"{its['tokens'] / its['notes']:.2f}" if "tokens" in its else ""
        counts = f"{its['files']:,}", f"{its['notes']:,}", f"{its['seconds']:.2f}"
        row(label, *counts, f"{speed[label]:,.0f}", times, tokens, f"{its['peak_mib']:,.0f}")


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, help="of MIDI files")
    parser.add_argument(
        "--copies", type=positive_integer, help="build each file so often, and nothing else"
    )
    parser.add_argument("--workers", type=positive_integer, default=cores())
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder, workers = options.folder, options.workers
    if options.part:
        in_this_process(options.part, folder, workers)
        return
    found = find_music_files(folder)[0] if folder.is_dir() else []
    if not found:
        fail(f"{folder}: no folder with a MIDI file in it")
    if options.copies:
        with tempfile.TemporaryDirectory() as temporary:
            files = Path(temporary, "files")
            repeat(folder, found, files, options.copies)
            label = f"etude, {options.copies} times, workers: {workers}"
            print_table({label: [round_of("etude", files, workers)]})
        return
    counts = sorted({1, workers})
    runs = {f"etude, workers: {n}": partial(round_of, "etude", folder, n) for n in counts}
    if find_spec("miditok"):
        runs[MIDITOK] = partial(round_of, "miditok", folder, 1)
    else:
        print("MidiTok is not here to compare with: pip install miditok")
    runs["pretty_midi, reads"] = partial(round_of, "pretty_midi", folder, 1)
    print_table(in_turns(runs, ROUNDS, warm_up=0))


if __name__ == "__main__":
    main()
