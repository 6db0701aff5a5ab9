"""SideFeatures: told from decoded notes, id by id and all at once; nothing looks ahead."""

import itertools
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import data.tokens.features
import model.sampling
from common.interface import ENDS, OCTAVE, SHARED_REFERENCES
from data.canonical import canonical
from data.keys import LEAST_HEARD, PROFILES, Key
from data.score import DRUMS
from data.tokens.augment import programs_of
from data.tokens.context import bar_head_size, bar_indices, rebase, window_head
from data.tokens.echo import DUE, ECHO_WIDTH, LENGTHS
from data.tokens.features import MAX_BARS_TO_FOLLOW, SideFeatures
from data.tokens.given import GivenNotes
from data.tokens.tokenizer import encode
from data.tokens.vocabulary import Kind
from generation.constrained_grammar import ConstrainedGrammar
from generation.constraints import ConstraintError
from generation.length import Length
from generation.seeds import Seed
from model.config import DecoderConfig
from model.scoring import token_nats
from model.steps import joined
from tests.data.batches.test_windows import split_of
from tests.models import QUARTET
from tests.music import BOTH, VOCABULARIES, random_walks, scores, vocabulary_for, windows_of
from tests.tensors import PlainReader, flat, opinionated, told


def window_from(ids, bar, vocabulary):
    """The window of a piece from its bar of that number, from 0, on; from Start where None."""
    if bar is None:
        return ids
    start = int(bar_indices(ids, vocabulary)[bar])
    rest = ids[start + bar_head_size(ids, start, vocabulary) :]
    return np.concatenate([window_head(ids, start, vocabulary), rest])


def played_again(score, semitones):
    """A piece and, after its last bar, all of it again in another key: so it has echoes."""
    again = score.notes.copy()
    again["onset"] += score.end_step
    again["pitch"] = np.clip(again["pitch"] + semitones, 0, 127)
    notes = np.concatenate([score.notes, again])
    return canonical(notes, score.bars, score.tempo_bpm, score.grid)[0]


@st.composite
def windows(draw):
    """A piece, its vocabulary, and windows of it from Start and from some bars."""
    score = draw(scores(*BOTH))
    if draw(st.booleans()):
        score = played_again(score, draw(st.integers(-2, 2)))
    vocabulary = vocabulary_for(score, transpose=draw(st.sampled_from([0, 3])))
    ids = encode(score, vocabulary)
    bars = draw(st.lists(st.integers(0, max(len(score.bars) - 1, 0)), max_size=2))
    bars = [None, *bars] if len(score.bars) else [None]
    return score, vocabulary, [(bar, window_from(ids, bar, vocabulary)) for bar in bars]


def side_by_side(rows, at_right):
    """(B, T), Pad at the left or the right end."""
    ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for row, window in zip(ids, rows, strict=True):
        row[: len(window)] = window
        if not at_right:
            row[:] = np.roll(row, len(row) - len(window))
    return ids


def one_by_one(features, ids):
    """(B, T, columns) from steps."""
    heard, nothing, columns = features.start(len(ids), 1), features.nothing(len(ids)), []
    for column in ids.T:
        heard = features.with_room(heard, 1)
        columns.append(flat(features.read(column[:, None], nothing, heard), features))
    return np.concatenate(columns, axis=1)


def key_of(counts):
    """Tonic and mode by correlation; None where few notes were heard or two keys fit as well."""
    keys = [(tonic, mode) for mode in range(2) for tonic in range(12)]
    profiles = list(PROFILES.values())
    fits = [float(counts @ np.roll(_standard(profiles[mode]), tonic)) for tonic, mode in keys]
    (best, key), (second, _) = sorted(zip(fits, keys, strict=True), reverse=True)[:2]
    return (None, 0) if counts.sum() < LEAST_HEARD or best == second else key


def _standard(profile):
    return np.rint(1000 * (profile - profile.mean()) / profile.std())


def echo_by_definition(notes):
    """What follows the longest match of the latest of notes (onset, pitch), by plain comparison.

    Columns of the length and the move, the pitch, and when it is due; None without a match.
    """
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(notes)]
    best = (0, 0)
    for end in range(1, len(steps)):
        length = 0
        while length < end and steps[end - 1 - length] == steps[-1 - length]:
            length += 1
        best = max(best, (length, end))
    length, end = best
    if length < 2:
        return None
    after, move = steps[end]
    is_in_another_key = notes[end][1] != notes[-1][1]
    size = sum(length >= least for least in LENGTHS) + (len(LENGTHS) + 1) * is_in_another_key
    columns = (size, 2 * (len(LENGTHS) + 1) + 12 + max(-12, min(12, move)))
    return columns, notes[-1][1] + move, notes[-1][0] + after


