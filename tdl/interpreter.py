"""What a description means, element by element: the reference that every kernel is held to.

Slow and obvious on purpose: one Python evaluation per element, float64 (or exact integers where every
tensor holds integers). Conditions do not short-circuit, as in a kernel that computes whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from ..errors import DataError, OperatorError, ShapeError
from .ast import (
    AnyReducer,
    Attribute,
    Binary,
    Binder,
    Call,
    CustomReducer,
    Description,
    Element,
    Expression,
    Extent,
    FullSlice,
    Index,
    Lambda,
    Number,
    OpaqueElement,
    Pad,
    Reduce,
    Reducer,
    Star,
    Unary,
    Variable,
)
from .functions import FUNCTIONS
from .opaque import call_opaque

Array = npt.NDArray[Any]
Scalar = int | float
Interval = tuple[int, int]
Position = dict[str, int]

MAX_BITS = 1024
"""Powers of integers are exact up to this size: `9 ** 99 ** 99` must cost nothing."""


def interpret(
    description: Description,
    extents: Mapping[str, int],
    tensors: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    box: Mapping[str, Interval] | None = None,
    opaque: Mapping[str, Callable[..., Array]] | None = None,
) -> tuple[Array, ...]:
    """The outputs of a specialised description (no attributes, no starred variables).

    `tensors` are whole, `shapes` those that `.shape` refers to. `box` restricts variables to intervals:
    the outputs are then the parts (under a reduction the partial results) of that box; it is for
    descriptions without stages. `opaque` gives the functions behind `Opaque()`. Variables of one name share
    one extent, in all stages.

    Raises `ShapeError` for an element outside its tensor and for Max or Min over nothing, `DataError` for
    an index that is not a whole number, `OperatorError` for an opaque function not given.
    """
    if description.attributes:
        raise OperatorError(
            f"'{description.name}' still has attributes; specialise it before interpreting it"
        )
    if box is not None and description.stages:
        raise OperatorError(f"'{description.name}' has stages; interpret a box of one stage at a time")
    intervals = {name: (0, extent) for name, extent in extents.items()} | dict(box or {})
    known = {name: np.asarray(tensor) for name, tensor in tensors.items()}
    exact = all(tensor.dtype.kind in "iub" for tensor in known.values())
    run = _Run(description.name, intervals, known, dict(shapes), dict(opaque or {}))
    with np.errstate(all="ignore"):
        for stage in description.stages:
            result = run.tensor(stage.value, exact)
            run.tensors[stage.name] = result
            run.shapes[stage.name] = result.shape
        return tuple(run.tensor(output, exact) for output in description.outputs)


class _Run:
    """One interpretation: the tensors known so far and the results of opaque functions."""

    def __init__(
        self,
        operator: str,
        intervals: Mapping[str, Interval],
        tensors: dict[str, Array],
        shapes: dict[str, tuple[int, ...]],
        opaque: dict[str, Callable[..., Array]],
    ) -> None:
        self.operator = operator
        self.intervals = intervals
        self.tensors = tensors
        self.shapes = shapes
        self.opaque = opaque
        self.opaque_results: dict[tuple[object, ...], Array] = {}

    def tensor(self, value: Lambda, exact: bool) -> Array:
        """All elements of a lambda; integers where `exact` and every element is one."""
        shape = tuple(max(0, upper - lower) for lower, upper in map(self.interval, value.variables))
        elements = [self.value(value.body, at) for at in self.positions(value.variables, {})]
        kind = np.int64 if exact and all(isinstance(element, int) for element in elements) else np.float64
        try:
            return np.array(elements, kind).reshape(shape)
        except OverflowError:
            raise DataError(f"'{self.operator}' gives an integer that does not fit 64 bits") from None

    def interval(self, binder: Binder) -> Interval:
        """The values a variable takes."""
        if binder.star or binder.name not in self.intervals:
            raise OperatorError(f"'{self.operator}' has no extent for variable '{binder.name}'")
        return self.intervals[binder.name]

    def positions(self, variables: tuple[Binder, ...], outer: Position) -> Iterator[Position]:
        """Every assignment of the variables, the last one fastest."""
        for values in product(*(range(*self.interval(binder)) for binder in variables)):
            yield outer | dict(zip((binder.name for binder in variables), values, strict=True))

    def value(self, node: Expression, at: Position) -> Scalar:
        """One expression at one position."""
        match node:
            case Number(value=number):
                return number
            case Variable(name=name):
                return at[name]
            case Extent(tensor=tensor, axis=axis):
                return self.shapes[tensor][axis]
            case Element(tensor=tensor, indices=indices):
                index = self.index(indices, at)
                if not _inside(index, self.array(tensor).shape):
                    raise self.outside(tensor, index, at)
                return _scalar(self.array(tensor)[index])
            case Pad(element=element, value=filler):
                index = self.index(element.indices, at)
                inside = _inside(index, self.array(element.tensor).shape)
                return _scalar(self.array(element.tensor)[index]) if inside else self.value(filler, at)
            case Unary(operator=operator, operand=operand):
                return -self.value(operand, at) if operator == "-" else int(not self.value(operand, at))
            case Binary(operator=operator, left=left, right=right):
                return _BINARY[operator](self.value(left, at), self.value(right, at))
            case Call(function=function, arguments=arguments):
                return _call(function, [self.value(argument, at) for argument in arguments])
            case Reduce(reducer=reducer, variables=variables, body=body):
                return self.reduce(
                    reducer, [self.value(body, inner) for inner in self.positions(variables, at)]
                )
            case OpaqueElement():
                return self.opaque_element(node, at)
            case Attribute(name=name):
                raise OperatorError(f"'{self.operator}' still has attribute '{name}'; specialise it first")
            case _:
                assert_never(node)

    def reduce(self, reducer: AnyReducer, values: list[Scalar]) -> Scalar:
        """The values combined in order; the neutral element for none, where there is one."""
        if isinstance(reducer, CustomReducer):
            return self.reduce_by(reducer, values)
        if not values and reducer in (Reducer.MAX, Reducer.MIN):
            raise ShapeError(f"'{self.operator}' takes {reducer} over an empty range, which has no value")
        combine = _REDUCERS[reducer]
        result: Scalar = 1 if reducer is Reducer.PROD else 0
        for position, value in enumerate(values):
            result = combine(result, value) if position else value
        return result

    def reduce_by(self, reducer: CustomReducer, values: list[Scalar]) -> Scalar:
        """The values combined in order by a custom reducer; its identity for none."""
        result: Scalar = reducer.identity
        for position, value in enumerate(values):
            # At a position that holds the reducer's two variables, which are numbers of any kind.
            pair: Any = {reducer.left: result, reducer.right: value}
            result = self.value(reducer.body, pair) if position else value
        return result

    def array(self, tensor: str) -> Array:
        """A tensor's elements."""
        if tensor not in self.tensors:
            raise DataError(f"'{self.operator}' reads tensor '{tensor}', which was not given")
        return self.tensors[tensor]

    def index(self, indices: tuple[Index, ...], at: Position) -> tuple[int, ...]:
        """The whole numbers that the indices are at a position."""
        return tuple(self.whole(index, at) for index in indices)

    def whole(self, index: Index, at: Position) -> int:
        """One index, which may be a float that holds a whole number (data used as an index)."""
        if isinstance(index, Star | FullSlice):
            raise OperatorError(f"'{self.operator}' has a starred index or ':' where one element is read")
        value = self.value(index, at)
        if isinstance(value, float) and not value.is_integer():
            raise DataError(f"'{self.operator}' uses {value} as an index at {at}; an index is a whole number")
        return int(value)

    def outside(self, tensor: str, index: tuple[int, ...], at: Position) -> ShapeError:
        """The complaint about an element that does not exist."""
        place = ", ".join(map(str, index))
        shape = self.array(tensor).shape
        return ShapeError(
            f"'{self.operator}' reads {tensor}[{place}] at {at}, outside its shape {shape}; "
            f"shrink the extents or write pad({tensor}[...], value)"
        )

    def opaque_element(self, node: OpaqueElement, at: Position) -> Scalar:
        """One element of an opaque function's result; each result is computed once."""
        if node.function not in self.opaque:
            raise OperatorError(
                f"'{self.operator}' calls opaque function '{node.function}', which was not given: "
                f"pass opaque={{'{node.function}': function}}"
            )
        slices = tuple(tuple(self.slice(index, at) for index in part.indices) for part in node.arguments)
        key = (node.function, tuple(part.tensor for part in node.arguments), slices)
        if key not in self.opaque_results:
            parts = [
                self.array(part.tensor)[_numpy_index(s)]
                for part, s in zip(node.arguments, slices, strict=True)
            ]
            function = self.opaque[node.function]
            self.opaque_results[key] = call_opaque(self.operator, node.function, function, parts)
        result = self.opaque_results[key]
        index = self.index(node.indices, at)
        if len(index) != result.ndim:
            raise ShapeError(
                f"'{self.operator}' indexes the result of '{node.function}' with {len(index)} indices, "
                f"but its shape is {result.shape}"
            )
        if not _inside(index, result.shape):
            raise ShapeError(
                f"'{self.operator}' reads {node.function}(...)[{', '.join(map(str, index))}], "
                f"outside the result's shape {result.shape}"
            )
        return _scalar(result[index])

    def slice(self, index: Index, at: Position) -> int | None:
        """A fixed index of an opaque function's argument, None for a whole dimension."""
        return None if isinstance(index, FullSlice) else self.whole(index, at)


