"""Specialise a description for given attributes and ranks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ...errors import ShapeError
from ...support.wording import counted
from ...tdl import ast
from ...tdl.traverse import Node, transform
from ..source_errors import error_at
from .attribute_values import Keyed, attribute_values, keyed, substitute
from .constant_folding import fold
from .star_expansion import expand_stars


def specialize(
    description: ast.Description, attributes: Mapping[str, object], ranks: Mapping[str, int]
) -> ast.Description:
    """Return the description with attributes replaced by their values, stars by index variables, and folded.

    `ranks` holds the number of dimensions of every tensor. Equal arguments give the same object. Raises
    OperatorError for an unknown, missing or malformed attribute, ShapeError if ranks do not fit, and
    DescriptionError for an axis that a tensor does not have.
    """
    values = attribute_values(description, attributes)
    given = tuple((name, ranks[name]) for name in description.tensor_names if name in ranks)
    return _specialize(description, keyed(values), given)


@cache
def _specialize(
    description: ast.Description,
    values: tuple[Keyed, ...],
    ranks: tuple[tuple[str, int], ...],
) -> ast.Description:
    without = substitute(description, {name: value for name, value, _ in values})
    expanded, known = expand_stars(without, dict(ranks))

    def rewrite(node: Node) -> Node:
        return _axis(description, node, known) if isinstance(node, ast.Extent) else fold(node)

    return transform(expanded, rewrite)


def _axis(description: ast.Description, node: ast.Extent, ranks: Mapping[str, int]) -> ast.Extent:
    """Return `tensor.shape[axis]` with an axis counted from the front."""
    rank = ranks.get(node.tensor)
    if rank is None:
        if node.axis < 0:
            raise ShapeError(f"{description.name}: the number of dimensions of {node.tensor} is not known")
        return node
    if not -rank <= node.axis < rank:
        raise error_at(
            description,
            node.span,
            f"{node.tensor} has {counted(rank, 'dimension')}, so there is no "
            f"{node.tensor}.shape[{node.axis}]",
            f"axes run from 0 to {rank - 1}" if rank else "",
        )
    return ast.Extent(node.tensor, node.axis % rank, node.span)
