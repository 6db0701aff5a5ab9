"""Given notes: how well a model accompanies, harmonizes and rewrites what it is given.

    python -m benchmarks.given
    python -m benchmarks.given -c runs/bach/model.safetensors --parts accompany
    python -m benchmarks.given --busy 12 16 20

Sampling options are generate.py's defaults. Each melody is accompanied in eighty pieces: eight for
each of ten random seeds. The first of the eight is the sample, the likeliest is the best. Each
melody is harmonized in ten pieces.

    accompany   typed melodies and the first four bars of held-out sopranos are joined by the other
                voices, and go on for eight bars. four voices: the share of the time from the first
                note on in which four instruments sound, the lowest of all samples; key: the key
                found is the melody's (`melody_key` of what is given); whole: it is the key of the
                whole chorale; triad, tonic: the last chord is a triad in root position, and on the
                tonic (benchmarks/endings.py), for the samples and for the best of eight; Bach: the
                chorales themselves
    harmonize   the same melodies, and whole held-out sopranos. opens, closes: all notes of the
                first and the last chord belong to the key, or the last is a major triad on the
                tonic, as in most of Bach's minor chorales; tonic: the last chord is the tonic triad
                in root position; then voice leading, compared with pieces from nothing
    tunes       eight bars of every second held-out piece: only the tune is kept, and the other
                voices are rewritten. How many of their notes begin at once, and how well a
                classifier separates these pieces from the other held-out ones (`tell_apart`,
                forest and logistic)
    voices      nats per note of one voice of held-out pieces, without and with knowledge of the
                other voices
    chords      whole held-out sopranos, without chords and with the chords that data/harmony.py
                finds in the chorale: voice leading, and how many pieces end on the tonic
    rewrite     two bars in the middle of held-out chorales, five times each. kept: everything else
                is unchanged, bit for bit; parallels and leaps (wider than a fifth, except octaves)
                at a seam, compared with the chorales themselves

With --busy, only this is measured: the notes a bar, last bar excluded, of a hundred pieces of 8
bars of 4/4, with nothing asked for and with each of these numbers asked for.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.cadences import closes_on_tonic, ends_on_tonic, estimate_key
from benchmarks.models import add_corpus, model_and_corpus
from benchmarks.tables import head, parser_of, row
from common.arrays import Bools, Ids, Reals, Records
from common.interface import PAD, SideArrays
from data.corpus.corpus import SPLITS, Corpus
from data.harmony import chords_of, ends_on_triad, final_chord
from data.instrument_names import instrument_name
from data.keys import Key, key_pitch_classes, melody_key, pitched_notes
from data.score import DRUMS, Score
from data.statistics import REST, Music
from data.tokens.augment import programs_of
from data.tokens.given import GivenNotes
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind, Vocabulary
from data.tokens.windows import read_windows
from data.voice_leading import FIFTH, PAIRS, UNISON, count_parallels, four_parts
from evaluation.classifier import by_forest, by_regression, tell_apart
from evaluation.comparison import statistics_of
from evaluation.samples import MAX_PIECES, sample_pieces, split_scores
from generation.compose import accompany, compose
from generation.constraints import Constraints
from generation.defaults import DEFAULT_LENGTH
from generation.length import Length
from generation.model import Model, load
from generation.request import Request
from generation.seeds import Seed, continued, rewritten, seed_from_notes, voices_of
from generation.writing import rank
from model.scoring import Row, token_nats

OPENINGS, OPENING_BARS, TUNES, RANDOM_SEEDS, BEST_OF, REWRITINGS = 10, 4, 20, 10, 8, 5
LEAP, REWRITTEN_BARS = 7, 2
TUNE_BARS, FEWEST_TUNE_NOTES, TUNES_KEPT = (2, 10), 12, 64
MELODIES = {  # that people type, all in C major
    "C4 E4 G4 C5": "C4 E4 G4 C5",
    "Twinkle, twinkle": "C4 C4 G4 G4 A4 A4 G4:2 F4:1 F4 E4 E4 D4 D4 C4:2",
    "Ode to Joy": "E4 E4 F4 G4 G4 F4 E4 D4 C4 C4 D4 E4 E4:1.5 D4:.5 D4:2",
}
# The lowest and highest notes of soprano, alto, tenor and bass, according to textbooks:
# C4-G5, G3-D5, C3-G4, E2-C4.
RANGES = np.array([(60, 79), (55, 74), (48, 67), (40, 60)])


def parallel_fifths(score: Score) -> float:
    """Count parallel perfect fifths, per 100 bars (see `count_parallels`)."""
    return count_parallels(score, FIFTH)


def parallel_octaves(score: Score) -> float:
    """Count parallel unisons and octaves, per 100 bars (see `count_parallels`)."""
    return count_parallels(score, UNISON)


def voice_crossing(score: Score) -> float:
    """Return the share of the time with several voices in which a higher one is below a lower."""
    parts = four_parts(score)
    if parts is None:
        return float("nan")
    steps = np.diff(parts[0])
    high, low = (parts[1][:, voices] for voices in PAIRS)
    is_pair = (high != REST) & (low != REST)
    together = int(steps[is_pair.any(axis=1)].sum())
    crossed = int(steps[(is_pair & (high < low)).any(axis=1)].sum())
    return crossed / together if together else float("nan")


def out_of_range(score: Score) -> float:
    """Return the share of the notes outside the range of their voice (RANGES)."""
    if four_parts(score) is None:
        return float("nan")
    pitches = [line.pitch for line in Music(score).lines if line is not None]
    is_out = [(p < low) | (p > high) for p, (low, high) in zip(pitches, RANGES, strict=True)]
    return float(np.concatenate(is_out).mean())


def notes_in_four_quarters(score: Score) -> float:
    """Return how many notes a piece has per four quarter notes."""
    return 4 * score.grid.steps_per_beat * len(score.notes) / score.end_step


MEASURES = (
    *(parallel_fifths, parallel_octaves, voice_crossing, out_of_range),
    notes_in_four_quarters,
)
MEASURED = [measure.__name__.replace("_", " ") for measure in MEASURES]


def measured(scores: Sequence[Score]) -> list[str]:
    """Return the mean of each of MEASURES over some pieces, as text."""
    return [f"{np.nanmean([measure(score) for score in scores]):.4g}" for measure in MEASURES]


@dataclass(frozen=True)
class Melody:
    """A melody as a seed that nothing joins yet, the key of its music, and Bach's own setting."""

    name: str
    seed: Seed
    key: Key
    score: Score | None = None


