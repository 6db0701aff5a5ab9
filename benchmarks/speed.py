"""How fast sampling is, beside transformers' generate with its cache, and where the time goes.

    python -m benchmarks.speed
    python -m benchmarks.speed --rounds 9

Weights are random, so nothing need be trained. Ours is what the product does, at every shape: the
grammar masks every token, and the side input is computed for each (data/tokens/features.py). Each
runs on one thread and on all, and what counts is the better. Rounds take turns, so that what else
the machine does hits all alike; the ratio is that of the medians.
"""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.gpt2 import of_transformers
from common.cli import Parser, positive_integer
from data.score import Grid
from data.tokens.context import rebase
from data.tokens.features import SideArrays, SideFeatures
from data.tokens.vocabulary import Kind, Vocabulary
from generation.constrained_grammar import ConstrainedGrammar
from generation.length import Length
from generation.rows import ConstrainedState
from model.config import DecoderConfig, SamplingOptions
from model.decoder import Decoder
from model.decoding import engine_of
from model.engine import product
from model.sampling import sample
from model.steps import Ids

CHOICE = SamplingOptions(top_p=0.95)
TEMPO_BPM = 80  # quarter notes a minute of the chorale that counts as real time
TOKENS = 256  # a round
LONG_BARS = 1000
NO_END = Length(bars=10**6)  # none in sight

Run = Callable[[int], float]  # from batch size to seconds
Seconds = dict[tuple[str, int], list[float]]  # of each round, by name and threads


def vocabulary(pitches: int) -> Vocabulary:
    """Return four programs with so many pitches each; 90 make 512 ids."""
    return Vocabulary(
        meters=((3, 4), (4, 4)),
        tempos=(60, TEMPO_BPM, 100),
        programs=(52, 53, 54, 55),
        lowest_pitch=20,
        highest_pitch=19 + pitches,
        velocities=(64,),
        grid=Grid(),
    )


def random_decoder(words: Vocabulary, width: int) -> Decoder:
    """Four layers, four heads, a side input; no weight is left at its zero start."""
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(words.size, n_embd=width, **SideFeatures(words).shape)).eval()
    for weight in decoder.parameters():
        if not weight.any():
            torch.nn.init.normal_(weight, std=0.02)
    return decoder


