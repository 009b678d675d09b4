"""Why a plan splits an operation or tensor as it does, as a page of text."""

from __future__ import annotations

from rich.table import Table

from ..partitioner.explaining.explain import Explanation
from .choices import format_choice
from .console import wide_console
from .tables import table
from .units import format_bytes, format_change

SHOWN = 10


def show(explanation: Explanation) -> None:
    """Print what was chosen, what it moves, and the cheapest alternatives."""
    console = wide_console()
    extents = ", ".join(f"{label}: {extent}" for label, extent in explanation.shape)
    splits = "along" if explanation.what == "operator" else "on dimensions"
    console.print(
        f"[bold]{explanation.what} {explanation.name}[/] ({extents}) is split {splits} "
        f"[bold]{format_choice(explanation.choice)}[/], one per step; it moves "
        f"{format_bytes(explanation.bytes)} of the plan's {format_bytes(explanation.plan_bytes)}",
        soft_wrap=True,
    )
    if len(explanation.decided_together) > 1:
        others = [name for name in explanation.decided_together if name != explanation.name]
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        console.print(f"decided together with {len(others)} more: {named}", soft_wrap=True)
    console.print(_moved(explanation))
    console.print(_alternatives(explanation))
    if not explanation.complete:
        console.print("alternatives differ in a single step, or in the order of two; there are more")


def _moved(explanation: Explanation) -> Table:
    rows = table("operator", "moves", "tensor", "bytes", title="What moves")
    for entry in sorted(explanation.moved, key=lambda entry: -entry.bytes)[:SHOWN]:
        rows.add_row(entry.operation, entry.kind, entry.tensor, format_bytes(entry.bytes))
    if len(explanation.moved) > SHOWN:
        rows.add_row(f"{len(explanation.moved) - SHOWN} more with --json", "", "", "")
    return rows


def _alternatives(explanation: Explanation) -> Table:
    neighbours = "tensors" if explanation.what == "operator" else "operators"
    heads = ("split", "plan, all else held", f"plan, its {neighbours} choosing again")
    rows = table(*heads, title="Alternatives")
    shown = list(explanation.alternatives[:SHOWN])
    if explanation.chosen not in shown:
        shown.append(explanation.chosen)
    for entry in shown:
        rows.add_row(
            format_choice(entry.choice),
            _change(entry.held_bytes, explanation.plan_bytes),
            _change(entry.following_bytes, explanation.plan_bytes),
            style="bold" if entry is explanation.chosen else "",
        )
    if len(explanation.alternatives) > len(shown):
        rows.add_row(f"{len(explanation.alternatives) - len(shown)} more with --json", "", "")
    return rows


def _change(cost: int, present: int) -> str:
    return f"{format_bytes(cost)} ({format_change(cost - present)})"
