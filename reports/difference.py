"""Two plans side by side."""

from __future__ import annotations

from rich.table import Table

from ..partitioner.explaining.difference import Change, Difference
from .choices import format_choice
from .console import wide_console
from .tables import table
from .units import format_bytes, format_change

SHOWN = 20


def show(found: Difference, names: tuple[str, str]) -> None:
    """Print totals, then the differences, the largest first. `names` are those of the two plans."""
    console = wide_console()
    if not found.operators and not found.tensors:
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


def _table(what: str, changes: tuple[Change, ...]) -> Table:
    heads = (what, "first", "second", "bytes of first", "of second", "change")
    rows = table(*heads, title=f"{len(changes)} {what}s differ")
    for change in changes[:SHOWN]:
        first, second = change.bytes
        rows.add_row(
            change.name,
            *map(format_choice, change.choices),
            format_bytes(first),
            format_bytes(second),
            format_change(second - first),
        )
    if len(changes) > SHOWN:
        rows.add_row(f"{len(changes) - SHOWN} more with --json", "", "", "", "", "")
    return rows