def ends_by_definition(vocabulary, notes, kinds, now):
    """How long a note lasts that ends with most of what sounds, and with the note before it."""
    last = max(place for place, kind in enumerate(kinds) if kind == Kind.NOTE)
    told = now + (len(kinds) - 1 - last) * vocabulary.longest_duration  # its Extends
    ends = [onset + duration for begin, _, (onset, duration, *_) in notes if begin < last]
    left = [end - told for end in ends if end > told]
    # of those that as many share, that of the latest note
    most = max(enumerate(left), key=lambda each: (left.count(each[1]), each[0]), default=(0, 0))[1]
    return most, max(ends[-1] - told, 0) if ends else 0


def by_definition(score, vocabulary, ids):
    """(T, columns) beside a whole piece, from its decoded notes, in plain loops."""
    features = SideFeatures(vocabulary)
    blocks = {name: block.start for name, block in features.blocks.items()}
    pitches, programs = vocabulary.pitch_count, len(vocabulary.programs)
    is_few = programs <= data.tokens.features.FEW
    own_count = vocabulary.counts[Kind.NOTE] if is_few else programs + pitches
    kinds = vocabulary.kind_of[ids].tolist()
    # notes are spelled in the order in which the Score has them
    begins = [place for place, kind in enumerate(kinds) if kind == Kind.NOTE]
    tells = [place for place, kind in enumerate(kinds) if kind == Kind.DURATION]
    notes = list(zip(begins, tells, score.notes.tolist(), strict=True))
    numbers = SHARED_REFERENCES + 3 * programs if is_few else 0
    rows = np.zeros((len(ids), features.size + numbers + OCTAVE + ENDS + 1), dtype=int)
    bar, event, now, position = -1, -1, 0, 0
    for place, (token, kind) in enumerate(zip(ids.tolist(), kinds, strict=True)):
        if kind in (Kind.BAR, Kind.POSITION):
            bar += kind == Kind.BAR
            event = place
            position = token - vocabulary.first(Kind.POSITION) if kind == Kind.POSITION else 0
            now = int(score.bar_starts[bar]) + position
        true = {blocks["position"] + position}
        earlier = [onset for begin, _, (onset, *_) in notes if begin < event]
        onset_before = max(earlier, default=-1)
        sounding, over, latest = [], [], None
        for begin, ends_at, (onset, duration, pitch, _, program) in notes:
            if begin > place:
                continue
            number = vocabulary.programs.index(program)
            its = pitch - vocabulary.lowest_pitch
            has_pitch = program != DRUMS
            if begin > event:
                latest = number
            if begin == place and has_pitch:
                true |= {blocks["pitch"] + its, blocks["pitch"] + pitches + pitch % 12}
            end = onset + duration
            if has_pitch and end > onset_before:
                (sounding if end > now else over).append((program, pitch))
            if end > now:
                block = blocks["sounding"]
                steps = min(end - now, vocabulary.longest_duration + 1) if ends_at <= place else 0
                group = number if is_few else 0
                true.add(blocks["left"] + group * (vocabulary.longest_duration + 2) + steps)
            elif end > onset_before:
                block = blocks["over"]
            else:
                continue
            own = number if has_pitch else programs + its
            true.add(block + (number * pitches + its if is_few else own))
            if has_pitch:
                true |= {block + own_count + its, block + own_count + pitches + pitch % 12}
        if latest is not None:
            true.add(blocks["program"] + latest)
            newest = [note for begin, _, note in notes if event < begin <= place][-1]
        pitched = latest is not None and newest[4] != DRUMS
        lowest, lowest_before = (min((p for _, p in n), default=None) for n in (sounding, over))
        begun = [note for begin, _, note in notes if begin <= place and note[4] != DRUMS]
        tonic, mode = key_of(np.bincount([pitch % 12 for _, _, pitch, *_ in begun], minlength=12))
        if tonic is not None:
            true.add(blocks["mode"] + mode)
        for name, heard, root in (
            ("degrees", sounding, tonic),
            ("chord", sounding, lowest),
            ("against", sounding, newest[2] if pitched else None),
            ("against_over", over, newest[2] if pitched else None),
            ("before", over, lowest_before),
            ("motion", over, lowest),
        ):
            true |= {blocks[name] + (p - root) % 12 for _, p in heard if root is not None}
        if pitched:
            own = [p for program, p in over if program == newest[4]]
            steps = [newest[2] - p for p in own]
            for program, p in over if own and is_few else ():
                number = vocabulary.programs.index(program)
                true.add(blocks["between"] + 12 * number + (p - min(own)) % 12)
            true |= {blocks["step"] + 12 + max(-12, min(12, step)) for step in steps}
        expected = {}
        for number, program in enumerate(vocabulary.programs if is_few else ()):
            echo = echo_by_definition(
                [(n[0], n[2]) for begin, _, n in notes if begin <= place and n[4] == program]
            )
            if echo is not None and echo[2] >= now:
                columns, pitch, due = echo
                at = blocks["echo"] + number * ECHO_WIDTH
                soon = sum(due - now >= least for least in DUE)
                true |= {at + column for column in (*columns, ECHO_WIDTH - len(DUE) - 1 + soon)}
                if 0 <= pitch - vocabulary.lowest_pitch < pitches:
                    expected[number] = pitch
        rows[place, list(true)] = 1
        if is_few:
            own = [
                [its for program, its in over if program == name] for name in vocabulary.programs
            ]
            begun = [note for begin, _, note in notes if event < begin <= place]
            new = [
                [pitch for _, _, pitch, _, program in begun if program == name != DRUMS]
                for name in vocabulary.programs
            ]
            each = [min(its, default=None) for its in own]
            begins = [min(its, default=None) for its in new]
            pairs = zip(each, begins, strict=True)
            moves = [0 if None in pair else pair[1] - pair[0] for pair in pairs]
            of_moves = slice(-programs - OCTAVE - ENDS - 1, -OCTAVE - ENDS - 1)
            rows[place, of_moves] = [m + pitches if m else 0 for m in moves]
            each += [expected.get(number) for number in range(programs)]
            each += [newest[2] if pitched else None, lowest, lowest_before]
            counted = [0 if its is None else its - vocabulary.lowest_pitch + 1 for its in each]
            counted += [0 if tonic is None else (tonic - vocabulary.lowest_pitch) % 12 + 1]
            rows[place, features.size : of_moves.start] = counted
        classes = [(pitch - vocabulary.lowest_pitch) % OCTAVE for _, pitch in sounding]
        rows[place, [-OCTAVE - ENDS - 1 + each for each in classes]] = 1
        if kind in (Kind.NOTE, Kind.EXTEND):
            rows[place, -ENDS - 1 : -1] = ends_by_definition(
                vocabulary, notes, kinds[: place + 1], now
            )
        rows[place, -1] = now
    return rows


