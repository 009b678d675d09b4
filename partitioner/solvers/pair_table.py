"""A table whose entries are pairs of time and memory."""

from __future__ import annotations

from typing import NamedTuple

from .semiring import Scope, Table


class PairTable(NamedTuple):
    """A table of times and memory over distinct variables."""

    scope: Scope
    """The variables."""

    times: Table
    """Integers `[domain of scope[0], domain of scope[1], ...]`."""

    memory: Table
    """Integers of the same shape."""
