"""Operators whose inputs have dimensions of one element stretched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...analyzer.indices.region import Shape
from ...errors import ShapeError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, shape
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments, of_data
from .elementwise import BINARY
from .texts import axis_in, element, joined, names, sized

NAMES = {
    "broadcast_add": "elemwise_add",
    "broadcast_sub": "_sub",
    "broadcast_mul": "_mul",
    "broadcast_div": "_div",
    "broadcast_mod": "_mod",
    "broadcast_power": "_power",
    "broadcast_maximum": "_maximum",
    "broadcast_minimum": "_minimum",
    "broadcast_hypot": "_hypot",
    "broadcast_equal": "_equal",
    "broadcast_not_equal": "_not_equal",
    "broadcast_greater": "_greater",
    "broadcast_greater_equal": "_greater_equal",
    "broadcast_lesser": "_lesser",
    "broadcast_lesser_equal": "_lesser_equal",
}

ALIASES = {"broadcast_add": ("broadcast_plus",), "broadcast_sub": ("broadcast_minus",)}


def _common(name: str, lhs: Shape, rhs: Shape) -> Shape:
    fits = len(lhs) == len(rhs) and all(a == b or 1 in (a, b) for a, b in zip(lhs, rhs, strict=True))
    if not fits:
        raise ShapeError(
            f"{name}: lhs has shape {lhs}, rhs has {rhs}; both need the same number of dimensions, each "
            f"equal, or 1 on one side"
        )
    return tuple(b if a == 1 else a for a, b in zip(lhs, rhs, strict=True))


def _stretched(shape: Shape, common: Shape, variables: Sequence[str]) -> list[str]:
    return ["0" if own != all_ else v for own, all_, v in zip(shape, common, variables, strict=True)]


def _binary(name: str, body: str) -> ByShape:
    def describe(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
        lhs, rhs = shapes["lhs"], shapes["rhs"]
        common = _common(name, lhs, rhs)
        variables = names("i", len(common))
        text = body.replace("lhs[*i]", element("lhs", _stretched(lhs, common, variables)))
        text = text.replace("rhs[*i]", element("rhs", _stretched(rhs, common, variables)))
        return variant(f"def {name}(lhs, rhs):\n    return lambda {joined(variables)}: {text}")

    return ByShape(describe, of=arguments("lhs", "rhs"))


def _to_shape(name: str, data: Shape, target: Shape) -> Variant:
    if len(target) != len(data) or any(a not in (1, b) for a, b in zip(data, target, strict=True)):
        raise ShapeError(f"{name}: data of shape {data} does not stretch to {target}")
    variables = names("i", len(data))
    source = element("data", _stretched(data, target, variables))
    return variant(f"def {name}(data):\n    return lambda {sized(variables, target)}: {source}")


def _broadcast_to(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data, target = shapes["data"], attributes.shape("shape")
    if len(target) == len(data):
        target = tuple(own if wanted == 0 else wanted for own, wanted in zip(data, target, strict=True))
    return _to_shape("broadcast_to", data, target)


def _broadcast_axis(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    data = shapes["data"]
    axes, sizes = attributes.shape("axis"), attributes.shape("size")
    if len(axes) != len(sizes):
        raise ShapeError(f"broadcast_axis: axis={axes} and size={sizes} must be equally long")
    target = list(data)
    for axis, size in zip(axes, sizes, strict=True):
        target[axis_in("broadcast_axis", axis, len(data))] = size
    return _to_shape("broadcast_axis", data, tuple(target))


OPERATORS = (
    *(
        Operator(
            name=name,
            aliases=ALIASES.get(name, ()),
            definition=_binary(name, BINARY[binary]),
            argument_names=arguments("lhs", "rhs"),
            example=Example({"lhs": (2, 3, 1), "rhs": (1, 3, 4)}),
        )
        for name, binary in NAMES.items()
    ),
    Operator(
        name="broadcast_to",
        definition=ByShape(_broadcast_to, of_data),
        argument_names=arguments("data"),
        specs=(shape("shape", ()),),
        example=Example({"data": (1, 3)}, {"shape": (4, 3)}),
    ),
    Operator(
        name="broadcast_axis",
        aliases=("broadcast_axes",),
        definition=ByShape(_broadcast_axis, of_data),
        argument_names=arguments("data"),
        specs=(shape("axis", ()), shape("size", ())),
        example=Example({"data": (1, 3)}, {"axis": (0,), "size": (4,)}),
    ),
)
