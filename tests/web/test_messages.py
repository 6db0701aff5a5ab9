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


@pytest.mark.parametrize("bar", [[65, 32, 98], [3, 128, 1], [255, 128, 96]])
def test_a_piece_may_have_any_meter_that_a_file_can_have(bar):
    assert json_of(piece_of({"piece": a_piece(bars=[bar])}).score)["bars"] == [bar]


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


@pytest.mark.parametrize(
    "changes",
    [
        {"notes": [NOTE] * (2 * MOST_NOTES + 1)},
        {"notes": [NOTE[:5]]},
        *({"notes": [[onset, *NOTE[1:]]]} for onset in (48, -1, True, 10**30)),
        *({"notes": [[*NOTE[:2], pitch, *NOTE[3:]]]} for pitch in (128, 60.5)),
        *({"notes": [note]} for note in ([0, 0, 60, 80, 40, 1], [0, 12, 60, 0, 40, 1])),
        {"notes": {}},
        *({"bars": bars} for bars in ([], [[4, 4, 49]], [[4, 5, 48]], [[4, 4, 48], [4, 4, 48]])),
        *({"tempo": [[tempo]]} for tempo in (0, 301)),
        {"grid": "steps"},
        {"grid": "seconds", "steps": 100},
        {"steps": 0},
        *({"parts": [part]} for part in (["MELODY"], ["", 0], ["MELODY", 128])),
        {"parts": [["MELODY", 0]]},  # the note is of the 41st
        {"notes": [[0, 12, 60, 80, 200, 1]]},
        *({"meter": meter} for meter in ([4], [float("inf"), 4], [4, 2**31])),
    ],
)
def test_what_is_no_piece_is_refused(changes):
    with pytest.raises(MessageError):
        piece_of({"piece": a_piece(**changes)})


@pytest.mark.parametrize(
    "changes",
    [
        {"how": "sing"},
        {"how": "rewrite"},
        {"how": "rewrite", "bars": [1, 1]},
        {"how": "rewrite", "bars": [0, 10**6]},
        *({"how": "instead", "note": 0, "instead": its} for its in ([60], [128, 40])),
        {"how": "instead", "note": 1, "instead": [60, 40]},
        {"how": "instead", "instead": [60, 40]},
        *(
            {"how": "instead", "note": 0, "instead": [60, 40], "written": {"how": how}}
            for how in ("instead", "sing")
        ),
        {"variations": 5},
        {"random_seed": -1},
        {"model": "x" * 300},
        {"settings": None},
        *({"settings": SETTINGS | {"bars": bars}} for bars in (0, 10**9)),
        {"settings": SETTINGS | {"temperature": float("nan")}},
        {"settings": SETTINGS | {"tempo": 10**401}},
        *({"settings": SETTINGS | {"key": key}} for key in (4, "H moll")),
        {"settings": SETTINGS | {"polyphony": 0}},
        *(
            {"settings": SETTINGS | {"bar_chords": chords}}
            for chords in ("Am", ["Am"] * 600, ["Am " * 30])
        ),
        {"programs": "all"},
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
