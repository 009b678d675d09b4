"""Evaluate a description on whole arrays: the interpreter's results, about a thousand times faster.

Every index variable in scope has its own axis, the innermost ones first. Whole numbers are integers of 64
bits. All other numbers have one floating-point type. Sums add their terms one after the other, in the
interpreter's order. `UnsuitedError` is raised for what this file cannot compute: integers that a float may
not hold exactly, errors that only the interpreter reports, opaque functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from ..errors import ShapeError
from ..support.memory import allocating
from .ast import (
    AnyReducer,
    Attribute,
    Binary,
    Call,
    Choice,
    CustomReducer,
    Description,
    Element,
    Extent,
    FullSlice,
    Index,
    Lambda,
    Number,
    OpaqueElement,
    Pad,
    Reducer,
    ReducerCall,
    Star,
    Unary,
    Variable,
)
from .functions import BINARY_UFUNCS, FUNCTIONS
from .points import require_few_points
from .reducers import UFUNCS, combination
from .traverse import walk

Array = npt.NDArray[Any]
Interval = tuple[int, int]
Positions = Mapping[str, Array]
"""Values of the variables in scope, each along its axis."""

LARGEST = 2**53
"""Integers up to here are exact as floats too."""

MOST_POINTS = 2**31
"""The most points at which a description is evaluated: minutes."""

BLOCK_POINTS = 2**21
"""The most index values computed at a time."""

ARITHMETIC = frozenset("+-*")
DIVISION = frozenset(("//", "%"))
TRUTH = frozenset(("<", "<=", ">", ">=", "==", "!=", "and", "or"))


class UnsuitedError(ShapeError):
    """Whole arrays cannot give the interpreter's result."""


def evaluate(
    description: Description,
    intervals: Mapping[str, Interval],
    tensors: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    dtype: npt.DTypeLike = np.float64,
) -> tuple[Array, ...]:
    """Return the outputs of a specialised description without stages, for intervals of its variables.

    Raises UnsuitedError, ExecutionError for more points or values than the machine can take.
    """
    run = Evaluation(tensors, shapes, intervals, dtype)
    for output in description.outputs:
        require_few_points(description.name, output, lambda binder: run.interval(binder.name), MOST_POINTS)
    with np.errstate(all="ignore"), allocating(f"the values of '{description.name}'"):
        return tuple(_output(run, output) for output in description.outputs)


