"""Etude compared with MidiTok's REMI and transformers' GPT-2, trained for the same time.

    python -m benchmarks.equal_minutes my_midi_files --minutes 10

Etude is trained as README says, with `configs/folder.yaml`, but from nothing. If `--run` has a
model already, that model is used. GPT-2 has the same size, dropout and window length. It learns
from the same training pieces, also transposed (and stretched, on a grid of seconds), with an
instrument for each part. REMI has as many steps a beat (or a second) as Etude's grid, the same
velocities and tempi, and no other tokens. Both are scored on the validation pieces, by the sum over
all tokens of each note, with at least half a context before what is scored. GPT-2 counts with the
better of its weights after half of the time and at the end. Everything runs in one thread; bind it
to a core if other work runs on the machine.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import symusic
import torch
from torch.nn import functional

from benchmarks.gpt2 import of_transformers
from benchmarks.models import model_and_corpus
from benchmarks.tables import parser_of
from benchmarks.training import PRECISIONS
from common.arrays import Ints
from common.cli import fail
from data.batches.stretched import factors, stretched
from data.score import DRUMS, TEMPO_LEVELS, VELOCITY_LEVELS, Score
from data.tokens.vocabulary import Vocabulary
from evaluation.samples import split_scores
from model.config import DecoderConfig
from training.command import fast_precision

RATE = 0.002
TOKENS = 2048  # in a training step
WARM_UP = 100  # steps
KEYS, STRETCH = 6, 0.1  # semitones up and down; see `data.stretch`: both as in folder.yaml
LONGEST = 16  # quarter notes, or seconds: the longest duration


def trained_by_etude(options: argparse.Namespace) -> None:
    """Train a model as README says, in one thread, but from nothing."""
    command = [sys.executable, "train.py", "fit", "--config", "configs/folder.yaml"]
    command += ["--run", options.run, "--data.path", options.folder]
    command += ["--data.datasets", options.datasets]
    command += ["--minutes", str(options.minutes), "--model.begin_with", "null"]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def remi_for(vocabulary: Vocabulary) -> Any:
    """Return a REMI tokenizer whose tokens say as much as a vocabulary's."""
    from miditok import REMI, TokenizerConfig

    grid = vocabulary.grid
    meters: dict[int, list[int]] = {}
    for numerator, denominator in vocabulary.meters if grid.has_meter else [(4, 4)]:
        meters.setdefault(denominator, []).append(numerator)
    has_tempi = grid.has_meter and len(vocabulary.tempos) > 1
    return REMI(
        TokenizerConfig(
            pitch_range=(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1),
            beat_res={(0, LONGEST): grid.steps_per_beat},
            num_velocities=len(VELOCITY_LEVELS),
            use_velocities=len(vocabulary.velocities) > 1,
            special_tokens=["PAD", "BOS", "EOS"],
            use_programs=len(vocabulary.programs) > 1,
            use_tempos=has_tempi,
            num_tempos=len(TEMPO_LEVELS),
            tempo_range=(int(TEMPO_LEVELS[0]), int(TEMPO_LEVELS[-1])),
            use_time_signatures=grid.has_meter and len(vocabulary.meters) > 1,
            time_signature_range=meters,
            use_pitchdrum_tokens=False,
        )
    )


def spelled(score: Score, remi: Any, vocabulary: Vocabulary) -> Ints:
    """Return a Score's REMI ids (T,), from BOS to EOS."""
    tempi = np.flatnonzero(np.diff(score.tempo_bpm, prepend=0))
    lines = score.bar_starts
    midi = symusic.Score(score.grid.steps_per_beat)
    midi.tempos.extend(symusic.Tempo(int(lines[b]), float(score.tempo_bpm[b])) for b in tempi)
    meters = [tuple(bar) for bar in score.bars[["numerator", "denominator"]].tolist()]
    if not score.grid.has_meter:
        meters = [(4, 4)]
    for bar, meter in enumerate(meters):
        if bar == 0 or meter != meters[bar - 1]:
            midi.time_signatures.append(symusic.TimeSignature(int(lines[bar]), *meter))
    for number, program in enumerate(vocabulary.programs):
        notes = score.notes[score.notes["program"] == program]
        track = symusic.Track(program=number, is_drum=program == DRUMS)
        for onset, duration, pitch, velocity, _ in notes.tolist():
            track.notes.append(symusic.Note(onset, duration, pitch, velocity))
        midi.tracks.append(track)
    tokens = remi(midi)
    tokens = tokens if not isinstance(tokens, list) else tokens[0]
    return np.array([remi["BOS_None"], *tokens.ids, remi["EOS_None"]], dtype=np.int64)


