"""Why the model wrote a note: the alternatives, and the earlier notes that it looked at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from common.arrays import Floats, Ints, Reals
from data.score import Score
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import ConstraintError
from generation.model import Model
from model.temperature import allowed_alone, weights

ALTERNATIVES = 6  # the most that are returned, besides the note itself
NOT_SO = "the note was not written from what is said to have been given"


class Explanation(NamedTuple):
    """The alternatives to a note, and what the model looked at.

    Attributes:
        alternatives: program, pitch and probability of the likeliest notes, in descending order of
            probability, and of the note itself.
        nothing: the probability that no other note begins at that time.
        looked_at: (N,) for each of the N notes before it, its share of the model's attention to
            notes, averaged over layers and heads.
    """

    alternatives: list[tuple[int, int, float]]
    nothing: float
    looked_at: Reals


def explain_note(
    model: Model, grammar: ConstrainedGrammar, score: Score, number: int
) -> Explanation:
    """Compute which notes the model could have written in place of a note, under the grammar.

    Args:
        model: the model that wrote the piece, from `Request.to`.
        grammar: the grammar under which the model wrote it, from the same call.
        score: the piece.
        number: the number of the note in the piece; it must not be a given one.

    Raises:
        ConstraintError: the piece does not begin with what the grammar says was given, the note
            itself was given, or no id is allowed at that point.
    """
    vocabulary, prompt, config = model.vocabulary, grammar.given.prompt, model.steps.config
    ids = encode(score, vocabulary)
    place = int(np.flatnonzero(vocabulary.kind_of[ids] == Kind.NOTE)[number])
    if place < len(prompt) or not np.array_equal(ids[: len(prompt)], prompt):
        raise ConstraintError(NOT_SO)
    state = grammar.begin(1)
    grammar.read(state, ids[1:place])
    read = ids[:place] if place <= config.context_length else model.rebase(ids[:place])
    side = grammar.side(state, read[None]).window(0) if config.side_blocks else None
    logits, maps = model.steps.explained(read[None], side)
    allowed = grammar.allowed(state)
    if not allowed.any():
        raise ConstraintError(NOT_SO)
    few, its_ids = allowed_alone(logits, allowed)
    weight = weights(few, temperature=1.0)[0]
    probability = np.zeros(vocabulary.size)
    probability[its_ids[0]] = weight / weight.sum()
    notes = probability[vocabulary.ids(Kind.NOTE)]
    likeliest = np.argsort(-notes, kind="stable")[:ALTERNATIVES].tolist()
    its = int(ids[place]) - vocabulary.first(Kind.NOTE)
    if its not in likeliest:
        likeliest.append(its)
    alternatives = []
    for note in likeliest:
        if notes[note] > 0 or note == its:
            program, pitch = divmod(note, vocabulary.pitch_count)
            which = vocabulary.programs[program], vocabulary.lowest_pitch + pitch
            alternatives.append((*which, float(notes[note])))
    looked_at = maps.mean(axis=(0, 2))[0, 0]  # (T,)
    share = _on_notes(looked_at, vocabulary.kind_of[read], number)
    return Explanation(alternatives, float(1 - notes.sum()), share)


def _on_notes(attention: Floats, kinds: Ints, number: int) -> Reals:
    """Return the share (N,) of each note in the attention to tokens, (T,).

    The tokens end right before note N; attention to tokens that belong to no note is left out.
    """
    of_note = np.isin(kinds, (Kind.NOTE, Kind.EXTEND, Kind.DURATION, Kind.VELOCITY))
    heads = np.cumsum(kinds == Kind.NOTE)
    note = heads - 1 + number - heads[-1]
    shares = np.bincount(note[of_note], attention[of_note], minlength=number)
    return np.asarray(shares / max(float(shares.sum()), 1e-12))
