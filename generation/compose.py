"""Where a trained model meets music: pieces continued, harmonised, ranked, and heard as they come.

generate.py is its command, and where Python programs import it from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pretty_midi
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from data.batches.windows import masks_of_pieces, rebase, unpacked
from data.midi.io import to_pretty_midi, write_midi
from data.score import Score
from data.tokens.features import Bearings
from data.tokens.tokenizer import decode, encode
from data.tokens.vocabulary import Vocabulary, VocabularyError
from generation.constrained_grammar import Guide
from generation.constraints import ANYTHING, Wishes
from generation.length import GuideState, Length
from generation.note_stream import Listener, LiveNote
from generation.prompts import Seed, no_seed, seed_from_midi, seed_from_notes, tune_from_midi
from model.decoder import Decoder
from model.decoding import Ids, RecordedSteps
from model.sampling import Choice, sample
from model.scoring import token_nats
from model.serialization import BundleError, load_bundle
from rendering.audio import write_wav
from rendering.piano_roll import write_piano_roll

DEFAULT_CHOICE = Choice(temperature=0.75, top_p=0.95)  # at 1, pieces stray from their keys
DEFAULT_LENGTH = Length(bars=8)
ENDLESS = Length(endless=True)

TOLD_EVERY = 16  # tokens


@dataclass(frozen=True)
class Model:
    """A trained decoder, the vocabulary it speaks, and how it was trained."""

    decoder: Decoder
    vocabulary: Vocabulary
    summary: dict[str, Any]

    @cached_property
    def steps(self) -> RecordedSteps:
        """The decoder's steps, recorded once for all the pieces it writes."""
        return RecordedSteps(self.decoder)

    def rebase(self, history: Ids) -> Ids:
        """The prompt with which a piece goes on where the context is full."""
        return rebase(history.astype(np.int64), self.decoder.config.context_length, self.vocabulary)

    def beside(self, ids: Ids) -> NDArray[np.int16]:
        """(B, T, S) what the decoder is told beside windows (B, T); of the end nothing."""
        return self.bearings.of(ids)

    @cached_property
    def bearings(self) -> Bearings:
        """Of its vocabulary."""
        return Bearings(self.vocabulary)

    def token_nats(
        self, pieces: Sequence[Ids], allowed: Sequence[NDArray[np.bool_]] | None = None
    ) -> list[NDArray[np.float64]]:
        """How unlikely each token of whole pieces is (see model/scoring.py).

        `allowed` is what the grammar admits, for each piece (T - 1, V), where that is known.
        """
        if allowed is None:
            masks = masks_of_pieces(pieces, self.vocabulary)
            allowed = [unpacked(mask, self.vocabulary) for mask in masks]
        return token_nats(self.decoder, pieces, allowed, rebase=self.rebase, beside=self.beside)


@dataclass(frozen=True)
class Piece:
    """What a model wrote, with what it was given.

    Attributes:
        ids: (T,) its tokens, from Start to End.
        score: what they spell.
        prompt_tokens: so many ids were given.
        seed_steps: notes with an onset before this step were given: the seed.
        kept_program: so were those of this program: a tune that was harmonised.
        nats_per_note: how unlikely the model finds what it wrote, in nats a note (`ranked` tells).
    """

    ids: NDArray[np.int64]
    score: Score
    prompt_tokens: int
    seed_steps: int = 0
    kept_program: int | None = None
    nats_per_note: float = float("nan")

    def without_seed(self) -> Piece:
        """What the model wrote alone, from the bar on in which it begins."""
        score = self.score
        if self.kept_program is None:
            is_new = score.notes["onset"] >= self.seed_steps
        else:
            is_new = score.notes["program"] != self.kept_program
        bar = np.searchsorted(score.bar_starts, self.seed_steps, side="right") - 1
        new = dataclasses.replace(score, notes=score.notes[is_new])
        new = new.excerpt(min(int(bar), len(score.bars) - 1), len(score.bars))
        return dataclasses.replace(self, score=new, seed_steps=0, kept_program=None)


def load(path: str | Path) -> Model:
    """The model in a `model.safetensors`.

    Raises:
        BundleError: there is no such file, or it is not one of ours.
    """
    decoder, vocabulary_json, summary = load_bundle(path)
    try:
        vocabulary = Vocabulary.from_json(vocabulary_json)
    except VocabularyError as error:
        raise BundleError(f"{path}: {error}") from None
    if vocabulary.size != decoder.config.vocabulary_size:
        raise BundleError(f"{path}: the vocabulary does not fit the model beside it")
    model = Model(decoder, vocabulary, summary)
    if any(getattr(decoder.config, name) != n for name, n in model.bearings.shape.items()):
        raise BundleError(f"{path}: its side input is not the one that this program gives")
    return model


