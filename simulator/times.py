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
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np

from ..analyzer.indices.region import Boxes
from ..dataflow.graph import Graph, Operation
from ..errors import PlanError
from ..machines.machine import Machine
from ..machines.profile import Sizes
from ..programs.instruction_work import (
    BoxWork,
    box_sizes,
    computations,
    count_work,
    kind_of,
    message_kind,
    transfers,
    widest_type,
)
from ..programs.program import BufferKind, PartitionedGraph
from ..support.integers import Integers
from .fitted import UnitTimes, fit

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

CARRIED = message_kind(BufferKind.CARRIED)
MESSAGE_KINDS = frozenset(map(message_kind, (BufferKind.SENT, BufferKind.RECEIVED)))
"""The kinds of work that processes have with messages."""

ITERATION = "iteration"
"""The kind of the time of an iteration before its first instruction and after its last one."""

NOTICED = "message noticed"
"""The kind of the time until a thread notices that a message has come."""

Source = Literal["measured", "fitted", "estimated"]
"""Where times come from."""

SOURCES: tuple[Source, ...] = ("measured", "fitted", "estimated")
"""All sources, the best one first."""

TaskTimes = Callable[[Operation, Integers, Boxes], Integers]
"""Return the nanoseconds of tasks of an operation: workers `[n]` and boxes `[n, variable, 2]` to `[n]`."""

_WorkTimes = Callable[[Operation, Integers, BoxWork], Integers]
"""Return the nanoseconds of tasks of an operation: workers `[n]` and their work to `[n]`."""


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

    notice_nanoseconds: int | None = None
    """The measured time until a thread notices that a message has come; None for that to wake."""

    around_nanoseconds: int = 0
    """The time of an iteration before its first instruction and after its last one."""


def times_on(partitioned: PartitionedGraph, machine: Machine, workers: int | None = None) -> ComputeTimes:
    """Return the best times that the machine has for a program.

    `workers` is their number if the program has others that move messages. Those on their way take the time
    of the links.

    Raises MachineError if the machine does not say how fast its devices are in a type that they compute in,
    or if its profile is for another number of threads.
    """
    workers_of = partitioned.workers if workers is None else workers
    if machine.profile is None:
        return estimated(partitioned, machine, workers_of)
    times = [[0] * len(program.instructions) for program in partitioned.programs]
    counts = SourceCounts()
    profiled = ProfiledTimes(partitioned.graph, machine, workers_of)
    for group in computations(partitioned):
        computing = np.array([worker for worker, _ in group.places])
        nanoseconds, sources = profiled.tasks(group.operation, computing, group.boxes)
        for (worker, index), time, source in zip(group.places, nanoseconds.tolist(), sources, strict=True):
            times[worker][index] = time
            counts.add(time, source)
    for each in transfers(partitioned):
        worker, index = each.place
        times[worker][index], source = profiled.transfer(each.kind, each.sizes, each.amounts)
        if each.kind != CARRIED:
            counts.add(times[worker][index], source)
    return ComputeTimes(
        times,
        counts.weakest,
        counts.shares,
        profiled.wake_nanoseconds,
        profiled.notice_nanoseconds,
        profiled.around_nanoseconds,
    )


def estimated(partitioned: PartitionedGraph, machine: Machine, workers: int | None = None) -> ComputeTimes:
    """Return the times of all computations as the devices' rates allow. Raises MachineError as `times_on`."""
    found = [[0] * len(program.instructions) for program in partitioned.programs]
    times = estimates(partitioned.graph, machine, partitioned.workers if workers is None else workers)
    for group in computations(partitioned):
        computing = np.array([worker for worker, _ in group.places])
        work = count_work(partitioned.graph, group.operation, group.boxes)
        nanoseconds = times(group.operation, computing, work)
        for (worker, index), time in zip(group.places, nanoseconds.tolist(), strict=True):
            found[worker][index] = time
    return ComputeTimes(found, "estimated")


def task_times(graph: Graph, machine: Machine, workers: int) -> TaskTimes:
    """Return the function that gives the best times of tasks on workers' devices. Raises as `times_on`."""
    if machine.profile is not None:
        profiled = ProfiledTimes(graph, machine, workers)
        return lambda operation, of, boxes: profiled.tasks(operation, of, boxes)[0]
    times = estimates(graph, machine, workers)
    return lambda operation, of, boxes: times(operation, of, count_work(graph, operation, boxes))


