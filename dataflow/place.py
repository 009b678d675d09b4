"""The place in a user's script that made a node, for messages about it."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import shorten
from types import FrameType

PACKAGE = Path(__file__).parents[1]
BUILDERS = tuple(str(PACKAGE / room) for room in ("dataflow", "importers", "mx"))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        """Write `net.py, line 12: fc1 = mx.sym.FullyConnected(data)`; the line's text if the file exists."""
        text = shorten(linecache.getline(self.path, self.line), 80, placeholder=" ...")
        return f"{Path(self.path).name}, line {self.line}{f': {text}' if text else ''}"


def caller() -> Place | None:
    """Find the innermost line outside the folders that compose symbols; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _composes(frame.f_code.co_filename):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


@cache
def _composes(path: str) -> bool:
    return path.startswith(BUILDERS)
