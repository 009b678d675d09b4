"""Cover a region by disjoint pieces of what workers hold.

    given     a region R, and regions H[w] that the workers hold
    wanted    disjoint boxes B with workers w(B), B inside H[w(B)], whose union is R

The result is deterministic. A reader takes from itself what it can. It looks for the other pieces from its
own number upwards, so that not all workers ask the same one first. If several workers hold one region,
readers take it from different ones.

Assumes: regions that workers hold are equal or disjoint; otherwise the pieces are still disjoint, but more
than necessary. Guarantees: the reader's own part of R is never fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...analyzer.indices.region import Region

Part = tuple[int, Region]
"""A worker and the region to read from it."""

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


def cover(target: Region, held: Sequence[Region | None], reader: int) -> Parts | None:
    """Disjoint parts of `held` that cover `target`; None if no worker holds some of it.

    `held[w]` is the region that worker `w` holds; None if it must not be asked.
    """
    if not elements(target):
        return ()
    parts: list[Part] = []
    remaining = [target]
    for source, region in _sources(target, held, reader):
        rest: list[Region] = []
        for box in remaining:
            common = _intersection(box, region)
            if common is None:
                rest.append(box)
            else:
                parts.append((source, common))
                rest.extend(_difference(box, common))
        remaining = rest
        if not remaining:
            return tuple(parts)
    return None


def _sources(target: Region, held: Sequence[Region | None], reader: int) -> Iterable[tuple[int, Region]]:
    holders: dict[Region, list[int]] = {}
    for worker, region in enumerate(held):
        if region is not None and _intersection(target, region) is not None:
            holders.setdefault(region, []).append(worker)
    chosen = (
        (reader if reader in workers else workers[reader % len(workers)], region)
        for region, workers in holders.items()
    )
    return sorted(chosen, key=lambda source: (source[0] - reader) % len(held))


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
