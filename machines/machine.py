"""Machines: devices in nested groups, and the links that join the groups of each level.

A level is a kind of group: nodes, sockets, PCIe switches, NVLink cliques. The last level is the devices
themselves. Every group is connected by one link, which carries `bytes_per_second` each way. A transfer
between two devices crosses the outermost level at which their groups differ. It uses the links of both
devices' groups at that level and at all levels inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import MachineError

WORKER_LIMIT = 4096
"""The largest number of workers of a plan, and of devices of a machine."""


@dataclass(frozen=True, slots=True)
class Level:
    """A kind of group, and the bandwidth of the link that connects one such group."""

    name: str
    """The name of the kind of group, such as `socket`."""

    bytes_per_second: float
    """The bandwidth of one group's link, each way."""


@dataclass(frozen=True)
class Machine:
    """Devices in nested groups. Worker `w` runs on device `w`."""

    name: str
    """The name that messages and tables use."""

    levels: tuple[Level, ...]
    """The kinds of groups, outermost first."""

    devices: tuple[str, ...]
    """The names of the devices."""

    groups: tuple[tuple[int, ...], ...]
    """`groups[level][device]` numbers the device's group; groups of the last level are single devices."""

    memory_bytes: int | None = None
    """The memory of each device; None if the machine's file does not state it."""

    def check_workers(self, workers: int) -> None:
        """Raise MachineError if there are more workers than devices."""
        if workers > len(self.devices):
            raise MachineError(
                f"{workers} workers need {workers} devices, but machine {self.name!r} has {len(self.devices)}"
            )

    def fan_out(self, workers: int) -> tuple[int, ...]:
        """Return the number of groups into which each level divides a group, for the first `workers` devices.

        Raises MachineError if that number differs between groups.
        """
        self.check_workers(workers)
        inside: list[tuple[int, ...]] = [()] * workers
        counts = []
        for level, numbers in zip(self.levels, self.groups, strict=True):
            deeper = [(*path, number) for path, number in zip(inside, numbers[:workers], strict=True)]
            parts = {path: len({d for d in deeper if d[:-1] == path}) for path in set(inside)}
            if len(set(parts.values())) > 1:
                raise MachineError(
                    f"the first {workers} devices of machine {self.name!r} are not divided evenly at level "
                    f"{level.name!r}: {sorted(parts.values())} groups; use a number of workers that are"
                )
            counts.append(next(iter(parts.values())))
            inside = deeper
        return tuple(counts)

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.levels)


def uniform(name: str, levels: Sequence[tuple[str, int, float]]) -> Machine:
    """Make a machine whose levels each divide into a number of groups: `(name, groups, bytes per second)`.

    >>> uniform("box", [("socket", 2, 19.2e9), ("gpu", 4, 15.75e9)]).fan_out(8)
    (2, 4)
    """
    count = 1
    groups: list[tuple[int, ...]] = []
    for _, parts, _ in levels:
        groups = [tuple(n for n in numbers for _ in range(parts)) for numbers in groups]
        count *= parts
        groups.append(tuple(range(count)))
    named = tuple(Level(level, speed) for level, _, speed in levels)
    return Machine(name, named, tuple(f"gpu{d}" for d in range(count)), tuple(groups))
