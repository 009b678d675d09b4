"""Pieces of a variable: boxes with one synchroniser, the same readers and the same holders.

The bounds of all parts, and of all regions that the base reads, cut a variable into a grid of cells.
Equal neighbours are one piece, so the parts of a variable that is reduced throughout are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod
from typing import TypeVar

import numpy as np

from ....analyzer.indices.region import Region
from ....errors import PlanError
from ....programs.cover import contains, elements
from .strategy import AllReduce, Server, Synchronisation, Synchroniser

Held = tuple[int, Region]
"""A worker and what it reads or holds."""

CELLS_LIMIT = 1 << 14
"""The most cells of a variable."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class SyncPiece:
    """A box of a variable."""

    sync: Synchroniser
    """How it is synchronised."""

    region: Region
    """The box."""

    holders: tuple[int, ...]
    """The workers that hold and update it; those of an all-reduce in the order of their shares."""

    readers: tuple[int, ...]
    """The workers that read it, in ascending order."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A box of the grid."""

    region: Region
    """The box."""

    readers: tuple[int, ...]
    """The workers that read it."""

    owners: tuple[int, ...]
    """The workers that hold it in the base."""

    part: int
    """The number of its part."""


def cut_in_pieces(
    name: str, shape: tuple[int, ...], how: Synchronisation, read: Sequence[Held], held: Sequence[Held]
) -> list[SyncPiece]:
    """Return the pieces of a variable, which readers of the base read and workers of the base hold.

    Raises PlanError naming a variable that would have too many.
    """
    cells = _cells(name, shape, how, read, held)
    keyed = [(_synchronised(how.parts[cell.part], cell), cell.region) for cell in cells]
    return [SyncPiece(sync, region, holders, readers) for (sync, holders, readers), region in joined(keyed)]


def is_alone(shape: tuple[int, ...], read: Sequence[Held], held: Sequence[Held]) -> bool:
    """Tell whether every element has one holder, and nobody else reads it."""
    once = sum(elements(region) for _, region in held) == prod(shape)
    own: dict[int, list[Region]] = {}
    for worker, region in held:
        own.setdefault(worker, []).append(region)
    return once and all(
        sum(elements(_common(region, mine)) for mine in own.get(worker, ())) == elements(region)
        for worker, region in read
    )


def joined(keyed: Iterable[tuple[Key, Region]]) -> list[tuple[Key, Region]]:
    """Join boxes with equal keys that together are a box; others stay."""
    found: dict[Key, list[Region]] = {}
    for key, region in keyed:
        found.setdefault(key, []).append(region)
    made: list[tuple[Key, Region]] = []
    for key, regions in found.items():
        around = tuple(
            (min(lower for lower, _ in axis), max(upper for _, upper in axis))
            for axis in zip(*regions, strict=True)
        )
        if sum(map(elements, regions)) == elements(around):
            regions = [around]
        made += [(key, region) for region in regions]
    return sorted(made, key=lambda each: each[1])


def _synchronised(sync: Synchroniser, cell: _Cell) -> tuple[Synchroniser, tuple[int, ...], tuple[int, ...]]:
    """Return the synchroniser of a cell, its holders and its readers."""
    match sync:
        case Server(worker=worker):
            return replace(sync, group=None), (worker,), cell.readers
        case AllReduce(order=order):
            place = {worker: number for number, worker in enumerate(order)}
            holders = sorted(cell.readers or cell.owners, key=lambda worker: (place.get(worker, 0), worker))
            return replace(sync, group=0, order=()), tuple(holders), cell.readers


def _cells(
    name: str, shape: tuple[int, ...], how: Synchronisation, read: Sequence[Held], held: Sequence[Held]
) -> list[_Cell]:
    bounds = {cut.axis: cut.bounds for cut in how.cuts}
    edges = [
        sorted({0, extent, *bounds.get(axis, ()), *(e for _, region in (*read, *held) for e in region[axis])})
        for axis, extent in enumerate(shape)
    ]
    count = prod(len(each) - 1 for each in edges)
    if count > CELLS_LIMIT:
        raise PlanError(
            f"variable {name!r} would be cut into {count:,} cells, but at most {CELLS_LIMIT:,} are planned; "
            "give it fewer parts, or choose another base"
        )
    places = {axis: np.searchsorted(each, edges[axis][:-1], "right") for axis, each in bounds.items()}
    found = []
    for number, region in enumerate(product(*map(pairwise, edges))):
        at = np.unravel_index(number, [len(each) - 1 for each in edges])
        part = 0
        for axis in sorted(bounds):
            part = part * (len(bounds[axis]) + 1) + int(places[axis][at[axis]])
        found.append(_Cell(region, _with(read, region), _with(held, region), part))
    return found


def _with(held: Iterable[Held], cell: Region) -> tuple[int, ...]:
    """Return the workers that have a cell, in ascending order."""
    return tuple(sorted({worker for worker, region in held if contains(region, cell)}))


def _common(a: Region, b: Region) -> Region:
    return tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
