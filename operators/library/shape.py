"""Operators that move elements without changing them: transpose, Concat, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...analyzer.region import Shape
from ...errors import ShapeError
from ..attributes import Attributes, flag, integer, shape
from ..definition import ByRank, ByShape, Variant, variant
from ..operator import Example, Operator
from .arguments import arguments, numbered, of_data
from .texts import axis_in, element, joined, names


def _permuted(name: str, order: Sequence[int]) -> Variant:
    """Dimension `d` of the output is dimension `order[d]` of data."""
    variables = names("i", len(order))
    return variant(
        f"def {name}(data):\n"
        f"    return lambda {joined([variables[axis] for axis in order])}: {element('data', variables)}"
    )


def _transpose(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    rank = ranks["data"]
    order = [axis_in("transpose", axis, rank) for axis in attributes.shape("axes")]
    if order and sorted(order) != list(range(rank)):
        raise ShapeError(f"transpose: axes={attributes['axes']} is no permutation of {rank} dimensions")
    return _permuted("transpose", order or range(rank)[::-1])


def _swap_axis(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    order = list(range(ranks["data"]))
    a, b = (axis_in("SwapAxis", attributes.integer(dim), len(order)) for dim in ("dim1", "dim2"))
    order[a], order[b] = order[b], order[a]
    return _permuted("SwapAxis", order)


def _concat(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Each element comes from one input; the others are read outside, where they count as zero."""
    parameters = numbered("num_args", "arg")(attributes)
    first = shapes[parameters[0]]
    axis = axis_in("Concat", attributes.integer("dim"), len(first))
    variables = names("i", len(first))
    terms, start = [], 0
    for name in parameters:
        other = shapes[name]
        if len(other) != len(first) or other[:axis] + other[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(
                f"Concat along dimension {axis}: {name} has shape {other}, {parameters[0]} has {first}; "
                f"all other dimensions must be equal"
            )
        indices = list(variables)
        indices[axis] += f" - {start}" if start else ""
        terms.append(f"pad({element(name, indices)}, 0)")
        start += other[axis]
    extents = [*first[:axis], start, *first[axis + 1 :]]
    binders = [f"{variable}={extent}" for variable, extent in zip(variables, extents, strict=True)]
    return variant(
        f"def Concat({joined(parameters)}):\n    return lambda {joined(binders)}: {' + '.join(terms)}"
    )


def _stack(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    parameters = numbered("num_args", "arg")(attributes)
    variables = names("i", len(shapes[parameters[0]]))
    axis = axis_in("stack", attributes.integer("axis"), len(variables) + 1)
    binders = joined([*variables[:axis], f"part={len(parameters)}", *variables[axis:]])
    body = element(parameters[-1], variables)
    for part in reversed(range(len(parameters) - 1)):
        body = f"where(part == {part}, {element(parameters[part], variables)}, {body})"
    return variant(f"def stack({joined(parameters)}):\n    return lambda {binders}: {body}")


def _sliced(name: str, data: Shape, bounds: Sequence[tuple[int, int]]) -> Variant:
    variables = names("i", len(data))
    indices = [f"{v} + {start}" if start else v for v, (start, _) in zip(variables, bounds, strict=True)]
    binders = [
        variable if (start, stop) == (0, extent) else f"{variable}={stop - start}"
        for variable, (start, stop), extent in zip(variables, bounds, data, strict=True)
    ]
    return variant(f"def {name}(data):\n    return lambda {joined(binders)}: {element('data', indices)}")


def _bounds(name: str, axis: int, extent: int, begin: int, end: int | None) -> tuple[int, int]:
    """Begin and end counted from the front. Raises ShapeError unless they lie in the tensor, in order."""
    start = begin + extent if begin < 0 else begin
    stop = extent if end is None else end + extent if end < 0 else end
    if not 0 <= start < stop <= extent:
        raise ShapeError(
            f"{name}: begin={begin}, end={end} is no range in dimension {axis}, which has {extent} elements"
        )
    return start, stop


def _slice_axis(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    axis = axis_in("slice_axis", attributes.integer("axis"), len(data))
    end = None if attributes["end"] is None else attributes.integer("end")
    start, stop = _bounds("slice_axis", axis, data[axis], attributes.integer("begin"), end)
    bounds = [(0, extent) for extent in data]
    bounds[axis] = (start, stop)
    return _sliced("slice_axis", data, bounds)


def slice_bounds(name: str, data: Shape, begin: Sequence[int], end: Sequence[int]) -> list[tuple[int, int]]:
    """First index and end for every dimension, whole ones after those given. Raises ShapeError."""
    if len(begin) != len(end) or len(begin) > len(data):
        raise ShapeError(f"{name}: begin={begin} and end={end} do not fit data of shape {data}")
    return [
        _bounds(name, axis, data[axis], begin[axis], end[axis]) if axis < len(begin) else (0, data[axis])
        for axis in range(len(data))
    ]


def _slice(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    bounds = slice_bounds("slice", data, attributes.shape("begin"), attributes.shape("end"))
    return _sliced("slice", data, bounds)


def _slice_channel(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    count = attributes.integer("num_outputs")
    axis = axis_in("SliceChannel", attributes.integer("axis"), len(data))
    if data[axis] % count:
        raise ShapeError(
            f"SliceChannel: dimension {axis} of data has {data[axis]} elements, not a multiple of "
            f"num_outputs={count}"
        )
    width = data[axis] // count
    if attributes.flag("squeeze_axis") and width != 1:
        raise ShapeError(
            f"SliceChannel: squeeze_axis needs parts of 1 element, they have {width} in dimension {axis}"
        )
    variables = names("i", len(data))
    binders = [f"{variables[axis]}={width}" if d == axis else v for d, v in enumerate(variables)]
    outputs = []
    for part in range(count):
        indices = list(variables)
        if attributes.flag("squeeze_axis"):
            indices[axis] = str(part)
            kept = [*variables[:axis], *variables[axis + 1 :]]
            outputs.append(f"lambda {joined(kept)}: {element('data', indices)}")
        else:
            indices[axis] += f" + {part * width}" if part else ""
            outputs.append(f"lambda {joined(binders)}: {element('data', indices)}")
    return variant(f"def SliceChannel(data):\n    return ({joined(outputs)})")


def _reverse(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    variables = names("i", ranks["data"])
    flipped = {axis_in("reverse", axis, len(variables)) for axis in attributes.shape("axis")}
    binders = [f"{v}=data.shape[{d}]" if d in flipped else v for d, v in enumerate(variables)]
    indices = [f"data.shape[{d}] - 1 - {v}" if d in flipped else v for d, v in enumerate(variables)]
    return variant(f"def reverse(data):\n    return lambda {joined(binders)}: {element('data', indices)}")


def _filled(name: str, value: int) -> ByRank:
    def describe(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
        binders = [f"i{axis}=data.shape[{axis}]" for axis in range(ranks["data"])]
        return variant(f"def {name}(data):\n    return lambda {joined(binders)}: {value}")

    return ByRank(describe)


COUNT = integer("num_args")
PAIR = {"arg0": (2, 3), "arg1": (2, 3)}

OPERATORS = (
    Operator(
        name="transpose",
        definition=ByRank(_transpose),
        argument_names=arguments("data"),
        specs=(shape("axes", ()),),
        example=Example({"data": (2, 3, 4)}),
    ),
    Operator(
        name="SwapAxis",
        aliases=("swapaxes",),
        definition=ByRank(_swap_axis),
        argument_names=arguments("data"),
        specs=(integer("dim1", 0), integer("dim2", 0)),
        example=Example({"data": (2, 3, 4)}, {"dim1": 0, "dim2": 2}),
    ),
    Operator(
        name="Concat",
        aliases=("concat",),
        definition=ByShape(_concat, numbered("num_args", "arg")),
        argument_names=numbered("num_args", "arg"),
        specs=(COUNT, integer("dim", 1)),
        count_attribute="num_args",
        example=Example(PAIR, {"num_args": 2}),
    ),
    Operator(
        name="stack",
        definition=ByShape(_stack, numbered("num_args", "arg")),
        argument_names=numbered("num_args", "arg"),
        specs=(COUNT, integer("axis", 0)),
        count_attribute="num_args",
        example=Example(PAIR, {"num_args": 2}),
    ),
    Operator(
        name="slice_axis",
        definition=ByShape(_slice_axis, of_data),
        argument_names=arguments("data"),
        specs=(integer("axis"), integer("begin"), integer("end", optional=True)),
        example=Example({"data": (2, 5)}, {"axis": 1, "begin": 1, "end": 3}),
    ),
    Operator(
        name="slice",
        aliases=("crop",),
        definition=ByShape(_slice, of_data),
        argument_names=arguments("data"),
        specs=(shape("begin"), shape("end")),
        example=Example({"data": (3, 5)}, {"begin": (0, 1), "end": (2, 4)}),
    ),
    Operator(
        name="SliceChannel",
        aliases=("split",),
        definition=ByShape(_slice_channel, of_data),
        argument_names=arguments("data"),
        specs=(integer("num_outputs"), integer("axis", 1), flag("squeeze_axis", False)),
        output_count=lambda attributes: attributes.integer("num_outputs"),
        example=Example({"data": (2, 6)}, {"num_outputs": 3}),
    ),
    Operator(
        name="reverse",
        aliases=("flip",),
        definition=ByRank(_reverse),
        argument_names=arguments("data"),
        specs=(shape("axis"),),
        example=Example({"data": (2, 3)}, {"axis": (1,)}),
    ),
    Operator(
        name="zeros_like",
        definition=_filled("zeros_like", 0),
        argument_names=arguments("data"),
        example=Example({"data": (2, 3)}),
    ),
    Operator(
        name="ones_like",
        definition=_filled("ones_like", 1),
        argument_names=arguments("data"),
        example=Example({"data": (2, 3)}),
    ),
)
