"""Argument names of library operators."""

from __future__ import annotations

from collections.abc import Callable

from ..stages.attributes import Attributes

ArgumentNames = Callable[[Attributes], tuple[str, ...]]


def arguments(*names: str) -> ArgumentNames:
    """Return the same arguments whatever the attributes."""
    return lambda attributes: names


def numbered(count_attribute: str, prefix: str) -> ArgumentNames:
    """Return `prefix0`, `prefix1`, ...; the attribute says how many."""
    return lambda attributes: tuple(f"{prefix}{k}" for k in range(attributes.integer(count_attribute)))


def with_bias(*names: str) -> ArgumentNames:
    """Return `names` and, unless `no_bias` is set, `bias`."""
    return lambda attributes: names if attributes.flag("no_bias") else (*names, "bias")


of_data = arguments("data")
"""The one tensor that most descriptions by shape depend on."""