@pytest.fixture(params=[16, 1], ids=["few programs", "many programs"])
def few(request, monkeypatch):
    """Takes two programs for many."""
    monkeypatch.setattr(data.tokens.features, "FEW", request.param)


ANY_NUMBER = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(windows())
@settings(ANY_NUMBER, max_examples=8)  # the definition is slow, and each run draws others
def test_they_say_what_the_decoded_notes_say(few, drawn):
    score, vocabulary, rows = drawn
    features = SideFeatures(vocabulary)
    for bar, window in rows:
        if bar is None:
            expected = by_definition(score, vocabulary, window)
        else:  # what began before the window is not known in it
            rest = score.excerpt(bar, len(score.bars))
            spelled = encode(rest, vocabulary)
            assert spelled[1:].tolist() == window.tolist()
            expected = by_definition(rest, vocabulary, spelled)[1:]
        np.testing.assert_array_equal(flat(features.compute(window[None]), features)[0], expected)


@given(windows(), st.booleans())
@ANY_NUMBER
def test_id_by_id_they_are_those_of_the_whole_wherever_pad_stands(few, drawn, at_right):
    _, vocabulary, rows = drawn
    features = SideFeatures(vocabulary)
    ids = side_by_side([window for _, window in rows], at_right)
    whole = flat(features.compute(ids), features)
    np.testing.assert_array_equal(one_by_one(features, ids), whole)
    assert not whole[ids == 0].any()
    for row, (_, window) in zip(whole, rows, strict=True):
        alone = flat(features.compute(window[None]), features)[0]
        np.testing.assert_array_equal(
            row[: len(window)] if at_right else row[-len(window) :], alone
        )


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
def test_prompts_that_begin_in_mid_bar_too_are_walked_as_they_are_read(vocabulary):
    features = SideFeatures(vocabulary)
    in_mid_bar = 0
    for ids in random_walks(vocabulary, np.random.default_rng(0), batch=40, steps=120):
        for end in range(12, len(ids), 7):
            prompt = rebase(ids[:end], 12, vocabulary)
            window = np.concatenate([prompt, ids[end : end + 12]])[None]
            np.testing.assert_array_equal(
                one_by_one(features, window), flat(features.compute(window), features)
            )
            starts = window_head(ids[:end], int(bar_indices(ids[:end], vocabulary)[-1]), vocabulary)
            in_mid_bar += len(prompt) > len(starts) and prompt[-1] == ids[end - 1]
    assert in_mid_bar


