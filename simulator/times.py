"""How long computations take: estimated from what the analysis derives and what a machine can do.

A kernel takes the time to start it and, of two times, the longer one: its floating-point operations at the
device's rate, or the bytes of what it reads and makes at the bandwidth of the device's memory. The rate is
that of the widest type among the tensors that it reads. Operations inside opaque functions do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..analyzer.indices.evaluate import Integers
from ..analyzer.indices.region import Boxes, Region, volume
from ..dataflow.graph import Graph, Operation
from ..machines.machine import Machine
from ..programs.program import Compute, PartitionedGraph

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

Source = Literal["measured", "fitted", "estimated"]
"""Where times come from."""


Computed = tuple[int, int, Region]
"""A worker, the number of one of its instructions, and the box that it computes."""


TaskTimes = Callable[[Operation, Integers, Boxes], Integers]
"""Return the nanoseconds of tasks of an operation: workers `[n]` and boxes `[n, variable, 2]` to `[n]`."""


@dataclass(frozen=True, slots=True)
class ComputeTimes:
    """How long each computation takes."""

    nanoseconds: Sequence[Sequence[int]]
    """`nanoseconds[worker][index]`: the time of an instruction; 0 if it is a transfer."""

    source: Source
    """Where the times come from."""


def estimated(partitioned: PartitionedGraph, machine: Machine) -> ComputeTimes:
    """Return the times of all computations on the workers' devices.

    Raises MachineError if the machine does not say how fast its devices are in a type that they compute in.
    """
    found = [[0] * len(program.instructions) for program in partitioned.programs]
    times = estimates(partitioned.graph, machine, partitioned.workers)
    for operation, places in _alike(partitioned):
        workers = np.array([worker for worker, _, _ in places])
        boxes = np.array([box for _, _, box in places], np.int64).reshape(len(places), -1, 2)
        nanoseconds = times(operation, workers, boxes)
        for (worker, index, _), time in zip(places, nanoseconds.tolist(), strict=True):
            found[worker][index] = time
    return ComputeTimes(found, "estimated")


def estimates(graph: Graph, machine: Machine, workers: int) -> TaskTimes:
    """Return the function that estimates the times of tasks on the workers' devices.

    Raises MachineError if the machine does not say how fast its devices are. The function does so if a device
    has no rate for a type.
    """
    kinds = [machine.kind(device) for device in machine.placement[:workers]]
    starts = np.array([kind.start_seconds for kind in kinds])
    bandwidths = np.array([kind.bytes_per_second for kind in kinds])

    def times(operation: Operation, workers: Integers, boxes: Boxes) -> Integers:
        flops, nbytes = _counted(graph, operation, boxes)
        busy = nbytes / bandwidths[workers]
        if flops is not None and flops.any():
            dtype = _dtype(graph, operation)
            rates = {worker: kinds[worker].rate(dtype) for worker in set(workers.tolist())}
            busy = np.maximum(busy, flops / np.array([rates[worker] for worker in workers.tolist()]))
        found: Integers = np.rint((starts[workers] + busy) * NANOSECONDS).astype(np.int64)
        return found

    return times


def _alike(partitioned: PartitionedGraph) -> Iterator[tuple[Operation, list[Computed]]]:
    """Yield all computations, those of equal bound operators and element types together."""
    graph = partitioned.graph
    alike: dict[tuple[object, ...], tuple[Operation, list[Computed]]] = {}
    members = []
    for operation in graph.operations:
        types = (graph.tensors[tensor].dtype for tensor in (*operation.inputs, *operation.outputs))
        members.append(alike.setdefault((id(operation.bound), *types), (operation, []))[1])
    for worker, program in enumerate(partitioned.programs):
        for index, instruction in enumerate(program.instructions):
            if isinstance(instruction, Compute):
                members[instruction.operation].append((worker, index, instruction.box))
    yield from (group for group in alike.values() if group[1])


def _counted(graph: Graph, operation: Operation, boxes: Boxes) -> tuple[Integers | None, Integers]:
    """Return the floating-point operations of boxes `[n, variable, 2]`, and the bytes they read and make.

    The operations are None if an opaque function hides them.
    """
    bound = operation.bound
    regions = bound.input_regions(boxes)
    sizes = [graph.tensors[tensor].itemsize for tensor in operation.inputs]
    touched = np.zeros(len(boxes), np.int64)
    for place, name in bound.read_places:
        touched += volume(regions[name]) * sizes[place]
    for tensor, region in zip(operation.outputs, bound.output_regions(boxes), strict=True):
        touched += volume(region) * graph.tensors[tensor].itemsize
    return bound.flops_of(boxes), touched


def _dtype(graph: Graph, operation: Operation) -> str:
    """Return the widest type that an operation reads, or makes if it reads nothing."""
    read = [graph.tensors[operation.inputs[place]] for place, _ in operation.bound.read_places]
    made = [graph.tensors[tensor] for tensor in operation.outputs]
    return max(read or made, key=lambda tensor: tensor.itemsize).dtype
