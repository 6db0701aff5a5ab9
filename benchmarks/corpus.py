"""How fast a folder of MIDI files becomes token arrays, beside MidiTok's REMI and pretty_midi.

    python -m benchmarks.corpus NOTTINGHAM
    python -m benchmarks.corpus NOTTINGHAM --copies 97     # 100,000 files

Etude's time is that of `open_corpus`: from files on disk to token arrays on disk, with checks,
copies, splits and the report, and what was written is on the disk. MidiTok reads
each file and tokenizes it, and pretty_midi reads; they write nothing. Each runs in a process of
its own, bound to as many cores as it has workers, and imports are not counted. Of several rounds,
which take turns, the best counts.
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.cli import Parser, fail, positive_integer
from data.corpus.corpus import cores
from data.corpus.find_files import find_music_files

ROUNDS = 3


def etude(folder: Path, _: list[str], workers: int) -> dict[str, Any]:
    """Build the corpus."""
    from data.corpus.corpus import open_corpus

    with tempfile.TemporaryDirectory() as datasets:
        began = time.perf_counter()
        corpus = open_corpus(folder, datasets, progress=False, workers=workers)
        seconds = time.perf_counter() - began
        splits = corpus.splits.values()
        used = {what: sum(getattr(split, what) for split in splits) for what in ("notes", "tokens")}
    return {"seconds": seconds, "files": sum(split.pieces for split in splits), **used}


def miditok(folder: Path, names: list[str], *_: Any) -> dict[str, Any]:
    """Read each file and tokenize it with MidiTok's REMI."""
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
    """Read each file."""
    from pretty_midi import PrettyMIDI

    began, notes = time.perf_counter(), 0
    for name in names:
        notes += sum(len(track.notes) for track in PrettyMIDI(str(folder / name)).instruments)
    return {"seconds": time.perf_counter() - began, "files": len(names), "notes": notes}


PARTS = {"etude": etude, "miditok": miditok, "pretty_midi": pretty_midi}


def in_this_process(part: str, folder: Path, workers: int) -> None:
    """Print one part's figures as JSON, after a few files by which everything is imported."""
    warnings.filterwarnings("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])
    names = find_music_files(folder)[0]
    with tempfile.TemporaryDirectory() as few:
        repeat(folder, names[:8], Path(few, "files"), 1)
        PARTS[part](Path(few, "files"), names[:8], workers)
    before = processor_seconds()
    result = PARTS[part](folder, names, workers)
    result["processor_seconds"] = processor_seconds() - before
    own, largest_child = (
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(json.dumps({**result, "peak_mib": own + workers * largest_child}))


def processor_seconds() -> float:
    """Return the processor seconds of this process and of its children that are done."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def repeat(folder: Path, names: list[str], into: Path, copies: int) -> None:
    """Link the files again and again, under other names; so that copies are kept, in splits."""
    for number in range(copies):
        split = {0: "valid", 1: "test"}.get(number, "train")
        for name in names:
            link = into / split / f"{number:04}" / name if copies > 1 else into / name
            link.parent.mkdir(parents=True, exist_ok=True)
            try:
                link.hardlink_to(folder / name)
            except OSError:  # another disk
                shutil.copyfile(folder / name, link)


def round_of(part: str, folder: Path, workers: int) -> dict[str, Any]:
    """Run one round of one part, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.corpus", str(folder), "--part", part]
    command += ["--workers", str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{part}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def print_head() -> None:
    """Print the first line of the table."""
    names = [
        "files",
        "notes",
        "seconds",
        "of CPU",
        "notes/s",
        "x MidiTok",
        "tokens/note",
        "peak MiB",
    ]
    widths = (9, 13, 9, 9, 12, 10, 12, 10)
    head = "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    print(f"{'':34}{head}")


def print_row(label: str, row: dict[str, Any], base: dict[str, Any] | None) -> None:
    """Print a line of the table."""
    speed = row["notes"] / row["seconds"]
    times = f"{speed / (base['notes'] / base['seconds']):10.1f}" if base else f"{'-':>10}"
    tokens = f"{row['tokens'] / row['notes']:12.2f}" if "tokens" in row else f"{'-':>12}"
    print(
        f"{label:34}{row['files']:9,}{row['notes']:13,}{row['seconds']:9.2f}"
        f"{row['processor_seconds']:9.2f}{speed:12,.0f}{times}{tokens}{row['peak_mib']:10,.0f}"
    )


def compare(folder: Path, workers: int) -> None:
    """Run all parts in turns and print the best round of each."""
    parts = {"etude, workers: 1": ("etude", 1)}
    count = 2
    while count <= workers:
        parts[f"etude, workers: {count}"] = ("etude", count)
        count *= 2
    if find_spec("miditok"):
        parts["MidiTok REMI, reads and tokenizes"] = ("miditok", 1)
    else:
        print("MidiTok is not here to compare with: pip install miditok")
    parts["pretty_midi, reads"] = ("pretty_midi", 1)
    rounds = [
        {label: round_of(part, folder, count) for label, (part, count) in parts.items()}
        for _ in range(ROUNDS)
    ]
    best = {
        label: min((r[label] for r in rounds), key=lambda row: row["seconds"]) for label in parts
    }
    for label, row in best.items():
        print_row(label, row, best.get("MidiTok REMI, reads and tokenizes"))


def main() -> None:
    """Run the command."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="of MIDI files")
    parser.add_argument(
        "--copies", type=positive_integer, help="build each file so often, and nothing else"
    )
    parser.add_argument("--workers", type=positive_integer, default=cores())
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        in_this_process(given.part, given.folder, given.workers)
        return
    try:
        found = find_music_files(given.folder)[0]
    except OSError as error:
        fail(str(error))
    if not found:
        fail(f"{given.folder}: no MIDI file in it")
    print_head()
    if given.copies:
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder, "files")
            repeat(given.folder, found, files, given.copies)
            row = round_of("etude", files, given.workers)
        print_row(f"etude, {given.copies} times, workers: {given.workers}", row, None)
        return
    compare(given.folder, given.workers)


if __name__ == "__main__":
    main()
