"""The four-part chorales of the literature: its grid of sixteenths, its splits and its unit.

    python -m benchmarks.chorales PATH/Jsb16thSeparated.json
    python -m benchmarks.chorales PATH/Jsb16thSeparated.json --run runs/3 --model.n_layer 3
    python -m benchmarks.chorales PATH/Jsb16thSeparated.json -c runs/chorales/model.safetensors
    python -m benchmarks.chorales PATH/Jsb16thSeparated.json -c ONE -c OTHER    # their mean
    ... --config benchmarks/configs/student.yaml --run runs/student --model.teachers "[ONE, OTHER]"

The file is that of Boulanger-Lewandowski et al. 2012 on a grid of sixteenths, one pitch a voice
and step, as github.com/czhuang/JSB-Chorales-dataset has it. It becomes a folder of MIDI files,
each voice a program of its own. The source cannot tell a note that is held from one that is struck
again, so a pitch that goes on is struck again at every beat (--strike): what a model would have
to foresee when a note begins, it decides when the beat comes. train.py trains on that folder (all
options but ours are its own), and what it learned is reported as the literature does: total nats of
a split, End with them and untransposed, over four voices times its sixteenths. The grid comes back
cell for cell from the tokens, so that is the grid's own likelihood, or a little less: what a model
gives to other notes that fill the same cells is lost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import train
from benchmarks.models import refused_in_a_line
from benchmarks.tables import parser_of
from common.arrays import Ints
from common.cli import fail
from common.files import replace_folder
from common.interface import SideInput
from data.canonical import canonical
from data.corpus.bach import PROGRAMS, TEMPO_BPM
from data.corpus.corpus import Corpus, CorpusError
from data.corpus.embedded import VELOCITY
from data.midi.io import midi_bytes
from data.score import BAR, NOTE, Grid, Score
from data.tokens.tokenizer import decode
from evaluation.likelihood import EvaluationSet, measure_likelihood
from generation.model import Model, corpus_of, load
from model.decoder import Decoder
from model.decoding import PlainSteps, decoder_of

GRID = Grid(steps_per_beat=4)
FOLDER = "datasets/jsb/struck-{}"  # configs/chorales.yaml trains on that of every beat
CONFIG = "benchmarks/configs/chorales.yaml"
VOICES = np.array([*PROGRAMS.values()])  # soprano, alto, tenor, bass
REST, HIGHEST = -1, 127
Grids = dict[str, list[Ints]]  # by split; (T, 4) pitches a piece, a row a sixteenth


def runs(values: NDArray[Any], strike: int) -> tuple[Ints, Ints]:
    """Return where runs of equal values (T,) begin, and how long they are, (N,) each.

    A run begins anew every `strike` steps from the first on; 0: never.
    """
    steps = np.arange(len(values))
    is_struck = steps % strike == 0 if strike else steps == 0
    is_new = np.append(False, values[1:] != values[:-1])
    onsets = np.flatnonzero(is_new | is_struck)
    return onsets, np.diff(onsets, append=len(values))


def in_common_time(rows: Sequence[Any], steps: int, grid: Grid, tempo_bpm: int) -> Score:
    """Return notes, as NOTE has them, as a piece of so many steps in bars of 4/4."""
    bar_steps = grid.bar_steps(4, 4)
    bars = np.full(-(-steps // bar_steps), 0, dtype=BAR)
    bars["numerator"], bars["denominator"], bars["length"] = 4, 4, bar_steps
    tempos = np.full(len(bars), tempo_bpm)
    return canonical(np.array(rows, dtype=NOTE), bars, tempos, grid)[0]


def score_of(grid: Ints, strike: int) -> Score:
    """Turn pitches (T, 4), a row a sixteenth, into a piece in bars of 4/4 from the first row on.

    A pitch that goes on is struck again every `strike` steps from the first on; 0: it is held.
    """
    rows = [
        (onset, length, pitches[onset], VELOCITY, program)
        for program, pitches in zip(VOICES, grid.T, strict=True)
        for onset, length in zip(*runs(pitches, strike), strict=True)
        if pitches[onset] != REST
    ]
    return in_common_time(rows, len(grid), GRID, TEMPO_BPM)


def grid_of(score: Score) -> Ints:
    """Return the grid of a Score: undo `score_of`, up to a rest of all voices at the end."""
    notes = score.notes
    grid = np.full((int((notes["onset"] + notes["duration"]).max()), len(VOICES)), REST)
    for note in notes:
        voice = np.searchsorted(VOICES, note["program"])
        grid[note["onset"] : note["onset"] + note["duration"], voice] = note["pitch"]
    return grid


def read_grids(source: Path) -> Grids:
    """Read the pieces of each split of the JSON file.

    Raises:
        ValueError: it holds something else.
    """
    splits = json.loads(source.read_text(encoding="utf-8"))
    grids = {name: [np.array(piece) for piece in pieces] for name, pieces in splits.items()}
    for name, pieces in grids.items():
        for number, grid in enumerate(pieces):
            is_grid = grid.ndim == 2 and grid.shape[1] == len(VOICES) and grid.dtype.kind == "i"
            if not is_grid or grid.min() < REST or grid.max() > HIGHEST:
                raise ValueError(f"{name}, piece {number}: not one pitch a voice and step")
    return grids


def write_corpus(pieces: Mapping[str, Sequence[Score]], folder: Path) -> None:
    """Write the pieces of each split as FOLDER/SPLIT/NUMBER.mid; a folder that is there stays.

    Raises:
        CorpusError: the folder is there, and holds other pieces.
    """
    files = {
        f"{split}/{number:03}.mid": midi_bytes(score)
        for split, scores in pieces.items()
        for number, score in enumerate(scores)
    }
    if folder.exists():
        for name, content in files.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != content:
                raise CorpusError(f"{path} is another piece than the source's: delete {folder}")
        return
    with replace_folder(folder) as temporary:
        for name, content in files.items():
            (temporary / name).parent.mkdir(exist_ok=True)
            (temporary / name).write_bytes(content)


def check(grids: Grids, corpus: Corpus, strike: int) -> dict[str, int]:
    """Assert that tokens and files hold the source cell for cell; count each split's sixteenths."""
    sixteenths = {}
    for name, pieces in grids.items():
        split = corpus.split(name)
        assert len(split) == len(pieces), f"{name}: {len(split)} of {len(pieces)}"
        for index, file in enumerate(split.names):
            grid = pieces[int(Path(file).stem)]
            score = decode(split.piece(index), corpus.vocabulary)
            assert np.array_equal(grid_of(score), grid), f"{file}: not what the source says"
            notes = score_of(grid, strike).notes
            assert np.array_equal(score.notes, notes), f"{file}: not struck every {strike} steps"
        sixteenths[name] = sum(map(len, pieces))
    return sixteenths


