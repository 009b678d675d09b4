"""Show a plan weight by weight, with repeated blocks shown once."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ..partitioner.explaining.weights import Layer, Repeated
from ..partitioner.layouts.form_text import worker_text
from .console import wide_console
from .tables import table
from .units import format_bytes


def show(blocks: Sequence[Repeated], workers: int) -> None:
    """Print the layers; `640x320/8x3x3` is a weight whose second dimension is cut into 8.

    If some layer is not on all of the plan's `workers`, two more columns say where every layer is.
    """
    found = [layer for block in blocks for layer in block.layers]
    placed = any(len(layer.holders) < workers or len(layer.workers) < workers for layer in found)
    heads = ["weight", "shape", "used by", "split along", "data", "weight moves", "activations move"]
    rows = table(*heads, *(["held by", "computed by"] if placed else []))
    for block in blocks:
        for number, layer in enumerate(block.layers):
            where = [worker_text(layer.holders), worker_text(layer.workers)] if placed else []
            ends = number == len(block.layers) - 1
            rows.add_row(*_row(layer, block, number), *where, end_section=ends)
    console = wide_console()
    console.print(rows)
    console.print(
        "64/2 in a shape is a dimension of 64 cut in two; n/2 is an index variable, 0/2 a dimension of the "
        "data, split in two; bytes are those of one layer",
        soft_wrap=True,
    )


def _row(layer: Layer, block: Repeated, number: int) -> tuple[str | Text, ...]:
    times = f" (x{block.times})" if block.times > 1 else ""
    repeated = layer.weight if number else Text.assemble((layer.weight, "bold"), times)
    uses = f", {layer.uses} times" if layer.uses > 1 else ""
    return (
        repeated,
        cut_shape(layer.shape, layer.weight_parts),
        layer.operator + uses,
        " ".join(f"{variable}/{parts}" for variable, parts in layer.variables) or "-",
        " ".join(f"{axis}/{parts}" for axis, parts in enumerate(layer.data_parts) if parts > 1) or "whole",
        format_bytes(layer.weight_bytes),
        format_bytes(layer.activation_bytes),
    )


def cut_shape(shape: Sequence[int], parts: Sequence[int]) -> str:
    """`(64, 3, 7, 7)` with parts `(2, 1, 1, 1)` -> `64/2 x 3 x 7 x 7`."""
    return " x ".join(
        f"{extent}/{count}" if count > 1 else str(extent) for extent, count in zip(shape, parts, strict=True)
    )
