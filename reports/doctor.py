"""Show the findings of `tofu doctor`, as text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..runtime.cuda.inspection import Inspection
from ..runtime.processor_libraries import ProcessorLibrary
from ..support.wording import counted
from .units import format_bytes

GIGA = 1e9


def document(found: Inspection, libraries: Sequence[ProcessorLibrary]) -> dict[str, Any]:
    """Return the inspection as JSON; bandwidths in bytes a second. `libraries` are the processor's."""
    return {"ready": found.ready, **asdict(found), "libraries": [asdict(each) for each in libraries]}


def text(found: Inspection, libraries: Sequence[ProcessorLibrary]) -> RenderableType:
    """Return the inspection for a person. `libraries` are the processor's."""
    blocks: list[RenderableType] = [_libraries(libraries), _warnings(libraries), _parts(found)]
    if found.cards:
        blocks.append(_cards(found))
        blocks.append(_pairs(found))
    if found.ready:
        blocks.append("The CUDA engine can run: tofu train wresnet --device gpu")
    else:
        blocks.append(
            f"The NumPy engine runs on {counted(found.processors, 'processor')} and needs none of these; "
            "the CUDA engine cannot run here yet."
        )
    return Group(*blocks)


def _libraries(libraries: Sequence[ProcessorLibrary]) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in ("library of the processor", "version", "code for"):
        table.add_column(head, overflow="fold")
    for each in libraries:
        table.add_row(each.name, each.version or "missing", each.instructions)
    return table


def _warnings(libraries: Sequence[ProcessorLibrary]) -> Text:
    """Return what is wrong with each library, a line each, and a blank line."""
    lines = [f"{each.name}: {each.problem}; {each.remedy}\n" for each in libraries if each.problem]
    return Text("".join(lines))


def _parts(found: Inspection) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in ("part", "version", "what to do"):
        table.add_column(head, overflow="fold")
    for part in found.parts:
        remedy = "" if part.version else part.remedy
        table.add_row(part.name, part.version or "missing", remedy)
    return table


def _cards(found: Inspection) -> Table:
    table = Table(box=None, pad_edge=False)
    for head in ("card", "name", "compute capability"):
        table.add_column(head)
    for head in ("memory", "free"):
        table.add_column(head, justify="right")
    for card in found.cards:
        memory = (format_bytes(card.total_bytes), format_bytes(card.free_bytes))
        table.add_row(str(card.number), card.name, card.capability, *memory)
    return table


def _pairs(found: Inspection) -> Table:
    """Return the table of copies. Row: the reading device. Column: the device it reads from."""
    table = Table(
        title="copies, GB/s; * where kernels cannot read", box=None, pad_edge=False, title_justify="left"
    )
    table.add_column("to \\ from")
    for card in found.cards:
        table.add_column(str(card.number), justify="right")
    for to, row in enumerate(found.reaches):
        cells = []
        for source, reached in enumerate(row):
            speed = (
                f"{found.bandwidth[to][source] / GIGA:.1f}" if found.bandwidth else "yes" if reached else "no"
            )
            cells.append(speed if reached else f"{speed} *")
        table.add_row(str(found.cards[to].number), *cells)
    return table
