"""Train and score on the data sets of Boulanger-Lewandowski et al. (2012), in their papers' units.

    python -m benchmarks.published PATH/Jsb16thSeparated.json
    python -m benchmarks.published PATH/Jsb16thSeparated.json --run runs/3 --model.n_layer 3
    python -m benchmarks.published PATH/Jsb16thSeparated.json -c runs/chorales/model.safetensors
    python -m benchmarks.published PATH/JSB_Chorales.npz --minutes 30
    ... --config benchmarks/configs/student.yaml --run runs/student --model.teachers "[ONE, OTHER]"

A .json file holds chorales on a grid of sixteenth notes, one pitch for each voice and step, as in
github.com/czhuang/JSB-Chorales-dataset. Each voice becomes a program of its own, and nats are
divided by four voices times the number of sixteenths. A .npz file holds frames: the piano keys that
sound in an eighth note (in JSB_Chorales, a quarter note). For each split, `SPLIT` holds the frames
of all pieces end to end, 88 keys from A0, packed by np.packbits along rows, and `SPLIT_frames` the
number of frames of each piece. Nats are divided by the number of frames.

The pieces become a folder of MIDI files. The source does not distinguish a held note from one that
is struck again, so --strike says after how many steps a pitch that goes on is struck again. Then
the model need not foresee a long note when it begins, but decides on each beat. train.py trains on
that folder; all options but this program's own go to it. The result is reported as in papers: the
total nats of a split, End included, untransposed. The source can be restored from the tokens,
except silence before the first note and after the last. So the result is the source's likelihood
or a little lower, because the probability of other notes that sound the same is lost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import train
from benchmarks.models import refused_in_a_line
from benchmarks.tables import parser_of
from common.arrays import Ints
from common.cli import fail
from common.files import replace_folder
from data.canonical import canonical
from data.corpus.bach import PROGRAMS, TEMPO_BPM
from data.corpus.corpus import Corpus, CorpusError
from data.corpus.embedded import VELOCITY
from data.midi.io import midi_bytes
from data.score import BAR, NOTE, Grid, Score
from data.tokens.tokenizer import decode
from evaluation.likelihood import EvaluationSet, measure_likelihood
from generation.model import Model, corpus_of, load

REST, HIGHEST = -1, 127
KEYS, LOWEST = 88, 21  # the number of a piano's keys, and the pitch of the first
FRAMES_PER_QUARTER = {"JSB_Chorales": 1}  # else 2
Pieces = dict[str, list[Ints]]  # by split: the pitches (T, L) of each piece, T steps, L lines


class Layout(NamedTuple):
    """How a file's pieces become notes, and where they go."""

    programs: Sequence[int]  # one for each line
    grid: Grid
    tempo_bpm: int
    strike: int  # the default of --strike
    cells: int  # in a row, as papers count them
    cell: str
    config: str
    run: str
    folder: str  # with {} for --strike; configs/chorales.yaml trains on the one for every beat


CHORALES = Layout(
    programs=[*PROGRAMS.values()],  # soprano, alto, tenor, bass
    grid=Grid(steps_per_beat=4),
    tempo_bpm=TEMPO_BPM,
    strike=4,
    cells=4,
    cell="voice-sixteenth",
    config="benchmarks/configs/chorales.yaml",
    run="runs/chorales",
    folder="datasets/jsb/struck-{}",
)


def frames(name: str) -> Layout:
    """Return the layout of a data set of frames."""
    grid = Grid(steps_per_beat=FRAMES_PER_QUARTER.get(name, 2))
    return Layout(
        programs=[0] * KEYS,
        grid=grid,
        tempo_bpm=grid.default_tempo_bpm,
        strike=0,
        cells=1,
        cell="frame",
        config="benchmarks/configs/frames.yaml",
        run=f"runs/{name}",
        folder=f"datasets/frames/{name}-{{}}",
    )


