"""How fast sampling is: compared with transformers' cached generate, and in notes per second.

    python -m benchmarks.speed
    python -m benchmarks.speed --rounds 9

The comparison with transformers uses random weights, so nothing has to be trained. Etude does all
that it does in use: the grammar masks every token, and the side input is computed for each
(data/tokens/features.py). Etude runs in one thread; transformers runs in one and in all, and the
better result counts. Rounds take turns, so that other work on the machine affects all alike; ratios
are those of the medians. Notes per second are measured with the shipped model, as `compose` writes
eight bars.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import islice
from statistics import median

import numpy as np
import torch

from benchmarks.gpt2 import of_transformers
from benchmarks.tables import head, in_turns, parser_of, row
from common.cli import positive_integer
from data.score import Grid
from data.tokens.features import SideFeatures
from data.tokens.vocabulary import Kind, Vocabulary
from generation.compose import compose
from generation.constrained_grammar import ConstrainedGrammar
from generation.length import Length
from generation.model import load
from generation.request import Request
from model.config import DecoderConfig, SamplingOptions
from model.decoder import Decoder
from model.decoding import network_of
from model.engine import Engine
from model.sampling import sample

CHOICE = SamplingOptions(top_p=0.95)
WIDTH, TOKENS = 256, 256  # the width of the decoder, and the tokens of a round
NO_END = Length(bars=10**6)  # so long that no end is in sight
BATCHES = (1, 8, 64)

Run = Callable[[], float]  # returns seconds


def vocabulary(pitches: int) -> Vocabulary:
    """Return a vocabulary of four programs with so many pitches each; 90 make 512 ids."""
    return Vocabulary(
        meters=((3, 4), (4, 4)),
        tempos=(60, 80, 100),
        programs=(52, 53, 54, 55),
        lowest_pitch=20,
        highest_pitch=19 + pitches,
        velocities=(64,),
        grid=Grid(),
    )


def random_decoder(words: Vocabulary) -> Decoder:
    """Return a decoder with four layers, four heads and a side input; no weights stay at zero."""
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(words.size, n_embd=WIDTH, **SideFeatures(words).shape)).eval()
    for weight in decoder.parameters():
        if not weight.any():
            torch.nn.init.normal_(weight, std=0.02)
    return decoder


def ours(words: Vocabulary, batch: int) -> Run:
    """Return a function that measures the seconds of a step of Etude, grammar included."""
    guide = ConstrainedGrammar(words, NO_END)
    steps = Engine(network_of(random_decoder(words)))

    def run() -> float:
        start = [np.array([words.first(Kind.START)])] * batch
        generator = np.random.default_rng(0)
        began = time.perf_counter()
        new = sample(steps, start, guide, guide.start(batch), generator=generator, sampling=CHOICE)
        assert sum(1 for _ in islice(new, TOKENS)) == TOKENS
        return (time.perf_counter() - began) / TOKENS

    return run


def theirs(size: int, batch: int, threads: int) -> Run:
    """Return a function that measures the same for a GPT-2 of that shape in transformers."""
    torch.manual_seed(0)
    model = of_transformers(size, WIDTH).eval()
    start = torch.ones(batch, 1, dtype=torch.long)
    options = {"do_sample": True, "top_k": 0, "top_p": 0.95, "use_cache": True}

    def run() -> float:
        torch.set_num_threads(threads)
        began = time.perf_counter()
        out = model.generate(start, attention_mask=start, max_new_tokens=TOKENS, **options)
        assert out.shape == (batch, TOKENS + 1)
        return (time.perf_counter() - began) / TOKENS

    return run


def beside_transformers(rounds: int) -> None:
    """Print a table of the time of a step, compared with transformers."""
    words, all_threads = vocabulary(pitches=90), torch.get_num_threads()
    print(f"4 layers, 4 heads, width {WIDTH}, context 512, vocabulary {words.size}")
    if find_spec("transformers") is None:
        print("to compare: pip install transformers")
    head("batch", "", "tokens/s", "ms a step", "least", "ratio")
    for batch in BATCHES:
        runs = {"etude": ours(words, batch)}
        if find_spec("transformers"):
            for threads in sorted({1, all_threads}):
                runs[f"transformers, threads: {threads}"] = theirs(words.size, batch, threads)
        taken = in_turns(runs, rounds)
        for name, each in taken.items():
            middle = median(each)
            ratio = middle / median(taken["etude"])
            figures = f"{batch / middle:.0f}", f"{1e3 * middle:.2f}", f"{1e3 * min(each):.2f}"
            row(batch, name, *figures, f"{ratio:.2f}")


def written(rounds: int) -> None:
    """Print how many notes per second the shipped model writes."""
    model = load("bach")

    def notes_a_second(pieces: int) -> float:
        began = time.perf_counter()
        new = compose(model, Request(length=Length(bars=8), samples=pieces, candidates=1))
        return sum(len(piece.score.notes) for piece in new) / (time.perf_counter() - began)

    head("bach, pieces at once", "notes/s")
    runs = {batch: partial(notes_a_second, batch) for batch in BATCHES}
    for batch, figures in in_turns(runs, rounds).items():
        row(batch, f"{median(figures):.0f}")


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=positive_integer, default=5, help="of all (default: 5)")
    rounds = parser.parse_args().rounds
    beside_transformers(rounds)
    written(rounds)


if __name__ == "__main__":
    main()
