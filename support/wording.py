"""Words of messages: numbers with their nouns, and names that an unknown name may stand for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LISTED = 9
"""The most names that a message lists."""


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: `1 index`, `2 indices`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def suggestion(name: str, candidates: Iterable[str], most: int = 2) -> str:
    """Ask `did you mean 'x'?` of up to `most` names that `name` may stand for; empty if there are none.

    Names that begin with `name` come first, those with the same case of letters before the others; if none
    begins so, names that are spelt alike.
    """
    known = list(candidates)
    begun = [one for one in known if name and one.casefold().startswith(name.casefold())]
    begun.sort(key=lambda one: not one.startswith(name))
    near = begun[:most] or get_close_matches(name, known, n=most)
    return f"did you mean {' or '.join(repr(str(one)) for one in near)}?" if near else ""


def alternatives(name: str, known: Iterable[str]) -> str:
    """End a message about an unknown name: `; did you mean 'x'?`, or a short list of the known names."""
    known = list(known)
    near = suggestion(name, known, most=1)
    if near:
        return f"; {near}"
    listed = ", ".join(known[:LISTED]) + (", ..." if len(known) > LISTED else "")
    return f"; there are: {listed}" if known else ""
