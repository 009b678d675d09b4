"""The devices of a machine, as placers see them."""

from __future__ import annotations

import numpy as np

from ....machines.machine import Machine
from .graph import Devices, Integers

_NANOSECONDS = 1e9


def devices_of(machine: Machine, workers: int, memory_bytes: int | None) -> Devices:
    """Return the devices of the first workers, each with so much memory.

    Raises MachineError if there are too few, if no links join two of them, or if the machine does not say
    how fast they are.
    """
    machine.check_workers(workers)
    placed = machine.devices_of(workers)
    latency = np.zeros((workers, workers), np.int64)
    per_byte = np.zeros((workers, workers))
    for source, here in enumerate(placed):
        for reader, there in enumerate(placed):
            if here == there:
                per_byte[source, reader] = 2 * _NANOSECONDS / machine.kind(there).bytes_per_second
            else:
                path = machine.path(here, there)
                latency[source, reader] = round(path.latency_seconds * _NANOSECONDS)
                per_byte[source, reader] = _NANOSECONDS / path.bytes_per_second
    memory = None if memory_bytes is None else np.full(workers, memory_bytes, np.int64)
    return Devices(worker_kinds(machine, workers), latency, per_byte, memory)


def worker_kinds(machine: Machine, workers: int) -> Integers:
    """Return the number of the kind of each worker's device. Kinds are numbered as they appear.

    Raises MachineError if the machine does not say how fast its devices are.
    """
    numbers: dict[object, int] = {}
    kinds = [machine.kind(device) for device in machine.devices_of(workers)]
    return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], np.int64)
