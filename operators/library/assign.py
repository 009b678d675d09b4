"""Boxes of a tensor replaced or cut out: _slice_assign, _crop_assign_scalar, Crop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...analyzer.indices.region import Shape
from ...errors import OperatorError, ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, count, flag, number, shape
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments, numbered, of_data
from .shape import ENDS, AxisSlice, cuts_of
from .texts import element, joined, names, sized_like


def _inside(variables: Sequence[str], cuts: Sequence[AxisSlice], whole: Shape) -> str:
    """Return the condition that the variables lie in the cuts, without what always holds."""
    conditions = []
    for variable, cut, extent in zip(variables, cuts, whole, strict=True):
        start, length, step = cut
        first, last = sorted((start, start + step * (length - 1)))
        conditions += [f"{variable} >= {first}"] if first else []
        conditions += [f"{variable} <= {last}"] if last < extent - 1 else []
        conditions += [f"({variable} - {first}) % {abs(step)} == 0"] if abs(step) != 1 else []
    return " and ".join(conditions) or "True"


def _source(variable: str, cut: AxisSlice) -> str:
    """Return the index in the box of the place that `variable` is."""
    shifted = f"{variable} - {cut.start}" if cut.start else variable
    return shifted if cut.step == 1 else f"({shifted}) // {cut.step}"


def _slice_assign(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    lhs, rhs = shapes["lhs"], shapes["rhs"]
    cuts = cuts_of("_slice_assign", attributes, lhs)
    box = tuple(cut.length for cut in cuts)
    if rhs != box:
        raise ShapeError(f"_slice_assign: rhs has shape {rhs}, but the box from begin to end has {box}")
    variables = names("i", len(lhs))
    indices = [_source(variable, cut) for variable, cut in zip(variables, cuts, strict=True)]
    inside = _inside(variables, cuts, lhs)
    return variant(
        f"def _slice_assign(lhs, rhs):\n    return lambda {sized_like(variables, 'lhs')}: "
        f"where({inside}, pad({element('rhs', indices)}, 0), {element('lhs', variables)})"
    )


def _crop_assign_scalar(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    cuts = cuts_of("_crop_assign_scalar", attributes, data)
    variables = names("i", len(data))
    return variant(
        "def _crop_assign_scalar(data, *, scalar):\n"
        f"    return lambda {sized_like(variables, 'data')}: "
        f"where({_inside(variables, cuts, data)}, scalar, {element('data', variables)})",
        {"scalar": attributes.number("scalar")},
    )


def _crop(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the crop. The second input or `h_w` sets its size; without an offset it is centred."""
    count = attributes.integer("num_args")
    if count not in (1, 2):
        raise OperatorError(
            f"Crop: num_args={count}, but it takes data and at most one tensor of the wanted size"
        )
    data = shapes["arg0"]
    like = shapes["arg1"] if count == 2 else (0, 0, *attributes.shape("h_w"))
    if len(data) != 4 or len(like) != 4:
        raise ShapeError(
            f"Crop: shapes {data} and {like} must have 4 dimensions: batch, channel, height, width"
        )
    offset = attributes.shape("offset")
    if len(offset) != 2:
        raise OperatorError(f"Crop: offset={offset} must be (row, column)")
    if attributes.flag("center_crop"):
        offset = ((data[2] - like[2]) // 2, (data[3] - like[3]) // 2)
    if any(
        not 0 <= o <= o + size <= extent for o, size, extent in zip(offset, like[2:], data[2:], strict=True)
    ):
        raise ShapeError(f"Crop: a box of {like[2:]} at offset {offset} does not lie in data of shape {data}")
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
        definition=ByShape(_slice_assign, of=arguments("lhs", "rhs")),
        argument_names=arguments("lhs", "rhs"),
        specs=ENDS,
        example=Example({"lhs": (3, 5), "rhs": (2, 3)}, {"begin": (0, 1), "end": (2, 4)}),
    ),
    Operator(
        name="_crop_assign_scalar",
        definition=ByShape(_crop_assign_scalar, of_data),
        argument_names=arguments("data"),
        specs=(number("scalar", 0.0), *ENDS),
        example=Example({"data": (3, 5)}, {"begin": (0, 1), "end": (2, 4)}),
    ),
    Operator(
        name="Crop",
        definition=ByShape(_crop, numbered("num_args", "arg")),
        argument_names=numbered("num_args", "arg"),
        specs=(
            count("num_args"),
            shape("offset", (0, 0)),
            shape("h_w", (0, 0)),
            flag("center_crop", False),
        ),
        count_attribute="num_args",
        example=Example({"arg0": (2, 2, 5, 5)}, {"num_args": 1, "h_w": (3, 3), "offset": (1, 2)}),
    ),
)
