"""Smaller shapes that show the same failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TypeVar

from ...errors import TofuError
from ...support.connected_groups import linked
from ..indices.affine import extent_symbol
from ..indices.region import Shape
from .elements import Subject

MAX_ATTEMPTS = 300

Axis = tuple[str, int]
Group = frozenset[Axis]
Shapes = Mapping[str, Shape]
Bind = Callable[[Shapes], Subject]
Found = TypeVar("Found")


def smallest(start: Subject, bind: Bind, fails: Callable[[Subject], Found | None], found: Found) -> Found:
    """Return the failure for shapes that cannot be made smaller, one extent or two at a time, and still fail.

    `found` is the failure at the start. Shapes that the operator does not take are passed over.
    """
    shapes: Shapes = dict(start.shapes)
    together = groups(start)
    attempts = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(shapes, together):
            attempts += 1
            if attempts > MAX_ATTEMPTS:
                return found
            again = tried(bind, candidate, fails)
            if again is not None:
                shapes, found, smaller = candidate, again, True
                break
    return found


def tried(bind: Bind, shapes: Shapes, fails: Callable[[Subject], Found | None]) -> Found | None:
    """Return what fails for these shapes; None if they do not fit the operator."""
    try:
        return fails(bind(shapes))
    except TofuError:
        return None


def groups(subject: Subject) -> list[Group]:
    """Return axes of the tensors that must have one extent, since one index variable runs along
    all of them.
    """
    of_variable: dict[str, set[Axis]] = {}
    for part in subject.stage_bounds:
        symbols = {extent_symbol(*axis): axis for axis in part.analysis.axes}
        for source in part.analysis.extents.sources:
            if source.extent in symbols and symbols[source.extent][0] in subject.shapes:
                of_variable.setdefault(source.variable, set()).add(symbols[source.extent])
    merged = [
        frozenset(axis for variable in variables for axis in of_variable[variable])
        for variables in linked(of_variable)
    ]
    known = frozenset(axis for group in merged for axis in group)
    alone = (
        frozenset([(tensor, axis)]) for tensor, shape in subject.shapes.items() for axis in range(len(shape))
    )
    return [*merged, *(group for group in alone if not group & known)]


def neighbours(subject: Subject) -> Iterator[Shapes]:
    """Yield shapes that differ from the given ones along one group of axes."""
    for group in groups(subject):
        extent = _extent(subject.shapes, group)
        for value in sorted({1, 2, 3, extent + 1} - {extent}):
            yield _changed(subject.shapes, {group: value})


def _smaller(shapes: Shapes, together: list[Group]) -> Iterator[Shapes]:
    for group in together:
        for value in range(1, _extent(shapes, group)):
            yield _changed(shapes, {group: value})
    for first, second in combinations(together, 2):
        a, b = _extent(shapes, first), _extent(shapes, second)
        if a > 1 and b > 1:
            yield _changed(shapes, {first: a - 1, second: b - 1})


def _extent(shapes: Shapes, group: Group) -> int:
    return max(shapes[tensor][axis] for tensor, axis in group)


def _changed(shapes: Shapes, extents: Mapping[Group, int]) -> Shapes:
    by_axis = {axis: value for group, value in extents.items() for axis in group}
    return {
        tensor: tuple(by_axis.get((tensor, axis), extent) for axis, extent in enumerate(shape))
        for tensor, shape in shapes.items()
    }
