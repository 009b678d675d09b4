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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..machines.device_kind import DeviceKind
from ..machines.machine import Machine
from ..machines.profile import EngineTimes
from ..programs.instruction_work import Computations, TransferWork, computations, transfers
from ..programs.program import PartitionedGraph
from .fitted import UnitTimes, fit

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second."""

Source = Literal["measured", "fitted", "estimated"]
"""Where times come from."""

SOURCES: tuple[Source, ...] = ("measured", "fitted", "estimated")
"""All sources, the best one first."""

Floats = npt.NDArray[np.float64]


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
    kinds = [machine.kind(device) for device in machine.devices_of(partitioned.workers)]
    for group in computations(partitioned):
        nanoseconds = np.rint(_estimate(group, kinds) * NANOSECONDS).astype(np.int64)
        for (worker, index), time in zip(group.places, nanoseconds.tolist(), strict=True):
            found[worker][index] = time
    return ComputeTimes(found, "estimated")


def _estimate(group: Computations, kinds: Sequence[DeviceKind]) -> Floats:
    workers = np.array([worker for worker, _ in group.places])
    bandwidths = np.array([kind.bytes_per_second for kind in kinds])
    busy: Floats = group.nbytes / bandwidths[workers]
    if group.flops is not None and group.flops.any():
        rates = {worker: kinds[worker].rate(group.dtype) for worker in set(workers.tolist())}
        busy = np.maximum(busy, group.flops / np.array([rates[worker] for worker in workers.tolist()]))
    starts: Floats = np.array([kind.start_seconds for kind in kinds])[workers]
    return starts + busy


def _profiled(partitioned: PartitionedGraph, machine: Machine) -> ComputeTimes:
    assert machine.profile is not None
    devices = machine.devices_of(partitioned.workers)
    found = _Found(partitioned, machine.profile.times(len(set(devices))))
    kinds = [machine.kind(device) for device in devices]
    for group in computations(partitioned):
        found.compute(group, kinds)
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

    def __init__(self, partitioned: PartitionedGraph, measured: EngineTimes) -> None:
        self._measured = measured
        self._nanoseconds = [[0] * len(program.instructions) for program in partitioned.programs]
        self._units: dict[str, UnitTimes] = {}
        self._counts: Counter[Source] = Counter()
        self._spent: Counter[Source] = Counter()

    def compute(self, group: Computations, kinds: Sequence[DeviceKind]) -> None:
        """Add computations of one kind."""
        known = self._measured.kinds.get(group.kind)
        if known is None:
            for place, seconds in zip(group.places, _estimate(group, kinds).tolist(), strict=True):
                self._add(place, seconds, "estimated")
            return
        kind = kinds[group.places[0][0]]
        counted = group.flops is not None and group.flops.any()
        rate = kind.rate(group.dtype) if counted else kind.bytes_per_second
        unit = (kind.start_seconds, 1 / rate, 1 / kind.bytes_per_second)
        rows = zip(group.places, group.sizes.tolist(), group.amounts.tolist(), strict=True)
        for place, sizes, each in rows:
            self._look_up(place, group.kind, tuple(sizes), each, unit)

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
