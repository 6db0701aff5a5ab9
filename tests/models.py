"""Models that know nothing but their vocabulary, and a tune to give them."""

import numpy as np
import torch

from common.typed_json import to_json
from data.canonical import canonical
from data.corpus.corpus import CorpusOptions, open_corpus
from data.critic import Critic
from data.midi.io import to_pretty_midi, write_midi
from data.score import BAR, DRUMS, NOTE, SECONDS, UNNAMED, Grid, Part
from data.statistics import NAMES
from data.style import Style
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Vocabulary
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import network_of
from model.record import TrainingRecord
from model.serialization import ModelFile, save_model_file
from tests.music import GRID

QUARTET = Vocabulary(((3, 4), (4, 4)), (80,), (40, 41, 42, 43), 36, 84, (80,), GRID)
POP = Grid(parts=(Part("MELODY", 0), Part("BRIDGE", 0), Part("PIANO", 0)), meter=(4, 4))
BAND = Vocabulary(((3, 4), (4, 4)), (80,), (0, 1, 2, DRUMS, UNNAMED + 33), 36, 84, (80,), POP)
ZEROS, ONES = (0.0,) * len(NAMES), (1.0,) * len(NAMES)  # of each statistic
PIANIST = Vocabulary(((1, 4),), (60,), (0,), 36, 84, (64, 80), SECONDS)


def untrained(path, vocabulary, seed=0, step=0, **style):
    """Saves a model that knows its vocabulary and this of a style, no more; gives the path."""
    torch.manual_seed(seed)
    decoder = Decoder(
        DecoderConfig(
            vocabulary.size,
            n_layer=1,
            n_head=2,
            n_embd=16,
            context_length=96,
            **SideFeatures(vocabulary).shape,
        )
    )
    torch.nn.init.normal_(decoder.head.weight, std=0.3)  # no two tokens alike
    vocabulary_json, style_json = vocabulary.to_json(), to_json(Style(**style))
    record = TrainingRecord(step=step)
    save_model_file(path, ModelFile(network_of(decoder), vocabulary_json, style_json, record))
    return path


def untrained_on(folder, path, transpose=2, seed=0):
    """Saves a model that knows nothing but the vocabulary of a corpus; gives the path."""
    corpus = open_corpus(folder, options=CorpusOptions(transpose=transpose), progress=False)
    torch.manual_seed(seed)
    size, shape = corpus.vocabulary.size, SideFeatures(corpus.vocabulary).shape
    decoder = Decoder(
        DecoderConfig(size, n_layer=1, n_head=1, n_embd=16, context_length=64, **shape)
    )
    torch.nn.init.normal_(decoder.head.weight, std=0.3)
    record = TrainingRecord(data={"path": str(folder), "transpose": transpose})
    vocabulary = corpus.vocabulary.to_json()
    save_model_file(path, ModelFile(network_of(decoder), vocabulary, to_json(Style()), record))
    return path


def liking(word, weight=1.0):
    """A critic that likes pieces with more of the statistics in whose names this stands."""
    return Critic(ZEROS, ONES, tuple(weight * (word in name) for name in NAMES))


def tune(path, upbeat=False, program=40, bars=4):
    """Writes quarter notes, four bars of them, as a MIDI file; gives their Score."""
    rows = np.array([(3, 4, 12)] * upbeat + [(4, 4, 48)] * bars, BAR)
    steps = range(0, 48 * bars - 12, 12)
    notes = np.array([(step, 12, 60 + step % 5, 80, program) for step in steps], NOTE)
    score = canonical(notes, rows, [80] * len(rows), GRID)[0]
    write_midi(score, path)
    return score


def four_parts(bars):
    """Four voices in quarter notes, a chord a beat."""
    onset = np.arange(4 * bars).repeat(4) * 12
    notes = np.zeros(len(onset), NOTE)
    notes["onset"], notes["duration"], notes["velocity"] = onset, 12, 80
    notes["program"] = np.tile([40, 41, 42, 43], 4 * bars)
    notes["pitch"] = np.tile([72, 67, 60, 48], 4 * bars) + onset // 12 % 5
    return canonical(notes, np.array([(4, 4, 48)] * bars, BAR), [80] * bars, GRID)[0]


def of_one_program(score, program):
    """Return a piece as a file has it whose tracks all say one program."""
    midi = to_pretty_midi(score)
    for instrument in midi.instruments:
        instrument.program = program
    return midi
