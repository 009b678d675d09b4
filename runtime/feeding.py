"""Feed batches to an executor, and read outputs from it."""

from __future__ import annotations

import numpy as np

from ..dataflow.micro_batches import copy_name
from ..errors import DataError
from ..operators.kernels.kernel import Array
from .data import Batch, Batches, Rows
from .executor import Executor


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
    """Return the batches, of which this process reads only the rows that it needs.

    These are the rows that its workers are fed, and the labels of the samples that it evaluates. Batches are
    split into `micro_batches`, which one iteration of an `unrolled` graph works on together.
    """
    together = unrolled and micro_batches > 1
    outputs, labels = output_names(executor), data.label_names or ()
    count = len(outputs) // micro_batches if together else len(outputs)
    needed: dict[str, Rows] = {}
    for name, (extent, *_) in data.shapes.items():
        size = extent // micro_batches
        mask = np.zeros(extent, np.bool_)
        for number in range(micro_batches):
            part = mask[number * size : (number + 1) * size]
            fed = _fed(name, number if together else None)
            known = executor.has(fed)
            for lower, upper in executor.fed_rows(fed) if known else []:
                part[lower:upper] = True
            place = labels.index(name) if name in labels else None
            if place is not None and place < count:
                for lower, upper in _evaluated(
                    executor, outputs[(number if together else 0) * count + place], size
                ):
                    part[lower:upper] = True
            elif not known:
                part[:] = True
        if not mask.all():
            needed[name] = np.flatnonzero(mask)
    return data.reading(needed) if needed else data


def _evaluated(executor: Executor, output: str, samples: int) -> list[tuple[int, int]]:
    """Return the samples of an output that this process evaluates, as intervals."""
    shares = executor.sample_shares(output, samples)
    if shares is None:
        return [(0, samples)] if executor.has_first_worker else []
    return [share.samples for share in shares if executor.has_share(share)]


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
