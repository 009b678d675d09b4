"""`ArgMax` and `ArgMin`: the first position of the largest or smallest value, in terms of two reducers.

ArgMax(lambda k: x[k])  =  Min(lambda k: where(x[k] == Max(lambda k_: x[k_]), k, 2**53))
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .ast import Binary, Binder, Call, Expression, Lambda, Number, Reducer, ReducerCall, Span, Variable
from .traverse import substitute

EXTREMES: Mapping[str, Reducer] = MappingProxyType({"ArgMax": Reducer.MAX, "ArgMin": Reducer.MIN})
"""The reducer that finds the value whose position is wanted."""

NOWHERE = 2**53
"""The position if no value equals the extreme one, as when all are NaN: an integer that no index reaches."""


def position(reducer: Reducer, over: Lambda, taken: str, span: Span) -> Expression:
    """Return the first position, over a lambda of one variable, of the value that a reducer finds.

    `taken` is the text, whose words the second variable must not be.
    """
    (binder,) = over.variables
    other = binder.name + "_"
    while other in taken:
        other += "_"
    values = substitute(over.body, {binder.name: Variable(other, binder.span)})
    extreme = ReducerCall(reducer, (Binder(other, binder.extent, span=binder.span),), values, span)
    found = Binary("==", over.body, extreme, span)
    place = Variable(binder.name, binder.span)
    return ReducerCall(
        Reducer.MIN, over.variables, Call("where", (found, place, Number(NOWHERE, span)), span), span
    )
