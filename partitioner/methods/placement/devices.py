"""The devices of a machine, as placers see them."""

from __future__ import annotations

import numpy as np

from ....machines.machine import Machine
from ....simulator.ways import Ways
from ..limit import Limit
from .graph import Integers, PlacementDevices


def kinds_of(machine: Machine, workers: int) -> tuple[str, ...]:
    """Return the kinds of the workers' devices, each once. Raises MachineError as `devices_of`."""
    machine.check_workers(workers)
    return tuple(dict.fromkeys(machine.kind(device).name for device in machine.devices_of(workers)))


def devices_of(machine: Machine, workers: int, limit: Limit) -> PlacementDevices:
    """Return what placers know of the first workers of a machine.

    A message takes the latency and the width of its path, and the time that its reader takes to wake.
    `limit` are the bytes that each worker may hold; if it is None, those of its device. Raises MachineError
    if there are too few devices, if no links join two of them, or if the machine does not say how fast they
    are.
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
    match limit:
        case int():
            memory: Integers | None = np.full(workers, limit, np.int64)
        case None:
            memory = memory_of(machine, workers)
        case _:
            memory = None
    return PlacementDevices(kind, latency, per_byte, memory)


def memory_of(machine: Machine, workers: int) -> Integers | None:
    """Return the memory that devices give to each worker; None if it is not stated.

    Workers that share a device share its memory evenly.
    """
    devices = machine.devices_of(workers)
    kinds = [machine.kind(device).memory_bytes for device in devices]
    known = [nbytes for nbytes in kinds if nbytes is not None]
    if machine.memory_bytes is None:
        return None
    stated = known if len(known) == workers and machine.memory_bytes == min(known) else None
    each = np.array(stated or [machine.memory_bytes] * workers, np.int64)
    return each // np.bincount(devices)[list(devices)]
