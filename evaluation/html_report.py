"""The one-page report: everything there is to say of a model, to read, to see and to hear.

The page needs nothing but itself: pictures, sound and MIDI files are in it as data: URIs. What it
says is in templates/report.html; whatever a file is called is escaped there, never markup. Its one
script, templates/player.js, moves a line over what is heard.
"""

import base64
import json
import struct
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from common.files import write_atomically
from common.text import printable
from data.harmony import chords_of
from data.midi.io import midi_bytes
from data.score import Score
from evaluation import tables
from evaluation.summary import Example, Examples, ModelSummary
from rendering.audio import has_sound, mu_law_wav
from rendering.notation import engrave, has_notation, to_musicxml
from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes

TEMPLATES = Path(__file__).with_name("templates")
MAX_SECONDS = 300  # of sound on the page: at 22 kB a second it stays below 10 MB
RANKS = ("the likeliest", "the one in the middle", "the least likely")


def environment() -> Environment:
    """Return the templates, in which all values are escaped."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["number"] = tables.number
    templates.filters["printable"] = printable
    return templates


def write_report(
    summary: ModelSummary, examples: Examples, checkpoint: str, command: str, path: str | Path
) -> None:
    """Write the page, whole or not at all.

    `checkpoint` is the path of the model's file, `command` what made the page, as one types it.
    """
    originality = summary.originality
    template = environment().get_template("report.html")
    text = template.render(
        summary=summary,
        name=printable(_model_name(Path(checkpoint))),
        verdict=tables.verdict(summary),
        has_sound=has_sound(),
        players=_players(summary, examples),
        likelihood_tables=tables.likelihood_tables(summary.likelihood, digits=3),
        statistics_table=tables.statistics_table(summary.music),
        statistics_notes=list(tables.statistics_notes(summary.music)),
        originality_table=tables.originality_table(
            {
                f"generated, {originality.all.pieces:,}": originality.all,
                f"held out, {originality.held_out.pieces:,}": originality.held_out,
            }
        ),
        command=command,
    )
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _model_name(checkpoint: Path) -> str:
    """Return the name of a model's run, or of its file, if that has one of its own."""
    is_of_run = checkpoint.stem == "model" and checkpoint.parent.name
    return checkpoint.parent.name if is_of_run else checkpoint.stem


def _players(summary: ModelSummary, examples: Examples) -> dict[str, Any]:
    """Render all examples; together their sound is MAX_SECONDS long at most."""
    seconds = MAX_SECONDS / (len(examples.given) + len(examples.written) + 1)
    given = [_player(each, printable(Path(each.name).name), seconds) for each in examples.given]
    ranks = [""] * len(examples.written)
    if len(ranks) == len(RANKS):
        ranks = [f": {rank} of {summary.written.pieces}" for rank in RANKS]
    written = [
        _player(each, f"Written from nothing{rank}", seconds)
        for each, rank in zip(examples.written, ranks, strict=True)
    ]
    name = printable(examples.held_out.name)
    title = f"For comparison: {name}, which the model has not seen"
    best, *others = written
    real = _player(examples.held_out, title, seconds)
    best = {**best, "is_open": True, "facts": best["size"]}  # figures come later
    return {"best": best, "given": given, "own": [*others, real]}


def _player(example: Example, title: str, seconds: float) -> dict[str, Any]:
    """Return what templates/macros.html shows of an example, with so many seconds at most."""
    score = heard = example.score
    duration = float(score.step_seconds(score.end_step))
    bars = f"{len(score.bars):,} bars" if score.grid.has_meter else "no bars"
    size = f"{bars}, {len(score.notes):,} notes, {duration:.0f} s"
    facts = f"{size}, {tables.number(example.likelihood.nats_per_note, 3)} nats per note"
    if duration > seconds:
        ends = score.step_seconds(score.bar_starts)[1:]
        heard = score.excerpt(0, max(1, int((ends <= seconds).sum())))
        facts += f", the first {float(heard.step_seconds(heard.end_step)):.0f} s to hear"
    longest = None
    if example.originality:
        run = max(example.originality.longest_runs, key=lambda run: run.notes, default=None)
        longest = printable(str(run)) if run else "none of four notes or more"
    picture, places, caption = _roll(example)
    return {
        "title": title,
        "facts": facts,
        "longest_run": longest,
        "audio": _data_uri(mu_law_wav(heard), "audio/wav"),
        "midi": _data_uri(midi_bytes(score), "audio/midi"),
        "file": Path(printable(example.name)).with_suffix(".mid").name,
        "picture": _data_uri(picture, "image/png"),
        "systems": places,
        "size": size,
        "caption": caption,
        "score": _data_uri(_engraved(example, heard).encode(), "image/svg+xml"),
        "is_open": False,
    }


def _roll(example: Example) -> tuple[bytes, str, str]:
    """Return the PNG of a piano roll, where its systems are as JSON, and what it shows."""
    roll = draw_piano_roll(example.score, chords=chords_of(example.score))
    places = json.dumps([vars(place) for place in roll.systems])
    caption = "Pitch over time, a color an instrument."
    click = " Click in it to hear it from there."
    if not example.picture:
        return png_bytes(roll.svg), places, caption + click
    picture = example.picture.read_bytes()
    name = printable(example.picture.name)
    caption = f"{name}: {caption} Dark notes were given to the model."
    if struct.unpack_from(">II", picture, 16) == (roll.width, roll.height):
        return picture, places, caption + click
    return picture, "[]", caption  # another picture: there is no saying where its notes are


def _engraved(example: Example, heard: Score) -> str:
    """Return the SVG of what is heard; nothing where it has no notation.

    That of generate.py, if it is beside the file, shows what was given.
    """
    if not has_notation(heard.grid):
        return ""
    if example.picture:
        beside = example.picture.with_suffix(".svg")
        if beside.is_file() and (text := beside.read_text("utf-8", "replace")).startswith("<svg"):
            return text
    return engrave(to_musicxml(heard, chords=chords_of(heard)))


def _data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