def typed_melodies(model: Model) -> list[Melody]:
    """Return the melodies that people type, all in C major."""
    vocabulary = model.vocabulary
    return [
        Melody(name, seed_from_notes(text, vocabulary), Key(0, "major"))
        for name, text in MELODIES.items()
    ]


def sopranos(model: Model, corpus: Corpus, count: int, bars: int | None) -> list[Melody]:
    """Return the highest voice of held-out chorales, or of their first `bars` bars."""
    melodies = []
    for number, score in enumerate(split_scores(corpus, "test")[:count], start=1):
        part = score.excerpt(0, bars + score.has_upbeat) if bars else score
        seed = continued(
            voices_of(part, model.vocabulary, tune=model.style.tune).score, model.vocabulary
        )
        melodies.append(Melody(f"chorale {number}", seed, estimate_key(score), score))
    return melodies


def first_chord(score: Score) -> np.ndarray:
    """Return the notes that sound when the fourth instrument enters."""
    notes = score.notes
    first = max(
        notes["onset"][notes["program"] == its].min() for its in np.unique(notes["program"])
    )
    sounding: np.ndarray = notes[
        (notes["onset"] <= first) & (notes["onset"] + notes["duration"] > first)
    ]
    return sounding


def is_in(chord: np.ndarray, key: Key) -> bool:
    """Return whether all notes of a chord belong to a key."""
    return bool(key_pitch_classes(key)[chord["pitch"] % 12].all())


def opens(score: Score, key: Key) -> bool:
    """Return whether all notes of a piece's first chord belong to a key."""
    return is_in(first_chord(score), key)


def closes(score: Score, key: Key) -> bool:
    """Return whether a piece's last chord belongs to a key, or has a Picardy third."""
    return is_in(final_chord(score), key) or closes_on_tonic(score, key)


def four_sound(score: Score) -> float:
    """Return the share of the time, from the first note on, in which four instruments sound."""
    notes = pitched_notes(score)
    sounds = np.zeros((DRUMS, int((notes["onset"] + notes["duration"]).max())), dtype=bool)
    for onset, duration, _, _, program in notes.tolist():
        sounds[program, onset : onset + duration] = True
    return float((sounds[:, notes["onset"].min() :].sum(axis=0) >= 4).mean())


def written(model: Model, seed: Seed, length: Length | None) -> tuple[list[Score], list[Score]]:
    """Return a sample and the best of eight pieces for each random seed."""
    pieces = compose(model, Request(seed, length, samples=RANDOM_SEEDS * BEST_OF))
    groups = [pieces[n : n + BEST_OF] for n in range(0, len(pieces), BEST_OF)]
    best = [rank(model, group)[0].score for group in groups]
    return [group[0].score for group in groups], best