class Chorale(ConstrainedGrammar):
    """Four voices in quarter notes, bars of 4/4: a shape that a random model would not find.

    All rows go in step, from the first Position on: the shape is a cycle of masks, which
    `Guide`'s are narrowed by.
    """

    def __init__(self, words: Vocabulary, bars: int) -> None:
        super().__init__(words, Length(bars=bars))
        quarter = words.grid.steps_per_beat
        ids = []  # a bar: for each token those that may stand there
        for position in range(0, words.longest_bar, quarter):
            ids.append([words.first(Kind.POSITION) + position])
            for voice in range(len(words.programs)):
                first = words.first(Kind.NOTE) + voice * words.pitch_count
                ids.append(list(range(first, first + words.pitch_count)))
                ids.append([words.first(Kind.DURATION) + quarter - 1])
        ids.append([words.first(Kind.BAR) + words.meters.index((4, 4))])
        self.shape = np.zeros((len(ids), words.size), dtype=bool)  # (tokens a bar, V)
        for mask, may_stand in zip(self.shape, ids, strict=True):
            mask[[*may_stand, words.first(Kind.PAD)]] = True  # Pad where the piece is over
        self.step = 0

    def after(self, prompt: Ids, batch: int) -> ConstrainedState:
        """Return the state of so many rows after a prompt."""
        state = self.start(batch)
        for token in prompt[1:]:
            super().advance(state, np.full(batch, token))
        return state

    def allowed(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """(B, V): of what `Guide` allows, what the shape has in this place."""
        return super().allowed(state) & self.shape[self.step % len(self.shape)]

    def advance(self, state: ConstrainedState, ids: Ids) -> None:
        """As the grammar's."""
        super().advance(state, ids)
        self.step += 1


def chorale_start(words: Vocabulary) -> Ids:
    """Return the ids before a `Chorale`: its first bar with its tempo."""
    meter, tempo = words.meters.index((4, 4)), words.tempos.index(TEMPO_BPM)
    first = (words.first(kind) for kind in (Kind.START, Kind.BAR, Kind.TEMPO))
    return np.add(list(first), [0, meter, tempo])


class Timed:
    """A grammar whose own seconds are counted."""

    def __init__(self, grammar: ConstrainedGrammar) -> None:
        self.grammar = grammar
        self.guidance = grammar.guidance
        self.seconds = 0.0

    def start(self, batch: int) -> ConstrainedState:
        """As the grammar's."""
        return self.grammar.start(batch)

    def allowed(self, state: ConstrainedState) -> NDArray[np.bool_]:
        """As the grammar's."""
        began = time.perf_counter()
        mask = self.grammar.allowed(state)
        self.seconds += time.perf_counter() - began
        return mask

    def advance(self, state: ConstrainedState, ids: Ids) -> None:
        """As the grammar's."""
        began = time.perf_counter()
        self.grammar.advance(state, ids)
        self.seconds += time.perf_counter() - began

    def side(self, state: ConstrainedState, ids: Ids) -> SideArrays:
        """As the grammar's."""
        began = time.perf_counter()
        side = self.grammar.side(state, ids)
        self.seconds += time.perf_counter() - began
        return side


def ours(decoder: Decoder, words: Vocabulary, tokens: int) -> Run:
    """Return a function from batch size to the seconds a token and step, grammar and all."""
    guide, steps = ConstrainedGrammar(words, NO_END), engine_of(decoder)

    def run(batch: int) -> float:
        start = [np.array([words.first(Kind.START)])] * batch
        generator = np.random.default_rng(0)
        began = time.perf_counter()
        new = sample(steps, start, guide, guide.start(batch), generator=generator, sampling=CHOICE)
        assert sum(1 for _ in itertools.islice(new, tokens)) == tokens
        return (time.perf_counter() - began) / tokens

    return run


def theirs(width: int, vocabulary_size: int, tokens: int) -> Run | None:
    """Return the same for a GPT-2 of that shape in transformers; None without transformers."""
    if find_spec("transformers") is None:
        return None
    torch.manual_seed(0)
    model = of_transformers(vocabulary_size, width).eval()

    def run(batch: int) -> float:
        start = torch.ones(batch, 1, dtype=torch.long)
        began = time.perf_counter()
        out = model.generate(
            start,
            attention_mask=start,
            do_sample=True,
            top_k=0,
            top_p=0.95,
            use_cache=True,
            max_new_tokens=tokens,
        )
        assert out.shape == (batch, tokens + 1)
        return (time.perf_counter() - began) / tokens

    return run


def best(run: Callable[[], object], rounds: int = 40) -> float:
    """Return the least seconds that it takes."""
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


@torch.inference_mode()
def parts(decoder: Decoder, words: Vocabulary, batch: int, tokens: int) -> dict[str, float]:
    """Return the least seconds a step by part, at the mean length of so many tokens.

    The floor is a sum over all the weights that a step multiplies by: each is read once.
    """
    steps = engine_of(decoder)
    start = words.first(Kind.START)
    prompts = np.full((batch, tokens // 2), start)
    features = SideFeatures(words)
    _, cache = steps.read(prompts, features.compute(prompts))
    side = features.compute(prompts[:, :1])

    def step() -> None:
        cache.length[:] = tokens // 2
        steps.read(prompts[:, :1], side, cache)

    step()
    matrices = [
        layer.weight.detach().numpy()
        for name, layer in decoder.named_modules()
        if isinstance(layer, torch.nn.Linear) and name != "side"
    ]
    vectors = [np.ones((batch, matrix.shape[1]), dtype=np.float32) for matrix in matrices]
    weights = torch.cat([torch.from_numpy(matrix).flatten() for matrix in matrices])

    def products() -> None:
        for vector, matrix in zip(vectors, matrices, strict=True):
            product(vector, matrix)

    times = {"floor": best(weights.sum), "products": best(products), "step": best(step, 200)}
    grammar = Timed(ConstrainedGrammar(words, NO_END))
    ids = [np.array([start])] * batch
    generator = np.random.default_rng(0)
    new = sample(steps, ids, grammar, grammar.start(batch), generator=generator, sampling=CHOICE)
    assert sum(1 for _ in itertools.islice(new, tokens)) == tokens
    times["grammar"] = grammar.seconds / tokens
    return times


def long_piece(decoder: Decoder, words: Vocabulary, bars: int) -> list[tuple[float, float]]:
    """(seconds, peak memory in MB so far) of each tenth of a piece of so many bars, one call."""
    chorale = Chorale(words, bars)
    prompt = chorale_start(words)
    state = chorale.after(prompt, batch=1)
    new = sample(
        engine_of(decoder),
        [prompt],
        chorale,
        state,
        generator=np.random.default_rng(0),
        sampling=CHOICE,
        rebase=partial(rebase, context_length=decoder.config.context_length, vocabulary=words),
    )
    tenths = []
    began = time.perf_counter()
    while chunk := len(list(itertools.islice(new, bars // 10 * len(chorale.shape)))):
        assert chunk == bars // 10 * len(chorale.shape)
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        tenths.append((time.perf_counter() - began, megabytes))
        began = time.perf_counter()
    return tenths


def seconds_in_turns(runs: Mapping[str, Run], batch: int, rounds: int) -> Seconds:
    """Time each run on one thread and on all, in turns; return seconds by name and threads."""
    all_threads = torch.get_num_threads()
    seconds: Seconds = {
        (name, threads): [] for name in runs for threads in sorted({1, all_threads})
    }
    for number in range(rounds + 1):  # the first warms up
        for name, threads in seconds:
            torch.set_num_threads(threads)
            taken = runs[name](batch)
            if number:
                seconds[name, threads].append(taken)
    torch.set_num_threads(all_threads)
    return seconds


def print_seconds(seconds: Seconds, batch: int) -> None:
    """Print a line for each run and number of threads, and the ratio where there is another."""
    for (name, threads), each in seconds.items():
        middle = median(each)
        print(
            f"{batch:>5} {name:12} {threads:>7} {batch / middle:9.0f} {1e3 * middle:18.2f} "
            f"{1e3 * min(each):7.2f}"
        )
    names = {name for name, _ in seconds}
    middles, least = (
        {name: min(of(each) for (n, _), each in seconds.items() if n == name) for name in names}
        for of in (median, min)
    )
    if "transformers" in names:
        ratios = [figure["transformers"] / figure["etude"] for figure in (middles, least)]
        print(f"{batch:>5} {'ratio':12} {'best':>7} {'':9} {ratios[0]:18.2f} {ratios[1]:7.2f}")


def print_parts(decoder: Decoder, words: Vocabulary, batch: int, whole: float) -> None:
    """Print where the time of the fastest step goes: `whole`, in seconds."""
    part = parts(decoder, words, batch, TOKENS)
    shown = {
        "floor: read the weights once": part["floor"],
        "products": part["products"],
        "the model's other operations": part["step"] - part["products"],
        "grammar and side input": part["grammar"],
        "choosing and the rest": whole - part["step"] - part["grammar"],
    }
    for name, value in shown.items():
        print(f"{'':7}{name:30} {1e6 * value:6.0f} us  {value / whole:4.0%} of the least step")


def print_long_piece(threads: int) -> None:
    """Print how fast the default model writes one chorale without end, and its memory."""
    torch.set_num_threads(threads)
    words = vocabulary(pitches=60)
    decoder = random_decoder(words, width=128)
    print(f"\nThe default model: width 128, vocabulary {words.size}; one chorale without end")
    bars = LONG_BARS // 10
    real = bars * 4 * 60 / TEMPO_BPM
    for number, (taken, megabytes) in enumerate(long_piece(decoder, words, LONG_BARS)):
        print(
            f"bars {number * bars + 1:4}-{(number + 1) * bars:4}: {taken:5.2f} s, "
            f"{bars / taken:4.0f} bars/s, {real / taken:4.0f} times real time; "
            f"peak memory so far {megabytes:.0f} MB"
        )


def main() -> None:
    """Run the command."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=positive_integer, default=5, help="of both (default: 5)")
    rounds = parser.parse_args().rounds

    words = vocabulary(pitches=90)
    decoder = random_decoder(words, width=256)
    print(
        f"4 layers, 4 heads, width 256, context 512, vocabulary {words.size}; "
        f"{TOKENS} tokens from nothing"
    )
    runs = {"etude": ours(decoder, words, TOKENS)}
    other = theirs(256, words.size, TOKENS)
    if other is None:
        print("to compare: pip install transformers")
    else:
        runs["transformers"] = other

    print(
        f"{'batch':>5} {'':12} {'threads':>7} {'tokens/s':>9} {'ms a step: median':>18} "
        f"{'least':>7}"
    )
    all_threads = torch.get_num_threads()
    for batch in (1, 8):
        seconds = seconds_in_turns(runs, batch, rounds)
        print_seconds(seconds, batch)
        mine = {threads: each for (name, threads), each in seconds.items() if name == "etude"}
        threads = min(mine, key=lambda threads: median(mine[threads]))
        torch.set_num_threads(threads)
        print_parts(decoder, words, batch, min(mine[threads]))
        torch.set_num_threads(all_threads)
    print_long_piece(threads)


if __name__ == "__main__":
    main()
