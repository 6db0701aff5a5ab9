"""SVG pictures as PNG files."""

import importlib.metadata
from pathlib import Path

import resvg_py


def png_bytes(svg: str, width: int | None = None) -> bytes:
    """Return an SVG picture as the content of a PNG file, with its own or another width in pixels.

    Its text is in DejaVu Sans, which comes with matplotlib, since a bare machine has no fonts.
    """
    matplotlib = importlib.metadata.distribution("matplotlib")  # importing it would take 0.6 s
    fonts = Path(str(matplotlib.locate_file("matplotlib/mpl-data/fonts/ttf")))
    files = [str(fonts / name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")]
    family = "DejaVu Sans"
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            width=width,
            background="#ffffff",
            skip_system_fonts=True,
            font_files=files,
            font_family=family,
            serif_family=family,
            sans_serif_family=family,
        )
    )
