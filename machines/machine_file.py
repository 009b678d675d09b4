"""Read machine files (YAML or JSON) with distrust, and the presets that come with Tofu.

machine: pcie-4
kind: p100-pcie                            # of each device: a known kind, or one of `kinds`
levels:                                    # outermost first
  - {name: socket, bandwidth: 19.2 GB/s}   # of one group's link, each way
  - {name: gpu, bandwidth: 15.75 GB/s, latency: 5.7 us}
devices: [[gpu0, gpu1], [gpu2, gpu3]]      # one nesting of lists per level

docs/machines.md lists all entries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ..dataflow.element_types import MIXED, UNIFORM
from ..errors import MachineError
from ..support.checked_argument import require
from ..support.strict_documents import parse_yaml, read_document
from ..support.wording import alternatives
from .device_kind import DeviceKind
from .links import DeviceLink
from .machine import WORKER_LIMIT, Level, Machine, several
from .profile import Profile
from .profile_file import load_profile, profile_path
from .quantities import quantity, rate, seconds

PRESETS = (
    "dgx-1-v100",
    "dgx-a100",
    "dgx-h100",
    "k80-node",
    "p100-node",
    "p2.8xlarge",
    "pcie-8",
)

LEVEL_LIMIT = 16
LINK_LIMIT = 1 << 16
_SEVERAL = re.compile(r"([0-9]{1,4})x-(.+)")


def machine_of(machine: str | Machine) -> Machine:
    """Return a machine; load it if it is a name. Raises MachineError as `load_machine`."""
    return machine if isinstance(machine, Machine) else load_machine(machine)


def load_machine(name: str) -> Machine:
    """Load a preset by its name, or else a machine file by its path.

    `2x-dgx-h100` is two of the preset `dgx-h100`, joined by its network. Measured times are read from the
    profile next to the file, if there is one. Raises MachineError if a file does not exist, is malformed, or
    has times of another machine; the message names the place in it.
    """
    fits = isinstance(name, str)
    require(fits, name, "machine", "the name of a preset or of a machine file", MachineError)
    if is_preset(name):
        joined = _SEVERAL.fullmatch(name)
        if joined is not None:
            return several(load_machine(joined[2]), int(joined[1]))
        return decode_machine(_preset(name))
    path = Path(name)
    if not path.suffix and not os.path.exists(path):
        raise MachineError(
            f"there is neither a preset nor a machine file named {name!r}{alternatives(name, PRESETS)}"
        )
    value = read_document(path, "machine file", MachineError)
    try:
        machine = decode_machine(value)
    except MachineError as error:
        raise MachineError(f"the machine file {name!r} cannot be used: {error}") from error
    times = profile_path(path)
    return with_profile(machine, load_profile(times, machine.name)) if times.exists() else machine


def is_preset(name: str) -> bool:
    """Tell whether a machine is named that needs no file: a preset, or several joined."""
    joined = _SEVERAL.fullmatch(name)
    return (name if joined is None else joined[2]) in PRESETS


def with_profile(machine: Machine, profile: Profile) -> Machine:
    """Return a machine with measured times.

    Raises MachineError unless its devices are of one kind and run the engine that was measured.
    """
    if len(set(machine.kinds)) != 1:
        listed = ", ".join(sorted({kind.name for kind in machine.kinds})) or "none"
        raise MachineError(
            f"the profile {profile.path!r} has times of one kind of device, but machine {machine.name!r} has "
            f"{listed}; give all devices one `kind`"
        )
    kind, measured = machine.kinds[0], profile.engines[0].engine
    if measured != kind.engine:
        raise MachineError(
            f"the profile {profile.path!r} has times of the engine {measured}, but the devices of machine "
            f"{machine.name!r} run the engine {kind.engine}, since `in_turn` of kind {kind.name!r} is "
            f"{str(kind.in_turn).lower()} and `process` is {str(kind.process).lower()}; delete the profile, "
            "or put it next to its own machine file"
        )
    return replace(machine, profile=profile)


def decode_machine(value: object) -> Machine:
    """Check the contents of a machine file. Raises MachineError."""
    optional = ("levels", "links", "memory", "kind", "kinds", "workers", "link_per_pair", "network")
    entry = _mapping(value, "the file", ("machine", "devices"), optional)
    if ("levels" in entry) == ("links" in entry):
        which = "both 'levels' and 'links'" if "levels" in entry else "neither 'levels' nor 'links'"
        raise MachineError(f"the file has {which}; describe the links by one of them")
    levels = _levels(entry["levels"]) if "levels" in entry else ()
    tree = _Tree([level.name for level in levels] or ["device"])
    tree.add(entry["devices"], 0, "devices")
    kinds = _kinds_of(tree, entry)
    memory = int(quantity(entry["memory"], "memory")) if "memory" in entry else None
    memories: tuple[int, ...] = ()
    if memory is None:
        known = tuple(kind.memory_bytes for kind in kinds if kind.memory_bytes is not None)
        memory = min(known) if known and len(known) == len(kinds) else None
        memories = known if memory is not None and max(known) > memory else ()
    if len({kind.process for kind in kinds}) > 1:
        raise MachineError("some kinds of devices have a process and others do not; set `process` for all")
    return Machine(
        _name(entry["machine"], "machine"),
        levels,
        tuple(tree.devices),
        tuple(map(tuple, tree.groups)) if levels else (),
        memory,
        kinds,
        _links(entry["links"], tree.devices) if "links" in entry else (),
        _workers(entry["workers"], tree.devices) if "workers" in entry else (),
        _flag(entry.get("link_per_pair", False), "link_per_pair"),
        _network(entry["network"]) if "network" in entry else None,
        memories=memories,
    )


@cache
def known_kinds() -> Mapping[str, DeviceKind]:
    """Return the kinds of devices that come with Tofu, by name."""
    return _kinds(_preset("kinds"), "kinds")


def _preset(name: str) -> object:
    return parse_yaml(resources.files(__package__).joinpath("presets", f"{name}.yaml").read_bytes())


def _levels(value: object) -> tuple[Level, ...]:
    levels = tuple(
        _level(level, f"levels[{i}]") for i, level in enumerate(_list(value, "levels", LEVEL_LIMIT))
    )
    names = [level.name for level in levels]
    for name in names:
        if names.count(name) > 1:
            raise MachineError(f"two levels are named {name!r}; give each its own name")
    return levels


def _kinds(value: object, place: str) -> dict[str, DeviceKind]:
    if not isinstance(value, dict) or not value:
        raise MachineError(
            f"{place} is {str(value)[:60]}; expected an object with a kind of device by each name"
        )
    return {_name(name, place): _kind(name, entry, f"{place}.{name}") for name, entry in value.items()}


def _kind(name: str, value: object, place: str) -> DeviceKind:
    entry = _mapping(
        value, place, ("rates", "memory_bandwidth", "kernel_start"), ("memory", "in_turn", "wake", "process")
    )
    rates = entry["rates"]
    if not isinstance(rates, dict) or not rates:
        raise MachineError(
            f"{place}.rates is {str(rates)[:60]}; expected a rate for each element type, such as "
            f"{{float32: 15.7 TFLOP/s}}"
        )
    known = (*UNIFORM, *MIXED)
    for dtype in rates:
        if dtype not in known:
            raise MachineError(
                f"{place}.rates has {str(dtype)[:60]!r}, which is not a type that graphs compute in; use "
                f"one of {', '.join(known)}"
            )
    return DeviceKind(
        name,
        int(quantity(entry["memory"], f"{place}.memory")) if "memory" in entry else None,
        quantity(entry["memory_bandwidth"], f"{place}.memory_bandwidth", per_second=True),
        tuple((dtype, rate(each, f"{place}.rates.{dtype}")) for dtype, each in rates.items()),
        seconds(entry["kernel_start"], f"{place}.kernel_start"),
        _flag(entry.get("in_turn", False), f"{place}.in_turn"),
        seconds(entry.get("wake", 0), f"{place}.wake"),
        _process(entry, place),
    )


def _process(entry: Mapping[str, Any], place: str) -> bool:
    """Read whether each device has a process, which so far only processors have."""
    process = _flag(entry.get("process", False), f"{place}.process")
    if process and not entry.get("in_turn", False):
        raise MachineError(
            f"{place}.process is true, but {place}.in_turn is not; processes are simulated on processors, "
            "which serve in turn"
        )
    return process


def _kinds_of(tree: _Tree, entry: Mapping[str, Any]) -> tuple[DeviceKind, ...]:
    """Return the kind of each device, its own or else `kind`; nothing if no device has one."""
    own = _kinds(entry["kinds"], "kinds") if "kinds" in entry else {}
    known = {**known_kinds(), **own}
    chosen = [
        (name, place) if name is not None else (entry.get("kind"), "kind") for name, place in tree.kinds
    ]
    if all(name is None for name, _ in chosen):
        if own:
            raise MachineError(f"kinds has {', '.join(own)}, but no device has a kind; add `kind`")
        return ()
    found = []
    for device, (name, place) in zip(tree.devices, chosen, strict=True):
        if name is None:
            raise MachineError(f"device {device!r} has no kind, but others have; add `kind` to it or for all")
        if not isinstance(name, str) or name not in known:
            hint = alternatives(str(name), known)
            raise MachineError(f"{place} is {str(name)[:60]!r}, which is not a kind of device{hint}")
        found.append(known[name])
    return tuple(found)


def _links(value: object, devices: Sequence[str]) -> tuple[DeviceLink, ...]:
    """Read links between devices and switches; every device must be reached from the first one."""
    links: dict[frozenset[str], DeviceLink] = {}
    for number, each in enumerate(_list(value, "links", LINK_LIMIT)):
        place = f"links[{number}]"
        entry = _mapping(each, place, ("between", "bandwidth"), ("latency", "rails"))
        ends = [_name(end, f"{place}.between") for end in _list(entry["between"], f"{place}.between", 2)]
        if len(set(ends)) != 2:
            raise MachineError(f"{place}.between is {ends}; a link joins two different devices or switches")
        if frozenset(ends) in links:
            raise MachineError(
                f"{place}: {ends[0]!r} and {ends[1]!r} have a link already; give one the bandwidth of both"
            )
        links[frozenset(ends)] = DeviceLink(
            (ends[0], ends[1]),
            quantity(entry["bandwidth"], f"{place}.bandwidth", per_second=True),
            seconds(entry.get("latency", 0), f"{place}.latency"),
            _count(entry.get("rails", 1), f"{place}.rails"),
        )
    _check_joined(list(links.values()), devices)
    return tuple(links.values())


def _check_joined(links: Sequence[DeviceLink], devices: Sequence[str]) -> None:
    """Raise MachineError if links do not join all devices, or end at a switch that joins nothing."""
    beyond: dict[str, list[str]] = {device: [] for device in devices}
    for link in links:
        for start, end in (link.ends, link.ends[::-1]):
            beyond.setdefault(start, []).append(end)
    for place, ends in beyond.items():
        if place not in devices and len(ends) == 1:
            raise MachineError(
                f"links join {place!r} to {ends[0]!r} alone, and it is not a device"
                f"{alternatives(place, devices)}"
            )
    reached, waiting = {devices[0]}, [devices[0]]
    while waiting:
        for end in beyond[waiting.pop()]:
            if end not in reached:
                reached.add(end)
                waiting.append(end)
    for device in devices:
        if device not in reached:
            raise MachineError(
                f"no links join {devices[0]!r} and {device!r}; add one, or a switch that joins both"
            )


def _workers(value: object, devices: Sequence[str]) -> tuple[int, ...]:
    """Read the device of every worker."""
    numbers = {name: number for number, name in enumerate(devices)}
    found = []
    for worker, name in enumerate(_list(value, "workers", WORKER_LIMIT)):
        if not isinstance(name, str) or name not in numbers:
            raise MachineError(
                f"workers[{worker}] is {str(name)[:60]!r}, which is not a device"
                f"{alternatives(str(name), numbers)}"
            )
        found.append(numbers[name])
    return tuple(found)


class _Tree:
    """The nested lists of devices, flattened to the group of each device at every level."""

    def __init__(self, levels: list[str]) -> None:
        self.devices: list[str] = []
        self.kinds: list[tuple[object, str]] = []
        """The kind that a device's own entry names, or None, and its place in the file."""
        self.groups: list[list[int]] = [[] for _ in levels]
        self._names: set[str] = set()
        self._levels = levels
        self._path: list[int] = []
        self._counts = [0] * len(levels)

    def add(self, value: object, depth: int, place: str) -> None:
        """Add one group of the level above `depth`, with everything in it."""
        level = self._levels[depth]
        if not isinstance(value, list):
            raise MachineError(
                f"{place} is {str(value)[:60]}; expected a list with an entry for each {level}"
            )
        if not value:
            raise MachineError(f"{place} has no {level}; a machine needs at least one device")
        for number, member in enumerate(value):
            self._path.append(self._counts[depth])
            self._counts[depth] += 1
            if depth + 1 < len(self._levels):
                self.add(member, depth + 1, f"{place}[{number}]")
            else:
                self._device(member, f"{place}[{number}]")
            self._path.pop()

    def _device(self, value: object, place: str) -> None:
        entry = _mapping(value, place, ("name", "kind")) if isinstance(value, dict) else {"name": value}
        name = _name(entry["name"], place)
        if name in self._names:
            raise MachineError(f"{place}: two devices are named {name!r}; give each its own name")
        if len(self.devices) == WORKER_LIMIT:
            raise MachineError(
                f"there are more than {WORKER_LIMIT} devices, the most that a machine may have"
            )
        self._names.add(name)
        self.devices.append(name)
        self.kinds.append((entry.get("kind"), f"{place}.kind"))
        for numbers, number in zip(self.groups, self._path, strict=True):
            numbers.append(number)


