"""The inputs of an ONNX graph: their shapes, with values for the dimensions that the file leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...analyzer.indices.region import Shape
from ...errors import GraphError, ShapeError
from ...support.wording import alternatives
from .graph import escaped
from .tensors import element_type

Dimension = int | str | None
"""An extent, the name of an open dimension, or None for an open one without a name."""


def declared(value: Any) -> tuple[Dimension, ...] | None:
    """Return the dimensions of an input as the file has them; None if not even their number is there.

    Raises GraphError.
    """
    name = escaped(value.name)
    if not value.type.HasField("tensor_type"):
        raise GraphError(f"input {name!r} is not a tensor; sequences, maps and optional values are not read")
    tensor = value.type.tensor_type
    if element_type(tensor.elem_type) is None:
        raise GraphError(f"input {name!r} has elements of type {tensor.elem_type}, which are not numbers")
    if not tensor.HasField("shape"):
        return None
    found: list[Dimension] = []
    for dimension in tensor.shape.dim:
        if dimension.HasField("dim_value"):
            if dimension.dim_value < 1:
                raise GraphError(
                    f"input {name!r} has an extent of {dimension.dim_value}; extents are from 1 on"
                )
            found.append(int(dimension.dim_value))
        else:
            found.append(escaped(dimension.dim_param) or None)
    return tuple(found)


def input_shapes(
    values: Sequence[Any], given: Mapping[str, Sequence[int]], batch: int | None = None
) -> dict[str, Shape]:
    """Return the shape of every input. A dimension with a name has one extent in all of them.

    `batch` is the extent of first dimensions that are open otherwise.

    Raises ShapeError for unknown names, for extents that disagree, and if a dimension stays open.
    """
    wanted = {escaped(value.name): declared(value) for value in values}
    for name in given:
        if name not in wanted:
            raise ShapeError(
                f"a shape is given for {name!r}, which is not an input{alternatives(name, wanted)}"
            )
    extents: dict[str, int] = {}
    known = {name: _given(name, given[name], wanted[name], extents) for name in wanted if name in given}
    if batch is not None:
        wanted = {name: _batched(shape, batch, extents) for name, shape in wanted.items()}
    return {name: known[name] if name in known else _closed(name, wanted[name], extents) for name in wanted}


def _batched(
    wanted: tuple[Dimension, ...] | None, batch: int, extents: dict[str, int]
) -> tuple[Dimension, ...] | None:
    """Return dimensions of which the first is not open."""
    if not wanted or isinstance(wanted[0], int):
        return wanted
    first = batch if wanted[0] is None else extents.setdefault(wanted[0], batch)
    return (first, *wanted[1:])


def _given(
    name: str, shape: Sequence[int], wanted: tuple[Dimension, ...] | None, extents: dict[str, int]
) -> Shape:
    """Return a shape that a user gave, if it fits the file's; `extents` are those of named dimensions."""
    found = tuple(int(extent) for extent in shape)
    if min(found, default=1) < 1:
        raise ShapeError(f"the shape of {name!r} is {found}; extents are from 1 on")
    if wanted is None:
        return found
    if len(wanted) != len(found):
        raise ShapeError(f"{name!r} has {len(wanted)} dimensions, {show(wanted)}, but {found} was given")
    for axis, (extent, dimension) in enumerate(zip(found, wanted, strict=True)):
        fixed = extents.setdefault(dimension, extent) if isinstance(dimension, str) else dimension
        if fixed is not None and fixed != extent:
            raise ShapeError(
                f"dimension {axis} of {name!r} is {fixed} ({show(wanted)} in the file), but {extent} is given"
            )
    return found


def _closed(name: str, wanted: tuple[Dimension, ...] | None, extents: Mapping[str, int]) -> Shape:
    """Return the file's shape with the extents of named dimensions."""
    if wanted is None:
        raise ShapeError(f"the file does not have the shape of {name!r}; give shapes={{{name!r}: (...)}}")
    found = []
    for axis, dimension in enumerate(wanted):
        extent = extents.get(dimension) if isinstance(dimension, str) else dimension
        if extent is None:
            called = f" ({dimension})" if dimension else ""
            example = tuple(8 if not isinstance(each, int) else each for each in wanted)
            raise ShapeError(
                f"dimension {axis}{called} of {name!r} is open: the file has {show(wanted)}; give all "
                f"extents, for example shapes={{{name!r}: {example}}} or --shape "
                f"{name}={','.join(map(str, example))}"
            )
        found.append(extent)
    return tuple(found)


def show(wanted: Sequence[Dimension]) -> str:
    """Return dimensions for a message: `(N, 3, ?)`."""
    inside = ", ".join("?" if each is None else str(each) for each in wanted)
    return f"({inside},)" if len(wanted) == 1 else f"({inside})"
