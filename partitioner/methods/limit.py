"""Limits of memory as users give them."""

from __future__ import annotations

from typing import Literal

from ...machines.machine import Machine
from ...machines.quantities import quantity

Limit = int | Literal["unlimited"] | None
"""The bytes that each worker may hold. None limits arenas to `MORE_BY_DEFAULT` above the refined plan that
replicates nothing."""


def parse_limit(value: int | str | None, place: str, machine: Machine | None) -> Limit:
    """Read a limit: `unlimited`, or bytes as a number or as text; without a value it is the machine's memory.

    Raises MachineError if it is none of these; `place` names it.
    """
    if value == "unlimited":
        return "unlimited"
    if value is not None:
        return int(quantity(value, place))
    return None if machine is None else machine.memory_bytes
