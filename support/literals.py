"""Literals of Python in texts of others, such as `(3, 3)`, read without executing anything."""

from __future__ import annotations

import ast

MAX_CHARACTERS = 1000
"""The most characters of a literal."""


def literal(text: str) -> object:
    """Return the value of a literal. Raises ValueError for any other text, and for one that is too long."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a literal has at most {MAX_CHARACTERS:,} characters")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:  # {[]: 1} is a TypeError
        raise ValueError(f"{text[:80]!r} is not a literal") from error
