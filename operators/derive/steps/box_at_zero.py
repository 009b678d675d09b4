"""Calls whose boxes lie elsewhere share one kernel, if their place changes nothing.

That is so if a variable or a constant indexes each dimension of each input, the same at all places of the
description, and if variables are used for nothing else. The box then begins at 0, and the regions of the
inputs move with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from ....analyzer.bind.bound import Bound
from ....analyzer.indices.region import Interval, Region
from ....tdl.ast import Element, Index, Number, OpaqueElement, Pad, Variable
from ....tdl.traverse import Node, children
from .layout import CallLayout

Indices = tuple[str | None, ...]
"""The variable that indexes each dimension of an input; None for a constant."""


def at_zero(
    bound: Bound, box: tuple[Interval, ...], layout: CallLayout
) -> tuple[tuple[Interval, ...], CallLayout]:
    """Return a box and a layout that have the same kernel: at 0 if the place does not matter.

    A box that reads more than its inputs hold does not move, so that messages name its place.
    """
    if not any(lower for lower, _ in box) or (indices := _indices(bound)) is None:
        return box, layout
    ranges = dict(zip(bound.variables, box, strict=True))
    regions = []
    for name, region in zip(layout.names, layout.regions, strict=True):
        moved = _moved(region, indices[name], ranges) if name in indices else region
        if moved is None:
            return box, layout
        regions.append(moved)
    return tuple([(0, upper - lower) for lower, upper in box]), replace(layout, regions=tuple(regions))


def _moved(region: Region, indices: Indices, ranges: Mapping[str, Interval]) -> Region | None:
    """Return a region as seen from what is read of it; None if it holds less."""
    found = []
    for (lower, upper), name in zip(region, indices, strict=True):
        start, end = (0, 0) if name is None else ranges[name]
        if name is not None and (start < lower or upper < end):
            return None
        found.append((lower - start, upper - start))
    return tuple(found)


@lru_cache(maxsize=4096)
def _indices(bound: Bound) -> Mapping[str, Indices] | None:
    """Return how each input is indexed; None if the place of a box matters."""
    found: dict[str, Indices] = {}
    pending: list[Node] = [bound.description]
    while pending:
        match pending.pop():
            case Element(tensor=tensor, indices=indices):
                names = tuple(map(_name, indices))
                plain = all(isinstance(index, Variable | Number) for index in indices)
                if not plain or found.setdefault(tensor, names) != names:
                    return None
            case Variable() | Pad() | OpaqueElement():
                return None
            case node:
                pending.extend(children(node))
    return found


def _name(index: Index) -> str | None:
    return index.name if isinstance(index, Variable) else None
