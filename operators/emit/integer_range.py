"""Whether the integers of a call fit into 64 bits, in which kernels compute them.

Descriptions compute integers exactly. Known ranges of index variables, extents and constants bound every
integer that is computed without reading a tensor. Integers read from tensors have no bound here: they wrap as
NumPy's do.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...tdl import ast
from ..kernels.integer_bounds import INT64, combined, reduced
from ..kernels.kernel import KernelCall
from .functions import SPELLINGS
from .statements import LARGEST_POWER


def fits_64_bits(call: KernelCall) -> bool:
    """Tell whether every integer that a call computes without a tensor fits."""
    largest = {name: max(abs(lower), abs(upper - 1)) for name, (lower, upper) in call.box.items()}
    lengths = {name: max(upper - lower, 0) for name, (lower, upper) in call.box.items()}
    integers = _Integers(largest, lengths, call.bound.shapes)
    for output in call.bound.description.outputs:
        integers.bound(output.body)
    return integers.most < INT64


class _Integers:
    """Bounds of the absolute values of integers; `most` is the largest so far, and no more than `INT64`."""

    def __init__(
        self,
        largest: Mapping[str, int],
        lengths: Mapping[str, int],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        self._largest = largest
        self._lengths = lengths
        self._shapes = shapes
        self.most = 0

    def bound(self, node: ast.Index) -> int | None:
        """Return the bound of a node; None if it is a float, or depends on a tensor."""
        found = self._bound(node)
        if found is None:
            return None
        found = min(found, INT64)
        self.most = max(self.most, found)
        return found

    def _bound(self, node: ast.Index) -> int | None:
        match node:
            case ast.Number(value=value):
                return abs(value) if isinstance(value, int) else None
            case ast.Variable(name=name):
                return self._largest[name]
            case ast.Extent(tensor=tensor, axis=axis):
                return self._shapes[tensor][axis]
            case ast.Pad(element=element, value=value):
                self.bound(value)
                return self.bound(element)
            case ast.Element(indices=indices):
                for index in indices:
                    self.bound(index)
                return None
            case ast.Unary(operator=operator, operand=operand):
                inner = self.bound(operand)
                return inner if operator == "-" else 1
            case ast.Binary():
                return self._of_two(node)
            case ast.Call(function=function, arguments=arguments):
                return self._of_call(function, [self.bound(each) for each in arguments])
            case ast.ReducerCall():
                return self._of_reduction(node)
            case _:
                return None

    def _of_two(self, node: ast.Binary) -> int | None:
        left, right = self.bound(node.left), self.bound(node.right)
        if node.operator in ("<", "<=", ">", ">=", "==", "!=", "and", "or"):
            return 1
        if left is None or right is None:
            return None
        match node.operator, node.right:
            case "**", ast.Number(value=int(power)) if 0 <= power < LARGEST_POWER:
                return combined("**", (left, power))
            case "/" | "**", _:
                return None
            case _:
                return combined(node.operator, (left, right))

    def _of_call(self, function: str, bounds: list[int | None]) -> int | None:
        if function == "where":
            bounds = bounds[1:]
        elif not SPELLINGS[function].integer:
            return None
        known = [each for each in bounds if each is not None]
        if len(known) < len(bounds):
            return None
        return combined(function, known)

    def _of_reduction(self, node: ast.ReducerCall) -> int | None:
        body = self.bound(node.body)
        if body is None:
            return None
        return reduced(node.reducer, body, prod(self._lengths[binder.name] for binder in node.variables))
