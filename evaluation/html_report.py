"""The one-page report: everything that is known of a model, to read, to see and to hear."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from common.text import printable
from evaluation.charts import draw_histograms, draw_likelihood, draw_statistics, svg
from evaluation.comparison import DRAWS, HISTOGRAMS, MEASURES, is_far
from evaluation.originality import LENGTHS, READINGS
from evaluation.page import (
    chart,
    contents,
    element,
    facts,
    player,
    roll,
    section,
    table,
    write_page,
)
from evaluation.summary import ModelSummary, Piece
from evaluation.tables import headlines, run_text, surprise_label
from rendering.piano_roll import draw_piano_roll, draw_surprise
from rendering.png import png_bytes

SECONDS_HEARD = 300  # of all pieces together: at 22 kB a second the page stays below 10 MB
PLACES = ("the likeliest", "the one in the middle", "the least likely")
_MOST_RUNS = 8  # listed as found in training

MEANINGS = {
    "pitch_class_entropy": "how evenly the twelve pitch classes are used; 3.58 at most",
    "scale_consistency": "share of the notes that lie in the scale that holds most of them",
    "pitch_range": "from the lowest note to the highest",
    "polyphony": "different pitches that sound at once, on average",
    "note_density": "how many notes begin each second",
    "groove_consistency": "how alike the rhythms of neighboring bars are; 1: the same",
    "bar_similarity": "share of their notes that two bars have in common",
    "repeated_material": "share of the notes in runs of eight that come again",
    "parallel_fifths": "two voices move together a fifth apart, which this style forbids",
    "parallel_octaves": "two voices move together an octave apart, forbidden too",
    "voice_crossing": "how long a lower voice sings above a higher one",
    "out_of_range": "share of the notes that singers of the voice do not have",
    "intervals": "from each note of a melody to the next, upwards positive",
    "durations": "how long the notes are held",
    "above_tonic": "which notes of the key are used; the key is estimated",
}


def write_report(judged: ModelSummary, checkpoint: str, command: str, path: str | Path) -> None:
    """Writes the page, whole or not at all.

    Args:
        judged: what it tells.
        checkpoint: the name of the model's file.
        command: what made it, as one would type it.
        path: of the .html file.
    """
    figures = judged.figures
    name = printable(Path(checkpoint).parent.name or Path(checkpoint).stem)
    sections = [
        _listen(judged),
        _likelihood(figures["likelihood"], figures["written"]),
        _statistics(figures["music"]),
        _originality(figures["originality"]),
        _surprise(judged),
        _made(figures, checkpoint, command),
    ]
    body = [_opening(figures, name), contents(sections), *sections]
    write_page(f"{name}: what the model learned", body, path)


def _opening(figures: Mapping[str, Any], name: str) -> Element:
    """What the model is, what it learned on, and the figures that matter most."""
    model, corpus = figures["model"], figures["corpus"]
    decoder, summary = model["decoder"], model["summary"]
    splits, steps = corpus["splits"], summary.get("step")
    rows = [
        ("Parameters", f"{model['parameters']:,}"),
        ("Decoder", "{n_layer} layers, {n_head} heads, width {n_embd}".format(**decoder)),
        ("Context", f"{decoder['context_length']} tokens of {decoder['vocabulary_size']} kinds"),
        ("Trained for", f"{steps:,} steps" if steps is not None else "unknown"),
        ("Corpus", printable(corpus["name"].rpartition("-")[0] or corpus["name"])),
        ("Pieces", ", ".join(f"{its['pieces']:,} {split}" for split, its in splits.items())),
        ("Notes", ", ".join(f"{its['notes']:,} {split}" for split, its in splits.items())),
    ]
    blocks = [
        element("div", element("strong", a), element("span", b)) for a, b in headlines(figures)
    ]
    return element(
        "header",
        element("p", "Etude: what a model learned", class_="eyebrow"),
        element("h1", name),
        facts(rows),
        element("div", *blocks, class_="headlines"),
    )


def _listen(judged: ModelSummary) -> Element:
    """Pieces to hear and to see."""
    given, of_given = judged.given, judged.figures["given"]
    count = judged.figures["music"]["pieces"]["generated"]
    seconds = SECONDS_HEARD / (len(given) + len(judged.written) + 1)
    parts: list[Element | str] = []
    for piece in given:
        parts += _heard(piece, printable(Path(piece.name).name), seconds)
    if of_given and len(of_given["likelihood"]["files"]) > len(given):
        more = len(of_given["likelihood"]["files"]) - len(given)
        parts.append(element("p", f"And {more:,} more files, not shown.", class_="muted"))
    parts += [element("p", printable(line), class_="muted") for line in of_given.get("told", ())]
    called = [""] * len(judged.written)
    if len(called) == len(PLACES):
        called = [f": {place} of {count}" for place in PLACES]
    for piece, what in zip(judged.written, called, strict=True):
        title = f"Written from nothing{what}"
        parts += _heard(piece, title, seconds)
    real = judged.figures["surprise"]
    title = f"For comparison: {printable(real['file'])}, which the model has not seen"
    parts += _heard(judged.real, title, seconds)
    return section("Listen", *parts)


def _heard(piece: Piece, title: str, seconds: float) -> list[Element | str]:
    """A piece with its figures, its sound and its picture."""
    score, figures = piece.score, piece.figures
    starts = score.step_seconds(score.bar_starts)
    lasting = float(score.step_seconds(score.end_step))
    told = [
        f"{len(score.bars):,} bars" if score.grid.has_meter else "no bars",
        f"{len(score.notes):,} notes",
        f"{lasting:.0f} s",
        f"{_number(figures['nats_per_note'], 3)} nats per note",
    ]
    heard = score
    if lasting > seconds:
        heard = score.excerpt(0, max(1, int((starts[1:] <= seconds).sum())))
        told.append(f"the first {float(heard.step_seconds(heard.end_step)):.0f} s to hear")
    lines = [", ".join(told) + "."]
    if piece.original:
        runs = [piece.original["runs"][reading][:1] for reading in READINGS]
        longest = max((run[0] for run in runs if run), key=lambda run: run["notes"], default=None)
        found = printable(run_text(longest)) if longest else "none of four notes or more"
        lines.append(f"Longest run that training has too: {found}.")
    if piece.drawn:
        picture = piece.drawn.read_bytes()
        caption = f"{printable(piece.drawn.name)}; what the model was given is shaded."
    else:
        picture, caption = (
            png_bytes(draw_piano_roll(score)),
            "Pitch over time, a color an instrument.",
        )
    return [
        element("h3", title),
        *(element("p", line, class_="muted") for line in lines),
        player(heard, f"Play {title}"),
        roll(picture, f"Piano roll of {title}: {', '.join(told[:3])}", caption),
    ]


def _likelihood(sets: Sequence[Mapping[str, Any]], written: Mapping[str, Any]) -> Element:
    """How likely held-out pieces are to baselines and model."""
    confidence, resamples = (sets[0]["interval"][key] for key in ("confidence", "resamples"))
    head = ["", *(text for its in sets for text in (its["name"], "interval"))]
    rows = [
        [who, *(text for its in sets for text in _with_interval(its["nats_per_note"][who]))]
        for who in sets[0]["nats_per_note"]
    ]
    kinds = dict.fromkeys(kind for its in sets for kind in its["by_kind"])
    of_kinds = [
        [
            kind,
            *(
                text
                for its in sets
                for text in _with_interval(its["by_kind"].get(kind, {}).get("nats_per_note"))
            ),
        ]
        for kind in kinds
    ]
    bits = [
        [who, *(text for its in sets for text in _with_interval(its["bits_per_second"][who], 1))]
        for who in sets[0]["bits_per_second"]
    ]
    counted = "; ".join(
        f"{its['name']}: {its['pieces']:,} pieces, {its['notes']:,} notes" for its in sets
    )
    return section(
        "Likelihood",
        element(
            "p",
            "How surprised the model is by real pieces that it has not seen, in nats per note: "
            "the lower, the better it knows the style. The baselines count which tokens follow "
            "which in the same training pieces.",
        ),
        chart(
            svg(draw_likelihood(sets)),
            "Nats per note of baselines and model, and of the model by kind of token; the "
            "figures stand in the tables below",
            f"In color: {sets[-1]['name']}. Lines: {confidence:.0%} intervals.",
        ),
        table(f"Nats per note of held-out pieces ({counted})", head, rows, marked="model"),
        table("What each kind of token adds to the model's figure", head, of_kinds),
        table("Bits per second of music", ["", *head[1:]], bits, marked="model"),
        element(
            "p",
            f"Intervals: {confidence:.0%}, percentile bootstrap over pieces, {resamples:,} "
            f"resamples. Its own {written['pieces']} pieces cost the model "
            f"{_number(written['nats_per_note']['model']['value'], 3)} nats per note: where that "
            "is less than real ones cost, it plays safe.",
            class_="muted",
        ),
    )


def _statistics(music: Mapping[str, Any]) -> Element:
    """The musical statistics of written pieces beside those of held-out ones."""
    rows: list[list[Element | str]] = []
    of_each = music["measures"] | music["histograms"]
    for name, its in (MEASURES | HISTOGRAMS).items():
        row, cells = of_each[name], []
        for which in ("generated", "held_out"):
            cells += [_number(row[which][key], its.digits) for key in ("mean", "sd")]
        for kind, digits in (("overlap", 2), ("divergence", 3)):
            cells.append(_number(row["distance"][kind], digits))
            cells.append(_number(row["real_distance"][kind]["mean"], digits))
        undefined = row["generated"].get("undefined", 0)
        title = element("span", row["label"], element("span", MEANINGS[name], class_="muted"))
        rows.append([title, *cells, "far" if is_far(row) else "", f"{undefined or ''}"])
    head = ("", "generated", "sd", "held-out", "sd", "overlap", "real", "JS", "real", "far?", "NaN")
    pieces = music["pieces"]
    caption = (
        f"Means and standard deviations over {pieces['generated']:,} generated and "
        f"{pieces['held_out']:,} held-out pieces"
    )
    return section(
        "Musical statistics",
        element(
            "p",
            "What it writes from nothing, beside held-out pieces. Overlap is 1 where the two "
            "distributions are the same and 0 where they share nothing; the Jensen-Shannon "
            "divergence (JS, in bits) goes the other way. Two sets of real pieces differ too: "
            f"“real” is the same distance with training pieces in place of the generated, the mean "
            f"of {DRAWS} draws, and a statistic is far where it lies farther than in any draw.",
        ),
        chart(
            svg(draw_statistics(music)),
            "Every statistic of generated and held-out pieces, and how much they overlap; the "
            "figures stand in the table below",
            "Dot: mean; line: from the lowest tenth of the pieces to the highest.",
        ),
        table(caption, head, rows),
        element(
            "p",
            "NaN is said of what is not defined for a piece, such as parallel fifths without four "
            "parts. It stays out of every mean; the last column counts the generated pieces that "
            "are left out so.",
            class_="muted",
        ),
        chart(
            svg(draw_histograms(music)),
            "Histograms of " + ", ".join(row["label"] for row in music["histograms"].values()),
            "Shares of the notes, generated beside held-out.",
        ),
    )


def _originality(result: Mapping[str, Any]) -> Element:
    """What of the written pieces stands in training."""
    held_out, training = result["held_out"], result["training"]
    rows: list[list[Element | str]] = []
    for label, its in (
        (f"generated, {result['all']['pieces']:,}", result["all"]),
        (f"held out, {held_out['pieces']:,}", held_out),
    ):
        for reading in READINGS:
            longest = sorted(its[reading]["longest"])
            rows.append(
                [
                    f"{label}: the {reading}",
                    *(_percent(its[reading]["shares"][str(notes)]) for notes in LENGTHS),
                    f"{longest[len(longest) // 2]}" if longest else "NaN",
                    f"{longest[-1]}" if longest else "NaN",
                ]
            )
    head = ("", *(f"{notes} notes" for notes in LENGTHS), "longest, median", "longest of all")
    found = sorted(
        (
            (run["notes"], printable(f"{piece['name']}: {run_text(run)}"))
            for piece in result["pieces"]
            for reading in READINGS
            for run in piece["runs"][reading][:1]
        ),
        key=lambda row: -row[0],
    )
    listed = [element("li", text) for _, text in found[:_MOST_RUNS]]
    return section(
        "Originality",
        element(
            "p",
            f"Which runs of notes the {training['pieces']:,} training pieces hold too, in any key: "
            "of single lines and of the whole texture. Some runs are everybody's, so the same "
            "stands beside for held-out pieces: a model that copies has more than they have.",
        ),
        table("Share of the runs of so many notes that training has too", head, rows),
        element("p", "The longest that were found, and where:") if listed else "",
        element("ol", *listed),
    )


def _surprise(judged: ModelSummary) -> Element:
    """One held-out piece, note by note."""
    told = judged.figures["surprise"]
    name, most = printable(told["file"]), told["most"]
    labels = [(note["note"], surprise_label(note)) for note in most]
    head = ("", "where", "note", "voice", "all", *(most[0]["parts"] if most else ()))
    rows = [
        [
            f"{number}",
            f"bar {note['bar']}, beat {note['beat']:g}"
            if note["beat"] is not None
            else f"{note['start_seconds']:.2f} s",
            note["name"],
            note["instrument"],
            _number(note["nats"], 1),
            *(_number(nats, 1) for nats in note["parts"].values()),
        ]
        for number, note in enumerate(most, start=1)
    ]
    return section(
        "Surprise",
        element(
            "p",
            f"{name}, a {told['split']} piece, of those in its split the one in the middle; it can "
            "be heard above. A note stands out the more, the more it surprised the model.",
        ),
        roll(
            png_bytes(draw_surprise(judged.real.score, judged.nats, labels)),
            f"Piano roll of {name}, each note colored by its surprise",
            "Numbers point at the most surprising notes.",
        ),
        table("The most surprising notes, in nats", head, rows) if rows else "",
    )


def _made(figures: Mapping[str, Any], checkpoint: str, command: str) -> Element:
    """Which commands give these figures."""
    name, music = shlex.quote(checkpoint), figures["music"]
    commands = (
        ("this page", command),
        ("likelihood", f"python evaluate.py likelihood -c {name}"),
        (
            "statistics",
            f"python evaluate.py music -c {name} --count {music['pieces']['generated']} "
            f"--seed {music['seed']}",
        ),
        ("originality of any files", f"python evaluate.py originality -c {name} FILES"),
        ("surprise", f"python evaluate.py likelihood -c {name} --piece FILE --out surprise.png"),
    )
    rows = [(term, printable(text)) for term, text in commands]
    pairs = [element("div", element("dt", a), element("dd", element("code", b))) for a, b in rows]
    return section(
        "How each figure was made",
        element("dl", *pairs, class_="commands"),
        element(
            "p",
            "The same command and the same files give the same figures. NaN stands where a "
            "measure is not defined, and never enters a mean; in JSON it is null.",
            class_="muted",
        ),
    )


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "NaN"
    return f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _percent(share: float) -> str:
    return "NaN" if math.isnan(share) else f"{share:.1%}"


def _interval(figure: Mapping[str, float], digits: int = 3) -> str:
    if math.isnan(figure["low"]):
        return "[NaN]"
    return f"[{_number(figure['low'], digits)} to {_number(figure['high'], digits)}]"


def _with_interval(figure: Mapping[str, float] | None, digits: int = 3) -> tuple[str, str]:
    if figure is None:
        return "", ""
    return _number(figure["value"], digits), _interval(figure, digits)