def _level(value: object, place: str) -> Level:
    entry = _mapping(value, place, ("name", "bandwidth"), ("latency", "rails"))
    return Level(
        _name(entry["name"], f"{place}.name"),
        quantity(entry["bandwidth"], f"{place}.bandwidth", per_second=True),
        seconds(entry.get("latency", 0), f"{place}.latency"),
        _count(entry.get("rails", 1), f"{place}.rails"),
    )


def _network(value: object) -> Level:
    entry = _mapping(value, "network", ("bandwidth",), ("latency", "rails"))
    return _level({"name": "node", **entry}, "network")


def _count(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= WORKER_LIMIT:
        raise MachineError(f"{place} is {str(value)[:60]}; it must be a number from 1 to {WORKER_LIMIT}")
    return value


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise MachineError(f"{place} is {str(value)[:60]}; it must be true or false")
    return value


def _name(value: object, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 100 or not value.isprintable():
        raise MachineError(f"{place} is {str(value)[:60]!r}; it must be a name")
    return value


def _list(value: object, place: str, limit: int) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= limit:
        raise MachineError(f"{place} must be a list of 1 to {limit} entries")
    return value


def _mapping(
    value: object, place: str, keys: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MachineError(f"{place} is {str(value)[:60]}; expected an object with {', '.join(keys)}")
    for key in keys:
        if key not in value:
            raise MachineError(f"{place} lacks {key!r}; its keys are {', '.join(keys + optional)}")
    for key in value:
        if key not in keys + optional:
            raise MachineError(f"{place} has an unknown key {key!r}{alternatives(key, keys + optional)}")
    return value
