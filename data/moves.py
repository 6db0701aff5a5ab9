"""Moves: what one voice, or a pair of voices, does from note to note."""

from itertools import combinations

import numpy as np

from common.arrays import Ints
from common.interface import OCTAVE
from data.statistics import REST, VOICES, Music

FARTHEST = 9  # semitones; a longer step counts as this long
STEPS = 2 * FARTHEST + 1
PAIRS = [*combinations(range(len(VOICES)), 2)]
FIRST_OF_PAIRS = len(VOICES) * STEPS * STEPS
MOVES = FIRST_OF_PAIRS + len(PAIRS) * STEPS * STEPS * OCTAVE  # how many different moves there are

# The half of the moves that no critic weighs, so that pieces can be judged by it
# (evaluation/moves.py).
IS_KEPT_BACK = np.random.default_rng(0).random(MOVES) < 0.5


def moves_of(music: Music) -> tuple[Ints, Ints]:
    """Return the moves of a piece (N,), numbered from 0, and when each is over (N,).

    A move of one voice is two steps in a row. A move of a pair of voices is how far each of them
    steps from one onset to the next, and the interval that they reach.
    """
    pitch, onsets = music.moves, music.onsets  # (S, 4), (S,)
    moves, times = list[Ints](), list[Ints]()
    for voice in range(len(VOICES)):
        sounds = pitch[:, voice] != REST
        steps = np.diff(pitch[sounds, voice])
        is_step = steps != 0
        steps = steps[is_step].clip(-FARTHEST, FARTHEST) + FARTHEST
        moves.append((voice * STEPS + steps[:-1]) * STEPS + steps[1:])
        times.append(onsets[sounds][1:][is_step][1:])
    for number, pair in enumerate(PAIRS):
        both = pitch[:, pair]
        sounds = (both != REST).all(axis=1)
        goes_on = sounds[:-1] & sounds[1:]
        upper, lower = (np.diff(both, axis=0)[goes_on].clip(-FARTHEST, FARTHEST) + FARTHEST).T
        interval = ((both[1:, 0] - both[1:, 1]) % OCTAVE)[goes_on]
        step = (number * STEPS + upper) * STEPS + lower
        moves.append(FIRST_OF_PAIRS + step * OCTAVE + interval)
        times.append(onsets[1:][goes_on])
    return np.concatenate(moves), np.concatenate(times)
