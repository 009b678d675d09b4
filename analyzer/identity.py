"""What tells descriptions apart that compare equal."""

from __future__ import annotations

from ..tdl import ast
from ..tdl.traverse import walk


def number_types(description: ast.Description) -> tuple[type, ...]:
    """Types of the literals in text order: 2 and 2.0 are equal, but `x // 2` is an index and `x // 2.0` not.

    Part of the key wherever results are cached by description.
    """
    return tuple(type(node.value) for node in walk(description) if isinstance(node, ast.Number))
