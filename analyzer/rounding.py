"""Bounds on rounding errors, derived from descriptions.

A value is carried together with a bound on how far any floating-point evaluation of it may be from
exact arithmetic on exact inputs: whatever the order of sums, however the operator is split, with or
without fused multiply-adds. Two correct runs of one program therefore differ by at most twice the bound.
The rules are those of running error analysis (Higham, Accuracy and Stability of Numerical Algorithms,
sections 3.1 and 3.3), applied to whole arrays over an operator's iteration space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from ..errors import OperatorError
from ..tdl.ast import (
    Attribute,
    Binary,
    Binder,
    Call,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Number,
    OpaqueElement,
    Pad,
    Reduce,
    Reducer,
    Star,
    Unary,
    Variable,
)
from ..tdl.functions import BINARY_UFUNCS, FUNCTIONS
from .bound import Bound

Floats = npt.NDArray[np.float64]
FUNCTION_ROUNDINGS = 8
"""Units of rounding that a library function such as `exp` may be off by."""
REARRANGEMENT_ROUNDINGS = 8
"""Roundings by which a kernel may exceed the number of terms of a sum, such as a factor applied per term."""
MONOTONE = frozenset({"exp", "expm1", "log", "log1p", "relu", "sigmoid", "softplus", "sqrt", "tanh", "sinh"})


@dataclass(frozen=True, slots=True)
class Bounded:
    """Exact values and how far computed ones may be from them; arrays that broadcast to one shape."""

    value: Floats
    error: Floats

    @classmethod
    def exact(cls, value: npt.ArrayLike) -> Bounded:
        """Values that every run is given alike."""
        array = np.asarray(value, np.float64)
        return cls(array, np.zeros_like(array))


def propagate(bound: Bound, tensors: Mapping[str, Bounded], unit: float) -> tuple[Bounded, ...]:
    """The outputs of an operator with their error bounds.

    `tensors` are whole inputs, `unit` is the unit roundoff of the arithmetic (2**-24 for float32). The whole
    iteration space is held in memory. Raises OperatorError where a function has no rule.
    """
    run = _Run(bound.description, bound.extents, bound.shapes, tensors, unit)
    results = []
    with np.errstate(all="ignore"):
        for output, shape in zip(bound.description.outputs, bound.output_shapes, strict=True):
            result = run.within(output.variables, output.body)
            order = [run.axes[binder.name] for binder in output.variables]
            results.append(Bounded(*(_collapse(part, order, shape) for part in (result.value, result.error))))
    return tuple(results)


class _Run:
    """Evaluation over the iteration space: every variable has an array axis of its own."""

    def __init__(
        self,
        description: Description,
        extents: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
        tensors: Mapping[str, Bounded],
        unit: float,
    ) -> None:
        self.name = description.name
        self.extents = extents
        self.shapes = shapes
        self.tensors = tensors
        self.unit = unit
        self.axes = {name: axis for axis, name in enumerate(extents)}

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
                return self.literal(number)
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
                return self.condition(inner.value == 0, np.abs(inner.value) <= inner.error, inner.error)
            case Binary(operator=operator, left=left, right=right):
                return self.binary(operator, self.value(left), self.value(right))
            case Call(function="where", arguments=(condition, then, other)):
                return _choose(self.value(condition), self.value(then), self.value(other))
            case Call(function=function, arguments=arguments):
                return self.call(function, [self.value(argument) for argument in arguments])
            case Reduce(reducer=Reducer() as reducer, variables=variables, body=body):
                axes = tuple(self.axes[binder.name] for binder in variables)
                return self.reduce(reducer, axes, self.within(variables, body))
            case Attribute() | OpaqueElement() | Reduce():
                raise OperatorError(f"'{self.name}': no error bound is known for {type(node).__name__}")
            case _:
                assert_never(node)

    def literal(self, number: int | float) -> Bounded:
        """A constant, which has to be rounded unless its digits fit the mantissa."""
        mantissa, _ = math.frexp(number)
        fits = math.isinf(number) or (mantissa / self.unit).is_integer()
        return Bounded(np.asarray(float(number)), np.asarray(0.0 if fits else self.unit * abs(number)))

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
        return _choose(Bounded.exact(inside), found, filler)

    def index(self, node: Index) -> npt.NDArray[np.int64]:
        assert not isinstance(node, Star | FullSlice)
        index = self.value(node)
        if index.error.any():
            raise OperatorError(f"'{self.name}': an index depends on rounded values")
        return index.value.astype(np.int64)

    def rounded(self, value: Floats, error: Floats, count: int = 1) -> Bounded:
        """A result that `count` more roundings happened to."""
        gamma = count * self.unit / (1 - count * self.unit)
        return Bounded(value, error + gamma * (np.abs(value) + error))

    def binary(self, operator: str, a: Bounded, b: Bounded) -> Bounded:
        exact = not a.error.any() and not b.error.any()
        match operator:
            case "+":
                return self.ring(a, b, a.value + b.value, a.error + b.error)
            case "-":
                return self.ring(a, b, a.value - b.value, a.error + b.error)
            case "*":
                cross = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
                return self.ring(a, b, a.value * b.value, cross)
            case "/":
                ratio, room = a.value / b.value, np.abs(b.value) - b.error
                spread = np.where(room > 0, (a.error + np.abs(ratio) * b.error) / room, np.inf)
                return self.rounded(ratio, np.where(a.error + b.error > 0, spread, 0.0))
            case "//" | "%" if exact:
                return Bounded.exact(a.value // b.value if operator == "//" else np.mod(a.value, b.value))
            case "**" if not b.error.any():
                return self.power(a, b.value)
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                truth = BINARY_UFUNCS[operator](a.value, b.value)
                margin = a.error + b.error
                return self.condition(truth, np.abs(a.value - b.value) <= margin, margin)
            case "and" | "or":
                truth = BINARY_UFUNCS[operator](a.value, b.value)
                return Bounded(truth.astype(np.float64), np.maximum(a.error, b.error))
            case _:
                raise OperatorError(
                    f"'{self.name}': no error bound is known for {operator!r} of rounded values"
                )

    def ring(self, a: Bounded, b: Bounded, value: Floats, error: Floats) -> Bounded:
        """A sum, difference or product; of whole numbers it is exact as long as it fits the mantissa."""
        exact = (error == 0) & _whole(a.value) & _whole(b.value) & (np.abs(value) * self.unit <= 1)
        return Bounded(value, np.where(exact, 0.0, self.rounded(value, error).error))

    def condition(self, truth: Any, close: Any, margin: Floats) -> Bounded:
        """1 or 0; with an error of 1 where rounding may turn one into the other."""
        return Bounded(np.asarray(truth, np.float64), (close & (margin > 0)).astype(np.float64))

    def power(self, base: Bounded, exponent: Floats) -> Bounded:
        value = base.value**exponent
        ends = [(base.value + sign * base.error) ** exponent for sign in (-1, 1)]
        spread = np.maximum(np.abs(ends[0] - value), np.abs(ends[1] - value))
        crosses = np.abs(base.value) <= base.error
        spread = np.where(crosses & (exponent < 0), np.inf, spread)
        return self.rounded(value, spread, FUNCTION_ROUNDINGS)

    def call(self, function: str, arguments: list[Bounded]) -> Bounded:
        if function in ("maximum", "minimum"):
            a, b = arguments
            pick = np.maximum if function == "maximum" else np.minimum
            return Bounded(pick(a.value, b.value), np.maximum(a.error, b.error))
        if function == "uniform":
            return Bounded.exact(FUNCTIONS[function].implementation(*(x.value for x in arguments)))
        (x,) = arguments
        match function:
            case "square":
                return self.binary("*", x, x)
            case "abs":
                return Bounded(np.abs(x.value), x.error)
            case "sign":
                close = (np.abs(x.value) <= x.error) & (x.error > 0)
                return Bounded(np.sign(x.value), np.where(close, 2.0, 0.0))
            case "rsqrt":
                return self.power(x, np.asarray(-0.5))
        if function not in MONOTONE:
            raise OperatorError(f"'{self.name}': no error bound is known for {function}")
        apply = FUNCTIONS[function].implementation
        value = np.asarray(apply(x.value))
        ends = [np.asarray(apply(x.value + sign * x.error)) for sign in (-1, 1)]
        spread = np.maximum(np.abs(ends[0] - value), np.abs(ends[1] - value))
        return self.rounded(value, np.where(np.isnan(spread), np.inf, spread), FUNCTION_ROUNDINGS)

    def reduce(self, reducer: Reducer, axes: tuple[int, ...], terms: Bounded) -> Bounded:
        count = int(np.prod([terms.value.shape[axis] for axis in axes], dtype=np.int64))
        match reducer:
            case Reducer.SUM:
                value = terms.value.sum(axes, keepdims=True)
                error = terms.error.sum(axes, keepdims=True)
                size = np.abs(terms.value).sum(axes, keepdims=True) + error
                roundings = (count + REARRANGEMENT_ROUNDINGS) * self.unit
                return Bounded(value, error + roundings / (1 - roundings) * size)
            case Reducer.MAX | Reducer.MIN:
                pick = np.max if reducer is Reducer.MAX else np.min
                return Bounded(
                    pick(terms.value, axis=axes, keepdims=True), terms.error.max(axes, keepdims=True)
                )
            case Reducer.PROD:
                sizes = np.abs(terms.value)
                value = terms.value.prod(axes, keepdims=True)
                spread = (sizes + terms.error).prod(axes, keepdims=True) - sizes.prod(axes, keepdims=True)
                return self.rounded(value, spread, count)
            case _:
                assert_never(reducer)


def _whole(value: Floats) -> npt.NDArray[np.bool_]:
    whole: npt.NDArray[np.bool_] = np.rint(value) == value
    return whole


def _choose(condition: Bounded, then: Bounded, other: Bounded) -> Bounded:
    """`where`: both branches count where rounding may change the condition."""
    truth, unsure = condition.value != 0, condition.error != 0
    value = np.where(truth, then.value, other.value)
    error = np.where(truth, then.error, other.error)
    either = np.abs(then.value - other.value) + np.maximum(then.error, other.error)
    return Bounded(value, np.where(unsure, either, error))


def _collapse(array: Floats, order: list[int], shape: tuple[int, ...]) -> Floats:
    """The output's axes of an array over the iteration space, in the output's order."""
    kept = tuple(slice(None) if axis in order else 0 for axis in range(array.ndim))
    remaining = [axis for axis in range(array.ndim) if axis in order]
    result: Floats = np.transpose(array[kept], [remaining.index(axis) for axis in order]).reshape(shape)
    return result
