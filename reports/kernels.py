"""Show which code computes the stages and gradients of an operator on the processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from ..analyzer.indices.region import Shape
from ..operators.audit.subjects import Missing, stages
from ..operators.operator import Operator
from ..operators.stages.prepared_kernel import prepared_kernel
from .tables import table
from .units import format_bytes

ARRAY_OPERATIONS = "NumPy"
"""The name of kernels that call no products or convolutions."""


def kernels(
    operator: Operator, shapes: Mapping[str, Shape], attributes: Mapping[str, object]
) -> list[dict[str, Any]]:
    """Return the kernel of every stage, gradient and update as plain data, for tensors of float32.

    Raises ExecutionError if the tensors do not fit the memory.
    """
    rows = []
    for found in stages(operator, shapes, attributes):
        if isinstance(found, Missing):
            continue
        stage, known = found
        kernel = prepared_kernel(stage.bind(known))
        rows.append(
            {
                "name": stage.name,
                "origin": str(kernel.origin),
                "calls": list(kernel.calls),
                "scratch_bytes": kernel.scratch_bytes,
            }
        )
    return rows


def kernels_table(rows: list[dict[str, Any]]) -> Table:
    """Return a table of kernels as `kernels` gives them."""
    shown = table("stage", "kernel", "computed by", "scratch", title="kernels on this processor, float32")
    for row in rows:
        code = ", ".join(row["calls"]) or ARRAY_OPERATIONS
        shown.add_row(row["name"], row["origin"], code, format_bytes(row["scratch_bytes"]))
    return shown
