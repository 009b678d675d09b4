"""Wording shared by messages: numbers with their nouns, and suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LISTED = 9
"""The largest number of names that a message lists."""


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: `1 index`, `2 indices`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def suggestion(name: str, candidates: Iterable[str], most: int = 2) -> str:
    """Suggest up to `most` names that `name` may be a misspelling of: `did you mean 'x'?`, or an empty text.

    Names that begin with `name` come first, and among them those whose letters have the same case. If there
    are none, names with a similar spelling are suggested.
    """
    known = list(candidates)
    begun = [one for one in known if name and one.casefold().startswith(name.casefold())]
    begun.sort(key=lambda one: not one.startswith(name))
    near = begun[:most] or get_close_matches(name, known, n=most)
    return f"did you mean {' or '.join(repr(str(one)) for one in near)}?" if near else ""


def alternatives(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: `; did you mean 'x'?`, or a list of known names."""
    known = list(known)
    near = suggestion(name, known, most=1)
    if near:
        return f"; {near}"
    listed = ", ".join(known[:LISTED]) + (", ..." if len(known) > LISTED else "")
    return f"; there are: {listed}" if known else ""
