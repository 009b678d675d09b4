"""Lookups in a table as sums of masked rows, so that each part of the table can be looked up by itself.

    lambda n, j: table[row[n], j]
    lambda n, j: Sum(lambda at: where(row[n] == at, table[at, j], 0))

The sum runs over the rows of the table, and all but one of its terms are 0. So a worker that holds some rows
computes a partial result of all samples: its rows where they were chosen, and 0 elsewhere. Both descriptions
give the same numbers for rows that are in the table. No operator is known by its name: an index that is read
from a tensor is a lookup.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ...errors import GraphError
from ...operators.stages.stage import derived
from ...tdl import ast
from ...tdl.traverse import Node, reads_elements, transform, walk
from ..graph import Operation, Phase
from .edit import GraphEdit
from .lifted import unused

VARIABLE = "at"


def mask_lookups(edit: GraphEdit, parameter: int) -> None:
    """Let all lookups in a parameter be sums of masked rows, those of updates excepted.

    Raises GraphError if there is none.
    """
    found = [each for each in edit.graph.operations if chosen_axes(each, parameter)]
    if not found:
        raise GraphError(
            f"{edit.tensors[parameter].name!r} is not read at rows that data choose, so no sums are masked"
        )
    for operation in found:
        description = operation.bound.description
        given = dict(zip(description.tensor_names, operation.inputs, strict=True))
        tables = {name for name, tensor in given.items() if tensor == parameter}
        edit.replace_stage(operation, derived(masked(description, tables)), given)


def chosen_axes(operation: Operation, parameter: int) -> frozenset[int]:
    """Return the dimensions along which an operation of a pass reads a parameter at places from a tensor."""
    if operation.phase is Phase.UPDATE or parameter not in operation.inputs:
        return frozenset()
    description = operation.bound.description
    named = zip(description.tensor_names, operation.inputs, strict=True)
    tables = {name for name, tensor in named if tensor == parameter}
    return frozenset(
        axis
        for node in walk(description)
        if isinstance(node, ast.Element) and node.tensor in tables
        for axis, index in enumerate(node.indices)
        if reads_elements(index)
    )


def masked(description: ast.Description, tables: Set[str]) -> ast.Description:
    """Return a description whose lookups in some tensors are sums of masked elements.

    Raises GraphError if it reads one of them beyond its borders.
    """
    for node in walk(description):
        if isinstance(node, ast.Pad) and node.element.tensor in tables:
            raise GraphError(
                f"{description.name!r} reads {node.element.tensor!r} beyond its borders, so its lookups "
                "cannot be masked"
            )
    name = unused(description, VARIABLE)
    count = 0

    def summed(node: Node) -> Node:
        nonlocal count
        if not isinstance(node, ast.Element) or node.tensor not in tables:
            return node
        binders, equal, indices = [], [], list(node.indices)
        for axis, index in enumerate(node.indices):
            if reads_elements(index):
                each = f"{name}{count}" if count else name
                count += 1
                binders.append(ast.Binder(each, ast.Extent(node.tensor, axis)))
                equal.append(ast.Binary("==", index, ast.Variable(each)))  # type: ignore[arg-type]
                indices[axis] = ast.Variable(each)
        if not binders:
            return node
        condition = equal[0]
        for other in equal[1:]:
            condition = ast.Binary("and", condition, other)
        chosen = ast.Call("where", (condition, replace(node, indices=tuple(indices)), ast.Number(0)))
        return ast.ReducerCall(ast.Reducer.SUM, tuple(binders), chosen)

    return transform(description, summed)
