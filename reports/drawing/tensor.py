"""A plane of tiles as marks: one worker's colour, or stripes of those that share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...analyzer.indices.region import Interval
from .marks import Area, Drawing, Label, Mark, Point, Rectangle
from .palette import MANY, WHITE, ink, palette
from .tiles import Panel, Plane, Tile

WIDTH, HEIGHT = 96, 64
"""The size of a plane that is drawn alone."""

SHOWN_APART = 4
"""The most workers that share a tile and are shown one by one."""

STRIPE = 4.5
GAP = 3.0
NARROWEST = 7.0
LARGEST_TEXT, SMALLEST_TEXT = 11.0, 6.0
CHARACTER = 0.62
"""The width of a digit as a fraction of its height."""

Box = tuple[float, float, float, float]
"""Left, top, width and height."""


def tensor_drawing(plane: Plane, title: str) -> Drawing:
    """Return a plane alone, for a row of a table, with a margin of one pixel."""
    return Drawing(WIDTH, HEIGHT, title, tuple(tensor_marks(plane, (1, 1, WIDTH - 2, HEIGHT - 2))))


def tensor_marks(plane: Plane, box: Box) -> Iterator[Mark]:
    """Yield the tiles in a box; panels stand side by side.

    Narrow intervals are widened until they are seen.
    """
    x, y, width, height = box
    count = max(len(plane.panels), 1)
    panel_width = (width - GAP * (count - 1)) / count
    for number, panel in enumerate(plane.panels):
        yield from _panel(plane, panel, (x + number * (panel_width + GAP), y, panel_width, height))


def _panel(plane: Plane, panel: Panel, box: Box) -> Iterator[Mark]:
    x, y, width, height = box
    tops, lefts = _edges(plane.rows, height), _edges(plane.columns, width)
    colours = palette(plane.workers)
    for tile in panel.tiles:
        left, right = lefts[tile.column], lefts[tile.column + 1]
        top, bottom = tops[tile.row], tops[tile.row + 1]
        yield from _tile(tile, plane.workers, colours, (x + left, y + top, right - left, bottom - top))
    yield Rectangle(*box)


def _tile(tile: Tile, workers: int, colours: Sequence[str], box: Box) -> Iterator[Mark]:
    match tile.workers:
        case ():
            return
        case (worker,):
            yield Rectangle(*box, colours[worker])
            yield from _text(str(worker), colours[worker], box)
        case sharing if len(sharing) <= SHOWN_APART:
            yield from _stripes([colours[worker] for worker in sharing], box)
            yield from _plate(",".join(map(str, sharing)), box)
        case sharing:
            yield Rectangle(*box, MANY)
            yield from _text("all" if len(sharing) == workers else f"{len(sharing)} of {workers}", MANY, box)


def _text(text: str, fill: str, box: Box) -> Iterator[Mark]:
    """Yield text in the middle of a box, if it fits."""
    x, y, width, height = box
    size = min(LARGEST_TEXT, height - 1, (width - 2) / (CHARACTER * len(text)))
    if size >= SMALLEST_TEXT:
        yield Label(x + width / 2, y + height / 2, text, round(size, 1), colour=ink(fill))


def _plate(text: str, box: Box) -> Iterator[Mark]:
    """Yield text on a plate in the middle of stripes, if it fits."""
    x, y, width, height = box
    size = 9.0
    wide, tall = CHARACTER * size * len(text) + 6, size + 4
    if wide + 4 <= width and tall + 2 <= height:
        plate = (x + (width - wide) / 2, y + (height - tall) / 2, wide, tall)
        yield Rectangle(*plate, WHITE)
        yield from _text(text, WHITE, plate)


def _stripes(colours: Sequence[str], box: Box) -> Iterator[Mark]:
    """Diagonal stripes in turn in every colour; the first colour lies below all of them."""
    x, y, width, height = box
    yield Rectangle(*box, colours[0])
    count = int((width + height) / STRIPE) + 1
    for number, colour in enumerate(colours[1:], 1):
        bands = (
            _band(width, height, at * STRIPE, (at + 1) * STRIPE) for at in range(number, count, len(colours))
        )
        placed = tuple(tuple((x + dx, y + dy) for dx, dy in band) for band in bands if band)
        if placed:
            yield Area(placed, colour)


def _band(width: float, height: float, start: float, stop: float) -> list[Point]:
    """Return the part of a box at the origin where `start <= x + y <= stop`, in order around it."""
    stop = min(stop, width + height)
    if start >= stop:
        return []
    points = [(max(0.0, start - height), min(start, height))]
    if start < height < stop:
        points.append((0.0, height))
    points.append((max(0.0, stop - height), min(stop, height)))
    points.append((min(stop, width), max(0.0, stop - width)))
    if start < width < stop:
        points.append((width, 0.0))
    points.append((min(start, width), max(0.0, start - width)))
    return points


def _edges(intervals: Sequence[Interval], length: float) -> list[float]:
    """Return where intervals begin and end along `length`, to scale but for narrow ones."""
    least = min(NARROWEST, length / max(2 * len(intervals), 1))
    total = sum(upper - lower for lower, upper in intervals) or 1
    slack = [max((upper - lower) * length / total - least, 0.0) for lower, upper in intervals]
    scale = (length - least * len(intervals)) / (sum(slack) or 1)
    edges = [0.0]
    for size in slack:
        edges.append(edges[-1] + least + size * scale)
    return edges


def caption(plane: Plane) -> str:
    """`dimension 0 down, 1 right`, and the panels if there are several."""
    down, right = plane.axes
    drawn = [f"{axis} {way}" for axis, way in ((down, "down"), (right, "right")) if axis is not None]
    text = "dimension " + ", ".join(drawn) if drawn else "one number"
    if len(plane.panels) > 1:
        apart = ", ".join(str(axis) for axis, _ in plane.panels[0].at)
        text += f"; {len(plane.panels)} panels along {apart}"
    return text
