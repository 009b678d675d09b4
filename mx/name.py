"""`mx.name`: names of symbols that are not given one, and prefixes for those that are."""

from __future__ import annotations

from ..dataflow.naming import NameScope, current_scope

__all__ = ["NameManager", "Prefix"]


class _Current:
    """`NameManager.current`, the manager in force."""

    def __get__(self, instance: object, owner: type) -> NameScope:
        return current_scope()


class NameManager(NameScope):
    """Gives names where scripts give none; a subclass may give others from `get`."""

    current = _Current()

    def __init__(self, prefix: str = "") -> None:
        super().__init__(prefix)

    def get(self, name: str | None, hint: str) -> str:
        """Return the name given, or one made from the hint."""
        return super().name(name, hint)

    def name(self, name: str | None, hint: str) -> str:
        return self.get(name, hint)


class Prefix(NameManager):
    """Puts `prefix` before all names, given or not; variables keep theirs."""
