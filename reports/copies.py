"""The copies of a plan with their lifetimes, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ..partitioner.explaining.copies import KeptCopy
from ..partitioner.layouts.form_text import form_text
from .tables import table

SHOWN = 20

HEADS = ("tensor", "version", "made from", "held", "made for", "kept until", "readers")


def copies_table(copies: Sequence[KeptCopy]) -> Table:
    """Return a line for each copy: who holds it, and the first and the last of its readers."""
    rows = table(*HEADS, title="Copies")
    for copy in copies[:SHOWN]:
        rows.add_row(*copy_cells(copy))
    if len(copies) > SHOWN:
        rows.add_row(f"{len(copies) - SHOWN} more in the plan file", *[""] * (len(HEADS) - 1))
    return rows


def copy_cells(copy: KeptCopy) -> list[str]:
    """Return the cells of a copy's line."""
    source = f"version {copy.source}" if copy.source else "home"
    first, last = copy.readers[0], copy.readers[-1]
    return [copy.tensor, str(copy.number), source, form_text(copy.form), first, last, str(len(copy.readers))]
