"""How long instructions take: as measured, fitted to what was measured, or estimated.

A machine's profile has measured times of instructions. Equal work takes the same time: instructions of the
same kind and sizes (`programs.instruction_work`). Work of other sizes takes a *fitted* time, if work of its
kind was measured: amounts of it, times the seconds of each unit, which are fitted to the measured times.

All other computations take an *estimated* time: the time to start a kernel and, of two times, the longer one.
These are its floating-point operations at the device's rate, and the bytes of what it reads and makes at the
bandwidth of the device's memory. The rate is that of the widest type among the tensors that it reads.
Operations inside opaque functions do not count. Estimated times of transfers follow from the links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..analyzer.indices.evaluate import Integers
from ..dataflow.graph import Graph, Operation
from ..machines.machine import Machine
from ..machines.profile import EngineTimes
from ..programs.instruction_work import (
    BoxWork,
    Computations,
    TransferWork,
    computations,
    transfers,
    widest_type,
)
from ..programs.program import PartitionedGraph
from .fitted import UnitTimes, fit

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

Source = Literal["measured", "fitted", "estimated"]
"""Where times come from."""

SOURCES: tuple[Source, ...] = ("measured", "fitted", "estimated")
"""All sources, the best one first."""


TaskTimes = Callable[[Operation, Integers, BoxWork], Integers]
"""Return the nanoseconds of tasks of an operation `[n]`, from their workers `[n]` and their work."""


@dataclass(frozen=True, slots=True)
class SourceShare:
    """The part of a program's instructions whose times have the same source."""

    instructions: int
    """The number of instructions."""

    seconds: float
    """The sum of their times; those of transfers that follow from the links do not count."""


@dataclass(frozen=True, slots=True)
class ComputeTimes:
    """How long computations take, and transfers whose times do not follow from the links."""

    nanoseconds: Sequence[Sequence[int]]
    """`nanoseconds[worker][index]`: the time of an instruction; 0 for a transfer over the links."""

    source: Source
    """The weakest of the sources."""

    shares: Mapping[Source, SourceShare] = field(default_factory=dict)
    """The instructions of each source, and their time, if that is known."""

    wake_nanoseconds: int | None = None
    """The measured time that threads take to wake; None for that of the devices."""


def times_on(partitioned: PartitionedGraph, machine: Machine) -> ComputeTimes:
    """Return the best times that the machine has for a program.

    Raises MachineError if the machine does not say how fast its devices are in a type that they compute in,
    or if its profile is for another number of threads.
    """
    return estimated(partitioned, machine) if machine.profile is None else _profiled(partitioned, machine)


def estimated(partitioned: PartitionedGraph, machine: Machine) -> ComputeTimes:
    """Return the times of all computations as the devices' rates allow. Raises MachineError as `times_on`."""
    found = [[0] * len(program.instructions) for program in partitioned.programs]
    times = estimates(partitioned.graph, machine, partitioned.workers)
    for group in computations(partitioned):
        workers = np.array([worker for worker, _ in group.places])
        nanoseconds = times(group.operation, workers, group.work)
        for (worker, index), time in zip(group.places, nanoseconds.tolist(), strict=True):
            found[worker][index] = time
    return ComputeTimes(found, "estimated")


def estimates(graph: Graph, machine: Machine, workers: int) -> TaskTimes:
    """Return the function that estimates the times of tasks on the workers' devices.

    Raises MachineError if the machine does not say how fast its devices are. The function does so if a device
    has no rate for a type.
    """
    kinds = [machine.kind(device) for device in machine.devices_of(workers)]
    starts = np.array([kind.start_seconds for kind in kinds])
    bandwidths = np.array([kind.bytes_per_second for kind in kinds])

    def times(operation: Operation, workers: Integers, work: BoxWork) -> Integers:
        busy = work.nbytes / bandwidths[workers]
        if work.flops is not None and work.flops.any():
            dtype = widest_type(graph, operation)
            rates = {worker: kinds[worker].rate(dtype) for worker in set(workers.tolist())}
            busy = np.maximum(busy, work.flops / np.array([rates[worker] for worker in workers.tolist()]))
        found: Integers = np.rint((starts[workers] + busy) * NANOSECONDS).astype(np.int64)
        return found

    return times


