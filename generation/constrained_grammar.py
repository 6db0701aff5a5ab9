"""The grammar of a vocabulary, narrowed by a length, constraints and given notes.

Sampling uses it in place of the plain grammar. It only removes ids that the grammar allows, and
forces the ids of given notes, so every piece is grammatical. It removes them early enough that a
way to the requested end always remains: there are no dead ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from common.arrays import Bools, Ids, Ints
from common.interface import SideArrays
from data.chords import Span
from data.ensembles import FEW_TOGETHER
from data.harmony import joined
from data.keys import Key, key_number
from data.score import DRUMS
from data.tokens.chords import ToldChords, told_chords
from data.tokens.cursor import at_start, record
from data.tokens.features import SideFeatures
from data.tokens.grammar import Grammar
from data.tokens.vocabulary import NEVER, Kind, Vocabulary
from data.tokens.windows import read_windows
from generation.chord_plan import NO_CHORDS, ChordPlan, key_of
from generation.constraints import (
    NO_RESTS,
    STRICT,
    TOGETHER,
    UNCONSTRAINED,
    ConstraintError,
    Constraints,
    within,
)
from generation.counterpoint import parts_of
from generation.given import GivenTokens, come_to_given
from generation.length import Asked, Length, Row, limit_of_given
from generation.rows import LATEST, RECENT, ConstrainedState, Rows, Rules, Window
from generation.rules import advance_rows, allow_rows
from generation.seeds import Seed, no_seed
from model.temperature import Logits

PULL, MOST_PULL = 2.0, 16.0  # nats per quarter note for each bar of notes owed, and the maximum
LITTLE = 0.25  # bars of notes owed, beyond which the pull grows with the cube
GUIDANCE = 0.5  # with 1, pieces become unlikely (benchmarks/RESULTS.md)


class ConstrainedGrammar:
    """The grammar of a vocabulary under a length, constraints and given notes.

    The piece is over when the model begins a bar after the last one: that Bar stands for End, and
    `whole` replaces it. So the last bar ends when the model finds it full, not when the model
    happens to choose End.

    Args:
        vocabulary: the vocabulary of the model.
        length: the length of the piece, given bars included; None: the model ends it.
        constraints: what the model may play; None: anything.
        seed: the notes that are kept, and where the model may write others; None: the model begins.
        features: the object that computes the model's side input; None: one without chords.

    Attributes:
        grammar: the plain grammar that this one narrows.
        given: what is given, as tokens.
        has_end: whether the final chord must fill the last bar.
        guidance: how strongly `sample` guides the model towards the key and the chords that it is
            told. It is above 0 where the model goes on after given voices that it has joined, where
            a key is asked for after given music, and where the model knows chords; else 0.

    Raises:
        ConstraintError: no piece can meet the request.
        VocabularyError: the vocabulary has no token for something that is given.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        length: Length | None = None,
        constraints: Constraints | None = None,
        seed: Seed | None = None,
        features: SideFeatures | None = None,
    ) -> None:
        constraints = constraints or UNCONSTRAINED
        seed = seed or no_seed(vocabulary)
        self.vocabulary = vocabulary
        self.length = length or Length()
        self.grammar = Grammar(vocabulary)
        self.features = features or SideFeatures(vocabulary)
        tempo, meter = constraints.tempo_number(vocabulary), constraints.meter_number(vocabulary)
        if tempo is not None:
            seed = seed.at_tempo(vocabulary.tempos[tempo])
        self._meter = meter
        self.given = GivenTokens(seed, vocabulary)
        self._plan = self._plan_chords(constraints)
        self._given_notes = self.features.gathered([self.given.notes])
        self._told_chords = self._tell_chords()
        own_key = key_of(self._plan.placed) if self._plan else None
        self._key = constraints.parsed_key or own_key or self.given.key
        self.guidance = GUIDANCE if self._is_led(constraints) else 0.0
        self._is_regular = bool(constraints.regular_bars and vocabulary.grid.has_meter)
        closes = constraints.closes
        if closes is None:  # even if pieces of this style fade out; drums alone have no chord
            closes = bool(np.any(seed.score.notes["program"] != DRUMS) or self._plan)
        self.has_end = closes or constraints.counterpoint == STRICT
        self._busy = constraints.busy
        self._open_steps = np.append(0, np.cumsum(~seed.is_closed))  # (S + 1,) before each step
        if self._busy is not None and not vocabulary.grid.has_meter:
            raise ConstraintError("the model counts seconds, not bars: leave out the notes a bar")
        self._plays = self._who_plays(constraints)
        is_playable = constraints.candidates(vocabulary)  # (N,)
        is_playable &= np.repeat(self._plays, vocabulary.pitch_count)
        limits = np.full(len(vocabulary.tempos), NEVER)
        if self.length.seconds:
            beats = self.length.seconds * np.array(vocabulary.tempos) / 60
            limits = np.rint(beats * vocabulary.grid.steps_per_beat).clip(1).astype(np.int64)
        self._rules = Rules(
            asked=self._asked(constraints, tempo, is_playable),
            words=vocabulary.words,
            followers=self._followers(constraints.first_bars or ()),
            limits=limits,
            is_playable=is_playable,
            given=self.given.tables,
            parts=parts_of(self.given, is_playable, constraints),
            chords=NO_CHORDS,
        )
        if self.given.bars:
            self._check_given(constraints.time_signature)
        if self._plan:
            chords = self._plan.tables(self.given, self._rules)
            self._rules = self._rules._replace(chords=chords)

    def _plan_chords(self, constraints: Constraints) -> ChordPlan | None:
        """Return where the requested chords stand, if any; new bars then have a single meter."""
        track, vocabulary, bars = constraints.chord_track, self.vocabulary, self.length.bars
        cadence, key = constraints.cadence, constraints.parsed_key or self.given.key
        if track is None and cadence is None:
            return None
        if not vocabulary.grid.has_meter:
            what = "cadence" if track is None else "chords"
            raise ConstraintError(f"the model counts seconds, not bars: ask for no {what}")
        if self.length.notes:
            raise ConstraintError("chords go by bars: ask for --bars, not for --notes")
        meter = self.meter or vocabulary.usual_meter(constraints.usual_meter)
        if bars != self.given.bars:
            self._meter = vocabulary.meters.index(meter)
        if cadence is not None:
            if key is None or bars is None:
                lacks = "in a key: ask for --key" if key is None else "at the end: ask for --bars"
                raise ConstraintError(f"a cadence is {lacks}")
            bar = bars - 1
            if constraints.cadence_bar is not None:
                bar = constraints.cadence_bar - 1 + self.given.seed.score.has_upbeat
            if not bar < bars:
                raise ConstraintError(f"the piece has no bar {constraints.cadence_bar}")
            return ChordPlan.closing(cadence, key, self.given, bars, meter, bar)
        return ChordPlan.of(track, self.given, bars, meter) if track else None

    def _tell_chords(self) -> ToldChords:
        """Return the requested chords in the form in which the side input tells them."""
        if self._plan is None:
            return told_chords([])
        size = self._plan.begin + int(self._plan.bars["length"].sum())
        return told_chords([joined(self.chords)], [size], [self._plan.cycle])

    def _who_plays(self, constraints: Constraints) -> Bools:
        """Return (P,) whether each program may play new notes.

        If the model has many programs, notes are given, and no programs are asked for, only
        programs that the seed has or opens may play (generation/seeds.py).
        """
        vocabulary, notes = self.vocabulary, self.given.seed.score.notes
        programs = np.array(vocabulary.programs)
        plays = np.isin(programs, constraints.playing(vocabulary))
        begun = np.isin(programs, notes["program"]) | self.given.seed.is_open.any(axis=1)
        is_told = self.is_of_many and len(notes) and constraints.programs is None
        return plays & begun if is_told and (plays & begun).any() else plays

    @property
    def is_of_many(self) -> bool:
        """Whether there are more programs than play at once; the model is then told which play."""
        return len(self.vocabulary.programs) > FEW_TOGETHER

    @property
    def anyone_joins(self) -> bool:
        """Whether each program has given notes, or may begin new ones among them."""
        has = np.isin(self.vocabulary.programs, self.given.seed.score.notes["program"])
        return bool((has | self.given.seed.is_open.any(axis=1)).all())

    @property
    def goes_on(self) -> bool:
        """Whether new bars follow the given ones."""
        return self.length.bars != self.given.bars

    @property
    def joined_end(self) -> int:
        """Steps from the last bar line to the final chord, if the last bar is given; else -1."""
        return -1 if self.goes_on else self.given.final_position

    @property
    def programs(self) -> list[int]:
        """The programs that may play new notes."""
        plays = self._rules.parts.plays
        return np.array(self.vocabulary.programs)[plays].tolist()  # type: ignore[no-any-return]

    def _asked(self, constraints: Constraints, tempo: int | None, is_playable: Bools) -> Asked:
        """Return the request as numbers.

        Args:
            constraints: what is asked for.
            tempo: the number of the tempo that is asked for, or None.
            is_playable: (N,) the notes that the model may play.
        """
        vocabulary, length, given, meter = self.vocabulary, self.length, self.given, self._meter
        whole_bars, most = vocabulary.whole_bars, constraints.max_polyphony or NEVER
        is_strict = constraints.counterpoint == STRICT
        closes = self.has_end and (not self._plan or self._plan.leaves_end)
        asked: Asked = record(
            Asked,
            last_bar=length.bars or NEVER,
            is_timed=bool(length.seconds),
            notes=NEVER if length.endless else length.notes or 0,
            meter=-1 if meter is None else meter,
            longest_bar=int(whole_bars.max() if meter is None else whole_bars[meter]),
            tempo=-1 if tempo is None else tempo,
            most_sounding=most if most < len(is_playable) else NEVER,
            is_strict=is_strict,
            has_end=self.has_end,
            given_close=self._given_close(constraints),
            closes=closes,
            has_cadence=closes and is_strict and int(self._plays.sum()) > 1,
            has_no_rests=constraints.rests in (NO_RESTS, TOGETHER),
            rests_together=constraints.rests == TOGETHER,
            beat=vocabulary.grid.steps_per_beat,
            pitch_count=vocabulary.pitch_count,
            given_bars=given.bars,
            given_end=given.end,
            given_last_bar=given.last_bar_start,
            given_whole_bar=given.whole_bar,
            given_meter=given.meter,
            are_cut=given.are_cut,
            end_step=given.seed.end_step,
            reach=given.reach,
            last_chance=NEVER,
        )
        return asked

    def _followers(self, first_bars: Sequence[tuple[int, int, int]]) -> Bools:
        """Return (K, V), which ids may follow each kind: a piece begins with one of these bars."""
        followers, vocabulary = self.grammar.followers, self.vocabulary
        meters = vocabulary.meters
        known = [meters.index((n, d)) for n, d, _ in first_bars if (n, d) in meters]
        if self.given.bars or self._meter is not None or not known:
            return followers
        followers = followers.copy()
        followers[Kind.START, vocabulary.ids(Kind.BAR)] = False
        followers[Kind.START, np.array(known) + vocabulary.first(Kind.BAR)] = True
        is_whole = [steps == vocabulary.grid.bar_steps(n, d) for n, d, steps in first_bars]
        if self._is_regular and all(is_whole):
            followers[Kind.BAR, vocabulary.ids(Kind.LENGTH)] = False
        return followers

    def _given_close(self, constraints: Constraints) -> int:
        """Return when voices that only rest together end with a given last note, or NEVER.

        A tune whose upbeat stands after rests leaves as much of the last bar silent.
        """
        end, beat = int(self.given.last_ends.max(initial=0)), self.vocabulary.grid.steps_per_beat
        ends_early = self.has_end and self.joined_end >= 0 and end <= self.given.end - beat / 2
        return end if ends_early and constraints.rests == TOGETHER else NEVER

    @property
    def chords(self) -> tuple[Span, ...]:
        """The requested chords, without those under which nothing new may begin."""
        placed, is_closed = self._plan.placed if self._plan else (), self.given.seed.is_closed
        spans = [Span(each.begin, each.end, each.chord) for each in placed if each.chord]
        return tuple(
            span for span in spans if is_closed[span.begin : span.end].sum() < span.end - span.begin
        )

    @property
    def meter(self) -> tuple[int, int] | None:
        """The requested time signature, or the last given one; None: the model chooses."""
        if self._meter is not None:
            return self.vocabulary.meters[self._meter]
        bars = self.given.seed.score.bars
        return (int(bars["numerator"][-1]), int(bars["denominator"][-1])) if len(bars) else None

    def start(
        self, batch: int, final_position: Ints | int = -1, keys: Sequence[Key | None] = ()
    ) -> ConstrainedState:
        """Return the state of `batch` rows after the prompt, the given ids before any choice.

        Args:
            batch, final_position, keys: as in `begin`.
        """
        state = self.begin(batch, final_position, keys)
        self.read(state, self.given.prompt[1:])
        return state

    def begin(
        self,
        batch: int,
        final_position: Ints | int = -1,
        keys: Sequence[Key | None] = (),
        ensembles: Sequence[Sequence[int]] = (),
        steps: Bools | None = None,
        loops: Ints | None = None,
        regular: Bools | None = None,
        playable: Bools | None = None,
    ) -> ConstrainedState:
        """Return the state of `batch` rows after Start alone.

        Args:
            batch: B.
            final_position: (B,) or a number: steps from the last bar line to the final chord, which
                the model is told unless a given note decides it; -1: the model decides.
            keys: (B,) the key that the model is told for each row, unless one is asked for or
                given; empty: none.
            ensembles: (B,) the programs that play in each row; empty: all that may.
            steps: (B, beat) whether notes may begin on each step of a beat; None or (B, 0): on all.
            loops: (B, bars, P) for each bar and program, how many bars earlier the program played
                the same; 0: the bar is new. None or (B, 0, P): every bar is new.
            regular: (B,) whether the bars of each row have one length; None: as asked for.
            playable: (B, N) which notes may be new in each row; None: all that are asked for.
        """
        given, rules = self.given, self._rules
        if given.has_note_in_last_bar and self.joined_end >= 0:
            final_position = self.joined_end
        if self._plan and self.length.bars:  # the last chord is one of these
            last = self._plan.placed[-1].begin - self._plan.last_bar_start
            final_position = np.where(
                np.less(final_position, 0), -1, np.maximum(final_position, last)
            )
        keys = [self._key] * batch if self._key or not keys else keys
        at = at_start(self.vocabulary, batch, Row)
        at["limit"], at["final_position"] = limit_of_given(self.length, given), final_position
        at["key"] = [key_number(key) for key in keys]
        at["rest_after"] = NEVER
        at["is_regular"] = self._is_regular if regular is None else regular
        none = np.zeros((batch, self.vocabulary.counts[Kind.NOTE]), dtype=np.int64)
        plays = np.tile(self._plays, (batch, 1))
        for row, programs in enumerate(ensembles):
            plays[row] &= np.isin(self.vocabulary.programs, programs)
        is_playable = rules.is_playable & plays.repeat(self.vocabulary.pitch_count, axis=1)
        is_playable &= True if playable is None else playable
        loops = np.empty((batch, 0, plays.shape[1]), np.int64) if loops is None else loops
        rows = Rows(
            at=at,
            latest=np.full((batch, LATEST, len(self.vocabulary.programs)), -1),
            free_at=np.where(is_playable, none, NEVER),
            note_ends=none,
            new_ends=none.copy(),
            steps=np.empty((batch, 0), dtype=bool) if steps is None else steps,
            loops=loops,
            recent=np.zeros((batch, RECENT if loops.shape[1] else 0, 3), dtype=np.int64),
        )
        state = ConstrainedState(rows, plays)
        self.read(state, given.prompt[:1])
        return state

    def within(self, registers: Sequence[Mapping[int, Sequence[int]]]) -> Bools:
        """Return (B, N), the notes that pieces may have that keep to these pitches of programs."""
        asked = self._rules.is_playable
        return np.array([within(each, asked, self.vocabulary) for each in registers])

    def read(self, state: ConstrainedState, ids: Ids) -> None:
        """Advance every row of the state by the same ids, (T,)."""
        advance_rows(self._rules, state.rows, np.tile(ids.astype(np.int64), (len(state.at), 1)))

    def allowed(self, state: ConstrainedState) -> Bools:
        """Return bool (B, V), which ids may come next: one or more a row, Pad in a finished row."""
        mask = np.empty((len(state.at), self.vocabulary.size), dtype=bool)
        allow_rows(self._rules, state.rows, mask)
        return mask

    def advance(self, state: ConstrainedState, ids: ArrayLike) -> None:
        """Advance each row of the state by its next id, (B,), which must be allowed."""
        advance_rows(self._rules, state.rows, np.asarray(ids, dtype=np.int64)[:, None])

    def progress(self, state: ConstrainedState) -> float:
        """Return the share of its length, from 0 to 1, that the slowest row has written."""
        begun, follow = state.at["bar_count"], state.at["follow"]
        done = np.where(follow < 0, 0, (begun - 1) / np.maximum(begun + follow, 1))
        return float(done.clip(0).min())

    def has_ended(self, state: ConstrainedState) -> Bools:
        """Return bool (B,), which rows have reached the end of their piece."""
        at, asked = state.at, self._rules.asked
        is_over = (at["bar_count"] > asked.last_bar) | (at["bar_start"] >= at["limit"])
        return np.asarray(is_over | (at["kind"] == Kind.END))

    def whole(self, ids: ArrayLike) -> Ints:
        """Return the ids (T,) of a piece up to its last complete note, followed by End.

        This drops Pad, the Bar that stands for End, and anything unfinished where sampling stopped.
        """
        ids = np.asarray(ids, dtype=np.int64)
        kinds = self.vocabulary.kind_of[ids]
        last = Kind.VELOCITY if len(self.vocabulary.velocities) > 1 else Kind.DURATION
        notes = np.flatnonzero(kinds == last)
        size = int(notes[-1]) + 1 if len(notes) else 1
        return np.append(ids[:size], self.vocabulary.first(Kind.END))

    def side(self, state: ConstrainedState, ids: ArrayLike) -> SideArrays:
        """Return the side input of the ids that the decoder reads next.

        It says how many bars follow, if the length decides that. A call with T > 1 begins a new
        window; a call with T = 1 continues the window of the calls before it.

        Args:
            state: the state after the last of the ids.
            ids: (B, T) the latest ids of each row, padded with Pad on the left.

        Returns:
            The side input of B rows, or with guidance of 2 B rows; the second half is not told the
            key and the chords.
        """
        ids = np.asarray(ids, dtype=np.int64)
        if ids.shape[1] > 1 or state.window is None:
            state.window = self._window(state, ids)
        window = state.window
        follow, onset, bars = (state.at[name] for name in ("follow", "final_onset", "bar_count"))
        context = window.context._replace(
            bars=np.where(follow < 0, -1, bars + follow - window.bars_before),
            final=np.where(onset < 0, -1, onset - window.context.begin),
        )
        if self.guidance:
            ids = np.concatenate([ids, ids])
            context = context.of_rows(np.tile(np.arange(len(ids) // 2), 2))
            context.key[len(ids) // 2 :] = context.harmony[len(ids) // 2 :] = -1
        window.heard = self.features.with_room(window.heard, ids.shape[1])
        return self.features.read(ids, context, window.heard)

    def tilt(self, state: ConstrainedState, logits: Logits) -> Logits:
        """Return the logits (B, V) to sample from, adjusted for given notes and for `busy`.

        Ids that would pass over the next given note give their weight to it (`come_to_given`).

        `busy` asks for about so many new notes a bar. If notes are owed, ids that take time lose
        for each quarter note that they take; if there are too many notes, they gain. The pull grows
        with the number of notes owed. It is small for small differences, because the rhythm would
        otherwise become even.
        """
        if self.given.is_told:
            logits = logits.copy()
            come_to_given(self._rules.words, self._rules.given, state.at, logits)
        if self._busy is None:
            return logits
        at, vocabulary, asked = state.at, self.vocabulary, self._rules.asked
        size = self.given.seed.end_step
        now, to_bar = at["now"], at["bar_start"] - at["now"]
        open_steps = self._open_steps[np.minimum(now, size)] + np.maximum(now - size, 0)
        owed = open_steps / at["whole_bar"].clip(1) - at["own_notes"] / self._busy  # bars of them
        steps = np.zeros(logits.shape)
        position = np.arange(vocabulary.counts[Kind.POSITION])
        steps[:, vocabulary.ids(Kind.POSITION)] = to_bar[:, None] + position
        steps[:, vocabulary.ids(Kind.BAR)] = (to_bar + at["bar_length"])[:, None]
        if asked.is_strict or asked.has_no_rests:  # the next note begins where one ends
            steps[:, vocabulary.ids(Kind.DURATION)] = np.arange(vocabulary.longest_duration) + 1
            steps[:, vocabulary.ids(Kind.EXTEND)] = vocabulary.longest_duration
        pull = (PULL * owed * (1 + (owed / LITTLE) ** 2)).clip(-MOST_PULL, MOST_PULL)  # (B,)
        quarters = steps / vocabulary.grid.steps_per_beat
        return np.asarray(logits - pull[:, None] * quarters, dtype=logits.dtype)

    def _window(self, state: ConstrainedState, ids: Ints) -> Window:
        """Return a new window that begins with ids (B, T)."""
        batch, length = ids.shape
        now, _ = read_windows(ids, self.vocabulary)
        bars = np.count_nonzero(self.vocabulary.kind_of[ids] == Kind.BAR, axis=1)
        piece = np.full(batch, 0 if self.given.is_told else -1)
        context = self.features.nothing(batch)._replace(
            final_position=state.at["final_position"].copy(),
            key=state.at["key"].copy(),
            silent=~state.plays & self.is_of_many,
            piece=piece,
            begin=state.at["now"] - now[:, -1],
            given=self._given_notes,
            harmony=np.full(batch, 0 if self._plan else -1),
            chords=self._told_chords,
        )
        heard = self.features.start(2 * batch if self.guidance else batch, length)
        return Window(heard, context, bars_before=state.at["bar_count"] - bars)

    def _is_led(self, constraints: Constraints) -> bool:
        """Return whether the model is led to a key, or to chords that it knows."""
        is_open = self.given.notes.is_open
        is_joined = bool((is_open.any(axis=0) & ~is_open.all(axis=0)).any())
        is_asked = bool(constraints.parsed_key and self.given.bars)
        is_led = bool(self._key and (is_joined or is_asked) and self.goes_on)
        return is_led or bool(self._plan and "harmony" in self.features.blocks)

    def _check_given(self, time_signature: tuple[int, int] | None) -> None:
        """Check the request against the given notes, and set `last_chance` in what is asked.

        Raises:
            ConstraintError: no piece with these given notes can meet the request.
        """
        given, length, asked = self.given, self.length, self._rules.asked
        most_notes, is_playable = asked.most_sounding, self._rules.is_playable
        most_sounding = int(given.sounding.max(initial=0))
        if given.is_told and most_sounding > most_notes:
            raise ConstraintError(
                f"{most_sounding} of the given notes sound at once, "
                f"so a polyphony of {most_notes} is too low"
            )
        is_last = (length.bars or NEVER) == given.bars
        meters = {*map(tuple, given.seed.score.bars[["numerator", "denominator"]].tolist())}
        if is_last and time_signature and meters != {time_signature}:
            raise ConstraintError(
                "the given notes have bars of their own: ask for no time signature"
            )
        last_end = int(given.last_ends.max(initial=0))
        limit = limit_of_given(length, given)
        last_onset = max(given.last_bar_start, int(given.notes.onset.max(initial=0)))
        if given.bars > asked.last_bar or last_onset >= limit:
            raise ConstraintError("the seed is already longer than the piece that is asked for")
        rest = (length.bars or given.bars) - given.bars
        most = given.end + rest * asked.longest_bar
        if not is_last and last_end > (most if length.bars else max(given.end, limit)):
            raise ConstraintError(
                "given notes sound on past the end that is asked for: ask for a longer piece, or "
                "give fewer"
            )
        is_last |= given.end >= limit
        step = np.arange(given.end)
        room = given.notes.may_begin(step) & given.leaves_free(is_playable)  # (S, P)
        sounding = np.pad(given.sounding, (0, given.end))[: given.end]
        room &= ((sounding < most_notes) & (step < limit))[:, None]
        if is_last and not room.any():
            raise ConstraintError(
                "the given notes leave no room for others: ask for a higher polyphony, or for more "
                "instruments or bars"
            )
        if is_last and given.has_note_in_last_bar:
            asked.last_chance = -1
        elif is_last:
            asked.last_chance = int(np.flatnonzero(room.any(axis=1))[-1])
            if asked.last_chance < given.last_bar_start:
                raise ConstraintError("no note can begin in the last bar: open more of the piece")
        elif length.bars or length.seconds:
            end = most if length.bars else limit
            is_good = (given.last_ends < end) & is_playable
            if not is_good.any() or (given.sounding[end - 1 :] >= most_notes).any():
                raise ConstraintError(
                    "the given notes leave no room for another before the end that is asked for: "
                    "ask for a longer piece, or give fewer"
                )
