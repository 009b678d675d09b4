"""How values show themselves in a notebook.

Pages lie to the right of every room that has something to show, so the public face says how pages are made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Shown:
    """A value that a notebook shows as HTML; `page` makes it and is None where nobody said how."""

    __slots__ = ()
    page: ClassVar[Callable[[object], str] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Shown.page is None else Shown.page(self)
