"""The seconds that whole operations take on each kind of device of a machine."""

from __future__ import annotations

import numpy as np

from ..dataflow.graph import Graph
from ..machines.machine import Machine
from ..machines.machine_file import machine_of
from .times import NANOSECONDS, task_times


def operation_seconds(graph: Graph, machine: Machine | str) -> dict[str, dict[str, float]]:
    """Return for each operation of a graph the seconds on each kind of device, by name.

    `machine` is a preset's name, a file or a Machine. Times are measured, fitted or estimated, as those of a
    simulation. Raises MachineError as `simulate`.
    """
    found = machine_of(machine)
    workers = len(found.devices_of(len(found.worker_devices) or len(found.devices)))
    kinds: dict[str, int] = {}
    for worker, device in enumerate(found.devices_of(workers)):
        kinds.setdefault(found.kind(device).name, worker)
    times, chosen = task_times(graph, found, workers), np.array(list(kinds.values()), np.int64)
    known: dict[tuple[object, ...], dict[str, float]] = {}
    seconds = {}
    for operation in graph.operations:
        types = tuple(graph.tensors[each].dtype for each in (*operation.inputs, *operation.outputs))
        key = (id(operation.bound), types)
        if key not in known:
            box = [(0, extent) for extent in operation.bound.extents.values()]
            boxes = np.array([box] * len(chosen), np.int64).reshape(len(chosen), len(box), 2)
            nanoseconds = times(operation, chosen, boxes)
            known[key] = dict(zip(kinds, (nanoseconds / NANOSECONDS).tolist(), strict=True))
        seconds[operation.name] = known[key]
    return seconds
