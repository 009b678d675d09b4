"""Bounds on rounding errors, derived from descriptions.

A value is carried together with a bound on how far any floating-point evaluation of it may be from
exact arithmetic on exact inputs: whatever the order of sums, however the operator is split, with or
without fused multiply-adds. Two correct runs of one program therefore differ by at most twice the bound.
The rules of `running_error` are applied to whole arrays over an operator's iteration space.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from tofu.analyzer.bind.bound import Bound
from tofu.errors import OperatorError
from tofu.tdl.ast import (
    Attribute,
    Binary,
    Binder,
    Call,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Number,
    OpaqueElement,
    Pad,
    Reducer,
    ReducerCall,
    Star,
    Unary,
    Variable,
)

from .running_error import Bounded, Floats, Rules, choose


def propagate(bound: Bound, tensors: Mapping[str, Bounded], unit: float) -> tuple[Bounded, ...]:
    """The outputs of an operator with their error bounds.

    `tensors` are whole inputs, `unit` is the unit roundoff of the arithmetic (2**-24 for float32). The whole
    iteration space is held in memory. Raises OperatorError where a function has no rule.
    """
    run = _Run(bound, tensors, Rules(bound.description.name, unit))
    results = []
    with np.errstate(all="ignore"):
        for output, shape in zip(bound.description.outputs, bound.output_shapes, strict=True):
            result = run.within(output.variables, output.body)
            order = [run.axes[binder.name] for binder in output.variables]
            results.append(Bounded(*(_collapse(part, order, shape) for part in (result.value, result.error))))
    return tuple(results)


class _Run:
    """Evaluation over the iteration space: every variable has a separate array axis."""

    def __init__(self, bound: Bound, tensors: Mapping[str, Bounded], rules: Rules) -> None:
        self.extents = bound.extents
        self.shapes = bound.shapes
        self.tensors = tensors
        self.rules = rules
        self.axes = {name: axis for axis, name in enumerate(bound.extents)}

    def within(self, variables: tuple[Binder, ...], body: Expression) -> Bounded:
        """A body, spread along every axis of its variables."""
        result = self.value(body)
        shape = [1] * len(self.axes)
        for binder in variables:
            shape[self.axes[binder.name]] = self.extents[binder.name]
        spread = np.broadcast_shapes(result.value.shape, tuple(shape))
        return Bounded(np.broadcast_to(result.value, spread), np.broadcast_to(result.error, spread))

    def value(self, node: Expression) -> Bounded:
        match node:
            case Number(value=number):
                return self.rules.literal(number)
            case Variable(name=name):
                shape = [1] * len(self.axes)
                shape[self.axes[name]] = -1
                return Bounded.exact(np.arange(self.extents[name]).reshape(shape))
            case Extent(tensor=tensor, axis=axis):
                return Bounded.exact(self.shapes[tensor][axis])
            case Element():
                return self.element(node, None)
            case Pad(element=element, value=filler):
                return self.element(element, self.value(filler))
            case Unary(operator="-", operand=operand):
                inner = self.value(operand)
                return Bounded(-inner.value, inner.error)
            case Unary(operand=operand):
                inner = self.value(operand)
                return self.rules.condition(inner.value == 0, np.abs(inner.value) <= inner.error, inner.error)
            case Binary(operator=operator, left=left, right=right):
                return self.rules.binary(operator, self.value(left), self.value(right))
            case Call(function="where", arguments=(condition, then, other)):
                return choose(self.value(condition), self.value(then), self.value(other))
            case Call(function=function, arguments=arguments):
                return self.rules.call(function, [self.value(argument) for argument in arguments])
            case ReducerCall(reducer=Reducer() as reducer, variables=variables, body=body):
                axes = tuple(self.axes[binder.name] for binder in variables)
                return self.rules.reduce(reducer, axes, self.within(variables, body))
            case Attribute() | OpaqueElement() | ReducerCall():
                what = type(node).__name__
                raise OperatorError(f"'{self.rules.operator}': no error bound is known for {what}")
            case _:
                assert_never(node)

    def element(self, node: Element, filler: Bounded | None) -> Bounded:
        tensor = self.tensors[node.tensor]
        shape = tensor.value.shape
        indices = [self.index(index) for index in node.indices]
        inside: Any = True
        for index, extent in zip(indices, shape, strict=True):
            inside = inside & (index >= 0) & (index < extent)
        place = tuple(
            np.clip(index, 0, max(extent - 1, 0)) for index, extent in zip(indices, shape, strict=True)
        )
        found = Bounded(tensor.value[place], tensor.error[place])
        if filler is None:
            return found
        return choose(Bounded.exact(inside), found, filler)

    def index(self, node: Index) -> npt.NDArray[np.int64]:
        assert not isinstance(node, Star | FullSlice)
        index = self.value(node)
        if index.error.any():
            raise OperatorError(f"'{self.rules.operator}': an index depends on rounded values")
        return index.value.astype(np.int64)


def _collapse(array: Floats, order: list[int], shape: tuple[int, ...]) -> Floats:
    """The output's axes of an array over the iteration space, in the output's order."""
    kept = tuple(slice(None) if axis in order else 0 for axis in range(array.ndim))
    remaining = [axis for axis in range(array.ndim) if axis in order]
    result: Floats = np.transpose(array[kept], [remaining.index(axis) for axis in order]).reshape(shape)
    return result
