"""The tasks that a page may ask for: generators that work in small steps and yield the answers.

All tasks run in one thread and take turns, about a token each. So nobody has to wait for another
person's whole piece, and a task stops when it is no longer asked for its next step.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np

from data.canonical import canonical
from data.corpus.corpus import Corpus
from data.corpus.runs import find_matches, shared_runs
from data.files.read import parse_events
from data.instrument_names import instrument_name, sound_name
from data.keys import high_to_low
from data.midi.io import midi_bytes
from data.midi.quantize import score_from_events
from data.score import DRUMS, Grid, Score
from data.tokens.adapt import adapt_score
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.chord_plan import place_chords
from generation.chord_track import parse_chord_track
from generation.compose import accompany
from generation.constraints import Constraints
from generation.explain import explain_note
from generation.length import Length
from generation.model import Model
from generation.request import Request
from generation.seeds import Seed, continued_at_once, no_seed, rewritten, seed_from_notes, voices_of
from generation.suggestion import suggest_chords
from generation.writing import Piece, Writing, critic_of, judged, standing
from model.config import SamplingOptions
from web.messages import (
    MOST_BARS,
    MOST_TEXT,
    Json,
    MessageError,
    PagePiece,
    Settings,
    WriteRequest,
    counts_of,
    integer_of,
    json_of,
    piece_of,
    settings_of,
    text_of,
    write_request,
)
from web.models import Models

SCORED_BARS, BARS_BEFORE = 32, 8  # bars of a long piece scored at once, and bars read before them
EVERYBODY = "every voice plays already, so none joined"
NOBODY = "going by the training pieces, nobody joins"
TOLD_RUN = 16  # notes: shorter runs shared with a training piece are too common to report
SEARCHED_TOKENS = 2**18  # tokens of training pieces searched at once: a tenth of a second
# Settings that can show an error beside their control, in the order in which they are suspected.
CONTROLS = (
    *("bar_chords", "cadence", "busy", "key", "range", "programs", "polyphony"),
    *("tempo", "meter"),
)


def describe(models: Models, message: Json) -> Iterator[Json]:
    """Tell the page what a model plays, warm the model up, and tell the page when it is ready."""
    model = models.load(text_of(message, "model"))
    vocabulary, grid = model.vocabulary, model.vocabulary.grid
    lowest, highest = vocabulary.lowest_pitch, vocabulary.highest_pitch
    known = model.style.meters or vocabulary.meters
    yield {
        "plays": {
            "programs": [
                [
                    *(number, instrument_name(number, grid), grid.general_midi(number)),
                    model.style.ranges.get(number, (lowest, highest)),
                ]
                for number in vocabulary.programs
            ],
            "meters": [list(meter) for meter in vocabulary.meters if meter in known],
            "tempo": vocabulary.usual_tempo(model.style.tempo_bpm),
            "usual_meter": list(vocabulary.usual_meter(model.style.meter)),
            "tempi": [vocabulary.tempos[0], vocabulary.tempos[-1]],
            "pitches": [lowest, highest],
            "rests": not model.style.hardly_rests,
            "has_loudness": len(vocabulary.velocities) > 1,
            "velocity": vocabulary.velocities[len(vocabulary.velocities) // 2],
            **counts_of(grid),
            "voices": model.style.voices or len(vocabulary.programs),
            "tune": model.style.tune,
            "temperature": model.sampling.temperature,
            "trained": model.record.step,
            "names": [instrument_name(number, Grid()) for number in range(DRUMS + 1)],
            "drums": [sound_name(DRUMS, pitch, Grid()) for pitch in range(128)],
        }
    }
    if model.path not in models.warm:
        warm_up = Writing(model, Request(None, Length(bars=1)))
        for _ in warm_up:  # loads compiled loops from the disk, or compiles them
            yield {}
        assert warm_up.pieces
        models.warm.add(model.path)
    yield {"ready": True}


def _sampling(model: Model, temperature: float | None) -> SamplingOptions:
    """Return sampling options for a temperature; above 1, no id is filtered out by `top_p`."""
    if temperature is None:
        return model.sampling
    top_p = 1.0 if temperature > 1 else model.sampling.top_p
    return dataclasses.replace(model.sampling, temperature=float(temperature), top_p=top_p)


def read_text(models: Models, message: Json) -> Iterator[Json]:
    """Tell the page which notes a text of seed notes means."""
    model = models.load(text_of(message, "model"))
    constraints = settings_of(message).constraints
    text = text_of(message, "text", MOST_TEXT)
    seed = seed_from_notes(text, model.vocabulary, constraints, style=model.style)
    yield {"read": json_of(seed.score), "changes": _said(seed.changes)}


def check(models: Models, message: Json) -> Iterator[Json]:
    """Tell the page that a model can meet a request; if it cannot, the error goes to `blame`."""
    asked = write_request(message)
    model, request = _asked(models, asked)
    request.to(model)
    score = asked.piece.score
    there = _chords(asked.settings, score, 0, len(score.bars))  # which harmonizing follows, too
    if there and score.grid.has_meter:
        place_chords(parse_chord_track(there), score.bars, 0, score.grid)
    yield {"possible": True}


def write(models: Models, message: Json) -> Iterator[Json]:
    """Write pieces: tell the page each note once it is complete, and finally the best pieces."""
    model, request = _asked(models, write_request(message))
    seed = request.seed or no_seed(model.vocabulary)
    yield {
        "begun": json_of(seed.score),
        "changes": _said(
            [*seed.changes, *request.strange_heights(model), *request.strange_meters(model)]
        ),
        "opens": seed.first_open_step,
        "trained": model.record.step,
    }
    writing = Writing(model, request)
    for notes in writing:
        told = [
            [row, n.onset_steps, n.duration_steps, n.note.pitch, n.note.velocity, n.program]
            for row, n in notes
        ]
        yield {"notes": told} if told else {}
    yield {"done": [json_of(piece.score, piece.is_given) for piece in writing.pieces]}
    stands = list[tuple[int, bool, float]]()
    for piece in writing.pieces:  # one at a time, because other tasks wait for their turns
        stands += [standing(model, its, request.constraints) for its in judged(model, [piece])]
        yield {}
    yield {
        "order": sorted(range(len(stands)), key=stands.__getitem__),
        "beyond": [is_beyond for _, is_beyond, _ in stands],
        "has_critic": critic_of(model) is not None,
    }
    corpus = models.corpus_at_hand(model)
    if corpus is not None:
        yield from _shared_runs(writing.pieces, corpus)


def _shared_runs(pieces: Sequence[Piece], corpus: Corpus) -> Iterator[Json]:
    """Tell the page the longest run of new notes that each piece shares with a training piece."""
    new = [piece.new_notes() for piece in pieces]
    train, vocabulary = corpus.split("train"), corpus.vocabulary
    for found in find_matches(new, train, vocabulary, SEARCHED_TOKENS, ["line"]):  # in steps
        longest = [
            shared_runs(found["line"], number, train.names, vocabulary.grid)[:1]
            for number in range(len(pieces))
        ]
        yield {
            "shared": [
                [[run.notes, PurePath(run.file).stem] for run in runs if run.notes >= TOLD_RUN]
                for runs in longest
            ]
        }


def explain(models: Models, message: Json) -> Iterator[Json]:
    """Tell the page the alternatives to a note, and which notes the model looked at.

    The message holds the piece with the note, and the request that wrote it; null: a person put it
    in.
    """
    written = message.get("written")
    piece = piece_of(message)
    number = integer_of(message, "note", len(piece.score.notes) - 1)
    if written is None:
        model, ways = models.load(text_of(message, "model")), dict[int, int]()
        request = Request(_without(model, piece, number), None)
    elif isinstance(written, dict):
        model, request = _asked(models, write_request(written))
        request, ways = request.in_ranges(model)
    else:
        raise MessageError("written must be what asked for the piece")
    yield {}
    score = _as_written(piece, model)
    model, grammar = request.to(model)
    told = explain_note(model, grammar, score.moved(ways), number)
    alternatives = [(p, pitch - ways.get(p, 0), share) for p, pitch, share in told.alternatives]
    yield {
        "explained": number,
        "alternatives": alternatives,
        "nothing": told.nothing,
        "looked_at": [round(share, 4) for share in told.looked_at.tolist()],
    }


def surprise(models: Models, message: Json) -> Iterator[Json]:
    """Tell the page how unlikely the instrument and pitch of each note of a piece are, in nats."""
    model = models.load(text_of(message, "model"))
    score = _as_written(piece_of(message), model)
    nats, count = list[float](), len(score.bars)
    for first in range(0, count, SCORED_BARS):  # in parts, because other tasks wait for turns
        before = max(first - BARS_BEFORE, 0)
        part = score.excerpt(before, first + SCORED_BARS) if count > SCORED_BARS else score
        ids = encode(part, model.vocabulary)
        yield {}
        its = model.token_nats([ids])[0][model.vocabulary.kind_of[ids[1:]] == Kind.NOTE]
        new = part.notes["onset"] >= score.bar_starts[first] - score.bar_starts[before]
        nats += its[new].round(2).tolist()
    yield {"surprise": nats}


def suggest(models: Models, message: Json) -> Iterator[Json]:
    """Tell the page which chords the model suggests for a bar of a piece, the likeliest first."""
    bar = integer_of(message, "bar", MOST_BARS - 1)
    model, request = _asked(models, write_request(message))
    for symbols in suggest_chords(model, request, bar):
        yield {"suggested": symbols} if symbols else {}


def blame(models: Models, message: Json, error: ValueError) -> Iterator[Json]:
    """Tell the page why a request cannot be met, and which control is to blame, if a single one is.

    A control is to blame if the request can be met without its setting.
    """
    settings, found = message.get("settings"), None
    asked = settings if isinstance(settings, dict) else {}
    for control in (each for each in CONTROLS if asked.get(each) is not None):
        yield {}
        try:
            model, request = _asked(
                models, write_request(message | {"settings": asked | {control: None}})
            )
            request.to(model)
        except ValueError:
            continue
        found = control
        break
    yield {"error": str(error), "control": found}


TASKS = {
    "describe": describe,
    "text": read_text,
    "check": check,
    "write": write,
    "explain": explain,
    "surprise": surprise,
    "suggest": suggest,
}


def advance(task: Iterator[Json], seconds: float) -> list[Json] | None:
    """Run a task until it tells something, or the time is over; return that in a list.

    The list is empty if there was nothing to tell in time; None: the task has ended.
    """
    until = time.monotonic() + seconds
    for told in task:
        if told:
            return [told]
        if time.monotonic() >= until:
            return []
    return None


def _said(clauses: Sequence[str]) -> list[str]:
    """Return clauses without advice that is for the command line."""
    return [clause.split(" (--")[0] for clause in clauses]


def _asked(models: Models, asked: WriteRequest) -> tuple[Model, Request]:
    """Return the model, at the requested tempo or the piece's, and the request to it."""
    settings = asked.settings
    model = models.load(asked.model).retimed(settings.constraints, asked.piece.score)
    seed, length = _given(model, asked)
    constraints = _with_chords(settings, seed, length)
    sampling = _sampling(model, settings.temperature)
    return model, Request(seed, length, constraints, sampling, asked.variations, asked.random_seed)


