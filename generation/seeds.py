"""Seeds: notes that a person brings, as text or MIDI, fitted to a model's vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pretty_midi

from common.arrays import Bools, Ints
from common.interface import OCTAVE
from common.text import counted
from data.canonical import canonical
from data.files.read import read_events
from data.instrument_names import instrument_name
from data.keys import high_to_low, pitched_notes
from data.midi.events import Events
from data.midi.io import pretty_midi_events
from data.midi.parts import with_tracks_apart
from data.midi.quantize import MidiError, score_from_events
from data.repeats import Repeat
from data.score import BAR, DRUMS, NOTE, Score
from data.tokens.adapt import adapt_score, became
from data.tokens.vocabulary import Vocabulary
from generation.constraints import UNCONSTRAINED, Constraints
from generation.note_text import SeedError, ambiguous_chords, parse_seed_notes

if TYPE_CHECKING:
    from data.style import Style

Midi: TypeAlias = str | Path | pretty_midi.PrettyMIDI  # a path, or the content of a file
Voice: TypeAlias = int | str  # the number of a vocabulary's instrument, from 1, or its name

MOST_OCTAVES = 10  # the span of MIDI's pitches


@dataclass(frozen=True, eq=False)
class Seed:
    """What a piece is given: notes that are kept, and where new ones may begin.

    Attributes:
        score: the notes; the vocabulary has tokens for everything in it. It may be empty.
        is_open: bool (P, S), whether new notes of each program of the vocabulary may begin at each
            grid step; after these steps, they always may.
        changes: a clause for each change that was made to fit the vocabulary, for messages.
    """

    score: Score
    is_open: Bools
    changes: tuple[str, ...] = ()

    @property
    def end_step(self) -> int:
        """S: the step from which all programs may begin notes."""
        return int(self.is_open.shape[1])

    @property
    def is_closed(self) -> Bools:
        """(S,) the steps at which nothing new may begin."""
        return np.asarray(~self.is_open.any(axis=0))

    @property
    def first_open_step(self) -> int:
        """The first step at which something new may begin."""
        return int(np.append(self.is_closed, False).argmin())

    @property
    def first_open_bar(self) -> int:
        """The index of the bar in which `first_open_step` lies."""
        return int(np.searchsorted(self.score.bar_starts, self.first_open_step, side="right")) - 1

    def at_tempo(self, tempo_bpm: int) -> Seed:
        """Return the seed at another tempo; the vocabulary must have it."""
        tempi = np.full_like(self.score.tempo_bpm, tempo_bpm)
        return replace(self, score=replace(self.score, tempo_bpm=tempi))

    def ways_into(
        self, ranges: Mapping[int, tuple[int, int]], vocabulary: Vocabulary
    ) -> dict[int, int]:
        """Return by how many semitones, in octaves, voices have to move into the programs' ranges.

        A voice moves as a whole, only if most of its notes lie outside the range of its program. It
        moves to where the fewest do.
        """
        notes, ways = self.score.notes, dict[int, int]()
        for program in ranges.keys() & {*notes["program"].tolist()}:
            pitch = notes["pitch"][notes["program"] == program]
            ways[program] = _way_into(ranges[program], pitch, vocabulary)
        return {program: way for program, way in ways.items() if way}

    def moved(self, ways: Mapping[int, int]) -> Seed:
        """Return the seed with the notes of programs moved by so many semitones."""
        return replace(self, score=self.score.moved(ways))

    def played_by(self, voice: Voice, vocabulary: Vocabulary) -> Seed:
        """Return the seed, which has one voice, played by another instrument of the vocabulary.

        Raises:
            SeedError: the seed has several voices, or the vocabulary has no such voice.
        """
        if len(np.unique(self.score.notes["program"])) > 1:
            raise SeedError("the seed has several voices: give one, or leave out --voice")
        notes = self.score.notes.copy()
        notes["program"] = program_of(voice, vocabulary)
        return replace(self, score=replace(self.score, notes=notes))


def no_seed(vocabulary: Vocabulary) -> Seed:
    """Return an empty seed: the model begins."""
    empty = canonical(np.empty(0, NOTE), np.empty(0, BAR), [], vocabulary.grid)[0]
    return Seed(empty, _closed(vocabulary, 0))


def continued(score: Score, vocabulary: Vocabulary, changes: Sequence[str] = ()) -> Seed:
    """Return a seed that the model continues after the last bar."""
    return Seed(score, _closed(vocabulary, int(score.bar_starts[-1])), tuple(changes))


def continued_at_once(
    score: Score, vocabulary: Vocabulary, changes: Sequence[str] = (), opens: int = 0
) -> Seed:
    """Return a seed that the model continues after the last note, in the same bar if there is room.

    If `opens` is a later step, the model continues there, and the last notes are held until then: a
    model that hardly rests then begins a note at that step.
    """
    notes = score.notes.copy()
    ends = notes["onset"].astype(np.int64) + notes["duration"]
    last = int(ends.max(initial=0))
    end_step = min(last, int(score.bar_starts[-1]))
    if opens > end_step:
        notes["duration"][ends == last] += max(0, opens - last)
        score = canonical(notes, score.bars, score.tempo_bpm, score.grid)[0]
    return Seed(score, _closed(vocabulary, max(opens, end_step)), tuple(changes))


def _closed(vocabulary: Vocabulary, end_step: int) -> Bools:
    """Return a region (P, S) in which nothing new may begin before `end_step`."""
    return np.zeros((len(vocabulary.programs), end_step), dtype=bool)


def accompanied(seed: Seed, vocabulary: Vocabulary, joining: Sequence[int] | None = None) -> Seed:
    """Return a seed that other programs may join from its first note on.

    A program of the seed that sounds for less than half of the time gets new notes where it rests.
    A part with a name does not, because its rests are its own.

    Args:
        seed: the seed.
        vocabulary: the vocabulary of the model.
        joining: the programs that join; None: all others.
    """
    notes, size = seed.score.notes, seed.end_step
    first = int(notes["onset"].min(initial=size))
    sounds = np.zeros((len(vocabulary.programs), size), dtype=bool)
    program = np.searchsorted(vocabulary.programs, notes["program"])
    for number, onset, duration in zip(program, notes["onset"], notes["duration"], strict=True):
        sounds[number, onset : onset + duration] = True
    least = 1 if vocabulary.grid.parts else (size - first) / 2
    is_open = ~sounds & (sounds.sum(axis=1, keepdims=True) < least)
    is_open[:, :first] = False
    if joining is not None:
        is_open[~np.isin(vocabulary.programs, [*joining, *notes["program"]])] = False
    return replace(seed, is_open=is_open)


def rewritten(
    score: Score, vocabulary: Vocabulary, bars: range, programs: Sequence[int] = ()
) -> Seed:
    """Return a piece as a seed, with some of its bars open to be rewritten.

    Args:
        score: the piece, fitted to the vocabulary.
        vocabulary: the vocabulary of the model.
        bars: the indices of the bars to rewrite, from 0.
        programs: the programs to rewrite; empty: all.
    """
    is_open = _closed(vocabulary, int(score.bar_starts[-1]))
    begin, end = score.bar_starts[[bars.start, bars.stop]]
    whose = np.isin(vocabulary.programs, programs or vocabulary.programs)
    is_open[whose, begin:end] = True
    program = np.searchsorted(vocabulary.programs, score.notes["program"])
    kept = score.notes[~is_open[program, score.notes["onset"]]]
    return Seed(replace(score, notes=kept), is_open)


def repeating(score: Score, repeat: Repeat, vocabulary: Vocabulary) -> Seed | None:
    """Return a piece as a seed that ends with a repeated passage.

    Everything after the passage is left out. The passage itself is copied from where it was first:
    all programs, or only the melody, with the other programs open to be rewritten around it.

    Returns:
        The seed, or None if the passage reaches into the last bar, if there is nothing to copy, or
        if no note is left in the bars at its end.
    """
    begin, end, lag = repeat.begin_step, repeat.end_step, repeat.lag_steps
    starts = score.bar_starts
    if end > starts[-2] or not len(pitched_notes(score)):
        return None
    melody, notes = high_to_low(score)[0], score.notes
    is_repeated = (notes["onset"] >= begin - lag) & (notes["onset"] < end - lag)
    again = notes[is_repeated & (repeat.is_whole | (notes["program"] == melody))].copy()
    if not len(again):
        return None
    kept = notes[notes["onset"] < begin].copy()
    is_cut = repeat.is_whole | (kept["program"] == melody)
    most = np.where(is_cut, begin - kept["onset"], kept["duration"])
    kept["duration"] = np.minimum(kept["duration"], most)
    again["onset"] += lag
    again["duration"] = np.minimum(again["duration"], end - again["onset"])
    bars = int(np.searchsorted(starts, end))
    notes = np.concatenate([kept, again])
    fitted = canonical(notes, score.bars[:bars], score.tempo_bpm[:bars], score.grid)[0]
    if len(fitted.bars) < bars:
        return None
    is_open = _closed(vocabulary, end)
    if not repeat.is_whole:
        is_open[np.array(vocabulary.programs) != melody, begin:] = True
    return Seed(fitted, is_open)


def seed_from_notes(
    text: str,
    vocabulary: Vocabulary,
    constraints: Constraints = UNCONSTRAINED,
    *,
    style: Style | None = None,
) -> Seed:
    """Return a seed from text such as `C4:1 E4:.5 [C4 E4 G4]:2` (see generation/note_text.py).

    Args:
        text: the notes.
        vocabulary: the vocabulary of the model.
        constraints: the seed has their programs, time signature and tempo. The voices of the text
            take the programs in order: the one that plays tunes, then the others, ascending. By
            default, the programs are all but drums, unless these play alone, and meter and tempo
            are the vocabulary's `usual_meter` and `usual_tempo`, or 120 if it has no tempi.
        style: the style of the model, which knows the program that plays tunes, and what is usual.

    The velocity of the notes is the middle one of the vocabulary's.

    Raises:
        SeedError: the text cannot be read.
        ConstraintError: the vocabulary lacks something that is asked for.
    """
    vocabulary = constraints.retimed(vocabulary)
    tempo = constraints.tempo_number(vocabulary)
    constraints.meter_number(vocabulary)
    tune, meter, bpm = (style.tune, style.meter, style.tempo_bpm) if style else (None, None, None)
    usual = vocabulary.usual_tempo(bpm) if vocabulary.grid.has_meter else 120
    playing = constraints.playing(vocabulary)
    programs = sorted(_pitched(playing) or playing, key=lambda p: p != tune)
    score = parse_seed_notes(
        text,
        vocabulary.grid,
        programs=programs,
        tempo_bpm=usual if tempo is None else vocabulary.tempos[tempo],
        meter=constraints.time_signature or vocabulary.usual_meter(meter),
        velocity=vocabulary.velocities[len(vocabulary.velocities) // 2],
    )
    score, changes = adapt_score(score, vocabulary)
    changes = ambiguous_chords(text) + changes
    if not len(score.notes):
        raise SeedError("there are no notes that the model has an instrument for")
    return continued_at_once(score, vocabulary, changes)


def seed_from_midi(
    midi: Midi,
    vocabulary: Vocabulary,
    *,
    bars: int | None = None,
    from_bar: int = 1,
    tune: int | None = None,
) -> Seed:
    """Return bars of a MIDI file, or of a pretty_midi object, as a seed.

    Args:
        midi: the path of a file, or the object.
        vocabulary: the vocabulary of the model.
        bars: how many bars to take, not counting an upbeat before bar 1; None: all.
        from_bar: the number of the first bar, from 1; bar 1 includes its upbeat.
        tune: the program that plays tunes (`Style.tune`), if that is known.

    Raises:
        FileNotFoundError, MidiError: there is no such file, no such bar, or no music in it.
    """
    score, name, vocabulary, apart = _read(midi, vocabulary)
    upbeat = int(adapt_score(score, vocabulary)[0].has_upbeat)
    bars = len(score.bars) if bars is None else bars
    last = len(score.bars) - upbeat  # the number of the last bar
    if from_bar > max(last, 1):
        raise MidiError(f"{name}: no bar {from_bar}, its last with a note is {last}")
    begin = from_bar - 1 + upbeat if from_bar > 1 else 0
    part = score.excerpt(begin, from_bar - 1 + upbeat + bars)
    if not len(part.notes):
        where = f"{counted(bars, 'bar')} from bar {from_bar} on"
        raise MidiError(f"{name}: no notes in {where}; keep more with --seed-bars")
    vocabulary = UNCONSTRAINED.retimed(vocabulary, part)  # its tempo, not that of the first bar
    fitted, changes = adapt_score(part, vocabulary, tune)
    changes = apart + changes
    end = begin + len(part.bars) - upbeat  # the number of its last bar
    if end < min(from_bar + bars - 1, last):
        changes.append(f"it ends with bar {end}, the last with a note")
    if not len(fitted.notes):
        raise MidiError(f"{name}: no notes that the model has an instrument for")
    fitted, cut = _without_stuck_notes(fitted)
    if cut:
        changes.append(f"cut at its end, as held for over a bar after it: {counted(cut, 'note')}")
    return continued(fitted, vocabulary, changes)


def _without_stuck_notes(score: Score) -> tuple[Score, int]:
    """Cut the notes that sound for more than a bar after the end, and count them."""
    notes, end = score.notes.copy(), int(score.bar_starts[-1])
    room = end - notes["onset"]
    is_stuck = notes["duration"] > room + int(score.bars["length"].max())
    notes["duration"][is_stuck] = room[is_stuck]
    return replace(score, notes=notes), int(is_stuck.sum())


def given_from_midi(
    midi: Midi, vocabulary: Vocabulary, *, voices: Sequence[Voice] = (), tune: int | None = None
) -> Seed:
    """Return whole voices of a MIDI file or a pretty_midi object as a seed (see `voices_of`).

    Raises:
        FileNotFoundError, MidiError: there is no such file, no such voice, or no music in it.
    """
    score, name, vocabulary, apart = _read(midi, vocabulary)
    try:
        seed = voices_of(score, vocabulary, voices, tune=tune)
    except SeedError as error:
        raise MidiError(f"{name}: {error}") from None
    return replace(seed, changes=(*apart, *seed.changes))


def voices_of(
    score: Score, vocabulary: Vocabulary, voices: Sequence[Voice] = (), *, tune: int | None = None
) -> Seed:
    """Return whole voices of a piece as a seed, around which other programs may play throughout.

    Args:
        score: the piece. For each instrument in `voices`, the voice with that instrument is taken;
            if there is none, the voice with its number, counted from the highest down, or the
            highest one left.
        vocabulary: the vocabulary of the model.
        voices: the instruments of the vocabulary that play the kept voices; empty: the one that
            plays tunes, or the first of the vocabulary's named parts that the piece has.
        tune: the program that plays tunes (`Style.tune`); None: the vocabulary's first.

    Raises:
        SeedError: the vocabulary or the piece lacks a voice, or no voice is left to write.
    """
    there = high_to_low(score)
    if not there:
        raise SeedError("there is no voice in it that has pitches")
    kept, changes = [], []
    if voices:
        programs = sorted({program_of(voice, vocabulary) for voice in voices})
        numbers = [_pitched(vocabulary.programs).index(program) + 1 for program in programs]
    else:  # the program of tunes, or a named part; failing that, the highest voice is taken
        named = sorted(p for p in there if p < len(vocabulary.grid.parts))
        first = program_of(1, vocabulary) if tune is None else tune
        programs = [first] if first in there and first not in named else named[:1] or [first]
        numbers = [1]
    strangers = [program for program in there if program not in programs]
    for voice, program in zip(numbers, programs, strict=True):
        its = program
        if program not in there:
            if not strangers or (voice > len(there) != len(numbers)):
                are = "is 1 voice" if len(there) == 1 else f"are {len(there)} voices"
                raise SeedError(f"there {are} in it, no voice {voice}")
            is_numbered = len(there) != len(numbers) and there[voice - 1] in strangers
            its = there[voice - 1] if is_numbered else strangers[0]
            strangers.remove(its)
            other = " (--voice names another)" if vocabulary.grid.parts else ""
            changes.append(became(its, program, vocabulary) + other)
        kept.append(score.notes[score.notes["program"] == its].copy())
        kept[-1]["program"] = program
    if len(there) > len(kept):
        others = counted(len(there) - len(kept), "other voice")
        names = ", ".join(instrument_name(program, vocabulary.grid) for program in programs)
        changes.append(f"kept {names}; {others} left out (--voices says which are kept)")
    if drums := int(np.count_nonzero(score.notes["program"] == DRUMS)):
        changes.append(f"{counted(drums, 'note')} of Drums left out")
    notes = np.concatenate(kept)
    alone = canonical(notes, score.bars, score.tempo_bpm, score.grid)[0]
    fitted, more = adapt_score(alone, vocabulary)
    fitted = _to_its_end(fitted)
    is_open = _closed(vocabulary, int(fitted.bar_starts[-1]))
    is_open[~np.isin(vocabulary.programs, notes["program"])] = True
    if not is_open.any():
        if len(vocabulary.programs) == 1:
            raise SeedError("the model plays one voice, so it has none to add to a tune")
        raise SeedError("all voices of the model are kept: leave it one to write")
    return Seed(fitted, is_open, (*changes, *more))


def rewrite_from_midi(
    midi: Midi,
    vocabulary: Vocabulary,
    *,
    bars: tuple[int, int | None] | None = None,
    voices: Sequence[Voice] = (),
    tune: int | None = None,
) -> Seed:
    """Return a MIDI file, or a pretty_midi object, as a seed with some bars to be rewritten.

    Args:
        midi: the path of a file, or the object.
        vocabulary: the vocabulary of the model.
        bars: the numbers of the first and the last bar to rewrite; an upbeat is bar 0. If the last
            is None, rewrite to the end. None: all bars.
        voices: the instruments of the vocabulary to rewrite; empty: those in the piece.
        tune: the program that plays tunes (`Style.tune`), if that is known.

    Raises:
        FileNotFoundError, MidiError: there is no such file, no such bar, or no music in it.
        SeedError: the vocabulary has no such voice.
    """
    score, name, vocabulary, apart = _read(midi, vocabulary, is_whole=True)
    fitted, changes = adapt_score(score, vocabulary, tune)
    if not len(fitted.notes):
        raise MidiError(f"{name}: no notes that the model has an instrument for")
    upbeat, lines = int(fitted.has_upbeat), score.bar_starts
    last = int(np.searchsorted(lines, fitted.bar_starts[-1])) - upbeat  # the last bar's number
    first, end = bars or (1 - upbeat, None)
    end = last if end is None else end
    if not 1 - upbeat <= first <= end <= last:
        asked = f"bar {first}" if first == end else f"bars {first}-{end}"
        raise MidiError(f"{name}: no {asked}, it has bars {1 - upbeat} to {last}")
    programs = [program_of(voice, vocabulary, has_drums=True) for voice in voices]
    there = np.unique(fitted.notes["program"]).tolist()
    if absent := np.setdiff1d(programs, there).tolist():
        names = " or ".join(instrument_name(program, vocabulary.grid) for program in absent)
        changes.append(f"it has no notes of {names} to rewrite")
    programs = programs or there
    # a bar whose meter the vocabulary lacks may have become several bars
    begin, stop = np.searchsorted(fitted.bar_starts, lines[[first - 1 + upbeat, end + upbeat]])
    seed = rewritten(fitted, vocabulary, range(begin, stop), programs)
    return replace(seed, changes=(*apart, *changes))


def program_of(voice: Voice, vocabulary: Vocabulary, *, has_drums: bool = False) -> int:
    """Return the program of one of the vocabulary's instruments.

    Args:
        voice: its number among those that have pitches, or its name.
        vocabulary: the vocabulary of the model.
        has_drums: whether the name may be that of the drums.

    Raises:
        SeedError: the vocabulary has no such voice.
    """
    programs = _pitched(vocabulary.programs)
    if isinstance(voice, str):
        programs = list(vocabulary.programs) if has_drums else programs
        names = [instrument_name(program, vocabulary.grid) for program in programs]
        its = [name.casefold() == voice.casefold() for name in names]
        if not any(its):
            raise SeedError(f"the model has no voice {voice}: it has {', '.join(names)}")
        return programs[its.index(True)]
    if not 0 < voice <= len(programs):
        has = counted(len(programs), "voice")
        raise SeedError(f"the model has {has}, there is no voice {voice}")
    return programs[voice - 1]


def _way_into(ends: tuple[int, int], pitch: Ints, vocabulary: Vocabulary) -> int:
    """Return how many semitones to move pitches by, in octaves, to bring them between two ends.

    It is 0 unless most pitches lie beyond the ends.
    """
    known = range(vocabulary.lowest_pitch, vocabulary.highest_pitch + 1)
    octaves = range(-MOST_OCTAVES * OCTAVE, MOST_OCTAVES * OCTAVE + 1, OCTAVE)
    ways = [way for way in octaves if pitch.min() + way in known and pitch.max() + way in known]
    beyond = {way: np.mean((pitch + way < ends[0]) | (pitch + way > ends[1])) for way in ways}
    return min(ways, key=lambda way: (beyond[way], abs(way))) if beyond[0] > 0.5 else 0


def _pitched(programs: Sequence[int]) -> list[int]:
    """Return the programs without drums."""
    return [program for program in programs if program != DRUMS]


def _to_its_end(score: Score) -> Score:
    """Return a piece with enough bars added, each like the last one, to hold its last note.

    The last bar and an upbeat add up to a whole bar, if the note fits.
    """
    *meter, _ = score.bars[-1].tolist()
    whole = score.grid.bar_steps(*meter)
    left = score.end_step - int(score.bar_starts[-1])
    more = -(-left // whole)
    bars = np.concatenate([score.bars, np.array([(*meter, whole)] * more, BAR)])
    rest = whole - int(score.bars["length"][0]) * score.has_upbeat
    if more > 0 and left - (more - 1) * whole <= rest:
        bars["length"][-1] = rest
    return replace(
        score, bars=bars, tempo_bpm=np.append(score.tempo_bpm, score.tempo_bpm[-1:].repeat(more))
    )


def _read(
    midi: Midi, vocabulary: Vocabulary, *, is_whole: bool = False
) -> tuple[Score, str, Vocabulary, list[str]]:
    """Read music: return the Score, the name of its source, and the vocabulary and changes.

    `is_whole`, the vocabulary and the changes are those of `score_of`.

    Raises:
        FileNotFoundError, MidiError: there is no such file, or no note in it.
    """
    if isinstance(midi, pretty_midi.PrettyMIDI):
        events, name = pretty_midi_events(midi), "the pretty_midi object"
    else:
        events, name = read_events(midi), str(midi)
    score, vocabulary, changes = score_of(events, vocabulary, f"{name}: ", is_whole=is_whole)
    if not len(score.notes):
        raise MidiError(f"{name}: no notes in it")
    return score, name, vocabulary, changes


def score_of(
    events: Events, vocabulary: Vocabulary, blame: str = "", *, is_whole: bool
) -> tuple[Score, Vocabulary, list[str]]:
    """Put events on a vocabulary's grid, with tracks kept apart (`with_tracks_apart`).

    Args:
        events: the notes and meters of a file.
        vocabulary: the vocabulary of the model.
        blame: a text that begins the messages of errors, such as the file's name.
        is_whole: whether all of it is kept, so that it matters which notes are one on the grid.

    Returns:
        The Score; the vocabulary, at the Score's tempo if it has a single tempo; and a clause for
        each program whose tracks were given to other programs, and for notes that are one.

    Raises:
        MidiError: the events have times or values that no music has.
    """
    changes: list[str] = []
    if not vocabulary.grid.parts:
        events, changes = with_tracks_apart(events, vocabulary.programs)
    score, on_grid = score_from_events(events, vocabulary.grid, blame)
    if is_whole and on_grid.merged:
        changes.append(f"left out, as doubling another: {counted(on_grid.merged, 'note')}")
    return score, UNCONSTRAINED.retimed(vocabulary, score), changes
