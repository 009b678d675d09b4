"""Cover a region by disjoint pieces of what workers hold.

    given     a region R, and regions H[w] that the workers hold
    wanted    disjoint boxes B with workers w(B), B inside H[w(B)], whose union is R

The result is deterministic. A reader takes from itself what it can. It looks for the other pieces from its
own number upwards, so that not all workers ask the same one first. If several workers hold one region, it is
taken from one of the nearest: those that share the smallest block of 2, 4, 8 and so on workers with the
reader, as devices in one group of a machine do. Of several, readers take different ones.

Assumes: regions that workers hold are equal or disjoint; otherwise the pieces are still disjoint, but more
than necessary. Guarantees: the reader's own part of R is never fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..analyzer.indices.region import Region

Holder = tuple[int, Region]
"""A worker and a region that it holds."""

Part = tuple[int, Region]
"""The number of a holder, and the region to read from it."""

Parts = tuple[Part, ...]


def elements(region: Region) -> int:
    """Count the elements of a region."""
    count = 1
    for lower, upper in region:
        count *= max(upper - lower, 0)
    return count


def contains(outer: Region, inner: Region) -> bool:
    """Tell whether `inner` lies in `outer`, interval by interval."""
    return all(o[0] <= i[0] and i[1] <= o[1] for o, i in zip(outer, inner, strict=True))


def cover(target: Region, holders: Mapping[int, Holder], reader: int, workers: int) -> Parts | None:
    """Return disjoint parts of what `holders` hold that cover `target`; None if no one holds some of it.

    `holders` has the numbers of those that may be asked. `reader` is the worker that reads.
    """
    return covers([(reader, target)], holders, workers)[0]


def covers(
    readers: Sequence[tuple[int, Region]], holders: Mapping[int, Holder], workers: int
) -> list[Parts | None]:
    """Return what `cover` does for several readers, each a worker with the region that it reads."""
    if not readers:
        return []
    able = list(holders.items())
    met = _meeting([target for _, target in readers], [region for _, (_, region) in able])
    return [
        _cover(target, [able[place] for place in places], reader, workers)
        for (reader, target), places in zip(readers, met, strict=True)
    ]


def _meeting(targets: Sequence[Region], regions: Sequence[Region]) -> list[list[int]]:
    """Return, for each target, the places of the regions that overlap it."""
    boxes, held = (
        np.array(each, np.int64).reshape(len(each), len(targets[0]), 2) for each in (targets, regions)
    )
    meets = np.ones((len(targets), len(regions)), bool)
    for axis in range(len(targets[0])):  # together, all axes would take a multiple of the memory
        meets &= boxes[:, axis, 0, None] < held[:, axis, 1]
        meets &= boxes[:, axis, 1, None] > held[:, axis, 0]
    return [np.flatnonzero(row).tolist() for row in meets]


def _cover(target: Region, holders: Sequence[tuple[int, Holder]], reader: int, workers: int) -> Parts | None:
    if not elements(target):
        return ()
    parts: list[Part] = []
    remaining = [target]
    for number, region in _sources(holders, reader, workers):
        rest: list[Region] = []
        for box in remaining:
            common = _intersection(box, region)
            if common is None:
                rest.append(box)
            else:
                parts.append((number, common))
                rest.extend(_difference(box, common))
        remaining = rest
        if not remaining:
            return tuple(parts)
    return None


def _sources(
    holders: Sequence[tuple[int, Holder]], reader: int, workers: int
) -> Iterable[tuple[int, Region]]:
    """List one holder of every region, from the reader's own number upwards."""
    by_region: dict[Region, list[tuple[int, int]]] = {}
    for number, (worker, region) in holders:
        by_region.setdefault(region, []).append((worker, number))
    chosen = []
    for region, found in by_region.items():
        distances = [(worker ^ reader).bit_length() for worker, _ in found]
        least = min(distances)
        nearest = [each for each, distance in zip(found, distances, strict=True) if distance == least]
        worker, number = nearest[reader % len(nearest)]
        chosen.append(((worker - reader) % workers, number, region))
    return [(number, region) for _, number, region in sorted(chosen, key=lambda each: each[:2])]


def _intersection(a: Region, b: Region) -> Region | None:
    common = []
    for (a_lower, a_upper), (b_lower, b_upper) in zip(a, b, strict=True):
        lower = a_lower if a_lower > b_lower else b_lower
        upper = a_upper if a_upper < b_upper else b_upper
        if lower >= upper:
            return None
        common.append((lower, upper))
    return tuple(common)


def _difference(box: Region, hole: Region) -> list[Region]:
    """Remove `hole` from `box`, in which it lies; return the rest as disjoint boxes."""
    rest = []
    for axis, ((lower, upper), (start, stop)) in enumerate(zip(box, hole, strict=True)):
        before, after = hole[:axis], box[axis + 1 :]
        if lower < start:
            rest.append((*before, (lower, start), *after))
        if stop < upper:
            rest.append((*before, (stop, upper), *after))
    return rest
