"""Distinguish descriptions that compare equal but differ in the type of a literal (2 and 2.0)."""

from __future__ import annotations

from ...tdl import ast
from ...tdl.traverse import custom_reducers, walk


def number_types(description: ast.Description) -> tuple[type, ...]:
    """Return types of the literals in text order: 2 and 2.0 are equal, but `x // 2` is an index and `x //
    2.0` not.

    Part of the key wherever results are cached by description.
    """
    trees = (description, *(reducer.body for reducer in custom_reducers(description)))
    return tuple(type(node.value) for tree in trees for node in walk(tree) if isinstance(node, ast.Number))