def compose(
    model: Model,
    seed: Seed | None = None,
    length: Length = DEFAULT_LENGTH,
    wishes: Wishes = ANYTHING,
    *,
    choice: Choice = DEFAULT_CHOICE,
    samples: int = 1,
    random_seed: int = 0,
    progress: bool = False,
) -> list[Piece]:
    """Pieces that begin with a seed and go on as asked, written side by side.

    Args:
        model: from `load`.
        seed: what they begin with (see generation/prompts.py); None: the model begins.
        length: of what is written after the seed.
        wishes: key, range, instruments and so on of what is written.
        choice: temperature and filters.
        samples: how many pieces, at least 1.
        random_seed: the same seed gives the same pieces.
        progress: whether a line on stderr tells how far they are.

    Raises:
        WishError: something that can never be; before anything is written.
    """
    model, seed, guide = _guided(model, seed, length, wishes)
    return _pieces(model, seed, guide, choice, samples, random_seed, progress)


def harmonise(
    model: Model,
    tune: Seed,
    wishes: Wishes = ANYTHING,
    *,
    choice: Choice = DEFAULT_CHOICE,
    samples: int = 1,
    random_seed: int = 0,
    progress: bool = False,
) -> list[Piece]:
    """Pieces that keep every note of a tune, with other voices around it that the model writes.

    Args:
        tune: of one voice (`tune_from_midi` and `voice_of` of generation/prompts.py).
        model, wishes, choice, samples, random_seed, progress: as in `compose`.

    Raises:
        WishError: something that can never be; before anything is written.
    """
    model = _retimed(model, wishes)
    tune = _at_tempo(tune, model.vocabulary, wishes)
    guide = Guide(model.vocabulary, wishes=wishes, tune=tune.score)
    nothing = no_seed(model.vocabulary)
    pieces = _pieces(model, nothing, guide, choice, samples, random_seed, progress)
    program = int(tune.score.notes["program"][0])
    return [dataclasses.replace(piece, kept_program=program) for piece in pieces]


def ranked(model: Model, pieces: list[Piece]) -> list[Piece]:
    """The pieces, the likeliest first, each with its nats per note.

    That is the model's own likelihood of what comes after the prompt, as model/scoring.py has
    it: under the grammar alone, whatever was asked for.
    """
    nats = model.token_nats([piece.ids for piece in pieces])
    judged = []
    for piece, each in zip(pieces, nats, strict=True):
        notes = int((piece.score.notes["onset"] >= piece.seed_steps).sum())
        per_note = float(each[piece.prompt_tokens - 1 :].sum()) / notes
        judged.append(dataclasses.replace(piece, nats_per_note=per_note))
    return sorted(judged, key=lambda piece: piece.nats_per_note)


def stream(
    model: Model,
    seed: Seed | None = None,
    length: Length = ENDLESS,
    wishes: Wishes = ANYTHING,
    *,
    choice: Choice = DEFAULT_CHOICE,
    random_seed: int = 0,
) -> Iterator[LiveNote]:
    """The notes of one piece as they are written, each as soon as it is whole.

    The seed's notes are not among them, but times count from its beginning.

    Args:
        length: of what is written; without one it goes on for as long as one listens.
        model, seed, wishes, choice, random_seed: as in `compose`.

    Raises:
        WishError: something that can never be; before the first note.
    """
    model, seed, guide = _guided(model, seed, length, wishes)
    listener = Listener(model.vocabulary)
    prompt, state = _begin(model, seed, guide, samples=1)
    for token in prompt.tolist():
        listener.hear(token)
    for ids in _sampled(model, prompt, guide, state, choice, random_seed):
        note = listener.hear(int(ids[0]))
        if note is not None:
            yield note


