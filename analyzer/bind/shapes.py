"""Check the shapes that a user gives, in Python integers of any size."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from math import prod

from ...errors import ShapeError
from ...support.checked_argument import shown
from ...support.wording import counted
from ...tdl import ast
from ..indices.region import Shape

MAX_ELEMENTS = 2**62
"""Elements that a tensor may have; above this, 64-bit arithmetic on offsets and sizes could wrap."""


def checked_shapes(
    description: ast.Description, ranks: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Shape]:
    """Return the shapes of a description's tensors, in its order, as tuples of Python integers.

    Raises ShapeError for a missing or unknown tensor, a rank that is not `ranks[tensor]` and an extent
    that is not a non-negative integer.
    """
    checked: dict[str, Shape] = {}
    for tensor in description.tensor_names:
        if tensor not in shapes:
            raise ShapeError(f"{description.name}: the shape of tensor '{tensor}' is missing")
        shape = checked[tensor] = checked_shape(description.name, tensor, shapes[tensor])
        rank = ranks.get(tensor, len(shape))
        if len(shape) != rank:
            raise ShapeError(
                f"{description.name}: {tensor} has shape {shape}, {counted(len(shape), 'dimension')}, "
                f"but is read with {counted(rank, 'dimension')}"
            )
    if len(shapes) != len(checked):
        unknown = next(name for name in shapes if name not in checked)
        raise ShapeError(
            f"{description.name}: it does not take a tensor '{unknown}', "
            f"only {', '.join(checked) or 'none at all'}"
        )
    return checked


def shapes_by_name(owner: str, shapes: Mapping[str, Sequence[int]]) -> dict[str, Shape]:
    """Return shapes that a user gives for tensors, as tuples of Python integers. Raises ShapeError."""
    if not isinstance(shapes, Mapping):
        raise ShapeError(f"{owner}: shapes must be listed by tensor, as {{'data': (4, 3)}}, found {shapes!r}")
    return {tensor: checked_shape(owner, tensor, shape) for tensor, shape in shapes.items()}


def checked_shape(owner: str, tensor: str, shape: Sequence[int]) -> Shape:
    """Return a shape as a tuple of Python integers. Raises ShapeError."""
    if isinstance(shape, str | bytes):
        raise ShapeError(f"{owner}: the shape of {tensor} is {shape!r}; give a tuple of integers")
    if getattr(shape, "ndim", 1) != 1:
        raise ShapeError(f"{owner}: the shape of {tensor} is an array; give the array's shape")
    try:
        extents = tuple(shape)
    except TypeError:
        raise ShapeError(f"{owner}: the shape of {tensor} is {shape!r}; give a tuple of integers") from None
    for axis, extent in enumerate(extents):
        if type(extent) is not int:
            return checked_shape(owner, tensor, tuple(_as_integer(owner, tensor, e) for e in extents))
        if extent < 0:
            raise ShapeError(f"{owner}: axis {axis} of {tensor} has the negative extent {shown(extent)}")
    check_size(owner, tensor, extents)
    return extents


def check_size(owner: str, tensor: str, shape: Shape) -> None:
    """Raise ShapeError for a tensor too large to count in 64 bits."""
    if prod(shape) >= MAX_ELEMENTS or max(shape, default=0) >= MAX_ELEMENTS:
        raise ShapeError(
            f"{owner}: {tensor} of shape {shown(shape)} has {shown(prod(shape))} elements; the "
            f"limit is {MAX_ELEMENTS}"
        )


def _as_integer(owner: str, tensor: str, extent: object) -> int:
    if not isinstance(extent, bool) and hasattr(extent, "__index__"):
        try:
            return operator.index(extent)
        except TypeError:
            pass
    raise ShapeError(f"{owner}: {tensor} has extent {extent!r}; an extent must be a non-negative integer")
