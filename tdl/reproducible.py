"""Whether an expression has the same bits wherever it is computed.

Copies of elements do, and so do operations whose result is the nearest number to the exact one. Sums depend
on the order of their terms, and other functions on how they are computed: for the whole or a part, by NumPy
or by C, for elements that are next to each other or not.
"""

from __future__ import annotations

from .ast import Binary, Call, Expression, OpaqueElement, Reducer, ReducerCall
from .functions import FUNCTIONS
from .traverse import walk

_CHOOSING = (Reducer.MAX, Reducer.MIN)


def is_reproducible(expression: Expression) -> bool:
    """Return whether two computations of an expression, from equal elements, surely have equal bits."""
    for node in walk(expression):
        match node:
            case ReducerCall(reducer) if reducer not in _CHOOSING:
                return False
            case Call(function) if not FUNCTIONS[function].integer:
                return False
            case Binary("**") | OpaqueElement():
                return False
            case _:
                pass
    return True
