"""A bound on the time of an iteration that holds for every plan of a graph on a machine.

    splits     s in S(o): even parts along the variables of operation `o` that have strategies. The product
               of the degrees divides the number of workers. Not splitting is one of them
    tasks      p in s: the boxes of a split
    time       t(k, p): the time of task p on a device of kind k, as a simulation takes it
    work       sum over o of min over s of sum over p in s of min over k of weight(k) t(k, p)
    chain      the longest path of operations, each with min over s, p and k of t(k, p)
    bound      the longer one of work and chain

Weights add up to 1 over all devices, and are larger for faster kinds. No device is occupied for longer than
the iteration takes, so the iteration takes at least the sum over all tasks of their time and the weight of
their device. That sum is at least `work`. If all devices are of one kind, it is the time of all tasks over
the number of devices. An edge of the path is an input of which every task of every split reads something, so
the task waits for one of those that make it.

All splits are tried, since a split can take less time than the whole in total: parts of a convolution with
strides do not read the rows between them, for example.

Assumes: the graph as it is, with nothing merged; operations in even parts as above. Time in which nothing but
messages moves does not count. Implemented in: `least_step`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from ..analyzer.bind.bound import Bound
from ..analyzer.indices.region import Boxes, split, volume
from ..dataflow.graph import Graph, Operation
from ..machines.machine import Machine
from ..machines.machine_file import machine_of
from .times import NANOSECONDS, TaskTimes, task_times


@dataclass(frozen=True, slots=True)
class LeastStep:
    """A bound on the time of an iteration of any plan, of two parts."""

    work_seconds: float
    """The least time of all tasks, over the devices."""

    chain_seconds: float
    """The least time of the longest chain of operations."""

    @property
    def seconds(self) -> float:
        """The bound: the longer one of both."""
        return max(self.work_seconds, self.chain_seconds)


@dataclass(frozen=True, slots=True)
class _Least:
    """The least times of an operation."""

    work: float
    """Weighted nanoseconds of all its tasks."""

    task: int
    """Nanoseconds of one task."""

    needs: frozenset[int]
    """The places of inputs of which every task reads something."""


def least_step(graph: Graph, machine: Machine | str, workers: int) -> LeastStep:
    """Return a bound on the time of an iteration of any plan for a number of workers.

    `machine` is a preset's name, a file or a Machine. Raises MachineError as `simulate`.
    """
    found = machine_of(machine)
    found.check_workers(workers)
    times = task_times(graph, found, workers)
    chosen, weights = _weights(graph, found, workers, times)
    known: dict[tuple[object, ...], _Least] = {}
    maker: dict[int, int] = {}
    ends: list[int] = []
    work = 0.0
    for operation in graph.operations:
        types = tuple(graph.tensors[each].dtype for each in (*operation.inputs, *operation.outputs))
        key = id(operation.bound), types
        if key not in known:
            known[key] = _least(operation, workers, times, chosen, weights)
        least = known[key]
        needed = {operation.inputs[place] for place in least.needs}
        ends.append(least.task + max((ends[maker[each]] for each in needed if each in maker), default=0))
        maker.update(dict.fromkeys(operation.outputs, operation.index))
        work += least.work
    return LeastStep(int(work) / NANOSECONDS, max(ends, default=0) / NANOSECONDS)


def _weights(graph: Graph, machine: Machine, workers: int, times: TaskTimes) -> tuple[list[int], list[float]]:
    """Return a worker on each kind of device, and the weight of a device of that kind.

    Weights grow with the speed at which a device runs all operations, unsplit.
    """
    devices = machine.devices_of(workers)
    kinds = {machine.kind(device): worker for worker, device in reversed(list(enumerate(devices)))}
    chosen = list(kinds.values())
    totals = np.zeros(len(chosen))
    for operation in graph.operations:
        totals += times(
            operation, np.array(chosen), np.repeat(operation.bound.full_box[None], len(chosen), 0)
        )
    speeds = dict(zip(kinds, (totals.min() / totals).tolist(), strict=True))
    rate = sum(speeds[machine.kind(device)] for device in dict.fromkeys(devices))
    return chosen, [speed / rate for speed in speeds.values()]


def _least(
    operation: Operation, workers: int, times: TaskTimes, chosen: list[int], weights: list[float]
) -> _Least:
    """Return the least times over all splits of an operation."""
    work, task = [], []
    needs = {place: True for place, _ in operation.bound.read_places}
    for boxes in splits(operation.bound, workers):
        taken = [times(operation, np.full(len(boxes), worker), boxes) for worker in chosen]
        weighted = [each * weight for each, weight in zip(taken, weights, strict=True)]
        work.append(float(np.min(weighted, axis=0).sum()))
        task.append(int(np.min(taken)))
        read = operation.bound.input_regions(boxes)
        for place, name in operation.bound.read_places:
            needs[place] &= bool((volume(read[name]) > 0).all())
    return _Least(min(work), min(task), frozenset(place for place, every in needs.items() if every))


def splits(bound: Bound, workers: int) -> Iterator[Boxes]:
    """Yield the boxes of each split of an operator: `[tasks, variables, 2]`."""
    variables = [(axis, bound.extents[v]) for axis, v in enumerate(bound.variables) if v in bound.splits]
    found: list[tuple[int, ...]] = [()]
    for _, extent in variables:
        found = [
            (*before, degree)
            for before in found
            for degree in range(1, min(workers, extent) + 1)
            if workers % (prod(before) * degree) == 0
        ]
    yield from map(partial(split, bound.full_box, [axis for axis, _ in variables]), found)
