"""A time line in figures: the iteration, each worker's share, and what decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from ..programs.messages import count_messages
from ..simulator.timeline import OperationTimes, Timeline
from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_seconds

SHOWN = 10


def facts(timeline: Timeline) -> dict[str, Any]:
    """Return the figures that `tofu simulate --json` prints."""
    return {
        "model": timeline.graph.name,
        "machine": timeline.machine.name,
        "workers": timeline.workers,
        "seconds": timeline.seconds,
        "compute_seconds": timeline.compute_seconds,
        "transfer_seconds": timeline.transfer_seconds,
        "critical_path_seconds": timeline.critical_path_seconds,
        "busiest_lane_seconds": timeline.busiest_lane_seconds,
        "free_transfer_seconds": timeline.free_transfer_seconds,
        "times": timeline.times,
        "time_shares": timeline.time_shares,
        "moved_bytes": timeline.moved_bytes,
        "messages": None if timeline.program is None else asdict(count_messages(timeline.program)),
        "shares": timeline.shares,
        "critical_path": timeline.critical_path,
        "deciding_path": timeline.deciding_path,
    }


def show(timeline: Timeline) -> None:
    """Print the figures, the workers, and the operations that decide."""
    console = wide_console()
    moved = format_bytes(timeline.moved_bytes)
    console.print(
        Text.assemble(
            (timeline.graph.name, "bold"),
            f" on {counted(timeline.workers, 'worker')} of {timeline.machine.name}: "
            f"{format_seconds(timeline.seconds)} for an iteration, which moves {moved}; "
            f"times are {_sources(timeline)}",
        ),
        soft_wrap=True,
    )
    figures = table("figure", "time", "of the iteration")
    for name, seconds in (
        ("the longest computing worker", timeline.compute_seconds),
        ("the longest transferring worker", timeline.transfer_seconds),
        ("with free transfers", timeline.free_transfer_seconds),
        ("with infinite lanes: the critical path", timeline.critical_path_seconds),
        ("the busiest lane alone", timeline.busiest_lane_seconds),
    ):
        figures.add_row(name, format_seconds(seconds), _share(seconds, timeline))
    console.print(figures)
    console.print(_workers(timeline))
    console.print(_path("operations that decide the time", timeline.deciding_path, timeline))
    console.print(_path("the critical path", timeline.critical_path, timeline))


def _workers(timeline: Timeline) -> Table:
    rows = table("worker", "computing", "moving", "waiting")
    for worker, each in enumerate(timeline.shares):
        rows.add_row(str(worker), *(f"{part:.1%}" for part in each.fractions))
    return rows


def _path(title: str, path: Sequence[OperationTimes], timeline: Timeline) -> Table:
    rows = table("operation", "computing", "moving", "of the iteration", title=title)
    for each in path[:SHOWN]:
        whole = each.computing_seconds + each.moving_seconds
        computing, moving = map(format_seconds, (each.computing_seconds, each.moving_seconds))
        rows.add_row(each.operation, computing, moving, _share(whole, timeline))
    if len(path) > SHOWN:
        rest = sum(each.computing_seconds + each.moving_seconds for each in path[SHOWN:])
        rows.add_row(f"{len(path) - SHOWN} more", "", "", _share(rest, timeline))
    return rows


def _sources(timeline: Timeline) -> str:
    """Say where times come from, of how many instructions, and their part of the time."""
    whole = sum(each.seconds for each in timeline.time_shares.values())
    if len(timeline.time_shares) < 2 or not whole:
        return timeline.times
    return ", ".join(
        f"{source} for {counted(each.instructions, 'instruction')} ({each.seconds / whole:.1%} of the time)"
        for source, each in timeline.time_shares.items()
    )


def _share(seconds: float, timeline: Timeline) -> str:
    return f"{seconds / timeline.seconds:.1%}" if timeline.nanoseconds else "0.0%"
