"""Two plans side by side."""

from __future__ import annotations

from rich.table import Table

from ..partitioner.explaining.difference import Change, ChangedCopies, Difference, Reordered
from ..partitioner.layouts.copies import Copy
from ..partitioner.layouts.form_text import form_text, layout_text
from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_change

SHOWN = 20


def show(found: Difference, names: tuple[str, str]) -> None:
    """Print totals, then the differences, the largest first. `names` are those of the two plans."""
    console = wide_console()
    if not (found.operators or found.tensors or found.copies or found.order):
        console.print("the plans make the same choices", soft_wrap=True)
    plans = table("plan", "method", "steps", "bytes moved", "by step")
    for name, method, factors, cost, steps in zip(
        names, found.methods, found.factors, found.cost_bytes, found.step_cost_bytes, strict=True
    ):
        by_step = ", ".join(map(format_bytes, steps))
        plans.add_row(name, method, " x ".join(map(str, factors)) or "1", format_bytes(cost), by_step)
    console.print(plans)
    for what, changes in (("operator", found.operators), ("tensor", found.tensors)):
        if changes:
            console.print(_table(what, changes))
    if found.copies:
        console.print(_copies(found.copies))
    if found.order:
        console.print(_order(found.order))


def _table(what: str, changes: tuple[Change, ...]) -> Table:
    heads = (what, "first", "second", "bytes of first", "of second", "change")
    verb = "differs" if len(changes) == 1 else "differ"
    rows = table(*heads, title=f"{counted(len(changes), what)} {verb}")
    for change in changes[:SHOWN]:
        first, second = change.bytes
        rows.add_row(
            change.name,
            *map(layout_text, change.choices, change.via),
            format_bytes(first),
            format_bytes(second),
            format_change(second - first),
        )
    _count_rest(rows, len(changes))
    return rows


def _copies(changes: tuple[ChangedCopies, ...]) -> Table:
    rows = table("tensor", "first", "second", title=f"{counted(len(changes), 'tensor')} with other copies")
    for change in changes[:SHOWN]:
        rows.add_row(change.tensor, *("\n".join(map(_copy, copies)) or "none" for copies in change.copies))
    _count_rest(rows, len(changes))
    return rows


def _copy(copy: Copy) -> str:
    source = f", from version {copy.source}" if copy.source else ""
    return f"{form_text(copy.form)}{source}, for {', '.join(copy.readers)}"


def _order(changes: tuple[Reordered, ...]) -> Table:
    title = f"{counted(len(changes), 'operator')} at other places in the order"
    rows = table("operator", "place in first", "in second", title=title)
    for change in changes[:SHOWN]:
        rows.add_row(change.operation, *map(str, change.places))
    _count_rest(rows, len(changes))
    return rows


def _count_rest(rows: Table, changes: int) -> None:
    """Add a line that says how many changes are not shown, if there are any."""
    if changes > SHOWN:
        rows.add_row(f"{changes - SHOWN} more with --json", *[""] * (len(rows.columns) - 1))