def read_grids(source: Path) -> Pieces:
    """Read the chorales of each split of a JSON file.

    Raises:
        ValueError: the file holds something else.
    """
    splits = json.loads(source.read_text(encoding="utf-8"))
    pieces = {name: [np.array(piece) for piece in each] for name, each in splits.items()}
    for name, each in pieces.items():
        for number, grid in enumerate(each):
            is_grid = grid.ndim == 2 and grid.shape[1] == CHORALES.cells and grid.dtype.kind == "i"
            if not is_grid or grid.min() < REST or grid.max() > HIGHEST:
                raise ValueError(f"{name}, piece {number}: not one pitch a voice and step")
    return pieces


def read_frames(source: Path) -> Pieces:
    """Read the pieces of each split of a .npz file; each line is a key of the piano.

    Raises:
        ValueError: the file holds something else.
    """
    with np.load(source, allow_pickle=False) as file:
        arrays = dict(file)
    pieces = {}
    for name in (each for each in arrays if f"{each}_frames" in arrays):
        sounds = np.unpackbits(arrays[name], axis=1)[:, :KEYS]
        counts = arrays[f"{name}_frames"]
        if sounds.shape != (counts.sum(), KEYS):
            raise ValueError(f"{name}: not {KEYS} keys in each of {counts.sum():,} frames")
        pitches = np.where(sounds, LOWEST + np.arange(KEYS), REST)
        pieces[name] = np.split(pitches, np.cumsum(counts)[:-1])
    if not pieces:
        raise ValueError("no split and its numbers of frames")
    return pieces


def runs(values: Ints, strike: int) -> tuple[Ints, Ints]:
    """Return where runs of equal values (T,) begin, and how long they are, (N,) each.

    A new run begins every `strike` steps, counted from the first step; 0: never.
    """
    steps = np.arange(len(values))
    is_struck = steps % strike == 0 if strike else steps == 0
    is_new = np.append(False, values[1:] != values[:-1])
    onsets = np.flatnonzero(is_new | is_struck)
    return onsets, np.diff(onsets, append=len(values))


