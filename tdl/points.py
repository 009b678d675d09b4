"""The number of points at which a description is evaluated, which is refused if it would take hours."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ..errors import ExecutionError
from .ast import Binder, Lambda, ReducerCall
from .traverse import Node, children

Intervals = Callable[[Binder], tuple[int, int]]
"""Returns the values that a variable takes."""


def points(value: Lambda, interval: Intervals) -> int:
    """Return at how many points a lambda is evaluated, those of its reductions included."""
    outer = _product(value.variables, interval)
    found = outer
    stack: list[tuple[Node, int]] = [(value.body, outer)]
    while stack:
        node, times = stack.pop()
        if isinstance(node, ReducerCall):
            times *= _product(node.variables, interval)
            found += times
        stack += [(child, times) for child in children(node)]
    return found


def require_few_points(operator: str, value: Lambda, interval: Intervals, most: int) -> None:
    """Raise ExecutionError if a lambda is evaluated at more than `most` points."""
    found = points(value, interval)
    if found > most:
        raise ExecutionError(
            f"'{operator}' would be evaluated at {found:,} points, and at most {most:,} are; "
            "give smaller shapes"
        )


def _product(variables: tuple[Binder, ...], interval: Intervals) -> int:
    return prod([max(0, upper - lower) for lower, upper in map(interval, variables)])