def share(scores: Sequence[Score], holds: Callable[[Score], bool]) -> str:
    """Return, as text, for how many pieces something holds."""
    return f"{sum(map(holds, scores))}/{len(scores)}"


def accompaniments(model: Model, corpus: Corpus) -> None:
    """Print how well melodies are accompanied and continued."""
    head("seed", "four voices", "key", "whole", "triad", "of 8", "tonic", "of 8")
    everything: list[tuple[list[Score], list[Score], Melody]] = []
    openings = sopranos(model, corpus, OPENINGS, OPENING_BARS)
    for melody in typed_melodies(model) + openings:
        samples, best = written(model, accompany(model, melody.seed), DEFAULT_LENGTH)
        everything.append((samples, best, melody))
        print_accompaniment(melody.name, [everything[-1]])
    print_accompaniment("all", everything)
    print_accompaniment("Bach", [([m.score], [m.score], m) for m in openings if m.score])


def print_accompaniment(name: str, results: list[tuple[list[Score], list[Score], Melody]]) -> None:
    """Print a row of figures over melodies."""
    samples = [score for scores, _, _ in results for score in scores]
    best = [score for _, scores, _ in results for score in scores]
    found = [(estimate_key(score), its) for scores, _, its in results for score in scores]
    own = sum(key == (melody_key(pitched_notes(m.seed.score)) or m.key) for key, m in found)
    whole = sum(key == its.key for key, its in found)
    four = min(map(four_sound, samples))
    cells = (
        share(scores, test) for test in (ends_on_triad, ends_on_tonic) for scores in (samples, best)
    )
    of_all = len(found)
    row(name, f"{four:.1%}", f"{own}/{of_all}", f"{whole}/{of_all}", *cells)


CHORDS = (opens, closes, closes_on_tonic)


def harmonizations(model: Model, corpus: Corpus) -> None:
    """Print how well whole melodies are harmonized, with voice leading compared to from nothing."""
    head("tune", "opens", "closes", "tonic")
    samples: list[Score] = []
    total = np.zeros(len(CHORDS), dtype=int)
    for melody in typed_melodies(model)[1:] + sopranos(model, corpus, TUNES, None):
        pieces = compose(
            model,
            Request(
                voices_of(melody.seed.score, model.vocabulary, tune=model.style.tune),
                None,
                samples=RANDOM_SEEDS,
            ),
        )
        scores = [piece.score for piece in pieces]
        counts = [sum(is_so(score, melody.key) for score in scores) for is_so in CHORDS]
        samples += scores
        total += counts
        row(melody.name, *(f"{count}/{RANDOM_SEEDS}" for count in counts))
    row("all", *(f"{count / len(samples):.0%}" for count in total))
    chorales = split_scores(corpus, "test")
    keys = [estimate_key(score) for score in chorales]
    of_bach = [
        np.mean([is_so(*each) for each in zip(chorales, keys, strict=True)]) for is_so in CHORDS
    ]
    row("Bach", *(f"{share:.0%}" for share in of_bach))
    bars = [len(score.bars) for score in chorales]
    sets = {
        "harmonized": samples,
        "from nothing": sample_pieces(model, bars * 3, 0, "from nothing"),
        "Bach": chorales,
    }
    head("", *MEASURED)
    for name, scores in sets.items():
        row(name, *measured(scores))


def chord_text(score: Score) -> str:
    """Return the chords found in a piece, bar by bar, as a text for `Constraints`."""
    names = np.full(score.bar_starts[-1], "N.C.", dtype=object)
    for span in chords_of(score):
        names[span.begin : span.end] = span.chord.name
    unit = score.grid.steps_per_beat
    bars = (
        " ".join(f"{name}:{len([*its])}/{unit}" for name, its in itertools.groupby(names[a:b]))
        for a, b in itertools.pairwise(score.bar_starts.tolist())
    )
    return "|" + "|".join(bars)


def under_chords(model: Model, corpus: Corpus) -> None:
    """Print how well whole sopranos are harmonized, without chords and with Bach's own."""
    chorales = split_scores(corpus, "test")
    sets = {"without chords": list[Score](), "with chords": list[Score](), "Bach": chorales}
    for number, score in enumerate(chorales):
        seed = voices_of(score, model.vocabulary, tune=model.style.tune)
        own = score.excerpt(0, len(seed.score.bars))  # the voice may end before the others
        plain = Request(seed, None, random_seed=number)
        chords = Constraints(chords=chord_text(own))
        sets["without chords"].append(compose(model, plain)[0].score)
        sets["with chords"].append(compose(model, replace(plain, constraints=chords))[0].score)
    keys = [estimate_key(score) for score in chorales]
    head("", *MEASURED, "tonic")
    for name, scores in sets.items():
        ends = [closes_on_tonic(*each) for each in zip(scores, keys, strict=True)]
        row(name, *measured(scores), f"{np.mean(ends):.0%}")


