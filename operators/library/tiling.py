"""Operators that repeat elements or surround them: tile, repeat, Pad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, choice, integer, number, shape
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments, of_data
from .texts import axis_in, element, joined, names, sized, unflattened


def _tile(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return tiles. As in NumPy, the shorter of `reps` and the shape is extended by ones in front."""
    data, reps = shapes["data"], attributes.shape("reps")
    if any(count < 1 for count in reps):
        raise OperatorError(f"tile: reps={reps} must be 1 or more in every dimension")
    rank = max(len(data), len(reps))
    counts = (1,) * (rank - len(reps)) + reps
    extents = (1,) * (rank - len(data)) + data
    variables = names("i", rank)
    binders = sized(variables, [count * extent for count, extent in zip(counts, extents, strict=True)])
    indices = [
        variable if count == 1 else f"{variable} % {extent}"
        for variable, count, extent in zip(variables, counts, extents, strict=True)
    ]
    source = element("data", indices[rank - len(data) :])
    return variant(f"def tile(data):\n    return lambda {binders}: {source}")


def _repeat(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return repeated elements; without an axis the result is flat."""
    data, repeats = shapes["data"], attributes.integer("repeats")
    if attributes["axis"] is None:
        indices = unflattened(f"i // {repeats}", data)
        return variant(
            f"def repeat(data):\n    return lambda i={prod(data) * repeats}: {element('data', indices)}"
        )
    axis = axis_in("repeat", attributes.integer("axis"), len(data))
    binders, indices = list(names("i", len(data))), list(names("i", len(data)))
    binders[axis] += f"={data[axis] * repeats}"
    indices[axis] += f" // {repeats}"
    return variant(f"def repeat(data):\n    return lambda {joined(binders)}: {element('data', indices)}")


def _pad(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return padded data. `pad_width` holds the elements before and after, dimension by dimension."""
    data, width = shapes["data"], attributes.shape("pad_width")
    if len(width) != 2 * len(data) or any(count < 0 for count in width):
        raise ShapeError(
            f"Pad: pad_width={width} has {len(width)} values; data of shape {data} needs {2 * len(data)}, "
            "none below 0: before and after every dimension"
        )
    if attributes.text("mode") == "constant":
        return _surrounded(data, width, attributes.number("constant_value"))
    return _continued(attributes.text("mode"), data, width)


def _surrounded(data: Shape, width: Sequence[int], value: float) -> Variant:
    variables = names("i", len(data))
    binders = [
        f"{v}={width[2 * axis] + data[axis] + width[2 * axis + 1]}" for axis, v in enumerate(variables)
    ]
    indices = [f"{v} - {width[2 * axis]}" if width[2 * axis] else v for axis, v in enumerate(variables)]
    return variant(
        "def Pad(data, *, constant_value):\n"
        f"    return lambda {joined(binders)}: pad({element('data', indices)}, constant_value)",
        {"constant_value": value},
    )


def _continued(mode: str, data: Shape, width: Sequence[int]) -> Variant:
    """Return one dimension after the other, each a stage: the second sees the first's result, corners
    included.
    """
    padded = [axis for axis in range(len(data)) if width[2 * axis] or width[2 * axis + 1]]
    lines, tensor = [], "data"
    for axis in padded:
        before, after = width[2 * axis : 2 * axis + 2]
        if mode == "reflect" and max(before, after) >= data[axis]:
            raise ShapeError(
                f"Pad: dimension {axis} of data has {data[axis]} elements; reflection adds at most "
                f"{data[axis] - 1} on each side, not {before} and {after}"
            )
        head = "return" if axis == padded[-1] else f"padded{axis} ="
        lines.append(f"    {head} {_extended(mode, tensor, data, axis, before, after)}")
        tensor = f"padded{axis}"
    if not padded:
        lines = ["    return lambda *i: data[*i]"]
    return variant("def Pad(data):\n" + "\n".join(lines))


def _extended(mode: str, tensor: str, data: Shape, axis: int, before: int, after: int) -> str:
    """Return `tensor` with more elements before and after along one dimension."""
    variables = names("i", len(data))
    binders, place, extent = list(variables), variables[axis], data[axis]
    binders[axis] += f"={before + extent + after}"

    def at(index: str) -> str:
        return element(tensor, [*variables[:axis], index, *variables[axis + 1 :]])

    start, end = before, before + extent
    body = f"pad({at(f'{place} - {start}')}, 0)"
    if mode == "edge":
        first, final = at("0"), at(str(extent - 1))
    else:
        first, final = (
            f"pad({at(f'{center} - {place}')}, 0)" for center in (start, 2 * (extent - 1) + start)
        )
    inner = f"where({place} >= {end}, {final}, {body})"
    return f"lambda {joined(binders)}: where({place} < {start}, {first}, {inner})"


OPERATORS = (
    Operator(
        name="tile",
        definition=ByShape(_tile, of_data),
        argument_names=arguments("data"),
        specs=(shape("reps"),),
        example=Example({"data": (2, 3)}, {"reps": (2, 2)}),
    ),
    Operator(
        name="repeat",
        definition=ByShape(_repeat, of_data),
        argument_names=arguments("data"),
        specs=(integer("repeats", least=1), integer("axis", optional=True)),
        example=Example({"data": (2, 3)}, {"repeats": 2, "axis": 1}),
    ),
    Operator(
        name="Pad",
        aliases=("pad",),
        definition=ByShape(_pad, of_data),
        argument_names=arguments("data"),
        specs=(
            choice("mode", "constant", "edge", "reflect"),
            shape("pad_width"),
            number("constant_value", 0.0),
        ),
        example=Example({"data": (1, 2, 3, 3)}, {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1, 2, 0)}),
    ),
)
