"""A plane of tiles as marks: a tile has the colours of its owners, and stripes of who else reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...analyzer.region import Interval
from ..units import format_interval
from .marks import Drawing, Label, Mark, Rectangle, Stripes
from .palette import MANY, ink, palette
from .tiles import Panel, Plane, Tile

SHOWN_APART = 4
"""Workers that share a tile and are shown one by one, at most."""

STRIPE = 2.0
GAP = 3.0
CHARACTER = 0.62
"""The width of a digit for its height."""


def tensor_drawing(plane: Plane, width: float, height: float, title: str) -> Drawing:
    """A plane alone, with a margin of one pixel."""
    return Drawing(width, height, title, tuple(tensor_marks(plane, 1, 1, width - 2, height - 2)))


def tensor_marks(plane: Plane, x: float, y: float, width: float, height: float) -> Iterator[Mark]:
    """The tiles in a box; panels stand side by side. Narrow intervals are widened until they are seen."""
    count = len(plane.panels)
    panel_width = (width - GAP * (count - 1)) / max(count, 1)
    for number, panel in enumerate(plane.panels):
        left = x + number * (panel_width + GAP)
        yield from _panel(plane, panel, left, y, panel_width, height)


def _panel(plane: Plane, panel: Panel, x: float, y: float, width: float, height: float) -> Iterator[Mark]:
    tops, lefts = _edges(plane.rows, height), _edges(plane.columns, width)
    colours = palette(plane.workers)
    for tile in panel.tiles:
        left, right = x + lefts[tile.column], x + lefts[tile.column + 1]
        top, bottom = y + tops[tile.row], y + tops[tile.row + 1]
        yield from _tile(tile, plane.workers, colours, (left, top, right - left, bottom - top))
    yield Rectangle(x, y, width, height)


def _tile(
    tile: Tile, workers: int, colours: Sequence[str], box: tuple[float, float, float, float]
) -> Iterator[Mark]:
    x, y, width, height = box
    owners = tile.owners
    if len(owners) > SHOWN_APART:
        shared = "all" if len(owners) == workers else f"{len(owners)} of {workers}"
        yield Rectangle(x, y, width, height, MANY)
        yield from _number(shared, MANY, box)
    for number, owner in enumerate(owners if len(owners) <= SHOWN_APART else ()):
        if width >= height:
            part = (x + width * number / len(owners), y, width / len(owners), height)
        else:
            part = (x, y + height * number / len(owners), width, height / len(owners))
        yield Rectangle(*part, colours[owner])
        if not tile.readers:
            yield from _number(str(owner), colours[owner], part)
    if tile.readers:
        yield from _stripes(tile.readers, colours, box)


def _number(text: str, fill: str, box: tuple[float, float, float, float]) -> Iterator[Mark]:
    """Text in the middle of a box, where it fits."""
    x, y, width, height = box
    size = min(11.0, height - 1, (width - 2) / (CHARACTER * len(text)))
    if size >= 6:
        yield Label(x + width / 2, y + height / 2, text, round(size, 1), colour=ink(fill))


def _stripes(
    readers: Sequence[int], colours: Sequence[str], box: tuple[float, float, float, float]
) -> Iterator[Mark]:
    """Stripes across the shorter side, in turn in the colour of every reader."""
    x, y, width, height = box
    upright = width >= height
    length = width if upright else height
    count = max(len(readers), int(length / (2 * STRIPE)))
    lines: dict[int, list[tuple[float, float, float, float]]] = {reader: [] for reader in readers}
    for number in range(count):
        at = (number + 0.5) * length / count
        line = (x + at, y, x + at, y + height) if upright else (x, y + at, x + width, y + at)
        lines[readers[number % len(readers)]].append(line)
    thick = min(STRIPE, length / (2 * count))
    for reader, drawn in lines.items():
        yield Stripes(tuple(drawn), colours[reader], thick)


def _edges(intervals: Sequence[Interval], length: float) -> list[float]:
    """Where intervals begin and end along `length`, to scale but for narrow ones."""
    least = min(5.0, length / max(2 * len(intervals), 1))
    total = sum(upper - lower for lower, upper in intervals) or 1
    wanted = [max((upper - lower) * length / total, least) for lower, upper in intervals]
    slack = sum(size - least for size in wanted)
    spare = length - least * len(intervals)
    edges = [0.0]
    for size in wanted:
        edges.append(edges[-1] + least + (spare * (size - least) / slack if slack else 0.0))
    return edges


def caption(plane: Plane) -> str:
    """`dimension 0 downwards, 1 to the right`, and the panels where there are several."""
    down, right = plane.axes
    drawn = [f"{axis} {way}" for axis, way in ((down, "down"), (right, "right")) if axis is not None]
    text = "dimension " + ", ".join(drawn) if drawn else "one number"
    if len(plane.panels) > 1:
        apart = ", ".join(str(axis) for axis, _ in plane.panels[0].at)
        text += f"; {len(plane.panels)} panels along {apart}"
    return text


def describe(plane: Plane) -> str:
    """The tiles in words, for those who do not see them."""
    parts = []
    for panel in plane.panels:
        for tile in panel.tiles:
            box = dict(panel.at)
            for axis, interval in zip(
                plane.axes, (plane.rows[tile.row], plane.columns[tile.column]), strict=True
            ):
                if axis is not None:
                    box[axis] = interval
            place = ", ".join(format_interval(box[axis]) if axis in box else ":" for axis in _ranks(plane))
            who = ",".join(map(str, tile.owners)) or "nobody"
            parts.append(f"[{place}] {who}")
    return "; ".join(parts)


def _ranks(plane: Plane) -> range:
    return range(len(plane.shape))
