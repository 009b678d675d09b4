"""Count the floating-point operations of a description as it is written.

An operation counts 1: arithmetic, a comparison, `and`, `or`, `not`, or a scalar function of any number of
arguments (`where` too, and both its branches are computed). A reduction over n elements counts n
combinations, the first being with the reducer's identity, so a multiply-add counts 2 and a reduction over
nothing counts 0. A combination counts 1, or the operations in the body of a custom reducer.

An operation on numbers, extents and index variables alone does not count, nor does anything inside an index.
Equal expressions count as often as they occur in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...support.integers import Integers
from ...tdl import ast
from ...tdl.traverse import Node, children, walk
from ..indices.formula import Formula, integer, total


@dataclass(frozen=True, slots=True)
class Count:
    """`sum(number * product of the extents of variables)`: how often operations run.

    `terms` are pairs of the number and the positions of the variables around the operations.
    """

    terms: tuple[tuple[int, tuple[int, ...]], ...]

    def at(self, extents: Sequence[int]) -> int:
        """Return the count for one extent per variable."""
        return sum(number * prod(extents[place] for place in places) for number, places in self.terms)

    def in_bulk(self, extents: Integers) -> Integers:
        """Return the counts for many settings of the extents: `[n, variable] -> [n]`."""
        counts = np.zeros(len(extents), np.int64)
        for number, places in self.terms:
            counts += number * extents[:, places].prod(axis=1)
        return counts

    def formula(self, extents: Sequence[Formula]) -> Formula:
        """Return the count as a polynomial."""
        return total(
            prod((extents[place] for place in places), start=integer(number)) for number, places in self.terms
        )


def count_operations(description: ast.Description, variables: Sequence[str]) -> Count | None:
    """Return the operations of a description without stages; None if an opaque function hides some."""
    places = {name: position for position, name in enumerate(variables)}
    found: Counter[tuple[int, ...]] = Counter()
    for output in description.outputs:
        counted = _count(output, places)
        if counted is None:
            return None
        found.update(counted)
    return Count(tuple((number, around) for around, number in found.items()))


def _count(output: ast.Lambda, places: Mapping[str, int]) -> Counter[tuple[int, ...]] | None:
    """Return operations by the variables around them.

    The stack is explicit: sums of thousands of terms are deep.
    """
    scope = tuple(places[binder.name] for binder in output.variables)
    visited: list[tuple[Node, tuple[int, ...]]] = []
    pending: list[tuple[Node, tuple[int, ...]]] = [(output.body, scope)]
    while pending:
        node, around = pending.pop()
        if isinstance(node, ast.OpaqueElement):
            return None
        if isinstance(node, ast.ReducerCall):
            around = (*around, *(places[binder.name] for binder in node.variables))
        visited.append((node, around))
        pending.extend((child, around) for child in _operands(node))
    found: Counter[tuple[int, ...]] = Counter()
    depends: set[int] = set()
    for node, around in reversed(visited):
        if isinstance(node, ast.Element | ast.ReducerCall) or any(
            id(part) in depends for part in _operands(node)
        ):
            depends.add(id(node))
            found[around] += _operations(node)
    return +found


def _operations(node: Node) -> int:
    """Return the operations of one node. A combination by a custom reducer counts those of its body."""
    match node:
        case ast.ReducerCall(ast.CustomReducer(body=body)):
            return sum(_operations(part) for part in walk(body))
        case ast.Unary() | ast.Binary() | ast.Call() | ast.ReducerCall():
            return 1
        case _:
            return 0


def _operands(node: Node) -> tuple[Node, ...]:
    """Return the values that a node computes with. Those inside an index are not among them."""
    match node:
        case ast.Element():
            return ()
        case ast.ReducerCall():
            return (node.body,)
        case _:
            return children(node)
