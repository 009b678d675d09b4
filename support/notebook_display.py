"""How values show themselves in a notebook.

Pages are made by rooms that import every room with something to show, so the public face says how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class NotebookDisplay:
    """A value that a notebook shows as HTML."""

    __slots__ = ()
    page: ClassVar[Callable[[object], str] | None] = None
    """Makes the page of a value; None until the public face sets it."""

    def _repr_html_(self) -> str | None:
        return None if NotebookDisplay.page is None else NotebookDisplay.page(self)
