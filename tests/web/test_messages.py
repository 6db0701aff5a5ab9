"""Messages of the page: what fits comes in as it is, everything else is one line."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.music import GRID, PARTS, SECONDS, random_score
from web.messages import MOST_NOTES, MessageError, json_of, piece_of, write_request

SETTINGS = {"bars": 4, "temperature": 0.75}
NOTE = [0, 12, 60, 80, 40, 1]


def a_piece(**changes):
    return {
        "notes": [NOTE],
        "bars": [[4, 4, 48]],
        "tempo": [[80]],
        "grid": "beats",
        "steps": 12,
    } | changes


def a_request(**changes):
    message = {"model": "bach", "how": "continue", "piece": a_piece(), "settings": SETTINGS}
    return message | {"variations": 4, "random_seed": 1} | changes


@settings(deadline=None)  # on a busy machine
@given(st.integers(0, 2**32 - 1), st.sampled_from((GRID, SECONDS, PARTS)))
def test_a_piece_comes_back_as_it_went_out(seed, grid):
    rng = np.random.default_rng(seed)
    score = random_score(rng, grid)
    assume(len(score.bars))  # the page has a bar where nothing is written yet
    is_own = rng.random(len(score.notes)) < 0.5
    piece = piece_of({"piece": json.loads(json.dumps(json_of(score, is_own)))})
    assert piece.score == score
    assert np.array_equal(piece.is_own, is_own)


def test_a_request_says_what_to_write():
    request = write_request(a_request(how="rewrite", bars=[0, 1], programs=[40, 42]))
    assert (request.how, request.bars, request.programs) == ("rewrite", (0, 1), (40, 42))
    assert request.settings.constraints.key is None
    asked = SETTINGS | {"key": "D minor", "range": [48, 72], "meter": [3, 4], "tempo": 90}
    asked |= {"counterpoint": "strict", "rests": "none", "cadence": "half", "busy": 12}
    constraints = write_request(a_request(settings=asked)).settings.constraints
    assert (constraints.key, constraints.pitch_range) == ("D minor", (48, 72))
    assert (constraints.time_signature, constraints.tempo_bpm) == ((3, 4), 90)
    assert (constraints.counterpoint, constraints.rests) == ("strict", "none")
    assert (constraints.cadence, constraints.busy) == ("half", 12)


def each_of(values):
    """A change for each value of each name."""
    return [{name: value} for name, its in values.items() for value in its]


NO_PIECES = {
    "notes": (
        *({}, [NOTE] * (2 * MOST_NOTES + 1), [NOTE[:5]], [[0, 12, 128, 80, 40, 1]]),
        *([[48, 12, 60, 80, 40, 1]], [[0, 0, 60, 80, 40, 1]], [[0, 12, 60, 0, 40, 1]]),
        *([[-1, 12, 60, 80, 40, 1]], [[0, 12, 60.5, 80, 40, 1]], [[True, 12, 60, 80, 40, 1]]),
        *([[10**30, 12, 60, 80, 40, 1]], [[0, 12, 60, 80, 200, 1]]),
    ),
    "bars": ([], [[4, 4, 49]], [[4, 5, 48]], [[4, 4, 48]] * 2),
    "tempo": ([[0]], [[301]]),
    "grid": ("steps", "seconds"),  # whose bars are others
    "steps": (0,),
    "parts": (
        [["MELODY"]],
        [["", 0]],
        [["MELODY", 128]],
        [["MELODY", 0]],
    ),  # the note is of the 41st
    "meter": ([4], [float("inf"), 4], [4, 2**31]),  # which no file can say
}


@pytest.mark.parametrize("changes", each_of(NO_PIECES))
def test_what_is_no_piece_is_refused(changes):
    with pytest.raises(MessageError):
        piece_of({"piece": a_piece(**changes)})


INSTEAD = {"how": "instead", "note": 0, "instead": [60, 40]}
NO_SETTINGS = {
    "bars": (0, 10**9),
    "temperature": (float("nan"),),
    "tempo": (10**401,),
    "key": (4, "H moll"),
    "polyphony": (0,),
    "bar_chords": ("Am", ["Am"] * 600, ["Am " * 30]),
}


@pytest.mark.parametrize(
    "changes",
    [
        *({"how": "rewrite"} | bars for bars in ({}, {"bars": [1, 1]}, {"bars": [0, 10**6]})),
        *(INSTEAD | {"instead": wrong} for wrong in ([60], [128, 40])),
        *(INSTEAD | {"written": {"how": wrong}} for wrong in ("instead", "sing")),
        *(INSTEAD | {"note": wrong} for wrong in (1, None)),
        *each_of({"how": ("sing",), "variations": (5,), "random_seed": (-1,)}),
        *each_of({"model": ("x" * 300,), "programs": ("all",), "settings": (None,)}),
        *({"settings": SETTINGS | wrong} for wrong in each_of(NO_SETTINGS)),
    ],
)
def test_what_is_no_request_is_refused(changes):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):  # one line
        write_request(a_request(**changes))


def test_a_long_piece_is_kept_and_not_gone_on_with():
    notes = [[3 * n, 3, 60, 80, 40, 1] for n in range(MOST_NOTES + 1)]
    bars = [[4, 4, 48]] * (len(notes) // 16 + 1)
    long = a_piece(notes=notes, bars=bars, tempo=[[120]] * len(bars))
    assert len(piece_of({"piece": long}).score.notes) == len(notes)
    with pytest.raises(MessageError, match="the piece is too long: over 4096 notes or 512 bars"):
        write_request(a_request(piece=long))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(sorted(a_request() | a_piece() | SETTINGS)), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(
    st.sampled_from(("continue", "rewrite", "instead")),
    st.dictionaries(
        st.sampled_from([*sorted(a_request()), "bars", "programs", "note", "instead", "written"]),
        json_values,
    ),
)
def test_whatever_is_said_is_heard_or_refused(how, changes):
    fitting = {"how": how, "bars": [0, 1], "note": 0, "instead": [60, 40]}
    with contextlib.suppress(ValueError):
        write_request(a_request(**fitting | changes))