def _with_chords(settings: Settings, seed: Seed, length: Length | None) -> Constraints:
    """Return the constraints, with the chords of those bars in which something new may begin."""
    count = len(seed.score.bars) + ((length.bars or 0) if length else 0)
    chords = _chords(settings, seed.score, seed.first_open_bar, count)
    return dataclasses.replace(settings.constraints, chords=chords or settings.constraints.chords)


def _chords(settings: Settings, score: Score, first: int, count: int) -> str:
    """Return the chords that are asked for from bar `first` up to `count` bars; "": none are."""
    texts = [text.strip() for text in settings.bar_chords[first:count]]
    texts += [""] * (count - first - len(texts))
    if first == 0 and score.has_upbeat:
        del texts[0]  # an upbeat has no chord
    return f"|{'|'.join(text or 'N.C.' for text in texts)}|" if any(texts) else ""


def _given(model: Model, request: WriteRequest) -> tuple[Seed, Length | None]:
    """Return what the model is given, and the length of what it writes."""
    vocabulary, score = model.vocabulary, request.piece.score
    if request.how == "instead":
        return _instead(model, request), None
    if not len(score.notes):
        if request.how in ("harmonize", "rewrite"):
            raise MessageError(f"there are no notes to {request.how} yet: play some")
        return no_seed(vocabulary), Length(bars=request.settings.bars)
    score, changes = _fitted(score, model)
    if not len(score.notes):
        raise MessageError("the model has no instrument for these notes")
    if request.how == "harmonize":
        there = high_to_low(score)
        voices = [program for program in vocabulary.programs if program != DRUMS]
        numbers = [number for number, program in enumerate(voices, 1) if program in there]
        kept = numbers if len(numbers) < len(voices) else []
        seed = voices_of(score, vocabulary, kept, tune=model.style.tune)
        return dataclasses.replace(seed, changes=(*changes, *seed.changes)), None
    if request.how == "rewrite":
        first, end = (min(bar, len(score.bars)) for bar in request.bars)
        if first >= end:
            raise MessageError("the piece has no such bars to rewrite")
        programs = request.programs or np.unique(score.notes["program"]).tolist()
        seed = rewritten(score, vocabulary, range(first, end), programs)
        return dataclasses.replace(seed, changes=tuple(changes)), None
    seed = continued_at_once(score, vocabulary, changes, request.opens)
    if request.how == "accompany":
        alone, seed = seed, accompany(model, seed)
        if seed is alone:
            is_whole = {*score.notes["program"].tolist()} == {*vocabulary.programs}
            why = EVERYBODY if is_whole else NOBODY
            seed = dataclasses.replace(seed, changes=(*seed.changes, why))
    # a pause of whole bars takes none from what is to be written
    pause = max(0, request.opens - int(seed.score.bar_starts[-1]))
    silent = pause // int(seed.score.bars["length"][-1])
    bars = request.settings.bars
    return seed, Length(bars=bars and bars + silent)


