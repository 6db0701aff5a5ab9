"""The report on one page: everything about a model, to read, to see and to hear.

The page needs no other files: pictures, sound and MIDI files are inside it as data: URIs. Its text
is in templates/report.html, where the names of files are always escaped. Its one script,
templates/player.js, moves a line over the music that is heard.
"""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from common.files import write_file
from common.text import counted, printable
from data.harmony import chords_of
from data.midi.io import midi_bytes
from evaluation import tables
from evaluation.summary import Example, Examples, ModelSummary
from rendering.audio import has_sound, mu_law_wav
from rendering.notation import engrave, has_notation, to_musicxml
from rendering.piano_roll import draw_piano_roll
from rendering.png import png_bytes

TEMPLATES = Path(__file__).with_name("templates")
MAX_SECONDS = 300  # of sound on the page: at 22 kB a second, it stays below 10 MB
RANKS = ("the likeliest", "the one in the middle", "the least likely")


def environment() -> Environment:
    """Return the templates; they escape all values."""
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

    `checkpoint` is the path of the model's file. `command` is what made the page, as people type
    it.
    """
    originality = summary.originality
    template = environment().get_template("report.html")
    text = template.render(
        summary=summary,
        name=printable(_model_name(Path(checkpoint).absolute())),
        verdict=tables.verdict(summary),
        has_sound=has_sound(),
        players=_players(summary, examples),
        likelihood_tables=tables.likelihood_tables(summary.likelihood, digits=3),
        statistics_table=tables.statistics_table(summary.music),
        statistics_notes=list(tables.statistics_notes(summary.music)),
        originality_table=tables.originality_table(
            {
                f"generated, {len(originality.pieces):,}": originality.all,
                f"held out, {len(originality.held_out.line.longest):,}": originality.held_out,
            }
        ),
        command=command,
    )
    write_file(text, path)


def _model_name(checkpoint: Path) -> str:
    """Return the name of a model's run, or of its file if that has a name of its own."""
    is_of_run = checkpoint.stem == "model" and checkpoint.parent.name
    return checkpoint.parent.name if is_of_run else checkpoint.stem


def _players(summary: ModelSummary, examples: Examples) -> list[dict[str, Any]]:
    """Render all examples, the best first; together, their sound lasts at most MAX_SECONDS."""
    titles = [f"Written from nothing: {rank} of {summary.written.pieces}" for rank in RANKS]
    if len(examples.written) != len(RANKS):
        titles = ["Written from nothing"] * len(examples.written)
    name = printable(examples.held_out.name)
    shown = [
        *zip(titles, examples.written, strict=True),
        *((printable(Path(each.name).name), each) for each in examples.given),
        (f"For comparison: {name}, which the model has not seen", examples.held_out),
    ]
    return [_player(example, title, MAX_SECONDS / len(shown)) for title, example in shown]


def _player(example: Example, title: str, seconds: float) -> dict[str, Any]:
    """Return what templates/macros.html shows of an example, with at most `seconds` of sound."""
    score = heard = example.score
    duration = float(score.step_seconds(score.end_step))
    bars = counted(len(score.bars), "bar") if score.grid.has_meter else "no bars"
    size = f"{bars}, {counted(len(score.notes), 'note')}, {duration:.0f} s"
    facts = f"{size}, {tables.number(example.likelihood.nats_per_note, 3)} nats per note"
    if duration > seconds:
        starts, first = score.step_seconds(score.bar_starts), int(score.bar_positions[0][0])
        last = int(np.searchsorted(starts, starts[first] + seconds, side="right")) - 1
        heard = score.excerpt(first, max(last, first + 1))
        facts += ", its first bars to hear"
    longest = None
    if example.originality:
        run = max(example.originality.longest_runs, key=lambda run: run.notes, default=None)
        longest = printable(str(run)) if run else "none of four notes or more"
    roll = draw_piano_roll(score, chords=chords_of(score))
    engraved = None
    if has_notation(heard.grid):
        notation = engrave(to_musicxml(heard, chords=chords_of(heard)))
        engraved = _data_uri(notation.encode(), "image/svg+xml")
    return {
        "title": title,
        "size": size,
        "facts": facts,
        "longest_run": longest,
        "audio": _data_uri(mu_law_wav(heard), "audio/wav"),
        "midi": _data_uri(midi_bytes(score), "audio/midi"),
        "file": Path(printable(example.name)).with_suffix(".mid").name,
        "picture": _data_uri(png_bytes(roll.svg), "image/png"),
        "systems": json.dumps([vars(place) for place in roll.systems]),
        "score": engraved,
    }


def _data_uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
