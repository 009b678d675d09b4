"""Which tensors may not be rounded: positions, labels, counts, and results that are compared.

A float16 has no 2049, a bfloat16 no 257. If a description uses a tensor as an index, or compares it with an
index variable, neither this tensor nor any that it is computed from may be rounded.

If it looks for an element among values that it computes, such as the largest of some products, rounding that
element would make it equal none of them. The tensors that it is computed from may be rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import isinf

from ..analyzer.bind.analysis import Analysis
from ..tdl import ast
from ..tdl.traverse import Node, children, reads_elements, walk
from .graph import Operation

_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_UNVALUED = frozenset(("and", "or", *_COMPARISONS))
"""Operators whose result does not depend on how large their operands are."""


def exact_tensors(operations: Sequence[Operation]) -> set[int]:
    """Tensors of operations in execution order whose values are used as positions, or become those, or are
    compared with computed ones.
    """
    exact: set[int] = set()
    compared: set[int] = set()
    for operation in reversed(operations):
        analysis = operation.bound.analysis
        tensors = dict(zip(analysis.description.tensor_names, operation.inputs, strict=True))
        wanted = set(_positions(analysis))
        for number, output in enumerate(operation.outputs):
            if output in exact:
                wanted.update(_sources(analysis, number))
        exact.update(tensors[name] for name in wanted)
        compared.update(tensors[name] for name in _compared(analysis))
    return exact | compared


@cache
def _positions(analysis: Analysis) -> frozenset[str]:
    """Tensors whose elements are indices, or are compared with index variables."""
    found: set[str] = set()
    for node in walk(analysis.description):
        match node:
            case ast.Element(indices=indices) | ast.OpaqueElement(indices=indices):
                for index in indices:
                    found.update(part.tensor for part in walk(index) if isinstance(part, ast.Element))
            case ast.Binary(operator, left, right) if operator in _COMPARISONS:
                if _counts(left) or _counts(right):
                    found.update((*value_sources(left), *value_sources(right)))
            case _:
                pass
    return frozenset(found)


@cache
def _compared(analysis: Analysis) -> frozenset[str]:
    """Tensors whose elements must equal computed values."""
    found: set[str] = set()
    for node in walk(analysis.description):
        if isinstance(node, ast.Binary) and node.operator in ("==", "!="):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, ast.Element) and reads_elements(other) and not _copies(other):
                    found.add(one.tensor)
    return frozenset(found)


def _copies(expression: Node) -> bool:
    """Tell whether every value is that of an element, rounded as that is, or is 0 or infinite."""
    pending: list[Node] = [expression]
    while pending:
        match pending.pop():
            case ast.Element():
                pass
            case ast.Number(value):
                if value and not isinf(value):
                    return False
            case ast.Pad(_, value):
                pending.append(value)
            case ast.Unary("-", operand):
                pending.append(operand)
            case ast.Call("where", (_, *chosen)) | ast.Call("maximum" | "minimum" | "abs" | "relu", chosen):
                pending.extend(chosen)
            case _:
                return False
    return True


@cache
def _sources(analysis: Analysis, output: int) -> frozenset[str]:
    """Tensors from whose elements the value of an output is chosen or computed."""
    return frozenset(value_sources(analysis.description.outputs[output].body))


def _counts(expression: Node) -> bool:
    """Tell whether an index variable is used as a value."""
    pending: list[Node] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Variable):
            return True
        if not isinstance(node, ast.Element | ast.OpaqueElement | ast.Binder):
            pending.extend(children(node))
    return False


def value_sources(expression: Node) -> Iterator[str]:
    """Yield the tensors that an expression's value is made of; conditions and indices only choose."""
    pending: list[Node] = [expression]
    while pending:
        match pending.pop():
            case ast.Element(tensor=tensor):
                yield tensor
            case ast.OpaqueElement(arguments=arguments):
                yield from (argument.tensor for argument in arguments)
            case ast.Binary(operator) if operator in _UNVALUED:
                pass
            case ast.Unary("not"):
                pass
            case ast.Call("where", (_, chosen, other)):
                pending += [chosen, other]
            case ast.Binder():
                pass
            case node:
                pending.extend(children(node))
