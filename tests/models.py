"""Models that know nothing but their vocabulary, and a tune to give them."""

import torch

from common.typed_json import to_json
from data.corpus.corpus import CorpusOptions, open_corpus
from data.critic import Critic
from data.midi.io import to_pretty_midi, write_midi
from data.score import DRUMS, SECONDS, UNNAMED, Grid, Part
from data.statistics import NAMES
from data.style import Style
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Vocabulary
from model.config import DecoderConfig
from model.decoder import Decoder
from model.decoding import network_of
from model.record import TrainingRecord
from model.serialization import ModelFile, save_model_file
from tests.music import GRID, piece

QUARTET = Vocabulary(((3, 4), (4, 4)), (80,), (40, 41, 42, 43), 36, 84, (80,), GRID)
POP = Grid(parts=(Part("MELODY", 0), Part("BRIDGE", 0), Part("PIANO", 0)), meter=(4, 4))
BAND = Vocabulary(((3, 4), (4, 4)), (80,), (0, 1, 2, DRUMS, UNNAMED + 33), 36, 84, (80,), POP)
ZEROS, ONES = (0.0,) * len(NAMES), (1.0,) * len(NAMES)  # of each statistic
PIANIST = Vocabulary(((1, 4),), (60,), (0,), 36, 84, (64, 80), SECONDS)


def untrained(path, vocabulary, seed=0, heads=2, context=96, record=None, **style):
    """Saves a model that knows its vocabulary and this of a style, no more; gives the path."""
    torch.manual_seed(seed)
    sizes = {"n_layer": 1, "n_head": heads, "n_embd": 16, "context_length": context}
    decoder = Decoder(DecoderConfig(vocabulary.size, **sizes, **SideFeatures(vocabulary).shape))
    torch.nn.init.normal_(decoder.head.weight, std=0.3)  # no two tokens alike
    vocabulary_json, style_json = vocabulary.to_json(), to_json(Style(**style))
    record = record or TrainingRecord()
    save_model_file(path, ModelFile(network_of(decoder), vocabulary_json, style_json, record))
    return path


def untrained_on(folder, path, transpose=2, seed=0):
    """Saves a model that knows nothing but the vocabulary of a corpus; gives the path."""
    corpus = open_corpus(folder, options=CorpusOptions(transpose=transpose))
    record = TrainingRecord(data={"path": str(folder), "transpose": transpose})
    return untrained(path, corpus.vocabulary, seed, heads=1, context=64, record=record)


def liking(word, weight=1.0):
    """A critic that likes pieces with more of the statistics in whose names this stands."""
    return Critic(ZEROS, ONES, tuple(weight * (word in name) for name in NAMES))


def tune(path, upbeat=False, program=40, bars=4):
    """Writes quarter notes, four bars of them, as a MIDI file; gives their Score."""
    steps = range(0, 48 * bars - 12, 12)
    notes = [(step, 12, 60 + step % 5, 80, program) for step in steps]
    score = piece(notes, [(3, 4, 12)] * upbeat + [(4, 4, 48)] * bars, 80)
    write_midi(score, path)
    return score


def four_parts(bars):
    """Four voices in quarter notes, a chord a beat."""
    voices = {40: 72, 41: 67, 42: 60, 43: 48}
    notes = [
        (12 * beat, 12, pitch + beat % 5, 80, program)
        for beat in range(4 * bars)
        for program, pitch in voices.items()
    ]
    return piece(notes, [(4, 4, 48)] * bars, 80)


def of_one_program(score, program):
    """Return a piece as a file has it whose tracks all say one program."""
    midi = to_pretty_midi(score)
    for instrument in midi.instruments:
        instrument.program = program
    return midi
