"""Broken MIDI files by the thousand: what reading makes of them.

    python -m benchmarks.fuzz --count 20000 --seed 0

Mutants of the MIDI files of a folder (--folder; without it, of files of our own) go through the
guarded pool. Those that can be read must be canonical and survive their tokens. The
exit status is 1 if a mutant crashed the reader, hung, or broke one of these promises.
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
from functools import cache, partial
from pathlib import Path

import numpy as np

from data.corpus.corpus import cores
from data.corpus.survey import Survey
from data.corpus.worker_pool import Failed, guarded
from data.midi.io import midi_bytes, parse_events, read_midi
from data.midi.quantize import MidiError, score_from_events
from data.score import Grid, Score, canonical
from data.tokens.tokenizer import decode, encode
from tests.music import random_score

FOLDER = "ETUDE_FUZZ_FOLDER"  # an environment variable, for worker processes inherit it
GRID = Grid()
LIMIT_SECONDS = 20.0
READ, SILENT, BROKEN = "read", "read, without notes", "broken: "

Mutation = Callable[[bytes, np.random.Generator], bytes]


@cache
def originals() -> tuple[bytes, ...]:
    """Return the files that mutants are made of."""
    if FOLDER in os.environ:
        return tuple(path.read_bytes() for path in sorted(Path(os.environ[FOLDER]).glob("*.mid")))
    return tuple(midi_bytes(random_score(np.random.default_rng(seed))) for seed in range(200))


def mutant(number: int, seed: int) -> bytes:
    """Apply one to three mutations to a file; the same for the same number and seed.

    Half of them get their tracks' lengths put right, or few would come past the first check.
    """
    rng = np.random.default_rng((seed, number))
    content = _any_original(rng)
    for _ in range(int(rng.integers(1, 4))):
        content = MUTATIONS[int(rng.integers(len(MUTATIONS)))](content, rng)
    return _with_lengths(content) if rng.random() < 0.5 else content


def what_becomes_of(content: bytes, path: Path) -> str:
    """READ or SILENT, the reason why the file is left out, or BROKEN and what is."""
    path.write_bytes(content)
    try:
        score, _ = read_midi(path, GRID)
    except MidiError as error:
        reason = str(error).removeprefix(f"{path}: ")
        return f"{BROKEN}a reason of several lines" if "\n" in reason else reason
    broken = broken_promise(score)
    if not broken and parsed(midi_bytes(score)) != score:
        broken = "another piece where it is written and read again"
    if broken:
        return BROKEN + broken
    return READ if len(score.notes) else SILENT


def parsed(content: bytes) -> Score:
    """Return the Score in the bytes of a MIDI file."""
    return score_from_events(parse_events(content, "again"), GRID)[0]


def broken_promise(score: Score) -> str | None:
    """Which property of canonical Scores this one lacks; None if it has them all."""
    notes, bars = score.notes, score.bars
    if not len(notes):
        return "bars without notes" if len(bars) else None
    if canonical(notes, bars, score.tempo_bpm, score.grid)[0] != score:
        return "not in canonical form"
    voice = notes["program"].astype(np.int64) * 128 + notes["pitch"]
    if np.any(np.diff(notes["onset"].astype(np.int64) * 2**15 + voice) <= 0):
        return "notes out of order"
    order = np.lexsort((notes["onset"], voice))
    ends = notes["onset"][order] + notes["duration"][order]
    if np.any((ends[:-1] > notes["onset"][order][1:]) & (np.diff(voice[order]) == 0)):
        return "notes overlap"
    if not score.bar_starts[-2] <= notes["onset"].max() < score.bar_starts[-1]:
        return "the last bar does not hold the last onset"
    survey = Survey()
    survey.add(score)
    vocabulary = survey.vocabulary(score.grid)
    if decode(encode(score, vocabulary), vocabulary) != score:
        return "changed by its tokens"
    return None


def try_one(number: int, seed: int, folder: Path) -> str:
    """Try a mutant, written to a file of the process in `folder`; return what became of it."""
    return what_becomes_of(mutant(number, seed), folder / f"{os.getpid()}.mid")


def _any_original(rng: np.random.Generator) -> bytes:
    return originals()[int(rng.integers(len(originals())))]


def _noise(rng: np.random.Generator, most: int) -> bytes:
    below = 128 if rng.random() < 0.7 else 256  # data bytes more often than status bytes
    return rng.integers(below, size=rng.integers(1, most + 1), dtype=np.uint8).tobytes()


def _with_lengths(content: bytes) -> bytes:
    """Each track as long as its header says."""
    head, *tracks = content.split(b"MTrk")
    return head + b"".join(
        b"MTrk" + max(0, len(track) - 4).to_bytes(4, "big") + track[4:] for track in tracks
    )


def _flip_bits(content: bytes, rng: np.random.Generator) -> bytes:
    flipped = np.frombuffer(content, dtype=np.uint8).copy()
    at = rng.integers(max(1, len(flipped)), size=rng.integers(1, 9))
    if len(flipped):
        flipped[at] ^= (1 << rng.integers(8, size=len(at))).astype(np.uint8)
    return flipped.tobytes()


def _insert(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) + 1))
    return content[:at] + _noise(rng, 8) + content[at:]


def _delete(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(content) + 1))
    return content[:at] + content[at + int(rng.integers(1, 9)) :]


def _truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _splice(content: bytes, rng: np.random.Generator) -> bytes:
    other = _any_original(rng)
    return _truncate(content, rng) + other[int(rng.integers(len(other) + 1)) :]


def _any_track(content: bytes, rng: np.random.Generator) -> int | None:
    """Where the length of one of the tracks stands."""
    tracks = [found.end() for found in re.finditer(b"MTrk", content)]
    return tracks[int(rng.integers(len(tracks)))] if tracks else None


def _chunk_length(content: bytes, rng: np.random.Generator) -> bytes:
    at = _any_track(content, rng)
    if at is None:
        return content
    length = int(rng.integers(2 ** int(rng.integers(1, 33))))
    return content[:at] + length.to_bytes(4, "big") + content[at + 4 :]


def _running_status(content: bytes, rng: np.random.Generator) -> bytes:
    """Bytes that stand for no event of their own, and shift all that follow."""
    at = int(rng.integers(len(content) + 1))
    return content[:at] + _noise(rng, 64) + content[at:]


def _header(content: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(14))
    return content[:at] + _noise(rng, 1) + content[at + 1 :]


def _odd_event(content: bytes, rng: np.random.Generator) -> bytes:
    """Insert an event that is well-formed but absurd at the start of a track."""
    at = _any_track(content, rng)
    if at is None:
        return content
    kind, size = ((0x51, 3), (0x58, 4), (0x59, 2), (0x51, 1), (0x2F, 0))[int(rng.integers(5))]
    delta = (b"\0", b"\x60", b"\xff\x7f", b"\xff\xff\xff\x7f")[int(rng.integers(4))]
    said = rng.choice([0, 1, 2, 4, 8, 127, 128, 255], size=size).astype(np.uint8).tobytes()
    event = delta + bytes([0xFF, kind, size]) + said
    length = (int.from_bytes(content[at : at + 4], "big") + len(event)) % 2**32
    return content[:at] + length.to_bytes(4, "big") + event + content[at + 4 :]


def _in_first_track(content: bytes, events: bytes) -> bytes:
    """Begin a track with some events."""
    at = content.find(b"MTrk") + 4
    if at < 4:
        return content
    length = (int.from_bytes(content[at : at + 4], "big") + len(events)) % 2**32
    return content[:at] + length.to_bytes(4, "big") + events + content[at + 4 :]


def _long_deltas(content: bytes, rng: np.random.Generator) -> bytes:
    """Add up to 32 of the longest deltas: ticks wrap at 2^32, which are 16 of them."""
    return _in_first_track(content, b"\xff\xff\xff\x7f\xff\x01\x00" * int(rng.integers(1, 33)))


def _hanging(content: bytes, rng: np.random.Generator) -> bytes:
    """Add notes that are never ended, at some pitches, some of them very often."""
    pitches = rng.integers(128, size=int(rng.integers(1, 128)))
    often = int(rng.choice([1, 3, 20, 300]))
    events = b"".join(bytes([0, 0x90, pitch, 64]) for pitch in pitches.tolist())
    return _in_first_track(content, events + bytes([0, 0x90, int(pitches[0]), 64]) * often)


def _many_tracks(content: bytes, rng: np.random.Generator) -> bytes:
    """Repeat the last track, up to 600 times."""
    at = content.rfind(b"MTrk")
    return content if at < 0 else content + content[at:][:512] * int(rng.integers(1, 600))


MUTATIONS: tuple[Mutation, ...] = (
    *(_flip_bits, _insert, _delete, _truncate, _splice),
    *(_chunk_length, _running_status, _header, _odd_event),
    *(_long_deltas, _hanging, _many_tracks),
)


def main() -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--folder", type=Path, help="of MIDI files (default: files of our own)")
    parser.add_argument("--count", type=int, default=20000, help="mutants")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other mutants")
    parser.add_argument("--workers", type=int, default=cores(), help="processes")
    given = parser.parse_args()
    if given.folder:
        os.environ[FOLDER] = str(given.folder)
        if not originals():
            parser.error(f"{given.folder} holds no MIDI files (.mid)")
    began = time.perf_counter()
    left_out: Counter[str] = Counter()
    fates: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        work = partial(try_one, seed=given.seed, folder=Path(folder))
        for number, fate in guarded(work, range(given.count), given.workers, LIMIT_SECONDS):
            if isinstance(fate, Failed):
                kind = "hung" if fate.reason.startswith("took") else "crashed"
                print(f"mutant {number} {kind}: {fate.reason}")
            elif fate.startswith(BROKEN):
                kind = "broken promises"
                print(f"mutant {number} {fate}")
            elif fate in (READ, SILENT):
                kind = fate
            else:
                kind = "left out"
                left_out[re.sub(r"\d[\d,]*", "N", fate)] += 1
            fates[kind] += 1
    seconds = time.perf_counter() - began
    source = given.folder or "files of our own"
    print(f"{given.count:,} mutants of {len(originals()):,} files ({source}), seed {given.seed}")
    for kind in (READ, SILENT, "left out", "crashed", "hung", "broken promises"):
        print(f"{fates[kind]:8,} {kind}")
    print("left out, most often because:")
    for reason, count in left_out.most_common(10):
        print(f"{count:8,} {reason}")
    print(f"{seconds:.0f} s with {given.workers} processes")
    return int(any(fates[kind] for kind in ("crashed", "hung", "broken promises")))


if __name__ == "__main__":
    sys.exit(main())
