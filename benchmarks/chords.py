"""How much a model gains where it is told chords, and how much of the rule is left to do then.

python -m benchmarks.chords runs/bach/model.safetensors
python -m benchmarks.chords runs/bach/model.safetensors --rule 20 --split valid

nats    per note of held-out pieces, not told their chords and told (data/harmony.py finds them)
rule    pieces are written to the chords of so many held-out pieces, without and with their
        highest voice, at temperature 1, by the model not told of them and told: nats a note
        that the rule takes (minus the logarithm of the share of what would be likely without
        it), and the share of the choices in which it takes away what the model would choose
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import model.sampling
from benchmarks.given import MEASURES, closes_on_tonic
from benchmarks.models import add_corpus, model_and_corpus
from benchmarks.tables import parser_of
from common.cli import positive_integer
from common.interface import PAD
from data.chords import Span
from data.harmony import chords_of
from data.keys import estimate_key
from data.score import Score
from data.tokens.chords import told_chords
from data.tokens.features import SideArrays, has_harmony
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import encode
from data.tokens.windows import read_windows
from evaluation.samples import split_scores
from generation.chord_plan import NO_CHORDS
from generation.compose import compose
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import Constraints
from generation.length import Length
from generation.model import Model
from generation.request import Request
from generation.rules import allow_rows
from generation.seeds import voices_of
from model.config import SamplingOptions
from model.scoring import Row, token_nats

Ids = NDArray[np.int64]


def chord_text(score: Score, spans: Sequence[Span]) -> str:
    """Return the chords of a piece as `Constraints` takes them, each of its bars filled."""
    starts, bars = score.bar_starts.tolist(), list[str]()
    unit = score.grid.steps_per_beat
    for begin, end in itertools.pairwise(starts):
        words, at = list[str](), begin
        here = [span for span in spans if span.begin < end and span.end > begin]
        for span in here:
            first, stop = max(span.begin, begin), min(span.end, end)
            if first > at:
                words.append(f"N.C.:{first - at}/{unit}")
            words.append(f"{span.chord.name}:{stop - first}/{unit}")
            at = stop
        if at < end:
            words.append(f"N.C.:{end - at}/{unit}")
        bars.append(" ".join(words))
    return "|" + "|".join(bars)


def told_side(model_: Model, pieces: Sequence[Ids], spans: Sequence[Sequence[Span]]) -> Any:
    """Return what makes the side input of windows of pieces that are told their chords."""
    chords = told_chords(spans)
    now = [read_windows(piece[None], model_.vocabulary).now[0] for piece in pieces]

    def side(ids: Ids, rows: Sequence[Row]) -> SideArrays:
        last = np.count_nonzero(ids != PAD, axis=1) - 1
        own = read_windows(ids, model_.vocabulary).now[np.arange(len(ids)), last]
        begin = np.array([now[row.piece][row.end - 1] for row in rows]) - own
        which = np.array([row.piece for row in rows])
        nothing = model_.features.nothing(len(ids))
        context = nothing._replace(harmony=which, chords=chords, begin=begin)
        return model_.features.compute(ids, context)

    return side


def nats_per_note(model_: Model, scores: Sequence[Score]) -> tuple[float, float]:
    """Return the nats per note of pieces, not told their chords and told."""
    pieces = [encode(score, model_.vocabulary) for score in scores]
    allowed = [*map(Grammar(model_.vocabulary).masks, pieces)]
    sides = (model_.side, told_side(model_, pieces, [chords_of(score) for score in scores]))
    notes = sum(len(score.notes) for score in scores)
    untold, told = (
        sum(
            float(nats.sum())
            for nats in token_nats(model_.steps, pieces, allowed, rebase=model_.rebase, side=side)
        )
        / notes
        for side in sides
    )
    return untold, told


def report_nats(model_: Model, scores: Sequence[Score]) -> None:
    """Print what telling chords is worth."""
    untold, told = nats_per_note(model_, scores)
    gain = f"not told {untold:.4f}, told {told:.4f} ({told / untold - 1:+.1%})"
    print(f"{len(scores)} pieces: {gain} nats per note")


class Watched(ConstrainedGrammar):
    """A grammar that knows what would be allowed if no chords had to hold."""

    free: NDArray[np.bool_]
    is_told = True

    def allowed(self, state: Any) -> NDArray[np.bool_]:
        """Return what may come next, and keep what might come without chords."""
        self.free = np.empty((len(state.at), self.vocabulary.size), dtype=bool)
        allow_rows(self._rules._replace(chords=NO_CHORDS), state.rows, self.free)
        return super().allowed(state)

    def _window(self, state: Any, ids: Ids) -> Any:
        window = super()._window(state, ids)
        if not self.is_told:
            window.context.harmony[:] = -1
        return window


def left_to_rule(model_: Model, request: Request, is_told: bool) -> tuple[float, float, int, int]:
    """Return the nats that the rule takes of a piece, its share of choices, choices and notes."""
    taken, grammars = list[float](), list[Watched]()

    def watched(*arguments: Any) -> Watched:
        grammars.append(Watched(*arguments))
        grammars[-1].is_told = is_told
        return grammars[-1]

    plain = model.sampling.allowed_alone

    def watch(logits: NDArray[Any], allowed: NDArray[np.bool_]) -> Any:
        either = grammars[-1].free[0] | allowed[0]
        likely = np.exp(logits[0] - logits[0][either].max(), dtype=float) * either
        taken.append(-float(np.log(likely[allowed[0]].sum() / likely.sum())))
        return plain(logits, allowed)

    with (
        patch("generation.request.ConstrainedGrammar", watched),
        patch("model.sampling.allowed_alone", watch),
    ):
        piece = compose(model_, request)[0]
    nats = np.array(taken)
    notes = int(np.count_nonzero(~piece.is_given))
    return float(nats.sum()), float((1 - np.exp(-nats)).sum()), len(nats), notes


def rule(model_: Model, scores: Sequence[Score]) -> None:
    """Print what is left to the rule."""
    for has_melody, is_told in itertools.product((False, True), (False, True)):
        total = np.zeros(4)
        for number, score in enumerate(scores):
            request = asked(model_, score, has_melody, number)
            total += left_to_rule(model_, request, is_told) if request else 0
        nats, share, choices, notes = total.tolist()
        name = "with the melody" if has_melody else "from nothing"
        left = f"{nats / notes:.3f} nats a note, {share / choices:.2%} of choices"
        print(f"{name}, {'told' if is_told else 'not told'}: {left}", flush=True)


def asked(model_: Model, score: Score, has_melody: bool, number: int) -> Request | None:
    """Return what is asked for: the chords of a piece, with its highest voice or without.

    Without, only its bars are asked for that are whole; None: there are none.
    """
    sampling, seed, length, meter = SamplingOptions(), None, None, None
    if has_melody:
        seed = voices_of(score, model_.vocabulary)
        score = score.excerpt(0, len(seed.score.bars))  # the voice may end before the others
    else:
        score = whole_bars(score.excerpt(int(score.has_upbeat), len(score.bars)))
        if not len(score.bars):
            return None
        meter, length = tuple(score.bars[0].tolist()[:2]), Length(bars=len(score.bars))
    text = chord_text(score, chords_of(score))
    constraints = Constraints(chords=text, time_signature=meter)
    return Request(seed, length, constraints, sampling, random_seed=number)


def harmonize(model_: Model, scores: Sequence[Score]) -> None:
    """Print how the highest voices of pieces are harmonized, without chords and with their own."""
    sets: dict[str, list[Score]] = {"without chords": [], "with chords": [], "the pieces": []}
    for number, score in enumerate(scores):
        request = asked(model_, score, True, number)
        assert request
        request = replace(request, sampling=None)
        plain = replace(request, constraints=Constraints())
        for name, each in (("without chords", plain), ("with chords", request)):
            sets[name].append(compose(model_, each)[0].score)
        sets["the pieces"].append(score)
    for name, written in sets.items():
        found = [f"{np.nanmean([m(each) for each in written]):.4g} {m.__name__}" for m in MEASURES]
        ends = [
            closes_on_tonic(*each) for each in zip(written, map(estimate_key, scores), strict=True)
        ]
        print(f"{name}: {', '.join(found)}, {np.mean(ends):.0%} end on the tonic")


def whole_bars(score: Score) -> Score:
    """Return the bars of a piece before the first that is of another length."""
    lengths = score.bars["length"]
    other = np.flatnonzero(lengths != lengths[0])
    return score.excerpt(0, int(other[0]) if len(other) else len(lengths))


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("checkpoint", metavar="MODEL")
    parser.add_argument("--split", choices=("valid", "test"), default="valid")
    parser.add_argument("--pieces", type=positive_integer, default=40, metavar="N")
    parser.add_argument("--rule", type=int, default=0, metavar="N", help="its pieces")
    parser.add_argument("--harmonize", type=int, default=0, metavar="N", help="likewise")
    add_corpus(parser)
    options = parser.parse_args()
    model_, corpus = model_and_corpus(options)
    scores = split_scores(corpus, options.split, options.pieces)
    if has_harmony(model_.network.config.side_blocks):
        report_nats(model_, scores)
    if options.harmonize:
        harmonize(model_, scores[: options.harmonize])
    if options.rule:
        rule(model_, scores[: options.rule])


if __name__ == "__main__":
    main()
