"""The memory of a worker: its peak, the tensors live there, and live bytes over the iteration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..programs.memory import MemoryFigures
from ..programs.program import BufferKind
from .tables import table
from .units import format_bytes

COLUMNS, ROWS = 72, 8
BLOCKS = " ▁▂▃▄▅▆▇█"


def page(memory: MemoryFigures, single_device_bytes: int) -> RenderableType:
    """Return the peaks of all workers, then where the fullest one stands."""
    fullest = memory.fullest
    live = memory.live_bytes[fullest]
    fetched = memory.peak_kinds[fullest][BufferKind.FETCHED] / max(memory.lower_bound_bytes[fullest], 1)
    return Group(
        _peaks(memory, single_device_bytes),
        Text(f"Live bytes of worker {fullest} over an iteration, operation by operation"),
        *(Text(line, no_wrap=True) for line in chart(live)),
        _largest(memory, fullest),
        Text(f"fetch buffers are {fetched:.1%} of the peak"),
    )


def chart(live: npt.NDArray[np.int64]) -> list[str]:
    """Return lines of blocks: the most that is live in each of `COLUMNS` spans of time, the peak at full
    height.
    """
    peak = int(live.max(initial=0))
    if not peak:
        return []
    tops = highest(live, COLUMNS)
    heights = np.ceil(tops * (ROWS * (len(BLOCKS) - 1)) / peak).astype(np.int64)
    full = len(BLOCKS) - 1
    lines = [
        "".join(BLOCKS[min(max(height - row * full, 0), full)] for height in heights.tolist())
        for row in reversed(range(ROWS))
    ]
    width = len(format_bytes(peak))
    labels = [format_bytes(peak), *("" for _ in lines[2:]), "0"]
    return [f"{label:>{width}} {line.rstrip()}" for label, line in zip(labels, lines, strict=True)]


def highest(live: npt.NDArray[np.int64], spans: int) -> npt.NDArray[np.int64]:
    """Return the most that is live in each of `spans` spans of equal length, or at each time if there are
    fewer.
    """
    edges = np.linspace(0, len(live), min(spans, len(live)) + 1).astype(np.int64)
    return np.maximum.reduceat(live, edges[:-1])


def _peaks(memory: MemoryFigures, single: int) -> Table:
    heads = ("worker", "peak", "live at once", "of one device's")
    workers = table(*heads, title="Memory without kernel workspaces")
    rows = zip(memory.arena_bytes, memory.lower_bound_bytes, strict=True)
    for worker, (count, bound) in enumerate(rows):
        share = f"{count / max(single, 1):.1%}"
        workers.add_row(str(worker), format_bytes(count), format_bytes(bound), share)
    workers.add_row("one device", format_bytes(single), "", "100%", style="bold")
    return workers


def _largest(memory: MemoryFigures, worker: int) -> Table:
    tensors = table("tensor", "as", "bytes", "share", title=f"Largest at the peak of worker {worker}")
    bound = max(memory.lower_bound_bytes[worker], 1)
    for tensor in memory.largest[worker]:
        tensors.add_row(tensor.name, tensor.kind, format_bytes(tensor.nbytes), f"{tensor.nbytes / bound:.1%}")
    return tensors