def score_of(pitches: Ints, layout: Layout, strike: int) -> Score:
    """Turn pitches (T, L) into a piece in bars of 4/4 that begin at the first row.

    A pitch that goes on is struck again every `strike` steps, counted from the first step; 0: it is
    held.
    """
    rows = [
        (onset, length, own[onset], VELOCITY, program)
        for program, own in zip(layout.programs, pitches.T, strict=True)
        for onset, length in zip(*runs(own, strike), strict=True)
        if own[onset] != REST
    ]
    bar_steps = layout.grid.bar_steps(4, 4)
    bars = np.full(-(-len(pitches) // bar_steps), 0, dtype=BAR)
    bars["numerator"], bars["denominator"], bars["length"] = 4, 4, bar_steps
    tempos = np.full(len(bars), layout.tempo_bpm)
    return canonical(np.array(rows, dtype=NOTE), bars, tempos, layout.grid)[0]


def write_corpus(scores: Mapping[str, Sequence[Score]], folder: Path) -> None:
    """Write the pieces of each split as FOLDER/SPLIT/NUMBER.mid; leave an existing folder alone.

    Raises:
        CorpusError: the folder exists and holds other pieces.
    """
    files = {
        f"{split}/{number:03}.mid": midi_bytes(score)
        for split, each in scores.items()
        for number, score in enumerate(each)
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


def check(scores: Mapping[str, Sequence[Score]], corpus: Corpus) -> None:
    """Assert that the tokens of a corpus hold the source, note for note."""
    for name, each in scores.items():
        split = corpus.split(name)
        assert len(split) == len(each), f"{name}: {len(split)} of {len(each)}"
        for index, file in enumerate(split.names):
            source = each[int(Path(file).stem)].notes.copy()
            own = decode(split.piece(index), corpus.vocabulary).notes.copy()
            for notes in (source, own):  # silence before the first note is not kept
                notes["onset"] -= notes["onset"][0]
            assert np.array_equal(own, source), f"{file}: not what the source says"


def print_scores(model: Model, pieces: EvaluationSet, cells: int, cell: str) -> None:
    """Print the nats of a split per cell and per note, by kind of token."""
    figures = measure_likelihood(model, {}, pieces)
    notes = figures.notes
    print(f"{pieces.name}: {figures.pieces} pieces, {cells:,} {cell}s, {notes:,} notes")
    print(f"{'nats':12}{f'a {cell}':>24}{'':18}{'a note':>8}")
    for name, its in {"all": figures.nats_per_note["model"], **figures.nats_by_kind}.items():
        value, low, high = (each * notes / cells for each in (its.value, its.low, its.high))
        print(f"{name:12}{value:24.4f}{f'[{low:.4f}, {high:.4f}]':>18}{its.value:8.4f}")
    found, network = model.network.weights["temperature"], model.network
    weights = {**network.weights, "temperature": np.ones_like(found)}
    plain = replace(model, network=replace(network, weights=weights))
    at_one = measure_likelihood(plain, {}, pieces).nats_per_note["model"].value * notes / cells
    print(f"temperature {found:.2f}, found on valid; at 1: {at_one:.4f}")
    print(f"{network.parameter_count:,} parameters, trained for {model.record.step:,} steps")


def report(
    options: argparse.Namespace, others: Sequence[str], layout: Layout, pieces: Pieces
) -> None:
    """Train or load a model, and print its figures."""
    strike = layout.strike if options.strike is None else options.strike
    folder = layout.folder.format(strike)
    scores = {
        split: [score_of(own, layout, strike) for own in each] for split, each in pieces.items()
    }
    write_corpus(scores, Path(folder))
    checkpoint = options.checkpoint
    if checkpoint is None:
        checkpoint = options.run or Path(layout.run)
        if checkpoint.exists():
            fail(f"{checkpoint}: holds an earlier run; give another --run, or -c to score it")
        run = ["--config", options.config or layout.config, "--run", str(checkpoint)]
        run += ["--data.path", folder, "--data.steps_per_beat", str(layout.grid.steps_per_beat)]
        train.main(["fit", *run, *others])
    model = load(checkpoint)
    if (learned := model.record.data["path"]) != folder:
        fail(f"{checkpoint} learned {learned}, not {folder}: which --strike?")
    corpus = corpus_of(model, folder, "datasets")
    check(scores, corpus)
    cells = layout.cells * sum(map(len, pieces[options.split]))
    print_scores(model, EvaluationSet.of_split(corpus, options.split), cells, layout.cell)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("source", type=Path, help="Jsb16thSeparated.json, or a .npz file of frames")
    parser.add_argument(
        "--strike",
        type=int,
        choices=range(17),
        metavar="STEPS",
        help="after so many a pitch that goes on is struck again; 0: never (default: chorales 4)",
    )
    parser.add_argument("--config", help="what to train")
    parser.add_argument("--run", type=Path, help="where to")
    parser.add_argument("-c", "--checkpoint", type=Path, help="a model that is trained, to score")
    parser.add_argument("--split", choices=("train", "valid", "test"), default="valid")
    options, others = parser.parse_known_args(argv)
    if others and options.checkpoint:
        fail(f"{' '.join(others)}: options of a training run, but none is asked for")
    if path := next((option for option in others if option.startswith("--data.path")), None):
        fail(f"{path}: it is the source's pieces that are learned; leave it out")
    is_json = options.source.suffix == ".json"
    layout = CHORALES if is_json else frames(options.source.stem)
    with refused_in_a_line():
        try:
            pieces = (read_grids if is_json else read_frames)(options.source)
        except (AttributeError, TypeError, ValueError) as error:
            fail(f"{options.source}: {error}; it is Jsb16thSeparated.json or frames that is wanted")
        report(options, others, layout, pieces)


if __name__ == "__main__":
    main()
