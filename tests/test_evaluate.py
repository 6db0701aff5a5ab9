"""evaluate.py: the figures it prints are those of the definitions."""

from pathlib import Path

import numpy as np
import pytest
import torch

import evaluate
import generate
from data.bearings import Bearings
from data.corpus import CorpusOptions, open_corpus
from data.grammar import Grammar
from data.midi import read_midi, write_midi
from data.render import write_attention
from data.tokenizer import encode
from data.windows import WholePieces
from model.bundle import save_bundle
from model.decoder import Decoder, DecoderConfig
from tests.folders import write_tunes
from tests.music import GRID, piece


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    """A model that knows nothing yet, of a corpus of tunes."""
    monkeypatch.chdir(tmp_path)
    folder = write_tunes(tmp_path / "tunes", 12)
    corpus = open_corpus(folder, options=CorpusOptions(transpose=2), progress=False)
    torch.manual_seed(0)
    size, n_beside = corpus.vocabulary.size, Bearings(corpus.vocabulary).size
    decoder = Decoder(
        DecoderConfig(size, n_layer=1, n_head=1, n_embd=16, context_length=64, n_beside=n_beside)
    )
    torch.nn.init.normal_(decoder.head.weight, std=0.3)
    summary = {"data": {"path": str(folder), "transpose": 2}}
    save_bundle(tmp_path / "m.safetensors", decoder, corpus.vocabulary.to_json(), summary)
    return tmp_path / "m.safetensors"


def table(text):
    """The numbers of each line of the table by the line's name."""
    lines = text[text.index("nats per note") :].splitlines()[1:]
    rows = [line.split() for line in lines]
    return {" ".join(row[:-2]): [float(row[-2]), float(row[-1])] for row in rows}


def test_the_table_holds_model_and_baselines_and_its_kinds_add_up(checkpoint, capsys):
    evaluate.main(["likelihood", "--checkpoint", str(checkpoint)])
    figures = table(capsys.readouterr().out)
    kinds = ["end", "bar", "length", "tempo", "position", "note", "extend", "duration"]
    sums = np.sum([figures.get(kind, [0, 0]) for kind in kinds], axis=0)
    assert np.allclose(sums, figures["model"], atol=1e-3)
    # what has learned nothing is worse than counting
    assert figures["bigram"] < figures["unigram"] < figures["model"]


def test_the_model_is_scored_exactly_where_a_piece_fits_the_context(checkpoint):
    model = generate.load(checkpoint)
    corpus = evaluate.corpus_of(model, None, "datasets")
    split = corpus.split("valid")
    tally = evaluate.score_pieces(model, WholePieces(split, model.vocabulary))
    assert tally.notes == split.note_counts.sum()
    piece = min((split.piece(i) for i in range(len(split))), key=len)
    masks = torch.from_numpy(Grammar(model.vocabulary).masks(piece))
    ids = torch.from_numpy(piece)[None, :64]
    beside = torch.from_numpy(model.beside(ids.numpy()))
    logits = model.decoder(ids, beside=beside)[0].masked_fill(~masks[:64], -torch.inf)
    first = torch.nn.functional.cross_entropy(logits[:63], ids[0, 1:], reduction="none")
    assert 0 < first.sum() < tally.nats.sum()


def test_a_corpus_with_other_tokens_is_refused(checkpoint, tmp_path, capsys):
    other = write_tunes(tmp_path / "other", 3, first=40)
    (tmp_path / "other" / "tune40.mid").write_bytes(b"")
    for path, word in ((other, "vocabulary"), ("nowhere", "nowhere")):
        model = generate.load(checkpoint)
        model.summary["data"]["transpose"] = 1
        save_bundle(checkpoint, model.decoder, model.vocabulary.to_json(), model.summary)
        with pytest.raises(SystemExit) as stop:
            evaluate.main(["likelihood", "-c", str(checkpoint), "--path", str(path)])
        assert stop.value.code == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1
        assert word in lines[0]


def test_a_picture_of_attention_is_written_for_any_file(checkpoint, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        evaluate,
        "write_attention",
        lambda *what: drawn.append(what) or write_attention(*what),
    )
    model = generate.load(checkpoint)
    tune = tmp_path / "tunes" / "tune3.mid"
    options = ["attention", "-c", str(checkpoint), "--midi", str(tune), "--out"]
    evaluate.main([*options, "a.png"])
    assert capsys.readouterr().out == ""
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    maps, labels, layers, _ = drawn.pop()
    ids = encode(read_midi(tune, GRID)[0], model.vocabulary)[: len(labels)]
    assert layers == ["layer 1"]
    assert labels[:2] == ["Start", "Bar 0"]  # an upbeat
    beside = torch.from_numpy(model.beside(ids[None]))
    expected = model.decoder.attention_maps(torch.from_numpy(ids)[None], beside=beside)
    torch.testing.assert_close(torch.from_numpy(maps), expected[:, 0])

    evaluate.main([*options, "b.png", "--from-bar", "3", "--tokens", "9"])
    maps, labels, _, _ = drawn.pop()
    assert maps.shape == (1, 1, 9, 9)
    assert labels[0] == "Bar 3"  # and its tempo, as a training window restates it
    assert labels[1].startswith("Tempo")

    beyond = tmp_path / "deep.mid"
    notes = [(12 * i, 12, 24 + i, 80, 25) for i in range(8)]
    write_midi(piece(notes), beyond)
    evaluate.main(["attention", "-c", str(checkpoint), "--midi", str(beyond), "--out", "c.png"])
    assert "fitted to the model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--midi", "none.mid"], "none.mid: no such file"),
        (["--from-bar", "99"], "no bar 99, its last with a note is"),
        (["--from-bar", "0"], "must be a whole number from 1 up"),
        (["--tokens", "129"], "at most 128"),
        (["--out", "tunes/tune3.mid"], "the name of a .png file is needed"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(checkpoint, capsys, changes, words):
    command = ["attention", "-c", str(checkpoint), "--midi", "tunes/tune3.mid", "--out", "a.png"]
    with pytest.raises(SystemExit) as stop:
        evaluate.main([*command, *changes])
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert words in line
    assert not Path("a.png").exists()
