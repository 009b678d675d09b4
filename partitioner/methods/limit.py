"""Limits of memory as users give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...machines.machine import Machine
from ...machines.quantities import quantity


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Each worker may hold what its device gives it."""

    machine: Machine
    """The machine, which states the memory of its devices."""


SameLimit = int | Literal["unlimited"] | None
"""The bytes that any worker may hold. None limits arenas to `MORE_BY_DEFAULT` above the recursive plan that
replicates nothing."""

Limit = SameLimit | DeviceMemory
"""The bytes that each worker may hold."""


def worker_limits(limit: Limit, workers: int) -> tuple[int, ...] | None:
    """Return the bytes that each worker may hold; None if the limit is none in bytes."""
    match limit:
        case int():
            return (limit,) * workers
        case DeviceMemory(machine=machine):
            return machine.memory_of(workers)
        case _:
            return None


def highest_limit(limit: Limit, workers: int) -> tuple[SameLimit, tuple[int, ...]]:
    """Return one limit for all workers, and the bytes that are withheld from each; none if devices are equal.

    A plan fits the limits if what each worker holds, and what is withheld from it, fit the highest one.
    """
    if not isinstance(limit, DeviceMemory):
        return limit, ()
    limits = limit.machine.memory_of(workers)
    assert limits is not None, "the machine states its memory"
    highest = max(limits)
    return highest, tuple(highest - each for each in limits) if min(limits) < highest else ()


def parse_limit(value: int | str | None, place: str, machine: Machine | None) -> Limit:
    """Read a limit; without a value it is the memory of each device, if the machine states it.

    Raises MachineError as `parse_same_limit`.
    """
    if value is None and machine is not None and machine.memory_bytes is not None:
        return DeviceMemory(machine)
    return parse_same_limit(value, place)


def parse_same_limit(value: int | str | None, place: str) -> SameLimit:
    """Read a limit: `unlimited`, or bytes as a number or as text.

    Raises MachineError if it is none of these; `place` names it.
    """
    if value == "unlimited":
        return "unlimited"
    return None if value is None else int(quantity(value, place))
