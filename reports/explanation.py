"""Why a plan splits an operation or tensor as it does, as a page of text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..analyzer.indices.region import Region
from ..partitioner.explaining.explain import Explanation
from ..partitioner.layouts.form_text import form_text, worker_text
from ..partitioner.layouts.step_split import is_stepped
from ..programs.parts import Holding, Task
from .console import wide_console
from .copies import copies_table
from .tables import table
from .units import format_bytes, format_change, format_region

SHOWN = 10


def show(explanation: Explanation) -> None:
    """Print what was chosen, what it moves, and the cheapest alternatives."""
    console = wide_console()
    console.print(_choice(explanation), soft_wrap=True)
    if explanation.place is not None:
        console.print(f"it is number {explanation.place} in the order of the plan")
    if explanation.via is not None:
        console.print(f"its partial results are reduced as {form_text(explanation.via)}", soft_wrap=True)
    if len(explanation.decided_together) > 1:
        others = [name for name in explanation.decided_together if name != explanation.name]
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        console.print(f"decided together with {len(others)} more: {named}", soft_wrap=True)
    if not is_stepped([explanation.choice]):
        console.print(_parts(explanation))
    if explanation.idle:
        console.print(f"without a part: {worker_text(explanation.idle)}", soft_wrap=True)
    if explanation.copies:
        console.print(copies_table(explanation.copies))
    console.print(_moved(explanation))
    if explanation.unpriced:
        console.print(explanation.unpriced, soft_wrap=True)
        return
    console.print(_alternatives(explanation))
    if not explanation.complete:
        console.print("alternatives differ in a single step, or in the order of two; there are more")


def _choice(explanation: Explanation) -> Text:
    """Return the choice and its bytes in one sentence."""
    extents = ", ".join(f"{label}: {extent}" for label, extent in explanation.shape)
    before, after = "has the form ", ""
    if isinstance(explanation.choice, tuple):
        splits = "along" if explanation.what == "operator" else "on dimensions"
        before, after = f"is split {splits} ", ", one per step"
    return Text.assemble(
        (f"{explanation.what} {explanation.name}", "bold"),
        f" ({extents}) {before}",
        (form_text(explanation.choice), "bold"),
        f"{after}; it moves {format_bytes(explanation.bytes)} of the plan's "
        f"{format_bytes(explanation.plan_bytes)}",
    )


def _parts(explanation: Explanation) -> Table:
    labels = ", ".join(label for label, _ in explanation.shape)
    columns: dict[str, Sequence[object]] = {
        "worker": [str(part.worker) for part in explanation.parts],
        labels or "value": [format_region(_box(part)) for part in explanation.parts],
        "reads term": [part.read if isinstance(part, Task) else None for part in explanation.parts],
        "partial result": [part.term for part in explanation.parts],
    }
    shown = {head: cells for head, cells in columns.items() if any(cell is not None for cell in cells)}
    rows = table(*shown, title="Parts")
    for cells in list(zip(*shown.values(), strict=True))[:SHOWN]:
        rows.add_row(*map(str, cells))
    if len(explanation.parts) > SHOWN:
        rows.add_row(f"{len(explanation.parts) - SHOWN} more with --json", *[""] * (len(shown) - 1))
    return rows


def _box(part: Task | Holding) -> Region:
    return part.box if isinstance(part, Task) else part.region


def _moved(explanation: Explanation) -> Table:
    rows = table("operator", "moves", "tensor", "bytes", title="What moves")
    for entry in sorted(explanation.moved, key=lambda entry: -entry.bytes)[:SHOWN]:
        rows.add_row(entry.operation, entry.kind, entry.tensor, format_bytes(entry.bytes))
    if len(explanation.moved) > SHOWN:
        rows.add_row(f"{len(explanation.moved) - SHOWN} more with --json", "", "", "")
    return rows


def _alternatives(explanation: Explanation) -> Table:
    neighbours = "tensors" if explanation.what == "operator" else "operators"
    heads = (
        "copied as" if explanation.fed else "split",
        "plan, all else held",
        f"plan, its {neighbours} choosing again",
    )
    rows = table(*heads, title="Alternatives")
    shown = list(explanation.alternatives[:SHOWN])
    chosen = explanation.chosen
    if chosen is not None and chosen not in shown:
        shown.append(chosen)
    for entry in shown:
        rows.add_row(
            form_text(entry.choice),
            _change(entry.held_bytes, explanation.plan_bytes),
            _change(entry.following_bytes, explanation.plan_bytes),
            style="bold" if entry is chosen else "",
        )
    if len(explanation.alternatives) > len(shown):
        rows.add_row(f"{len(explanation.alternatives) - len(shown)} more with --json", "", "")
    return rows


def _change(cost: int, present: int) -> str:
    return f"{format_bytes(cost)} ({format_change(cost - present)})"
