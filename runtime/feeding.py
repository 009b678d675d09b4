"""Feed batches to an executor, and read outputs and metrics from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dataflow.micro_batches import copy_name
from ..errors import DataError
from ..operators.kernels.kernel import Array
from .data import Batch, Batches, Rows
from .executor import Executor
from .metrics import Tally


def feed(executor: Executor, batch: Batch, micro_batch: int | None = None) -> None:
    """Write a batch's arrays. Labels that the graph does not need are left out.

    In an unrolled graph the batch is that micro-batch.
    """
    for name, array in batch.data.items():
        executor.write(_fed(name, micro_batch), array)
    for name, array in batch.label.items():
        if executor.has(_fed(name, micro_batch)):
            executor.write(_fed(name, micro_batch), array)


def own_share(executor: Executor, data: Batches, micro_batches: int = 1, unrolled: bool = False) -> Batches:
    """Return the batches, of which this process reads only the rows that its workers are fed.

    Batches are split into `micro_batches`, which one iteration of an `unrolled` graph works on together.
    """
    needed: dict[str, Rows] = {}
    for name, (extent, *_) in data.shapes.items():
        size = extent // micro_batches
        mask = np.zeros(extent, np.bool_)
        for number in range(micro_batches):
            fed = _fed(name, number if unrolled and micro_batches > 1 else None)
            for lower, upper in executor.fed_rows(fed) if executor.has(fed) else [(0, size)]:
                mask[number * size + lower : number * size + upper] = True
        if not mask.all():
            needed[name] = np.flatnonzero(mask)
    return data.reading(needed) if needed else data


def _fed(name: str, micro_batch: int | None) -> str:
    return name if micro_batch is None else copy_name(name, micro_batch)


def output_names(executor: Executor) -> list[str]:
    """Return the names of the graph's outputs, in order."""
    graph = executor.partitioned.graph
    return [graph.tensors[index].name for index in graph.outputs]


def outputs(executor: Executor) -> list[Array]:
    """Read the graph's outputs as whole tensors, in order."""
    return [executor.read(name) for name in output_names(executor)]


def valid_rows(array: Array, size: int, valid: int) -> Array:
    """Return the rows of an output or label that belong to the first `valid` of a batch's `size` samples.

    A sample may have several consecutive rows. Raises DataError if the samples do not divide the rows evenly.
    """
    if not array.ndim or len(array) % size:
        raise DataError(
            f"an array of shape {array.shape} does not divide into equal numbers of rows for {size} samples"
        )
    return array[: len(array) // size * valid]


def tally(
    executor: Executor, batch: Batch, tallies: Sequence[Tally], names: Sequence[str] | None = None
) -> dict[str, float]:
    """Count the batch in every metric, output by output with its label; the metrics of this batch alone.

    `names` are those of the batch's outputs; None for all outputs. Raises ExecutionError if one holds NaN.
    """
    read = output_names(executor) if names is None else names
    executor.require_numbers(read)
    if not tallies:
        return {}
    labels = list(batch.label.values())
    if not labels:
        raise DataError(f"metric '{tallies[0].metric.name}' needs labels, but the data has none")
    pairs = [
        (valid_rows(label, batch.size, batch.valid), valid_rows(executor.read(name), batch.size, batch.valid))
        for label, name in zip(labels, read, strict=False)
    ]
    return {t.metric.name: t.add(pairs) for t in tallies}