def estimates(graph: Graph, machine: Machine, workers: int) -> _WorkTimes:
    """Return the function that estimates the times of work on the workers' devices.

    Raises MachineError if the machine does not say how fast its devices are. The function does so if a device
    has no rate for a type.
    """
    kinds = [machine.kind(device) for device in machine.devices_of(workers)]
    starts = np.array([kind.start_seconds for kind in kinds])
    bandwidths = np.array([kind.bytes_per_second for kind in kinds])

    def times(operation: Operation, workers: Integers, work: BoxWork) -> Integers:
        busy = work.nbytes / bandwidths[workers]
        if work.flops is not None and work.flops.any():
            dtype, listed = widest_type(graph, operation), workers.tolist()
            rates = {worker: kinds[worker].rate(dtype) for worker in set(listed)}
            busy = np.maximum(busy, work.flops / np.array([rates[worker] for worker in listed]))
        found: Integers = np.rint((starts[workers] + busy) * NANOSECONDS).astype(np.int64)
        return found

    return times


class ProfiledTimes:
    """Times by the profile of a machine."""

    def __init__(self, graph: Graph, machine: Machine, workers: int) -> None:
        assert machine.profile is not None
        devices = machine.devices_of(workers)
        self.measured = machine.profile.times(len(set(devices)))
        self._graph = graph
        self._kind = machine.kind(0)
        self._estimates = estimates(graph, machine, workers)
        self._fits: dict[str, UnitTimes] = {}
        others = [device for device in devices if device != devices[0]]
        width = machine.path(devices[0], others[0]).bytes_per_second if others else 1.0
        per_byte = 1 / self._kind.bytes_per_second
        self._transfer_units = (self._kind.start_seconds, per_byte, 1 / width)
        """The estimated seconds of a piece, of a byte that is touched, and of a byte from elsewhere."""
        self._message_units = (self._kind.start_seconds, self._kind.start_seconds, 2 * per_byte)
        """The estimated seconds of sending or receiving a message, of a piece of it, and of a byte."""
        self.around_nanoseconds = self._single(ITERATION) or 0
        """The measured time of an iteration before its first instruction and after its last one."""
        self.notice_nanoseconds = self._single(NOTICED)
        """The measured time until a thread notices that a message has come; None if none did."""
        wakes = self.measured.wakes
        self.wake_nanoseconds = round(wakes.seconds * NANOSECONDS) if wakes.count else None
        """The measured time that threads take to wake; None if none did."""

    def tasks(
        self,
        operation: Operation,
        workers: Integers,
        boxes: Boxes,
        elements: Sequence[Integers] | None = None,
    ) -> tuple[Integers, list[Source]]:
        """Return the nanoseconds of tasks and where each comes from; `elements` are as for `count_work`."""
        kind, work = kind_of(self._graph, operation), count_work(self._graph, operation, boxes, elements)
        if kind not in self.measured.kinds:
            return self._estimates(operation, workers, work), ["estimated"] * len(boxes)
        units, amounts = self._units_of(operation, work), work.amounts.tolist()
        sizes = box_sizes(operation, boxes)
        found = [self._look_up(kind, each, a, units) for each, a in zip(sizes, amounts, strict=True)]
        return np.array([time for time, _ in found], np.int64), [source for _, source in found]

    def transfer(self, kind: str, sizes: Sizes, amounts: Sizes) -> tuple[int, Source]:
        """Return the nanoseconds of a transfer and their source; 0 if they follow from the links."""
        if kind not in self.measured.kinds:
            return 0, "estimated"
        units = self._message_units if kind in MESSAGE_KINDS else self._transfer_units
        return self._look_up(kind, sizes, amounts, units)

    def transfer_units(self, kind: str) -> UnitTimes | None:
        """Return the seconds of a piece of a kind of transfers, of a byte that is touched, and of a byte from
        elsewhere; None if no transfer of that kind was measured.
        """
        return self._fitted(kind, self._transfer_units) if kind in self.measured.kinds else None

    def _single(self, kind: str) -> int | None:
        """Return the measured time of a kind that has no sizes; None if there is none."""
        found = self.measured.kinds.get(kind, {}).get(())
        return None if found is None else _nanoseconds(found.seconds)

    def _units_of(self, operation: Operation, work: BoxWork) -> tuple[float, float, float]:
        """Return the estimated seconds of a start, an operation and a byte."""
        per_byte = 1 / self._kind.bytes_per_second
        counted = work.flops is not None and work.flops.any()
        per_flop = 1 / self._kind.rate(widest_type(self._graph, operation)) if counted else per_byte
        return self._kind.start_seconds, per_flop, per_byte

    def _look_up(
        self, kind: str, sizes: Sizes, amounts: Sequence[int], units: Sequence[float]
    ) -> tuple[int, Source]:
        known = self.measured.kinds[kind]
        if sizes in known:
            return _nanoseconds(known[sizes].seconds), "measured"
        return _nanoseconds(self._fitted(kind, units).seconds(amounts)), "fitted"

    def _fitted(self, kind: str, units: Sequence[float]) -> UnitTimes:
        """Return the seconds of units of a measured kind; `units` are estimated ones."""
        if kind not in self._fits:
            known = self.measured.kinds[kind]
            rows = [each.amounts for each in known.values()]
            self._fits[kind] = fit(rows, [each.seconds for each in known.values()], units)
        return self._fits[kind]