def seam(score: Score, step: int) -> tuple[int, int]:
    """Count parallels and leaps from the notes before a step to the notes that begin there."""
    parts = four_parts(score)
    if parts is None:
        return 0, 0
    times, pitch = parts
    place = int(np.searchsorted(times, step))
    if not 0 < place < len(pitch) or times[place] != step:
        return 0, 0
    before, after = pitch[place - 1 : place + 1]
    move = np.where((before != REST) & (after != REST), after - before, 0)
    high, low = PAIRS
    is_like = np.isin((before[high] - before[low]) % 12, (UNISON, FIFTH))
    is_like &= (before[high] - before[low]) % 12 == (after[high] - after[low]) % 12
    is_like &= (np.sign(move[high]) == np.sign(move[low])) & (move[high] != 0)
    leaps = (np.abs(move) > LEAP) & (np.abs(move) != 12)
    return int(is_like.sum()), int(leaps.sum())


def rewritings(model: Model, corpus: Corpus) -> None:
    """Print what stays unchanged when two bars are rewritten, and how smooth the seams are."""
    kept, seams, own = True, [], []
    for score in split_scores(corpus, "valid"):
        seed = with_gap(score, model.vocabulary)
        begin = seed.first_open_step
        edges = (begin, begin + int(seed.is_open.any(axis=0).sum()))
        own += [seam(score, edge) for edge in edges]
        for piece in compose(model, Request(seed, None, samples=REWRITINGS)):
            kept &= bool(np.array_equal(piece.score.notes[piece.is_given], seed.score.notes))
            new = piece.score.notes[~piece.is_given]
            kept &= bool(((new["onset"] >= begin) & (new["onset"] < edges[1])).all())
            kept &= bool(np.array_equal(piece.score.bars, score.bars))
            seams += [seam(piece.score, edge) for edge in edges]
    head("seams", "kept", "parallels", "leaps")
    for name, cell, counts in (("rewritten", kept, seams), ("Bach's own", "", own)):
        row(name, cell, *(f"{mean:.3f}" for mean in np.mean(counts, axis=0)))


