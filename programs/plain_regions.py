"""The checker's own arithmetic on regions, in plain Python integers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod

from ..analyzer.indices.region import Region
from ..errors import ProgramError


def size(region: Region) -> int:
    """Count the elements of a region; one for a region without dimensions."""
    return prod(max(upper - lower, 0) for lower, upper in region)


def common(a: Region, b: Region) -> Region:
    """Intersect two regions; the result is empty if they share nothing."""
    return tuple(
        (max(a_low, b_low), min(a_up, b_up)) for (a_low, a_up), (b_low, b_up) in zip(a, b, strict=True)
    )


def inside(inner: Region, outer: Region) -> bool:
    """Tell whether every element of `inner` is in `outer`; False if their ranks differ."""
    return len(inner) == len(outer) and size(common(inner, outer)) == size(inner)


def lacking(region: Region, parts: Sequence[Region]) -> Region | None:
    """Return a part of a region that none of `parts` covers; None if they cover all of it."""
    rest = [region] if size(region) else []
    for part in parts:
        rest = [piece for box in rest for piece in _without(box, part)]
    return rest[0] if rest else None


def _without(box: Region, hole: Region) -> list[Region]:
    """Return disjoint boxes that are together what `hole` leaves of `box`."""
    if not size(common(box, hole)):
        return [box]
    pieces: list[Region] = []
    for axis, (lower, upper) in enumerate(common(box, hole)):
        start, stop = box[axis]
        sides = [(start, lower), (upper, stop)]
        pieces += [(*box[:axis], side, *box[axis + 1 :]) for side in sides if side[0] < side[1]]
        box = (*box[:axis], (lower, upper), *box[axis + 1 :])
    return pieces


def split_region(region: Region, axes: Sequence[int | None], factors: Sequence[int]) -> tuple[Region, ...]:
    """Return every worker's part; the first step is the most significant digit of a worker's number."""
    if not axes:
        return (region,)
    axis, factor = axes[0], factors[0]
    parts: list[Region] = []
    for digit in range(factor):
        part = region
        if axis is not None:
            lower, upper = region[axis]
            cut = (lower + digit * (upper - lower) // factor, lower + (digit + 1) * (upper - lower) // factor)
            part = (*region[:axis], cut, *region[axis + 1 :])
        parts.extend(split_region(part, axes[1:], factors[1:]))
    return tuple(parts)


def check_tiling(whole: Region, parts: Sequence[Region], place: str) -> None:
    """Raise ProgramError unless the distinct `parts` are disjoint, non-empty and together exactly `whole`.

    If `whole` is empty, every part may be empty.
    """
    distinct = sorted(set(parts))
    for part in distinct:
        if not size(part) and size(whole):
            raise ProgramError(f"{place}: a worker's part of {shown(whole)} is empty, {shown(part)}")
        if not inside(part, whole):
            raise ProgramError(f"{place}: {shown(part)} lies outside {shown(whole)}")
    for one, other in overlapping(distinct):
        raise ProgramError(f"{place}: {shown(one)} and {shown(other)} overlap")
    covered = sum(map(size, distinct))
    if covered != size(whole):
        raise ProgramError(
            f"{place}: only {covered} of the {size(whole)} elements of {shown(whole)} are covered"
        )


class Located:
    """Regions by where they begin along one axis: the one with the most beginnings."""

    def __init__(self, regions: Sequence[Region]) -> None:
        axes = range(len(regions[0]) if regions else 0)
        self._axis = max(axes, key=lambda axis: len({region[axis][0] for region in regions}), default=None)
        axis = self._axis
        self._ordered = list(regions) if axis is None else sorted(regions, key=lambda region: region[axis])
        self._starts = [] if axis is None else [region[axis][0] for region in self._ordered]
        stops = [] if axis is None else [region[axis][1] for region in self._ordered]
        self._reach = list(accumulate(stops, max))
        """How far the regions up to each one reach."""

    def near(self, region: Region) -> Sequence[Region]:
        """Return all regions that share elements with one, and maybe some that share none."""
        if self._axis is None:
            return self._ordered
        lower, upper = region[self._axis]
        return self._ordered[bisect_right(self._reach, lower) : bisect_left(self._starts, upper)]


def overlapping(regions: Sequence[Region]) -> Iterator[tuple[Region, Region]]:
    """Yield every pair of different regions that share elements."""
    located = Located(regions)
    for region in regions:
        for other in located.near(region):
            if other < region and size(common(other, region)):
                yield other, region


def shown(region: Region) -> str:
    """Write a region as messages quote it."""
    return "[" + ", ".join(f"{lower}:{upper}" for lower, upper in region) + "]"