def _output(run: Evaluation, output: Lambda) -> Array:
    names = [binder.name for binder in output.variables]
    box = [run.interval(name) for name in names]
    if any(lower >= upper for lower, upper in box):
        return np.zeros([max(0, upper - lower) for lower, upper in box], run.dtype)
    nested = prod(
        max(1, upper - lower)
        for node in walk(output.body)
        if isinstance(node, ReducerCall)
        for lower, upper in (run.interval(binder.name) for binder in node.variables)
    )
    result: Array | None = None
    for block in _blocks(box, max(1, BLOCK_POINTS // nested)):
        at = {
            name: np.arange(*interval).reshape(-1, *[1] * (len(names) - 1 - axis))
            for axis, (name, interval) in enumerate(zip(names, block, strict=True))
        }
        value = run.value(output.body, at)
        if result is None:
            exact = run.exact and value.dtype == np.int64
            result = np.empty([upper - lower for lower, upper in box], np.int64 if exact else run.dtype)
        here: list[Any] = [Ellipsis]
        for (lower, upper), (first, _) in zip(block, box, strict=True):
            here.append(slice(lower - first, upper - first))
        result[tuple(here)] = value
    assert result is not None
    return result


def _blocks(box: list[Interval], points: int) -> Iterator[list[Interval]]:
    """Yield parts of a box with at most `points` points each, or with a single one."""
    lengths = [upper - lower for lower, upper in box]
    if prod(lengths) <= points or max(lengths, default=1) <= 1:
        yield box
        return
    axis = lengths.index(max(lengths))
    lower, upper = box[axis]
    for interval in pairwise((lower, (lower + upper) // 2, upper)):
        yield from _blocks([*box[:axis], interval, *box[axis + 1 :]], points)


class Evaluation:
    """Expressions over `tensors`.

    `shapes` are those that `.shape` refers to, `intervals` those of reduction variables.
    """

    def __init__(
        self,
        tensors: Mapping[str, Array],
        shapes: Mapping[str, tuple[int, ...]],
        intervals: Mapping[str, Interval],
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shapes = shapes
        self.intervals = intervals
        self.exact = all(tensor.dtype.kind in "iub" for tensor in tensors.values())
        self.tensors = {
            name: tensor.astype(np.int64 if tensor.dtype.kind in "iub" else self.dtype, copy=False)
            for name, tensor in tensors.items()
        }

    def interval(self, name: str) -> Interval:
        """Return the values that a variable takes."""
        if name not in self.intervals:
            raise UnsuitedError(f"the extent of '{name}' is not known")
        return self.intervals[name]

    def value(self, node: Index, at: Positions) -> Array:
        """Return an expression at all positions. Raises UnsuitedError."""
        match node:
            case Number(value=number):
                return self.number(number)
            case Variable(name=name):
                return at[name]
            case Extent(tensor=tensor, axis=axis):
                return self.number(self.shapes[tensor][axis])
            case Element():
                found, inside = self.element(node, at)
                if not inside.all():
                    raise UnsuitedError(f"reads {node.tensor} outside its shape")
                return found
            case Pad(element=element, value=filler):
                found, inside = self.element(element, at)
                return self.chosen(inside, found, self.value(filler, at))
            case Unary(operator=operator, operand=operand):
                value = self.value(operand, at)
                return np.negative(value) if operator == "-" else _truth(np.logical_not(value))
            case Binary(operator=operator, left=left, right=right):
                return self.binary(operator, self.value(left, at), self.value(right, at))
            case Call(function=function, arguments=arguments):
                return self.call(function, [self.value(argument, at) for argument in arguments])
            case ReducerCall():
                return self.reduce(node, at)
            case OpaqueElement() | Attribute() | Choice() | Star() | FullSlice():
                raise UnsuitedError(f"{type(node).__name__} has no value of whole arrays")
            case _:
                assert_never(node)

    def number(self, value: int | float) -> Array:
        """Return a constant, without axes."""
        if isinstance(value, int):
            _bounded(abs(value))
        return np.asarray(value, np.int64 if isinstance(value, int) else self.dtype)

    def element(self, node: Element, at: Positions) -> tuple[Array, Array]:
        """Return the elements that an access reads, and whether each lies inside the tensor."""
        tensor = self.tensors[node.tensor]
        if len(node.indices) != tensor.ndim or 0 in tensor.shape:
            raise UnsuitedError(f"reads {node.tensor} of shape {tensor.shape}")
        inside = np.asarray(True)
        places = []
        for index, extent in zip(node.indices, tensor.shape, strict=True):
            place = self.whole(index, at)
            inside = inside & (place >= 0) & (place < extent)
            places.append(np.clip(place, 0, extent - 1))
        return np.asarray(tensor[tuple(places)]), inside

    def whole(self, index: Index, at: Positions) -> Array:
        """Return an index, which may be floats that hold whole numbers."""
        place = self.value(index, at)
        if place.dtype == np.int64:
            return place
        if not (np.isfinite(place) & (place == np.floor(place))).all():
            raise UnsuitedError("an index is a whole number")
        return place.astype(np.int64)

    def chosen(self, condition: Array, x: Array, y: Array) -> Array:
        """Return one of two values everywhere."""
        integers = x.dtype == y.dtype == np.int64
        return np.asarray(np.where(condition, x, y), np.int64 if integers else self.dtype)

    def binary(self, operator: str, a: Array, b: Array) -> Array:
        """Return an operator of the language, exact for integers."""
        if operator in TRUTH:
            return _truth(BINARY_UFUNCS[operator](a, b))
        integers = a.dtype == b.dtype == np.int64
        if integers and operator in ARITHMETIC:
            _bounded(_most(a) * _most(b) if operator == "*" else _most(a) + _most(b))
            return np.asarray(BINARY_UFUNCS[operator](a, b))
        if integers and operator in DIVISION and (b != 0).all():
            return np.asarray(BINARY_UFUNCS[operator](a, b))
        if integers and operator == "**" and (b >= 0).all():
            _bounded(max(2, _most(a)) ** min(_most(b), 64))
            return np.asarray(np.power(a, b))
        ufunc = np.float_power if operator == "**" else BINARY_UFUNCS[operator]
        return np.asarray(ufunc(a.astype(self.dtype), b.astype(self.dtype)), self.dtype)

    def call(self, function: str, arguments: list[Array]) -> Array:
        """Return a function of the language."""
        entry = FUNCTIONS[function]
        if entry.integer and all(argument.dtype == np.int64 for argument in arguments):
            _bounded(max(map(_most, arguments)) ** (2 if function == "square" else 1))
            return np.asarray(entry.implementation(*arguments)).astype(np.int64)
        floats = [argument.astype(self.dtype) for argument in arguments]
        return np.asarray(entry.implementation(*floats), self.dtype)

    def reduce(self, node: ReducerCall, at: Positions) -> Array:
        """Return the terms of a reduction combined, in the order of its variables, the last one fastest."""
        depth = max((value.ndim for value in at.values()), default=0)
        lengths = [upper - lower for lower, upper in (self.interval(b.name) for b in node.variables)]
        if min(lengths, default=1) <= 0:
            raise UnsuitedError("a reduction over nothing")
        inner = dict(at)
        for number, binder in enumerate(reversed(node.variables)):
            values = np.arange(*self.interval(binder.name))
            inner[binder.name] = values.reshape(-1, *[1] * (depth + number))
        body = self.value(node.body, inner)
        rank = depth + len(lengths)
        body = body.reshape((1,) * (rank - body.ndim) + body.shape)
        outer = body.shape[len(lengths) :]
        terms = np.broadcast_to(body, (*lengths, *outer)).reshape(prod(lengths), *outer)
        return self.combined(node.reducer, terms)

    def combined(self, reducer: AnyReducer, terms: Array) -> Array:
        """Return terms along the first axis, one after the other."""
        match reducer:
            case CustomReducer():
                total: Array = terms[0]
                body = combination(reducer)
                for term in terms[1:]:
                    total = self.value(body, {reducer.left: total, reducer.right: term})
                return total
            case Reducer.SUM | Reducer.PROD:
                if terms.dtype == np.int64:
                    most = _most(terms)
                    size = (
                        most * len(terms) if reducer is Reducer.SUM else max(most, 2) ** min(len(terms), 64)
                    )
                    _bounded(size)
                return np.asarray(UFUNCS[reducer].accumulate(terms, axis=0)[-1])
            case Reducer.MAX | Reducer.MIN:
                return np.asarray(UFUNCS[reducer].reduce(terms, axis=0))
            case _:
                assert_never(reducer)


def _truth(values: Any) -> Array:
    return np.asarray(values).astype(np.int64)


def _most(values: Array) -> int:
    """Return the largest size of integers."""
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


def _bounded(size: int) -> None:
    """Raise UnsuitedError if integers of this size may be too large for a float."""
    if size > LARGEST:
        raise UnsuitedError(f"integers up to {size} are too large")
