"""Step time against memory: the plans of frontiers as stairs, and below them what no plan can beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...partitioner.methods.frontier import Frontier
from ...support.wording import counted
from ..units import format_bytes, format_seconds
from .marks import Drawing, Label, Lines, Mark, Rectangle
from .palette import palette

WIDTH, HEIGHT = 900.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 90.0, 120.0, 20.0, 40.0
LINE = "#888888"
DOT = 6.0
ROOM = 1.1
"""The axes end so much beyond the largest values."""


def frontier_drawing(frontiers: Sequence[Frontier]) -> Drawing:
    """Draw memory from left to right and time upwards, both from 0; each frontier has a colour."""
    most = max(point.peak_bytes for each in frontiers for point in each.points) * ROOM
    longest = max(point.seconds for each in frontiers for point in each.points) * ROOM
    marks = [*_scale(most, longest)]
    for each, colour in zip(frontiers, palette(len(frontiers)), strict=True):
        found = [(_x(p.peak_bytes, most), _y(p.seconds, longest)) for p in each.points]
        proven = [(_x(p.peak_bytes, most), _y(p.seconds, longest)) for p in each.lower]
        marks.append(Lines(tuple(_stairs(found)), colour, 2))
        marks.append(Lines(tuple(_stairs(proven)), LINE, 1))
        marks += [Rectangle(x - DOT / 2, y - DOT / 2, DOT, DOT, colour) for x, y in found]
        marks.append(Label(WIDTH - RIGHT + 6, found[-1][1], counted(each.workers, "worker"), 11, "start"))
    marks.append(Label(WIDTH - RIGHT + 6, HEIGHT - BOTTOM, "grey: proven", 11, "start", LINE))
    return Drawing(WIDTH, HEIGHT, "Step time against the memory of a worker", tuple(marks))


def _stairs(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the lines of stairs: from every place to the right until the next one, then down to it."""
    ends = [*places[1:], (WIDTH - RIGHT, places[-1][1])]
    yield places[0][0], TOP, places[0][0], places[0][1]
    for (x, y), (end, lower) in zip(places, ends, strict=True):
        yield x, y, end, y
        yield end, y, end, lower


def _scale(most: float, longest: float) -> Iterator[Mark]:
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _x(part * most, most), _y(part * longest, longest)
        yield Lines(((x, TOP, x, HEIGHT - BOTTOM), (LEFT, y, WIDTH - RIGHT, y)), LINE, 0.3)
        yield Label(x, HEIGHT - BOTTOM + 14, format_bytes(part * most), 11)
        yield Label(LEFT - 6, y, format_seconds(part * longest), 11, "end")


def _x(nbytes: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * nbytes / most


def _y(seconds: float, longest: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * seconds / longest