class Mean(nn.Module):
    """Decoders of one vocabulary as one: the mean of the probabilities that they give.

    Args:
        decoders: at least one.
    """

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        self.decoders = nn.ModuleList(decoders)
        self.config, self.head = decoders[0].config, decoders[0].head

    def forward(self, ids: Tensor, side: SideInput[Tensor] | None = None) -> Tensor:
        """Return logits (B, T, V), up to a constant in each place; arguments as a decoder's."""
        each = [decoder(ids, side=side).log_softmax(dim=-1) for decoder in self.decoders]
        return torch.stack(each).logsumexp(dim=0)  # (N, B, T, V) -> (B, T, V)


def print_scores(
    models: Sequence[Model], corpus: Corpus, sixteenths: dict[str, int], split: str
) -> None:
    """Score a split by a model, or by the mean of several."""
    decoders = [decoder_of(model.network) for model in models]
    decoder: Any = Mean(decoders).eval()
    model = replace(models[0])
    object.__setattr__(model, "steps", PlainSteps(decoder))
    pieces = EvaluationSet.of_split(corpus, split)
    figures = measure_likelihood(model, {}, pieces)
    cells, notes = len(VOICES) * sixteenths[split], figures.notes
    parameters = sum(weight.numel() for weight in decoder.parameters())
    print(f"{split}: {figures.pieces} pieces, {cells:,} voice-sixteenths, {notes:,} notes")
    rows = [("a note", figures.nats_per_note["model"])]
    rows += [(f"  {name}", nats) for name, nats in figures.nats_by_kind.items()]
    print(f"{'nats':12}{'a voice and sixteenth':>24}{'':18}{'a note':>8}")
    for name, its in rows:
        value, low, high = (each * notes / cells for each in (its.value, its.low, its.high))
        print(f"{name:12}{value:24.4f}{f'[{low:.4f}, {high:.4f}]':>18}{its.value:8.4f}")
    temperatures = [each.temperature for each in decoders]
    found = [float(temperature) for temperature in temperatures]
    for temperature in temperatures:
        temperature.fill_(1)
    plain = measure_likelihood(model, {}, pieces).nats_per_note["model"]
    for temperature, value in zip(temperatures, found, strict=True):
        temperature.fill_(value)
    told = " and ".join(f"{value:.2f}" for value in found)
    print(f"temperature {told}, found on valid; at 1: {plain.value * notes / cells:.4f}")
    steps = " and ".join(f"{model.record.step:,}" for model in models)
    print(f"{parameters:,} parameters, trained for {steps} steps")


