"""`mx.viz.print_summary`: a network as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ..dataflow.symbol import Symbol

__all__ = ["plot_network", "print_summary"]

HEADINGS = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print every operator with its output's shape, its parameters and its inputs; shapes need `shape`."""
    sizes: dict[str, tuple[int, ...]] = {}
    if shape is not None:
        internals = symbol.get_internals()
        _, found, _ = internals.infer_shape(**{name: tuple(extents) for name, extents in shape.items()})
        sizes = dict(zip(internals.list_outputs(), found, strict=True))
    ends = [int(line_length * position) for position in positions]
    given = set(shape or ())
    counted: set[str] = set()
    states = set(symbol.list_auxiliary_states())
    print("_" * line_length, _row(HEADINGS, ends), "=" * line_length, sep="\n")
    for node in symbol.nodes:
        if node.operator is None:
            continue
        own = {entry.node.name for entry in node.inputs if entry.node.is_variable} - given - states - counted
        own = {name for name in own if not name.endswith("_label")}
        counted |= own
        before = [
            entry.node.name for entry in node.inputs if not entry.node.is_variable or entry.node.name in given
        ]
        parameters = sum(prod(sizes.get(name, (0,))) for name in own)
        output = str(sizes.get(node.output_name(0), ""))
        print(_row((f"{node.name} ({node.operator.name})", output, str(parameters), ", ".join(before)), ends))
    print("=" * line_length)
    print(f"Total params: {sum(prod(sizes.get(name, (0,))) for name in counted)}")
    print("_" * line_length)


def plot_network(*arguments: Any, **options: Any) -> None:
    """Raises NotImplementedError: networks are drawn by reports, not here."""
    raise NotImplementedError("plot_network is not supported; use mx.viz.print_summary")


def _row(cells: Sequence[str], ends: Sequence[int]) -> str:
    line = ""
    for cell, end in zip(cells, ends, strict=True):
        line = f"{line}{cell}"[: end - 1].ljust(end)
    return line.rstrip()
