"""A tensor's regions on workers as a plane of tiles: whose regions every part of it belongs to.

All bounds of all regions cut a tensor's dimensions into intervals, and no region cuts the boxes between them.
Two dimensions are drawn, those that are cut first; combinations of the intervals of others become panels. If
there are too many boxes to draw, neighbouring intervals are joined, and a tile names all workers with a
region in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

import numpy as np
import numpy.typing as npt

from ...analyzer.indices.region import Boxes, Interval, Shape
from ...partitioner.layouts.forms import Workers

MOST_TILES = 4096
"""The most tiles of one plane."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The box of a row and a column; `workers` are those with a region in it."""

    row: int
    column: int
    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """The tiles of one box of the dimensions that are not drawn; `at` is its place along each."""

    at: tuple[tuple[int, Interval], ...]
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Plane:
    """A tensor as tiles in two of its dimensions."""

    shape: Shape
    """The tensor's shape."""

    workers: int
    """The number of workers."""

    axes: tuple[int | None, int | None]
    """The dimensions drawn downwards and to the right; None if the tensor has too few."""

    rows: tuple[Interval, ...]
    """The intervals along the first one."""

    columns: tuple[Interval, ...]
    """The intervals along the second one."""

    panels: tuple[Panel, ...]
    """The tiles, one panel for each box of the other dimensions."""


def plane(shape: Shape, regions: Boxes) -> Plane:
    """Return the tiles of a tensor, for a region of each worker: `[workers, dimensions, 2]`."""
    return plane_of_parts(shape, np.arange(len(regions)), regions, len(regions))


def plane_of_parts(shape: Shape, holders: Workers, regions: Boxes, workers: int) -> Plane:
    """Return the tiles of a tensor, for regions and the worker that holds each, of `workers` workers."""
    cuts = _drawn([_intervals(extent, regions[:, axis]) for axis, extent in enumerate(shape)])
    axes = _axes([len(intervals) for intervals in cuts])
    rows, columns = (((0, 1),) if axis is None else cuts[axis] for axis in axes)
    others = [axis for axis, intervals in enumerate(cuts) if axis not in axes and len(intervals) > 1]
    panels = []
    for chosen in product(*(cuts[axis] for axis in others)):
        at = tuple(zip(others, chosen, strict=True))
        tiles = []
        for (row, low), (column, right) in product(enumerate(rows), enumerate(columns)):
            box = dict(at) | {
                axis: interval for axis, interval in zip(axes, (low, right), strict=True) if axis is not None
            }
            tiles.append(Tile(row, column, _holders(holders, regions, box)))
        panels.append(Panel(at, tuple(tiles)))
    return Plane(shape, workers, axes, rows, columns, tuple(panels))


def own_parts(read: Boxes) -> Boxes:
    """Return the part of every worker in what all of them read: `[workers, dimensions, 2]`.

    Along each dimension regions that differ lie in a row; where neighbours overlap, the middle of what both
    read parts them.
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


def halo(read: Boxes) -> dict[int, int]:
    """By dimension the most elements that any worker reads beyond its own part at one end."""
    parts = own_parts(read)
    beyond = np.maximum(parts[..., 0] - read[..., 0], read[..., 1] - parts[..., 1]).max(axis=0)
    return {axis: width for axis, width in enumerate(beyond.tolist()) if width > 0}


def _intervals(extent: int, bounds: npt.NDArray[np.int64]) -> tuple[Interval, ...]:
    found = {0, extent, *bounds.ravel().tolist()}
    ordered = sorted(value for value in found if 0 <= value <= extent)
    return tuple(pairwise(ordered))


def _drawn(cuts: list[tuple[Interval, ...]]) -> list[tuple[Interval, ...]]:
    """Join neighbours along the dimension with most intervals until the tiles can be drawn."""
    while prod(map(len, cuts)) > MOST_TILES:
        axis = max(range(len(cuts)), key=lambda axis: len(cuts[axis]))
        pairs = [cuts[axis][number : number + 2] for number in range(0, len(cuts[axis]), 2)]
        cuts[axis] = tuple((pair[0][0], pair[-1][1]) for pair in pairs)
    return cuts


def _axes(intervals: Sequence[int]) -> tuple[int | None, int | None]:
    """Return the first two dimensions that are cut, else the first ones, in order."""
    by_cut = sorted(range(len(intervals)), key=lambda axis: (intervals[axis] < 2, axis))
    chosen = sorted(by_cut[:2])
    match chosen:
        case [first, second]:
            return first, second
        case [only]:
            return None, only
        case _:
            return None, None


def _holders(holders: Workers, regions: Boxes, box: dict[int, Interval]) -> tuple[int, ...]:
    """Return the workers with a region in the box; a dimension that it does not name is cut nowhere."""
    inside = (regions[..., 0] < regions[..., 1]).all(axis=1)
    for axis, (lower, upper) in box.items():
        inside &= (regions[:, axis, 0] < upper) & (lower < regions[:, axis, 1])
    return tuple(np.unique(holders[inside]).tolist())