class Trained:
    """A GPT-2 that learns from lines of ids.

    Args:
        remi: the tokenizer of the ids.
        lines: the ids (T,) of each training piece.
        config: the configuration of Etude's model, whose shape the GPT-2 gets.
    """

    def __init__(self, remi: Any, lines: list[Ints], config: DecoderConfig) -> None:
        torch.manual_seed(0)
        self.rng = np.random.default_rng(0)
        self.lines, self.context = lines, config.context_length
        self.shares = np.array([len(line) for line in lines]) / sum(map(len, lines))
        self.is_pitch = np.zeros(len(remi), dtype=bool)
        self.is_pitch[[id_ for name, id_ in remi.vocab.items() if name.startswith("Pitch_")]] = True
        self.model = of_transformers(
            len(remi), config.n_embd, config.dropout, config.n_layer, config.context_length
        )
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.05
        )
        self.dtype = PRECISIONS["bf16" if fast_precision("cpu") == "bf16-mixed" else "fp32"]

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Return logits (B, T, V) for the ids that follow ids (B, T)."""
        is_mixed = self.dtype != torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_mixed):
            logits: torch.Tensor = self.model(ids).logits
        return logits.float()

    def window(self) -> Ints:
        """Draw a window (T + 1,) of a random piece in a random key, with Pad (0) after its end."""
        line = self.lines[self.rng.choice(len(self.lines), p=self.shares)]
        begin = self.rng.integers(max(1, len(line) - self.context))
        window = line[begin : begin + self.context + 1]
        moved: Ints = window + self.is_pitch[window] * int(self.rng.integers(-KEYS, KEYS + 1))
        window = moved if np.array_equal(self.is_pitch[moved], self.is_pitch[window]) else window
        return np.pad(window, (0, self.context + 1 - len(window)))

    def step(self, rate: float) -> None:
        """Learn from one batch at a learning rate."""
        ids = torch.from_numpy(np.stack([self.window() for _ in range(TOKENS // self.context)]))
        self.model.train()
        logits = self.logits(ids[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()

    def learn(self, minutes: float, valid: list[Ints]) -> float:
        """Train for so many minutes; return the fewest nats of the validation lines."""
        left, best, number = 60 * minutes, math.inf, 0  # seconds
        checks = [left / 2, 0]
        while left > 0:
            began = time.perf_counter()
            self.step(RATE * min(1, (number + 1) / WARM_UP, 0.02 + left / (18 * minutes)))
            left, number = left - (time.perf_counter() - began), number + 1
            if left <= checks[0]:
                checks = checks[1:]
                best = min(best, sum(map(self.nats, valid)))
        print(f"GPT-2: {number:,} steps", flush=True)
        return best

    @torch.inference_mode()
    def nats(self, line: Ints) -> float:
        """Return the nats of a line, summed over all ids after the first."""
        self.model.eval()
        total, scored, half = 0.0, 1, self.context // 2
        while scored < len(line):
            begin = max(0, scored - half) if scored > 1 else 0
            window = torch.from_numpy(line[begin : begin + self.context + 1])[None]
            logits = self.logits(window[:, :-1])[0, scored - begin - 1 :]
            targets = window[0, scored - begin :]
            total += float(functional.cross_entropy(logits, targets, reduction="sum"))
            scored += len(targets)
        return total


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", help="of MIDI files")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--run", default="runs/equal_minutes", help="of Etude's model")
    parser.add_argument("--datasets", default="datasets", help="where corpora lie")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if missing := [name for name in ("miditok", "transformers") if find_spec(name) is None]:
        fail(f"to train GPT-2 it needs {' and '.join(missing)}: pip installs them")
    path = Path(options.run) / "model.safetensors"
    if not path.exists():
        trained_by_etude(options)
    options.checkpoint, options.path = path, options.folder
    model, corpus = model_and_corpus(options)
    remi = remi_for(model.vocabulary)
    scores = split_scores(corpus, "train")
    if not model.vocabulary.grid.has_meter:
        scores += [stretched(score, each) for score in scores for each in factors(STRETCH)]
    train, valid = (
        [spelled(score, remi, model.vocabulary) for score in pieces]
        for pieces in (scores, split_scores(corpus, "valid"))
    )
    notes = int(corpus.split("valid").note_counts.sum())
    print(f"{len(valid)} validation pieces, {notes:,} notes; REMI has {len(remi)} ids", flush=True)
    theirs = Trained(remi, train, model.network.config).learn(options.minutes, valid) / notes
    ours = model.record.valid_nats_per_note
    assert ours is not None  # there are validation pieces
    fewer = 1 - ours / theirs
    print(f"nats a note: Etude {ours:.3f}, REMI and GPT-2 {theirs:.3f}: {fewer:.1%} fewer")


if __name__ == "__main__":
    main()
