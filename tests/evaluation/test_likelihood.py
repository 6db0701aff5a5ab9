"""How likely pieces are: the figures are those of the definitions, and what is left out is told."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from data.midi.io import write_midi
from data.midi.quantize import MidiError
from data.tokens.grammar import Grammar
from data.tokens.tokenizer import encode
from evaluation.likelihood import EvaluationSet, measure_likelihood, measure_surprise, read_files
from model.decoding import PlainSteps, decoder_of
from model.scoring import token_nats
from tests.models import tune
from tests.music import piece


def files_set(model, paths):
    return EvaluationSet.of_files(model, read_files(model, paths))


def nats_of(model, score):
    ids = encode(score, model.vocabulary)
    allowed = [Grammar(model.vocabulary).masks(ids)]
    return token_nats(
        PlainSteps(decoder_of(model.network)), [ids], allowed, rebase=model.rebase, side=model.side
    )[0]


def test_files_are_scored_total_over_total_with_intervals(model, tmp_path):
    scores = [tune(tmp_path / f"{bars}.mid", bars=bars) for bars in (2, 4, 12)]
    music = files_set(model, [str(tmp_path)])
    assert (music.notes_left_out, music.messages) == ([0, 0, 0], [])
    figures = measure_likelihood(model, {}, music)
    total = [nats_of(model, score).sum() for score in scores]
    notes = [len(score.notes) for score in scores]
    per_note = figures.nats_per_note["model"]
    assert per_note.value == pytest.approx(sum(total) / sum(notes))
    assert per_note.low < per_note.value < per_note.high
    # no resample is more or less surprising than each of its pieces
    each = np.array(total) / notes
    assert each.min() <= per_note.low + 1e-4
    assert per_note.high <= each.max() + 1e-4
    by_name = {file.name: file for file in figures.files}
    for score, nats in zip(scores, total, strict=True):
        file = by_name[str(tmp_path / f"{len(score.bars)}.mid")]
        assert file.nats_per_note == pytest.approx(nats / len(score.notes))
        assert file.seconds == pytest.approx(len(score.bars) * 4 * 60 / 80)
    seconds = 18 * 4 * 60 / 80
    assert figures.seconds == pytest.approx(seconds)
    bits = sum(total) / np.log(2) / seconds
    assert figures.bits_per_second["model"].value == pytest.approx(bits)
    sums = sum(nats.value for nats in figures.nats_by_kind.values())
    assert sums == pytest.approx(per_note.value)
    assert json.loads(json.dumps(asdict(figures))) == asdict(figures)  # plain data


def test_a_file_is_scored_on_what_can_be_represented(model, tmp_path):
    """Notes of an unknown instrument or out of range go, and nothing else changes."""
    known = [(12 * i, 12, 60 + i, 80, 40) for i in range(8)]
    flute, low = (0, 12, 70, 80, 73), (12, 12, 20, 80, 41)
    whole, part = tmp_path / "whole.mid", tmp_path / "part.mid"
    write_midi(piece([*known, flute, low], [(4, 4, 48)] * 2, 80), whole)
    write_midi(piece(known, [(4, 4, 48)] * 2, 80), part)
    music = files_set(model, [str(whole)])
    assert music.notes_left_out == [2]
    assert "2 of 10 notes have no token" in music.messages[0]
    figures = measure_likelihood(model, {}, music)
    alone = measure_likelihood(model, {}, files_set(model, [str(part)]))
    assert figures.nats_per_note["model"].value == alone.nats_per_note["model"].value
    assert np.isnan(figures.nats_per_note["model"].low)  # of one piece there is no interval
    assert (figures.notes, figures.notes_left_out) == (8, 2)
    assert figures.files[0].notes_left_out == 2

    score, nats, messages = measure_surprise(model, whole)
    assert messages == music.messages
    is_known = np.isfinite(nats).all(axis=1)
    assert score.notes["program"][~is_known].tolist() == [73, 41]
    expected = nats_of(model, piece(known, [(4, 4, 48)] * 2, 80))[:-1].sum()
    assert nats[is_known].sum() == pytest.approx(expected)


def test_files_with_nothing_to_score_are_told_in_a_line(model, tmp_path):
    tune(tmp_path / "flute.mid", program=73)
    with pytest.raises(MidiError, match=r"flute\.mid: none of its notes .*programs 40 41 42 43"):
        files_set(model, [str(tmp_path / "flute.mid")])
    with pytest.raises(MidiError, match="none of its notes"):
        measure_surprise(model, tmp_path / "flute.mid")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.mid: no such file"):
        files_set(model, ["nowhere.mid"])
    (tmp_path / "broken.mid").write_bytes(b"MThd")
    with pytest.raises(MidiError, match=r"broken\.mid: "):
        files_set(model, [str(tmp_path / "broken.mid")])
    # in a folder what cannot be read is told, and the others count
    tune(tmp_path / "violin.mid")
    music = files_set(model, [str(tmp_path)])
    assert music.split.names == (str(tmp_path / "violin.mid"),)
    assert sorted(line.split(": ")[0].rsplit("/")[-1] for line in music.messages) == [
        "broken.mid",
        "flute.mid",
    ]