def _numpy_index(indices: tuple[int | None, ...]) -> tuple[int | slice, ...]:
    """Fixed indices and whole dimensions as NumPy's index."""
    return tuple(slice(None) if index is None else index for index in indices)


def _inside(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    if len(index) != len(shape):
        raise ShapeError(f"{len(index)} indices for a tensor of shape {shape}")
    return all(0 <= i < extent for i, extent in zip(index, shape, strict=True))


def _scalar(value: Any) -> Scalar:
    item: Scalar = value.item()
    return int(item) if isinstance(item, bool) else item


def _call(function: str, arguments: list[Scalar]) -> Scalar:
    entry = FUNCTIONS[function]
    if entry.integer and all(isinstance(argument, int) for argument in arguments):
        try:
            return int(entry.implementation(*arguments))
        except OverflowError:
            raise DataError(f"{function} is given an integer that does not fit 64 bits") from None
    return float(entry.implementation(*map(_float, arguments)))


def _float(value: Scalar) -> float:
    """The nearest float; infinite for an integer beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def _exact(
    integers: Callable[[int, int], int], floats: Callable[[float, float], Any]
) -> Callable[[Scalar, Scalar], Scalar]:
    """Exact for two integers (of which the second is not 0); NumPy's arithmetic otherwise."""

    def operate(a: Scalar, b: Scalar) -> Scalar:
        if isinstance(a, int) and isinstance(b, int) and b != 0:
            return integers(a, b)
        return float(floats(_float(a), _float(b)))

    return operate


def _power(a: Scalar, b: Scalar) -> Scalar:
    if isinstance(a, int) and isinstance(b, int) and b >= 0 and a.bit_length() * b <= MAX_BITS:
        return int(a**b)
    return float(np.float_power(_float(a), _float(b)))


def _propagating(choose: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    """A choice between two values that NaN wins, as in NumPy."""

    def operate(a: Scalar, b: Scalar) -> Scalar:
        if a != a or b != b:
            return float("nan")
        return choose(a, b)

    return operate


_BINARY: Mapping[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: float(np.divide(_float(a), _float(b))),
    "//": _exact(lambda a, b: a // b, np.floor_divide),
    "%": _exact(lambda a, b: a % b, np.mod),
    "**": _power,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}

_REDUCERS: Mapping[Reducer, Callable[[Scalar, Scalar], Scalar]] = {
    Reducer.SUM: _BINARY["+"],
    Reducer.PROD: _BINARY["*"],
    Reducer.MAX: _propagating(max),
    Reducer.MIN: _propagating(min),
}
