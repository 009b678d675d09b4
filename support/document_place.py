"""The place of an entry of a document, which prints as its path after its line, if that is known.

For example `line 7: variables['*_bias'].cut.axis`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

Keys = tuple[str | int, ...]
"""The keys and numbers that lead to an entry."""


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """An entry of a document."""

    text: str = "the file"
    """How errors call it."""

    keys: Keys = ()
    """The way to it."""

    lines: Mapping[Keys, int] | None = None
    """The lines of all entries; None if they are not known."""

    line: int | None = None
    """The line to name."""

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"

    def key(self, name: str) -> DocumentPlace:
        """Return the entry of a key of the form."""
        return self._inner(name, name if not self.keys else f"{self.text}.{name}")

    def item(self, name: str | int) -> DocumentPlace:
        """Return the entry of a key that a person chose, or of a number."""
        return self._inner(name, f"{self.text}[{name!r}]")

    def at(self, name: str) -> DocumentPlace:
        """Return the same entry with the line of one of its keys."""
        return replace(self, line=self._line((*self.keys, name)))

    def _inner(self, name: str | int, text: str) -> DocumentPlace:
        keys = (*self.keys, name)
        return DocumentPlace(text, keys, self.lines, self._line(keys))

    def _line(self, keys: Keys) -> int | None:
        return self.line if self.lines is None else self.lines.get(keys, self.line)
