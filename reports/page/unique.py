"""Values that occur more than once on a page are listed once and referred to by number."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any


class Unique:
    """Values by key, each made when its key is first asked for; `values` are in that order."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, make: Callable[[], Any] | None = None) -> int:
        """Return the number of the value with this key, which is the key itself if `make` is None."""
        found = self._numbers.get(key)
        if found is None:
            value = key if make is None else make()
            found = self._numbers[key] = len(self.values)
            self.values.append(value)
        return found