def _profiled(partitioned: PartitionedGraph, machine: Machine) -> ComputeTimes:
    assert machine.profile is not None
    devices = machine.devices_of(partitioned.workers)
    found = _Found(partitioned, machine, machine.profile.times(len(set(devices))))
    for group in computations(partitioned):
        found.compute(group)
    unit = _transfer_units(machine, devices)
    for transfer in transfers(partitioned):
        found.transfer(transfer, unit)
    return found.result()


def _transfer_units(machine: Machine, devices: Sequence[int]) -> tuple[float, ...]:
    """Return the estimated seconds of a piece, of a byte that is touched, and of a byte from elsewhere."""
    kind = machine.kind(devices[0])
    others = [device for device in devices if device != devices[0]]
    width = machine.path(devices[0], others[0]).bytes_per_second if others else kind.bytes_per_second / 2
    return kind.start_seconds, 1 / kind.bytes_per_second, 1 / width


class _Found:
    """Collects times and where they come from."""

    def __init__(self, partitioned: PartitionedGraph, machine: Machine, measured: EngineTimes) -> None:
        self._graph = partitioned.graph
        self._kind = machine.kind(0)
        self._estimates = estimates(partitioned.graph, machine, partitioned.workers)
        self._measured = measured
        self._nanoseconds = [[0] * len(program.instructions) for program in partitioned.programs]
        self._units: dict[str, UnitTimes] = {}
        self._counts: Counter[Source] = Counter()
        self._spent: Counter[Source] = Counter()

    def compute(self, group: Computations) -> None:
        """Add computations of one kind."""
        work = group.work
        if group.kind not in self._measured.kinds:
            workers = np.array([worker for worker, _ in group.places])
            estimated = self._estimates(group.operation, workers, work) / NANOSECONDS
            for place, seconds in zip(group.places, estimated.tolist(), strict=True):
                self._add(place, seconds, "estimated")
            return
        unit = self._units_of(group)
        for place, sizes, amounts in zip(
            group.places, work.sizes.tolist(), work.amounts.tolist(), strict=True
        ):
            self._look_up(place, group.kind, tuple(sizes), amounts, unit)

    def _units_of(self, group: Computations) -> tuple[float, float, float]:
        """Return the estimated seconds of a start, an operation and a byte."""
        per_byte = 1 / self._kind.bytes_per_second
        counted = group.work.flops is not None and group.work.flops.any()
        per_flop = 1 / self._kind.rate(widest_type(self._graph, group.operation)) if counted else per_byte
        return self._kind.start_seconds, per_flop, per_byte

    def transfer(self, work: TransferWork, unit: tuple[float, ...]) -> None:
        """Add a transfer. Its time follows from the links if no transfer of its kind was measured."""
        if work.kind in self._measured.kinds:
            self._look_up(work.place, work.kind, work.sizes, work.amounts, unit)
        else:
            self._counts["estimated"] += 1

    def _look_up(
        self,
        place: tuple[int, int],
        kind: str,
        sizes: tuple[int, ...],
        amounts: Sequence[int],
        unit: tuple[float, ...],
    ) -> None:
        known = self._measured.kinds[kind]
        measured = known.get(sizes)
        if measured is not None:
            self._add(place, measured.seconds, "measured")
            return
        if kind not in self._units:
            rows = [each.amounts for each in known.values()]
            self._units[kind] = fit(rows, [each.seconds for each in known.values()], unit)
        self._add(place, self._units[kind].seconds(amounts), "fitted")

    def _add(self, place: tuple[int, int], seconds: float, source: Source) -> None:
        worker, index = place
        self._nanoseconds[worker][index] = max(1, round(seconds * NANOSECONDS))
        self._counts[source] += 1
        self._spent[source] += seconds  # type: ignore[assignment]

    def result(self) -> ComputeTimes:
        shares = {
            source: SourceShare(self._counts[source], self._spent[source])
            for source in SOURCES
            if self._counts[source]
        }
        wakes = self._measured.wakes
        wake = round(wakes.seconds * NANOSECONDS) if wakes.count else None
        return ComputeTimes(self._nanoseconds, [*shares][-1] if shares else "measured", shares, wake)
