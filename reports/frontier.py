"""Frontiers of step time and memory in figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..partitioner.methods.frontier import Frontier, FrontierPoint
from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_seconds


def facts(model: str, frontiers: Sequence[Frontier]) -> dict[str, Any]:
    """Return what `tofu frontier --json` prints."""
    return {
        "model": model,
        "machine": frontiers[0].machine.name,
        "cost_model": frontiers[0].cost_model,
        "points": [
            {
                "workers": each.workers,
                "seconds": point.seconds,
                "peak_bytes": point.peak_bytes,
                "cost_bytes": point.plan.cost_bytes,
                "method": point.plan.method,
                "recompute": point.recompute,
                **_taken(point),
            }
            for each in frontiers
            for point in each.points
        ],
        "lower": [
            {"workers": each.workers, "seconds": point.seconds, "peak_bytes": point.peak_bytes}
            for each in frontiers
            for point in each.lower
        ],
    }


def _taken(point: FrontierPoint) -> dict[str, Any]:
    if point.taken is None:
        return {}
    return {"simulated_seconds": point.taken.seconds, "arena_bytes": point.taken.peak_bytes}


def show(model: str, frontiers: Sequence[Frontier]) -> None:
    """Print the points of every frontier, and what is proven."""
    console = wide_console()
    estimated = frontiers[0].cost_model != "simulated"
    titles = ["step time", "memory of a worker"]
    if estimated:
        titles = ["estimated time", "estimated memory", "simulated time", "arena"]
    rows = table(
        "point",
        "workers",
        *titles,
        "moved",
        "method",
        "computed again",
        title=f"{model} on {frontiers[0].machine.name}"
        + (f" by the cost model {frontiers[0].cost_model}" if estimated else ""),
    )
    for each in frontiers:
        for number, point in enumerate(each.points, 1):
            figures = [
                text
                for taken in (point, point.taken)
                if taken is not None
                for text in (format_seconds(taken.seconds), format_bytes(taken.peak_bytes))
            ]
            moved = format_bytes(point.plan.cost_bytes)
            again = f"in {point.recompute} segments" if point.recompute > 1 else "nothing"
            rows.add_row(str(number), str(each.workers), *figures, moved, point.plan.method, again)
    console.print(rows)
    for each in frontiers:
        first, last = each.lower[0], each.lower[-1]
        console.print(
            f"{each.bounded} over {counted(each.workers, 'worker')} takes at least "
            f"{format_seconds(last.seconds)}, and {format_bytes(first.peak_bytes)} (proven)",
            soft_wrap=True,
        )
        for stair, following in () if estimated else pairwise(each.lower):
            console.print(
                f"with less than {format_bytes(following.peak_bytes)} it takes at least "
                f"{format_seconds(stair.seconds)}, if it repeats no computation (proven)",
                soft_wrap=True,
            )
