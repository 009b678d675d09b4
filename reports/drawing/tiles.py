"""A tensor's regions as a plane of tiles: which workers own and which read every part of it.

All bounds of all regions cut a tensor's dimensions into intervals, and no region cuts the boxes between them.
Two dimensions are drawn, those that are cut first; combinations of the intervals of others become panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from ...analyzer.region import Boxes, Interval, Shape


@dataclass(frozen=True, slots=True)
class Tile:
    """The box of a row and a column. `owners` hold it, `readers` read it beside them."""

    row: int
    column: int
    owners: tuple[int, ...]
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """The tiles of one box of the dimensions that are not drawn; `at` is its place along each."""

    at: tuple[tuple[int, Interval], ...]
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Plane:
    """`axes` are the dimensions drawn downwards and to the right, None where a tensor has too few.

    `rows` and `columns` are the intervals along them.
    """

    shape: Shape
    workers: int
    axes: tuple[int | None, int | None]
    rows: tuple[Interval, ...]
    columns: tuple[Interval, ...]
    panels: tuple[Panel, ...]


def plane(shape: Shape, owned: Boxes, read: Boxes | None = None) -> Plane:
    """Tiles of a tensor whose workers own `owned` and read `read`: `[workers, dimensions, 2]` each."""
    read = owned if read is None else read
    cuts = [_intervals(extent, owned[:, axis], read[:, axis]) for axis, extent in enumerate(shape)]
    axes = _axes([len(intervals) for intervals in cuts])
    rows, columns = (((0, 1),) if axis is None else cuts[axis] for axis in axes)
    others = [axis for axis, intervals in enumerate(cuts) if axis not in axes and len(intervals) > 1]
    panels = []
    for chosen in product(*(range(len(cuts[axis])) for axis in others)):
        at = tuple((axis, cuts[axis][number]) for axis, number in zip(others, chosen, strict=True))
        tiles = []
        for row, column in product(range(len(rows)), range(len(columns))):
            box = dict(at)
            for axis, interval in zip(axes, (rows[row], columns[column]), strict=True):
                if axis is not None:
                    box[axis] = interval
            owners = _holders(owned, box)
            readers = tuple(w for w in _holders(read, box) if w not in owners)
            tiles.append(Tile(row, column, owners, readers))
        panels.append(Panel(at, tuple(tiles)))
    return Plane(shape, len(owned), axes, rows, columns, tuple(panels))


def own_parts(read: Boxes) -> Boxes:
    """The part of every worker in what all of them read: `[workers, dimensions, 2]`.

    Along each dimension regions that differ lie in a row; where neighbours overlap, the middle of what both
    read parts them. What a worker reads beyond its part is its halo.
    """
    parts = read.copy()
    for axis in range(read.shape[1]):
        intervals = sorted({(low, high) for low, high in read[:, axis].tolist() if low < high})
        own = {interval: list(interval) for interval in intervals}
        for before, after in pairwise(intervals):
            if after[0] < before[1]:
                middle = (after[0] + before[1]) // 2
                own[before][1] = min(own[before][1], max(middle, own[before][0]))
                own[after][0] = max(own[after][0], min(middle, own[after][1]))
        for worker, interval in enumerate(map(tuple, read[:, axis].tolist())):
            if interval in own:
                parts[worker, axis] = own[interval]
    return parts


def halo(read: Boxes, parts: Boxes) -> dict[int, int]:
    """By dimension the most elements that any worker reads beyond its part at one end."""
    beyond = np.maximum(parts[..., 0] - read[..., 0], read[..., 1] - parts[..., 1]).max(axis=0)
    return {axis: width for axis, width in enumerate(beyond.tolist()) if width > 0}


def _intervals(extent: int, *bounds: npt.NDArray[np.int64]) -> tuple[Interval, ...]:
    found = {0, extent, *(value for pairs in bounds for value in pairs.ravel().tolist())}
    ordered = sorted(value for value in found if 0 <= value <= extent)
    return tuple(pairwise(ordered))


def _axes(intervals: Sequence[int]) -> tuple[int | None, int | None]:
    """The first two dimensions that are cut, else the first ones, in order."""
    by_cut = sorted(range(len(intervals)), key=lambda axis: (intervals[axis] < 2, axis))
    chosen = sorted(by_cut[:2])
    match chosen:
        case [first, second]:
            return first, second
        case [only]:
            return None, only
        case _:
            return None, None


def _holders(regions: Boxes, box: dict[int, Interval]) -> tuple[int, ...]:
    """The workers whose region contains the box; a dimension that it does not name is cut nowhere."""
    inside = (regions[..., 0] < regions[..., 1]).all(axis=1)
    for axis, (lower, upper) in box.items():
        inside &= (regions[:, axis, 0] <= lower) & (upper <= regions[:, axis, 1])
    return tuple(np.flatnonzero(inside).tolist())
