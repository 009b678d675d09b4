"""Machines: devices, how fast they are, and the links between them.

Links are given by levels or as a graph. A level is a kind of group: nodes, sockets, PCIe switches, NVLink
cliques. The last level is the devices themselves. Every group is connected by one link, which carries
`bytes_per_second` each way. A transfer between two devices crosses the outermost level at which their groups
differ. It uses the links of both devices' groups at that level and at all levels inside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import MachineError
from ..support.wording import counted
from .device_kind import DeviceKind
from .links import DeviceLink, MessagePath, Routes
from .profile import Profile

WORKER_LIMIT = 4096
"""The largest number of workers of a plan, and of devices of a machine."""


@dataclass(frozen=True, slots=True)
class Level:
    """A kind of group, and the link that connects one such group."""

    name: str
    """The name of the kind of group, such as `socket`."""

    bytes_per_second: float
    """The bandwidth of one group's link, each way."""

    latency_seconds: float = 0.0
    """The time of a message without bytes between two devices whose groups differ first at this level."""

    rails: int = 1
    """The equal parts of a group's link. A message takes one part, which its device's number decides."""


@dataclass(frozen=True)
class Machine:
    """Devices, the workers on them, and the links between them: those of levels, or any graph."""

    name: str
    """The name that messages and tables use."""

    levels: tuple[Level, ...]
    """The kinds of groups, outermost first; none if `links` are given."""

    devices: tuple[str, ...]
    """The names of the devices."""

    groups: tuple[tuple[int, ...], ...]
    """`groups[level][device]` numbers the device's group; groups of the last level are single devices."""

    memory_bytes: int | None = None
    """The memory of each device, the least if they differ; None if the machine's file does not state it."""

    kinds: tuple[DeviceKind, ...] = ()
    """The kind of each device; none if the machine's file does not say how fast they are."""

    links: tuple[DeviceLink, ...] = ()
    """The links, if they are given as a graph."""

    worker_devices: tuple[int, ...] = ()
    """The device of each worker; if there are none, worker `w` runs on device `w`."""

    link_per_pair: bool = False
    """Whether each pair of devices has a link of its own, without latency, as wide as the narrowest link of
    its path (FlexFlow, section 5.1).
    """

    network: Level | None = None
    """How several such machines are joined; None if the machine's file does not state it."""

    profile: Profile | None = None
    """Measured times of instructions; None if there are none."""

    memories: tuple[int, ...] = ()
    """The memory of each device, in bytes, if they differ; else none."""

    def devices_of(self, workers: int) -> tuple[int, ...]:
        """Return the device of each worker.

        If all devices serve in turn and there are more workers, neighbours share a device, evenly.
        """
        count = len(self.devices)
        if self._shares_evenly and workers > count:
            return tuple(worker * count // workers for worker in range(workers))
        return (self.worker_devices or tuple(range(count)))[:workers]

    def memory_of(self, workers: int) -> tuple[int, ...] | None:
        """Return the memory that devices give to each worker; None if the machine's file does not state it.

        Workers that share a device share its memory evenly.
        """
        if self.memory_bytes is None:
            return None
        devices = self.devices_of(workers)
        each = [self.memories[device] if self.memories else self.memory_bytes for device in devices]
        sharing = Counter(devices)
        return tuple(nbytes // sharing[device] for nbytes, device in zip(each, devices, strict=True))

    @property
    def processes(self) -> bool:
        """Tell whether each device has a process."""
        return any(kind.process for kind in self.kinds)

    @property
    def _shares_evenly(self) -> bool:
        return not self.worker_devices and bool(self.kinds) and all(kind.in_turn for kind in self.kinds)

    def check_workers(self, workers: int) -> None:
        """Raise MachineError if there is no worker, or more than the machine places on its devices."""
        if workers < 1:
            raise MachineError(f"{workers} workers run nothing on machine {self.name!r}; use 1 or more")
        if len(self.devices_of(workers)) == workers:
            return
        if self.worker_devices:
            raise MachineError(
                f"machine {self.name!r} places {counted(len(self.worker_devices), 'worker')} on devices, "
                f"not {workers}; list the device of each in `workers`"
            )
        raise MachineError(
            f"{workers} workers need {workers} devices, but machine {self.name!r} has {len(self.devices)}"
        )

    def kind(self, device: int) -> DeviceKind:
        """Return how fast a device is. Raises MachineError if the machine does not say."""
        if not self.kinds:
            raise MachineError(
                f"machine {self.name!r} does not say how fast its devices are, so the times of operators are "
                f"unknown; add `kind` to the machine file, such as `kind: v100`"
            )
        return self.kinds[device]

    def path(self, source: int, reader: int) -> MessagePath:
        """Return the path of messages between two different devices.

        Raises MachineError if no links join them.
        """
        path = self._path_by_levels(source, reader) if self.levels else self._path_by_links(source, reader)
        if self.link_per_pair:
            return MessagePath(
                (f"{self.devices[source]} to {self.devices[reader]}",), path.bytes_per_second, 0.0
            )
        return path

    def _path_by_links(self, source: int, reader: int) -> MessagePath:
        path = self._routes.path(self.devices[source], self.devices[reader])
        if not self._routes.rails:
            return path
        of = [self._routes.rails.get(lane, 1) for lane in path.lanes]
        lanes = [
            lane if rails == 1 else f"{lane} rail {(source + reader) % rails}"
            for lane, rails in zip(path.lanes, of, strict=True)
        ]
        return replace(path, lanes=tuple(lanes))

    def _path_by_levels(self, source: int, reader: int) -> MessagePath:
        crossed = next(number for number, of in enumerate(self.groups) if of[source] != of[reader])
        inwards = range(crossed, len(self.levels))
        lanes = [f"{self._link_of(source, number)} out" for number in inwards]
        lanes += [f"{self._link_of(reader, number)} in" for number in inwards]
        width = min(level.bytes_per_second / level.rails for level in self.levels[crossed:])
        return MessagePath(tuple(lanes), width, self.levels[crossed].latency_seconds)

    def _link_of(self, device: int, number: int) -> str:
        """Name the link of a device's group at a level."""
        level, groups = self.levels[number], self.groups[number]
        if number == len(self.levels) - 1:
            return self.devices[device]
        name = f"{level.name} {groups[device]}"
        if level.rails == 1:
            return name
        return f"{name} rail {(device - groups.index(groups[device])) % level.rails}"

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.links)

    def fan_out(self, workers: int) -> tuple[int, ...]:
        """Return the number of groups into which each level divides a group, for the first `workers` devices.

        Raises MachineError if that number differs between groups, if workers share a device, or if the
        machine has no levels.
        """
        groups = self.worker_groups(workers)
        devices = len(set(groups[-1]))
        if devices < workers:
            raise MachineError(
                f"the first {workers} workers of machine {self.name!r} share {counted(devices, 'device')}, "
                f"so its levels do not divide them; place every worker on a device of its own"
            )
        inside: list[tuple[int, ...]] = [()] * workers
        counts = []
        for level, numbers in zip(self.levels, groups, strict=True):
            deeper = [(*path, number) for path, number in zip(inside, numbers, strict=True)]
            parts = {path: len({d for d in deeper if d[:-1] == path}) for path in set(inside)}
            if len(set(parts.values())) > 1:
                raise MachineError(
                    f"the first {workers} devices of machine {self.name!r} are not divided evenly at level "
                    f"{level.name!r}: {sorted(parts.values())} groups; use a number of workers that "
                    "are, or `tofu plan` with the objective 'bytes', which takes any"
                )
            counts.append(next(iter(parts.values())))
            inside = deeper
        return tuple(counts)

    def worker_groups(self, workers: int) -> tuple[tuple[int, ...], ...]:
        """Return the groups of the first `workers` workers, by level.

        Raises MachineError if there are too few devices, or no levels.
        """
        self.check_workers(workers)
        if not self.levels:
            raise MachineError(
                f"machine {self.name!r} lists links instead of levels, so nothing can be counted by level; "
                f"describe it by levels, or simulate: `tofu simulate` and methods such as 'anneal' take it"
            )
        return tuple(tuple(of[device] for device in self.devices_of(workers)) for of in self.groups)

    def outermost_groups(self, workers: int) -> tuple[tuple[int, ...], ...]:
        """Return the first `workers` workers by their groups at the outermost level that has several of them.

        Each worker is a group of its own if there are no levels.
        """
        devices = self.devices_of(workers)
        levels = ([of[device] for device in devices] for of in self.groups)
        numbers = next((of for of in levels if len(set(of)) > 1), range(workers))
        members: dict[int, list[int]] = {}
        for worker, number in enumerate(numbers):
            members.setdefault(number, []).append(worker)
        return tuple(map(tuple, members.values()))

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.levels)


def several(machine: Machine, count: int) -> Machine:
    """Join `count` machines by their network, which becomes the outermost level `node`.

    Raises MachineError if the machine states no network, or if there are too many devices.
    """
    if machine.network is None or not machine.levels:
        raise MachineError(f"machine {machine.name!r} states no `network`, so several cannot be joined")
    size = len(machine.devices)
    if not 0 < count * size <= WORKER_LIMIT:
        raise MachineError(
            f"{count} times {machine.name!r} has {count * size} devices; a machine has 1 to {WORKER_LIMIT}"
        )
    groups = [tuple(node for node in range(count) for _ in range(size))]
    for numbers in machine.groups:
        width = max(numbers) + 1
        groups.append(tuple(node * width + number for node in range(count) for number in numbers))
    return replace(
        machine,
        name=f"{count}x-{machine.name}",
        levels=(machine.network, *machine.levels),
        devices=tuple(f"node{node}.{name}" for node in range(count) for name in machine.devices),
        groups=tuple(groups),
        kinds=machine.kinds * count,
        memories=machine.memories * count,
        worker_devices=tuple(node * size + d for node in range(count) for d in machine.worker_devices),
        network=None,
    )


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
