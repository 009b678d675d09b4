"""Moving data on devices: assembling a box from pieces, reductions in a fixed order, fills.

All on addresses of one address space, so a piece may lie in the memory of another device that this one may
read. Commands are to be issued in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from ....errors import DataError
from ....tdl import ast
from ...emit.datatypes import data_type, encoded
from ...emit.entry_functions import BLOCK_THREADS
from ..launch.commands import Command, KernelLaunch, MemoryCopy
from ..launch.view import DeviceView
from .copy_boxes import AXES, Box, boxes
from .reduction_cells import Pair, cells
from .transfer_units import PIECES, SOURCES, Unit, copy_unit, fill_unit, reduce_unit

__all__ = ["Pair", "fetch", "fill", "moved_bytes", "reduce", "reduce_all"]

Reduction = tuple[ast.AnyReducer, Sequence[Sequence[Pair]]]
"""A reducer, and the terms that it combines."""

_BEHIND_ALL = 1 << 62


def fetch(pairs: Sequence[Pair]) -> tuple[Command, ...]:
    """Copy each source into its target; no target overlaps with another pair's source or target.

    Pieces are taken from the target's own place in the address space onwards, so that workers whose memory
    lies one behind the other begin with different ones.
    """
    found = [box for source, target in _rotated(pairs) for box in boxes((target, source))]
    groups = (found[start : start + PIECES] for start in range(0, len(found), PIECES))
    return tuple(_copy(group) for group in groups)


def reduce(reducer: ast.AnyReducer, terms: Sequence[Sequence[Pair]]) -> tuple[Command, ...]:
    """Combine terms, each made of disjoint pieces that together cover the target, in the order given.

    One pass: every element of the target is computed from all terms and rounded once, up to `SOURCES` terms.
    Of more, that many are combined first, and the rest with what the target then holds: one rounding for
    each pass. Of the first `SOURCES` sources one may be the target itself, each element in its own place.
    Raises DataError if a term does not cover the target, and for elements not aligned to their size.
    """
    return reduce_all([(reducer, terms)])


def reduce_all(reductions: Iterable[Reduction]) -> tuple[Command, ...]:
    """Do several reductions, of which none touches the target of another one, in few launches.

    Those with the same reducer, element type and number of terms share launches.
    """
    copied: list[Pair] = []
    together: dict[tuple[int, Unit, int], list[Box]] = {}
    for reducer, terms in reductions:
        if len(terms) < 2:
            copied += chain.from_iterable(terms)
            continue
        for turn, views in enumerate(_passes(cells(terms))):
            key = turn, reduce_unit(reducer, views[0][0].type), len(views[0]) - 1
            together.setdefault(key, []).extend(box for cell in views for box in boxes(_aligned(cell)))
    commands = list(fetch(copied))
    for (_, unit, count), found in sorted(together.items(), key=lambda each: each[0][0]):
        most = min(PIECES, SOURCES // count)
        commands += [
            _launch(unit, found[start : start + most], terms=count) for start in range(0, len(found), most)
        ]
    return tuple(commands)


def fill(target: DeviceView, value: float) -> tuple[Command, ...]:
    """Set every element. Raises DataError for what integers cannot hold and for unaligned elements."""
    pattern = _pattern(target.type, value)
    found = list(boxes(_aligned((target,))))
    groups = (found[start : start + PIECES] for start in range(0, len(found), PIECES))
    return tuple(_launch(fill_unit(), group, pattern=pattern) for group in groups)


def moved_bytes(terms: Iterable[Sequence[Pair]]) -> int:
    """Return bytes that a reduction of these terms reads and writes in one pass; a fetch is one term."""
    listed = list(terms)
    read = sum(source.nbytes for term in listed for source, _ in term)
    return read + sum(target.nbytes for _, target in listed[0]) if listed else 0


def _rotated(pairs: Sequence[Pair]) -> list[Pair]:
    moving = [pair for pair in pairs if pair[0] != pair[1]]
    own = min((target.address for _, target in moving), default=0)
    return sorted(moving, key=lambda pair: (pair[0].address < own, pair[0].address))


def _passes(views: Sequence[tuple[DeviceView, ...]]) -> Iterator[list[tuple[DeviceView, ...]]]:
    """Yield cells of up to `SOURCES` sources; from the second pass on the target is the first of them."""
    if not views:
        return
    yield [view[: SOURCES + 1] for view in views]
    for start in range(SOURCES + 1, len(views[0]), SOURCES - 1):
        yield [(view[0], view[0], *view[start : start + SOURCES - 1]) for view in views]


def _aligned(views: tuple[DeviceView, ...]) -> tuple[DeviceView, ...]:
    for view in views:
        size = view.itemsize
        steps = [stride for stride, length in zip(view.strides, view.shape, strict=True) if length > 1]
        if view.size and any(place % size for place in (view.address, *steps)):
            raise DataError(
                f"{view.type} elements at {view.address:#x} with strides {view.strides} are not aligned to "
                f"{size} bytes; fetch them into aligned memory first"
            )
    return views


def _pattern(type: str, value: float) -> int:
    """Eight bytes of elements of this value."""
    entry = data_type(type)
    if entry.integer:
        limits = np.iinfo(entry.numpy.name)
        if not (limits.min <= value <= limits.max and value == int(value)):
            raise DataError(
                f"{type} elements cannot be set to {value}; expected a whole number from {limits.min} to "
                f"{limits.max}"
            )
        value = int(value)
    with np.errstate(over="ignore"):
        bits = encoded(np.array(value), type)
    return int.from_bytes(bits.tobytes() * (8 // bits.itemsize), "little")


def _copy(group: Sequence[Box]) -> Command:
    first = group[0]
    if len(group) == 1 and first.contiguous:
        target, source = first.starts
        return MemoryCopy(target, source, first.count * first.width)
    return _launch(copy_unit(), group)


def _launch(unit: Unit, group: Sequence[Box], **values: int) -> KernelLaunch:
    """Return one launch for boxes with equally many sources; blocks are shared out by their sizes."""
    struct = np.zeros(1, unit.dtype)
    packed, sources, blocks = [], [], 0
    for box in group:
        packed.append(_cell(box, blocks))
        sources += [
            (start, _padded(strides)) for start, strides in zip(box.starts[1:], box.strides[1:], strict=True)
        ]
        blocks += -(-box.count // unit.tile)
    struct["cells"]["first_block"] = _BEHIND_ALL
    struct["cells"][0, : len(packed)] = packed
    if sources:
        struct["sources"][0, : len(sources)] = sources
    for name, value in values.items():
        struct[name] = value
    narrow = all(box.narrow(unit.tile) for box in group)
    return KernelLaunch(unit.source, unit.function(narrow), blocks, BLOCK_THREADS, False, struct)


def _cell(box: Box, first_block: int) -> tuple[Any, ...]:
    axes = [_axis(length) for length in box.shape] + [(0, 0, 0)] * (AXES - len(box.shape))
    return (box.starts[0], first_block, box.count, len(box.shape), box.width, axes, _padded(box.strides[0]))


def _padded(strides: tuple[int, ...]) -> tuple[int, ...]:
    return strides + (0,) * (AXES - len(strides))


@cache
def _axis(length: int) -> tuple[int, int, int]:
    """Return the length with what divides less than 2^31 by it (Granlund and Montgomery, 1994)."""
    shift = 31 + (length - 1).bit_length()
    multiplier = -(-(1 << shift) // length)
    return (length, multiplier, shift) if length < 1 << 31 else (length, 0, 0)
