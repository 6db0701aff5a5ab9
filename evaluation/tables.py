"""What evaluate.py prints: plain data as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.comparison import is_far
from evaluation.originality import LENGTHS, READINGS

_MOST_FILES = 20  # files that have a line of their own


def headlines(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What matters most of what evaluation/summary.py gives: figures, and what each of them is."""
    last, music, original = figures["likelihood"][-1], figures["music"], figures["originality"]
    who = list(last["nats_per_note"])
    model, best = (last["nats_per_note"][name] for name in (who[-1], who[-2]))
    rows = [*music["measures"].values(), *music["histograms"].values()]
    known = [row for row in rows if row["distance"]["overlap"] == row["distance"]["overlap"]]
    own, real = (original[which]["line"]["shares"]["8"] for which in ("all", "held_out"))
    low, high = model["low"], model["high"]
    interval = f"{low:.3f} to {high:.3f}" if low == low else "NaN"
    return [
        (
            f"{model['value']:.3f}",
            f"nats per note on {last['name']} pieces [{interval}]; {who[-2]}: {best['value']:.3f}",
        ),
        (
            f"{sum(not is_far(row) for row in known)} of {len(known)}",
            "musical statistics as near to held-out pieces as real ones are",
        ),
        (
            _share(own),
            f"of its runs of eight notes stand in training; of held-out pieces {_share(real)}",
        ),
    ]


def _share(share: float) -> str:
    return f"{share:.1%}" if share == share else "NaN"


def likelihood_lines(sets: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table, a column for each set of pieces, of what `judge.likelihood` gives."""
    interval = sets[0]["interval"]
    yield f"{'':14}" + "".join(f"{music['name']:>26}" for music in sets)

    def line(label: str, figures: Sequence[dict[str, float] | None]) -> str:
        return f"{label:14}" + "".join(f"{_with_interval(figure):>26}" for figure in figures)

    yield "nats per note"
    for name in sets[0]["nats_per_note"]:
        yield line(f"  {name}", [music["nats_per_note"][name] for music in sets])
    for kind in dict.fromkeys(kind for music in sets for kind in music["by_kind"]):
        kinds = [music["by_kind"].get(kind) for music in sets]
        yield line(f"    {kind}", [its and its["nats_per_note"] for its in kinds])
    yield line("per token", [music["nats_per_token"] for music in sets])
    yield "bits per second"
    for name in sets[0]["bits_per_second"]:
        yield line(f"  {name}", [music["bits_per_second"][name] for music in sets])
    for name in ("pieces", "notes"):
        yield f"{name:14}" + "".join(f"{music[name]:>26,}" for music in sets)
    if any(music["notes_left_out"] for music in sets):
        yield f"{'left out':14}" + "".join(f"{m['notes_left_out']:>20,} notes" for m in sets)
    yield (
        f"In brackets: {interval['confidence']:.0%} intervals, percentile bootstrap over pieces, "
        f"{interval['resamples']:,} resamples, seed {interval['seed']}."
    )


def _with_interval(figure: dict[str, float] | None) -> str:
    if figure is None:
        return "-"
    value, low, high = figure["value"], figure["low"], figure["high"]
    return f"{value:.4f} " + (f"[{low:.3f} {high:.3f}]" if low == low else f"{'[-]':>15}")


def file_lines(music: dict[str, Any]) -> Iterator[str]:
    """A line for each file of what `judge.likelihood` gives, the most surprising first."""
    files = sorted(music["files"], key=lambda file: -file["nats_per_note"])
    yield "nats per note, file by file"
    for file in files[:_MOST_FILES]:
        missing = file["notes_left_out"]
        left_out = f", {missing} more left out" if missing else ""
        yield f"{file['nats_per_note']:8.4f}  {file['name']} ({file['notes']} notes{left_out})"
    if len(files) > _MOST_FILES:
        yield f"          and {len(files) - _MOST_FILES} more files"


def surprise_line(note: dict[str, Any]) -> str:
    """One note of what `data.surprise.most_surprising` gives, with what was surprising of it."""
    parts = ", ".join(f"{name} {nats:.1f}" for name, nats in note["parts"].items() if nats >= 0.05)
    return f"{surprise_label(note)} ({parts})"


def surprise_label(note: dict[str, Any]) -> str:
    """The same for a picture: where, what, who and how surprising."""
    if note["beat"] is None:
        place = f"at {note['start_seconds']:.2f} s"
    else:
        place = f"bar {note['bar']}, beat {note['beat']:g}"
    who = f"{note['instrument']} ({note['program']})"
    return f"{place}: {note['name']}, {who}, {note['nats']:.1f} nats"


def originality_lines(result: dict[str, Any]) -> Iterator[str]:
    """A table, and the longest runs, of what `data.originality.originality` gives."""
    training, held_out = result["training"], result["held_out"]
    yield (
        f"runs of notes that {training['pieces']:,} training pieces hold too, in any key "
        f"({training['corpus']}, {training['notes']:,} notes)"
    )
    rows = [(piece["name"], piece) for piece in result["pieces"]]
    if len(rows) > 1:
        rows.append((f"all {len(rows)} pieces", result["all"]))
    some = "" if held_out["pieces"] == held_out["of"] else f" of {held_out['of']:,}"
    rows.append((f"{held_out['pieces']:,}{some} held-out pieces", held_out))
    width = max(len(name) for name, _ in rows) + 2
    yield f"{'':{width}}" + "".join(f"{'the ' + reading:>34}" for reading in READINGS)
    head = "".join(f"{notes:>7}" for notes in LENGTHS) + f"{'longest':>13}"
    yield f"{'notes':{width}}" + head * len(READINGS)
    for name, piece in rows:
        yield f"{name:{width}}" + "".join(_originality_cells(piece[r]) for r in READINGS)
    if len(rows) > 2 or held_out["pieces"] > 1:
        yield "longest of several pieces: the median, and the most"
    for name, piece in rows[: min(len(result["pieces"]), _MOST_FILES)]:
        for reading in READINGS:
            for run in piece["runs"][reading][:1]:
                yield f"{name}: {run_text(run)}"


def _originality_cells(figures: dict[str, Any]) -> str:
    shares = [figures["shares"][str(notes)] for notes in LENGTHS]
    cells = "".join(f"{share:7.1%}" if share == share else f"{'-':>7}" for share in shares)
    longest = sorted(figures["longest"])
    if len(longest) == 1:
        return cells + f"{longest[0]:>13}"
    if not longest:
        return cells + f"{'-':>13}"
    return cells + f"{f'{longest[len(longest) // 2]}, {longest[-1]}':>13}"


def run_text(run: dict[str, Any]) -> str:
    """One run of what `data.originality.runs` gives: how long, and where it stands."""
    where = run["instrument"] or "texture"
    semitones = run["semitones"]
    moved = f"{abs(semitones)} semitone{'s' * (abs(semitones) > 1)} "
    moved += "higher" if semitones > 0 else "lower"
    return (
        f"{run['notes']} notes from bar {run['bar']} ({where}) stand in {run['file']} "
        f"from bar {run['file_bar']}" + (f", {moved}" if semitones else "")
    )
