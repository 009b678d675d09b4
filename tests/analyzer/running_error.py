"""Rules of running error analysis: operations on values that carry a bound on their rounding error.

Higham, Accuracy and Stability of Numerical Algorithms, sections 3.1 and 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from tofu.errors import OperatorError
from tofu.tdl.ast import Reducer
from tofu.tdl.functions import BINARY_UFUNCS, FUNCTIONS

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


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one `operator`, named in errors, in arithmetic of unit roundoff `unit`."""

    operator: str
    unit: float

    def literal(self, number: int | float) -> Bounded:
        """A constant, which has to be rounded unless its digits fit the mantissa."""
        mantissa, _ = math.frexp(number)
        fits = math.isinf(number) or (mantissa / self.unit).is_integer()
        return Bounded(np.asarray(float(number)), np.asarray(0.0 if fits else self.unit * abs(number)))

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
                    f"'{self.operator}': no error bound is known for {operator!r} of rounded values"
                )

    def ring(self, a: Bounded, b: Bounded, value: Floats, error: Floats) -> Bounded:
        """A sum, difference or product; of whole numbers it is exact as long as it fits the mantissa."""
        exact = (error == 0) & _whole(a.value) & _whole(b.value) & (np.abs(value) * self.unit <= 1)
        return Bounded(value, np.where(exact, 0.0, self.rounded(value, error).error))

    def condition(self, truth: Any, close: Any, margin: Floats) -> Bounded:
        """1 or 0; with an error of 1 where rounding may turn one into the other."""
        return Bounded(np.asarray(truth, np.float64), (close & (margin > 0)).astype(np.float64))

    def power(self, base: Bounded, exponent: Floats) -> Bounded:
        found = self.monotone(lambda value: value**exponent, base)
        crosses = (np.abs(base.value) <= base.error) & (exponent < 0)
        return Bounded(found.value, np.where(crosses, np.inf, found.error))

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
            raise OperatorError(f"'{self.operator}': no error bound is known for {function}")
        return self.monotone(FUNCTIONS[function].implementation, x)

    def monotone(self, function: Callable[[Floats], Any], x: Bounded) -> Bounded:
        """A monotone function: it is farthest off at an end of what its argument may be."""
        places = (x.value, x.value - x.error, x.value + x.error)
        value, low, high = (np.asarray(function(place)) for place in places)
        spread = np.maximum(np.abs(low - value), np.abs(high - value))
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


def choose(condition: Bounded, then: Bounded, other: Bounded) -> Bounded:
    """`where`: both branches count where rounding may change the condition."""
    truth, unsure = condition.value != 0, condition.error != 0
    value = np.where(truth, then.value, other.value)
    error = np.where(truth, then.error, other.error)
    either = np.abs(then.value - other.value) + np.maximum(then.error, other.error)
    return Bounded(value, np.where(unsure, either, error))
