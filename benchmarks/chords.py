"""How much a model gains where it is told chords, and how it harmonizes under them.

    python -m benchmarks.chords runs/bach/model.safetensors
    python -m benchmarks.chords runs/bach/model.safetensors --harmonize 40 --split test
    python -m benchmarks.chords runs/bach/model.safetensors --rule 20

nats       per note of held-out pieces, not told their chords and told (data/harmony.py finds them)
harmonize  the highest voices of so many held-out pieces, without chords and with their own: how the
           voices move, how many notes there are, how many of these lie outside the range that
           their voice has in training pieces, and how many pieces end on the tonic
rule       pieces to the chords of so many held-out ones, without and, where there are more voices,
           with their highest one, at temperature 1, by the model not told the chords and told: nats
           a note that the rule takes (minus the logarithm of the share that it leaves of what would
           be likely), and the share of the choices in which it takes away what the model would
           choose
busy       nothing of this, but notes a bar, the last left out, of a hundred pieces of 8 bars of 4/4
           of which nothing is asked, or to have so many
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.cadences import closes_on_tonic, estimate_key
from benchmarks.given import MEASURES
from benchmarks.models import add_corpus, model_and_corpus, told_nats
from benchmarks.tables import parser_of
from common.arrays import Bools, Ints, Reals
from common.cli import positive_integer
from data.chords import Span
from data.harmony import chords_of
from data.score import Score
from data.tokens.chords import told_chords
from data.tokens.features import has_harmony
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import encode
from evaluation.samples import split_scores
from generation.chord_plan import NO_CHORDS
from generation.compose import compose
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import Constraints
from generation.length import Length
from generation.model import Model, load
from generation.request import Request
from generation.rows import ConstrainedState
from generation.rules import allow_rows
from generation.seeds import voices_of
from model.config import SamplingOptions
from model.temperature import allowed_alone


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


def nats_per_note(model: Model, scores: Sequence[Score]) -> tuple[float, float]:
    """Return the nats per note of pieces, not told their chords and told."""
    pieces = [encode(score, model.vocabulary) for score in scores]
    allowed = [*map(Grammar(model.vocabulary).masks, pieces)]
    chords = told_chords([chords_of(score) for score in scores])
    untold = model.token_nats(pieces, allowed)
    told = told_nats(model, pieces, allowed, "harmony", chords=chords)
    notes = sum(len(score.notes) for score in scores)
    return sum(map(np.sum, untold)) / notes, sum(map(np.sum, told)) / notes


def report_nats(model: Model, scores: Sequence[Score]) -> None:
    """Print what telling chords is worth."""
    untold, told = nats_per_note(model, scores)
    gain = f"not told {untold:.4f}, told {told:.4f} ({told / untold - 1:+.1%})"
    print(f"{len(scores)} pieces: {gain} nats per note")


def request_for(model: Model, score: Score, number: int) -> Request:
    """Return what is asked for: the highest voice of a piece, under the chords of the piece."""
    seed = voices_of(score, model.vocabulary, tune=model.style.tune)
    score = score.excerpt(0, len(seed.score.bars))  # the voice may end before the others
    chords = Constraints(chords=chord_text(score, chords_of(score)))
    return Request(seed, None, chords, random_seed=number)


def notes_in_four_quarters(score: Score) -> float:
    """Return how many notes a piece has in four quarters."""
    return 4 * score.grid.steps_per_beat * len(score.notes) / score.end_step


def beyond_training(model: Model, score: Score) -> int:
    """Return how many notes lie outside the range that their voice has in training pieces."""
    low, high = np.array([model.style.ranges[p] for p in score.notes["program"].tolist()]).T
    return int(np.count_nonzero((score.notes["pitch"] < low) | (score.notes["pitch"] > high)))


def harmonize(model: Model, scores: Sequence[Score]) -> None:
    """Print how the highest voices of pieces are harmonized, without chords and with their own."""
    requests = [request_for(model, score, number) for number, score in enumerate(scores)]
    plain = [replace(request, constraints=Constraints()) for request in requests]
    sets = {
        "without chords": [compose(model, each)[0].score for each in plain],
        "with chords": [compose(model, each)[0].score for each in requests],
        "the pieces": list(scores),
    }
    keys = [estimate_key(score) for score in scores]
    for name, written in sets.items():
        measures = (*MEASURES, notes_in_four_quarters)
        found = [f"{np.nanmean([m(each) for each in written]):.4g} {m.__name__}" for m in measures]
        ends = [closes_on_tonic(*each) for each in zip(written, keys, strict=True)]
        found.append(f"{sum(beyond_training(model, each) for each in written)} beyond_training")
        print(f"{name}: {', '.join(found)}, {np.mean(ends):.0%} end on the tonic")


class Watched(ConstrainedGrammar):
    """A grammar that knows what it would allow if no chords had to hold."""

    is_told = True
    free: Bools

    def allowed(self, state: ConstrainedState) -> Bools:
        """Return what may come next, and keep what might come without chords."""
        self.free = np.empty((len(state.at), self.vocabulary.size), dtype=bool)
        allow_rows(self._rules._replace(chords=NO_CHORDS), state.rows, self.free)
        return super().allowed(state)

    def _window(self, state: ConstrainedState, ids: Ints) -> Any:
        window = super()._window(state, ids)
        if not self.is_told:
            window.context.harmony[:] = -1
        return window


def left_to_rule(model: Model, request: Request, is_told: bool) -> Reals:
    """Return (4,) what the rule does to a piece: nats, choices changed; and choices, notes."""
    nats, grammars = list[float](), list[Watched]()

    def watched(*arguments: Any) -> Watched:
        grammars.append(Watched(*arguments))
        grammars[-1].is_told = is_told
        grammars[-1].guidance *= is_told
        return grammars[-1]

    def watch(logits: NDArray[Any], allowed: Bools) -> Any:
        either = grammars[-1].free[0] | allowed[0]
        likely = np.exp(logits[0] - logits[0][either].max(), dtype=float) * either
        nats.append(-float(np.log(likely[allowed[0]].sum() / likely.sum())))
        return allowed_alone(logits, allowed)

    with (
        patch("generation.request.ConstrainedGrammar", watched),
        patch("model.sampling.allowed_alone", watch),
    ):
        piece = compose(model, request)[0]
    changed = (1 - np.exp(-np.array(nats))).sum()
    return np.array([sum(nats), changed, len(nats), np.count_nonzero(~piece.is_given)])


def rule(model: Model, scores: Sequence[Score]) -> None:
    """Print what is left to the rule."""
    is_of_many = len(model.vocabulary.programs) > 1  # one voice alone leaves none to write
    for make in (request_from_nothing, request_for)[: 1 + is_of_many]:
        for is_told in (False, True):
            requests = [make(model, score, number) for number, score in enumerate(scores)]
            at_one = [replace(each, sampling=SamplingOptions()) for each in requests]
            total = sum(left_to_rule(model, each, is_told) for each in at_one)
            nats, changed, choices, notes = np.asarray(total).tolist()
            left = f"{nats / notes:.3f} nats a note, {changed / choices:.1%} of choices"
            print(f"{make.__name__}, {'told' if is_told else 'not told'}: {left}", flush=True)


def request_from_nothing(model: Model, score: Score, number: int) -> Request:
    """Return what is asked for: the chords of a piece, of its whole bars before another meter."""
    score = score.excerpt(int(score.has_upbeat), len(score.bars))
    lengths = score.bars["length"]
    score = score.excerpt(0, int(np.argmax([*(lengths != lengths[0]), True])))
    chords = Constraints(
        chords=chord_text(score, chords_of(score)),
        time_signature=tuple(score.bars[0].tolist()[:2]),
    )
    return Request(None, Length(bars=len(score.bars)), chords, random_seed=number)


def tell_busy(model: Model, busy: Sequence[float]) -> None:
    """Print how many notes bars have where nothing is asked for, and where so many are."""
    for asked in (None, *busy):
        constraints = Constraints(time_signature=(4, 4), busy=asked)
        pieces = compose(model, Request(None, Length(bars=8), constraints, samples=100))
        onsets = [(p.score.notes["onset"], p.score.bar_starts[7]) for p in pieces]
        notes = [np.count_nonzero(onset < last) / 7 for onset, last in onsets]
        print(f"asked for {asked}: {np.mean(notes):.1f} notes a bar, deviation {np.std(notes):.1f}")


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("checkpoint", metavar="MODEL")
    parser.add_argument("--split", choices=("valid", "test"), default="valid")
    parser.add_argument("--pieces", type=positive_integer, default=40, metavar="N")
    parser.add_argument("--harmonize", type=int, default=0, metavar="N", help="pieces of it")
    parser.add_argument("--rule", type=int, default=0, metavar="N", help="likewise")
    parser.add_argument("--busy", nargs="+", type=float, metavar="N", help="notes a bar")
    add_corpus(parser)
    options = parser.parse_args()
    if options.busy:
        return tell_busy(load(options.checkpoint), options.busy)
    model, corpus = model_and_corpus(options)
    scores = split_scores(corpus, options.split, options.pieces)
    if has_harmony(model.network.config.side_blocks):
        report_nats(model, scores)
    if options.harmonize:
        harmonize(model, scores[: options.harmonize])
    if options.rule:
        rule(model, scores[: options.rule])


if __name__ == "__main__":
    main()
