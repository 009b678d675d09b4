"""Find again how a point of a union of products came about: which value, and which point of each factor.

    given     a run of points in each factor for every value, and a point (time, memory)
    wanted    a value and a point of each of its runs that add up to the given one; the first that does

Nothing is recorded while tables are combined. A point that stayed is a sum of points that stayed, so it is
found by searching the runs of one factor, which rise in memory, for what is missing from each point of the
other. More than two factors are split one after the other, by the products that made them. Implemented in:
`traced` (all factors), `_found` (two of them).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...support.integers import Integers
from .runs import Runs, multiplied, single
from .semiring import Place

Point = tuple[int, int]


def traced(parts: Sequence[tuple[Runs, Place]], wanted: Point) -> tuple[int, list[Point]]:
    """Return a value, and for each table a point of its run there, that add up to a wanted point.

    The tables are in the order in which `runs.projected` had them. Each comes with the place of a vector of
    runs, one for every value, or of a single run.
    """
    found = [table[place] for table, place in parts]
    vectors = [vector.reshape((vector.entries,)) for vector in found]
    nothing = np.zeros(vectors[0].shape, np.int64)
    times, memory = nothing + wanted[0], nothing + wanted[1]
    several = []
    for number, (table, _) in enumerate(parts):
        if table.is_single():
            times = times - vectors[number].times
            memory = memory - vectors[number].memory
        else:
            several.append(number)
    products = [single(nothing, nothing), *[vectors[number] for number in several[:1]]]
    for number in several[1:-1]:
        products.append(multiplied(products[-1], vectors[number]))
    last = vectors[several[-1]] if several else products[0]
    value, rest, point = _found(products[max(len(several) - 1, 0)], last, times, memory)
    points = {number: (int(v.times[value]), int(v.memory[value])) for number, v in _single(vectors, several)}
    if several:
        points[several[-1]] = point
    here = np.array([value])
    for place in reversed(range(1, len(several) - 1)):
        before, own = products[place].taken(here), vectors[several[place]].taken(here)
        _, rest, points[several[place]] = _found(before, own, np.array([rest[0]]), np.array([rest[1]]))
    if len(several) > 1:
        points[several[0]] = rest
    return value, [points[number] for number in range(len(parts))]


def _single(vectors: Sequence[Runs], several: Sequence[int]) -> list[tuple[int, Runs]]:
    return [(number, vector) for number, vector in enumerate(vectors) if number not in several]


def _found(a: Runs, b: Runs, times: Integers, memory: Integers) -> tuple[int, Point, Point]:
    """Return the first value with points of both vectors that add up to the value's time and memory."""
    owners = np.repeat(np.arange(b.entries), b.lengths)
    missing_times, missing_memory = times[owners] - b.times, memory[owners] - b.memory
    sizes, ranks = np.unique(a.memory, return_inverse=True)
    keys = np.repeat(np.arange(a.entries), a.lengths) * len(sizes) + ranks
    missing = np.minimum(np.searchsorted(sizes, missing_memory), len(sizes) - 1)
    places = np.minimum(np.searchsorted(keys, owners * len(sizes) + missing), len(keys) - 1)
    same = (a.memory[places] == missing_memory) & (a.times[places] == missing_times)
    same &= np.repeat(np.arange(a.entries), a.lengths)[places] == owners
    found = int(np.flatnonzero(same)[0])
    place = int(places[found])
    return (
        int(owners[found]),
        (int(a.times[place]), int(a.memory[place])),
        (int(b.times[found]), int(b.memory[found])),
    )
