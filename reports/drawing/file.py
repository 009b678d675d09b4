"""Write a drawing to a file, in the format of its suffix."""

from __future__ import annotations

from pathlib import Path

from ...errors import TofuError
from ...support.saved_files import save_whole
from .marks import Drawing

KINDS = (".svg", ".png")


def check_kind(path: Path) -> None:
    """Raise TofuError if the name ends in neither `.svg` nor `.png`."""
    if path.suffix.lower() not in KINDS:
        raise TofuError(f"cannot draw {str(path)!r}: a drawing's file must end in .svg or .png")


def write_drawing(drawing: Drawing, path: Path) -> None:
    """Write a drawing as SVG or PNG. Raises TofuError if that fails, or PNG lacks matplotlib."""
    check_kind(path)
    if path.suffix.lower() == ".svg":
        from .svg import standalone

        save_whole(path, standalone(drawing).encode())
    else:
        from .png import png

        save_whole(path, png(drawing))
