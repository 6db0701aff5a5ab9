"""Near copies: which two bars running are the same, and what the report makes of it."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data.corpus.corpus import open_corpus
from data.corpus.duplicates import Windows, likest, shares_found, window_marks
from data.midi.io import write_midi
from data.score import DRUMS, Score, ScoreBatch, offsets
from tests.folders import transposed, tune
from tests.music import scores


def spelled_windows(score):
    """The notes of each two bars running, by the definition."""
    windows = []
    starts = score.bar_starts.tolist()
    for bar in range(max(len(score.bars) - 1, min(len(score.bars), 1))):
        begin, end = starts[bar], starts[min(bar + 2, len(score.bars))]
        inside = [note for note in score.notes.tolist() if begin <= note[0] < end]
        pitched = [pitch for _, _, pitch, _, program in inside if program != DRUMS]
        lowest = min(pitched, default=0)
        if inside:
            notes = (
                (onset - begin, duration, pitch - (program != DRUMS) * lowest, program)
                for onset, duration, pitch, _, program in inside
            )
            windows.append(tuple(sorted(notes)))
    return windows


@given(st.lists(scores(), min_size=1, max_size=5))
def test_marks_are_equal_where_the_notes_are(pieces):
    marks, counts = window_marks(ScoreBatch.of(pieces))
    windows = [spelled_windows(piece) for piece in pieces]
    assert counts.tolist() == [len(of_piece) for of_piece in windows]
    pairs = set(zip(itertools.chain(*windows), marks.tolist(), strict=True))
    assert len(pairs) == len({window for window, _ in pairs}) == len({mark for _, mark in pairs})


@given(scores(), st.integers(-5, 5))
def test_marks_do_not_know_the_key(score, semitones):
    pitch = score.notes["pitch"][score.notes["program"] != DRUMS] + semitones
    if not len(pitch) or pitch.min() < 0 or pitch.max() > 127:
        return
    there, _ = window_marks(ScoreBatch.of([transposed(score, semitones)]))
    np.testing.assert_array_equal(there, window_marks(ScoreBatch.of([score]))[0])


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6),
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6),
)
def test_shares_and_the_likest_are_those_of_counting(held_out, train):
    def windows(pieces):
        marks = np.array(list(itertools.chain(*pieces)), dtype=np.uint64)
        return Windows(marks, offsets([len(piece) for piece in pieces]))

    known = {mark for piece in train for mark in piece}
    shares = shares_found(windows(held_out), windows(train))
    for piece, share in zip(held_out, shares, strict=True):
        assert share == (np.mean([mark in known for mark in piece]) if piece else 0)
    alike = [piece for piece in held_out if known & set(piece)]
    like = likest([np.array(piece, dtype=np.uint64) for piece in alike], windows(train))
    for piece, number in zip(alike, like, strict=True):
        common = [len(set(piece) & set(other)) for other in train]
        assert common[number] == max(common)


def test_the_report_names_the_piece_that_a_near_copy_is_like(tmp_path):
    for number in range(9):
        (tmp_path / "tunes" / "train").mkdir(parents=True, exist_ok=True)
        write_midi(tune(number), tmp_path / "tunes" / "train" / f"{number}.mid")
    notes = tune(4).notes.copy()
    notes["pitch"][-1] += 1  # in the last of seven bars: five of six windows stay
    near = Score(notes, tune(4).bars, tune(4).tempo_bpm, tune(4).grid)
    for split, score in (("valid", transposed(near, 3)), ("test", tune(50))):
        (tmp_path / "tunes" / split).mkdir()
        write_midi(score, tmp_path / "tunes" / split / "piece.mid")
    corpus = open_corpus(tmp_path / "tunes", tmp_path / "out", progress=False)
    told = corpus.report()["near_copies"]
    assert told["valid"] == {
        "windows": 6,
        "found": 5,
        "pieces_over_half": 1,
        "most_alike": [{"file": "valid/piece.mid", "share": 0.8333, "like": "train/4.mid"}],
    }
    assert told["test"] == {"windows": 6, "found": 0, "pieces_over_half": 0, "most_alike": []}
    page = (corpus.folder / "report.txt").read_text()
    assert "valid  83.3% of 6; more than half in 1 of 1 pieces" in page
    assert "83%  valid/piece.mid (valid), most like train/4.mid" in page