def check_alike(models: Sequence[Model], paths: Sequence[str], folder: str) -> None:
    """Refuse models of another folder, vocabulary or context length."""
    for path, model in zip(paths, models, strict=True):
        learned = model.record.data["path"]
        if learned != folder:
            fail(f"{path} learned {learned}, not {folder}: which --strike?")
        kinds = {(its.vocabulary, its.network.config.context_length) for its in (models[0], model)}
        if len(kinds) > 1:  # --data.transpose widens a vocabulary
            fail(f"{path} has another vocabulary or context length than {paths[0]}")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    options, others = command_line().parse_known_args(argv)
    if others and options.checkpoint:
        fail(f"{' '.join(others)}: options of a training run, but none is asked for")
    if path := next((option for option in others if option.startswith("--data.path")), None):
        fail(f"{path}: it is the source's pieces that are learned; leave it out")
    try:
        grids = read_grids(options.source)
    except (AttributeError, TypeError, ValueError) as error:
        fail(f"{options.source}: {error}; it is Jsb16thSeparated.json that is wanted")
    with refused_in_a_line():
        report(options, others, grids)


def report(options: argparse.Namespace, others: list[str], grids: Grids) -> None:
    """Train a model, or read some, and print the figures."""
    strike = options.strike
    folder = FOLDER.format(strike)
    pieces = {name: [score_of(grid, strike) for grid in each] for name, each in grids.items()}
    write_corpus(pieces, Path(folder))
    if options.checkpoint:
        models = [load(path) for path in options.checkpoint]
        check_alike(models, options.checkpoint, folder)
    else:
        if options.run.exists():
            fail(f"{options.run}: holds an earlier run; give another --run, or -c to score it")
        run = ["--config", options.config, "--run", str(options.run), "--data.path", folder]
        train.main(["fit", *run, *others])
        models = [load(options.run)]
    corpus = corpus_of(models[0], folder, "datasets")
    print_scores(models, corpus, check(grids, corpus, strike), options.split)


def command_line() -> argparse.ArgumentParser:
    """Return the options that are ours; all others are train.py's."""
    parser = parser_of(__doc__)
    parser.add_argument("source", type=Path, help="Jsb16thSeparated.json")
    parser.add_argument(
        "--strike",
        type=int,
        choices=range(17),
        metavar="STEPS",
        default=4,
        help="after so many sixteenths a pitch that goes on is struck again; 0: never (default: 4)",
    )
    parser.add_argument("--config", default=CONFIG, help="what to train")
    parser.add_argument("--run", type=Path, default=Path("runs/chorales"), help="where to")
    parser.add_argument(
        "-c",
        "--checkpoint",
        action="append",
        default=[],
        help="a model that is trained, to be scored; several: the mean of their probabilities",
    )
    parser.add_argument("--split", choices=("train", "valid", "test"), default="valid")
    return parser


if __name__ == "__main__":
    main()
