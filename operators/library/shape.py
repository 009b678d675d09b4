"""Operators that move elements without changing them: transpose, Concat, slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, SliceBounds, bounds, count, flag, integer, shape
from ..stages.definition import ByRank, ByShape, Variant, variant
from .arguments import arguments, numbered, of_data
from .texts import axis_in, element, filled_like, joined, names, sized


def _permuted(name: str, order: Sequence[int]) -> Variant:
    """Return data with its dimensions in another order: output dimension `d` is `order[d]` of data."""
    variables = names("i", len(order))
    return variant(
        f"def {name}(data):\n"
        f"    return lambda {joined([variables[axis] for axis in order])}: {element('data', variables)}"
    )


def _transpose(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    rank = ranks["data"]
    order = [axis_in("transpose", axis, rank) for axis in attributes.shape("axes")]
    if order and sorted(order) != list(range(rank)):
        raise ShapeError(f"transpose: axes={attributes['axes']} is not a permutation of {rank} dimensions")
    return _permuted("transpose", order or range(rank)[::-1])


def _swap_axis(attributes: Attributes, ranks: Mapping[str, int]) -> Variant:
    order = list(range(ranks["data"]))
    a, b = (axis_in("SwapAxis", attributes.integer(dim), len(order)) for dim in ("dim1", "dim2"))
    order[a], order[b] = order[b], order[a]
    return _permuted("SwapAxis", order)


def _concat(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the inputs, concatenated: each element is read from one, the others are padded with zero."""
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
    total = " + ".join(terms)
    return variant(
        f"def Concat({joined(parameters)}):\n    return lambda {sized(variables, extents)}: {total}"
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


class AxisSlice(NamedTuple):
    """The indices `start`, `start + step`, ... of one dimension, `count` of them."""

    start: int
    length: int
    step: int = 1


def _sliced(name: str, data: Shape, cuts: Sequence[AxisSlice]) -> Variant:
    variables = names("i", len(data))
    indices, binders = [], []
    for variable, cut, extent in zip(variables, cuts, data, strict=True):
        scaled = variable if cut.step == 1 else f"{variable} * {cut.step}"
        indices.append(f"{scaled} + {cut.start}" if cut.start else scaled)
        binders.append(variable if cut == AxisSlice(0, extent) else f"{variable}={cut.length}")
    return variant(f"def {name}(data):\n    return lambda {joined(binders)}: {element('data', indices)}")


def _cut(
    name: str, axis: int, extent: int, begin: int | None, end: int | None, step: int | None
) -> AxisSlice:
    """Return a cut. A negative end counts from the back; an end beyond the tensor is moved to its edge.

    Raises ShapeError if nothing lies between them.
    """
    stride = 1 if step is None else step
    if stride == 0:
        raise OperatorError(f"{name}: step is 0 in dimension {axis}")
    chosen = range(*slice(begin, end, stride).indices(extent))
    if not chosen or (begin is not None and not -extent <= begin < extent):
        raise _no_range(name, axis, extent, begin, end)
    return AxisSlice(chosen.start, len(chosen), stride)


def _no_range(name: str, axis: int, extent: int, begin: int | None, end: int | None) -> ShapeError:
    return ShapeError(
        f"{name}: begin={begin}, end={end} is not a range in dimension {axis}, which has {extent} elements"
    )


def _slice_axis(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    axis = axis_in("slice_axis", attributes.integer("axis"), len(data))
    end = None if attributes["end"] is None else attributes.integer("end")
    if end is not None and end > data[axis]:
        raise _no_range("slice_axis", axis, data[axis], attributes.integer("begin"), end)
    cuts = [AxisSlice(0, extent) for extent in data]
    cuts[axis] = _cut("slice_axis", axis, data[axis], attributes.integer("begin"), end, 1)
    return _sliced("slice_axis", data, cuts)


def cuts_of(name: str, attributes: Attributes, data: Shape) -> list[AxisSlice]:
    """Return the cut of every dimension by `begin`, `end` and `step`; dimensions beyond these are whole.

    Raises ShapeError if there are more values than dimensions, or if a cut is empty.
    """
    begin, end, step = (attributes.bounds(each) for each in ("begin", "end", "step"))
    count = len(begin)
    if count != len(end) or count > len(data) or len(step) not in (0, count):
        raise ShapeError(f"{name}: begin={begin}, end={end}, step={step} do not fit data of shape {data}")
    steps = step or (1,) * count
    return [
        _cut(name, axis, extent, begin[axis], end[axis], steps[axis])
        if axis < count
        else AxisSlice(0, extent)
        for axis, extent in enumerate(data)
    ]


def _slice(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    return _sliced("slice", shapes["data"], cuts_of("slice", attributes, shapes["data"]))


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
            f"SliceChannel: squeeze_axis needs parts of 1 element, but they have {width} in dimension {axis}"
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
        return variant(f"def {name}(data):\n    return {filled_like(str(value), 'data', ranks['data'])}")

    return ByRank(describe)


COUNT = count("num_args")
ENDS = (bounds("begin"), bounds("end"), bounds("step", SliceBounds()))
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
        specs=ENDS,
        example=Example({"data": (3, 5)}, {"begin": (0, 1), "end": (2, 4)}),
    ),
    Operator(
        name="SliceChannel",
        aliases=("split",),
        definition=ByShape(_slice_channel, of_data),
        argument_names=arguments("data"),
        specs=(count("num_outputs"), integer("axis", 1), flag("squeeze_axis", False)),
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