def with_gap(score: Score, vocabulary: Vocabulary) -> Seed:
    """Return a piece as a seed, all given except for REWRITTEN_BARS in the middle."""
    first = max((len(score.bars) - REWRITTEN_BARS) // 2, 0)
    return rewritten(score, vocabulary, range(first, min(first + REWRITTEN_BARS, len(score.bars))))


def tunes(model: Model, corpus: Corpus) -> None:
    """Print how pieces rewritten around their tunes differ from real ones."""
    tune = model.style.tune
    train, valid, test = (with_tune(split_scores(corpus, name), tune) for name in SPLITS)
    kept, others = (valid + test)[::2][:TUNES_KEPT], (valid + test)[1::2]
    written = accompanied_tunes(model, kept)
    sets = [[*statistics_of(pieces)] for pieces in (written, others, train[:MAX_PIECES])]
    told = [
        tell_apart(judge, sets[0], sets[1], sets[2], seed=0) for judge in (by_forest, by_regression)
    ]
    head("", "pieces", "notes at once", "told from real ones")
    of_written, of_real = [its.generated for its in told], [its.real for its in told]
    for name, pieces, areas in (("written", written, of_written), ("real", kept, of_real)):
        at_once = np.mean([_at_once(score.notes, tune) for score in pieces])
        row(name, len(pieces), f"{at_once:.2f}", ", ".join(f"{area:.2f}" for area in areas))


def accompanied_tunes(model: Model, scores: Sequence[Score]) -> list[Score]:
    """Return passages with only the tune kept, and the other voices written anew."""
    passage, written = Constraints(closes=False), []
    for number, score in enumerate(scores):
        seed = voices_of(score, model.vocabulary, tune=model.style.tune)
        (piece,) = compose(model, Request(seed, None, passage, random_seed=number))
        written.append(piece.score)
    return written


def with_tune(scores: Sequence[Score], tune: int | None) -> list[Score]:
    """Return TUNE_BARS bars of each piece in which both the tune and the rest have enough notes."""
    bars = [s.excerpt(*TUNE_BARS) for s in scores if len(s.bars) >= TUNE_BARS[1]]
    counts = [np.count_nonzero(score.notes["program"] == tune) for score in bars]
    return [
        score
        for score, own in zip(bars, counts, strict=True)
        if min(own, len(score.notes) - own) >= FEWEST_TUNE_NOTES
    ]


def _at_once(notes: Records, tune: int | None) -> float:
    """Return how many notes begin together on average, not counting the tune's."""
    others = notes["onset"][notes["program"] != tune]
    return len(others) / max(1, len(np.unique(others)))


def voices(model: Model, corpus: Corpus) -> None:
    """Print how likely each voice of held-out pieces is, without and with the others told."""
    vocabulary = model.vocabulary
    scores = split_scores(corpus, "valid") + split_scores(corpus, "test")
    pieces = [encode(score, vocabulary) for score in scores]
    allowed = [*map(Grammar(vocabulary).masks, pieces)]
    untold = model.token_nats(pieces, allowed)
    head("voice", "not told", "told of the others")
    for number, program in enumerate(vocabulary.programs):
        is_own = [ids_of_program(ids, number, vocabulary)[1:] for ids in pieces]
        seeds = [rewritten(each, vocabulary, range(len(each.bars)), [program]) for each in scores]
        given = [GivenNotes.of(seed.score, seed.is_open, vocabulary) for seed in seeds]
        told = told_nats(model, pieces, allowed, given)
        notes, cells = sum(np.count_nonzero(s.notes["program"] == program) for s in scores), []
        for nats in (untold, told):
            own = sum(float(each[is_its].sum()) for each, is_its in zip(nats, is_own, strict=True))
            cells.append(f"{own / notes:.3f}")
        row(instrument_name(program, vocabulary.grid), *cells)


def ids_of_program(ids: Ids, number: int, vocabulary: Vocabulary) -> Bools:
    """Return bool (T,), which ids belong to notes of a program, given by its number."""
    _, (at,) = read_windows(ids[None], vocabulary)
    is_own: Bools = programs_of(ids[at], vocabulary) == number
    is_own &= (at >= 0) & (vocabulary.kind_of[ids] >= Kind.NOTE)
    return is_own


def told_nats(
    model: Model, pieces: Sequence[Ids], allowed: Sequence[Bools], given: list[GivenNotes]
) -> list[Reals]:
    """Return the nats of each token of whole pieces (`token_nats`), with given notes told."""
    now = [read_windows(piece[None], model.vocabulary)[0][0] for piece in pieces]
    gathered = model.features.gathered(given)

    def side(ids: Ids, rows: Sequence[Row]) -> SideArrays:
        last = np.count_nonzero(ids != PAD, axis=1) - 1
        own = read_windows(ids, model.vocabulary)[0][np.arange(len(ids)), last]
        begin = np.array([now[row.piece][row.end - 1] for row in rows]) - own
        which = np.array([row.piece for row in rows])
        nothing = model.features.nothing(len(ids))
        context = nothing._replace(piece=which, begin=begin, given=gathered)
        return model.features.compute(ids, context)

    return token_nats(model.steps, pieces, allowed, rebase=model.rebase, side=side)


def tell_busy(model: Model, busy: Sequence[float]) -> None:
    """Print how many notes a bar has if nothing is asked for, and if so many are."""
    head("asked for", "notes a bar", "deviation")
    for asked in (None, *busy):
        constraints = Constraints(time_signature=(4, 4), busy=asked)
        pieces = compose(model, Request(None, Length(bars=8), constraints, samples=100))
        onsets = [(p.score.notes["onset"], p.score.bar_starts[7]) for p in pieces]
        notes = [np.count_nonzero(onset < last) / 7 for onset, last in onsets]
        row(asked, f"{np.mean(notes):.1f}", f"{np.std(notes):.1f}")


PARTS = {
    "tunes": tunes,
    "voices": voices,
    "accompany": accompaniments,
    "rewrite": rewritings,
    "harmonize": harmonizations,
    "chords": under_chords,
}


def main() -> None:
    """Run the command."""
    parser = parser_of(__doc__)
    parser.add_argument("--checkpoint", "-c")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--busy", nargs="+", type=float, metavar="N", help="notes a bar")
    add_corpus(parser)
    options = parser.parse_args()
    if options.busy:
        return tell_busy(load(options.checkpoint), options.busy)
    model, corpus = model_and_corpus(options)
    for name in options.parts:
        PARTS[name](model, corpus)


if __name__ == "__main__":
    main()
