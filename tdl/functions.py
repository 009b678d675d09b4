"""The scalar functions and binary operators of the language, as data.

A function has its arity, its NumPy implementation (applied element by element to arrays or scalars) and its
partial derivatives as expressions in the arguments `x`, `y`, `z` and the function's own value `f`.
NumPy lacks `gamma`, `gammaln`, `digamma`, `erf` and `erfc`: the standard library or a series gives them, per
element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """One function of the language."""

    name: str
    """The function's name in the language."""

    implementation: Implementation
    """The function of NumPy arrays, applied element by element."""

    derivatives: tuple[str, ...]
    """The text of the partial derivative by each argument; empty if the language cannot express it."""

    integer: bool = False
    """Whether integer arguments give an integer, so that the function may appear in an index."""

    @property
    def arity(self) -> int:
        """Number of arguments."""
        return len(self.derivatives)


def _per_element(function: Callable[[float], float]) -> Implementation:
    """Return a function of one float as a function of arrays, in the argument's floating-point type."""

    def guarded(value: float) -> float:
        try:
            return function(float(value))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    over_objects = np.frompyfunc(guarded, 1, 1)

    def implementation(x: Any) -> Any:
        values = np.asarray(x)
        kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
        return np.asarray(over_objects(values)).astype(kind)[()]

    return implementation


def _gamma(x: float) -> float:
    """Return SciPy's values near zero too, where the standard library has none: infinities of its sign."""
    return math.copysign(math.inf, x) if abs(x) <= 2.0**-1024 else math.gamma(x)


def _lgamma(x: float) -> float:
    """Return SciPy's values at poles too, which are infinite, and `x` for what is infinite itself."""
    if math.isinf(x):
        return x
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _digamma(x: float) -> float:
    """By reflection, recurrence up to 10 and the asymptotic series; relative error about 1e-14.

    As in SciPy, zero gives an infinity of the other sign; other poles and minus infinity are not numbers.
    """
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0:
        if math.isinf(x) or x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * math.remainder(x, 1))
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (
        1 / 12
        - square
        * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square * (1 / 132 - square * 691 / 32760))))
    )
    return shift + math.log(x) - 0.5 / x - series


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _reciprocal(x: Any) -> Any:
    return np.true_divide(1, x)


def _power(x: Any, y: Any) -> Any:
    integers = np.result_type(x, y).kind in "iub"
    return np.float_power(x, y) if integers else np.power(x, y)


def _sigmoid(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(np.negative(x)))


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


def _uniform(seed: Any, high: Any, low: Any) -> Any:
    """Return a random number for every counter `high * 2**24 + low`, the same wherever and whenever it is
    computed.

    Widynski's Squares generator (2020), keyed by the seed through SplitMix64. Arguments are whole numbers
    from 0 to 2**24, exact in every floating-point type; so are results, odd multiples of 2**-24 in (0, 1).
    """
    given = np.result_type(*(np.asarray(argument) for argument in (seed, high, low)))
    with np.errstate(over="ignore", invalid="ignore"):
        key = _split_mix(_counter(seed)) | np.uint64(1)
        x = y = ((_counter(high) << np.uint64(24)) + _counter(low)) * key
        z = y + key
        for addend in (y, z, y):
            x = x * x + addend
            x = (x >> np.uint64(32)) | (x << np.uint64(32))
        bits = (x * x + z) >> np.uint64(41)
    kind = given if given.kind == "f" else np.dtype(np.float64)
    return ((2 * bits.astype(kind) + 1) * kind.type(2.0**-24))[()]


def _counter(value: Any) -> Any:
    return np.asarray(value).astype(np.int64).astype(np.uint64)


def _split_mix(value: Any) -> Any:
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


