"""Names for nodes the user did not name: `fullyconnected0`, `fullyconnected1`, ..."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import ClassVar

from ..errors import GraphError
from ..support.checked_argument import require
from .scope import Scope


class NameScope(Scope):
    """Counts names by hint and remembers all given names. Use it as a context manager to put it in force.

    A fresh scope starts its numbers at 0, so that building the same network twice gives the same names.
    """

    innermost: ClassVar[ContextVar[NameScope]] = ContextVar("tofu_name_scope")

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self.prefix = prefix
        self._counts: Counter[str] = Counter()
        self._given: set[str] = set()

    def name(self, name: str | None, hint: str) -> str:
        """Return `prefix + name`, or a new name from the hint if there is no name."""
        if name is not None:
            require(isinstance(name, str), name, "name", "a name as text", GraphError)
            return self.prefix + name
        while True:
            number = self._counts[hint]
            self._counts[hint] += 1
            made = f"{self.prefix}{hint}{number}"
            if made not in self._given:
                return made

    def claim(self, name: str) -> bool:
        """Remember a name; return False if it was given before."""
        if name in self._given:
            return False
        self._given.add(name)
        return True


_outermost = NameScope()


def current_scope() -> NameScope:
    """Return the innermost `with NameScope():`, or else the one of the process."""
    return NameScope.innermost.get(_outermost)