class TimesOfTasks:
    """The times of tasks: those that a function gives, or else the best ones that the machine has."""

    def __init__(self, graph: Graph, machine: Machine, workers: int, given: TaskTimes | None) -> None:
        """Raises MachineError as `times_on`."""
        self.profiled = None if machine.profile is None else ProfiledTimes(graph, machine, workers)
        """The times of the machine's profile; None if it has none."""
        self._graph = graph
        self._given = given
        if given is None and self.profiled is None:
            self._estimates = estimates(graph, machine, workers)

    def of(
        self,
        operation: Operation,
        workers: Sequence[int],
        boxes: Boxes,
        elements: Sequence[Integers],
    ) -> tuple[list[int], Sequence[Source]]:
        """Return the nanoseconds of tasks and where they come from. Raises PlanError for bad times.

        `elements` are those that `count_work` takes.
        """
        numbers = np.array(workers, np.int64)
        sources: Sequence[Source] = ["estimated"] * len(workers)
        if self._given is not None:
            taken = np.asarray(self._given(operation, numbers, boxes), np.int64)
            if taken.shape != (len(workers),) or (taken < 0).any():
                raise PlanError(
                    f"the times of its {len(workers)} tasks are {taken.tolist()}; give one for each, 0 "
                    f"or more"
                )
        elif self.profiled is not None:
            taken, sources = self.profiled.tasks(operation, numbers, boxes, elements)
        else:
            work = count_work(self._graph, operation, boxes, elements)
            taken = self._estimates(operation, numbers, work)
        return taken.tolist(), sources


def in_proportion(nanoseconds: Sequence[int], given: int) -> list[int]:
    """Return times that add up to `given`, in proportion to those of jobs that follow each other."""
    reached = list(accumulate(nanoseconds))
    ends = [0, *(each * given // reached[-1] if reached[-1] else 0 for each in reached[:-1]), given]
    return [after - before for before, after in pairwise(ends)]


def _nanoseconds(seconds: float) -> int:
    return max(1, round(seconds * NANOSECONDS))


class SourceCounts:
    """Collects the sources of the times of instructions."""

    def __init__(self) -> None:
        self._counts: Counter[Source] = Counter()
        self._spent: Counter[Source] = Counter()

    def add(self, nanoseconds: int, source: Source) -> None:
        """Add the time of an instruction."""
        self._counts[source] += 1
        self._spent[source] += nanoseconds

    @property
    def shares(self) -> dict[Source, SourceShare]:
        """The instructions of each source, the best source first."""
        return {
            source: SourceShare(self._counts[source], self._spent[source] / NANOSECONDS)
            for source in SOURCES
            if self._counts[source]
        }

    @property
    def weakest(self) -> Source:
        """The weakest of all sources."""
        return max(self._counts, key=SOURCES.index, default="measured")
