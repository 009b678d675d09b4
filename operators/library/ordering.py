"""Order along a dimension: sort, argsort, topk.

An element's rank is the number of elements that come before it, and the element of rank `r` is the sum over
all elements of those whose rank is `r`. That is quadratic in the dimension's extent, but it is a
description: every dimension splits, and the gradients are derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...analyzer.indices.region import Shape
from ...errors import OperatorError
from ..operator import Example, Operator
from ..stages.attributes import Attributes, choice, flag, integer
from ..stages.definition import ByShape, Variant, variant
from .arguments import arguments, of_data
from .reshape import reshaped
from .texts import axis_in, element, flat_index, joined, names, sized


@dataclass(frozen=True, slots=True)
class _Order:
    """The text of an operator that sorts along one dimension, stage by stage."""

    name: str
    """The operator's name."""

    lines: tuple[str, ...]
    """The stages, as lines of text."""

    tensor: str
    """The tensor or stage that is ordered."""

    shape: Shape
    """Its shape."""

    axis: int
    """The dimension that is ordered."""

    def at(self, tensor: str, index: str) -> str:
        """Return the element of `tensor` at the index variables, `index` in the ordered dimension."""
        return element(tensor, self.indices(index))

    def indices(self, index: str) -> Sequence[str]:
        variables = names("i", len(self.shape))
        return [*variables[: self.axis], index, *variables[self.axis + 1 :]]

    def binders(self, count: int) -> str:
        """Return binders of an output with the first `count` ranks."""
        return joined(self.indices(f"r={count}"))

    def ranked(self, value: str) -> str:
        """Return the value of the element whose rank is `r`."""
        place = names("i", len(self.shape))[self.axis]
        return f"Sum(lambda {place}: where({self.at('rank', place)} == r, {value}, 0))"

    def variant(self, *outputs: str) -> Variant:
        result = outputs[0] if len(outputs) == 1 else f"({joined(outputs)})"
        body = "\n".join(f"    {line}" for line in (*self.lines, f"return {result}"))
        return variant(f"def {self.name}(data):\n{body}")


def _order(name: str, attributes: Attributes, data: Shape) -> _Order:
    """Return the stage `rank`; before it, without an axis, one that flattens."""
    lines: list[str] = []
    tensor, axis, shape = "data", 0, data
    if attributes["axis"] is None:
        shape = (prod(data),)
        lines.append(f"flat = {reshaped('data', data, shape)}")
        tensor = "flat"
    else:
        axis = axis_in(name, attributes.integer("axis"), len(data))
    order = _Order(name, (), tensor, shape, axis)
    place = names("i", len(shape))[axis]
    mine, other = order.at(tensor, place), order.at(tensor, "k")
    before = "<" if attributes.flag("is_ascend") else ">"
    lines.append(
        f"rank = lambda {joined(names('i', len(shape)))}: Sum(lambda k={shape[axis]}: "
        f"where({other} {before} {mine} or {other} == {mine} and k < {place}, 1, 0))"
    )
    return _Order(name, tuple(lines), tensor, shape, axis)


def _sort(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    order = _order("sort", attributes, shapes["data"])
    return order.variant(_value(order, order.shape[order.axis]))


def _argsort(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    order = _order("argsort", attributes, shapes["data"])
    return order.variant(_positions(order, order.shape[order.axis]))


def _value(order: _Order, count: int) -> str:
    place = names("i", len(order.shape))[order.axis]
    return f"lambda {order.binders(count)}: {order.ranked(order.at(order.tensor, place))}"


def _positions(order: _Order, count: int) -> str:
    return f"lambda {order.binders(count)}: {order.ranked(names('i', len(order.shape))[order.axis])}"


def _topk(attributes: Attributes, shapes: Mapping[str, Shape]) -> Variant:
    """Return the first `k` elements (all if `k` is below 1), their places, or a mask that is 1 for them."""
    order = _order("topk", attributes, shapes["data"])
    extent = order.shape[order.axis]
    count = attributes.integer("k") if attributes.integer("k") > 0 else extent
    if count > extent:
        raise OperatorError(f"topk: k={count}, but dimension {order.axis} has {extent} elements")
    match attributes.text("ret_typ"):
        case "value":
            return order.variant(_value(order, count))
        case "indices":
            return order.variant(_positions(order, count))
        case "both":
            return order.variant(_value(order, count), _positions(order, count))
        case _:
            return order.variant(_mask(order, shapes["data"], count))


def _mask(order: _Order, data: Shape, count: int) -> str:
    """Return a mask of data's shape. If data is flattened, the rank is read at the flat position."""
    variables = names("i", len(data))
    indices = variables if order.shape == data else [flat_index(variables, data)]
    return f"lambda {sized(variables, data)}: where({element('rank', indices)} < {count}, 1, 0)"


AXIS = integer("axis", -1, optional=True)
EXAMPLE = {"data": (2, 4)}

OPERATORS = (
    Operator(
        name="sort",
        definition=ByShape(_sort, of_data),
        argument_names=arguments("data"),
        specs=(AXIS, flag("is_ascend", True)),
        example=Example(EXAMPLE),
    ),
    Operator(
        name="argsort",
        definition=ByShape(_argsort, of_data),
        argument_names=arguments("data"),
        specs=(AXIS, flag("is_ascend", True)),
        differentiable=False,
        example=Example(EXAMPLE),
    ),
    Operator(
        name="topk",
        definition=ByShape(_topk, of_data),
        argument_names=arguments("data"),
        specs=(
            AXIS,
            integer("k", 1),
            choice("ret_typ", "both", "indices", "mask", "value", default="indices"),
            flag("is_ascend", False),
        ),
        output_count=lambda attributes: 2 if attributes.text("ret_typ") == "both" else 1,
        example=Example(EXAMPLE, {"k": 2, "ret_typ": "value"}),
    ),
)
