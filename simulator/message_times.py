"""The ways and times of the messages between parts, found once for each pair of sets."""

from __future__ import annotations

import numpy as np

from ..machines.machine import Machine
from .part_sets import PartSet, Readings, collected, fetched
from .times import NANOSECONDS
from .ways import Ways

Timed = tuple[Readings, list[int], list[int]]
"""How parts are read, and the time and the way of every message."""


class MessageTimes:
    """Movements with their times on a machine."""

    def __init__(self, machine: Machine, workers: int) -> None:
        self._workers = workers
        self.ways = Ways(machine, workers)
        self.computing = self.ways.computing.tolist()
        """The way of each worker's computations; -1 if it has a device of its own."""
        kinds = self.ways.kinds
        self.starts = [round(kind.start_seconds * NANOSECONDS) for kind in kinds]
        """The time to start a kernel on each worker."""
        self._per_byte = [NANOSECONDS / kind.bytes_per_second for kind in kinds]
        self._fetched: dict[tuple[PartSet, PartSet, int], Timed] = {}
        self._collected: dict[tuple[PartSet, PartSet, int], Timed] = {}

    def touching(self, worker: int, nbytes: int) -> int:
        """Return the time that a worker's own memory needs to read or write bytes."""
        return round(nbytes * self._per_byte[worker])

    def fetched(self, needed: PartSet, held: PartSet, itemsize: int) -> Timed:
        """Return how the parts that tasks need are read. Raises PlanError if no one holds some of it."""
        key = needed, held, itemsize
        found = self._fetched.get(key)
        if found is None:
            found = self._fetched[key] = self._timed(fetched(needed, held, self._workers), needed, itemsize)
        return found

    def collected(self, made: PartSet, wanted: PartSet, itemsize: int) -> Timed:
        """Return how wanted parts are read from those that are made. Raises PlanError as `fetched`."""
        key = made, wanted, itemsize
        found = self._collected.get(key)
        if found is None:
            read = collected(made, wanted, self._workers)
            found = self._collected[key] = self._timed(read, wanted, itemsize)
        return found

    def forget(self) -> None:
        """Forget all movements, so that they need no memory."""
        self._fetched.clear()
        self._collected.clear()

    def _timed(self, readings: Readings, readers: PartSet, itemsize: int) -> Timed:
        counts = np.diff(readings.firsts)
        workers = np.repeat(np.array(readers.workers, np.int64), counts).tolist()
        ways = [
            self.ways.number(source, reader) for source, reader in zip(readings.sources, workers, strict=True)
        ]
        nbytes = np.array(readings.elements, np.int64) * itemsize
        return readings, self.ways.nanoseconds(np.array(ways, np.int64), nbytes).tolist(), ways
