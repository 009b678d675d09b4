"""Descriptions with one variable more: an operator that is applied to each of several tensors at once.

    lambda i, j: data[i, j] + bias[j]
    lambda part=4, i, j: data[part, i, j] + bias[j]

No operator is known by its name, and the new variable is one like any other: strategies along it follow from
the description.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ...tdl import ast
from ...tdl.traverse import Node, transform, variable_names, walk


def applied(description: ast.Description, tensors: Set[str], variable: str, extent: int) -> ast.Description:
    """Return a description that is applied to each value of a new first dimension of some tensors."""
    return with_first(indexed(description, tensors, ast.Variable(variable)), variable, extent)


def indexed(description: ast.Description, tensors: Set[str], place: ast.Expression) -> ast.Description:
    """Return a description that reads some tensors at a place in a new first dimension.

    Variables of the place may be unbound still.
    """

    def lifted(node: Node) -> Node:
        match node:
            case ast.Element(tensor=tensor, indices=indices) if tensor in tensors:
                return replace(node, indices=(place, *indices))
            case ast.Extent(tensor=tensor, axis=axis) if tensor in tensors:
                return replace(node, axis=axis + 1)
            case _:
                return node

    return transform(description, lifted)


def with_first(description: ast.Description, variable: str, extent: int) -> ast.Description:
    """Return a description whose only output has a new first variable."""
    (output,) = description.outputs
    first = ast.Binder(variable, ast.Number(extent))
    return replace(description, outputs=(replace(output, variables=(first, *output.variables)),))


def unused(description: ast.Description, name: str) -> str:
    """Return a name that nothing in a description has."""
    taken = variable_names(description) | set(description.tensor_names)
    taken.update(node.name for node in walk(description) if isinstance(node, ast.Binder))
    while name in taken:
        name += "_"
    return name
