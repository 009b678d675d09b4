"""Read machine files (YAML or JSON) with distrust, and the presets that come with Tofu.

machine: pcie-4
memory: 16 GB                              # of each device; may be left out
levels:                                    # outermost first
  - {name: socket, bandwidth: 19.2 GB/s}   # of one group's link, each way
  - {name: gpu, bandwidth: 15.75 GB/s}
devices: [[gpu0, gpu1], [gpu2, gpu3]]      # one nesting of lists per level
"""

from __future__ import annotations

import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

from ..errors import MachineError
from ..support.strict_documents import parse_yaml, read_document
from ..support.wording import alternatives
from .machine import WORKER_LIMIT, Level, Machine

PRESETS = ("dgx-1-v100", "dgx-h100", "p2.8xlarge", "pcie-8")

LEVEL_LIMIT = 16
UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]?B|[KMG]iB)")


def load_machine(name: str) -> Machine:
    """Load a preset by its name, or else a machine file by its path.

    Raises MachineError if the file does not exist or is malformed; the message names the place in it.
    """
    if name in PRESETS:
        text = resources.files(__package__).joinpath("presets", f"{name}.yaml").read_bytes()
        return decode_machine(parse_yaml(text))
    path = Path(name)
    if not path.suffix and not path.exists():
        raise MachineError(
            f"there is neither a preset nor a machine file named {name!r}{alternatives(name, PRESETS)}"
        )
    value = read_document(path, "machine file", MachineError)
    try:
        return decode_machine(value)
    except MachineError as error:
        raise MachineError(f"the machine file {name!r} cannot be used: {error}") from error


def decode_machine(value: object) -> Machine:
    """Check the contents of a machine file. Raises MachineError."""
    entry = _mapping(value, "the file", ("machine", "levels", "devices"), ("memory",))
    levels = tuple(
        _level(level, f"levels[{i}]") for i, level in enumerate(_list(entry["levels"], "levels", LEVEL_LIMIT))
    )
    names = [level.name for level in levels]
    for name in names:
        if names.count(name) > 1:
            raise MachineError(f"two levels are named {name!r}; give each its own name")
    tree = _Tree(names)
    tree.add(entry["devices"], 0, "devices")
    memory = quantity(entry["memory"], "memory") if "memory" in entry else None
    return Machine(
        _name(entry["machine"], "machine"),
        levels,
        tuple(tree.devices),
        tuple(map(tuple, tree.groups)),
        None if memory is None else int(memory),
    )


def quantity(value: object, place: str, per_second: bool = False) -> float:
    """Read a positive number of bytes, written as a number or as text such as `12 GB` (or `21 GB/s`).

    Raises MachineError.
    """
    example = "21 GB/s" if per_second else "12 GB"
    if isinstance(value, str):
        text = value.strip()
        matched = _QUANTITY.fullmatch(text.removesuffix("/s") if per_second else text)
        if matched is None:
            raise MachineError(
                f"{place} is {value[:60]!r}; write it with its unit, such as {example}; units are "
                f"{', '.join(UNITS)}"
            )
        number = float(matched[1]) * UNITS[matched[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = float(min(value, 10**30))
    else:
        raise MachineError(
            f"{place} is {str(value)[:60]}; write a number of bytes, or text such as {example}"
        )
    if not (0 < number <= 1e18 and math.isfinite(number)):
        raise MachineError(f"{place} is {str(value)[:60]}; it must be positive and at most 10**18")
    return number


class _Tree:
    """The nested lists of devices, flattened to the group of each device at every level."""

    def __init__(self, levels: list[str]) -> None:
        self.devices: list[str] = []
        self.groups: list[list[int]] = [[] for _ in levels]
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
        name = _name(value, place)
        if name in self.devices:
            raise MachineError(f"{place}: two devices are named {name!r}; give each its own name")
        if len(self.devices) == WORKER_LIMIT:
            raise MachineError(
                f"there are more than {WORKER_LIMIT} devices, the most that a machine may have"
            )
        self.devices.append(name)
        for numbers, number in zip(self.groups, self._path, strict=True):
            numbers.append(number)


def _level(value: object, place: str) -> Level:
    entry = _mapping(value, place, ("name", "bandwidth"))
    bandwidth = quantity(entry["bandwidth"], f"{place}.bandwidth", per_second=True)
    return Level(_name(entry["name"], f"{place}.name"), bandwidth)


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
