"""Boxes of a tensor replaced or cut out: _slice_assign, _crop_assign_scalar, Crop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...analyzer.region import Shape
from ...errors import OperatorError, ShapeError
from ..attributes import Attributes, flag, integer, number, shape
from ..definition import ByShape, Variant, variant
from ..operator import Example, Operator
from .arguments import arguments, numbered, of_data
from .shape import slice_bounds
from .texts import element, joined, names


def _inside(variables: Sequence[str], bounds: Sequence[tuple[int, int]], whole: Shape) -> str:
    """The condition that the variables lie in a box, without what always holds."""
    conditions = [
        condition
        for variable, (start, stop), extent in zip(variables, bounds, whole, strict=True)
        for condition, holds in (
            (f"{variable} >= {start}", start == 0),
            (f"{variable} < {stop}", stop == extent),
        )
        if not holds
    ]
    return " and ".join(conditions) or "True"


def _slice_assign(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    lhs, rhs = shapes["lhs"], shapes["rhs"]
    bounds = slice_bounds("_slice_assign", lhs, attributes.shape("begin"), attributes.shape("end"))
    box = tuple(stop - start for start, stop in bounds)
    if rhs != box:
        raise ShapeError(f"_slice_assign: rhs has shape {rhs}, but the box from begin to end has {box}")
    variables = names("i", len(lhs))
    indices = [f"{v} - {start}" if start else v for v, (start, _) in zip(variables, bounds, strict=True)]
    binders = [f"{v}=lhs.shape[{axis}]" for axis, v in enumerate(variables)]
    inside = _inside(variables, bounds, lhs)
    return variant(
        f"def _slice_assign(lhs, rhs):\n    return lambda {joined(binders)}: "
        f"where({inside}, pad({element('rhs', indices)}, 0), {element('lhs', variables)})"
    )


def _crop_assign_scalar(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    bounds = slice_bounds("_crop_assign_scalar", data, attributes.shape("begin"), attributes.shape("end"))
    variables = names("i", len(data))
    return variant(
        f"def _crop_assign_scalar(data, *, scalar):\n    return lambda {joined(variables)}: "
        f"where({_inside(variables, bounds, data)}, scalar, {element('data', variables)})",
        {"scalar": attributes.number("scalar")},
    )


def _crop(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Height and width are those of the second input or `h_w`; the offset is given or centres the box."""
    count = attributes.integer("num_args")
    if count not in (1, 2):
        raise OperatorError(f"Crop: num_args={count}; it takes data, and perhaps a tensor of the wanted size")
    data = shapes["arg0"]
    like = shapes["arg1"] if count == 2 else (0, 0, *attributes.shape("h_w"))
    if len(data) != 4 or len(like) != 4:
        raise ShapeError(
            f"Crop: shapes {data} and {like} must have 4 dimensions: batch, channel, height, width"
        )
    offset = attributes.shape("offset")
    if attributes.flag("center_crop"):
        offset = ((data[2] - like[2]) // 2, (data[3] - like[3]) // 2)
    begin = (0, 0, *offset)
    end = (data[0], data[1], offset[0] + like[2], offset[1] + like[3])
    slice_bounds("Crop", data, begin, end)
    tensors = numbered("num_args", "arg")(attributes)
    height, width = ("arg1.shape[2]", "arg1.shape[3]") if count == 2 else like[2:]
    return variant(
        f"def Crop({joined(tensors)}):\n"
        f"    return lambda n, c, y={height}, x={width}: arg0[n, c, y + {offset[0]}, x + {offset[1]}]"
    )


OPERATORS = (
    Operator(
        name="_slice_assign",
        aliases=("_crop_assign",),
        definition=ByShape(_slice_assign, of=lambda attributes: ("lhs", "rhs")),
        argument_names=arguments("lhs", "rhs"),
        specs=(shape("begin"), shape("end")),
        example=Example({"lhs": (3, 5), "rhs": (2, 3)}, {"begin": (0, 1), "end": (2, 4)}),
    ),
    Operator(
        name="_crop_assign_scalar",
        definition=ByShape(_crop_assign_scalar, of_data),
        argument_names=arguments("data"),
        specs=(number("scalar", 0.0), shape("begin"), shape("end")),
        example=Example({"data": (3, 5)}, {"begin": (0, 1), "end": (2, 4)}),
    ),
    Operator(
        name="Crop",
        definition=ByShape(_crop, numbered("num_args", "arg")),
        argument_names=numbered("num_args", "arg"),
        specs=(
            integer("num_args"),
            shape("offset", (0, 0)),
            shape("h_w", (0, 0)),
            flag("center_crop", False),
        ),
        count_attribute="num_args",
        example=Example({"arg0": (2, 2, 5, 5)}, {"num_args": 1, "h_w": (3, 3), "offset": (1, 2)}),
    ),
)