_TABLE = (
    ScalarFunction("exp", np.exp, ("f",)),
    ScalarFunction("expm1", np.expm1, ("f + 1",)),
    ScalarFunction("log", np.log, ("1 / x",)),
    ScalarFunction("log1p", np.log1p, ("1 / (1 + x)",)),
    ScalarFunction("log2", np.log2, (f"{1 / math.log(2)!r} / x",)),
    ScalarFunction("log10", np.log10, (f"{1 / math.log(10)!r} / x",)),
    ScalarFunction("sqrt", np.sqrt, ("0.5 / f",)),
    ScalarFunction("rsqrt", _rsqrt, ("-0.5 * f * f * f",)),
    ScalarFunction("cbrt", np.cbrt, ("1 / (3 * f * f)",)),
    ScalarFunction("square", np.square, ("2 * x",), integer=True),
    ScalarFunction("reciprocal", _reciprocal, ("-f * f",)),
    ScalarFunction("abs", np.abs, ("sign(x)",), integer=True),
    ScalarFunction("sign", np.sign, ("0",), integer=True),
    ScalarFunction("floor", np.floor, ("0",), integer=True),
    ScalarFunction("ceil", np.ceil, ("0",), integer=True),
    ScalarFunction("round", np.round, ("0",), integer=True),
    ScalarFunction("trunc", np.trunc, ("0",), integer=True),
    ScalarFunction("sin", np.sin, ("cos(x)",)),
    ScalarFunction("cos", np.cos, ("-sin(x)",)),
    ScalarFunction("tan", np.tan, ("1 + f * f",)),
    ScalarFunction("arcsin", np.arcsin, ("rsqrt(1 - x * x)",)),
    ScalarFunction("arccos", np.arccos, ("-rsqrt(1 - x * x)",)),
    ScalarFunction("arctan", np.arctan, ("1 / (1 + x * x)",)),
    ScalarFunction(
        "arctan2",
        np.arctan2,
        (
            "y / where(x * x + y * y == 0, 1, x * x + y * y)",
            "-x / where(x * x + y * y == 0, 1, x * x + y * y)",
        ),
    ),
    ScalarFunction("sinh", np.sinh, ("cosh(x)",)),
    ScalarFunction("cosh", np.cosh, ("sinh(x)",)),
    ScalarFunction("tanh", np.tanh, ("1 - f * f",)),
    ScalarFunction("arcsinh", np.arcsinh, ("rsqrt(x * x + 1)",)),
    ScalarFunction("arccosh", np.arccosh, ("rsqrt(x * x - 1)",)),
    ScalarFunction("arctanh", np.arctanh, ("1 / (1 - x * x)",)),
    ScalarFunction("sigmoid", _sigmoid, ("f * (1 - f)",)),
    ScalarFunction("softplus", _softplus, ("sigmoid(x)",)),
    ScalarFunction("relu", _relu, ("where(x > 0, 1, 0)",), integer=True),
    ScalarFunction("erf", _per_element(math.erf), (f"{2 / math.sqrt(math.pi)!r} * exp(-x * x)",)),
    ScalarFunction("erfc", _per_element(math.erfc), (f"{-2 / math.sqrt(math.pi)!r} * exp(-x * x)",)),
    ScalarFunction("gamma", _per_element(_gamma), ("f * digamma(x)",)),
    ScalarFunction("gammaln", _per_element(_lgamma), ("digamma(x)",)),
    ScalarFunction("digamma", _per_element(_digamma), ("",)),
    ScalarFunction("maximum", np.maximum, ("where(x >= y, 1, 0)", "where(x >= y, 0, 1)"), integer=True),
    ScalarFunction("minimum", np.minimum, ("where(x <= y, 1, 0)", "where(x <= y, 0, 1)"), integer=True),
    ScalarFunction("power", _power, ("y * where(y == 0, 1, x) ** (y - 1)", "f * log(where(x == 0, 1, x))")),
    ScalarFunction("hypot", np.hypot, ("x / where(f == 0, 1, f)", "y / where(f == 0, 1, f)")),
    ScalarFunction("uniform", _uniform, ("0", "0", "0")),
    ScalarFunction("where", np.where, ("0", "where(x, 1, 0)", "where(x, 0, 1)"), integer=True),
)

FUNCTIONS: Mapping[str, ScalarFunction] = MappingProxyType({function.name: function for function in _TABLE})
CONSTANTS: Mapping[str, int | float] = MappingProxyType(
    {"inf": math.inf, "pi": math.pi, "True": 1, "False": 0}
)
BINARY_UFUNCS: Mapping[str, np.ufunc] = MappingProxyType(
    {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
        "//": np.floor_divide,
        "%": np.remainder,
        "**": np.power,
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "==": np.equal,
        "!=": np.not_equal,
        "and": np.logical_and,
        "or": np.logical_or,
    }
)
"""How NumPy computes each binary operator."""
