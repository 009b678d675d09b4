"""Which tensors are compared for equality, element by element: a maximum with what it was taken of."""

from __future__ import annotations

from functools import cache

from ..tdl import ast
from ..tdl.traverse import walk
from .exactness import value_sources


@cache
def compared_tensors(description: ast.Description) -> frozenset[str]:
    """Return the tensors whose elements a description compares for equality with those of another tensor."""
    found: set[str] = set()
    for node in walk(description):
        match node:
            case ast.Binary("==" | "!=", left, right):
                one, other = set(value_sources(left)), set(value_sources(right))
                if one and other and len(one | other) > 1:
                    found |= one | other
            case _:
                pass
    return frozenset(found)
