"""Evaluate a description element by element: the reference that every kernel is compared with.

Slow and obvious on purpose: one Python evaluation per element, in float64, or in exact integers if every
tensor holds integers. Conditions do not short-circuit, as in a kernel that computes whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from ..errors import DataError, OperatorError, ShapeError
from ..support.wording import counted
from .arithmetic import ARITHMETIC, COMBINE, Operation, Scalar, call
from .ast import (
    AnyReducer,
    Attribute,
    Binary,
    Binder,
    Call,
    Choice,
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
    Reducer,
    ReducerCall,
    Star,
    Unary,
    Variable,
)
from .numbers import real_array
from .opaque import call_opaque
from .points import require_few_points
from .reducers import combination

Array = npt.NDArray[Any]
Interval = tuple[int, int]
Position = dict[str, int]

MOST_POINTS = 2**26
"""The most points at which a description is interpreted: minutes."""


def interpret(
    description: Description,
    extents: Mapping[str, int],
    tensors: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    box: Mapping[str, Interval] | None = None,
    opaque: Mapping[str, Callable[..., Array]] | None = None,
) -> tuple[Array, ...]:
    """Return the outputs of a specialised description (no attributes, no starred variables).

    `tensors` are whole, `shapes` those that `.shape` refers to. `box` restricts variables to intervals:
    the outputs are then the parts (under a reduction the partial results) of that box; it is for
    descriptions without stages. `opaque` gives the functions behind `Opaque()`. Variables of one name share
    one extent, in all stages.

    Raises `ShapeError` for an element outside its tensor and for Max or Min over nothing, `DataError` for a
    tensor without numbers and an index that is not a whole number, `OperatorError` for an opaque function not
    given, `ExecutionError` for more points than are worth waiting for.
    """
    if description.attributes:
        raise OperatorError(
            f"'{description.name}' has attributes without values; specialise it before interpreting it"
        )
    if box is not None and description.stages:
        raise OperatorError(f"'{description.name}' has stages; interpret a box of one stage at a time")
    intervals = {name: (0, extent) for name, extent in extents.items()} | dict(box or {})
    known = {
        name: real_array(f"'{description.name}': tensor '{name}'", tensor) for name, tensor in tensors.items()
    }
    exact = all(tensor.dtype.kind in "iub" for tensor in known.values())
    run = _Run(description.name, intervals, known, dict(shapes), dict(opaque or {}))
    for value in (*[stage.value for stage in description.stages], *description.outputs):
        require_few_points(description.name, value, run.interval, MOST_POINTS)
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
        """Return all elements of a lambda; integers where `exact` and every element is one."""
        shape = tuple(max(0, upper - lower) for lower, upper in map(self.interval, value.variables))
        elements = [self.value(value.body, at) for at in self.positions(value.variables, {})]
        kind = np.int64 if exact and all(isinstance(element, int) for element in elements) else np.float64
        try:
            return np.array(elements, kind).reshape(shape)
        except OverflowError:
            raise DataError(f"'{self.operator}' gives an integer that does not fit 64 bits") from None

    def interval(self, binder: Binder) -> Interval:
        """Return the values a variable takes."""
        if binder.star or binder.name not in self.intervals:
            raise OperatorError(f"'{self.operator}' has no extent for variable '{binder.name}'")
        return self.intervals[binder.name]

    def positions(self, variables: tuple[Binder, ...], outer: Position) -> Iterator[Position]:
        """Yield every assignment of the variables, the last one fastest."""
        for values in product(*(range(*self.interval(binder)) for binder in variables)):
            yield outer | dict(zip((binder.name for binder in variables), values, strict=True))

    def value(self, node: Expression, at: Position) -> Scalar:
        """Return one expression at one position."""
        match node:
            case Number(value=number):
                return number
            case Variable(name=name):
                return at[name]
            case Extent(tensor=tensor, axis=axis):
                return self.shapes[tensor][axis]
            case Element():
                index, found = self.element(node, at)
                if found is None:
                    raise self.outside(node.tensor, index, at)
                return found
            case Pad(element=element, value=filler):
                _, found = self.element(element, at)
                return self.value(filler, at) if found is None else found
            case Unary(operator=operator, operand=operand):
                return -self.value(operand, at) if operator == "-" else int(not self.value(operand, at))
            case Binary(operator=operator, left=left, right=right):
                return ARITHMETIC[operator](self.value(left, at), self.value(right, at))
            case Call(function=function, arguments=arguments):
                return call(function, [self.value(argument, at) for argument in arguments])
            case ReducerCall(reducer=reducer, variables=variables, body=body):
                return self.reduce(
                    reducer, [self.value(body, inner) for inner in self.positions(variables, at)]
                )
            case OpaqueElement():
                return self.opaque_element(node, at)
            case Attribute(name=name) | Choice(attribute=name):
                raise OperatorError(
                    f"'{self.operator}': attribute '{name}' has no value; specialise it first"
                )
            case _:
                assert_never(node)

    def reduce(self, reducer: AnyReducer, values: list[Scalar]) -> Scalar:
        """Return the values combined in order, or the reducer's identity if there are no values."""
        if values:
            return reduce(self.combiner(reducer), values)
        match reducer:
            case CustomReducer(identity=identity):
                return identity
            case Reducer.SUM:
                return 0
            case Reducer.PROD:
                return 1
            case Reducer.MAX | Reducer.MIN:
                raise ShapeError(f"'{self.operator}' takes {reducer} over an empty range, which has no value")
            case _:
                assert_never(reducer)

    def combiner(self, reducer: AnyReducer) -> Operation:
        """Return how a reducer combines two values."""
        if isinstance(reducer, Reducer):
            return COMBINE[reducer]

        body = combination(reducer)

        def combine(left: Scalar, right: Scalar) -> Scalar:
            # Evaluate at a position that holds the reducer's two variables, which may be any numbers.
            pair: Any = {reducer.left: left, reducer.right: right}
            return self.value(body, pair)

        return combine

    def array(self, tensor: str) -> Array:
        """Return a tensor's elements."""
        if tensor not in self.tensors:
            raise DataError(f"'{self.operator}' reads tensor '{tensor}', which was not given")
        return self.tensors[tensor]

    def element(self, node: Element, at: Position) -> tuple[tuple[int, ...], Scalar | None]:
        """Return the position that an access reads and the element there; None if outside the tensor."""
        index, array = self.index(node.indices, at), self.array(node.tensor)
        if len(index) != array.ndim:
            raise ShapeError(
                f"'{self.operator}' reads {node.tensor} with {counted(len(index), 'index', 'indices')}, "
                f"but its shape is {array.shape}"
            )
        return index, _scalar(array[index]) if _inside(index, array.shape) else None

    def index(self, indices: tuple[Index, ...], at: Position) -> tuple[int, ...]:
        """Return the whole numbers that the indices are at a position."""
        return tuple(self.whole(index, at) for index in indices)

    def whole(self, index: Index, at: Position) -> int:
        """Return one index, which may be a float that holds a whole number (data used as an index)."""
        if isinstance(index, Star | FullSlice):
            raise OperatorError(f"'{self.operator}' has a starred index or ':' where one element is read")
        value = self.value(index, at)
        if isinstance(value, float) and not value.is_integer():
            raise DataError(f"'{self.operator}' uses {value} as an index at {at}; an index is a whole number")
        return int(value)

    def outside(self, tensor: str, index: tuple[int, ...], at: Position) -> ShapeError:
        """Return the complaint about an element that does not exist."""
        place = ", ".join(map(str, index))
        shape = self.array(tensor).shape
        return ShapeError(
            f"'{self.operator}' reads {tensor}[{place}] at {at}, outside its shape {shape}; "
            f"shrink the extents or write pad({tensor}[...], value)"
        )

    def opaque_element(self, node: OpaqueElement, at: Position) -> Scalar:
        """Return one element of an opaque function's result; each result is computed once."""
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
        """Return a fixed index of an opaque function's argument, None for a whole dimension."""
        return None if isinstance(index, FullSlice) else self.whole(index, at)


def _numpy_index(indices: tuple[int | None, ...]) -> tuple[int | slice, ...]:
    """Fixed indices and whole dimensions as NumPy's index."""
    return tuple(slice(None) if index is None else index for index in indices)


def _inside(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(0 <= i < extent for i, extent in zip(index, shape, strict=True))


def _scalar(value: Any) -> Scalar:
    item: Scalar = value.item()
    return int(item) if isinstance(item, bool) else item
