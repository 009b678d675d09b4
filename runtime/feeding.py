"""Batches into an executor, outputs and metrics out of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DataError
from ..operators.kernel import Array
from .data import Batch
from .executor import Executor
from .metrics import Tally


def feed(executor: Executor, batch: Batch) -> None:
    """Write a batch's arrays. Labels that the graph does not need are left out."""
    for name, array in batch.data.items():
        executor.write(name, array)
    for name, array in batch.label.items():
        if executor.has(name):
            executor.write(name, array)


def outputs(executor: Executor) -> list[Array]:
    """The graph's outputs, whole, in order."""
    graph = executor.partitioned.graph
    return [executor.read(graph.tensors[index].name) for index in graph.outputs]


def valid_rows(output: Array, batch: Batch) -> Array:
    """The rows of an output that belong to the batch's valid samples.

    A sample may have several rows, one after the other. DataError where rows do not divide by samples.
    """
    rows = len(output) if output.ndim else 0
    if rows % batch.size:
        raise DataError(
            f"an output of shape {output.shape} has no equal number of rows for each of {batch.size} samples"
        )
    return output[: rows // batch.size * batch.valid]


def tally(executor: Executor, batch: Batch, tallies: Sequence[Tally]) -> dict[str, float]:
    """Count the batch in every metric, output by output with its label; the metrics of this batch alone.

    Raises ExecutionError where an output holds something that is not a number.
    """
    for index in executor.partitioned.graph.outputs:
        executor.require_numbers(executor.partitioned.graph.tensors[index].name)
    if not tallies:
        return {}
    labels = list(batch.label.values())
    if not labels:
        raise DataError(f"metric '{tallies[0].metric.name}' needs labels, but the data has none")
    pairs = [
        (label[: batch.valid], valid_rows(output, batch))
        for label, output in zip(labels, outputs(executor), strict=False)
    ]
    return {t.metric.name: t.add(pairs) for t in tallies}