def said(features, row, blocks=None):
    """What (S,) says, by block; blocks that say nothing are left out."""
    told = {
        name: np.flatnonzero(row[features.blocks[name]]).tolist()
        for name in blocks or features.blocks
    }
    return {name: columns for name, columns in told.items() if columns}


def test_what_only_the_caller_knows_is_told_beside_the_ids_of_a_window():
    features, most = SideFeatures(QUARTET), MAX_BARS_TO_FOLLOW
    ids = np.full((5, 2), QUARTET.first(Kind.START))
    ids[:, 1] = 0
    known = {"bars": np.array([0, 3, most, most + 9, -1]), "moved": np.array([0, 3, -1, 14, 0])}
    known["silent"] = np.zeros((5, 4), dtype=bool)
    known["silent"][0, [0, 3]] = True
    side = told(features.compute(ids, features.nothing(5)._replace(**known)), features)
    blocks = ("follow", "silent", "moved")
    assert [said(features, row, blocks) for row in side.bits[:, 0]] == [
        {"follow": [0], "silent": [0, 3]},
        {"follow": [3], "moved": [2]},
        {"follow": [most], "moved": [12]},
        {"follow": [most], "moved": [11]},
        {},
    ]
    assert not side.flat[:, 1].any()
    for name in blocks:
        side.bits[..., features.blocks[name]] = 0
    np.testing.assert_array_equal(side.flat, flat(features.compute(ids), features))


def test_windows_without_ids_or_notes():
    features = SideFeatures(QUARTET)
    for shape in ((2, 0), (0, 5)):
        assert features.compute(np.empty(shape, dtype=int)).bag.shape[:2] == shape
    assert not flat(features.compute(np.zeros((2, 5), dtype=int)), features).any()
    empty = features.compute(np.array([[QUARTET.first(Kind.START), QUARTET.first(Kind.END)]]))
    assert [said(features, row) for row in told(empty, features).bits[0]] == [{"position": [0]}] * 2


def seed_of(score, is_final_given, vocabulary, rng):
    """Some programs in some bars, as a seed; and the final chord with them, or all but its bar."""
    is_open = rng.random((len(vocabulary.programs), len(score.bars))) < 0.5
    is_open = np.repeat(is_open, score.bars["length"], axis=1)
    if is_final_given:
        is_open[:, score.notes["onset"].max() :] = False
    else:
        is_open[:, score.bar_starts[-2] :] = True
    program = np.searchsorted(vocabulary.programs, score.notes["program"])
    kept = score.notes[~is_open[program, score.notes["onset"]]]
    return Seed(replace(score, notes=kept), is_open)


