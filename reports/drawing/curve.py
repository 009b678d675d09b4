"""Live bytes over an iteration as an area, the phases of the graph marked below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..memory import highest
from ..units import format_bytes
from .marks import Area, Drawing, Label, Lines, Mark

WIDTH, HEIGHT = 900.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 12.0, 26.0, 24.0
FILL, LINE = "#0072B2", "#888888"
SPANS = 400


def memory_drawing(
    live: npt.NDArray[np.int64], phases: Sequence[tuple[str, float]] = (), title: str = "Live bytes"
) -> Drawing:
    """`live` is the sum of live bytes at every tick; `phases` are names and the places where they
    begin, 0 to 1.
    """
    peak = int(live.max(initial=0))
    marks = (*_area(live, peak), *_scale(peak), *_phases(phases), *_peak(live, peak))
    return Drawing(WIDTH, HEIGHT, title, marks)


def _area(live: npt.NDArray[np.int64], peak: int) -> Iterator[Mark]:
    tops = highest(live, SPANS).tolist()
    points = [(_x(0), _y(0, peak))]
    for number, top in enumerate(tops):
        level = _y(top, peak)
        points += [(_x(number / len(tops)), level), (_x((number + 1) / len(tops)), level)]
    yield Area(((*points, (_x(1), _y(0, peak))),), FILL)


def _scale(peak: int) -> Iterator[Mark]:
    for part in (0.0, 0.5, 1.0):
        y = _y(part * peak, peak)
        yield Lines(((LEFT, y, WIDTH - RIGHT, y),), LINE, 0.5)
        yield Label(LEFT - 6, y, format_bytes(part * peak), 11, "end")


def _phases(phases: Sequence[tuple[str, float]]) -> Iterator[Mark]:
    for name, start in phases:
        yield Lines(((_x(start), TOP, _x(start), HEIGHT - BOTTOM + 6),), LINE, 1)
        yield Label(_x(start) + 4, HEIGHT - BOTTOM + 12, name, 11, "start")


def _peak(live: npt.NDArray[np.int64], peak: int) -> Iterator[Mark]:
    at = int(live.argmax()) / max(len(live), 1)
    anchor = "end" if at > 0.8 else "start" if at < 0.2 else "middle"
    yield Label(_x(at), TOP - 14, f"peak {format_bytes(peak)}", 11, anchor, bold=True)  # type: ignore[arg-type]
    yield Lines(((_x(at), TOP - 7, _x(at), TOP),), FILL, 2)


def _x(part: float) -> float:
    return LEFT + part * (WIDTH - LEFT - RIGHT)


def _y(count: float, peak: int) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - count / max(peak, 1))
