"""Feed batches to an executor, and read outputs and metrics from it."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DataError
from ..operators.kernels.kernel import Array
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
    """Read the graph's outputs as whole tensors, in order."""
    graph = executor.partitioned.graph
    return [executor.read(graph.tensors[index].name) for index in graph.outputs]


def valid_rows(array: Array, size: int, valid: int) -> Array:
    """Return the rows of an output or label that belong to the first `valid` of a batch's `size` samples.

    A sample may have several consecutive rows. Raises DataError if the samples do not divide the rows evenly.
    """
    if not array.ndim or len(array) % size:
        raise DataError(
            f"an array of shape {array.shape} does not divide into equal numbers of rows for {size} samples"
        )
    return array[: len(array) // size * valid]


def tally(executor: Executor, batch: Batch, tallies: Sequence[Tally]) -> dict[str, float]:
    """Count the batch in every metric, output by output with its label; the metrics of this batch alone.

    Raises ExecutionError if an output holds NaN.
    """
    for index in executor.partitioned.graph.outputs:
        executor.require_numbers(executor.partitioned.graph.tensors[index].name)
    if not tallies:
        return {}
    labels = list(batch.label.values())
    if not labels:
        raise DataError(f"metric '{tallies[0].metric.name}' needs labels, but the data has none")
    pairs = [
        (valid_rows(label, batch.size, batch.valid), valid_rows(output, batch.size, batch.valid))
        for label, output in zip(labels, outputs(executor), strict=False)
    ]
    return {t.metric.name: t.add(pairs) for t in tallies}