@settings(deadline=None)
@given(scores(*BOTH), st.integers(0, 2**32 - 1))
def test_training_and_sampling_know_the_same_beside_a_piece(score, seed):
    """Of the same piece with everything known: its key, some notes, its length, its end."""
    assume(len(score.notes) > 0)
    rng = np.random.default_rng(seed)
    vocabulary = vocabulary_for(score, transpose=2)
    whole = encode(score, vocabulary)
    last_onset, pieces = int(score.notes["onset"].max()), []

    def choose_given(ids, *_):
        """Give notes of what is left of the piece in the window, which may have been moved."""
        notes = ids[vocabulary.kind_of[ids] == Kind.NOTE]
        programs = np.array(vocabulary.programs)[programs_of(notes, vocabulary)]
        left = score.notes[np.isin(score.notes["program"], programs)].copy()
        left["pitch"] = (notes - vocabulary.first(Kind.NOTE)) % vocabulary.pitch_count
        left["pitch"] += vocabulary.lowest_pitch
        is_final_given = left["onset"].max() == last_onset and rng.random() < 0.5
        pieces.append(seed_of(replace(score, notes=left), is_final_given, vocabulary, rng))
        given = GivenNotes.of(pieces[0].score, pieces[0].is_open, vocabulary)
        return given, *np.zeros((2, len(ids)), dtype=bool)

    key = Key(int(rng.integers(12)), str(rng.choice(list(PROFILES))))
    known = ("KNOWN_LENGTH_SHARE", "KNOWN_FINAL_SHARE", "KNOWN_KEY_SHARE")
    with (
        patch.multiple("data.batches.windows", **dict.fromkeys(known, 1)),
        patch("data.batches.windows.choose_given", choose_given),
        patch("data.batches.windows.key_followed", lambda _: key),
    ):
        split = split_of([whole], vocabulary)
        windows = windows_of(split, vocabulary, len(whole) - 1, 2, silence=0.5, given=1)
        ids, _, training = windows.batch(int(rng.integers(100)), 0, 1)
    length = np.count_nonzero(ids[0])
    ids = ids[:, :length]
    training = told(training.map(lambda array: array[:, :length]), windows.features)
    for name in ("silent", "moved"):  # neither sampling nor scoring moves or silences anything
        training.bits[..., windows.features.blocks[name]] = 0

    with patch("generation.given.melody_key", lambda _: key):
        bars = Length(bars=len(score.bars))
        try:
            grammar = ConstrainedGrammar(vocabulary, bars, seed=pieces[0])
        except ConstraintError:  # the other notes have no room
            assume(False)
        grammar.guidance = 0.0
    state = grammar.start(1, np.array([last_onset - score.bar_starts[-2]]))
    prompt = len(grammar.given.prompt)
    sampling = [grammar.side(state, ids[:, :prompt])]
    for token in ids.T[prompt:]:
        grammar.advance(state, token)
        sampling.append(grammar.side(state, token[:, None]))
    sampling = told(joined(sampling), windows.features)

    for name in ("follow", "final"):  # at Start sampling does not yet know how long bars are
        for each in (training, sampling):
            each.bits[:, :1, windows.features.blocks[name]] = 0
    for array, other in zip(training, sampling, strict=True):
        np.testing.assert_array_equal(other, array)


def test_likelihood_is_the_probability_with_which_it_was_sampled(monkeypatch):
    """Past the context several times: what was forgotten is forgotten in both."""
    context = 40
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "context_length": context}
    config = DecoderConfig(QUARTET.size, **sizes, **SideFeatures(QUARTET).shape)
    decoder = opinionated(config, seed=0, std=0.3)
    guide = ConstrainedGrammar(QUARTET, Length(endless=True))
    seen, masks = [], []
    choose, allowed_next = model.sampling.choose, guide.allowed

    def watch(logits, *how):
        seen.append(logits[0].copy())
        return choose(logits, *how)

    def watch_masks(state):
        masks.append(allowed_next(state))
        return masks[-1]

    monkeypatch.setattr(model.sampling, "choose", watch)
    monkeypatch.setattr(guide, "allowed", watch_masks)
    start = guide.given.prompt
    goes_on = partial(rebase, context_length=context, vocabulary=QUARTET)
    how = {"generator": np.random.default_rng(0), "rebase": goes_on}
    new = model.sampling.sample(PlainReader(decoder), [start], guide, guide.start(1), **how)
    ids = np.concatenate([start, *itertools.islice(new, 200)])
    admitted = np.concatenate(masks[:200])
    is_choice = admitted.sum(axis=1) > 1  # nothing is asked where one id may come
    masked = torch.zeros(admitted.shape, dtype=torch.float64)
    masked[~torch.from_numpy(admitted)] = -torch.inf
    is_asked = torch.from_numpy(admitted & is_choice[:, None])
    masked[is_asked] = torch.from_numpy(np.concatenate(seen)).double()
    chosen = torch.from_numpy(ids[len(start) :, None])
    sampled = -masked.log_softmax(dim=1).gather(1, chosen)[:, 0].numpy()

    def nats(side):
        allowed = np.zeros((len(ids) - 1, QUARTET.size), dtype=bool)
        allowed[np.arange(len(ids) - 1), ids[1:]] = True  # the prompt is certain
        allowed[len(start) - 1 :] = admitted
        scored = token_nats(PlainReader(decoder), [ids], [allowed], rebase=goes_on, side=side)[0]
        return scored[len(start) - 1 :]

    scored = nats(lambda windows, _: guide.features.compute(windows))
    np.testing.assert_allclose(scored, sampled, atol=1e-4)
    untold = nats(lambda windows, _: guide.features.compute(np.zeros_like(windows)))
    assert np.abs(untold - sampled).max() > 0.1  # the side input does matter here
