"""How a plan synchronises variables: bytes by kind of synchroniser, and the time of an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_seconds


def show(facts: Mapping[str, Any]) -> None:
    """Print the figures that `tofu sync --json` prints."""
    console = wide_console()
    console.print(
        Text.assemble(
            (facts["model"], "bold"),
            f", over {counted(facts['workers'], 'worker')}: "
            f"{format_bytes(facts['cost_bytes'])} moved in one iteration, {facts['cost_bytes']:,} bytes",
        ),
        soft_wrap=True,
    )
    shown = table("synchronised by", "variables", "sparse", "bytes", "gradients move", "readers fetch")
    for share in facts["shares"]:
        sizes = (share[key] for key in ("variable_bytes", "gradient_bytes", "fetched_bytes"))
        shown.add_row(share["kind"], str(share["variables"]), str(share["sparse"]), *map(format_bytes, sizes))
    console.print(shown)
    console.print(f"all other tensors move {format_bytes(facts['other_bytes'])}")
    counts = facts["messages"]
    console.print(
        f"{counts['separate']:,} messages if each transfer has its own, {counts['fewest']:,} at least in "
        f"this order, {counts['merged']:,} if the gradients of a group wait for each other and nothing is "
        "sent before it is needed",
        soft_wrap=True,
    )
    if facts["step_seconds"] is not None:
        console.print(
            f"a simulated iteration takes {format_seconds(facts['step_seconds'])} on {facts['machine']}",
            soft_wrap=True,
        )
    if facts["merged_seconds"] is not None:
        console.print(
            f"it takes {format_seconds(facts['merged_seconds'])} if groups travel together", soft_wrap=True
        )
    if facts["auto"] is not None:
        _show_search(facts["auto"], console)


def _show_search(found: Mapping[str, Any], console: Console) -> None:
    """Print the candidates of a search, and what the best one gains through."""
    shown = table("candidate", "simulated", "by the fast model")
    for each in found["candidates"]:
        times = (format_seconds(each[key]) for key in ("seconds", "predicted_seconds"))
        shown.add_row(each["name"], *times)
    console.print(shown)
    gain = found["plain_seconds"] - found["seconds"]
    if not found["gains"]:
        console.print(
            "nothing here makes a strategy faster than plain all-reduce: no latency, difference of links, "
            "hierarchy, limit of flows, sparsity or overlap that one could use",
            soft_wrap=True,
        )
        return
    console.print(
        f"{format_seconds(gain)} less than plain all-reduce; of this gain depend on", soft_wrap=True
    )
    for each in found["gains"]:
        console.print(f"  {each['feature']}: {format_seconds(each['seconds'])}", soft_wrap=True)
