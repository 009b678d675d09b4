"""Whether the integers that a node is computed from fit into 64 bits; those that do not become floats."""

from __future__ import annotations

from ...kernels.integer_bounds import INT64, combined, reduced
from .affine import Ranges
from .blocks import volume
from .functions import LoopTypes, loop
from .ir import Apply, Constant, Iota, Node, Reduction


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
                return self._applied(function, [self.of(argument) for argument in chosen])
            case Reduction(reducer=reducer, variables=variables, body=body):
                bound, terms = self.of(body), volume(frozenset(variables), self._ranges)
                return None if bound is None else reduced(reducer, bound, terms)
            case _:
                return None

    def _applied(self, function: str, bounds: list[int | None]) -> int | None:
        known = [bound for bound in bounds if bound is not None]
        kind = LoopTypes.NUMBER if function == "where" else loop(function).kind
        if len(known) < len(bounds) or kind is LoopTypes.FLOAT:
            return None
        return combined(function, known) if kind is LoopTypes.NUMBER else 1
