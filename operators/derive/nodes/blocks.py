"""Cut an iteration space so that temporaries stay in cache."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from ....analyzer.indices.region import Interval, even_cuts
from .affine import Ranges
from .ir import Load, Lowered, Names, Node, Reduction, walk

BLOCK_ELEMENTS = 1 << 17
"""Elements of one temporary: a few temporaries in single precision fit in a core's cache."""

UNROLLED_TERMS = 32
"""Reductions over at most this many terms run term by term if every term is large."""

LARGER = 4
"""A part of a reduction is computed first if it is at most this many times larger than what it reads."""


def length(interval: Interval) -> int:
    return max(interval[1] - interval[0], 0)


def volume(names: Names, ranges: Ranges) -> int:
    return prod(length(ranges[name]) for name in names)


def unrolled(node: Reduction, ranges: Ranges) -> bool:
    """Return whether a reduction runs term by term: a window of a few elements over many outputs."""
    terms = volume(frozenset(node.variables), ranges)
    return terms <= UNROLLED_TERMS and volume(node.free, ranges) >= 32 * terms


def small(node: Reduction, extents: Mapping[str, int]) -> bool:
    """Return whether a reduction's results are few enough to be kept, compared with what they are computed
    from.
    """
    ranges = {name: (0, extent) for name, extent in extents.items()}
    read = [volume(inner.free, ranges) for inner in walk(node) if isinstance(inner, Load)]
    return volume(node.free, ranges) <= LARGER * max(read, default=0)


def fitting(order: Sequence[str], ranges: Ranges, elements: int) -> dict[str, int]:
    """Return lengths whose block has at most `elements` elements; the last variables stay whole first."""
    lengths = {}
    room = max(elements, 1)
    for name in reversed(order):
        lengths[name] = min(max(length(ranges[name]), 1), room)
        room = max(room // lengths[name], 1)
    return lengths


def block_lengths(
    lowered: Lowered, order: Sequence[str], box: Ranges, given: Container[Node] = ()
) -> dict[str, int]:
    """Return the length of a block along every variable; `given` nodes need not be computed.

    Each output and each reduction's body is a space whose blocks should hold `BLOCK_ELEMENTS`; innermost
    variables (last in `order`) stay whole first. A variable takes the least of what the spaces ask for.
    """
    lengths = {name: max(length(box[name]), 1) for name in order}
    for output in lowered.outputs:
        spaces = [frozenset(output.variables)]
        for node in walk(output.value, given):
            if isinstance(node, Reduction) and node not in given:
                if unrolled(node, box):
                    lengths.update(dict.fromkeys(node.variables, 1))
                spaces.append(node.body.free)
        for space in spaces:
            room = BLOCK_ELEMENTS
            for name in reversed([name for name in order if name in space]):
                lengths[name] = min(lengths[name], max(room, 1))
                room //= lengths[name]
    return lengths


def blocks(
    variables: Sequence[str], ranges: Ranges, lengths: Mapping[str, int]
) -> Iterator[dict[str, Interval]]:
    """Yield the blocks of the variables' ranges, even in size, the last variable fastest."""
    for intervals in product(*(even_cuts(ranges[name], lengths[name]) for name in variables)):
        yield dict(zip(variables, intervals, strict=True))
