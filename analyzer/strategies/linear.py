"""Find whether an operator is linear in some of its tensors, all others held.

    f(a + b, c + d) = f(a, c) + f(b, d)        linear in both tensors together

Such an operator may read the terms of a sum that is not reduced yet: its results are terms of its output.
"""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from ...tdl import ast
from ...tdl.traverse import Node, walk


class _Degree(Enum):
    """How an expression depends on the tensors."""

    ZERO = "zero"
    """It is zero."""

    CONSTANT = "constant"
    """It does not read them."""

    LINEAR = "linear"
    """It is linear in them."""

    OTHER = "other"
    """It is anything else."""


def is_linear(description: ast.Description, tensors: Set[str]) -> bool:
    """Tell whether every output of a description without stages is linear in the named tensors together.

    An output that is always zero is linear in no tensor at all. False may also mean that the text does not
    show it.
    """
    linear = (_Degree.LINEAR, _Degree.ZERO)
    return all(_degree(output.body, tensors) in linear for output in description.outputs)


def _degree(node: Node, tensors: Set[str]) -> _Degree:
    match node:
        case ast.Number(value=0):
            return _Degree.ZERO
        case ast.Element(tensor=tensor) if tensor in tensors:
            return _Degree.OTHER if any(_reads(index, tensors) for index in node.indices) else _Degree.LINEAR
        case ast.Pad(element=element, value=value):
            return _sum(_degree(element, tensors), _degree(value, tensors))
        case ast.Unary("-", operand):
            return _degree(operand, tensors)
        case ast.Binary("+" | "-", left, right):
            return _sum(_degree(left, tensors), _degree(right, tensors))
        case ast.Binary("*", left, right):
            return _product(_degree(left, tensors), _degree(right, tensors))
        case ast.Binary("/", left, right) if not _reads(right, tensors):
            return _degree(left, tensors)
        case ast.Call("where", (condition, yes, no)) if not _reads(condition, tensors):
            return _sum(_degree(yes, tensors), _degree(no, tensors))
        case ast.ReducerCall(ast.Reducer.SUM, _, body):
            return _degree(body, tensors)
        case _:
            return _Degree.OTHER if _reads(node, tensors) else _Degree.CONSTANT


def _reads(node: Node, tensors: Set[str]) -> bool:
    return any(isinstance(part, ast.Element) and part.tensor in tensors for part in walk(node))


def _sum(left: _Degree, right: _Degree) -> _Degree:
    """Return the degree of a sum, or of a choice between two values."""
    if _Degree.ZERO in (left, right):
        return right if left is _Degree.ZERO else left
    return left if left is right else _Degree.OTHER


def _product(left: _Degree, right: _Degree) -> _Degree:
    if _Degree.ZERO in (left, right):
        return _Degree.ZERO
    both = {left, right}
    if both <= {_Degree.CONSTANT, _Degree.LINEAR} and (left, right) != (_Degree.LINEAR, _Degree.LINEAR):
        return _Degree.LINEAR if _Degree.LINEAR in both else _Degree.CONSTANT
    return _Degree.OTHER
