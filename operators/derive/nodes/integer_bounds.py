"""Whether the integers that a node is computed from fit into 64 bits; those that do not become floats."""

from __future__ import annotations

from collections.abc import Sequence

from ....tdl.ast import Reducer
from .affine import Ranges
from .blocks import volume
from .functions import LoopTypes, loop
from .ir import Apply, Constant, Iota, Node, Reduction

INT64 = 1 << 63


def fits(node: Node, ranges: Ranges) -> bool:
    """Tell whether a node's integers fit. Those read from tensors have no bound: they wrap as NumPy's do."""
    largest = _Largest(ranges).of(node)
    return largest is None or largest < INT64


class _Largest:
    """Bounds of the absolute values of integers, each found once."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._known: dict[Node, int | None] = {}

    def of(self, node: Node) -> int | None:
        """Return a bound, at most `INT64`; None for floats and unknown integers."""
        if node not in self._known:
            self._known[node] = self._found(node)
        return self._known[node]

    def _found(self, node: Node) -> int | None:
        match node:
            case Constant(value=int(value)):
                return abs(value)
            case Iota(variable=name):
                first, stop = self._ranges[name]
                return max(abs(first), abs(stop - 1))
            case Apply(function=function, arguments=arguments):
                chosen = arguments[1:] if function == "where" else arguments
                bounds = [self.of(argument) for argument in chosen]
                known = [bound for bound in bounds if bound is not None]
                return _applied(function, known) if len(known) == len(bounds) else None
            case Reduction(reducer=reducer, variables=variables, body=body):
                bound = self.of(body)
                return (
                    None
                    if bound is None
                    else _reduced(reducer, bound, volume(frozenset(variables), self._ranges))
                )
            case _:
                return None


def _applied(function: str, bounds: Sequence[int]) -> int | None:
    match function, bounds:
        case "where", (a, b):
            return max(a, b)
        case "+" | "-", (a, b):
            return min(a + b, INT64)
        case "*", (a, b):
            return min(a * b, INT64)
        case "**", (base, exponent):
            return _raised(base, exponent)
        case "square", (base,):
            return _raised(base, 2)
    match loop(function).kind:
        case LoopTypes.NUMBER:
            return max(bounds)
        case LoopTypes.COMPARISON | LoopTypes.LOGICAL:
            return 1
        case LoopTypes.FLOAT:
            return None


def _reduced(reducer: Reducer, bound: int, terms: int) -> int:
    match reducer:
        case Reducer.SUM:
            return min(bound * terms, INT64)
        case Reducer.PROD:
            return _raised(bound, terms)
        case Reducer.MAX | Reducer.MIN:
            return bound


def _raised(base: int, exponent: int) -> int:
    """Return a bound of a power, at most `INT64`."""
    return 1 if base < 2 else min(base ** min(exponent, 63), INT64)
