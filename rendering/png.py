"""Matplotlib figures as PNG files."""

import io
from pathlib import Path

from matplotlib.figure import Figure

from common.files import write_atomically

_FILE_DPI, _PAGE_DPI = 120, 110  # dots per inch


def write_png(figure: Figure, path: str | Path) -> None:
    """Write a figure as a PNG file, whole or not at all."""
    with write_atomically(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_FILE_DPI)


def png_bytes(figure: Figure) -> bytes:
    """Return a figure as the content of a PNG file, for a page."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_PAGE_DPI)
    return file.getvalue()