def continue_midi(
    model: Model,
    midi: pretty_midi.PrettyMIDI | str | None = None,
    length: Length = DEFAULT_LENGTH,
    wishes: Wishes = ANYTHING,
    *,
    choice: Choice = DEFAULT_CHOICE,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """Music that begins with all of `midi`, and goes on: `compose` for pretty_midi.

    Args:
        midi: or seed notes such as "C4 E4 G4 C5"; None: the model begins.
        best_of: writes so many pieces and gives the likeliest (`ranked`).
        model, length, wishes, choice, random_seed: as in `compose`.

    Raises:
        MidiError, SeedError: no music in it.
        WishError: something that can never be.
    """
    vocabulary = model.vocabulary
    if isinstance(midi, str):
        seed = seed_from_notes(midi, vocabulary, wishes)
    else:
        seed = seed_from_midi(midi, vocabulary) if midi else no_seed(vocabulary)
    pieces = compose(
        model, seed, length, wishes, choice=choice, samples=best_of, random_seed=random_seed
    )
    return to_pretty_midi(ranked(model, pieces)[0].score)


def harmonise_midi(
    model: Model,
    tune: pretty_midi.PrettyMIDI,
    wishes: Wishes = ANYTHING,
    *,
    voice: int = 1,
    choice: Choice = DEFAULT_CHOICE,
    best_of: int = 1,
    random_seed: int = 0,
) -> pretty_midi.PrettyMIDI:
    """A tune with the voices that the model writes around it: `harmonise` for pretty_midi.

    Args:
        tune: a voice, or several of which one is kept (see `voice_of` of generation/prompts.py).
        voice: which of the model's instruments it is, from 1.
        model, wishes, choice, best_of, random_seed: as in `continue_midi`.

    Raises:
        MidiError: no such voice in it.
        WishError: something that can never be.
    """
    kept = tune_from_midi(tune, model.vocabulary, voice=voice)
    pieces = harmonise(model, kept, wishes, choice=choice, samples=best_of, random_seed=random_seed)
    return to_pretty_midi(ranked(model, pieces)[0].score)


def write_piece(piece: Piece, stem: str | Path) -> list[Path]:
    """Writes `stem`.mid, .wav and .png, each whole or not at all; gives their paths."""
    stem = Path(stem)
    midi, wav, picture = (stem.with_name(stem.name + end) for end in (".mid", ".wav", ".png"))
    write_midi(piece.score, midi)
    write_wav(piece.score, wav)
    write_piano_roll(
        piece.score, picture, seed_steps=piece.seed_steps, kept_program=piece.kept_program
    )
    return [midi, wav, picture]


def _guided(
    model: Model, seed: Seed | None, length: Length, wishes: Wishes
) -> tuple[Model, Seed, Guide]:
    """Model and seed at the tempo that is asked for, and the guide to what comes after the seed."""
    model = _retimed(model, wishes)
    seed = _at_tempo(seed or no_seed(model.vocabulary), model.vocabulary, wishes)
    return model, seed, Guide(model.vocabulary, _after(seed, length), wishes)


def _retimed(model: Model, wishes: Wishes) -> Model:
    """The model at the tempo that is asked for, where it knows but one."""
    vocabulary = wishes.retimed(model.vocabulary)
    if vocabulary == model.vocabulary:
        return model
    return dataclasses.replace(model, vocabulary=vocabulary)


def _at_tempo(seed: Seed, vocabulary: Vocabulary, wishes: Wishes) -> Seed:
    """The seed at the tempo that is asked for."""
    number = wishes.tempo_number(vocabulary)
    return seed if number is None else seed.at_tempo(vocabulary.tempos[number])


def _after(seed: Seed, length: Length) -> Length:
    """The length of a whole piece of which so much comes after the seed; notes are the new."""
    bars, seconds = length.bars, length.seconds
    if bars is not None:
        bars += len(seed.score.bars)
    if seconds is not None:
        seconds += float(seed.score.step_seconds(seed.end_step))
    return dataclasses.replace(length, bars=bars, seconds=seconds)


def _begin(
    model: Model, seed: Seed, guide: Guide, samples: int
) -> tuple[NDArray[np.int64], GuideState]:
    """The prompt, and the state after it."""
    prompt = encode(seed.score, model.vocabulary)[:-1]  # the music goes on where End stood
    return prompt, guide.begin(prompt, samples, seed.end_step)


def _sampled(
    model: Model,
    prompt: NDArray[np.int64],
    guide: Guide,
    state: GuideState,
    choice: Choice,
    random_seed: int,
) -> Iterator[Ids]:
    """What comes after the prompt, (B,) ids at a time; the state goes along."""
    return sample(
        model.decoder,
        [prompt] * len(state.place.kind),
        guide,
        state,
        generator=torch.Generator().manual_seed(random_seed),
        choice=choice,
        rebase=model.rebase,
        steps=model.steps,
    )


def _pieces(
    model: Model,
    seed: Seed,
    guide: Guide,
    choice: Choice,
    samples: int,
    random_seed: int,
    progress: bool,
) -> list[Piece]:
    """Pieces written side by side."""
    if samples < 1:
        raise ValueError(f"samples must be 1 or more, not {samples}")
    prompt, state = _begin(model, seed, guide, samples)
    columns = []
    layout = "{desc}{percentage:3.0f}% |{bar}| {elapsed}<{remaining}"
    with tqdm(
        total=1.0, desc="Writing ", bar_format=layout, disable=None if progress else True
    ) as line:  # None: shown on a terminal alone
        for column in _sampled(model, prompt, guide, state, choice, random_seed):
            columns.append(column)
            if len(columns) % TOLD_EVERY == 0:
                line.update(guide.horizon.progress(state) - line.n)
    pieces = []
    for row in np.stack(columns, axis=1):  # (B, T)
        ids = np.concatenate([prompt, guide.ending(row)])
        pieces.append(Piece(ids, decode(ids, model.vocabulary), len(prompt), seed.end_step))
    return pieces
