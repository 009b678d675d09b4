"""The ways of messages and computations: which lanes they occupy, and how long messages take on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..machines.machine import Machine
from ..programs.process_programs import Helper
from ..programs.program import BufferKind, Lane
from ..support.integers import Integers
from .times import NANOSECONDS

_NONE = -1


class Ways:
    """The lanes of messages from one worker to another, and of computations on devices that workers share.

    Each way that is used has a number.
    """

    def __init__(
        self,
        machine: Machine,
        workers: int,
        wake_nanoseconds: int | None = None,
        notice_nanoseconds: int | None = None,
        helpers: Sequence[Helper] = (),
    ) -> None:
        """`wake_nanoseconds` is the measured time that threads take to wake; None for that of the devices.

        `notice_nanoseconds` is the measured time until a thread notices a message; None for that to wake.
        `helpers` move messages between processes, one on each device, and are numbered after the workers.
        """
        self._machine = machine
        self._devices = [*machine.devices_of(workers), *(helper.process for helper in helpers)]
        self._workers = workers
        self.kinds = [machine.kind(device) for device in self._devices]
        """The kind of each worker's device."""
        self.lanes: list[tuple[int, ...]] = []
        """The lanes of each way."""
        self._latency: list[float] = []
        """The nanoseconds of a message without bytes."""
        self._per_byte: list[float] = []
        """The nanoseconds of each byte of a message."""
        self.wakes = np.rint([kind.wake_seconds * NANOSECONDS for kind in self.kinds]).astype(np.int64)
        """The nanoseconds that each worker's device takes to wake."""
        if wake_nanoseconds is not None:
            self.wakes[:] = wake_nanoseconds
        for number, helper in enumerate(helpers, workers):
            if helper.part is BufferKind.CARRIED:
                self.wakes[number] = 0
            if helper.part is BufferKind.RECEIVED and notice_nanoseconds is not None:
                self.wakes[number] = notice_nanoseconds
        firsts: dict[int, int] = {}
        runners = [
            [firsts.setdefault(device, worker) * len(Lane)] * len(Lane)
            if self.kinds[worker].in_turn and worker < workers
            else [worker * len(Lane) + lane for lane in Lane]
            for worker, device in enumerate(self._devices)
        ]
        self.runners = np.array(runners, np.int64)
        """`[worker, lane]`: what runs a worker's instructions, a lane of its own or a device that serves its
        workers in turn. Helpers have lanes of their own.
        """
        self._numbers: dict[tuple[int, int], int] = {}
        self._lane_numbers: dict[str, int] = {}
        counts = Counter(self._devices[:workers])
        shared = {
            device: self._way((f"{machine.devices[device]} compute",), 0.0, 0.0)
            for device in counts
            if counts[device] > 1
        }
        of_workers = [shared.get(device, _NONE) for device in self._devices[:workers]]
        self.computing = np.array([*of_workers, *([_NONE] * len(helpers))], np.int64)
        """The way of each worker's computations; _NONE if it has a device of its own."""

    @property
    def lane_names(self) -> list[str]:
        return list(self._lane_numbers)

    def number(self, source: int, reader: int) -> int:
        """Return the number of a way."""
        found = self._numbers.get((source, reader))
        return self._add(source, reader) if found is None else found

    def speed(self, way: int) -> tuple[float, float]:
        """Return the nanoseconds of a message without bytes on a way, and of each byte."""
        return self._latency[way], self._per_byte[way]

    def nanoseconds(self, ways: Integers, nbytes: Integers) -> Integers:
        """Return the time of each message."""
        latency, per_byte = np.array(self._latency, float), np.array(self._per_byte, float)
        found: Integers = np.rint(latency[ways] + nbytes * per_byte[ways]).astype(np.int64)
        return found

    def _add(self, source: int, reader: int) -> int:
        here, there = self._devices[source], self._devices[reader]
        if here == there:
            lanes: tuple[str, ...] = ()
            latency, per_byte = 0.0, 2 / self.kinds[reader].bytes_per_second
        else:
            path = self._machine.path(here, there)
            lanes, latency, per_byte = path.lanes, path.latency_seconds, 1 / path.bytes_per_second
        if self.kinds[reader].in_turn and reader < self._workers:
            lanes = (f"{self._machine.devices[there]} copies",)
        number = self._way(lanes, latency, per_byte)
        self._numbers[source, reader] = number
        return number

    def _way(self, lanes: tuple[str, ...], latency_seconds: float, seconds_per_byte: float) -> int:
        names = self._lane_numbers
        self.lanes.append(tuple([names.setdefault(name, len(names)) for name in lanes]))
        self._latency.append(latency_seconds * NANOSECONDS)
        self._per_byte.append(seconds_per_byte * NANOSECONDS)
        return len(self.lanes) - 1
