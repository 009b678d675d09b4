"""Which tensors hold whole numbers that may not be rounded: positions, labels, counts.

A float16 has no 2049, a bfloat16 no 257. If a description uses a tensor as an index, or compares it with an
index variable, neither this tensor nor any that it is computed from may be rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from ..analyzer.bind.analysis import Analysis
from ..tdl import ast
from ..tdl.traverse import Node, children, walk
from .graph import Operation

_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_UNVALUED = frozenset(("and", "or", *_COMPARISONS))
"""Operators whose result does not depend on how large their operands are."""


def exact_tensors(operations: Sequence[Operation]) -> set[int]:
    """Tensors of operations in execution order whose values are used as positions, or become those."""
    exact: set[int] = set()
    for operation in reversed(operations):
        analysis = operation.bound.analysis
        tensors = dict(zip(analysis.description.tensor_names, operation.inputs, strict=True))
        wanted = set(_positions(analysis))
        for number, output in enumerate(operation.outputs):
            if output in exact:
                wanted.update(_sources(analysis, number))
        exact.update(tensors[name] for name in wanted)
    return exact


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
