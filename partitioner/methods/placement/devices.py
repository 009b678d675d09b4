"""The devices of a machine, as placers see them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....machines.machine import Machine
from ....simulator.ways import Ways
from .graph import PlacementDevices


def kinds_of(machine: Machine, workers: int) -> tuple[str, ...]:
    """Return the kinds of the workers' devices, each once. Raises MachineError as `devices_of`."""
    machine.check_workers(workers)
    return tuple(dict.fromkeys(machine.kind(device).name for device in machine.devices_of(workers)))


def devices_of(machine: Machine, workers: int, memory_bytes: Sequence[int] | None) -> PlacementDevices:
    """Return what placers know of the first workers of a machine.

    A message takes the latency and the width of its path, and the time that its reader takes to wake.
    `memory_bytes` are those that each worker may hold; None if there is no limit. Raises MachineError if
    there are too few devices, if no links join two of them, or if the machine does not say how fast they are.
    """
    kinds = kinds_of(machine, workers)
    ways = Ways(machine, workers)
    latency, per_byte = np.zeros((workers, workers), np.int64), np.zeros((workers, workers))
    for source in range(workers):
        for reader in range(workers):
            if source != reader:
                fixed, per_byte[source, reader] = ways.speed(ways.number(source, reader))
                latency[source, reader] = round(fixed) + ways.wakes[reader]
    kind = np.array([kinds.index(each.name) for each in ways.kinds], np.int64)
    memory = None if memory_bytes is None else np.array(memory_bytes, np.int64)
    return PlacementDevices(kind, latency, per_byte, memory)
