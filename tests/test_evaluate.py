"""evaluate.py: the figures it prints are those of the definitions."""

import numpy as np
import pytest
import torch

import evaluate
import generate
from data.corpus import CorpusOptions, open_corpus
from data.grammar import Grammar
from data.windows import WholePieces
from model.bundle import save_bundle
from model.decoder import Decoder, DecoderConfig
from tests.folders import write_tunes


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    """A model that knows nothing yet, of a corpus of tunes."""
    monkeypatch.chdir(tmp_path)
    folder = write_tunes(tmp_path / "tunes", 12)
    corpus = open_corpus(folder, options=CorpusOptions(transpose=2), progress=False)
    torch.manual_seed(0)
    size = corpus.vocabulary.size
    decoder = Decoder(DecoderConfig(size, n_layer=1, n_head=1, n_embd=16, context_length=64))
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
    logits = model.decoder(ids)[0].masked_fill(~masks[:64], -torch.inf)
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
