"""Store a trained model in the form that ships with Etude: in half precision, with its figures.

    python -m benchmarks.ship runs/bach/model.safetensors models/bach.safetensors
    python -m benchmarks.ship runs/a/model.safetensors runs/b/model.safetensors models/a.safetensors
    python -m benchmarks.ship models/bach.safetensors models/bach.safetensors --critic

The figures are computed with the stored weights, on the held-out splits of the corpus that the
model was trained on. They are stored in the file, and printed as lines for the table in
models/README.md; tests compare the two. The rhythms and loops of the training pieces are computed
again, too (data/rhythms.py, data/loops.py). With --any-rhythm there are no rhythms any more, until
--sampling fits again how the model samples, as at the end of training (evaluation/fit_sampling.py).
--critic fits the critic (fit_critic.py): on pieces from nothing, or with `--critic tunes` on their
openings and what the model adds to training tunes. If several models are given that began with the
same one, the mean of their weights is stored (Wortsman et al. 2022, Model soups); everything else
comes from the first.
"""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.given import accompanied_tunes, with_tune
from benchmarks.models import add_corpus, model_and_corpus, refused_in_a_line
from benchmarks.tables import parser_of
from common.cli import fail
from common.typed_json import to_json
from data.corpus.corpus import SPLITS, Corpus
from data.critic import Critic
from data.style import Style
from evaluation.fit_critic import critic_between, fit_critic, without_critic
from evaluation.fit_sampling import OPENING_BARS, fit_sampling
from evaluation.likelihood import EvaluationSet, measure_likelihood
from evaluation.samples import MAX_PIECES, sample_pieces, split_scores
from generation.model import Model
from model.serialization import ModelFile, load_model_file, save_model_file

# The most tokens that are written to fit the sampling options, and to fit the critic.
SAMPLING_TOKENS, CRITIC_TOKENS = 2_000_000, 1_500_000
PIECES, TUNES = "pieces", "tunes"  # what a critic can be learned from
HEARD_BARS = 12  # of openings that a critic learns from: what is written closes later


def card_line(name: str, split: str, its: dict[str, float]) -> str:
    """Return the line of a split for the table in models/README.md."""
    return (
        f"| `{name}` | {split} | {its['pieces']} | {its['notes']:,} | {its['nats_per_note']:.3f} |"
    )


def mean_of(files: Sequence[ModelFile]) -> ModelFile:
    """Return the first of several models with the mean of all their weights."""
    networks = [file.network for file in files]
    shapes = [{name: own.shape for name, own in each.weights.items()} for each in networks]
    if shapes.count(shapes[0]) < len(files):
        fail("the models are not alike: there is no mean of their weights")
    weights: dict[str, NDArray[np.floating]] = {
        name: np.mean([network.weights[name] for network in networks], axis=0, dtype=np.float32)
        for name in networks[0].weights
    }
    return replace(files[0], network=replace(networks[0], weights=weights))


def critic_with_tunes(model: Model, corpus: Corpus) -> Critic:
    """Learn what separates real music from what a model adds to tunes, and from its own openings.

    Half of the training tunes get other voices, and as many openings are written from nothing.
    """
    plain, pieces = without_critic(model), split_scores(corpus, "train")
    real = with_tune(pieces, model.style.tune)
    written = accompanied_tunes(plain, real[::2])
    whole = sample_pieces(plain, [OPENING_BARS] * len(written), 0, "Writing pieces")
    written += [score.excerpt(0, HEARD_BARS) for score in whole]
    real += [score.excerpt(0, HEARD_BARS) for score in pieces if len(score.bars) > HEARD_BARS]
    return critic_between(written, real, has_ends=False)


def fitted(model: Model, corpus: Corpus, options: Namespace) -> Style:
    """Return the style of a model with those parts fitted again that the options ask for."""
    pieces = split_scores(corpus, "train", MAX_PIECES)
    its = Style.of(pieces)
    draws_rhythms = not options.any_rhythm and (options.sampling or bool(model.style.rhythms))
    own = replace(
        model.style,
        rhythms=its.rhythms if draws_rhythms else (),
        loops=its.loops,
        monophonic=its.monophonic,
        closing=its.closing,
    )
    shipped = replace(model, style=own)
    if options.sampling:
        best = fit_sampling(shipped, pieces, SAMPLING_TOKENS)
        if best is None:
            fail(f"{options.shipped}: its pieces come to no end, or there are too few")
        shipped = best
    if options.critic:
        critic = (
            critic_with_tunes(shipped, corpus)
            if options.critic == TUNES
            else fit_critic(shipped, pieces, CRITIC_TOKENS)
        )
        if critic is None:
            fail(f"{options.shipped}: too few pieces to learn from")
        return replace(shipped.style, critic=critic)
    return shipped.style


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "checkpoints", metavar="FILE", nargs="+", help="the model.safetensors of a run, or of more"
    )
    parser.add_argument("shipped", metavar="NEW", type=Path, help="the file to write, in models/")
    parser.add_argument("--sampling", action="store_true", help="find how it samples best")
    parser.add_argument(
        "--any-rhythm", action="store_true", help="let notes begin on any step of a beat"
    )
    parser.add_argument(
        "--critic",
        nargs="?",
        const=PIECES,
        choices=(PIECES, TUNES),
        help="learn what separates its pieces from real ones",
    )
    add_corpus(parser)
    options = parser.parse_args()
    with refused_in_a_line():
        content = mean_of([load_model_file(each) for each in options.checkpoints])
        save_model_file(options.shipped, content, np.float16)
    options.checkpoint = options.shipped
    model, corpus = model_and_corpus(options)
    content = replace(content, style_json=to_json(fitted(model, corpus, options)))
    figures = dict[str, dict[str, Any]]()
    for split in SPLITS[1:]:
        result = measure_likelihood(model, {}, EvaluationSet.of_split(corpus, split))
        nats = result.nats_per_note["model"]
        figures[split] = {
            "pieces": result.pieces,
            "notes": result.notes,
            "nats_per_note": round(nats.value, 4),
            "interval": [round(nats.low, 4), round(nats.high, 4)],
        }
        print(card_line(options.shipped.name, split, figures[split]))
    valid = figures["valid"]["nats_per_note"]
    record = replace(content.record, figures=figures, valid_nats_per_note=valid)
    content = replace(content, record=record)
    save_model_file(options.shipped, content, np.float16)


if __name__ == "__main__":
    main()
