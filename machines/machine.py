"""Machines: devices in nested groups, and the links that join the groups of each level.

A level is a kind of group: nodes, sockets, PCIe switches, NVLink cliques, and as the last the devices
themselves. Every group hangs on one link, which carries `bytes_per_second` each way. What goes from one
device to another crosses the level at which their groups part, and on its way uses the links of both
devices' groups from that level inwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import MachineError

WORKER_LIMIT = 4096
"""The most workers that a plan may have, and the most devices that a machine may have."""


@dataclass(frozen=True, slots=True)
class Level:
    """A kind of group, and what the link of one such group carries each way."""

    name: str
    bytes_per_second: float


@dataclass(frozen=True)
class Machine:
    """`levels` are outermost first; `groups[level][device]` numbers the group that a device is in.

    Worker `w` runs on device `w`. Groups of the last level are single devices. `memory_bytes` is what each
    device has, None where that is not said.
    """

    name: str
    levels: tuple[Level, ...]
    devices: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    memory_bytes: int | None = None

    def check_workers(self, workers: int) -> None:
        """Raise MachineError where there are more workers than devices."""
        if workers > len(self.devices):
            raise MachineError(
                f"{workers} workers need as many devices; machine {self.name!r} has {len(self.devices)}"
            )

    def fan_out(self, workers: int) -> tuple[int, ...]:
        """Into how many groups each level divides a group, for the first `workers` devices.

        Raises MachineError where that differs between groups.
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
                    f"{level.name!r}: {sorted(parts.values())} groups; use a number of workers that is"
                )
            counts.append(next(iter(parts.values())))
            inside = deeper
        return tuple(counts)

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.levels)


def uniform(name: str, levels: Sequence[tuple[str, int, float]]) -> Machine:
    """A machine whose levels each divide into a number of groups: `(name, groups, bytes per second)`.

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
