"""Show values as HTML in a notebook.

The code that renders pages imports every room with something to show. The public package therefore sets
`NotebookDisplay.page`, and the rooms below need not import that code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class NotebookDisplay:
    """A value that a notebook shows as HTML."""

    __slots__ = ()
    page: ClassVar[Callable[[object], str] | None] = None
    """Renders a value as HTML; None until the public package sets it."""

    def _repr_html_(self) -> str | None:
        return None if NotebookDisplay.page is None else NotebookDisplay.page(self)
