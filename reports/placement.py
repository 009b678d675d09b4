"""A placement in figures: its time, and each worker's share of nodes and memory."""

from __future__ import annotations

from collections import Counter

from ..partitioner.methods.placement.result import Placement
from ..support.wording import counted
from .console import wide_console
from .tables import table
from .units import format_bytes, format_seconds

COLUMNS = ("worker", "nodes", "memory")


def summary(found: Placement) -> str:
    """Return the time of an iteration and its bound in words."""
    return (
        f"{counted(len(found.order), 'node')} on {counted(len(found.peak_bytes_per_worker), 'worker')}: "
        f"{format_seconds(found.seconds)} for an iteration; no placement takes less than "
        f"{format_seconds(found.lower_bound_seconds)}"
    )


def rows(found: Placement) -> list[tuple[str, str, str]]:
    """Return the cells of each worker, see `COLUMNS`."""
    nodes = Counter(found.placement.values())
    return [
        (str(worker), str(nodes[worker]), format_bytes(nbytes))
        for worker, nbytes in enumerate(found.peak_bytes_per_worker)
    ]


def show(found: Placement) -> None:
    """Print the time, its bound, and a table of workers."""
    console = wide_console()
    console.print(summary(found), soft_wrap=True)
    shown = table(*COLUMNS)
    for row in rows(found):
        shown.add_row(*row)
    console.print(shown)
