"""Tables on a console."""

from __future__ import annotations

from rich.table import Column, Table


def table(*heads: str, title: str | None = None) -> Table:
    """Return an empty table in which nothing is cut off: a name too long for its column goes on in the next
    line.
    """
    columns = (Column(head, overflow="fold") for head in heads)
    return Table(*columns, title=title, title_justify="left")
