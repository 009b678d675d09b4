"""Custom reducers: check what they contain, combine arrays by them, and test their promise on 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product
from types import MappingProxyType
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from .ast import (
    AnyReducer,
    Attribute,
    Binary,
    Call,
    Choice,
    CustomReducer,
    Element,
    Expression,
    Extent,
    Number,
    OpaqueElement,
    Pad,
    Reducer,
    ReducerCall,
    Unary,
    Variable,
)
from .functions import BINARY_UFUNCS, FUNCTIONS
from .printer import format_expression
from .source import Diagnostic
from .traverse import variable_names, walk

Array = npt.NDArray[Any]
Combine = Callable[[Array, Array, Array], object]

UFUNCS: Mapping[Reducer, np.ufunc] = MappingProxyType(
    {
        Reducer.SUM: np.add,
        Reducer.MAX: np.maximum,
        Reducer.MIN: np.minimum,
        Reducer.PROD: np.multiply,
    }
)
"""How NumPy combines the values of each reducer."""

TOLERANCE = 1e-6
_TRIED = (0.0, 1.0)


def combiner(reducer: AnyReducer) -> Combine:
    """Return a function that combines two arrays by element into a third, which may be one of them."""
    if isinstance(reducer, Reducer):
        ufunc = UFUNCS[reducer]
        return lambda left, right, out: ufunc(left, right, out=out)
    return _combiner(reducer, combination(reducer))


def combination(reducer: CustomReducer) -> Expression:
    """Return what two values are combined into: the body, or the other value if one is the identity.

    The body may make something else of two identities, as `maximum(a, b) + log1p(exp(-abs(a - b)))` does of
    `-inf`. Threads of a card that have no terms combine them.
    """
    left, right, identity = Variable(reducer.left), Variable(reducer.right), Number(reducer.identity)
    unless_right = Call("where", (Binary("==", right, identity), left, reducer.body))
    return Call("where", (Binary("==", left, identity), right, unless_right))


def _combiner(reducer: CustomReducer, body: Expression) -> Combine:
    def combine(left: Array, right: Array, out: Array) -> None:
        with np.errstate(all="ignore"):
            out[...] = _value(body, {reducer.left: left, reducer.right: right}, out.dtype)

    return combine


def check_reducer_body(reducer: CustomReducer) -> list[Diagnostic]:
    """Return complaints about a body that holds more than its parameters, numbers and functions."""
    return [
        Diagnostic(
            f"the reducer '{reducer.name}' uses {_named(node)}",
            node.span,
            f"it may use its variables {reducer.left} and {reducer.right}, numbers and functions",
        )
        for node in walk(reducer.body)
        if isinstance(node, Element | Extent | Attribute | Choice | Pad | ReducerCall | OpaqueElement)
    ]


def check_promise(reducer: CustomReducer) -> list[Diagnostic]:
    """Return a complaint where 0 and 1 already show that the order or the identity matters.

    Finding nothing proves nothing: that the law holds is the user's promise.
    """
    used = variable_names(reducer.body)
    unused = [name for name in (reducer.left, reducer.right) if name not in used]
    if unused:
        message = f"the reducer '{reducer.name}' does not use '{unused[0]}'"
        hint = f"combine {reducer.left} and {reducer.right}"
        return [Diagnostic(message, reducer.body.span, hint)]
    broken = islice(_broken(_combiner(reducer, reducer.body), reducer), 1)
    return [
        Diagnostic(f"the reducer '{reducer.name}' is {message}", reducer.body.span, hint)
        for message, hint in broken
    ]


def _broken(combine: Combine, reducer: CustomReducer) -> Iterator[tuple[str, str]]:
    """Yield what 0 and 1 show to be wrong, and what to do."""
    order = "partial results are combined in any order and grouping, so the function must allow it"
    identity = "the identity changes nothing, like 0 in a sum and -inf in a maximum"

    def at(left: float, right: float) -> float:
        result = np.zeros(1)
        combine(np.array([left]), np.array([right]), result)
        return float(result[0])

    for a, b in product(_TRIED, repeat=2):
        if _differ(one := at(a, b), other := at(b, a)):
            yield f"not commutative: {a:g} and {b:g} give {one:g}, {b:g} and {a:g} give {other:g}", order
    for a, b, c in product(_TRIED, repeat=3):
        if _differ(one := at(at(a, b), c), other := at(a, at(b, c))):
            yield f"not associative: {a:g}, {b:g}, {c:g} give {one:g} or {other:g}", order
    for a in _TRIED:
        if _differ(one := at(a, reducer.identity), a):
            yield f"changed by its identity {reducer.identity:g}: {a:g} becomes {one:g}", identity


def _differ(one: float, other: float) -> bool:
    """Return whether two numbers are different beyond rounding; what is not finite says nothing."""
    return bool(np.isfinite(one) and np.isfinite(other)) and abs(one - other) > TOLERANCE * (1 + abs(one))


def _value(node: Expression, at: dict[str, Array], dtype: np.dtype[Any]) -> Any:
    match node:
        case Number(value=value):
            return float(value)
        case Variable(name=name):
            return at[name]
        case Unary(operator=operator, operand=operand):
            value = _value(operand, at, dtype)
            return np.negative(value) if operator == "-" else np.logical_not(value).astype(dtype)
        case Binary(operator=operator, left=left, right=right):
            value = BINARY_UFUNCS[operator](_value(left, at, dtype), _value(right, at, dtype))
            return value.astype(dtype) if value.dtype == np.bool_ else value
        case Call(function=function, arguments=arguments):
            values = (_value(argument, at, dtype) for argument in arguments)
            return FUNCTIONS[function].implementation(*values)
        case Element() | Extent() | Attribute() | Choice() | Pad() | ReducerCall() | OpaqueElement():
            raise AssertionError(f"the checker lets no {format_expression(node)} into a reducer")
        case _:
            assert_never(node)


def _named(node: object) -> str:
    match node:
        case Attribute(name=name) | Choice(attribute=name):
            return f"the attribute '{name}'"
        case ReducerCall(reducer=reducer):
            return f"the reducer {reducer}"
        case OpaqueElement(function=function):
            return f"the opaque function '{function}'"
        case Element(tensor=tensor) | Extent(tensor=tensor):
            return f"the tensor '{tensor}'"
        case _:
            return "pad"