def _instead(model: Model, request: WriteRequest) -> Seed:
    """Return a piece as a seed, with one note replaced, and with what follows it open to rewrite.

    Open is what was open to the request that wrote the note. A person's own notes stay.
    """
    score, vocabulary = _as_written(request.piece, model), model.vocabulary
    pitch, program = request.instead
    if program not in vocabulary.programs or not (
        vocabulary.lowest_pitch <= pitch <= vocabulary.highest_pitch
    ):
        raise MessageError("the model has no such note")
    notes = score.notes.copy()
    notes["pitch"][request.note], notes["program"][request.note] = pitch, program
    onset = notes["onset"][request.note]
    is_open = np.ones((len(vocabulary.programs), int(score.bar_starts[-1])), dtype=bool)
    if request.written and request.written.model == request.model:
        was_open = _given(model, request.written)[0].is_open[:, : is_open.shape[1]]
        is_open[:, : was_open.shape[1]] = was_open
    is_open[:, :onset] = False
    is_open[np.array(vocabulary.programs) <= program, onset] = False
    is_kept = ~is_open[np.searchsorted(vocabulary.programs, notes["program"]), notes["onset"]]
    notes = notes[is_kept | request.piece.is_own]
    kept = canonical(notes, score.bars, score.tempo_bpm, score.grid)[0]
    return Seed(dataclasses.replace(score, notes=kept.notes), is_open)


def _without(model: Model, piece: PagePiece, number: int) -> Seed:
    """Return a piece as a seed without one of its notes; the model may write new notes anywhere."""
    score = _as_written(piece, model)
    is_open = np.ones((len(model.vocabulary.programs), int(score.bar_starts[-1])), dtype=bool)
    return Seed(dataclasses.replace(score, notes=np.delete(score.notes, number)), is_open)


def _as_written(piece: PagePiece, model: Model) -> Score:
    """Return a piece fitted to a model, with the same notes in the same order as on the page.

    Raises:
        MessageError: fitting changes the notes or their order.
    """
    score = _fitted(piece.score, model)[0]
    if not np.array_equal(
        score.notes[["pitch", "program"]], piece.score.notes[["pitch", "program"]]
    ):
        raise MessageError("the chosen model cannot play all notes of this piece")
    return score


def _fitted(score: Score, model: Model) -> tuple[Score, list[str]]:
    """Return a piece fitted to the grid and vocabulary of a model, and clauses on what changed."""
    vocabulary = model.vocabulary
    if score.grid != vocabulary.grid:
        events = parse_events(midi_bytes(score), "the piece")
        score = score_from_events(events, vocabulary.grid)[0]
    return adapt_score(score, vocabulary, model.style.tune)
